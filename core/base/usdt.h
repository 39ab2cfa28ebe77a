/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usdt.h - the static probes of gantry for bpftrace, perf and SystemTap; gantry-probes(7) documents
 * them. A probe is one nop. Its arguments are lvalues, which only an attached tracer loads from
 * memory: an argument in a register keeps the register in use, which costs other code moves and
 * tests. Without sys/sdt.h the macros are empty.
 */
#ifndef GN_BASE_USDT_H
#define GN_BASE_USDT_H

#include <stdint.h>

/*
 * The arguments of a probe that name the lane. The object that has the probe contains a copy,
 * because the pointer to its lane would have to be loaded first.
 */
struct gn_usdt_lane {
	const char *role; /* such as "roles.load" */
	uint32_t lane;
};

#ifdef HAVE_SDT
#define STAP_SDT_ARG_CONSTRAINT o /* memory only */
#include <sys/sdt.h>

/* A probe about an IO: submit, hop, complete, fault. at: struct gn_usdt_lane */
#define GN_USDT_IO(probe, at, io, io_status) \
	DTRACE_PROBE6(gantry, probe, (at)->role, (at)->lane, (io)->opcode, (io)->offset, \
		      (io)->length, io_status)

/* The probe about a control message of a session. */
#define GN_USDT_SESSION(device, what, frame, id, status) \
	DTRACE_PROBE5(gantry, session, device, what, frame, id, status)
#else
#define GN_USDT_IO(probe, at, io, io_status) ((void)(at), (void)(io), (void)(io_status))
#define GN_USDT_SESSION(device, what, frame, id, status) \
	((void)(device), (void)(what), (void)(frame), (void)(id), (void)(status))
#endif

#endif
