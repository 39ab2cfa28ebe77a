/* SPDX-License-Identifier: BSD-3-Clause */
/* Every backend meets the contract of backend.h, and the kit detects a backend that breaks it. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake/host.h"
#ifdef HAVE_PLUGIN_RBD
#include "fake/rbd/rbd.h"
#endif
#include "kit.h"
#ifdef HAVE_PLUGIN_NBD
#include "nbd_server.h"
#endif
#include "unity.h"

#define TURNS 100000000ul
#define FEW_TURNS 10000ul

static char path[300], path_setting[320];

void setUp(void)
{
	const char *tmp = getenv("TMPDIR");
	int fd;

	snprintf(path, sizeof(path), "%.200s/gantry-test-XXXXXX", tmp ? tmp : "/tmp");
	fd = mkstemp(path);
	if (fd < 0 || ftruncate(fd, 2 << 20))
		fake_fail("%s: cannot make it", path);
	close(fd);
	snprintf(path_setting, sizeof(path_setting), "path=%s", path);
}

void tearDown(void)
{
	unlink(path);
}

static void keeps_the_contract(const struct kit_subject *subject)
{
	const char *broken = kit_check(subject);

	if (broken)
		TEST_FAIL_MESSAGE(broken);
}

static void null(void)
{
	struct kit_subject subject = {
		.settings = {"size=2MiB"}, .verifier_stays = 1, .turns = TURNS};

	subject.plugin = fake_plugin("null");
	keeps_the_contract(&subject);
}

static void memory(void)
{
	static const char *const more[] = {"populate=false", "populate=true", "huge_pages=true",
					   "block=512"};

	for (unsigned i = 0; i < sizeof(more) / sizeof(*more); i++) {
		struct kit_subject subject = {
			.settings = {"size=4MiB", more[i]}, .stores = 1, .turns = TURNS};

		subject.plugin = fake_plugin("memory");
		keeps_the_contract(&subject);
	}
}

static void file(void)
{
	static const char *const engines[] = {"engine=sync", "engine=auto"}, *const direct[] = {
										     "direct=false",
										     "direct=true"};

	for (unsigned i = 0; i < 4; i++) {
		struct kit_subject subject = {
			.settings = {path_setting, engines[i / 2], direct[i % 2]},
			.stores = 1,
			.keeps = 1,
			.verifier_stays = 1,
			.turns = TURNS};

		subject.plugin = fake_plugin("file");
		keeps_the_contract(&subject);
	}
}

#ifdef HAVE_PLUGIN_NBD
static void nbd(void)
{
	static struct server server;
	char socket[310], uri[340];
	struct kit_subject subject = {
		.settings = {uri, "quiesce_time=0s"}, .stores = 1, .keeps = 1, .turns = TURNS};

	snprintf(socket, sizeof(socket), "%s.sock", path);
	snprintf(uri, sizeof(uri), "uri=nbd+unix:///?socket=%s", socket);
	server_start(&server, socket);
	subject.plugin = fake_plugin("nbd");
	keeps_the_contract(&subject);
	server_stop(&server);
	unlink(socket);
}
#endif

#ifdef HAVE_PLUGIN_RBD
static void rbd(void)
{
	static const char *const cache[] = {"cache=false", "cache=true"};

	for (int i = 0; i < 2; i++) {
		struct kit_subject subject = {
			.settings = {"image=image", cache[i]},
			.stores = 1,
			.keeps = 1,
			.verifier_stays = i == 0,
			/* with a cache, a write that times out loses the volume */
			.give_up = i == 0 ? fake_rbd_give_up : NULL,
			.turns = TURNS};

		fake_rbd_reset();
		fake_rbd_setting("rbd_cache", i ? "true" : "false");
		subject.plugin = fake_plugin("rbd");
		keeps_the_contract(&subject);
		TEST_ASSERT_EQUAL_UINT(0, fake_rbd_objects());
	}
}
#endif

/* TEST_PLUGINDIR must not have a backend that this file does not test. */
static void no_backend_is_left_out(void)
{
	static const char *const known[] = {
		"null", "memory", "file",
#ifdef HAVE_PLUGIN_NBD
		"nbd",
#endif
#ifdef HAVE_PLUGIN_RBD
		"rbd",
#endif
	};
	const char *folder = getenv("TEST_PLUGINDIR");
	DIR *d = opendir(folder ? folder : TEST_PLUGINDIR);
	struct dirent *entry;
	unsigned n = 0;

	TEST_ASSERT_NOT_NULL(d);
	while ((entry = readdir(d))) {
		char name[sizeof(entry->d_name)];
		char *dot;
		int found = 0;

		snprintf(name, sizeof(name), "%s", entry->d_name);
		dot = strrchr(name, '.');
		if (!dot || strcmp(dot, ".so"))
			continue;
		*dot = '\0';
		if (fake_plugin(name)->kind != GANTRY_KIND_BACKEND)
			continue;
		for (unsigned i = 0; i < sizeof(known) / sizeof(*known); i++)
			found += !strcmp(known[i], name);
		TEST_ASSERT_EQUAL_INT_MESSAGE(1, found, name);
		n++;
	}
	closedir(d);
	TEST_ASSERT_EQUAL_UINT(sizeof(known) / sizeof(*known), n);
}

static struct kit_subject fake_subject(enum kit_bug bug)
{
	kit_fake_bug(bug);
	return (struct kit_subject){
		.plugin = &kit_fake, .stores = 1, .give_up = kit_fake_give_up, .turns = FEW_TURNS};
}

static void backend_that_completes_early_can_keep_the_contract(void)
{
	struct kit_subject subject = fake_subject(KIT_SOUND);

	keeps_the_contract(&subject);
}

static void the_kit_notices_each_bug(void)
{
	static const struct {
		enum kit_bug bug;
		const char *rule;
	} bugs[] = {
		{KIT_GEOMETRY, "max_io is less than a block"},
		{KIT_UNKNOWN, "uuid or verifier is unknown"},
		{KIT_RESTLESS, "volume is not always the same"},
		{KIT_RENAMED, "another uuid after close and open"},
		{KIT_STALE, "the same verifier, though data was lost"},
		{KIT_REFUSES_FUA, "a write that is in ops is rejected or fails"},
		{KIT_LOSES, "an IO never completes"},
		{KIT_TWICE, "an IO completes more than once"},
		{KIT_CHANGES, "a completed descriptor has another operation or place"},
		{KIT_BEYOND, "a write changes more or less than its range"},
		{KIT_READS_BEYOND, "a read changes more or less than the memory of the IO"},
		{KIT_HIDES, "extents report data as a hole"},
		{KIT_LIES, "a write lands after quiesce"},
		{KIT_OVERTAKES, "a write that was given up overtakes a newer one"},
		{KIT_NEVER_AT_REST, "quiesce does not come to rest"},
		{KIT_ROUND_GROWS,
		 "a round of quiesce waits for what was submitted after its start"},
	};

	for (unsigned i = 0; i < sizeof(bugs) / sizeof(*bugs); i++) {
		struct kit_subject subject = fake_subject(bugs[i].bug);

		TEST_ASSERT_EQUAL_STRING(bugs[i].rule, kit_check(&subject));
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(null);
	RUN_TEST(memory);
	RUN_TEST(file);
#ifdef HAVE_PLUGIN_NBD
	RUN_TEST(nbd);
#endif
#ifdef HAVE_PLUGIN_RBD
	RUN_TEST(rbd);
#endif
	RUN_TEST(no_backend_is_left_out);
	RUN_TEST(backend_that_completes_early_can_keep_the_contract);
	RUN_TEST(the_kit_notices_each_bug);
	return UNITY_END();
}
