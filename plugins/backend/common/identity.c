/* SPDX-License-Identifier: BSD-3-Clause */
#include "identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <uuid/uuid.h>

#define MACHINE_ID_BYTES 64 /* size of a buffer for the line with a machine id or a boot id */

/* The namespace of all UUIDs that gantry derives from names: chosen once, at random. */
static const uuid_t namespace = {
	0x6e, 0x0f, 0x5a, 0x43, 0x9c, 0x1d, 0x4b, 0x52,
	0xa7, 0x38, 0x1f, 0xd0, 0x84, 0x2b, 0xe6, 0x95,
};

int identity_parse(const char *text, uint8_t uuid[16])
{
	return uuid_parse(text, uuid) || uuid_is_null(uuid) ? -EINVAL : 0;
}

void identity_text(const uint8_t uuid[16], char text[IDENTITY_TEXT])
{
	uuid_unparse_lower(uuid, text);
}

void identity_check(const char *text, const struct gantry_check *check)
{
	uint8_t uuid[16];

	if (*text && identity_parse(text, uuid))
		gantry_option_fault(check, "uuid",
				    "is not a UUID other than all zeroes; write one such as "
				    "\"0e7a1ed7-5c2c-4f5e-9a53-6d6f1c0f8b11\", see uuidgen(1)");
}

void identity_option(const char *text, uint8_t uuid[16])
{
	if (identity_parse(text, uuid))
		memset(uuid, 0, 16);
}

/*
 * Does not use the generator of libuuid, which has thread-local variables. For a library that is
 * loaded at run time, the dynamic linker allocates them at the first use in each thread, and aborts
 * the process if it is out of memory.
 */
void identity_random(uint8_t uuid[16])
{
	size_t have = 0;

	while (have < 16) {
		ssize_t n = getrandom(uuid + have, 16 - have, 0);

		have += n > 0 ? (size_t)n : 0;
	}
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40); /* version 4 */
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80); /* the variant of RFC 9562 */
}

void identity_of_name(const char *name, uint8_t uuid[16])
{
	uuid_generate_sha1(uuid, namespace, name, strlen(name));
}

int identity_read_line(const char *path, char *line, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, line, bytes);
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return (int)n;
	for (ssize_t i = 0; i < n; i++)
		if (line[i] == '\n' || line[i] == '\0')
			n = i;
	if ((size_t)n == bytes)
		return -EMSGSIZE;
	line[n] = '\0';
	return (int)n;
}

static int is_machine_id(const char *line)
{
	return strspn(line, "0123456789abcdef") == 32 && line[32] == '\0' &&
	       strspn(line, "0") != 32;
}

static void machine_id(const struct gantry_host *host, char id[MACHINE_ID_BYTES])
{
	static const char *const files[] = {"/etc/machine-id", "/var/lib/dbus/machine-id"};

	for (unsigned i = 0; i < sizeof files / sizeof *files; i++)
		if (identity_read_line(files[i], id, MACHINE_ID_BYTES) > 0 && is_machine_id(id))
			return;
	gantry_log_warn(
		host,
		"no machine id in %s: the UUID of the volume changes at the next reboot; set option uuid",
		files[0]);
	if (identity_read_line("/proc/sys/kernel/random/boot_id", id, MACHINE_ID_BYTES) <= 0)
		snprintf(id, MACHINE_ID_BYTES, "%016" PRIx64, identity_nonce());
}

void identity_of_machine(const struct gantry_host *host, const char *name, uint8_t uuid[16])
{
	char id[MACHINE_ID_BYTES];
	uuid_t machine;

	machine_id(host, id);
	/*
	 * the UUID derived from the machine id is the namespace of names that are unique on this
	 * machine
	 */
	identity_of_name(id, machine);
	uuid_generate_sha1(uuid, machine, name, strlen(name));
}

void identity_of_instance(const struct gantry_host *host, const char *option, uint64_t size,
			  uint8_t uuid[16])
{
	char name[256];

	snprintf(name, sizeof name, "%" PRIu64 ":%.200s", size, host->name);
	if (*option)
		identity_option(option, uuid);
	else
		identity_of_machine(host, name, uuid);
}

static uint64_t fold(const uint8_t uuid[16])
{
	uint64_t half[2];

	memcpy(half, uuid, sizeof half);
	half[0] ^= half[1];
	return half[0] ? half[0] : 1;
}

uint64_t identity_hash(const void *data, size_t n)
{
	uint8_t uuid[16];

	uuid_generate_sha1(uuid, namespace, data, n);
	return fold(uuid);
}

uint64_t identity_nonce(void)
{
	uint8_t uuid[16];

	identity_random(uuid);
	return fold(uuid);
}

void identity_report(struct gantry_writer *w, const uint8_t uuid[16], uint64_t verifier)
{
	char text[IDENTITY_TEXT];

	identity_text(uuid, text);
	w->string(w, "uuid", text);
	snprintf(text, sizeof text, "%016" PRIx64, verifier);
	w->string(w, "verifier", text);
}
