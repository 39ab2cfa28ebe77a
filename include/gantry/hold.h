/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold.h - report to the owner of exported memory that this process maps it
 *
 * A session that was lost uses its memory again when it resumes. By then no process may write to
 * the memory for the lost session. A stopped process does not answer, and the owner does not know
 * the processes to which its peer has exported the memory again. So the owner sends a socket with
 * each export, and a process that exports the memory again sends the same socket: the field
 * `hold_socket` of struct gantry_region. A process that maps the memory sends the read end of a
 * pipe to the socket, and keeps the write end while the memory is mapped. The kernel closes the
 * write end if the process ends. The owner waits for the hang-up of each pipe.
 *
 * Needs _GNU_SOURCE. Any thread.
 */
#ifndef GANTRY_HOLD_H
#define GANTRY_HOLD_H

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * gantry_hold - report to the owner of a region that this process is going to map it
 *
 * A process need not report a mapping that only a network card accesses: such accesses end when
 * the server of the volume has drained the session. A child of fork(2) that does not call execve(2)
 * must close its copy of the descriptor.
 *
 * socket   hold_socket of the region; 0: the owner does not ask for reports
 * hold_p   out: a descriptor with close-on-exec, for gantry_hold_end(). -1 if socket is 0, and
 *          after an error
 * returns  0
 *          -EPIPE: the owner has ended the session: do not map the memory
 *          -EAGAIN: the socket is full
 *          -EMFILE: too many open files
 *          -ETOOMANYREFS: processes of this user have sent more descriptors that are not received
 *          than RLIMIT_NOFILE permits. Any owner that does not read its socket can cause this, so
 *          map the memory without a report, and log that
 *          another -errno of pipe2(2) or sendmsg(2)
 * thread   any
 * since    1.0
 */
static inline int gantry_hold(int socket, int *hold_p)
{
	char byte = 0;
	struct iovec iov = {&byte, sizeof(byte)};
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr msg;
	int ends[2], rc = 0;

	*hold_p = -1;
	if (socket == 0)
		return 0;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	memset(&msg, 0, sizeof(msg));
	memset(&control, 0, sizeof(control));
	msg.msg_iov = &iov;
	msg.msg_iovlen = 1;
	msg.msg_control = &control;
	msg.msg_controllen = sizeof(control);
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &ends[0], sizeof(int));
	if (sendmsg(socket, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		rc = errno == ECONNRESET ? -EPIPE : -errno;
	close(ends[0]);
	if (rc)
		close(ends[1]);
	else
		*hold_p = ends[1];
	return rc;
}

/*
 * gantry_hold_end - report that the memory is unmapped
 *
 * hold_p  of gantry_hold(); set to -1. -1: the call has no effect
 * thread  any
 * since   1.0
 */
static inline void gantry_hold_end(int *hold_p)
{
	if (*hold_p >= 0)
		close(*hold_p);
	*hold_p = -1;
}

#ifdef __cplusplus
}
#endif

#endif
