/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/clock.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define CALIBRATE_NS (5 * GN_NS_PER_MS)

struct gn_clock gn_clock;
/* result of the calibration; gn_clock_set_fake(NULL) restores it */
static struct gn_clock measured;
static uint64_t (*fake_now)(void);

static uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * GN_NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t gn_clock_read(void)
{
	return fake_now ? fake_now() : monotonic_ns();
}

uint64_t gn_now_ns(void)
{
	return gn_fast_ns();
}

#if defined(__x86_64__)
/* True if the kernel uses a slower clock source: it has found the counter unreliable. */
static bool kernel_distrusts(void)
{
	char name[32] = "";
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		      O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, name, sizeof(name) - 1);

	if (fd >= 0)
		close(fd);
	return n > 0 && (!strncmp(name, "hpet", 4) || !strncmp(name, "acpi_pm", 7) ||
			 !strncmp(name, "jiffies", 7));
}

/* True if the counter has a constant rate and the kernel trusts it. */
static bool counter_usable(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8)) && !kernel_distrusts();
}
#else
/* The counter of ARM has a constant rate. Other processors are not supported. */
static bool counter_usable(void)
{
#if defined(__aarch64__)
	return true;
#else
	return false;
#endif
}
#endif

/*
 * Read both clocks at nearly the same time: use the shortest of 16 tries, and take the middle of
 * its interval.
 */
static void read_pair(uint64_t *ticks_p, uint64_t *ns_p)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 16; i++) {
		uint64_t before = gn_clock_ticks();
		uint64_t ns = monotonic_ns();
		uint64_t width = gn_clock_ticks() - before;

		if (width < best) {
			best = width;
			*ticks_p = before + width / 2;
			*ns_p = ns;
		}
	}
}

void gn_clock_init(void)
{
	/* read_pair() always sets both; initialised for the warnings of -O3 */
	uint64_t ticks = 0, ns = 0;
	struct gn_clock c = {0};

	if (!counter_usable())
		return;
	read_pair(&c.base_ticks, &c.base_ns);
	while (monotonic_ns() - c.base_ns < CALIBRATE_NS)
		usleep(CALIBRATE_NS / GN_NS_PER_US);
	read_pair(&ticks, &ns);
	if (ticks <= c.base_ticks || ns <= c.base_ns)
		return;
	c.mult = (uint64_t)(((unsigned __int128)(ns - c.base_ns) << 32) / (ticks - c.base_ticks));
	measured = c;
	if (!fake_now)
		gn_clock = c;
}

void gn_clock_set_fake(uint64_t (*now)(void))
{
	fake_now = now;
	gn_clock = now ? (struct gn_clock){0} : measured;
}
