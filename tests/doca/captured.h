/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * captured.h - captures the output of a function that runs in a child process, so that its changes
 * to global state end with it.
 */
#ifndef TEST_CAPTURED_H
#define TEST_CAPTURED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unity.h"

static char captured_out[1 << 16], captured_err[1 << 16];

static void captured_read(int fd, char *text)
{
	ssize_t n = pread(fd, text, (1 << 16) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	close(fd);
}

/*
 * Run fn in a child process and store its output in captured_out and captured_err. Returns its exit
 * status; -1: a signal killed it.
 */
static int captured(void (*fn)(void))
{
	int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC),
	    status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		dup2(out, STDOUT_FILENO);
		dup2(err, STDERR_FILENO);
		if (TEST_PROTECT()) {
			fn();
			fflush(NULL);
			_exit(0);
		}
		fflush(NULL);
		_exit(99);
	}
	TEST_ASSERT_TRUE(pid > 0 && waitpid(pid, &status, 0) == pid);
	captured_read(out, captured_out);
	captured_read(err, captured_err);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Returns the number of occurrences of `what` in `text`. */
static inline int count(const char *text, const char *what)
{
	int n = 0;

	for (text = strstr(text, what); text; text = strstr(text + 1, what))
		n++;
	return n;
}

#endif
