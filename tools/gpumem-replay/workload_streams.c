/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads of several streams: a pipeline, and random operations. */
#include <stdlib.h>

#include "format/memory.h"
#include "tools/gpumem-replay/script.h"

/* ---- pipeline ---- */

enum pipeline_key {
	PIPELINE_SEED,
	PIPELINE_ITEMS,
	PIPELINE_PRODUCERS,
	PIPELINE_CONSUMERS,
	PIPELINE_DEPTH,
	PIPELINE_SIZE,
};

/* Consumers take longer than producers, so frees come long before the work ends. */
#define PRODUCE_NS (20 * GPC_US)
#define CONSUME_NS (60 * GPC_US)

void gpc_workload_pipeline(struct gpc_script *script)
{
	const uint64_t *values = script->values;
	uint64_t most = values[PIPELINE_SIZE];
	uint64_t least = most / 64 ? most / 64 : 1;

	for (uint64_t i = 0; i < values[PIPELINE_ITEMS]; i++) {
		uint32_t producer = (uint32_t)(i % values[PIPELINE_PRODUCERS]);
		uint32_t consumer =
			(uint32_t)(values[PIPELINE_PRODUCERS] +
				   gpc_script_random(script, values[PIPELINE_CONSUMERS]));
		struct gpc_buffer item = gpc_script_alloc(
			script, producer, gpc_script_random_size(script, least, most));
		struct gpc_buffer result = gpc_script_alloc(script, consumer, item.size / 8 + 1);

		gpc_script_work(script, producer, PRODUCE_NS, &item);
		gpc_script_work(script, consumer,
			CONSUME_NS + gpc_script_random(script, CONSUME_NS), &item);
		gpc_script_work(script, consumer, 0, &result);
		gpc_script_free(script, &item);
		gpc_script_free(script, &result);
		if ((i + 1) % values[PIPELINE_DEPTH] == 0)
			gpc_script_sync(script);
	}
}

/* ---- random ---- */

enum random_key {
	RANDOM_SEED,
	RANDOM_STEPS,
	RANDOM_STREAMS,
	RANDOM_BLOCKS,
	RANDOM_SIZE,
};

#define RANDOM_LEAST   512
#define RANDOM_MOST_NS (400 * GPC_US)

static void random_step(struct gpc_script *script, struct gpc_buffer *block)
{
	uint32_t stream = (uint32_t)gpc_script_random(script, script->values[RANDOM_STREAMS]);
	uint64_t dice = gpc_script_random(script, 1000);

	if (dice < 3)
		gpc_script_sync(script);
	else if (dice < 20)
		gpc_script_order(script, stream,
			(uint32_t)gpc_script_random(script, script->values[RANDOM_STREAMS]));
	else if (!block->identity)
		*block = gpc_script_alloc(script, stream,
			gpc_script_random_size(script, RANDOM_LEAST, script->values[RANDOM_SIZE]));
	else if (dice < 400)
		gpc_script_free(script, block);
	else
		gpc_script_work(
			script, stream, 1 + gpc_script_random(script, RANDOM_MOST_NS), block);
}

void gpc_workload_random(struct gpc_script *script)
{
	uint64_t n = script->values[RANDOM_BLOCKS];
	struct gpc_buffer *blocks = gpc_new(n, sizeof *blocks);

	for (uint64_t i = 0; i < script->values[RANDOM_STEPS]; i++)
		random_step(script, &blocks[gpc_script_random(script, n)]);
	free(blocks);
}
