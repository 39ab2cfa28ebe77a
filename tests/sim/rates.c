/* SPDX-License-Identifier: BSD-3-Clause */
/* rates.c - the rates of the scheduler, as drawn for each run */
#include "sim.h"

void sim_rates_draw(struct sim_rates *r)
{
	*r = (struct sim_rates){
		.model = (enum sim_model)sim_draw(3),
		.switch_one_in = 2u << sim_draw(9),
		.call_one_in = 1u << sim_draw(5),
		.drain_one_in = 1u << (2 * sim_draw(4)),
		.access_ns = 1u << sim_draw(4),
		.call_ns = 100u << sim_draw(5),
	};
}
