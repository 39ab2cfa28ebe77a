/* SPDX-License-Identifier: BSD-3-Clause */
/* os_misc.c - time, random numbers, identities, limits, and the end of a process */
#include <fcntl.h>
#include <grp.h>
#include <libconfig.h>
#include <linux/capability.h>
#include <linux/membarrier.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "image.h"
#include "os.h"

#define BOOTED 1700000000u /* seconds of CLOCK_REALTIME when a run begins */

/* -- time -- */

void __wrap_gn_clock_init(void)
{
	/*
	 * The counter of the processor is not simulated: without this initialisation the product
	 * reads CLOCK_MONOTONIC instead.
	 */
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t ns;

	sim_access(true, __builtin_return_address(0));
	ns = sim_now() + 1;
	ts->tv_sec = (time_t)(ns / 1000000000u) +
		     (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ? BOOTED : 0);
	ts->tv_nsec = (long)(ns % 1000000000u);
	return 0;
}

time_t __wrap_time(time_t *at)
{
	time_t now = BOOTED + (time_t)(sim_now() / 1000000000u);

	if (at)
		*at = now;
	return now;
}

int __wrap_nanosleep(const struct timespec *ts, struct timespec *left)
{
	(void)left;
	sim_call();
	sim_block(NULL, NULL,
		  sim_now() + (uint64_t)ts->tv_sec * 1000000000u + (uint64_t)ts->tv_nsec);
	return 0;
}

int __wrap_usleep(useconds_t us)
{
	sim_call();
	sim_block(NULL, NULL, sim_now() + us * 1000ull);
	return 0;
}

/* -- random numbers, identities -- */

ssize_t __wrap_getrandom(void *to, size_t bytes, unsigned flags)
{
	(void)flags;
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)to)[i] = (uint8_t)sim_draw(256);
	return (ssize_t)bytes;
}

pid_t __wrap_getpid(void)
{
	return sim_proc_self()->pid;
}

pid_t __wrap_getppid(void)
{
	return 1;
}

uid_t __wrap_getuid(void)
{
	return sim_proc_self()->uid;
}

uid_t __wrap_geteuid(void)
{
	return sim_proc_self()->uid;
}

gid_t __wrap_getgid(void)
{
	return sim_proc_self()->uid;
}

gid_t __wrap_getegid(void)
{
	return sim_proc_self()->uid;
}

int __wrap_getpwuid_r(uid_t uid, struct passwd *pw, char *buffer, size_t bytes,
		      struct passwd **found)
{
	(void)uid;
	(void)pw;
	(void)buffer;
	(void)bytes;
	*found = NULL;
	return 0;
}

int __wrap_getgrgid_r(gid_t gid, struct group *gr, char *buffer, size_t bytes, struct group **found)
{
	(void)gid;
	(void)gr;
	(void)buffer;
	(void)bytes;
	*found = NULL;
	return 0;
}

char *__wrap_getenv(const char *name)
{
	return strcmp(name, "XDG_RUNTIME_DIR") == 0 ? (char *)"/run" : NULL;
}

char *__wrap_secure_getenv(const char *name)
{
	return __wrap_getenv(name);
}

unsigned long __wrap_getauxval(unsigned long type)
{
	return type == AT_SECURE ? 0 : getauxval(type);
}

long __wrap_sysconf(int name)
{
	return name == _SC_PAGESIZE                                           ? 4096
	       : name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF ? 2
									      : sysconf(name);
}

int __wrap_getrlimit(int resource, struct rlimit *limit)
{
	limit->rlim_cur = limit->rlim_max = resource == RLIMIT_NOFILE ? SIM_FDS : RLIM_INFINITY;
	return 0;
}

int __wrap_setrlimit(int resource, const struct rlimit *limit)
{
	(void)resource;
	(void)limit;
	return 0;
}

int __wrap_getrusage(int of, struct rusage *usage)
{
	(void)of;
	memset(usage, 0, sizeof(*usage));
	return 0;
}

int __wrap_isatty(int fd)
{
	(void)fd;
	return 0;
}

int __wrap_prctl(int option, ...)
{
	(void)option;
	return 0;
}

/* Ignores the fork handlers of gantry, since no simulated process forks. */
int __wrap___register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
			     void *handle)
{
	(void)prepare;
	(void)parent;
	(void)child;
	(void)handle;
	return 0;
}

/* -- system calls by number -- */

static long close_descriptors(unsigned first, unsigned last, unsigned flags)
{
	if (flags != 0)
		/*
		 * CLOSE_RANGE_UNSHARE, a private table of descriptors for the calling thread, is
		 * not simulated: plugins/transport/shm-comch/shm_closer.c continues without it
		 */
		return -EINVAL;
	for (unsigned fd = first; fd <= last && fd < SIM_FDS; fd++)
		if (sim_proc_self()->fds[fd].file)
			__wrap_close((int)fd);
	return 0;
}

bool sim_has_membarrier = true;

static long membarrier(int command)
{
	if (!sim_has_membarrier)
		return -ENOSYS;
	if (command == MEMBARRIER_CMD_QUERY)
		return MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
	if (command == MEMBARRIER_CMD_GLOBAL_EXPEDITED || command == MEMBARRIER_CMD_GLOBAL)
		sim_drain_all();
	return 0;
}

long __wrap_syscall(long number, ...)
{
	unsigned long a[6];
	va_list ap;
	long result;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, unsigned long);
	va_end(ap);
	sim_call();
	switch (number) {
	case SYS_membarrier:
		return sim_result(membarrier((int)a[0]));
	case SYS_close_range:
		return sim_result(
			close_descriptors((unsigned)a[0], (unsigned)a[1], (unsigned)a[2]));
	case SYS_pidfd_open:
		return sim_pidfd_open((pid_t)a[0]);
	case SYS_gettid:
		return (long)sim_self()->id;
	case SYS_capget:
		return sim_result(-EPERM);
	default:
		if (sim_syscall_doca(number, a, &result))
			return sim_result(result);
		sim_fail("system call %ld is not simulated", number);
	}
}

/* -- libconfig: see memory_spared in proc.h -- */

#define SPARED(type, name, parameters, arguments) \
	type __wrap_##name parameters \
	{ \
		type result; \
\
		sim_proc_self()->memory_spared++; \
		result = name arguments; \
		sim_proc_self()->memory_spared--; \
		return result; \
	}
SPARED(int, config_read, (config_t * config, FILE *stream), (config, stream))
SPARED(int, config_setting_set_string, (config_setting_t * setting, const char *value),
       (setting, value))
SPARED(config_setting_t *, config_setting_add,
       (config_setting_t * parent, const char *name, int type), (parent, name, type))

void __wrap_config_init(config_t *config)
{
	sim_proc_self()->memory_spared++;
	config_init(config);
	sim_proc_self()->memory_spared--;
}

void __wrap_config_set_include_dir(config_t *config, const char *dir)
{
	sim_proc_self()->memory_spared++;
	config_set_include_dir(config, dir);
	sim_proc_self()->memory_spared--;
}

/* -- messages -- */

int __wrap_dprintf(int fd, const char *format, ...)
{
	char text[1200];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (fd != STDERR_FILENO)
		sim_fail("dprintf to descriptor %d", fd);
	text[strcspn(text, "\n")] = 0;
	sim_log("stderr", text);
	return n;
}

/* -- signals and the end -- */

int __wrap_kill(pid_t pid, int signal)
{
	struct sim_proc *proc;

	sim_call();
	proc = sim_proc_find(pid);
	if (!proc || !proc->alive)
		return (int)sim_result(-ESRCH);
	if (signal != 0)
		sim_proc_signal(proc, signal);
	return 0;
}

int __wrap_sigaction(int signal, const struct sigaction *act, struct sigaction *old)
{
	(void)signal;
	(void)act;
	if (old)
		memset(old, 0, sizeof(*old));
	return 0;
}

void (*__wrap_signal(int signal, void (*handler)(int)))(int)
{
	(void)signal;
	(void)handler;
	return SIG_DFL;
}

_Noreturn void __wrap__exit(int code)
{
	sim_call();
	sim_proc_kill(sim_proc_self(), code);
	__builtin_unreachable();
}

_Noreturn void __wrap_exit(int code)
{
	sim_run_at_exit();
	sim_proc_note_left(sim_proc_self());
	__wrap__exit(code);
}
