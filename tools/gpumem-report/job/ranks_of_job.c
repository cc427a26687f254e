/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row per GPU of each recording.  A call site is identified by a hash over its stack's positions in Python
 * code and offsets in modules.  No symbols are read for it, so 1,024 recordings take seconds.
 */
#include "tools/gpumem-report/job/ranks_of_job.h"

#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "format/memory.h"
#include "format/sheet.h"
#include "model/torch.h"
#include "names/short_names.h"
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

static void take_failure(
	struct gpc_job_row *row, const struct gpc_recording *rec, const struct gpucache_oom *oom)
{
	row->oom.number = oom->number;
	row->oom.realtime_ns = gpc_report_realtime(rec, oom->time_ns);
	row->oom.requested = oom->requested;
	row->oom.stack = oom->stack;
	row->oom.verdict = oom->verdict;
	row->oom.strength = oom->strength;
}

/* The first failure that the program did not recover from; of one that a framework repeated, what came of it. */
static void take_failures(struct gpc_job_row *row, const struct gpc_recording *rec)
{
	struct gpucache_oom first = { .number = 0 };
	struct gpucache_oom oom;

	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_OOMS].count; i++) {
		if (!gpc_recording_read_oom(rec, i, &oom) || oom.device != row->device.ordinal)
			continue;
		row->n_ooms++;
		if (oom.recovered || (row->oom.number && oom.number > row->oom.number))
			continue;
		take_failure(row, rec, &oom);
		first = oom;
	}
	if (first.number && gpc_recording_find_oom(rec, first.number + 1, &oom) &&
		gpc_torch_repeats(&oom, &first) && !oom.recovered)
		take_failure(row, rec, &oom);
}

/* Moves *at over spaces.  Returns the length of the word there; 0 at the end of the text. */
static size_t next_word(const char **at)
{
	size_t len;

	*at += strspn(*at, " ");
	len = strcspn(*at, " ");
	return len;
}

/*
 * The program's usual name: "train.py" for "/usr/bin/python3 -u /x/train.py --epochs 3", "-m package.train", else the
 * name of the executable.
 */
static void add_script(const struct gpucache_header *header, struct gpc_text *ret_text)
{
	const char *exe = header->exe[0] ? gpc_base_name(header->exe) : "?";
	const char *at = header->command;
	size_t len = next_word(&at);

	if (strncmp(exe, "python", 6) != 0) {
		gpc_text_add_clean(ret_text, exe, strlen(exe));
		return;
	}
	for (at += len; (len = next_word(&at)); at += len) {
		if (at[0] == '-' && (len != 2 || (at[1] != 'm' && at[1] != 'c')))
			continue;
		if (at[0] != '-') {
			const char *name = at + len;

			while (name > at && name[-1] != '/')
				name--;
			gpc_text_add_clean(ret_text, name, (size_t)(at + len - name));
			return;
		}
		gpc_text_add(ret_text, "%s %.*s ", exe, (int)len, at);
		if (at[1] == 'c')
			return;
		at += len;
		len = next_word(&at);
		gpc_text_add_clean(ret_text, at, len);
		return;
	}
	gpc_text_add_clean(ret_text, exe, strlen(exe));
}

static struct gpc_job_row make_row(const struct gpc_recording *rec)
{
	struct gpc_job_row row = { .path = gpc_copy(rec->path),
		.header = rec->header,
		.state = rec->run_state,
		.device = { .ordinal = -1 } };
	struct gpc_text program = gpc_text_init(row.program, sizeof row.program);

	add_script(&rec->header, &program);
	return row;
}

static void take_device(struct gpc_job_row *row, const struct gpc_recording *rec,
	const struct gpucache_device *device)
{
	struct gpucache_counters sum = gpc_recording_totals(rec, device->ordinal).sum;

	row->device = *device;
	row->live_bytes = gpc_bytes_add(sum.live_bytes, sum.direct_bytes);
	row->peak_bytes = gpc_bytes_add(sum.peak_reserved_bytes, sum.peak_direct_bytes);
	take_peak(row, rec);
	take_failures(row, rec);
}

void gpc_job_add(struct gpc_job *job, const struct gpc_report *report)
{
	const struct gpc_recording *rec = report->recording;
	struct gpucache_device device;
	size_t first = job->n;

	for (uint64_t i = 0; gpc_report_next_device(report, &i, &device);) {
		if (!gpc_recording_totals(rec, device.ordinal).n_contexts)
			continue;
		gpc_array_grow(&job->rows, sizeof *job->rows, job->n, &job->room);
		job->rows[job->n] = make_row(rec);
		take_device(&job->rows[job->n++], rec, &device);
	}
	if (job->n > first)
		return;
	gpc_array_grow(&job->rows, sizeof *job->rows, job->n, &job->room);
	job->rows[job->n++] = make_row(rec);
}

bool gpc_job_is_one(const struct gpc_job_row *row)
{
	return row->header.job[0] || row->header.rank >= 0;
}

/* Jobs by name, their rows by rank; then what belongs to none, newest first. */
static int compare_rows(const void *left, const void *right)
{
	const struct gpc_job_row *a = left;
	const struct gpc_job_row *b = right;
	int newer = GPC_ORDER(b->header.start_realtime_ns, a->header.start_realtime_ns);

	return GPC_ORDER(gpc_job_is_one(b), gpc_job_is_one(a)) ?: strcmp(a->header.job, b->header.job)
		       ?: GPC_ORDER(a->header.rank, b->header.rank)
		       ?: (gpc_job_is_one(a) ? -newer : newer)
		       ?: GPC_ORDER(a->header.pid, b->header.pid)
		       ?: strcmp(a->path, b->path)
		       ?: GPC_ORDER(a->device.ordinal, b->device.ordinal);
}

void gpc_job_sort(struct gpc_job *job)
{
	if (job->n)
		qsort(job->rows, job->n, sizeof *job->rows, compare_rows);
}

size_t gpc_job_end(const struct gpc_job *job, size_t first)
{
	size_t end = first;

	while (end < job->n &&
		gpc_job_is_one(&job->rows[end]) == gpc_job_is_one(&job->rows[first]) &&
		strcmp(job->rows[end].header.job, job->rows[first].header.job) == 0)
		end++;
	return end;
}

void gpc_job_fini(struct gpc_job *job)
{
	for (size_t i = 0; i < job->n; i++)
		free(job->rows[i].path);
	free(job->rows);
	*job = (struct gpc_job){ 0 };
}

void gpc_job_add_who(const struct gpc_job_row *row, struct gpc_text *text)
{
	if (row->header.rank >= 0)
		gpc_text_add(text, "rank %d (%s, pid %u)", row->header.rank, row->header.host,
			row->header.pid);
	else
		gpc_text_add(text, "pid %u on %s", row->header.pid, row->header.host);
}
