/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk_test.c - a power cut keeps synced data of the simulated disk; it loses, tears or keeps other
 * data
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "disk.h"

#define SEEDS 2000u
#define BLOCKS 8u
#define BLOCK 4096u
#define WORDS (BLOCK / 8)

#define CHECK(condition) \
	do { \
		if (!(condition)) \
			sim_fail("%s:%d: %s (errno=%d)", __FILE__, __LINE__, #condition, errno); \
	} while (0)
#define FAILS(call, error) CHECK((call) == -1 && errno == (error))

int __wrap_open(const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_unlink(const char *path);
int __wrap_unlinkat(int dir, const char *path, int flags);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_rename(const char *old, const char *new);
int __wrap_chmod(const char *path, mode_t mode);
int __wrap_stat(const char *path, struct stat *st);
int __wrap_lstat(const char *path, struct stat *st);
int __wrap_fstatat(int dir, const char *path, struct stat *st, int flags);
int __wrap_statx(int dir, const char *path, int flags, unsigned mask, struct statx *stx);
int __wrap_fstatfs(int fd, struct statfs *fs);
int __wrap_access(const char *path, int mode);
int __wrap_faccessat(int dir, const char *path, int mode, int flags);
int __wrap_flock(int fd, int operation);
int __wrap_ftruncate(int fd, off_t bytes);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t bytes);
int __wrap_fsync(int fd);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_sync_file_range(int fd, off_t offset, off_t bytes, unsigned flags);
int __wrap_fsetxattr(int fd, const char *name, const void *value, size_t bytes, int flags);
ssize_t __wrap_fgetxattr(int fd, const char *name, void *value, size_t bytes);
ssize_t __wrap_getxattr(const char *path, const char *name, void *value, size_t bytes);
ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t offset);
ssize_t __wrap_readlink(const char *path, char *out, size_t bytes);
ssize_t __wrap_readlinkat(int dir, const char *path, char *out, size_t bytes);
char *__wrap_realpath(const char *path, char *out);
DIR *__wrap_opendir(const char *path);
struct dirent *__wrap_readdir(DIR *dir);
int __wrap_closedir(DIR *dir);
int __wrap_dirfd(DIR *dir);
int __wrap_scandir(const char *path, struct dirent ***list_p, int (*filter)(const struct dirent *),
		   int (*compare)(const struct dirent **, const struct dirent **));
FILE *__wrap_fopen(const char *path, const char *mode);
int __wrap_fclose(FILE *file);
int __wrap_eventfd(unsigned value, int flags);

void sim_maps_drop_all(struct sim_proc *proc)
{
	(void)proc;
}

static const struct sim_disk_faults no_faults;

/* Run fn in a new process until fn returns. Returns the process, which end() kills and reaps. */
static struct sim_proc *run(uid_t uid, void *(*fn)(void *), void *arg)
{
	struct sim_proc *proc = sim_proc_start("test", uid, fn, arg);

	CHECK(sim_run(UINT64_MAX, SIM_NEVER) == SIM_IDLE);
	return proc;
}

static void end(struct sim_proc *proc)
{
	sim_proc_kill(proc, 0);
	sim_proc_reap(proc);
}

static void begin(uint64_t seed, const struct sim_disk_faults *faults)
{
	struct sim_rates rates;

	sim_procs_clear();
	sim_begin(seed);
	sim_rates_draw(&rates);
	sim_rates_set(&rates);
	sim_disk_begin(faults);
}

/* -- data over power cuts -- */

/*
 * Each write gives its block the next version number. By block: `written` is the last version whose
 * write was submitted, `done` the last whose write has returned, `synced` the last that is durable.
 */
static uint64_t written[2 * BLOCKS], done[2 * BLOCKS], synced[2 * BLOCKS];
static uint64_t n_whole, n_lost, n_torn, n_between, n_blocks;

/* Each block holds its version in all words. */
static void write_block(int fd, unsigned i)
{
	uint64_t block[WORDS];

	written[i]++;
	for (unsigned k = 0; k < WORDS; k++)
		block[k] = written[i];
	CHECK(__wrap_pwrite(fd, block, BLOCK, (off_t)i * BLOCK) == (ssize_t)BLOCK);
	done[i] = written[i];
}

static void *other_writer(void *arg)
{
	int fd = (int)(intptr_t)arg, n = (int)sim_draw(12);

	for (int k = 0; k < n; k++)
		write_block(fd, BLOCKS + sim_draw(BLOCKS));
	return NULL;
}

static void *writer(void *arg)
{
	int fd = __wrap_open("/vol/data", O_RDWR | O_CLOEXEC),
	    stable = __wrap_open("/vol/data", O_RDWR | O_DSYNC | O_DIRECT);
	uint64_t before[2 * BLOCKS];
	unsigned n = 5 + sim_draw(20);

	(void)arg;
	CHECK(fd >= 0 && stable >= 0);
	sim_thread_start(sim_proc_self(), "other", other_writer, (void *)(intptr_t)fd);
	for (unsigned k = 0; k < n; k++) {
		unsigned i = sim_draw(BLOCKS);

		switch (sim_draw(6)) {
		case 0:
			memcpy(before, done, sizeof(before));
			CHECK((sim_draw(2) != 0 ? __wrap_fdatasync(fd) : __wrap_fsync(fd)) == 0);
			memcpy(synced, before, sizeof(before));
			break;
		case 1:
			write_block(stable, i);
			synced[i] = written[i];
			break;
		default:
			write_block(fd, i);
		}
	}
	return NULL;
}

static void judge_block(unsigned i)
{
	uint64_t block[WORDS];
	bool torn = false;

	memset(block, 0, sizeof(block));
	sim_disk_get("/vol/data", block, BLOCK, (off_t)i * BLOCK);
	for (unsigned k = 0; k < WORDS; k++) {
		CHECK(block[k] >= synced[i] && block[k] <= written[i]);
		CHECK(block[k] == block[k / 64 * 64]); /* a sector of 512 bytes is never torn */
		torn |= block[k] != block[0];
	}
	if (written[i] == synced[i])
		return;
	n_blocks++;
	*(torn                     ? &n_torn
	  : block[0] == written[i] ? &n_whole
	  : block[0] == synced[i]  ? &n_lost
				   : &n_between) += 1;
}

static uint64_t data_run(uint64_t seed)
{
	const struct sim_disk_faults slow = {.slowest_ns = 100000};
	static uint64_t zeroes[BLOCKS * WORDS];

	begin(seed, seed % 2 != 0 ? &slow : &no_faults);
	memset(written, 0, sizeof(written));
	memset(done, 0, sizeof(done));
	memset(synced, 0, sizeof(synced));
	CHECK(sim_disk_put("/vol/data", zeroes, sizeof(zeroes)) == 0);
	end(run(0, writer, NULL));
	sim_disk_power_cut(true);
	for (unsigned i = 0; i < 2 * BLOCKS; i++)
		judge_block(i);
	return sim_trace();
}

/* A process is killed during a write or a sync. */
static void killed_run(uint64_t seed)
{
	const struct sim_disk_faults slow = {.slowest_ns = 100000};
	static uint64_t zeroes[BLOCKS * WORDS];
	struct sim_proc *proc;

	begin(seed, &slow);
	memset(written, 0, sizeof(written));
	memset(done, 0, sizeof(done));
	memset(synced, 0, sizeof(synced));
	CHECK(sim_disk_put("/vol/data", zeroes, sizeof(zeroes)) == 0);
	proc = sim_proc_start("killed", 0, writer, NULL);
	sim_run(UINT64_MAX, 1 + sim_draw(1000000));
	end(proc);
	sim_disk_power_cut(true);
	for (unsigned i = 0; i < 2 * BLOCKS; i++)
		judge_block(i);
}

/* -- directory entries after a power cut -- */

static uint64_t n_c, n_unlinked, n_renamed, n_xattr, n_name_of_file;

static void *namer(void *arg)
{
	int dir = __wrap_open("/vol", O_RDONLY | O_DIRECTORY), fd;

	(void)arg;
	fd = __wrap_open("/vol/a", O_RDWR | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0 && __wrap_pwrite(fd, "content", 7, 0) == 7 && __wrap_fsync(fd) == 0);
	CHECK(__wrap_fsetxattr(fd, "user.one", "1", 1, 0) == 0 && __wrap_fsync(fd) == 0);
	CHECK(__wrap_fsetxattr(fd, "user.one", "22", 2, 0) == 0 && __wrap_fdatasync(fd) == 0);
	CHECK(__wrap_rename("/vol/a", "/vol/b") == 0 && __wrap_fsync(dir) == 0);
	CHECK(__wrap_open("/vol/s", O_RDWR | O_CREAT, 0600) >= 0 &&
	      __wrap_open("/vol/u", O_RDWR | O_CREAT, 0600) >= 0);
	CHECK(__wrap_fsync(dir) == 0);
	fd = __wrap_open("/vol/f", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && __wrap_fsync(fd) == 0);
	CHECK(__wrap_open("/vol/c", O_RDWR | O_CREAT, 0600) >= 0);
	CHECK(__wrap_unlink("/vol/u") == 0);
	CHECK(__wrap_rename("/vol/s", "/vol/t") == 0);
	CHECK(__wrap_open("/vol/s", O_RDWR | O_CREAT, 0600) >= 0);
	CHECK(__wrap_open("/tmp/x", O_RDWR | O_CREAT, 0600) >= 0);
	return NULL;
}

static bool exists(const char *path)
{
	char byte;

	return sim_disk_get(path, &byte, 1, 0) >= 0;
}

static void name_run(uint64_t seed)
{
	struct sim_inode *inode;
	char text[16] = "";

	begin(seed, &no_faults);
	end(run(0, namer, NULL));
	sim_disk_power_cut(true);
	CHECK(!exists("/vol/a") && sim_disk_get("/vol/b", text, sizeof(text), 0) == 7 &&
	      strcmp(text, "content") == 0);
	CHECK(exists("/vol/s") || exists("/vol/t"));
	CHECK(!exists("/tmp/x") && exists("/proc/sys/kernel/random/boot_id"));
	CHECK(sim_path_find_inode(AT_FDCWD, "/vol/b", true, &inode) == 0 &&
	      sim_inode_xattr(inode, "user.one"));
	n_xattr += sim_inode_xattr(inode, "user.one")->n == 2;
	n_name_of_file += exists("/vol/f");
	n_c += exists("/vol/c");
	n_unlinked += !exists("/vol/u");
	n_renamed += exists("/vol/t");
}

/* -- failures -- */

static uint64_t n_write_errors, n_full, n_short, n_failed_kept, n_failed;

static void *failing_sync(void *arg)
{
	int a = __wrap_open("/vol/data", O_RDWR), b = __wrap_open("/vol/data", O_RDWR), c;
	uint64_t seen = 0, value = 7;

	(void)arg;
	CHECK(__wrap_pwrite(a, &value, 8, 0) == 8);
	FAILS(__wrap_fdatasync(a), EIO);
	CHECK(__wrap_pread(b, &seen, 8, 0) == 8 && seen == 7); /* still in the page cache */
	c = __wrap_open("/vol/data", O_RDWR);
	CHECK(__wrap_sync_file_range(a, (off_t)1 << 62, 1, SYNC_FILE_RANGE_WAIT_BEFORE) == 0);
	CHECK(__wrap_sync_file_range(c, (off_t)1 << 62, 1, SYNC_FILE_RANGE_WAIT_BEFORE) == 0);
	FAILS(__wrap_sync_file_range(b, (off_t)1 << 62, 1, SYNC_FILE_RANGE_WAIT_BEFORE), EIO);
	CHECK(__wrap_sync_file_range(b, (off_t)1 << 62, 1, SYNC_FILE_RANGE_WAIT_BEFORE) == 0);
	return NULL;
}

static void failing_sync_run(uint64_t seed)
{
	const struct sim_disk_faults faults = {.sync_fails_one_in = 1};
	uint64_t value = 1;

	begin(seed, &faults);
	CHECK(sim_disk_put("/vol/data", &value, 8) == 0);
	end(run(0, failing_sync, NULL));
	sim_disk_power_cut(true);
	CHECK(sim_disk_get("/vol/data", &value, 8, 0) == 8 && (value == 1 || value == 7));
	n_failed++;
	n_failed_kept += value == 7;
}

static void *failing_writes(void *arg)
{
	static uint8_t buffer[4 * BLOCK];
	int fd = __wrap_open("/vol/new", O_RDWR | O_CREAT, 0600);

	(void)arg;
	for (int k = 0; fd >= 0 && k < 20; k++) {
		ssize_t n = __wrap_pwrite(fd, buffer, sizeof(buffer),
					  (off_t)k * (off_t)sizeof(buffer));

		CHECK(n > 0 || errno == EIO || errno == ENOSPC);
		n_write_errors += n < 0 && errno == EIO;
		n_full += n < 0 && errno == ENOSPC;
		n_short += n > 0 && n < (ssize_t)sizeof(buffer);
	}
	return NULL;
}

/* -- locks -- */

static uint64_t locked_at, unlocked_at;

static void *second_lock(void *arg)
{
	int fd = __wrap_open("/tmp/lock", O_RDWR);

	(void)arg;
	FAILS(__wrap_flock(fd, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	CHECK(__wrap_flock(fd, LOCK_EX) == 0);
	locked_at = sim_now();
	return NULL;
}

static void *first_lock(void *arg)
{
	int fd = __wrap_open("/tmp/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600),
	    copy = __wrap_fcntl(fd, F_DUPFD_CLOEXEC, 0L);
	int shared = __wrap_open("/tmp/lock", O_RDONLY);

	(void)arg;
	CHECK(__wrap_flock(fd, LOCK_SH) == 0 && __wrap_flock(shared, LOCK_SH | LOCK_NB) == 0);
	FAILS(__wrap_flock(fd, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	CHECK(__wrap_flock(shared, LOCK_UN) == 0 && __wrap_flock(fd, LOCK_EX | LOCK_NB) == 0);
	sim_thread_start(sim_proc_self(), "second", second_lock, NULL);
	sim_block(NULL, NULL, sim_now() + 1000000000);
	CHECK(locked_at == 0 && __wrap_close(fd) == 0);
	sim_block(NULL, NULL, sim_now() + 1000000000);
	CHECK(locked_at == 0);
	unlocked_at = sim_now();
	CHECK(__wrap_close(copy) == 0);
	return NULL;
}

static void *third_lock(void *arg)
{
	int fd = __wrap_open("/tmp/lock", O_RDWR);

	(void)arg;
	/* the process that held the lock was killed */
	CHECK(__wrap_flock(fd, LOCK_EX | LOCK_NB) == 0);
	return NULL;
}

/* -- users -- */

static void *as_root(void *arg)
{
	int fd = __wrap_open("/vol/secret", O_RDWR | O_CREAT, 0600);

	(void)arg;
	CHECK(fd >= 0 && __wrap_open("/tmp/root", O_RDWR | O_CREAT, 0666) >= 0 &&
	      __wrap_mkdir("/run/gantry/p", 0700) == 0);
	CHECK(sim_path_bind("/tmp/root.sock", 0777, &locked_at) == 0);
	CHECK(sim_path_bind("/tmp/root.sock", 0777, &locked_at) == -EADDRINUSE);
	CHECK(sim_path_bind("/none/root.sock", 0777, &locked_at) == -ENOENT);
	CHECK(sim_path_socket("/tmp/root.sock") == &locked_at);
	CHECK(sim_path_bind("/tmp/dead.sock", 0777, &unlocked_at) == 0 &&
	      __wrap_chmod("/tmp/dead.sock", 0666) == 0);
	sim_path_socket_gone(&unlocked_at);
	return NULL;
}

static void *as_user(void *arg)
{
	struct stat st;
	int fd;

	(void)arg;
	FAILS(__wrap_open("/vol/secret", O_RDONLY), EACCES);
	CHECK(__wrap_open("/vol/secret", O_PATH) >= 0);
	FAILS(__wrap_open("/vol/mine", O_RDWR | O_CREAT, 0600), EACCES);
	FAILS(__wrap_unlink("/vol/secret"), EACCES);
	FAILS(__wrap_unlink("/tmp/root"), EPERM);
	FAILS(__wrap_chmod("/tmp/root", 0666), EPERM);
	FAILS(__wrap_open("/tmp/root", O_RDWR), EACCES);
	FAILS(__wrap_open("/run/gantry/p/x", O_RDONLY), EACCES);
	FAILS(__wrap_access("/run/gantry/p/x", F_OK), EACCES);
	FAILS(__wrap_faccessat(AT_FDCWD, "/vol", W_OK | X_OK, AT_EACCESS), EACCES);
	fd = __wrap_open("/tmp/mine", O_RDWR | O_CREAT | O_EXCL, 0666);
	CHECK(fd >= 0 && __wrap_fstat(fd, &st) == 0 && st.st_uid == 1000 &&
	      (st.st_mode & 07777) == 0644);
	FAILS(__wrap_open("/tmp/mine", O_RDWR | O_CREAT | O_EXCL, 0666), EEXIST);
	CHECK(!sim_path_socket("/tmp/root.sock") && errno == EACCES);
	CHECK(!sim_path_socket("/tmp/dead.sock") && errno == ECONNREFUSED);
	CHECK(!sim_path_socket("/tmp/no.sock") && errno == ENOENT);
	return NULL;
}

/* -- paths, space, attributes, streams -- */

static int is_plain(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void try_paths(void)
{
	char text[PATH_MAX], path[64];
	struct statfs fs;
	struct stat st, other;
	int dir, fd, again;

	CHECK(__wrap_mkdir("/vol/d", 0755) == 0);
	FAILS(__wrap_mkdir("/vol/d", 0755), EEXIST);
	dir = __wrap_open("/vol/d/", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	fd = __wrap_openat(dir, "../d//./f", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	CHECK(dir >= 0 && fd >= 0);
	FAILS(__wrap_open("/vol/d/f/", O_RDONLY), ENOTDIR);
	FAILS(__wrap_open("/vol/d/f/g", O_RDONLY), ENOTDIR);
	FAILS(__wrap_open("/vol/d", O_RDWR), EISDIR);
	FAILS(__wrap_open("/vol/d/f", O_RDONLY | O_DIRECTORY), ENOTDIR);
	FAILS(__wrap_open("/vol/no/f", O_RDWR | O_CREAT, 0600), ENOENT);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/f", dir);
	again = __wrap_open(path, O_RDONLY);
	CHECK(again >= 0 && __wrap_fstat(fd, &st) == 0 && __wrap_fstat(again, &other) == 0 &&
	      st.st_ino == other.st_ino);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	memset(text, 0, sizeof(text));
	CHECK(__wrap_readlink(path, text, sizeof(text)) == 8 && strcmp(text, "/vol/d/f") == 0);
	CHECK(__wrap_open(path, O_RDONLY | O_CLOEXEC) >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", __wrap_eventfd(0, 0));
	memset(text, 0, sizeof(text));
	CHECK(__wrap_readlink(path, text, sizeof(text)) > 0 &&
	      strcmp(text, "anon_inode:[eventfd]") == 0);
	FAILS(__wrap_readlink("/vol/d", text, sizeof(text)), EINVAL);
	CHECK(__wrap_realpath("/vol/../vol/d/./f", text) == text && strcmp(text, "/vol/d/f") == 0);
	CHECK(!__wrap_realpath("/nothing", text) && errno == ENOENT);
	CHECK(sim_disk_symlink("d/f", "/vol/link") == 0 &&
	      sim_disk_symlink("/vol/loop", "/vol/loop") == 0);
	CHECK(__wrap_stat("/vol/link", &other) == 0 && other.st_ino == st.st_ino);
	CHECK(__wrap_lstat("/vol/link", &other) == 0 && S_ISLNK(other.st_mode));
	CHECK(__wrap_realpath("/vol/link", text) == text && strcmp(text, "/vol/d/f") == 0);
	FAILS(__wrap_open("/vol/loop", O_RDONLY), ELOOP);
	FAILS(__wrap_open("/vol/link", O_RDONLY | O_NOFOLLOW), ELOOP);
	again = __wrap_open("/vol/link", O_PATH | O_NOFOLLOW);
	CHECK(__wrap_readlinkat(again, "", text, sizeof(text)) == 3);
	CHECK(__wrap_fstatfs(again, &fs) == 0 && fs.f_type == 0xef53);
	again = __wrap_open("/vol/d/f", O_RDWR | O_DIRECT);
	FAILS((int)__wrap_pwrite(again, text, 100, 0), EINVAL);
	FAILS((int)__wrap_pread(again, text, 512, 100), EINVAL);
	CHECK(__wrap_pwrite(again, text, 512, 1024) == 512 &&
	      __wrap_pread(again, text, 512, 512) == 512 && text[0] == 0);
	FAILS(__wrap_ioctl(fd, 0x1234, NULL), ENOTTY);
	FAILS(__wrap_fcntl(fd, F_ADD_SEALS, 0L), EINVAL);
	CHECK(__wrap_unlink("/vol/d/f") == 0 && __wrap_fstat(fd, &st) == 0 && st.st_nlink == 0);
	FAILS(__wrap_fstatat(dir, "f", &st, AT_SYMLINK_NOFOLLOW), ENOENT);
	CHECK(__wrap_open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0);
	FAILS(__wrap_open("/sys/block", O_RDONLY), ENOENT);
}

static void try_space(void)
{
	int fd = __wrap_open("/vol/space", O_RDWR | O_CREAT, 0600);
	char byte = 'x';
	struct stat st;
	struct statx stx;

	CHECK(__wrap_ftruncate(fd, 1 << 20) == 0 && __wrap_fstat(fd, &st) == 0 &&
	      st.st_size == 1 << 20 && st.st_blocks == 0);
	CHECK(__wrap_pwrite(fd, &byte, 1, 5000) == 1 && __wrap_fallocate(fd, 0, 8192, 8192) == 0);
	CHECK(__wrap_fstat(fd, &st) == 0 && st.st_blocks == 24);
	CHECK(__wrap_lseek(fd, 0, SEEK_DATA) == 4096 && __wrap_lseek(fd, 4096, SEEK_HOLE) == 16384);
	FAILS((int)__wrap_lseek(fd, 16384, SEEK_DATA), ENXIO);
	CHECK(__wrap_fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 5000, 10) == 0);
	CHECK(__wrap_pread(fd, &byte, 1, 5000) == 1 && byte == 0);
	CHECK(__wrap_fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096 + 100) ==
	      0);
	CHECK(__wrap_fstat(fd, &st) == 0 && st.st_blocks == 16 && st.st_size == 1 << 20);
	CHECK(__wrap_fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1 << 21, 4096) == 0);
	CHECK(__wrap_statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &stx) == 0 &&
	      stx.stx_ino == st.st_ino);
	CHECK(stx.stx_btime.tv_sec != 0 && __wrap_lseek(fd, 0, SEEK_END) == 1 << 20);
	CHECK(__wrap_pread(fd, &byte, 1, 1 << 20) == 0);
}

static void try_attributes(void)
{
	int fd = __wrap_open("/vol/space", O_RDWR);
	char value[8] = "";

	FAILS(__wrap_fgetxattr(fd, "user.a", value, 8), ENODATA);
	CHECK(__wrap_fsetxattr(fd, "user.a", "12345", 5, 0) == 0);
	FAILS(__wrap_fgetxattr(fd, "user.a", value, 4), ERANGE);
	CHECK(__wrap_getxattr("/vol/space", "user.a", value, 8) == 5 &&
	      strcmp(value, "12345") == 0);
	FAILS(__wrap_fsetxattr(__wrap_open("/tmp/t", O_RDWR | O_CREAT, 0600), "user.a", "1", 1, 0),
	      ENOTSUP);
}

static void try_streams(void)
{
	FILE *file = __wrap_fopen("/etc/conf", "we");
	struct dirent **list, *entry;
	char line[32], *text;
	size_t bytes;
	DIR *dir;
	int n = 0;

	CHECK(file && fprintf(file, "one\ntwo\n") == 8 && sim_proc_self()->n_files_open == 1 &&
	      __wrap_fclose(file) == 0);
	file = __wrap_fopen("/etc/conf", "re");
	CHECK(fgets(line, sizeof(line), file) && fgets(line, sizeof(line), file) &&
	      strcmp(line, "two\n") == 0);
	CHECK(fseek(file, 1, SEEK_SET) == 0 && fgetc(file) == 'n' && __wrap_fclose(file) == 0);
	CHECK(sim_proc_self()->n_files_open == 0 && !__wrap_fopen("/etc/none", "r") &&
	      errno == ENOENT);
	file = open_memstream(&text, &bytes);
	CHECK(file && __wrap_fclose(file) == 0 && sim_proc_self()->n_files_open == 0);
	free(text);
	dir = __wrap_opendir("/etc");
	while ((entry = __wrap_readdir(dir)))
		n++;
	CHECK(n == 4 && __wrap_dirfd(dir) >= 3 && __wrap_closedir(dir) == 0);
	n = __wrap_scandir("/etc", &list, is_plain, alphasort);
	CHECK(n == 2 && strcmp(list[0]->d_name, "conf") == 0 &&
	      strcmp(list[1]->d_name, "machine-id") == 0);
	while (n > 0)
		free(list[--n]);
	free(list);
}

static void *the_rest(void *arg)
{
	(void)arg;
	try_paths();
	try_space();
	try_attributes();
	try_streams();
	return NULL;
}

int main(void)
{
	const struct sim_disk_faults failing = {.write_fails_one_in = 20, .full_one_in = 10};
	char boot_a[40], boot_b[40], text[8];
	uint64_t trace;

	sim_images_load(NULL);
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		data_run(seed);
	printf("data: %lu unsynced blocks in %u seeds: kept %lu, lost %lu, between %lu, torn %lu\n",
	       n_blocks, SEEDS, n_whole, n_lost, n_between, n_torn);
	CHECK(n_whole != 0 && n_lost != 0 && n_torn != 0);
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		killed_run(seed);
	trace = data_run(17);
	data_run(18);
	CHECK(trace == data_run(17));
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		name_run(seed);
	printf("names in %u seeds: created %lu, removed %lu, renamed %lu, name synced with its file %lu, attribute %lu\n",
	       SEEDS, n_c, n_unlinked, n_renamed, n_name_of_file, n_xattr);
	for (uint64_t seed = 1; seed <= 200; seed++)
		failing_sync_run(seed);
	printf("failed syncs: %lu, data kept nevertheless %lu\n", n_failed, n_failed_kept);
	for (uint64_t seed = 1; seed <= 200; seed++) {
		begin(seed, &failing);
		end(run(0, failing_writes, NULL));
	}
	printf("failed writes: EIO %lu, ENOSPC %lu, short %lu\n", n_write_errors, n_full, n_short);

	begin(1, &no_faults);
	end(run(0, first_lock, NULL));
	CHECK(locked_at >= unlocked_at && unlocked_at != 0);
	end(run(0, third_lock, NULL));
	end(run(0, third_lock, NULL));
	end(run(0, as_root, NULL));
	end(run(1000, as_user, NULL));
	end(run(0, the_rest, NULL));
	CHECK(sim_disk_put("/vol/p", "pp", 2) == 0 && sim_disk_put("/vol/q", "q", 1) == 0);
	CHECK(sim_disk_swap("/vol/p", "/vol/q") == 0);
	CHECK(sim_disk_get("/proc/sys/kernel/random/boot_id", boot_a, 36, 0) == 36);
	sim_disk_power_cut(true);
	CHECK(sim_disk_get("/vol/p", text, 8, 0) == 1 && sim_disk_get("/vol/q", text, 8, 0) == 2);
	CHECK(sim_disk_get("/proc/sys/kernel/random/boot_id", boot_b, 36, 0) == 36 &&
	      memcmp(boot_a, boot_b, 36) != 0);
	CHECK(sim_disk_get("/vol/none", text, 8, 0) == -ENOENT);
	printf("locks, users, paths, space, attributes, streams: ok\n");
	return 0;
}
