/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.c - protection domains and memory regions. A key is not reused: it has 24 bits of a
 * counter, and 8 bits that vary.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "priv.h"

#define FIRST_INDEX 9

static struct fv_mr **mrs; /* by index; NULL: deregistered */
static uint32_t n_mrs, room, next_handle;

/* -- protection domains -- */

struct ibv_pd *fv_pd_alloc(struct ibv_context *context, int hidden)
{
	struct fv_pd *pd = fv_alloc(sizeof(*pd));

	pd->pd.context = context;
	pd->pd.handle = next_handle++;
	pd->obj.hidden = hidden;
	fv_context(context)->obj.users++;
	fv_device_of(context)->live[FV_PD]++;
	fv_add(FV_PD, &pd->obj, pd);
	return &pd->pd;
}

void fv_pd_free(struct fv_pd *pd)
{
	fv_context(pd->pd.context)->obj.users--;
	fv_device_of(pd->pd.context)->live[FV_PD]--;
	fv_remove(&pd->obj);
	free(pd);
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	int err = FV_ENTER(ibv_alloc_pd);
	struct fv_device *device = fv_device_of(context);

	if (!err && device->live[FV_PD] >= (unsigned)device->conf.attr.max_pd)
		err = ENOMEM;
	return fv_leave_ptr(err ? NULL : fv_pd_alloc(context, 0), err);
}

int ibv_dealloc_pd(struct ibv_pd *base)
{
	int err = FV_ENTER(ibv_dealloc_pd);
	struct fv_pd *pd = (struct fv_pd *)base;

	if (!err)
		err = fv_check(FV_PD, base, "ibv_dealloc_pd");
	if (!err && pd->obj.users)
		err = EBUSY;
	if (!err)
		fv_pd_free(pd);
	return fv_leave(err);
}

/* -- memory regions -- */

/* The low eight bits differ between successive regions, like the variant part of real keys. */
static uint32_t make_key(uint32_t index)
{
	return index << 8 | ((index * 0x9d + 0x35) & 0xff);
}

static uint32_t add_index(struct fv_mr *mr)
{
	if (n_mrs == room) {
		struct fv_mr **more = fv_alloc((room * 2 + 64) * sizeof(*more));

		if (mrs)
			memcpy(more, mrs, n_mrs * sizeof(*more));
		free(mrs);
		mrs = more;
		room = room * 2 + 64;
	}
	mrs[n_mrs] = mr;
	return FIRST_INDEX + n_mrs++;
}

static struct fv_mr *find(uint32_t key)
{
	uint32_t index = (key >> 8) - FIRST_INDEX;

	return index < n_mrs && mrs[index] && make_key(key >> 8) == key ? mrs[index] : NULL;
}

static int is_mapped(void *addr, size_t length)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)addr & ~(page - 1);

	return msync((void *)start, length + ((uintptr_t)addr - start), MS_ASYNC) == 0;
}

static int check_region(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			unsigned access)
{
	const struct fv_device *device = fv_device_of(pd->context);
	const unsigned known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND |
			       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_OPTIONAL_RANGE;

	const unsigned remote_writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	if (access & ~known || (access & remote_writes && !(access & IBV_ACCESS_LOCAL_WRITE)))
		return EINVAL;
	if (access & IBV_ACCESS_ON_DEMAND &&
	    !(device->conf.odp_caps.general_caps & IBV_ODP_SUPPORT))
		return EOPNOTSUPP;
	if (length == 0 || length > device->conf.attr.max_mr_size ||
	    (uintptr_t)addr + length < length || iova + length < length)
		return EINVAL;
	if (device->live[FV_MR] >= (unsigned)device->conf.attr.max_mr)
		return ENOMEM;
	return is_mapped(addr, length) ? 0 : EFAULT;
}

/* The caller holds the lock; reg() releases it. */
static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			  unsigned access, int err, const char *function)
{
	struct fv_mr *mr;

	if (!err)
		err = fv_check(FV_PD, pd, function);
	if (!err)
		err = check_region(pd, addr, length, iova, access);
	if (err)
		return fv_leave_ptr(NULL, err);
	mr = fv_alloc(sizeof(*mr));
	mr->mr = (struct ibv_mr){.context = pd->context,
				 .pd = pd,
				 .addr = addr,
				 .length = length,
				 .handle = next_handle++};
	mr->mr.lkey = make_key(add_index(mr));
	mr->mr.rkey = access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC)
			      ? mr->mr.lkey
			      : 0;
	mr->iova = iova;
	mr->access = access;
	((struct fv_pd *)pd)->obj.users++;
	fv_device_of(pd->context)->live[FV_MR]++;
	fv_add(FV_MR, &mr->obj, mr);
	return fv_leave_ptr(mr, 0);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return reg(pd, addr, length, (uintptr_t)addr, (unsigned)access, FV_ENTER(ibv_reg_mr),
		   "ibv_reg_mr");
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	return reg(pd, addr, length, iova, (unsigned)access, FV_ENTER(ibv_reg_mr_iova),
		   "ibv_reg_mr_iova");
}

/*
 * The headers replace a call of ibv_reg_mr() by this function if the access flags are not a
 * compile-time constant, or contain an optional flag. A failure that a test injects into
 * ibv_reg_mr() applies here, too.
 */
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned access)
{
	int err = 0;

	if (iova == (uintptr_t)addr)
		err = fv_leave(FV_ENTER(ibv_reg_mr));
	return reg(pd, addr, length, iova, access,
		   err ? (fv_lock(), err) : FV_ENTER(ibv_reg_mr_iova2), "ibv_reg_mr_iova2");
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	int err = FV_ENTER(ibv_reg_dmabuf_mr);

	(void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
	return fv_leave_ptr(NULL, err ? err : EOPNOTSUPP);
}

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	int err = FV_ENTER(ibv_rereg_mr);

	(void)mr, (void)flags, (void)pd, (void)addr, (void)length, (void)access;
	errno = err ? err : EOPNOTSUPP;
	fv_leave(0);
	return IBV_REREG_MR_ERR_INPUT;
}

static void free_mr(struct fv_mr *mr)
{
	mrs[(mr->mr.lkey >> 8) - FIRST_INDEX] = NULL;
	((struct fv_pd *)mr->mr.pd)->obj.users--;
	fv_device_of(mr->mr.context)->live[FV_MR]--;
	fv_remove(&mr->obj);
	free(mr);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int err = FV_ENTER(ibv_dereg_mr);

	if (!err)
		err = fv_check(FV_MR, mr, "ibv_dereg_mr");
	if (!err)
		free_mr((struct fv_mr *)mr);
	return fv_leave(err);
}

unsigned fake_mr_access(const struct ibv_mr *mr)
{
	return ((const struct fv_mr *)mr)->access;
}

void *fv_memory(uint32_t key, int remote, const struct ibv_pd *pd, uint64_t addr, uint64_t len,
		unsigned access)
{
	const struct fv_mr *mr = find(key);

	if (!mr || mr->mr.pd != pd || (mr->access & access) != access || (remote && !mr->mr.rkey))
		return NULL;
	if (addr < mr->iova || addr - mr->iova > mr->mr.length ||
	    len > mr->mr.length - (addr - mr->iova))
		return NULL;
	return (char *)mr->mr.addr + (addr - mr->iova);
}

int ibv_fork_init(void)
{
	return fv_leave(FV_ENTER(ibv_fork_init));
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

void fv_memory_renumber(void)
{
	n_mrs = 0;
}

void fv_memory_reset(void)
{
	struct fv_obj *obj;

	while ((obj = fv_first(FV_MR)))
		free_mr(obj->self);
	while ((obj = fv_first(FV_PD)))
		fv_pd_free(obj->self);
	free(mrs);
	mrs = NULL;
	n_mrs = room = next_handle = 0;
}
