/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each call appends a row, 5 us after the last.  Work on a block of another stream is first ordered behind that stream,
 * as in a correct program.
 */
#include "tests/bench/replay/script.h"

/* The host's time for a call, about that of a launch through a runtime. */
#define STEP_NS (5 * GPC_US)

static void add(struct gpc_script *script, struct gpc_trace_row row)
{
	script->time_ns += STEP_NS;
	row.time_ns = script->time_ns;
	gpc_trace_add(script->builder, &row);
}

struct gpc_buffer gpc_script_alloc(struct gpc_script *script, uint32_t stream, uint64_t size)
{
	struct gpc_buffer buffer = {
		.identity = ++script->n_identities, .size = size, .stream = stream
	};

	add(script, (struct gpc_trace_row){ .kind = GPC_TRACE_ALLOC,
			    .identity = buffer.identity,
			    .size = size,
			    .stream = stream });
	return buffer;
}

void gpc_script_free(struct gpc_script *script, struct gpc_buffer *buffer)
{
	if (buffer->identity)
		add(script, (struct gpc_trace_row){ .kind = GPC_TRACE_FREE,
				    .identity = buffer->identity,
				    .stream = buffer->stream });
	buffer->identity = 0;
}

void gpc_script_work(struct gpc_script *script, uint32_t stream, uint64_t duration_ns,
	const struct gpc_buffer *buffer)
{
	if (buffer->stream != stream)
		gpc_script_order(script, stream, buffer->stream);
	add(script, (struct gpc_trace_row){ .kind = GPC_TRACE_WORK,
			    .identity = buffer->identity,
			    .stream = stream,
			    .duration_ns = duration_ns });
}

void gpc_script_order(struct gpc_script *script, uint32_t stream, uint32_t other)
{
	add(script, (struct gpc_trace_row){
			    .kind = GPC_TRACE_ORDER, .stream = stream, .other = other });
}

void gpc_script_sync(struct gpc_script *script)
{
	add(script, (struct gpc_trace_row){ .kind = GPC_TRACE_SYNC });
}

/* xorshift64*: good enough for choosing sizes, and the same on every machine. */
uint64_t gpc_script_random(struct gpc_script *script, uint64_t n)
{
	script->random ^= script->random >> 12;
	script->random ^= script->random << 25;
	script->random ^= script->random >> 27;
	return ((script->random * UINT64_C(0x2545f4914f6cdd1d)) >> 11) % n;
}

uint64_t gpc_script_random_size(struct gpc_script *script, uint64_t from, uint64_t to)
{
	uint64_t top = from;

	for (uint64_t n = gpc_script_random(script, 64 - (uint64_t)__builtin_clzll(to / from));
		n > 0; n--)
		top *= 2;
	return top + gpc_script_random(script, top < to - top ? top : to - top + 1);
}
