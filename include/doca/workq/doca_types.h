/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_types.h - types that all headers share, for programs of the WorkQ interface (DOCA before
 * tasks)
 */
#ifndef DOCA_WORKQ_TYPES_H
#define DOCA_WORKQ_TYPES_H

#include_next <doca_types.h>

/* Old names of the access rights to a map. */
#define DOCA_ACCESS_LOCAL_READ_ONLY DOCA_ACCESS_FLAG_LOCAL_READ_ONLY
#define DOCA_ACCESS_LOCAL_READ_WRITE DOCA_ACCESS_FLAG_LOCAL_READ_WRITE
#define DOCA_ACCESS_RDMA_READ DOCA_ACCESS_FLAG_RDMA_READ
#define DOCA_ACCESS_RDMA_WRITE DOCA_ACCESS_FLAG_RDMA_WRITE
#define DOCA_ACCESS_RDMA_ATOMIC DOCA_ACCESS_FLAG_RDMA_ATOMIC
#define DOCA_ACCESS_DPU_READ_ONLY DOCA_ACCESS_FLAG_PCI_READ_ONLY
#define DOCA_ACCESS_DPU_READ_WRITE DOCA_ACCESS_FLAG_PCI_READ_WRITE

/* Types of jobs: a range of numbers for each library. */
#define DOCA_ACTION_SDK_RANGE 16
#define DOCA_ACTION_DMA_FIRST (1 << DOCA_ACTION_SDK_RANGE)

#endif
