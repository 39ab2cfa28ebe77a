/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * networks.c - the option direct_networks from any text: an accepted list matches its own networks,
 * and no others
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/require.h"
#include "verbs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int has(const struct tc_networks *networks, const uint8_t address[16])
{
	struct sockaddr_in6 addr = {.sin6_family = AF_INET6};

	memcpy(&addr.sin6_addr, address, 16);
	return tc_networks_have(networks, (struct sockaddr *)&addr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tc_networks networks, one = {.n = 1};
	char *text = malloc(size + 1), why[160] = "";

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = 0;
	if (tc_networks_parse(text, &networks, why, sizeof(why)) != 0) {
		require(*why != 0);
		networks.n = 0;
	}
	require(networks.n <= TC_NETWORKS);
	for (uint32_t i = 0; i < networks.n; i++) {
		const struct tc_network *network = &networks.list[i];
		uint8_t address[16];

		one.list[0] = *network;
		memcpy(address, network->address, sizeof(address));
		require(network->bits <= 128 && has(&networks, address) && has(&one, address));
		if (network->bits == 0)
			continue;
		address[(network->bits - 1) / 8] ^= (uint8_t)(0x80 >> (network->bits - 1) % 8);
		require(!has(&one, address));
	}
	free(text);
	return 0;
}
