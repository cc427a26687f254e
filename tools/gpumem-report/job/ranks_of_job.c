/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row per GPU of each recording of a job.  A call site is identified by a hash over its stack's positions in Python
 * code and offsets in modules.  No symbols are read for it, so 1,024 recordings take seconds.
 */
#include "tools/gpumem-report/job/ranks_of_job.h"

#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "format/balance.h"
#include "format/memory.h"
#include "tools/gpumem-report/output/json.h"
#include "tools/gpumem-report/symbols/short_names.h"
#include "why/why.h"

static uint64_t hash_python(uint64_t hash, const struct gpc_recording *recording, uint64_t frame)
{
	uint32_t offset = GPUCACHE_FRAME_OFFSET(frame);
	struct gpc_code_view code;

	if (!gpc_recording_find_code(recording, GPUCACHE_FRAME_CODE(frame), &code))
		return hash;
	hash = gpc_hash_bytes(hash, code.name, code.name_size);
	hash = gpc_hash_bytes(hash, code.file, code.file_size);
	return gpc_hash_bytes(hash, &offset, sizeof offset);
}

static uint64_t hash_native(uint64_t hash, const struct gpc_recording *recording, uint64_t address)
{
	struct gpc_module_view view;
	uint64_t offset;
	size_t number;

	if (!gpc_recording_find_module(recording, address - 1, &number, &view))
		return hash;
	offset = address - view.module.bias;
	hash = gpc_hash_bytes(hash, view.module.build_id, sizeof view.module.build_id);
	return gpc_hash_bytes(hash, &offset, sizeof offset);
}

/* Hashes the Python frames if there are any: native frames differ between builds of the interpreter. */
static uint64_t key_of(const struct gpc_recording *recording, uint32_t id)
{
	struct gpc_stack_view stack;
	uint64_t hash = GPC_HASH_START;

	if (!id || !gpc_recording_find_stack(recording, id, &stack))
		return 1;
	for (unsigned i = 0; i < stack.n_python; i++)
		hash = hash_python(hash, recording, stack.python[i]);
	for (unsigned i = 0; stack.n_python == 0 && i < stack.n_native; i++)
		hash = hash_native(hash, recording, stack.native[i]);
	return hash ? hash : 1;
}

/* Adds the holder to the site with the key of its stack. */
static void add_site(struct gpc_job_row *row, const struct gpc_recording *recording,
	const struct gpucache_holder *holder)
{
	uint64_t key = key_of(recording, holder->stack);

	for (unsigned i = 0; i < row->n_sites; i++)
		if (row->sites[i].key == key) {
			row->sites[i].bytes = gpc_bytes_add(row->sites[i].bytes, holder->bytes);
			return;
		}
	if (row->n_sites < GPC_JOB_SITES)
		row->sites[row->n_sites++] =
			(struct gpc_job_site){ key, holder->bytes, holder->stack };
}

static void take_peak(struct gpc_job_row *row, const struct gpc_recording *rec)
{
	struct gpucache_peak peak;

	if (!gpc_recording_find_peak(rec, row->device.ordinal, &peak))
		return;
	row->peak_live_bytes = peak.live_bytes;
	for (unsigned i = 0; i < peak.n_holders && i < GPUCACHE_MAX_HOLDERS; i++)
		add_site(row, rec, &peak.holders[i]);
}

static void take_failures(struct gpc_job_row *row, const struct gpc_recording *rec)
{
	struct gpucache_oom oom;

	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_OOMS].count; i++) {
		if (!gpc_recording_read_oom(rec, i, &oom) || oom.device != row->device.ordinal)
			continue;
		row->n_ooms++;
		if (oom.recovered || (row->oom.number && oom.number > row->oom.number))
			continue;
		row->oom.number = oom.number;
		row->oom.realtime_ns = gpc_report_realtime(rec, oom.time_ns);
		row->oom.requested = oom.requested;
		row->oom.stack = oom.stack;
		row->oom.verdict = oom.verdict;
		row->oom.strength = oom.strength;
	}
}

static struct gpc_job_row make_row(
	const struct gpc_recording *rec, const struct gpucache_device *device)
{
	const struct gpucache_header *header = &rec->header;
	struct gpc_device_totals totals = gpc_recording_totals(rec, device->ordinal);
	struct gpc_job_row row = { .rank = header->rank,
		.world_size = header->world_size,
		.pid = header->pid,
		.start_realtime_ns = header->start_realtime_ns,
		.state = rec->run_state,
		.device = *device,
		.live_bytes = gpc_bytes_add(totals.sum.live_bytes, totals.sum.direct_bytes),
		.peak_bytes = gpc_bytes_add(
			totals.sum.peak_reserved_bytes, totals.sum.peak_direct_bytes) };

	memcpy(row.job, header->job, sizeof row.job);
	memcpy(row.host, header->host, sizeof row.host);
	memcpy(row.command, header->command, sizeof row.command);
	take_peak(&row, rec);
	take_failures(&row, rec);
	return row;
}

void gpc_job_add(struct gpc_job *job, const struct gpc_report *report)
{
	const struct gpc_recording *rec = report->recording;
	struct gpucache_device device;
	size_t n = job->n;

	for (uint64_t i = 0; gpc_report_next_device(report, &i, &device);) {
		if (!gpc_recording_totals(rec, device.ordinal).n_contexts)
			continue;
		gpc_array_grow(&job->rows, sizeof *job->rows, job->n, &job->room);
		job->rows[job->n] = make_row(rec, &device);
		job->rows[job->n++].path = gpc_copy(rec->path);
	}
	job->n_processes += job->n > n;
	job->n_unused += job->n == n;
}

static int compare_rows(const void *left, const void *right)
{
	const struct gpc_job_row *a = left;
	const struct gpc_job_row *b = right;

	return strcmp(a->job, b->job) ?: GPC_ORDER(a->rank, b->rank)
		       ?: GPC_ORDER(a->start_realtime_ns, b->start_realtime_ns)
		       ?: GPC_ORDER(a->pid, b->pid)
		       ?: strcmp(a->path, b->path)
		       ?: GPC_ORDER(a->device.ordinal, b->device.ordinal);
}

void gpc_job_sort(struct gpc_job *job)
{
	if (job->n)
		qsort(job->rows, job->n, sizeof *job->rows, compare_rows);
}

void gpc_job_fini(struct gpc_job *job)
{
	for (size_t i = 0; i < job->n; i++)
		free(job->rows[i].path);
	free(job->rows);
	*job = (struct gpc_job){ 0 };
}

const struct gpc_job_row *gpc_job_first(const struct gpc_job_row *rows, size_t n)
{
	const struct gpc_job_row *first = NULL;

	for (size_t i = 0; i < n; i++)
		if (rows[i].oom.number &&
			(!first || rows[i].oom.realtime_ns < first->oom.realtime_ns))
			first = &rows[i];
	return first;
}

uint64_t gpc_job_median(uint64_t *numbers, size_t n)
{
	if (n == 0)
		return 0;
	qsort(numbers, n, sizeof *numbers, gpc_array_by_number);
	return numbers[(n - 1) / 2];
}

void gpc_job_add_who(const struct gpc_job_row *row, struct gpc_text *text)
{
	if (row->rank >= 0)
		gpc_text_add(text, "rank %d (%s, pid %u)", row->rank, row->host, row->pid);
	else
		gpc_text_add(text, "pid %u on %s", row->pid, row->host);
}

struct json_object *gpc_job_row_json(const struct gpc_job_row *row)
{
	struct json_object *object = gpc_json_device(&row->device);
	bool has_failed = row->oom.number != 0;

	gpc_json_text(object, "path", row->path);
	gpc_json_bytes(object, "rank", row->rank < 0 ? GPUCACHE_UNKNOWN : (uint64_t)row->rank);
	gpc_json_bytes(object, "pid", row->pid);
	gpc_json_text(object, "host", row->host);
	gpc_json_text(object, "job", row->job);
	gpc_json_text(object, "state", gpc_state_word(row->state));
	gpc_json_bytes(object, "peak_bytes", row->peak_bytes);
	gpc_json_bytes(object, "peak_live_bytes", row->peak_live_bytes);
	gpc_json_bytes(object, "live_bytes", row->live_bytes);
	gpc_json_bytes(object, "ooms", row->n_ooms);
	gpc_json_text(object, "verdict", has_failed ? gpc_cause_word(row->oom.verdict) : "");
	gpc_json_text(object, "strength", has_failed ? gpc_strength_word(row->oom.strength) : "");
	gpc_json_text(object, "failed", has_failed ? gpc_show_rfc3339(row->oom.realtime_ns) : "");
	return object;
}
