/* SPDX-License-Identifier: Apache-2.0 */
/* One line per operation in RMM's format, gzipped for a path in .gz; slots become made-up pointers. */
#include "tests/bench/replay/save.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/text.h"
#include "format/memory.h"

/* Pointers are only names here, one per slot, spaced regardless of size. */
#define FIRST_POINTER UINT64_C(0x700000000000)
#define POINTER_STEP  UINT64_C(0x200)

#define DAY_S (24 * 3600)

/* RMM's name for each kind; NULL: it has none. */
static const char *action_of(enum gpc_trace_op_kind kind)
{
	switch (kind) {
	case GPC_TRACE_ALLOC:
		return "allocate";
	case GPC_TRACE_FREE:
		return "free";
	case GPC_TRACE_FAILURE:
		return "allocate failure";
	case GPC_TRACE_WORK:
	case GPC_TRACE_ORDER:
	case GPC_TRACE_SYNC:
	case GPC_TRACE_EMPTY_CACHE:
		break;
	}
	return NULL;
}

static bool save_op(gzFile file, const struct gpc_trace_op *op, uint64_t first_ns, uint64_t size)
{
	uint64_t us = (op->time_ns - first_ns) / 1000;
	unsigned second = (unsigned)(us / 1000000 % DAY_S);
	char pointer[24] = "(nil)";
	struct gpc_text text = gpc_text_init(pointer, sizeof pointer);

	if (op->kind != GPC_TRACE_FAILURE) {
		text.len = 0;
		gpc_text_add(&text, "0x%" PRIx64, FIRST_POINTER + op->slot * POINTER_STEP);
	}
	return gzprintf(file, "1,%02u:%02u:%02u.%06u,%s,%s,%" PRIu64 ",0x%x\n", second / 3600,
		       second / 60 % 60, second % 60, (unsigned)(us % 1000000), action_of(op->kind),
		       pointer, size, op->stream) > 0;
}

static bool save_ops(gzFile file, const struct gpc_trace *trace, uint64_t *sizes)
{
	uint64_t first_ns = trace->n_ops ? trace->ops[0].time_ns : 0;

	if (gzputs(file, "Thread,Time,Action,Pointer,Size,Stream\n") < 0)
		return false;
	for (uint64_t i = 0; i < trace->n_ops; i++) {
		const struct gpc_trace_op *op = &trace->ops[i];

		if (!action_of(op->kind))
			continue;
		if (op->kind == GPC_TRACE_ALLOC)
			sizes[op->slot] = op->size;
		if (!save_op(file, op, first_ns,
			    op->kind == GPC_TRACE_FAILURE ? op->size : sizes[op->slot]))
			return false;
	}
	return true;
}

bool gpc_trace_save(const struct gpc_trace *trace, const char *path)
{
	size_t length = strlen(path);
	bool is_packed = length > 3 && strcmp(path + length - 3, ".gz") == 0;
	uint64_t *sizes = gpc_new(trace->n_slots, sizeof *sizes);
	gzFile file = gzopen(path, is_packed ? "wb" : "wbT");
	bool is_saved;

	if (!file) {
		free(sizes);
		return false;
	}
	is_saved = save_ops(file, trace, sizes);
	/* Writes the rest of the buffer, and so may fail as well. */
	is_saved = gzclose(file) == Z_OK && is_saved;
	free(sizes);
	return is_saved;
}
