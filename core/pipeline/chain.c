/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/pipeline.h"
#include "pipeline/pipeline_priv.h"

#include "io/pool.h"

#include <errno.h>
#include <stdlib.h>

struct gantry_chain {
	struct gantry_io *ios;
	struct gantry_hop hops[GANTRY_CHAIN_STAGES + 3];
};

int gn_chain_create(struct gn_lane *lane, const struct gantry_hop *owner, const struct gantry_hop *terminal, uint32_t n,
		    struct gantry_chain **chain_p, struct gantry_io **ios_p)
{
	struct gantry_chain *chain;
	uint32_t n_stages = gn_pipeline_length(lane->pipeline);
	struct gantry_hop *hop;

	if (n == 0 || n > UINT16_MAX)
		return -EINVAL;
	chain = calloc(1, sizeof(*chain));
	if (chain == NULL)
		return -ENOMEM;
	chain->ios = gn_io_pool(n, &chain->hops[1]);
	if (chain->ios == NULL) {
		free(chain);
		return -ENOMEM;
	}
	hop = chain->hops;
	*hop++ = gn_io_guard(lane->double_completions);
	*hop++ = *owner;
	for (uint32_t i = 0; i < n_stages; i++)
		gn_pipeline_hop(lane->pipeline, i, lane->pub.index, hop++);
	*hop = *terminal;
	*chain_p = chain;
	*ios_p = chain->ios;
	return 0;
}

void gn_chain_destroy(struct gantry_chain *chain)
{
	if (chain == NULL)
		return;
	free(chain->ios);
	free(chain);
}
