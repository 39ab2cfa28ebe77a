/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * granted.h - assumptions of programs about the headers, in C and in C++: macros, types, and other
 * headers that they include
 */
#ifdef __cplusplus
#include <algorithm>
#endif

#include <doca_clock.h>
static const char pci[DOCA_DEVINFO_PCI_ADDR_SIZE] = "03:00.0";

#include <doca_error.h>
static inline void *zeroed(void *p, uint32_t n)
{
	assert(p);
	return memset(p, 0, n);
}

#include <doca_dma.h>
static const char *const format = "%" PRIu64;

#include <doca_argp.h>
#include <doca_buf_inventory.h>
#include <doca_log.h>
#include <doca_pe.h>
#include <doca_rdma.h>
#include <doca_version.h>

DOCA_LOG_REGISTER(A::B);

static inline bool logs(doca_error_t error, doca_error_t other)
{
	DOCA_LOG_CRIT("format only");
	DOCA_LOG_ERR("%s of %s", doca_error_get_descr(error), pci);
	DOCA_LOG_WARN("%d", (int)error);
	DOCA_LOG_INFO("%s", doca_version());
	DOCA_LOG_DBG(format, (uint64_t)2);
	DOCA_LOG_TRC("%d", 3);
	DOCA_ERROR_PROPAGATE(error, other);
	return DOCA_IS_ERROR(error);
}

/* Programs initialise either member of the union. */
static const union doca_data by_number = {.u64 = 5};
static const union doca_data by_pointer = {.ptr = NULL};

struct versioned {
	DOCA_STRUCT_START;
	int x;
};

static inline void construct(struct versioned *v)
{
	DOCA_STRUCT_PTR_MEMSET_CTOR(v);
	v->x = DOCA_STRUCT_GET_VERSION(v) == DOCA_VERSION_EXACT;
}

/* Programs cast a completion callback of one kind of task to that of another kind. */
typedef void (*doca_any_done_t)(struct doca_dma_task_memcpy *task, union doca_data task_data,
				union doca_data ctx_data);

static inline doca_any_done_t cast(doca_task_completion_cb_t done)
{
	return (doca_any_done_t)done;
}

/* Both constants are integers. */
static inline int longest_name(void)
{
#ifdef __cplusplus
	return std::max(DOCA_DEVINFO_IFACE_NAME_SIZE, IB_DEVICE_NAME_MAX);
#else
	return DOCA_DEVINFO_IFACE_NAME_SIZE > IB_DEVICE_NAME_MAX ? DOCA_DEVINFO_IFACE_NAME_SIZE
								 : IB_DEVICE_NAME_MAX;
#endif
}

int uses_all(void);
int uses_all(void)
{
	struct versioned v;

	construct((struct versioned *)zeroed(&v, sizeof(v)));
	return logs(DOCA_SUCCESS, DOCA_ERROR_AGAIN) + v.x + longest_name() + (!by_pointer.ptr) +
	       (int)by_number.u64 + (!cast(NULL));
}
