/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the recording of a dead process with the process's own model: match RECORDING MODEL
 *
 *   every block that a thread held, and was not freeing, is live in the recording exactly once;
 *   any other live block belongs to an operation in flight, one block per operation;
 *   torn slots are no more than operations in flight, and at most one event is a hole;
 *   the counters differ from the model by no more than the bytes of those operations.
 *
 * Prints "matched live N flight N torn N holes N", or a line that says what does not match.  Exit status 0;
 * 1 does not match; 2 the recording cannot be read or calls itself alive or ended.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "format/recording.h"
#include "tests/kill/model.h"

struct held {
	uint64_t address;
	uint64_t size;
};

struct table {
	struct held *rows;
	size_t n;
};

static int compare(const void *left, const void *right)
{
	const struct held *a = left;
	const struct held *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->size < b->size ? -1 : a->size > b->size;
}

static void add(struct table *table, uint64_t address, uint64_t size)
{
	table->rows[table->n++] = (struct held){ .address = address, .size = size };
}

/* Removes one row with this address and size; false if there is none. */
static bool take(struct table *table, uint64_t address, uint64_t size)
{
	for (size_t i = 0; i < table->n; i++) {
		if ((address && table->rows[i].address != address) || table->rows[i].size != size)
			continue;
		table->rows[i] = table->rows[--table->n];
		return true;
	}
	return false;
}

/* True for memory that the driver took for itself, which the program's model lacks. */
static bool is_drivers_own(unsigned kind)
{
	return kind == GPUCACHE_KIND_CONTEXT || kind == GPUCACHE_KIND_MODULE;
}

static struct table live_of_recording(const struct gpc_recording *rec)
{
	const struct gpc_region *region = &rec->regions[GPUCACHE_REGION_BLOCKS];
	struct table table = { .rows = calloc(region->count + 1, sizeof *table.rows) };
	struct gpucache_block block;

	for (uint64_t i = 0; i < region->count; i++)
		if (gpc_recording_read_block(rec, i, &block) &&
			block.state == GPUCACHE_BLOCK_LIVE && !is_drivers_own(block.kind))
			add(&table, block.address, block.requested);
	return table;
}

static bool is_undecided(const struct model_thread *thread, uint32_t slot)
{
	return thread->op != MODEL_NONE && thread->slot == slot;
}

static struct table live_of_model(const struct model *model)
{
	struct table table = { .rows = calloc((size_t)MODEL_MAX_THREADS * MODEL_SLOTS + 1,
				       sizeof *table.rows) };

	for (uint32_t t = 0; t < model->n_threads; t++)
		for (uint32_t s = 0; s < MODEL_SLOTS; s++) {
			const struct model_slot *slot = &model->threads[t].slots[s];

			if (slot->address && !is_undecided(&model->threads[t], s))
				add(&table, slot->address, slot->size);
		}
	return table;
}

/* Removes the rows common to `wanted` and `found`; leaves both sorted. */
static void cancel(struct table *wanted, struct table *found)
{
	size_t w = 0;
	size_t f = 0;
	size_t n_wanted = 0;
	size_t n_found = 0;

	qsort(wanted->rows, wanted->n, sizeof *wanted->rows, compare);
	qsort(found->rows, found->n, sizeof *found->rows, compare);
	while (w < wanted->n || f < found->n) {
		int order = w == wanted->n  ? 1
			    : f == found->n ? -1
					    : compare(&wanted->rows[w], &found->rows[f]);

		if (order < 0)
			wanted->rows[n_wanted++] = wanted->rows[w];
		if (order > 0)
			found->rows[n_found++] = found->rows[f];
		w += order <= 0;
		f += order >= 0;
	}
	wanted->n = n_wanted;
	found->n = n_found;
}

/* Removes from `extra` the block that each operation in flight may have left; returns the number of operations. */
static unsigned excuse(const struct model *model, struct table *extra, uint64_t *ret_bytes)
{
	unsigned n = 0;

	*ret_bytes = 0;
	/* Frees first, because they know the address; an allocation in flight knows only its size. */
	for (uint32_t op = MODEL_FREE; op >= MODEL_MALLOC; op--)
		for (uint32_t t = 0; t < model->n_threads; t++) {
			const struct model_thread *thread = &model->threads[t];
			const struct model_slot *slot = &thread->slots[thread->slot % MODEL_SLOTS];
			uint64_t size = op == MODEL_FREE ? slot->size : thread->size;

			if (thread->op != op)
				continue;
			n++;
			*ret_bytes += size;
			take(extra, op == MODEL_FREE ? slot->address : 0, size);
		}
	return n;
}

static uint64_t count_holes(const struct gpc_recording *rec)
{
	struct gpc_event_cursor cursor = { 0 };
	struct gpucache_event event;

	while (gpc_recording_next_event(rec, &cursor, &event))
		;
	return cursor.n_holes;
}

/* What the model holds, by the counters' account: requested in segments, rounded outside of them. */
static uint64_t counted_bytes(const struct gpc_recording *rec)
{
	struct gpucache_counters counters;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_COUNTERS].count; i++)
		if (gpc_recording_read_counters(rec, i, &counters))
			sum += counters.requested_bytes + counters.direct_bytes +
			       counters.host_bytes - counters.kind_bytes[GPUCACHE_KIND_CONTEXT] -
			       counters.kind_bytes[GPUCACHE_KIND_MODULE];
	return sum;
}

static uint64_t sum_of(const struct table *table)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < table->n; i++)
		sum += table->rows[i].size;
	return sum;
}

static bool match(const struct gpc_recording *rec, const struct model *model)
{
	struct table wanted = live_of_model(model);
	struct table found = live_of_recording(rec);
	uint64_t held = sum_of(&wanted);
	uint64_t counted = counted_bytes(rec);
	size_t n_live = found.n;
	uint64_t n_torn = rec->regions[GPUCACHE_REGION_BLOCKS].n_torn;
	uint64_t n_holes = count_holes(rec);
	uint64_t slack;
	unsigned n_flight;
	bool is_matched;

	cancel(&wanted, &found);
	n_flight = excuse(model, &found, &slack);
	is_matched = false;
	if (wanted.n)
		printf("%zu blocks are missing, 0x%llx of %llu bytes for one", wanted.n,
			(unsigned long long)wanted.rows[0].address,
			(unsigned long long)wanted.rows[0].size);
	else if (found.n)
		printf("%zu blocks are too many, 0x%llx of %llu bytes for one", found.n,
			(unsigned long long)found.rows[0].address,
			(unsigned long long)found.rows[0].size);
	else if (counted + slack < held || counted > held + slack)
		printf("the counters say %llu bytes, the program %llu", (unsigned long long)counted,
			(unsigned long long)held);
	else if (n_torn > n_flight || n_holes > 1)
		printf("more is torn or missing than was in flight");
	else
		is_matched = true;
	printf("%s live %zu flight %u torn %llu holes %llu\n", is_matched ? "matched" : ":", n_live,
		n_flight, (unsigned long long)n_torn, (unsigned long long)n_holes);
	return is_matched;
}

int main(int argc, char **argv)
{
	int fd = argc == 3 ? open(argv[2], O_RDONLY) : -1;
	struct gpc_recording *rec;
	char why[200] = "";
	struct gpc_text text = gpc_text_init(why, sizeof why);
	const struct model *model;

	if (fd < 0) {
		fprintf(stderr, "usage: match RECORDING MODEL\n");
		return 2;
	}
	model = mmap(NULL, sizeof *model, PROT_READ, MAP_SHARED, fd, 0);
	if (model == MAP_FAILED)
		return 2;
	if (gpc_recording_open(argv[1], &rec, &text)) {
		printf("cannot be opened: %s\n", why);
		return 2;
	}
	if (rec->n_problems || rec->run_state == GPC_RUN_ALIVE || rec->run_state == GPC_RUN_ENDED) {
		printf("has %u problems, run state %d\n", rec->n_problems, (int)rec->run_state);
		return 2;
	}
	return match(rec, model) ? 0 : 1;
}
