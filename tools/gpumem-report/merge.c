/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/gpumem-report/merge.h"

#include <stdlib.h>
#include <string.h>

#include "format/balance.h"

/* Less than this from the median is like the others: of it, and in bytes. */
#define ODD_PARTS 20
#define ODD_BYTES (UINT64_C(32) << 20)

/* FNV-1a: no two stacks of a job are the same by chance. */
#define HASH_START UINT64_C(0xcbf29ce484222325)
#define HASH_PRIME UINT64_C(0x100000001b3)

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * HASH_PRIME;
	return hash;
}

static uint64_t hash_python(uint64_t hash, const struct gpc_recording *recording, uint64_t frame)
{
	uint32_t offset = GPUCACHE_FRAME_OFFSET(frame);
	struct gpc_code_view code;

	if (!gpc_recording_find_code(recording, GPUCACHE_FRAME_CODE(frame), &code))
		return hash;
	hash = hash_bytes(hash, code.name, code.name_size);
	hash = hash_bytes(hash, code.file, code.file_size);
	return hash_bytes(hash, &offset, sizeof offset);
}

static uint64_t hash_native(uint64_t hash, const struct gpc_recording *recording, uint64_t address)
{
	struct gpc_module_view view;
	uint64_t offset;
	size_t number;

	if (!gpc_recording_find_module(recording, address - 1, &number, &view))
		return hash;
	offset = address - view.module.bias;
	hash = hash_bytes(hash, view.module.build_id, sizeof view.module.build_id);
	return hash_bytes(hash, &offset, sizeof offset);
}

/* Python's frames tell more than the interpreter below them, which may be of another build. */
static uint64_t key_of(const struct gpc_recording *recording, uint32_t id)
{
	struct gpc_stack_view stack;
	uint64_t hash = HASH_START;

	if (!id || !gpc_recording_find_stack(recording, id, &stack))
		return 1;
	for (unsigned i = 0; i < stack.n_python; i++)
		hash = hash_python(hash, recording, stack.python[i]);
	for (unsigned i = 0; stack.n_python == 0 && i < stack.n_native; i++)
		hash = hash_native(hash, recording, stack.native[i]);
	return hash ? hash : 1;
}

/* Stacks with the same key are one site. */
static void add_site(struct gpc_merge_rank *rank, const struct gpc_recording *recording,
	const struct gpucache_holder *holder)
{
	uint64_t key = key_of(recording, holder->stack);

	for (unsigned i = 0; i < rank->n_sites; i++)
		if (rank->sites[i].key == key) {
			rank->sites[i].bytes = gpc_bytes_add(rank->sites[i].bytes, holder->bytes);
			return;
		}
	if (rank->n_sites < GPC_MERGE_SITES)
		rank->sites[rank->n_sites++] =
			(struct gpc_merge_site){ key, holder->bytes, holder->stack };
}

static void take_peak(struct gpc_merge_rank *rank, const struct gpc_report *report)
{
	const struct gpc_recording *rec = report->recording;
	struct gpucache_device device;
	struct gpucache_peak peak;
	struct gpucache_peak highest = { .device = -1 };

	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_DEVICES].count; i++)
		if (gpc_recording_read_device(rec, i, &device) &&
			gpc_report_wants(report, device.ordinal) &&
			gpc_recording_find_peak(rec, device.ordinal, &peak) &&
			(highest.device < 0 || peak.live_bytes > highest.live_bytes))
			highest = peak;
	rank->device = highest.device;
	rank->peak_bytes = highest.live_bytes;
	for (unsigned i = 0; i < highest.n_holders && i < GPUCACHE_MAX_HOLDERS; i++)
		add_site(rank, rec, &highest.holders[i]);
}

static void take_failures(struct gpc_merge_rank *rank, const struct gpc_report *report)
{
	const struct gpc_recording *rec = report->recording;
	struct gpucache_oom oom;

	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_OOMS].count; i++) {
		if (!gpc_recording_read_oom(rec, i, &oom) || !gpc_report_wants(report, oom.device))
			continue;
		rank->n_ooms++;
		if (oom.recovered || (rank->oom.number && oom.number > rank->oom.number))
			continue;
		rank->oom.number = oom.number;
		rank->oom.realtime_ns = gpc_report_realtime(rec, oom.time_ns);
		rank->oom.requested = oom.requested;
		rank->oom.stack = oom.stack;
		rank->oom.device = oom.device;
		rank->oom.verdict = oom.verdict;
		rank->oom.strength = oom.strength;
	}
}

enum gpc_status gpc_merge_add(struct gpc_merge *merge, const struct gpc_report *report)
{
	const struct gpc_recording *rec = report->recording;
	struct gpc_merge_rank *rank;

	if (merge->n == merge->room) {
		size_t room = merge->room ? 2 * merge->room : 64;
		struct gpc_merge_rank *more = realloc(merge->ranks, room * sizeof *more);

		if (!more)
			return GPC_NO_METADATA;
		merge->ranks = more;
		merge->room = room;
	}
	rank = &merge->ranks[merge->n];
	*rank = (struct gpc_merge_rank){ .rank = rec->header.rank,
		.world_size = rec->header.world_size,
		.pid = rec->header.pid,
		.state = rec->run_state };
	memcpy(rank->host, rec->header.host, sizeof rank->host);
	take_peak(rank, report);
	take_failures(rank, report);
	if (rank->device < 0 && !rank->n_ooms) {
		merge->n_unused++;
		return GPC_OK;
	}
	rank->path = strdup(rec->path);
	merge->n += rank->path != NULL;
	return rank->path ? GPC_OK : GPC_NO_METADATA;
}

static int by_rank(const void *left, const void *right)
{
	const struct gpc_merge_rank *a = left;
	const struct gpc_merge_rank *b = right;
	int order = strcmp(a->host, b->host);

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (order)
		return order;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static int by_size(const void *left, const void *right)
{
	const uint64_t *a = left;
	const uint64_t *b = right;

	return *a < *b ? -1 : *a > *b;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static uint64_t bytes_at(const struct gpc_merge_rank *rank, uint64_t key)
{
	for (unsigned i = 0; i < rank->n_sites; i++)
		if (rank->sites[i].key == key)
			return rank->sites[i].bytes;
	return 0;
}

/* What the ranks hold there in the middle. */
static uint64_t median_at(const struct gpc_merge *merge, uint64_t key, uint64_t *room)
{
	for (size_t i = 0; i < merge->n; i++)
		room[i] = key ? bytes_at(&merge->ranks[i], key) : merge->ranks[i].peak_bytes;
	qsort(room, merge->n, sizeof *room, by_size);
	return room[merge->n / 2];
}

/* By the sites of the one that has more: the odd one, or a usual one. */
static void compare_sites(struct gpc_merge *merge, uint64_t *room)
{
	const struct gpc_merge_rank *odd = &merge->ranks[merge->odd];
	const struct gpc_merge_rank *from;

	merge->odd_site_of = merge->odd;
	for (size_t i = 0; i < merge->n && !merge->is_odd_more; i++)
		if (merge->ranks[i].peak_bytes == merge->median_bytes)
			merge->odd_site_of = i;
	from = &merge->ranks[merge->odd_site_of];
	for (unsigned i = 0; i < from->n_sites; i++) {
		uint64_t median = median_at(merge, from->sites[i].key, room);
		uint64_t bytes = bytes_at(odd, from->sites[i].key);

		if ((bytes > median) == merge->is_odd_more &&
			distance(bytes, median) > merge->odd_site.bytes)
			merge->odd_site = (struct gpc_merge_site){ from->sites[i].key,
				distance(bytes, median), from->sites[i].stack };
	}
}

/* Where there are three or more: of two, nobody is the odd one. */
static void find_odd(struct gpc_merge *merge, uint64_t *room)
{
	uint64_t farthest = 0;

	merge->odd = merge->n;
	merge->median_bytes = median_at(merge, 0, room);
	for (size_t i = 0; i < merge->n && merge->n >= 3; i++) {
		uint64_t far = distance(merge->ranks[i].peak_bytes, merge->median_bytes);

		if (far > farthest && far > ODD_BYTES && far > merge->median_bytes / ODD_PARTS) {
			farthest = far;
			merge->odd = i;
		}
	}
	if (merge->odd == merge->n)
		return;
	merge->is_odd_more = merge->ranks[merge->odd].peak_bytes > merge->median_bytes;
	compare_sites(merge, room);
}

void gpc_merge_sort(struct gpc_merge *merge)
{
	uint64_t *room = calloc(merge->n + 1, sizeof *room);

	merge->first = merge->odd = merge->n;
	if (merge->n == 0 || !room) {
		free(room);
		return;
	}
	qsort(merge->ranks, merge->n, sizeof *merge->ranks, by_rank);
	for (size_t i = 0; i < merge->n; i++)
		if (merge->ranks[i].oom.number &&
			(merge->first == merge->n ||
				merge->ranks[i].oom.realtime_ns <
					merge->ranks[merge->first].oom.realtime_ns))
			merge->first = i;
	find_odd(merge, room);
	free(room);
}

void gpc_merge_fini(struct gpc_merge *merge)
{
	for (size_t i = 0; i < merge->n; i++)
		free(merge->ranks[i].path);
	free(merge->ranks);
	*merge = (struct gpc_merge){ 0 };
}
