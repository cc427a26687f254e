/* SPDX-License-Identifier: Apache-2.0 */
/* The workloads: training, with a side stream; inference; a pipeline of streams; random operations. */
#include <stdlib.h>

#include "base/bytes.h"
#include "format/memory.h"
#include "tests/bench/replay/script.h"

enum {
	COMPUTE,
	SIDE, /* communication, or copies */
};

/* ---- training ---- */

enum training_key {
	TRAINING_SEED,
	TRAINING_STEPS,
	TRAINING_LAYERS,
	TRAINING_WIDTH,
	TRAINING_BUCKET,
	TRAINING_VARY,
};

/* A layer: its weights, four activations wide, and its other buffers. */
struct layer {
	struct gpc_buffer weights;
	struct gpc_buffer moments; /* the optimizer's two moments, kept from the first step on */
	struct gpc_buffer gradient;
	struct gpc_buffer activation;
};

#define WEIGHTS_FACTOR 4

#define LAYER_NS  (300 * GPC_US)
#define REDUCE_NS (500 * GPC_US)
#define UPDATE_NS (100 * GPC_US)

static void forward(struct gpc_script *script, struct layer *layer, uint64_t width)
{
	struct gpc_buffer workspace = gpc_script_alloc(script, COMPUTE, width / 4 + 1);

	layer->activation = gpc_script_alloc(script, COMPUTE, width);
	gpc_script_work(script, COMPUTE, LAYER_NS, &layer->weights);
	gpc_script_work(script, COMPUTE, 0, &workspace);
	gpc_script_work(script, COMPUTE, 0, &layer->activation);
	gpc_script_free(script, &workspace);
}

/* Consumes the gradient of the layer above, and leaves its own. */
static void backward(
	struct gpc_script *script, struct layer *layer, uint64_t width, struct gpc_buffer *above)
{
	struct gpc_buffer own = gpc_script_alloc(script, COMPUTE, width);

	layer->gradient = gpc_script_alloc(script, COMPUTE, layer->weights.size);
	gpc_script_work(script, COMPUTE, 2 * LAYER_NS, &layer->activation);
	gpc_script_work(script, COMPUTE, 0, &layer->gradient);
	gpc_script_work(script, COMPUTE, 0, above);
	gpc_script_work(script, COMPUTE, 0, &own);
	gpc_script_free(script, above);
	gpc_script_free(script, &layer->activation);
	*above = own;
}

/* All-reduces several gradients at once, through a buffer of the side stream. */
static void reduce(struct gpc_script *script, struct layer *layers, uint64_t n)
{
	struct gpc_buffer bucket = gpc_script_alloc(script, SIDE, n * layers[0].weights.size);

	gpc_script_work(script, SIDE, REDUCE_NS, &bucket);
	for (uint64_t i = 0; i < n; i++)
		gpc_script_work(script, SIDE, 0, &layers[i].gradient);
	gpc_script_free(script, &bucket);
}

static void update(struct gpc_script *script, struct layer *layer)
{
	struct gpc_buffer update = gpc_script_alloc(script, COMPUTE, layer->weights.size);

	if (!layer->moments.identity)
		layer->moments = gpc_script_alloc(script, COMPUTE, 2 * layer->weights.size);
	gpc_script_work(script, COMPUTE, UPDATE_NS, &layer->weights);
	gpc_script_work(script, COMPUTE, 0, &layer->moments);
	gpc_script_work(script, COMPUTE, 0, &layer->gradient);
	gpc_script_work(script, COMPUTE, 0, &update);
	gpc_script_free(script, &update);
	gpc_script_free(script, &layer->gradient);
}

static void train_step(struct gpc_script *script, struct layer *layers)
{
	uint64_t n = script->values[TRAINING_LAYERS];
	uint64_t bucket = script->values[TRAINING_BUCKET];
	uint64_t percent = 100 - gpc_script_random(script, script->values[TRAINING_VARY] + 1);
	uint64_t width = script->values[TRAINING_WIDTH] * percent / 100;
	struct gpc_buffer batch = gpc_script_alloc(script, SIDE, width / 8 + 1);
	struct gpc_buffer above;

	/* The next batch is copied on the side stream, and used by the first layer. */
	gpc_script_work(script, SIDE, 50 * GPC_US, &batch);
	gpc_script_work(script, COMPUTE, 10 * GPC_US, &batch);
	gpc_script_free(script, &batch);
	for (uint64_t i = 0; i < n; i++)
		forward(script, &layers[i], width);
	above = gpc_script_alloc(script, COMPUTE, width);
	for (uint64_t i = n; i-- > 0;) {
		backward(script, &layers[i], width, &above);
		if (i % bucket == 0)
			reduce(script, &layers[i], bucket < n - i ? bucket : n - i);
	}
	gpc_script_free(script, &above);
	gpc_script_order(script, COMPUTE, SIDE);
	for (uint64_t i = 0; i < n; i++)
		update(script, &layers[i]);
	/* The loss is read on the host. */
	gpc_script_sync(script);
}

void gpc_workload_training(struct gpc_script *script)
{
	uint64_t n = script->values[TRAINING_LAYERS];
	struct layer *layers = gpc_new(n, sizeof *layers);

	for (uint64_t i = 0; i < n; i++)
		layers[i].weights = gpc_script_alloc(
			script, COMPUTE, WEIGHTS_FACTOR * script->values[TRAINING_WIDTH]);
	for (uint64_t i = 0; i < script->values[TRAINING_STEPS]; i++)
		train_step(script, layers);
	free(layers);
}

/* ---- inference ---- */

enum inference_key {
	INFERENCE_SEED,
	INFERENCE_REQUESTS,
	INFERENCE_BATCH,
	INFERENCE_LAYERS,
	INFERENCE_TOKENS,
	INFERENCE_TOKEN,
};

#define MAX_PROMPT 256 /* tokens */
#define TOKEN_NS   (30 * GPC_US)

struct answer {
	uint64_t n_left;           /* tokens; 0: no request */
	uint64_t n_tokens;         /* in the cache */
	struct gpc_buffer *caches; /* of each layer */
};

static void begin_answer(struct gpc_script *script, struct answer *answer)
{
	uint64_t token = script->values[INFERENCE_TOKEN];
	struct gpc_buffer prompt;

	answer->n_tokens = 1 + gpc_script_random(script, MAX_PROMPT);
	answer->n_left = 1 + gpc_script_random(script, script->values[INFERENCE_TOKENS]);
	prompt = gpc_script_alloc(script, SIDE, answer->n_tokens * 8);
	gpc_script_work(script, SIDE, 20 * GPC_US, &prompt);
	for (uint64_t i = 0; i < script->values[INFERENCE_LAYERS]; i++) {
		answer->caches[i] = gpc_script_alloc(script, COMPUTE, answer->n_tokens * token);
		gpc_script_work(script, COMPUTE, answer->n_tokens * GPC_US, &answer->caches[i]);
	}
	gpc_script_work(script, COMPUTE, TOKEN_NS, &prompt);
	gpc_script_free(script, &prompt);
}

/* Generates a token: copies each layer's cache into one with room for a token more. */
static void go_on(struct gpc_script *script, struct answer *answer)
{
	uint64_t size = ++answer->n_tokens * script->values[INFERENCE_TOKEN];

	answer->n_left--;
	for (uint64_t i = 0; i < script->values[INFERENCE_LAYERS]; i++) {
		struct gpc_buffer longer = gpc_script_alloc(script, COMPUTE, size);

		gpc_script_work(script, COMPUTE, TOKEN_NS, &answer->caches[i]);
		gpc_script_work(script, COMPUTE, 0, &longer);
		gpc_script_free(script, &answer->caches[i]);
		answer->caches[i] = longer;
		if (answer->n_left == 0)
			gpc_script_free(script, &answer->caches[i]);
	}
}

void gpc_workload_inference(struct gpc_script *script)
{
	uint64_t n_batch = script->values[INFERENCE_BATCH];
	uint64_t n_layers = script->values[INFERENCE_LAYERS];
	struct answer *answers = gpc_new(n_batch, sizeof *answers);
	struct gpc_buffer *caches = gpc_new(n_batch * n_layers, sizeof *caches);
	uint64_t n_to_begin = script->values[INFERENCE_REQUESTS];
	uint64_t n_open = 1;

	while (n_open > 0) {
		n_open = 0;
		for (uint64_t i = 0; i < n_batch; i++) {
			answers[i].caches = &caches[i * n_layers];
			if (answers[i].n_left == 0 && n_to_begin > 0) {
				n_to_begin--;
				begin_answer(script, &answers[i]);
			}
			if (answers[i].n_left > 0)
				go_on(script, &answers[i]);
			n_open += answers[i].n_left > 0;
		}
		n_open += n_to_begin;
		/* The tokens are read on the host. */
		gpc_script_sync(script);
	}
	free(caches);
	free(answers);
}

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
