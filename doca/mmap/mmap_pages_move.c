/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmap_pages_move.c - move pages into a memfd in place while threads of the program run, and make
 * them private again
 *
 * The unit is 16 pages. vmsplice(2) gives a pipe a reference to the old pages. Then they are copied
 * into the memfd, and the memfd is mapped over them. Afterwards the pipe still delivers what
 * threads or system calls wrote to the old pages after the copy. Each byte that differs from the
 * copy is written to the new page, unless a thread has written that byte meanwhile. So no write is
 * lost. Pages of another memfd need no pipe: they are read from that memfd.
 *
 * For some microseconds (some hundred for pages of a memfd) a thread might not see the latest
 * writes. An atomic counter or a lock in use in these pages could be corrupted, and stack frames
 * must never be stale. So the calling thread leaves its stack while the pages of that stack move.
 * Stacks of other running threads must not be exported.
 *
 * The functions must not read the pages in ways that a sanitizer checks.
 */
#include "mmap/mmap_pages_move.h"

#include "mmap/mmap_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define BATCH (16 * PAGE)       /* usual capacity of a pipe */
#define MEMFD_BATCH (64 * PAGE) /* fastest of 16, 64 and 256 pages: 1.2 to 1.6 GB/s */
#define STACK_BYTES (64 * 1024ul)

/*
 * Pages of the heap contain bytes that valgrind treats as inaccessible. So its error reports are
 * disabled during a move, and the pages are marked as defined afterwards.
 */
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_DISABLE_ERROR_REPORTING (void)0
#define VALGRIND_ENABLE_ERROR_REPORTING (void)0
#define VALGRIND_MAKE_MEM_DEFINED(addr, bytes) 0
#define VALGRIND_STACK_REGISTER(from, to) 0
#define VALGRIND_STACK_DEREGISTER(id) (void)(id)
#endif

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define NO_SANITIZE __attribute__((no_sanitize("address"), no_sanitize("thread"), noinline))

/*
 * State of the work on a list of pieces: `step` runs for each piece, on another stack if a piece
 * contains the stack of the caller. The structure has its own mapping, because a piece can be any
 * part of the heap.
 */
struct work {
	int (*step)(struct work *w, const struct gd_piece *piece);
	const struct gd_piece *pieces;
	size_t n, batch, bytes;
	int memfd;
	char *before, *after; /* MEMFD_BATCH bytes each */
	int pipe[2];
	pid_t pid;
	int rc;
	ucontext_t here, there;
};

static NO_SANITIZE void touch(char *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += PAGE)
		__atomic_fetch_or(at + i, 0, __ATOMIC_RELAXED);
}

static NO_SANITIZE void merge_writes(char *at, const char *before, const char *after, size_t bytes)
{
	if (memcmp(before, after, bytes) == 0)
		return;
	for (size_t i = 0; i < bytes; i++) {
		char was = before[i];

		if (i % 64 == 0 && memcmp(before + i, after + i, 64) == 0)
			i += 63;
		else if (was != after[i])
			__atomic_compare_exchange_n(at + i, &was, after[i], false, __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED);
	}
}

static long sys_read_pipe(struct work *w, size_t bytes)
{
	size_t n = 0;

	while (n < bytes) {
		long got = syscall(SYS_read, w->pipe[0], w->after + n, bytes - n);

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return (long)n;
}

static uint32_t moves;

uint32_t gd_pages_moves(void)
{
	return __atomic_load_n(&moves, __ATOMIC_ACQUIRE);
}

static int map_over(const struct work *w, uintptr_t at, size_t bytes, int prot)
{
	return syscall(SYS_mmap, at, bytes, prot, MAP_SHARED | MAP_FIXED, w->memfd, at) == (long)at
		       ? 0
		       : -errno;
}

/* Break copy-on-write, so that a later write does not replace the pages. */
static int claim(uintptr_t at, size_t bytes)
{
	if (syscall(SYS_madvise, at, bytes, MADV_POPULATE_WRITE) == 0)
		return 0;
	if (errno != EINVAL)
		return -errno;    /* pages beyond the end of a file, or out of memory */
	touch((char *)at, bytes); /* for Linux before 5.14 */
	return 0;
}

/* Copy the current content to w->before. */
static int read_pages(struct work *w, uintptr_t at, size_t bytes)
{
	struct iovec to = {w->before, bytes}, from = {(void *)at, bytes};

	if (syscall(SYS_process_vm_readv, w->pid, &to, 1ul, &from, 1ul, 0ul) == (long)bytes)
		return 0;
	/* process_vm_readv(2) is not permitted: copy through the memfd */
	if (syscall(SYS_pwrite64, w->memfd, at, bytes, at) != (long)bytes ||
	    syscall(SYS_pread64, w->memfd, w->before, bytes, at) != (long)bytes)
		return errno != 0 ? -errno : -EIO;
	return 0;
}

static int move_batch(struct work *w, uintptr_t at, size_t bytes, int prot)
{
	struct iovec iov = {(void *)at, bytes};
	long kept = 0;
	int rc = 0;

	if ((prot & PROT_WRITE) != 0)
		rc = claim(at, bytes);
	if (rc != 0)
		return rc;
	if ((prot & PROT_WRITE) != 0)
		kept = syscall(SYS_vmsplice, w->pipe[1], &iov, 1ul, SPLICE_F_NONBLOCK);
	rc = read_pages(w, at, bytes);
	if (rc == 0 && syscall(SYS_pwrite64, w->memfd, w->before, bytes, at) != (long)bytes)
		rc = errno != 0 ? -errno : -EIO;
	if (rc == 0)
		rc = map_over(w, at, bytes, prot);
	__atomic_fetch_add(&moves, 1, __ATOMIC_RELEASE);
	if (kept > 0)
		kept = sys_read_pipe(w, (size_t)kept);
	if (rc == 0 && kept > 0)
		merge_writes((char *)at, w->before, w->after, (size_t)kept);
	return rc;
}

/* Read the bytes of a batch from another memfd. */
static int read_memfd(int fd, char *to, size_t bytes, uint64_t offset)
{
	if (syscall(SYS_pread64, fd, to, bytes, offset) == (long)bytes)
		return 0;
	return errno != 0 ? -errno : -EIO;
}

/* Like move_batch(), for pages of another memfd, which keeps them. */
static int move_batch_over(struct work *w, const struct gd_piece *piece, uintptr_t at, size_t bytes)
{
	const uint64_t offset = piece->offset + (at - piece->from);
	int rc = read_memfd(piece->fd, w->before, bytes, offset);

	if (rc == 0 && syscall(SYS_pwrite64, w->memfd, w->before, bytes, at) != (long)bytes)
		rc = errno != 0 ? -errno : -EIO;
	if (rc == 0)
		rc = map_over(w, at, bytes, piece->prot);
	__atomic_fetch_add(&moves, 1, __ATOMIC_RELEASE);
	if (rc == 0)
		rc = read_memfd(piece->fd, w->after, bytes, offset);
	if (rc == 0 && (piece->prot & PROT_WRITE) != 0)
		merge_writes((char *)at, w->before, w->after, bytes);
	return rc;
}

static int share_piece(struct work *w, const struct gd_piece *piece)
{
	int rc = 0;

	if (piece->fd >= 0) {
		for (uintptr_t at = piece->from; at < piece->to && rc == 0; at += MEMFD_BATCH)
			rc = move_batch_over(w, piece, at,
					     piece->to - at < MEMFD_BATCH ? piece->to - at
									  : MEMFD_BATCH);
		return rc;
	}
	for (uintptr_t at = piece->from; at < piece->to && rc == 0; at += w->batch)
		rc = move_batch(w, at, piece->to - at < w->batch ? piece->to - at : w->batch,
				piece->prot);
	return rc;
}

/* Map a private copy of a piece. The memfd keeps its content. */
static int make_piece_private(struct work *w, const struct gd_piece *piece)
{
	size_t bytes = piece->to - piece->from;
	long copy = syscall(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	(void)w;
	if (copy < 0 && copy > -4096)
		return -errno;
	for (size_t done = 0; done < bytes;) {
		long n = syscall(SYS_pread64, piece->fd, copy + (long)done, bytes - done,
				 piece->offset + done);

		if (n <= 0)
			return -EIO;
		done += (size_t)n;
	}
	syscall(SYS_mprotect, copy, bytes, piece->prot);
	return syscall(SYS_mremap, copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, piece->from) <
			       0
		       ? -errno
		       : 0;
}

static int do_piece(struct work *w, const struct gd_piece *piece,
		    int (*step)(struct work *w, const struct gd_piece *piece))
{
	int rc;

	VALGRIND_DISABLE_ERROR_REPORTING;
	rc = step(w, piece);
	VALGRIND_ENABLE_ERROR_REPORTING;
	(void)VALGRIND_MAKE_MEM_DEFINED(piece->from, piece->to - piece->from);
	return rc;
}

static int run_here(struct work *w)
{
	for (size_t i = 0; i < w->n && w->rc == 0; i++)
		w->rc = do_piece(w, &w->pieces[i], w->step);
	return w->rc;
}

static void run_there(unsigned high, unsigned low)
{
	run_here((struct work *)((uintptr_t)high << 32 | low));
}

/* Run the work on a temporary stack: the stack of the caller must not change while it moves. */
static int run_on_another_stack(struct work *w)
{
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	unsigned id = VALGRIND_STACK_REGISTER(stack, stack + STACK_BYTES);

	if (stack == MAP_FAILED || getcontext(&w->there) != 0)
		return -ENOMEM;
	w->there.uc_stack = (stack_t){.ss_sp = stack, .ss_size = STACK_BYTES};
	w->there.uc_link = &w->here;
	makecontext(&w->there, (void (*)(void))run_there, 2, (unsigned)((uintptr_t)w >> 32),
		    (unsigned)(uintptr_t)w);
	swapcontext(&w->here, &w->there);
	VALGRIND_STACK_DEREGISTER(id);
	munmap(stack, STACK_BYTES);
	return w->rc;
}

/*
 * Touch the main stack below the pages that move. The kernel grows only the stack mapping, so a
 * part of it must remain below the moved pages.
 */
static __attribute__((noinline)) void deepen_stack(void)
{
	volatile char room[STACK_BYTES];

	room[0] = 0;
	(void)room[0];
}

static struct work *make_work(void)
{
	size_t page = PAGE, head = (sizeof(struct work) + page - 1) & ~(page - 1),
	       bytes = head + 2 * MEMFD_BATCH;
	struct work *w = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
	int held_by_pipe;

	if (w == MAP_FAILED)
		return NULL;
	w->bytes = bytes;
	w->pid = getpid();
	w->before = (char *)w + head;
	w->after = w->before + MEMFD_BATCH;
	if (pipe2(w->pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
		munmap(w, bytes);
		return NULL;
	}
	held_by_pipe = fcntl(w->pipe[1], F_GETPIPE_SZ);
	/* the kernel gives small pipes to users with many pipes */
	w->batch = held_by_pipe >= (int)BATCH ? BATCH : page;
	return w;
}

static void free_work(struct work *w)
{
	close(w->pipe[0]);
	close(w->pipe[1]);
	munmap(w, w->bytes);
}

static int do_work(int memfd, const struct gd_piece *pieces, size_t n,
		   int (*step)(struct work *w, const struct gd_piece *piece))
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	struct work *w = n > 0 ? make_work() : NULL;
	bool on_it = false;
	int rc;

	if (!w)
		return n > 0 ? -ENOMEM : 0;
	w->memfd = memfd;
	w->step = step;
	w->pieces = pieces;
	w->n = n;
	for (size_t i = 0; i < n; i++)
		/* the stack can also grow down into the piece */
		if (here >= pieces[i].area_from && here < pieces[i].area_to + STACK_BYTES) {
			on_it = true;
			if (pieces[i].main_stack)
				deepen_stack();
		}
	if (on_it)
		rc = run_on_another_stack(w);
	else
		rc = run_here(w);
	free_work(w);
	return rc;
}

int gd_pages_share(int memfd, const struct gd_piece *pieces, size_t n)
{
	return do_work(memfd, pieces, n, share_piece);
}

int gd_pages_make_private(const struct gd_piece *pieces, size_t n)
{
	return do_work(-1, pieces, n, make_piece_private);
}

int gd_pages_make_private_in_child(const struct gd_piece *piece)
{
	struct work w = {.memfd = -1};

	return do_piece(&w, piece, make_piece_private);
}
