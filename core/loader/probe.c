/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe.c - load a plugin in a child process first
 *
 * The inspection of elf.c does not detect a corrupt symbol table or relocation. Such a plugin can
 * crash the process in the dynamic linker, when the process reads the description of the plugin, or
 * at exit, when the linker calls the termination functions. The child process does all of this in a
 * copy of the address space. If the child survives, this process survives, too.
 */
#include "loader/loader_priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* a load takes milliseconds; with a corrupt hash table the search of the linker might not end */
#define CPU_SECONDS 10

/* -- the child -- */

/* Call the functions that the linker calls at the end of the process. */
static void run_termination(int fd)
{
	struct link_map *map = NULL;
	ElfW(Addr) *array = NULL, at = 0;
	size_t n = 0;
	char link[40];
	void *handle;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	handle = dlopen(link, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map))
		return;
	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_FINI)
			at = map->l_addr + entry->d_un.d_ptr;
		else if (entry->d_tag == DT_FINI_ARRAY)
			array = (ElfW(Addr) *)(map->l_addr + entry->d_un.d_ptr);
		else if (entry->d_tag == DT_FINI_ARRAYSZ)
			n = entry->d_un.d_val / sizeof(*array);
	}
	while (array && n > 0)
		((void (*)(void))array[--n])();
	if (at)
		((void (*)(void))at)();
}

static _Noreturn void in_child(int fd, int report, void (*load)(void *arg), void *arg)
{
	static const int ends[] = {SIGXCPU, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
	const struct rlimit cpu = {CPU_SECONDS, CPU_SECONDS + 1}, no_core = {0, 0};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		signal(ends[i], SIG_DFL);
		sigaddset(&set, ends[i]);
	}
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	setrlimit(RLIMIT_CPU, &cpu);
	setrlimit(RLIMIT_CORE, &no_core);
	/* hide the messages of the linker: the parent reports the failure */
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	load(arg);
	run_termination(fd);
	_exit(write(report, "", 1) != 1);
}

/* -- the parent -- */

/* Report why the child has not survived. Returns -ENOEXEC. */
static int explain(pid_t pid, char *why)
{
	int status;
	pid_t rc;

	do
		rc = waitpid(pid, &status, 0);
	while (rc < 0 && errno == EINTR);
	if (rc < 0) /* SIGCHLD is ignored: the kernel keeps no status */
		snprintf(why, GN_WHY, "loading it ends the process: install or rebuild it");
	else if (WIFSIGNALED(status) &&
		 (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
		snprintf(why, GN_WHY,
			 "loading it does not end (limit=%d s of CPU time): install or rebuild it",
			 CPU_SECONDS);
	else if (WIFSIGNALED(status))
		snprintf(why, GN_WHY,
			 "a process that loads it crashes (signal=%d, %s): install or rebuild it",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(why, GN_WHY,
			 "loading it ends the process (exit status=%d): install or rebuild it",
			 WEXITSTATUS(status));
	return -ENOEXEC;
}

int gn_loader_try_in_child(int fd, void (*load)(void *arg), void *arg, char *why)
{
	int report[2], rc = 0;
	ssize_t n;
	pid_t pid;
	char byte;

	if (pipe2(report, O_CLOEXEC))
		goto out_no_child;
	pid = fork();
	if (pid < 0) {
		rc = errno;
		close(report[0]);
		close(report[1]);
		errno = rc;
		goto out_no_child;
	}
	if (pid == 0)
		in_child(fd, report[1], load, arg);
	close(report[1]);
	do
		n = read(report[0], &byte, 1);
	while (n < 0 && errno == EINTR);
	close(report[0]);
	if (n != 1)
		return explain(pid, why);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;

out_no_child:
	rc = -errno;
	snprintf(why, GN_WHY, "cannot start a process that tries to load it: %s", strerror(-rc));
	return rc;
}
