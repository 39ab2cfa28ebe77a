/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * secure.c - any bytes from the peer of a record filter: to an end that listens, to one that
 * connects, and to an open one. The first byte chooses the end; the second one the size of pieces.
 * No end opens, and none returns a message.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <gantry/transport.h>

#include "base/host.h"
#include "base/safe_path.h"
#include "fuzz/require.h"
#include "secure/auth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Devices that connect, and that listen. */
static struct gn_host hosts[2];

static void setup(void)
{
	char path[] = "/tmp/gantry-fuzz-XXXXXX", why[GN_PATH_WHY];
	const int fd = mkstemp(path);

	require(fd >= 0 && dprintf(fd, "a:%064d\n", 1) > 0);
	close(fd);
	for (int listens = 0; listens < 2; listens++) {
		const struct gn_auth_conf conf = {
			.mode = GN_AUTH_PSK, .identity = listens ? "" : "a", .keys = path};

		gn_host_init(&hosts[listens], "fuzz");
		require(gn_auth_open(&conf, &hosts[listens].auth, why) == 0);
	}
	unlink(path);
}

static void *open_end(int listens)
{
	static const struct gantry_peer peer;
	void *records;

	require(gn_auth_records.open(&hosts[listens].pub, &hosts[listens], listens, &peer,
				     &records) == 0);
	return records;
}

static int state_of(void *records)
{
	const char *text;

	return gn_auth_records.state(records, &text);
}

/* Pass the output of one end to the other. */
static void pass(void *from, void *to)
{
	uint8_t bytes[GANTRY_RECORDS_MAX];
	size_t n;

	while ((n = gn_auth_records.output(from, bytes, sizeof(bytes))) > 0)
		require(gn_auth_records.receive(to, bytes, n) == 0);
}

static void attack(void *records, const uint8_t *data, size_t size, size_t piece)
{
	const int before = state_of(records);
	uint8_t bytes[GANTRY_RECORDS_MAX];
	int rc = 0;

	for (size_t at = 0; at < size; at += piece) {
		rc = gn_auth_records.receive(records, data + at,
					     size - at < piece ? size - at : piece);
		require((rc != 0) == (state_of(records) == GANTRY_RECORDS_FAILED));
		require(rc || state_of(records) == before);
		require(gn_auth_records.message(records, bytes, sizeof(bytes)) == 0);
		while (gn_auth_records.output(records, bytes, sizeof(bytes)) > 0)
			;
	}
	gn_auth_records.close(records);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *a, *b;

	if (size < 2)
		return 0;
	if (!hosts[0].auth)
		setup();
	a = open_end(0);
	b = open_end(1);
	if (data[0] & 1) {
		pass(a, b);
		pass(b, a);
		pass(a, b);
		pass(b, a);
		require(state_of(a) == GANTRY_RECORDS_OPEN && state_of(b) == GANTRY_RECORDS_OPEN);
	}
	attack(data[0] & 2 ? a : b, data + 2, size - 2, data[1] ? data[1] : size);
	gn_auth_records.close(data[0] & 2 ? b : a);
	return 0;
}
