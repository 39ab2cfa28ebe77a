/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.c - an external engine of fio for gantry volumes: ioengine=external:.../gantry-fio.so
 *
 * Licence. This file is compiled with headers of fio, which are GPL-2.0-only. The text is
 * BSD-3-Clause; the module made of both is under the licence of fio. No other part of gantry uses
 * these headers.
 *
 * Sessions. Each job has its own session. fio asks for the size (setup) before it forks or starts a
 * thread for the job, and a session does not survive a fork. So setup opens a session and closes
 * it, and the job opens its own in init.
 *
 * Memory. The buffers of fio are in the memory that the session exports, so the target accesses
 * them directly. If fio needs more memory than the engine reserved (an iolog with longer IOs), fio
 * gets ordinary memory, and the library copies each IO.
 *
 * Threads. One thread for each job calls all functions. `done` is called inside getevents.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <fio.h>
#include <optgroup.h>

#include <gantry/client.h>

struct options {
	void *pad; /* fio treats an option at offset 0 as no option */
	char *config;
	char *volume;
	char *uri;
};

struct job {
	struct gantry_volume *volume;
	struct gantry_queue *queue;
	struct gantry_volume_info info;
	void *own_buffers; /* ordinary buffers, not in the memory of the volume; NULL: none */
	unsigned write;    /* GANTRY_IO_* flags of writes */
	/*
	 * errno of an IO after which the peer might still access the buffer, so all later IOs fail
	 * with it; 0: no such IO
	 */
	int lost;
	bool logged;    /* a rejected IO was logged */
	unsigned size;  /* number of entries of completed[], a ring */
	uint64_t head;  /* count of the entries that earlier getevents calls returned */
	unsigned given; /* number of entries that the last getevents returned, from `head` on */
	uint64_t tail;  /* count of the entries that were ever stored */
	struct io_u *completed[];
};

/* -- options -- */

static struct fio_option option_table[] = {
	{
		.name = "config",
		.lname = "gantry configuration",
		.type = FIO_OPT_STR_STORE,
		.off1 = offsetof(struct options, config),
		.help = "Configuration file of gantry",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = "volume",
		.lname = "gantry volume",
		.alias = "role",
		.type = FIO_OPT_STR_STORE,
		.off1 = offsetof(struct options, volume),
		.help = "Role in that file that connects to the volume (default: the only one that connects)",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = "uri",
		.lname = "gantry URI",
		.type = FIO_OPT_STR_STORE,
		.off1 = offsetof(struct options, uri),
		.help = "Volume without a file, such as gantry:///volume0?device=dpu0",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{.name = NULL},
};

/* -- a volume -- */

/*
 * Log the error of gantry and set it as error of the job. Returns 1, which means failure in
 * functions of fio.
 */
static int failed(struct thread_data *td, int rc, const char *function)
{
	log_err("fio: gantry: %s\n", gantry_error());
	td_verror(td, -rc, function);
	return 1;
}

static int reject_options(struct thread_data *td, const char *text)
{
	log_err("fio: gantry: %s\n", text);
	td_verror(td, EINVAL, "options");
	return 1;
}

/*
 * Returns true if the running fio is the release whose headers this file was compiled with; else
 * logs the error. The layouts of the structures differ between releases, and fio itself compares
 * only FIO_IOOPS_VERSION.
 */
static bool is_our_fio(void)
{
	if (!strcmp(fio_version_string, GANTRY_FIO_VERSION))
		return true;
	log_err("fio: gantry: this engine was built for %s and cannot be used with %s: configure gantry --with-fio=DIR, the "
		"source of that one\n",
		GANTRY_FIO_VERSION, fio_version_string);
	return false;
}

static int open_volume(struct thread_data *td, const struct gantry_volume_attr *attr,
		       struct gantry_volume **volume_p)
{
	const struct options *o = td->eo;
	int rc;

	*volume_p = NULL;
	if (o->uri && (o->config || o->volume))
		return reject_options(td, "uri= excludes config= and volume=");
	if (o->uri) {
		rc = gantry_volume_open(o->uri, attr, volume_p);
		return rc ? failed(td, rc, "gantry_volume_open") : 0;
	}
	if (!o->config)
		return reject_options(td, "no volume: config=FILE or uri=gantry://... is missing");
	rc = gantry_volume_open_role(o->config, o->volume, attr, volume_p);
	return rc ? failed(td, rc, "gantry_volume_open_role") : 0;
}

/* Read the properties of the volume in a short session. Returns 0, or 1 after an error. */
static int query_volume(struct thread_data *td, struct gantry_volume_info *info)
{
	struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;
	struct gantry_volume *volume;

	attr.depth = 1; /* no IO follows: use little memory */
	attr.copy_bytes = 1;
	if (open_volume(td, &attr, &volume))
		return 1;
	gantry_volume_get_info(volume, info);
	gantry_volume_close(&volume);
	return 0;
}

/*
 * Reject a job that the volume cannot serve. The size of each IO is checked when the IO is
 * submitted.
 */
static int check(struct thread_data *td, const struct gantry_volume_info *info)
{
	if ((td_write(td) || td_trim(td)) && (info->flags & GANTRY_VOLUME_READ_ONLY))
		return reject_options(td, "the volume is read-only: only rw=read and rw=randread");
	if (td_trim(td) && !(info->ops & 1u << GANTRY_OP_DISCARD))
		return reject_options(td,
				      "the volume does not support discard: use rw= without trim");
	if (td_min_bs(td) % info->block_size) {
		log_err("fio: gantry: bs=%llu is not a multiple of the volume's block of %u bytes\n",
			td_min_bs(td), info->block_size);
		td_verror(td, EINVAL, "bs");
		return 1;
	}
	return 0;
}

/*
 * fio calls setup in its main process before the job has a process or thread. With
 * create_serialize=0 it calls setup in the job, after init. Each file of the job, whatever its
 * name, is the volume.
 */
static int engine_setup(struct thread_data *td)
{
	struct job *job = td->io_ops_data;
	struct gantry_volume_info info;
	struct fio_file *file;
	unsigned i;

	if (!is_our_fio())
		return 1;
	if (job)
		info = job->info;
	else if (query_volume(td, &info))
		return 1;
	if (check(td, &info))
		return 1;
	for_each_file(td, file, i)
	{
		file->filetype = FIO_TYPE_BLOCK;
		file->real_file_size = info.size;
		fio_file_set_size_known(file);
	}
	return 0;
}

/*
 * Returns an upper bound of the buffer memory, in bytes, that fio will request: see
 * init_io_u_buffers() and allocate_io_mem() in fio.
 */
static uint64_t buffer_bytes(struct thread_data *td)
{
	if (!td_read(td) && !td_write(td))
		return 0;
	return td_max_bs(td) * td->o.iodepth + 2 * ((uint64_t)page_mask + td->o.mem_align + 1);
}

static int engine_init(struct thread_data *td)
{
	struct gantry_volume_attr attr = GANTRY_VOLUME_ATTR_INIT;
	struct job *job;
	int rc;

	if (!is_our_fio())
		return 1;
	job = calloc(1, sizeof(*job) + td->o.iodepth * sizeof(job->completed[0]));
	if (!job) {
		td_verror(td, ENOMEM, "calloc");
		return 1;
	}
	job->size = td->o.iodepth;
	job->write = td->o.sync_io ? GANTRY_IO_FUA : 0;
	attr.queues = 1;
	attr.depth = td->o.iodepth;
	/* used only if fio needs more buffers than reserved */
	attr.copy_bytes = (uint32_t)td_max_bs(td);
	attr.buffer_bytes = buffer_bytes(td);
	if (open_volume(td, &attr, &job->volume))
		goto out_free;
	rc = gantry_queue_open(job->volume, &job->queue);
	if (rc) {
		failed(td, rc, "gantry_queue_open");
		goto out_close;
	}
	gantry_volume_get_info(job->volume, &job->info);
	td->io_ops_data = job;
	return 0;

out_close:
	gantry_volume_close(&job->volume);
out_free:
	free(job);
	return 1;
}

/*
 * td->io_ops_data is NULL if init has failed. gantry_queue_close() completes the IOs that are still
 * in flight; fio has not freed their io_u yet.
 */
static void engine_cleanup(struct thread_data *td)
{
	struct job *job = td->io_ops_data;

	if (!job)
		return;
	gantry_queue_close(&job->queue);
	gantry_volume_close(&job->volume);
	free(job);
	td->io_ops_data = NULL;
}

/* -- buffers -- */

static int engine_iomem_alloc(struct thread_data *td, size_t bytes)
{
	struct job *job = td->io_ops_data;
	uint64_t have;
	void *buffers = gantry_volume_buffers(job->volume, &have);

	if (bytes <= have) {
		td->orig_buffer = buffers;
		return 0;
	}
	log_info(
		"fio: gantry: buffers exceed the reserved memory (bytes=%zu, limit %llu): each IO is copied\n",
		bytes, (unsigned long long)have);
	job->own_buffers = malloc(bytes);
	td->orig_buffer = job->own_buffers;
	return job->own_buffers ? 0 : ENOMEM;
}

static void engine_iomem_free(struct thread_data *td)
{
	struct job *job = td->io_ops_data;

	if (!job)
		return;
	free(job->own_buffers);
	job->own_buffers = NULL;
}

/*
 * Returns 1, which ends the job, if an error was recorded, as by iomem_alloc. fio itself would
 * continue without buffers.
 */
static int engine_post_init(struct thread_data *td)
{
	return td->error != 0;
}

/* -- IO -- */

static int engine_io_u_init(struct thread_data *td, struct io_u *io_u)
{
	io_u->engine_data = td->io_ops_data;
	return 0;
}

static void done(void *arg, int result)
{
	struct io_u *io_u = arg;
	struct job *job = io_u->engine_data;

	if (result) {
		io_u->error = -result;
		if ((result == -ETIMEDOUT || result == -ENOTCONN || result == -EOWNERDEAD ||
		     result == -ESTALE) &&
		    !job->lost)
			job->lost = -result;
	}
	job->completed[job->tail++ % job->size] = io_u;
}

static int submit(struct job *job, struct io_u *io_u)
{
	switch (io_u->ddir) {
	case DDIR_READ:
		return gantry_queue_read(job->queue, io_u->xfer_buf, io_u->xfer_buflen,
					 io_u->offset, done, io_u);
	case DDIR_WRITE:
		return gantry_queue_write(job->queue, io_u->xfer_buf, io_u->xfer_buflen,
					  io_u->offset, job->write, done, io_u);
	case DDIR_TRIM:
		return gantry_queue_discard(job->queue, io_u->xfer_buflen, io_u->offset, done,
					    io_u);
	/* fsync, fdatasync, and sync_file_range, for which a flush does more than requested */
	default:
		return gantry_queue_flush(job->queue, done, io_u);
	}
}

static enum fio_q_status engine_queue(struct thread_data *td, struct io_u *io_u)
{
	struct job *job = td->io_ops_data;
	int rc;

	fio_ro_check(td, io_u);
	rc = job->lost ? -job->lost : submit(job, io_u);
	if (!rc)
		return FIO_Q_QUEUED;
	if (rc == -EAGAIN)
		return FIO_Q_BUSY;
	if (!job->logged) {
		log_err("fio: gantry: %s\n",
			job->lost
				? "an IO has no answer and may still use its memory: no more are sent"
				: gantry_error());
		job->logged = true;
	}
	io_u->error = -rc;
	return FIO_Q_COMPLETED;
}

static int engine_getevents(struct thread_data *td, unsigned min, unsigned max,
			    const struct timespec *time)
{
	struct job *job = td->io_ops_data;
	int ms = time ? (int)(time->tv_sec * 1000 + time->tv_nsec / 1000000) : -1;
	unsigned n;

	job->head += job->given;
	if (!min)
		gantry_queue_poll(job->queue);
	while (job->tail - job->head < min)
		if (gantry_queue_wait(job->queue, ms) <= 0)
			break;
	n = job->tail - job->head;
	job->given = n < max ? n : max;
	return (int)job->given;
}

static struct io_u *engine_event(struct thread_data *td, int event)
{
	struct job *job = td->io_ops_data;

	return job->completed[(job->head + (unsigned)event) % job->size];
}

/* -- files: nothing to do -- */

static int engine_nothing(struct thread_data *td, struct fio_file *file)
{
	(void)td;
	(void)file;
	return 0;
}

__attribute__((visibility("default"))) struct ioengine_ops ioengine = {
	.name = "gantry",
	.version = FIO_IOOPS_VERSION,
	.flags = FIO_DISKLESSIO | FIO_NOEXTEND | FIO_NODISKUTIL | FIO_RAWIO | FIO_NO_OFFLOAD,
	.setup = engine_setup,
	.init = engine_init,
	.post_init = engine_post_init,
	.cleanup = engine_cleanup,
	.iomem_alloc = engine_iomem_alloc,
	.iomem_free = engine_iomem_free,
	.io_u_init = engine_io_u_init,
	.queue = engine_queue,
	.getevents = engine_getevents,
	.event = engine_event,
	.open_file = engine_nothing,
	.close_file = engine_nothing,
	.invalidate = engine_nothing,
	.unlink_file = engine_nothing,
	.option_struct_size = sizeof(struct options),
	.options = option_table,
};
