/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * seen.c - records which function of the library returned which error to a test
 *
 * errors.sh links each test of libgantry-doca once more, with a stub in the place of each function
 * that returns doca_error_t. A stub puts its number into r10, the function into r11, and jumps to
 * seen_call(). seen_call() pops the return address, so that the function finds all its arguments in
 * place, and keeps that address on a separate stack for each thread. Then it calls the function and
 * records the result in the file that GANTRY_SEEN names. The file has one word of 32 bits for each
 * stub, with one bit for each error. Processes that the test forks or executes write to the same
 * file.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 256 };

/*
 * A call that has not returned. The stack grows down. So if `slot` is below the slot of the current
 * call, longjmp() has left the call of this frame.
 */
struct frame {
	uintptr_t *slot; /* place of the return address on the stack */
	uintptr_t back;
	uint32_t number;
};

static _Thread_local struct frame frames[MAX_DEPTH];
static _Thread_local unsigned depth;
static _Atomic uint32_t *table;
static size_t n_stubs;

void seen_enter(uintptr_t *slot, uint32_t number);
uintptr_t seen_leave(uintptr_t *slot, uint32_t error);

__attribute__((constructor)) static void open_table(void)
{
	const char *name = getenv("GANTRY_SEEN");
	struct stat st;
	int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
	void *at;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_size > 0) {
		at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (at != MAP_FAILED) {
			table = at;
			n_stubs = (size_t)st.st_size / sizeof(*table);
		}
	}
	close(fd);
}

void seen_enter(uintptr_t *slot, uint32_t number)
{
	while (depth && frames[depth - 1].slot <= slot)
		depth--;
	if (depth == MAX_DEPTH)
		abort();
	frames[depth++] = (struct frame){slot, *slot, number};
}

uintptr_t seen_leave(uintptr_t *slot, uint32_t error)
{
	while (depth && frames[depth - 1].slot < slot)
		depth--;
	if (!depth || frames[depth - 1].slot != slot)
		abort();
	depth--;
	if (frames[depth].number < n_stubs && error < 32)
		atomic_fetch_or_explicit(&table[frames[depth].number], (uint32_t)1 << error,
					 memory_order_relaxed);
	return frames[depth].back;
}

/*
 * Save all registers that can hold an argument during seen_enter(), and all that can hold a result
 * during seen_leave().
 */
__asm__(".text\n"
	".globl seen_call\n"
	".type seen_call, @function\n"
	"seen_call:\n"
	"	pushq %rdi\n"
	"	pushq %rsi\n"
	"	pushq %rdx\n"
	"	pushq %rcx\n"
	"	pushq %r8\n"
	"	pushq %r9\n"
	"	pushq %rax\n"
	"	pushq %r11\n"
	"	subq $136, %rsp\n"
	"	movups %xmm0, (%rsp)\n"
	"	movups %xmm1, 16(%rsp)\n"
	"	movups %xmm2, 32(%rsp)\n"
	"	movups %xmm3, 48(%rsp)\n"
	"	movups %xmm4, 64(%rsp)\n"
	"	movups %xmm5, 80(%rsp)\n"
	"	movups %xmm6, 96(%rsp)\n"
	"	movups %xmm7, 112(%rsp)\n"
	"	leaq 200(%rsp), %rdi\n"
	"	movl %r10d, %esi\n"
	"	call seen_enter\n"
	"	movups (%rsp), %xmm0\n"
	"	movups 16(%rsp), %xmm1\n"
	"	movups 32(%rsp), %xmm2\n"
	"	movups 48(%rsp), %xmm3\n"
	"	movups 64(%rsp), %xmm4\n"
	"	movups 80(%rsp), %xmm5\n"
	"	movups 96(%rsp), %xmm6\n"
	"	movups 112(%rsp), %xmm7\n"
	"	addq $136, %rsp\n"
	"	popq %r11\n"
	"	popq %rax\n"
	"	popq %r9\n"
	"	popq %r8\n"
	"	popq %rcx\n"
	"	popq %rdx\n"
	"	popq %rsi\n"
	"	popq %rdi\n"
	"	addq $8, %rsp\n"
	"	call *%r11\n"
	"	subq $8, %rsp\n"
	"	pushq %rax\n"
	"	pushq %rdx\n"
	"	subq $24, %rsp\n"
	"	movups %xmm0, (%rsp)\n"
	"	leaq 40(%rsp), %rdi\n"
	"	movl %eax, %esi\n"
	"	call seen_leave\n"
	"	movq %rax, 40(%rsp)\n"
	"	movups (%rsp), %xmm0\n"
	"	addq $24, %rsp\n"
	"	popq %rdx\n"
	"	popq %rax\n"
	"	ret\n"
	".size seen_call, . - seen_call\n");
