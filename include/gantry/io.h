/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * io.h - the IO descriptor that passes through all stages.
 *
 * A descriptor is two cache lines. The first GANTRY_IO_WIRE_BYTES bytes of the first line are also
 * the wire form: little-endian, with a version that the HELLO of the session negotiates. The second
 * line never leaves the process. A descriptor passes along a chain of hops:
 *
 *      [guard] [owner] [stage] [stage] ... [terminal: a requester, a route or a backend]
 *                  --- gantry_submit() --->
 *                  <-- gantry_complete() --
 *
 * Rules
 *   - Each accepted submit gets exactly one completion. A rejected submit (non-zero return) gets
 *     none, and the caller keeps the descriptor.
 *   - -EAGAIN: the caller keeps the descriptor and submits it again when the lane polls next.
 *   - The status is passed end to end; a relay never changes it.
 *   - A descriptor belongs to one lane. Only the thread of that lane may call the functions below.
 *
 * io      the descriptor
 * opcode  enum gantry_opcode
 * thread  lane's thread; any thread for functions without a descriptor
 */
#ifndef GANTRY_IO_H
#define GANTRY_IO_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include <gantry/branch.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GANTRY_CACHE_LINE 64
#define GANTRY_IO_FRAMES 3    /* private words that the stages of a chain share */
#define GANTRY_CHAIN_STAGES 8 /* limit of stages in one pipeline, without owner and terminal */

/*
 * gantry_zalloc_lines - allocate zeroed memory that shares no cache line with other data
 *
 * For data that a lane writes with each IO: it avoids false sharing with another lane. Free it with
 * free(3). Returns NULL when out of memory.
 *
 * bytes  size of the memory
 */
static inline void *gantry_zalloc_lines(size_t bytes)
{
	size_t rounded = (bytes + GANTRY_CACHE_LINE - 1) & ~(size_t)(GANTRY_CACHE_LINE - 1);
	void *memory = rounded >= bytes ? aligned_alloc(GANTRY_CACHE_LINE, rounded) : NULL;

	return memory ? memset(memory, 0, rounded) : NULL;
}

enum gantry_opcode {
	GANTRY_OP_NOP = 0,
	GANTRY_OP_READ = 1,
	GANTRY_OP_WRITE = 2,
	GANTRY_OP_FLUSH = 3,
	GANTRY_OP_WRITE_ZEROES = 4,
	GANTRY_OP_DISCARD = 5,
	/* report which parts of the range are holes: struct gantry_extents */
	GANTRY_OP_EXTENTS = 6,
	GANTRY_OP_COUNT
};

/*
 * Sets of operations: bit 1 << enum gantry_opcode for each. DATA: operations that transfer `length`
 * bytes between region and volume. BUFFER: operations that access the region, see
 * gantry_io_buffer_bytes(). WRITE: operations that change the volume. RANGE: operations on a range
 * of the volume.
 */
#define GANTRY_OPS_DATA (1u << GANTRY_OP_READ | 1u << GANTRY_OP_WRITE)
#define GANTRY_OPS_BUFFER (GANTRY_OPS_DATA | 1u << GANTRY_OP_EXTENTS)
#define GANTRY_OPS_WRITE \
	(1u << GANTRY_OP_WRITE | 1u << GANTRY_OP_WRITE_ZEROES | 1u << GANTRY_OP_DISCARD)
#define GANTRY_OPS_RANGE (GANTRY_OPS_BUFFER | GANTRY_OPS_WRITE)

#define GANTRY_IO_FUA 0x01u /* the write is on stable storage before it completes */
#define GANTRY_IO_CRC 0x02u /* crc32c holds the CRC32C of the data */
/* the data of the read or write is in several places: region and region_offset name a list */
#define GANTRY_IO_LIST 0x04u
#define GANTRY_IO_FLAGS (GANTRY_IO_FUA | GANTRY_IO_CRC | GANTRY_IO_LIST)

#define GANTRY_LIST_MAX 64u          /* limit of the entries of a list */
#define GANTRY_LIST_BYTES (1u << 20) /* limit of `length` of an IO with a list */

/*
 * An entry of a list, in an exported region with GANTRY_REMOTE_READ. The list ends with the entry
 * at which the sum of the lengths is `length` of the descriptor.
 */
struct gantry_list_entry {
	uint32_t region; /* handle of the exported region that holds this piece of the data */
	uint32_t length; /* bytes, not 0 */
	uint64_t offset; /* bytes, from the start of the region */
};

/* The pieces of the data at their local addresses: io->data with GANTRY_IO_LIST. */
struct gantry_pieces {
	uint32_t count; /* 1 .. GANTRY_LIST_MAX */
	struct iovec piece[GANTRY_LIST_MAX];
};

#define GANTRY_EXTENTS_BYTES 4096u /* size of the buffer of GANTRY_OP_EXTENTS, of any range */
#define GANTRY_EXTENTS_MAX 510u    /* limit of extents in this buffer */

#define GANTRY_EXTENT_HOLE 1u /* the store holds no data for the extent; reading it is defined */
#define GANTRY_EXTENT_ZERO 2u /* the extent reads as zeroes */
#define GANTRY_EXTENT_FLAGS (GANTRY_EXTENT_HOLE | GANTRY_EXTENT_ZERO)

/* A part of the range of GANTRY_OP_EXTENTS with the same state. */
struct gantry_extent {
	uint32_t length; /* bytes, a multiple of the block size, not 0 */
	uint32_t flags;  /* GANTRY_EXTENT_*; 0: data */
};

/*
 * Result of GANTRY_OP_EXTENTS: the extents from the start of the range on, in order and without
 * gaps. They can end before the range ends; they cover at least one block.
 */
struct gantry_extents {
	uint32_t count; /* 1 .. GANTRY_EXTENTS_MAX */
	uint32_t reserved;
	uint64_t bytes; /* sum of the lengths */
	struct gantry_extent extent[GANTRY_EXTENTS_MAX];
};

/*
 * Status of an IO on the wire: number, name, errno, text. After TIMEOUT, SESSION_LOST, UNKNOWN and
 * STALE the peer can still access the buffer: see gantry_status_buffer_released().
 */
#define GANTRY_STATUS_LIST(X) \
	X(0, OK, 0, "success") \
	X(1, IO, EIO, "input/output error of the backend") \
	X(2, NOSPC, ENOSPC, "no space left in the backend") \
	X(3, RANGE, ERANGE, "outside the volume or the region") \
	X(4, ACCESS, EACCES, "the region or the volume does not allow it") \
	X(5, INVALID, EINVAL, "malformed descriptor") \
	X(6, UNSUPPORTED, EOPNOTSUPP, "operation not supported by this volume") \
	X(7, TIMEOUT, ETIMEDOUT, "no answer before the deadline") \
	X(8, SESSION_LOST, ENOTCONN, "the session ended while the IO was in flight") \
	X(9, UNKNOWN, EOWNERDEAD, "outcome unknown: may or may not have happened") \
	X(10, CORRUPT, EILSEQ, "data does not match its checksum") \
	X(11, READ_ONLY, EROFS, "volume is read-only") \
	X(12, NOMEM, ENOMEM, "out of memory") \
	X(13, CANCELED, ECANCELED, "canceled before it started") \
	X(14, STALE, ESTALE, "another volume, or its data is lost") \
	X(15, BUSY, EBUSY, \
	  "a limit of the server is reached, or writes of an ended session are not finished")

enum gantry_status {
#define GANTRY_STATUS_ENUM(num, name, err, text) GANTRY_S_##name = num,
	GANTRY_STATUS_LIST(GANTRY_STATUS_ENUM)
#undef GANTRY_STATUS_ENUM
		GANTRY_S_COUNT
};

/* Indices of gantry_io.hop_ns: durations in nanoseconds, which the hops write on the way back. */
enum gantry_hop_time {
	GANTRY_HOP_GATEWAY = 0, /* gateway: from receiving a descriptor to sending its reply */
	GANTRY_HOP_TARGET = 1,  /* target: from receiving a descriptor to sending its reply */
	GANTRY_HOP_BACKEND = 2, /* time inside the backend */
	/* data transfer between processes, if it is a separate step (bounce buffers) */
	GANTRY_HOP_DATA = 3,
	GANTRY_HOP_COUNT
};

/* bytes that a requester sends; the transport uses the last 8 bytes of the cache line */
#define GANTRY_IO_WIRE_BYTES 56

struct gantry_hop;

struct gantry_io {
	/* first cache line: its first GANTRY_IO_WIRE_BYTES bytes are the wire form */
	uint8_t opcode;  /* enum gantry_opcode */
	uint8_t flags;   /* GANTRY_IO_* */
	uint16_t status; /* enum gantry_status; valid from completion on */
	/*
	 * set by the requester: low 16 bits slot, high 16 bits generation, so that a stale reply
	 * matches no request
	 */
	uint32_t tag;
	uint64_t offset;        /* bytes, from the start of the volume */
	uint32_t length;        /* bytes */
	uint32_t region;        /* handle of the exported region that holds the data */
	uint64_t region_offset; /* bytes, from the start of the region */
	uint32_t deadline_us;   /* time left, microseconds; never 0 on the wire */
	uint32_t crc32c;        /* checksum of the data, with GANTRY_IO_CRC */
	uint32_t hop_ns[GANTRY_HOP_COUNT];
	uint64_t reserved; /* the transport uses it on the wire; elsewhere 0 */

	/* second cache line: private to the process */
	const struct gantry_hop *hop; /* current hop of the descriptor in its chain */
	/* object that submitted the descriptor; `drain` of a stage compares it */
	void *owner;
	/*
	 * local address of the data; NULL if it is not mapped. With GANTRY_IO_LIST: the address of
	 * a struct gantry_pieces
	 */
	void *data;
	uint64_t start_ns;                /* when the owner submitted it */
	uint16_t slot;                    /* index of the descriptor in its pool */
	uint8_t busy;                     /* 1 from the submit to the completion, else 0 */
	uint8_t owner_flags;              /* private to the owner, 0 at first */
	uint32_t peer_tag;                /* tag that the peer gave it, for the reply */
	uint64_t frame[GANTRY_IO_FRAMES]; /* one word for each stage with n_ctx_words = 1 */
}
#ifdef __GNUC__
__attribute__((aligned(GANTRY_CACHE_LINE)))
#endif
;

struct gantry_volume_info; /* volume.h */

/* The buffer that a stage has for a descriptor: see gantry_bounce_begin(). */
struct gantry_bounce {
	void *buffer;
	void *before; /* data of the descriptor before gantry_bounce_begin() */
};

/*
 * One position in a chain. `submit` receives the descriptor on the way down, `complete` on the way
 * back. Both may call gantry_submit() and gantry_complete().
 *
 * self    the member `self`
 * thread  lane's thread; must not block
 */
struct gantry_hop {
	/* Handle a descriptor on its way down. Returns as gantry_submit. */
	int (*submit)(void *self, struct gantry_io *io);
	/* Handle a descriptor on its way back. */
	void (*complete)(void *self, struct gantry_io *io);
	void *self;
	uint64_t frame; /* index into gantry_io.frame of the word of this hop */
	/* the volume of the descriptors of this chain; set by chain_create. NULL: unknown */
	const struct gantry_volume_info *volume;
	struct gantry_bounce *bounce; /* indexed by slot; NULL: the stage has no bounce buffers */
	/*
	 * identifies the session of the descriptors of this chain: equal on all lanes of the
	 * session, and not used as a pointer. NULL: the role is no server
	 */
	const void *session;
};

/*
 * gantry_submit - pass a descriptor to the next hop of its chain
 *
 * After an error the descriptor is unchanged.
 *
 * returns  0: accepted; the descriptor no longer belongs to the caller and can already be complete
 *          -EAGAIN: rejected for now; submit it again at the next poll
 *          another -errno: rejected permanently
 * thread   lane's thread; hops may call back into the caller before it returns
 * cost     O(1), no allocation, no system call
 */
static inline int gantry_submit(struct gantry_io *io)
{
	const struct gantry_hop *hop = ++io->hop;
	int rc = hop->submit(hop->self, io);

	if (gantry_unlikely(rc != 0))
		io->hop--;
	return rc;
}

/*
 * gantry_complete - return a descriptor to the previous hop; its status must be set
 *
 * Call it once for each accepted submit. If the owner has already received a completion, another
 * call reaches the guard before the owner. The guard counts and ignores it.
 *
 * thread   lane's thread; hops may call back into the caller before it returns
 */
static inline void gantry_complete(struct gantry_io *io)
{
	const struct gantry_hop *hop = --io->hop;

	hop->complete(hop->self, io);
}

/*
 * gantry_fail - complete a descriptor with an error status
 *
 * status  any but GANTRY_S_OK
 */
static inline void gantry_fail(struct gantry_io *io, enum gantry_status status)
{
	io->status = (uint16_t)status;
	gantry_complete(io);
}

/*
 * gantry_status_of_errno - convert an errno to a status
 *
 * error    an errno or -errno
 * returns  the status; GANTRY_S_IO: there is no equivalent
 *
 * A hop that kept a descriptor calls it when its later gantry_submit() fails permanently:
 *     gantry_fail(io, gantry_status_of_errno(rc));
 */
static inline enum gantry_status gantry_status_of_errno(int error)
{
	switch (error < 0 ? -error : error) {
#define GANTRY_STATUS_CASE(num, name, err, text) \
	case err: \
		return GANTRY_S_##name;
		GANTRY_STATUS_LIST(GANTRY_STATUS_CASE)
#undef GANTRY_STATUS_CASE
	default:
		return GANTRY_S_IO;
	}
}

/*
 * gantry_io_begin - prepare an idle descriptor for submit; afterwards the caller fills the first
 * cache line
 *
 * now_ns  time of the submit: gantry_lane.now_ns
 */
static inline void gantry_io_begin(struct gantry_io *io, uint64_t now_ns)
{
	io->busy = 1;
	io->status = GANTRY_S_OK;
	io->start_ns = now_ns;
	for (int i = 0; i < GANTRY_HOP_COUNT; i++)
		io->hop_ns[i] = 0;
}

/*
 * gantry_io_end - record at the owner that a descriptor has completed
 *
 * returns  0: it was in flight
 *          -1: it was idle, so this is a second completion
 */
static inline int gantry_io_end(struct gantry_io *io)
{
	if (!io->busy)
		return -1;
	io->busy = 0;
	return 0;
}

/*
 * gantry_stage_ctx - get the private word of the current hop of a descriptor
 *
 * returns  the word, which stays valid until the stage has passed the descriptor on to its owner
 */
static inline uint64_t *gantry_stage_ctx(struct gantry_io *io)
{
	return &io->frame[io->hop->frame];
}

/*
 * gantry_stage_volume - get the volume that a descriptor addresses
 *
 * returns  the volume, valid as long as the descriptor is in flight
 *          NULL: the owner of the chain does not know its volume
 * thread   lane's thread; in `submit` and `complete` of a stage
 */
static inline const struct gantry_volume_info *gantry_stage_volume(const struct gantry_io *io)
{
	return io->hop->volume;
}

/*
 * gantry_bounce_begin - give a descriptor the bounce buffer of the current stage as its data
 *
 * A stage that transforms data must not change the buffer of the program. On the way down it calls
 * this function. For a write, it then stores the transformed data in io->data. On the way back it
 * calls gantry_bounce_end(). For a read, it then stores the transformed data in io->data.
 *
 * io       a read or write; `needs_bounce` of the stage is 1
 * returns  the data of the descriptor so far. io->data is now the bounce buffer: max_io bytes of
 *          the volume (at most 1 MiB), aligned to 4096 bytes. No other stage or descriptor uses it
 * thread   lane's thread; in `submit` of a stage
 */
static inline const void *gantry_bounce_begin(struct gantry_io *io)
{
	struct gantry_bounce *bounce = &io->hop->bounce[io->slot];

	bounce->before = io->data;
	io->data = bounce->buffer;
	return bounce->before;
}

/*
 * gantry_bounce_end - give a descriptor the data that it had before gantry_bounce_begin()
 *
 * A stage calls it on the way back, and after gantry_submit() has failed.
 *
 * returns  the bounce buffer, which the stage can use until it calls gantry_complete()
 * thread   lane's thread; in `submit`, `complete`, `poll` and `drain` of a stage
 */
static inline const void *gantry_bounce_end(struct gantry_io *io)
{
	const struct gantry_bounce *bounce = &io->hop->bounce[io->slot];

	io->data = bounce->before;
	return bounce->buffer;
}

/*
 * gantry_range_ok - check that [offset, offset + length) lies inside [0, size); cannot overflow
 *
 * offset, length, size  bytes
 * returns               1: it lies inside; 0: it does not
 */
static inline int gantry_range_ok(uint64_t offset, uint64_t length, uint64_t size)
{
	return length <= size && offset <= size - length;
}

/*
 * gantry_op_in - check that the operation is in a set
 *
 * set      bits 1 << enum gantry_opcode
 * returns  1: it is; 0: it is not, or the operation is unknown
 */
static inline int gantry_op_in(unsigned opcode, uint32_t set)
{
	return opcode < GANTRY_OP_COUNT && (set >> opcode & 1) != 0;
}

/* gantry_op_has_data - get whether an operation transfers data. Returns as gantry_op_in. */
static inline int gantry_op_has_data(unsigned opcode)
{
	return gantry_op_in(opcode, GANTRY_OPS_DATA);
}

/* gantry_op_has_buffer - get whether an operation accesses the region. Returns as gantry_op_in. */
static inline int gantry_op_has_buffer(unsigned opcode)
{
	return gantry_op_in(opcode, GANTRY_OPS_BUFFER);
}

/*
 * gantry_io_buffer_bytes - get the size of the part of the region that a descriptor accesses
 *
 * returns  bytes from region_offset on; 0: the operation does not access the region
 */
static inline uint32_t gantry_io_buffer_bytes(const struct gantry_io *io)
{
	if (gantry_op_has_data(io->opcode))
		return io->length;
	return gantry_op_has_buffer(io->opcode) ? GANTRY_EXTENTS_BYTES : 0;
}

/* gantry_op_writes - get whether an operation changes the volume. Returns as gantry_op_in. */
static inline int gantry_op_writes(unsigned opcode)
{
	return gantry_op_in(opcode, GANTRY_OPS_WRITE);
}

/* gantry_op_has_range - get whether an operation has a range. Returns as gantry_op_in. */
static inline int gantry_op_has_range(unsigned opcode)
{
	return gantry_op_in(opcode, GANTRY_OPS_RANGE);
}

/*
 * gantry_extents_add - append an extent, or extend the last one if it has the same flags
 *
 * extents  in private memory: `count` is read back. All 0 before the first call
 * length   bytes, a multiple of the block size, not 0
 * flags    GANTRY_EXTENT_*
 * returns  0; -1: there is no space, and the extents end before this one
 */
static inline int gantry_extents_add(struct gantry_extents *extents, uint32_t length,
				     uint32_t flags)
{
	struct gantry_extent *last = extents->count != 0 ? &extents->extent[extents->count - 1]
							 : NULL;

	if (!last || last->flags != flags) {
		if (extents->count == GANTRY_EXTENTS_MAX)
			return -1;
		last = &extents->extent[extents->count++];
		last->length = 0;
		last->flags = flags;
	}
	last->length += length;
	extents->bytes += length;
	return 0;
}

/*
 * gantry_extents_finish - copy the extents to the buffer of their descriptor
 *
 * io       a descriptor with GANTRY_OP_EXTENTS
 * extents  the result, with at least one extent
 */
static inline void gantry_extents_finish(const struct gantry_io *io,
					 const struct gantry_extents *extents)
{
	memcpy(io->data, extents,
	       offsetof(struct gantry_extents, extent) +
		       extents->count * sizeof(extents->extent[0]));
}

/*
 * gantry_extents_are_valid - check extents that a peer has written
 *
 * extents  a private copy of the buffer
 * length   bytes of the range of the descriptor
 * block    block size of the volume
 * returns  1: they follow the rules of struct gantry_extents; 0: they do not
 */
static inline int gantry_extents_are_valid(const struct gantry_extents *extents, uint32_t length,
					   uint32_t block)
{
	uint64_t bytes = 0;

	if (extents->count == 0 || extents->count > GANTRY_EXTENTS_MAX)
		return 0;
	for (uint32_t i = 0; i < extents->count; i++) {
		const struct gantry_extent *extent = &extents->extent[i];

		if (extent->length == 0 || (extent->length & (block - 1)) != 0 ||
		    (extent->flags & ~GANTRY_EXTENT_FLAGS) != 0)
			return 0;
		bytes += extent->length;
	}
	return bytes <= length && bytes == extents->bytes;
}

/*
 * gantry_status_buffer_released - get whether agents can access the buffer of a completed IO
 *
 * status   status of the IO
 * returns  1: no agent can; 0: an agent might
 */
static inline int gantry_status_buffer_released(unsigned status)
{
	return status != GANTRY_S_TIMEOUT && status != GANTRY_S_SESSION_LOST &&
	       status != GANTRY_S_UNKNOWN && status != GANTRY_S_STALE;
}

#ifdef __cplusplus
}
#else
_Static_assert(sizeof(struct gantry_io) == 2 * GANTRY_CACHE_LINE, "two cache lines");
_Static_assert(offsetof(struct gantry_io, reserved) == GANTRY_IO_WIRE_BYTES, "the wire form");
_Static_assert(sizeof(struct gantry_list_entry) == 16, "no padding");
_Static_assert(sizeof(struct gantry_extents) == GANTRY_EXTENTS_BYTES, "fills its buffer");
_Static_assert(offsetof(struct gantry_io, hop) == GANTRY_CACHE_LINE, "private line");
#endif

#endif
