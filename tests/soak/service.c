/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.c - the processes behind the backend of the target: nbdkit, which serves the file, and
 * nbd_relay between it and the target; or an OSD of a Ceph cluster, which has the volume as an
 * image
 *
 * The cluster runs before the driver starts (rbd.sh), without the OSD number OSD_ID. The driver
 * runs that OSD, so that it can kill it. The other OSDs of the cluster have all data meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soak/driver.h"

#define OSD_ID "2"

static const char *cluster(void)
{
	const char *dir = getenv("SOAK_CLUSTER");

	return dir ? dir : "";
}

/* -- nbdkit -- */

static void nbdkit_path(const struct driver *d, const char *suffix, char path[128])
{
	snprintf(path, 128, "%s/nbd.%s", d->dir, suffix);
}

static void nbdkit_before(struct driver *d)
{
	static const char *const files[] = {"server", "pid"};
	char path[128];

	for (unsigned i = 0; i < 2; i++) {
		nbdkit_path(d, files[i], path);
		unlink(path);
	}
}

static void nbdkit_exec(const struct driver *d)
{
	char file[128], sock[128], pid[128];

	store_path(d, 0, file);
	nbdkit_path(d, "server", sock);
	nbdkit_path(d, "pid", pid);
	/*
	 * with several threads for a connection, nbdkit 1.32 can abort when its client is killed:
	 * Assertion `sock >= 0' failed
	 */
	execlp("nbdkit", "nbdkit", "-f", "-t", "1", "-P", pid, "-U", sock, "file", file,
	       (char *)NULL);
}

static int nbdkit_is_ready(struct driver *d)
{
	char path[128];

	nbdkit_path(d, "pid", path); /* nbdkit writes it when it listens */
	return !access(path, F_OK);
}

static void nbdkit_backend(const struct driver *d, const struct round *r, FILE *f)
{
	fprintf(f,
		"type = \"nbd\"; uri = \"nbd+unix:///?socket=%s/nbd.sock\"; "
		"quiesce_time = \"%ums\";",
		d->dir, r->quiesce_ms);
}

static void relay_before(struct driver *d)
{
	char path[128];

	nbdkit_path(d, "sock", path);
	unlink(path);
}

static void relay_exec(const struct driver *d)
{
	char sock[128], server[128], fd[16];

	nbdkit_path(d, "sock", sock);
	nbdkit_path(d, "server", server);
	snprintf(fd, sizeof(fd), "%d", d->journal_fd);
	execl(d->relay, "nbd_relay", fd, sock, server, (char *)NULL);
}

static int relay_is_ready(struct driver *d)
{
	char path[128];

	nbdkit_path(d, "sock", path); /* the relay makes it when it listens */
	return !access(path, F_OK);
}

/* -- an OSD -- */

/* The log of the OSD, and its length before the last start. */
static off_t osd_log_began;

static int osd_log(void)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/log/osd." OSD_ID ".log", cluster());
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void osd_before(struct driver *d)
{
	struct stat st = {.st_size = 0};
	int fd = osd_log();

	(void)d;
	if (fd >= 0) {
		fstat(fd, &st);
		close(fd);
	}
	osd_log_began = st.st_size;
}

static void osd_exec(const struct driver *d)
{
	char conf[256];

	(void)d;
	snprintf(conf, sizeof(conf), "%s/ceph.conf", cluster());
	execlp("ceph-osd", "ceph-osd", "-f", "-i", OSD_ID, "-c", conf, (char *)NULL);
}

/* Returns whether the OSD takes part in the cluster since its last start, according to its log. */
static int osd_is_ready(struct driver *d)
{
	static char text[1 << 18];
	int fd = osd_log();
	ssize_t n;

	(void)d;
	if (fd < 0)
		return 0;
	n = pread(fd, text, sizeof(text) - 1, osd_log_began);
	close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return strstr(text, "booting -> active") != NULL;
}

/* Returns the name of the image of this run. */
static const char *image(void)
{
	static char name[32];

	snprintf(name, sizeof(name), "soak%d", (int)getpid());
	return name;
}

static void osd_backend(const struct driver *d, const struct round *r, FILE *f)
{
	fprintf(f, "type = \"rbd\"; conf = \"%s/ceph.conf\"; image = \"%s\";", cluster(), image());
	if (r->op_timeout_s)
		fprintf(f, " osd_op_timeout = \"%us\";", r->op_timeout_s);
	if (!strcmp(d->options.bug, "same-uuid"))
		fprintf(f, " uuid = \"6d1f1c1e-0000-4000-8000-000000000001\";");
}

/*
 * Run the program rbd with these arguments, which contain no quotes. Returns its exit status: 0, or
 * an errno; 124: it took too long; -1: it was killed.
 */
__attribute__((format(printf, 2, 3))) static int rbd_status(struct driver *d, const char *format,
							    ...)
{
	char arguments[384], command[768];
	va_list args;
	int rc;

	va_start(args, format);
	vsnprintf(arguments, sizeof(arguments), format, args);
	va_end(args);
	snprintf(command, sizeof(command),
		 "timeout 60 rbd -c '%s/ceph.conf' %s >>'%s/rbd.log' 2>&1", cluster(), arguments,
		 d->dir);
	rc = system(command);
	return rc != -1 && WIFEXITED(rc) ? WEXITSTATUS(rc) : -1;
}

/* Run it with these arguments, and the name of the image, and what follows it. */
static int rbd(struct driver *d, const char *arguments, const char *after)
{
	if (!rbd_status(d, "%s %s %s", arguments, image(), after))
		return 0;
	soak_report(d->journal, SOAK_DIED, "failed: rbd %s %s %s", arguments, image(), after);
	return -1;
}

static int image_create(struct driver *d, off_t bytes)
{
	char arguments[128];

	/* several objects, so that each OSD has some */
	snprintf(arguments, sizeof(arguments), "create --object-size 1M --size %lldB",
		 (long long)bytes);
	/* librbd frees no part of an object that is smaller than its discard granularity */
	d->journal->can_discard = 0;
	return rbd(d, arguments, "");
}

static int image_fetch(struct driver *d, const char *path)
{
	unlink(path);
	return rbd(d, "export --no-progress", path);
}

static int image_damage(struct driver *d)
{
	return rbd(d, "bench --io-type write --io-pattern seq --io-size 4K --io-total 4K", "");
}

static int image_remove(struct driver *d)
{
	return rbd(d, "rm --no-progress", "");
}

/* The target serves the image, which is renamed: its exclusive lock and its watch remain. */
static int image_exchange(struct driver *d, const char *path)
{
	char arguments[192], name[64];

	snprintf(name, sizeof(name), "%s.away", image());
	snprintf(arguments, sizeof(arguments), "import --no-progress --object-size 1M %s", path);
	return rbd(d, "rename", name) || rbd(d, arguments, "");
}

static int image_return(struct driver *d, const char *path)
{
	char arguments[192];

	snprintf(arguments, sizeof(arguments), "rename %s.away", image());
	unlink(path);
	return rbd(d, "export --no-progress", path) || rbd(d, "rm --no-progress", "") ||
	       rbd(d, arguments, "");
}

/* Ceph must not delete an image that a target watches. */
static int image_delete(struct driver *d)
{
	const int unserved = !strcmp(d->options.bug, "unserved");
	int status;

	if (unserved && rbd_status(d, "create --size 1M %s.unserved", image()))
		return -1;
	status = rbd_status(d, "rm --no-progress %s%s", image(), unserved ? ".unserved" : "");
	if (!status) {
		soak_report(d->journal, SOAK_STATUS,
			    "the image was deleted while the target served it");
		return -1;
	}
	if (status != EBUSY) {
		soak_report(d->journal, SOAK_STATUS,
			    "rbd rm failed, but not because the image is in use (status=%d)",
			    status);
		return -1;
	}
	d->kept_images++;
	return 0;
}

/* -- the interface -- */

/* A field that is NULL: the driver has nothing to do. */
static const struct {
	/* shell command that succeeds if the service runs on this machine; why it does not */
	const char *needs, *lacks;
	void (*before)(struct driver *d); /* before each start */
	void (*exec)(const struct driver *d);
	int (*is_ready)(struct driver *d);
	const char *wait; /* description of the wait until it is ready */
	void (*backend)(const struct driver *d, const struct round *r, FILE *f);
	/*
	 * the volume is not in a file: make it, copy it to a file for the check, change a block of
	 * it as a seeded bug, remove it
	 */
	int (*create)(struct driver *d, off_t bytes);
	int (*fetch)(struct driver *d, const char *path);
	int (*damage)(struct driver *d);
	int (*remove)(struct driver *d);
	int (*exchange)(struct driver *d, const char *path);
	int (*give_back)(struct driver *d, const char *path);
	int (*delete)(struct driver *d);
} services[CHILD_KINDS] = {
	[CHILD_NBDKIT] = {.needs = "command -v nbdkit",
			  .lacks = "nbdkit is not installed",
			  .before = nbdkit_before,
			  .exec = nbdkit_exec,
			  .is_ready = nbdkit_is_ready,
			  .wait = "wait for nbdkit to listen",
			  .backend = nbdkit_backend},
	[CHILD_RELAY] = {.before = relay_before,
			 .exec = relay_exec,
			 .is_ready = relay_is_ready,
			 .wait = "wait for the relay to listen"},
	[CHILD_OSD] = {.needs = "test -d \"$SOAK_CLUSTER\" && test -e \"$GANTRY_PLUGINS/rbd.so\"",
		       .lacks = "no Ceph cluster, or built without the plugin rbd",
		       .before = osd_before,
		       .exec = osd_exec,
		       .is_ready = osd_is_ready,
		       .wait = "wait for the OSD to take part in the cluster",
		       .backend = osd_backend,
		       .create = image_create,
		       .fetch = image_fetch,
		       .damage = image_damage,
		       .remove = image_remove,
		       .exchange = image_exchange,
		       .give_back = image_return,
		       .delete = image_delete},
};

const char *service_lacks(enum child_kind kind)
{
	char command[256];

	if (!services[kind].needs)
		return NULL;
	snprintf(command, sizeof(command), "{ %s; } >/dev/null 2>&1", services[kind].needs);
	return system(command) == 0 ? NULL : services[kind].lacks;
}

void service_before(struct driver *d, enum child_kind kind)
{
	if (services[kind].before)
		services[kind].before(d);
}

void service_exec(const struct driver *d, enum child_kind kind)
{
	if (services[kind].exec)
		services[kind].exec(d);
}

int service_backend(const struct driver *d, const struct round *r, FILE *f)
{
	if (!services[d->topology->service].backend)
		return 0;
	services[d->topology->service].backend(d, r, f);
	return 1;
}

int service_is_ready(struct driver *d, enum child_kind kind)
{
	return !services[kind].is_ready || services[kind].is_ready(d);
}

static enum child_kind starting;

static int is_ready(struct driver *d)
{
	return service_is_ready(d, starting);
}

int service_start(struct driver *d)
{
	for (unsigned i = NBDKIT; i < CHILDREN; i++) {
		if (!d->children[i].used || d->children[i].pid)
			continue;
		child_start(d, &d->children[i]);
		starting = d->children[i].kind;
		if (wait_for(d, is_ready, services[starting].wait))
			return -1;
	}
	return 0;
}

struct child *service_draw(struct driver *d)
{
	unsigned n = 0, nth;

	for (unsigned i = NBDKIT; i < CHILDREN; i++)
		n += (unsigned)d->children[i].used;
	nth = n ? (unsigned)draw(d, n) : 0;
	for (unsigned i = NBDKIT; i < CHILDREN; i++)
		if (d->children[i].used && !nth--)
			return &d->children[i];
	return NULL;
}

int service_lose(struct driver *d)
{
	struct child *c = service_draw(d);

	if (!c)
		return 0;
	child_kill(d, c, -1);
	return service_start(d);
}

int service_create(struct driver *d, off_t bytes)
{
	if (!services[d->topology->service].create)
		return 0;
	return services[d->topology->service].create(d, bytes) ? -1 : 1;
}

int service_fetch(struct driver *d, const char *path)
{
	return services[d->topology->service].fetch ? services[d->topology->service].fetch(d, path)
						    : 0;
}

int service_damage(struct driver *d)
{
	if (!services[d->topology->service].damage)
		return 0;
	services[d->topology->service].damage(d);
	return 1;
}

int service_remove(struct driver *d)
{
	return services[d->topology->service].remove ? services[d->topology->service].remove(d) : 0;
}

int service_exchange(struct driver *d, const char *path)
{
	if (!services[d->topology->service].exchange)
		return 0;
	return services[d->topology->service].exchange(d, path) ? -1 : 1;
}

int service_return(struct driver *d, const char *path)
{
	if (!services[d->topology->service].give_back)
		return 0;
	return services[d->topology->service].give_back(d, path) ? -1 : 1;
}

int service_delete(struct driver *d)
{
	return services[d->topology->service].delete ? services[d->topology->service].delete(d) : 0;
}
