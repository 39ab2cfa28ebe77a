/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usdt.h - the static probes of gantry for bpftrace, perf and SystemTap; gantry-probes(7) documents
 * them. A probe is one nop, and its arguments are read only while a tracer is attached. Give only
 * values that are in memory or in a register, so that a probe adds no other instruction. Without
 * sys/sdt.h the macros are empty.
 */
#ifndef GN_BASE_USDT_H
#define GN_BASE_USDT_H

#ifdef HAVE_SDT
#include <sys/sdt.h>

/* A probe about an IO: submit, hop, complete, fault. lane: struct gn_lane */
#define GN_USDT_IO(probe, lane, io, io_status) \
	DTRACE_PROBE6(gantry, probe, (lane)->name, (lane)->pub.index, (io)->opcode, (io)->offset, \
		      (io)->length, io_status)

/* The probe about a control message of a session. */
#define GN_USDT_SESSION(device, what, frame, id, status) \
	DTRACE_PROBE5(gantry, session, device, what, frame, id, status)
#else
#define GN_USDT_IO(probe, lane, io, io_status) ((void)(lane), (void)(io), (void)(io_status))
#define GN_USDT_SESSION(device, what, frame, id, status) \
	((void)(device), (void)(what), (void)(frame), (void)(id), (void)(status))
#endif

#endif
