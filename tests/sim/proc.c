/* SPDX-License-Identifier: BSD-3-Clause */
/* proc.c - simulated processes, and the images of the product that they run */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc.h"

struct sim_image {
	void *handle;
	const uint8_t *base;
	uint8_t *globals, *globals_initial;
	size_t n_globals;
	uint8_t *tls, *tls_initial;
	size_t tls_bytes;
	struct sim_arena *arena;
};

#define PAUSE_NS 134000000u /* pause of a killed process: longer than COMCH_DEATH_NS of its peers */

static struct sim_image images[SIM_PROCS];
static size_t n_images;
static struct sim_proc procs[SIM_PROCS];
static pid_t last_pid;
extern const char __executable_start[];

/* -- images -- */

/* The dynamic linker loads each copy of the file as a separate library. */
static void copy_file(const char *from, const char *to)
{
	static char buffer[1 << 16];
	int in = open(from, O_RDONLY | O_CLOEXEC),
	    out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	ssize_t n;

	if (in < 0 || out < 0)
		sim_fail("%s: cannot be copied to %s", from, to);
	while ((n = read(in, buffer, sizeof(buffer))) > 0)
		if (write(out, buffer, (size_t)n) != n)
			sim_fail("%s: cannot be written", to);
	close(in);
	close(out);
}

/*
 * Find the part of the image that stays writable (PT_LOAD, without the part PT_GNU_RELRO that the
 * dynamic linker makes read-only after relocation), and the thread-local variables.
 */
static int find_segments(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	struct sim_image *image = arg;
	const uint8_t *base = (const uint8_t *)info->dlpi_addr, *end = NULL, *protected_end = NULL;
	const uint8_t *start = NULL;

	(void)bytes;
	if (base != image->base)
		return 0;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && (ph->p_flags & PF_W)) {
			start = base + ph->p_vaddr;
			end = start + ph->p_memsz;
		} else if (ph->p_type == PT_GNU_RELRO) {
			/* the dynamic linker protects whole pages */
			protected_end =
				(const uint8_t *)(((uintptr_t)base + ph->p_vaddr + ph->p_memsz) &
						  ~(uintptr_t)4095);
		} else if (ph->p_type == PT_TLS) {
			image->tls_bytes = ph->p_memsz;
			image->tls = info->dlpi_tls_data;
		}
	}
	if (protected_end > start)
		start = protected_end;
	image->globals = (uint8_t *)(uintptr_t)start;
	image->n_globals = (size_t)(end - start);
	return 1;
}

static void load_image(struct sim_image *image, const char *file)
{
	struct link_map *map;

	image->handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!image->handle)
		sim_fail("%s", dlerror());
	if (dlinfo(image->handle, RTLD_DI_LINKMAP, &map) != 0)
		sim_fail("%s", dlerror());
	image->base = (const uint8_t *)map->l_addr;
	/*
	 * The dynamic linker allocates the thread-local block at its first use. So this call does
	 * not find the block; the second call below finds it, after sim_touch_tls() has used it.
	 */
	if (dl_iterate_phdr(find_segments, image) == 0)
		sim_fail("%s: no segments", file);
	if (image->tls_bytes > SIM_TLS)
		sim_fail("%s: %zu bytes of thread-local variables (SIM_TLS=%u)", file,
			 image->tls_bytes, SIM_TLS);
	image->globals_initial = sim_host_alloc(image->n_globals);
	memcpy(image->globals_initial, image->globals, image->n_globals);
	if (image->tls_bytes != 0) {
		void *(*touch)(void) = (void *(*)(void))dlsym(image->handle, "sim_touch_tls");

		if (touch)
			touch();
		dl_iterate_phdr(find_segments, image);
		if (!image->tls)
			sim_fail("%s: no thread-local block", file);
		image->tls_initial = sim_host_alloc(image->tls_bytes);
		memcpy(image->tls_initial, image->tls, image->tls_bytes);
	}
	image->arena = sim_arena_new();
}

void sim_images_load(const char *file)
{
	char dir[] = "/tmp/gantry-sim.XXXXXX", copy[64];

	if (!file) {
		images[0].arena = sim_arena_new();
		n_images = 1;
		return;
	}
	if (!mkdtemp(dir))
		sim_fail("%s: cannot be created", dir);
	for (n_images = 0; n_images < SIM_PROCS; n_images++) {
		snprintf(copy, sizeof(copy), "%s/%zu.so", dir, n_images);
		copy_file(file, copy);
		load_image(&images[n_images], copy);
		unlink(copy);
	}
	rmdir(dir);
}

void *sim_proc_symbol(const struct sim_proc *proc, const char *name)
{
	void *symbol = dlsym(proc->image->handle, name);

	if (!symbol)
		sim_fail("%s", dlerror());
	return symbol;
}

uint64_t sim_proc_place(const struct sim_proc *proc, const void *pc)
{
	const char *base = proc && proc->image && proc->image->base
				   ? (const char *)proc->image->base
				   : __executable_start;

	return (uint64_t)((const char *)pc - base);
}

/* -- processes -- */

struct sim_proc *sim_proc_start(const char *name, uid_t uid, void *(*fn)(void *arg), void *arg)
{
	struct sim_proc *proc = procs;
	struct sim_image *image;

	while (proc < procs + n_images && proc->pid != 0)
		proc++;
	if (proc == procs + n_images)
		return NULL;
	image = &images[proc - procs];
	memset(proc, 0, sizeof(*proc));
	snprintf(proc->name, sizeof(proc->name), "%s", name);
	proc->pid = 1000 + ++last_pid;
	proc->uid = uid;
	proc->alive = true;
	proc->image = image;
	proc->arena = image->arena;
	proc->tls = image->tls;
	proc->tls_initial = image->tls_initial;
	proc->tls_bytes = image->tls_bytes;
	sim_arena_reset(proc->arena);
	if (image->n_globals != 0)
		memcpy(image->globals, image->globals_initial, image->n_globals);
	if (!sim_thread_start(proc, name, fn, arg))
		sim_fail("%s: no thread left", name);
	return proc;
}

/*
 * Returns the bytes of the regions in quarantine of the process, which count as released. Such a
 * region keeps its mapping, but not its descriptor.
 */
static uint64_t quarantined(const struct sim_proc *proc)
{
	uint64_t (*bytes)(void);

	if (!proc->image->handle) /* tests of components */
		return 0;
	bytes = (uint64_t(*)(void))sim_proc_symbol(proc, "sim_image_quarantined");
	return bytes();
}

void sim_proc_note_left(struct sim_proc *proc)
{
	size_t n = 0, room = sizeof(proc->left);
	uint64_t kept = quarantined(proc);

	for (int fd = 0; fd < (int)SIM_FDS && n < room; fd++)
		if (sim_fd_kind(proc, fd))
			n += (size_t)snprintf(proc->left + n, room - n, " descriptor %d (%s)", fd,
					      sim_fd_kind(proc, fd));
	for (uint32_t i = 0; i < SIM_MAPS && n < room; i++) {
		const struct sim_map *map = &proc->maps[i];

		if (map->file && map->bytes <= kept)
			kept -= map->bytes;
		else if (map->at)
			n += (size_t)snprintf(proc->left + n, room - n,
					      " mapping of %zu bytes (%s)", map->bytes,
					      map->file ? "of a file" : "anonymous");
	}
	if (proc->n_files_open != 0 && n < room)
		n += (size_t)snprintf(proc->left + n, room - n, " %u streams", proc->n_files_open);
	if (sim_arena_used(proc->arena) != 0 && n < room)
		snprintf(proc->left + n, room - n, " heap of %zu bytes",
			 sim_arena_used(proc->arena));
}

const char *sim_proc_left(const struct sim_proc *proc)
{
	return proc->left[0] != 0 ? proc->left : NULL;
}

void sim_proc_kill(struct sim_proc *proc, int status)
{
	bool is_self = sim_self() && sim_self()->proc == proc;

	if (!proc->alive)
		return;
	proc->alive = false;
	proc->hangs_until = 0;
	proc->status = status;
	/* done before the mappings are removed: buffered stores can still reach the mappings */
	sim_threads_kill(proc);
	sim_fds_close_all(proc);
	sim_maps_drop_all(proc);
	sim_pidfd_end(proc);
	sim_changed();
	if (is_self)
		sim_leave();
}

/* -- the end of a killed process -- */

static uint32_t n_open(const struct sim_proc *proc)
{
	uint32_t n = 0;

	for (int fd = 0; fd < (int)SIM_FDS; fd++)
		n += proc->fds[fd].file != NULL;
	return n;
}

/*
 * The only thread of a killed process: it closes descriptors in the order of their numbers or in a
 * drawn order. One process of four makes a long pause, since the kernel can be slow at any step.
 * The mappings are removed first, as in the kernel, or at a drawn moment, as if another user of the
 * address space, such as a reader of /proc, had kept them.
 */
static void *die(void *arg)
{
	struct sim_proc *proc = arg;
	bool in_order = sim_draw(2) != 0;
	uint64_t step_ns = 1u << sim_draw(18), pause_ns = sim_draw(4) == 0 ? PAUSE_NS : 0;
	uint32_t n = n_open(proc), unmap_before = sim_draw(4) != 0 ? n : sim_draw(n + 1),
		 pause_before = sim_draw(n + 1);

	for (;;) {
		if (n == unmap_before)
			sim_maps_drop_all(proc);
		sim_block(NULL, NULL,
			  sim_now() + sim_draw((uint32_t)step_ns) +
				  (n == pause_before ? pause_ns : 0));
		if (n-- == 0)
			break;
		sim_fds_close_one(proc, in_order ? 0 : sim_draw(n + 1));
		sim_changed();
	}
	sim_proc_kill(proc, proc->status);
	return NULL;
}

void sim_proc_kill_in_steps(struct sim_proc *proc, int status)
{
	if (!proc->alive || proc->dying)
		return;
	proc->dying = true;
	proc->hangs_until = 0;
	proc->status = status;
	sim_threads_kill(proc);
	if (!sim_thread_start(proc, "killed", die, proc))
		sim_proc_kill(proc, status);
}

void sim_proc_signal(struct sim_proc *proc, int signal)
{
	proc->pending_signals |= 1u << signal;
	sim_changed();
}

void sim_proc_reap(struct sim_proc *proc)
{
	proc->pid = 0;
}

struct sim_proc *sim_proc_find(pid_t pid)
{
	for (struct sim_proc *proc = procs; proc < procs + SIM_PROCS; proc++)
		if (proc->pid == pid && pid != 0)
			return proc;
	return NULL;
}

struct sim_proc *sim_proc_self(void)
{
	struct sim_thread *t = sim_self();

	if (!t || !t->proc)
		sim_fail("the environment has no process");
	return t->proc;
}

void sim_procs_clear(void)
{
	for (struct sim_proc *proc = procs; proc < procs + SIM_PROCS; proc++) {
		if (proc->pid != 0)
			sim_proc_kill(proc, -9);
		proc->pid = 0;
	}
	last_pid = 0;
}

size_t sim_proc_index(const struct sim_proc *proc);
size_t sim_proc_index(const struct sim_proc *proc)
{
	return (size_t)(proc - procs);
}
