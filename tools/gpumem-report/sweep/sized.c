/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sweep` over the GPU's size:
 *
 *	SIZED    it sizes itself by what is free: of each byte that a GPU has more, its cache takes 92 %
 *	LOADS    on a GPU of 1344 MiB it ran, ...; on one of 1312 MiB it failed: ValueError: No available memory for ...
 *	LEAVES   for the cache on each GPU, as it ran there
 */
#include "tools/gpumem-report/sweep/sized.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tools/gpumem-report/output/page.h"

#define STEP (32 * GPC_MIB)

struct sized {
	const struct gpc_sweep *sweep;
	const struct gpc_sweep_run *whole;
	const struct gpc_sweep_run *half;
	uint64_t cache_bytes; /* in `whole` */
	double part;          /* of each byte more; 0: it does not size itself, or is unknown */
	const char *where;    /* most of the cache */
	uint64_t fails;       /* the largest size that failed; 0: none */
	uint64_t loads;       /* the smallest that ran; 0: none */
};

static uint64_t size_of(const struct gpc_sweep_run *run)
{
	return strtoull(run->values[0], NULL, 10);
}

static uint64_t bytes_at(const struct gpc_sweep_run *run, const char *where)
{
	for (size_t i = 0; i < run->n_sites; i++)
		if (strcmp(run->sites[i].where, where) == 0)
			return run->sites[i].bytes;
	return 0;
}

/* A line belongs to the cache if it takes a part that counts of what the larger GPU has more. */
static bool is_cache(const struct sized *sized, const struct gpc_sweep_site *site)
{
	const uint64_t more = gpc_bytes_less(sized->whole->asked_bytes, sized->half->asked_bytes);

	return gpc_bytes_less(site->bytes, bytes_at(sized->half, site->where)) >=
	       more / GPC_SIZED_PART;
}

/* What the lines of the cache hold in a run. */
static uint64_t cache_of(const struct sized *sized, const struct gpc_sweep_run *run)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < sized->whole->n_sites; i++)
		if (is_cache(sized, &sized->whole->sites[i]))
			bytes += bytes_at(run, sized->whole->sites[i].where);
	return bytes;
}

static void find_cache(struct sized *sized)
{
	const uint64_t more = gpc_bytes_less(sized->whole->asked_bytes, sized->half->asked_bytes);
	const uint64_t larger = gpc_bytes_less(size_of(sized->whole), size_of(sized->half));
	uint64_t most = 0;

	if (!larger || more < larger / GPC_SIZED_PART)
		return;
	sized->part = (double)more / (double)larger;
	sized->cache_bytes = cache_of(sized, sized->whole);
	for (size_t i = 0; i < sized->whole->n_sites; i++) {
		const struct gpc_sweep_site *site = &sized->whole->sites[i];

		if (!is_cache(sized, site) || site->bytes <= most)
			continue;
		most = site->bytes;
		sized->where = site->where;
	}
}

static struct sized look(const struct gpc_sweep *sweep)
{
	struct sized sized = { .sweep = sweep };

	for (size_t i = 0; i < sweep->n_runs; i++) {
		const struct gpc_sweep_run *run = &sweep->runs[i];
		const uint64_t size = size_of(run);

		if (!gpc_sweep_is_own(sweep, run, 0))
			continue;
		if (run->is_measured && (!sized.loads || size < sized.loads))
			sized.loads = size;
		if (!run->is_measured && size > sized.fails)
			sized.fails = size;
	}
	if (sweep->n_runs > 0)
		sized.whole = &sweep->runs[0];
	if (sweep->n_runs > 1)
		sized.half = &sweep->runs[1];
	if (sized.half && sized.whole->is_measured && sized.half->is_measured)
		find_cache(&sized);
	return sized;
}

static const struct gpc_sweep_run *run_on(const struct gpc_sweep *sweep, size_t gpu)
{
	for (size_t i = 0; i < sweep->n_runs; i++)
		if (sweep->runs[i].gpu == gpu &&
			size_of(&sweep->runs[i]) == sweep->gpus[gpu].target.bytes)
			return &sweep->runs[i];
	return NULL;
}

static bool is_exact(const struct sized *sized)
{
	return sized->fails && sized->loads <= sized->fails + STEP + sized->loads / GPC_SIZED_EXACT;
}

/* The size to try next: from what it needs beside the cache, then halfway between what ran and what failed. */
static uint64_t next_size(const struct sized *sized)
{
	const uint64_t need = sized->whole->answers[0].need_bytes;
	const double beside = (double)gpc_bytes_less(need, sized->cache_bytes) / sized->part;
	uint64_t next;

	if (!sized->fails)
		next = sized->loads > 2 * (uint64_t)beside ? (uint64_t)beside
							   : sized->loads / 8 * 7;
	else if (sized->loads > 2 * sized->fails)
		next = sized->fails + sized->fails / 8;
	else
		next = sized->fails + (sized->loads - sized->fails) / 2;
	next = gpc_round_up(next, STEP);
	return next < sized->loads ? next : gpc_bytes_less(sized->loads, STEP);
}

static void print_run(const struct gpc_sweep *sweep, size_t gpu, uint64_t size, FILE *out)
{
	fprintf(out, "%s %s=%" PRIu64 "\n", sweep->gpus[gpu].word, sweep->variables[0].name, size);
}

static void print_next(const struct sized *sized, FILE *out)
{
	const struct gpc_sweep *sweep = sized->sweep;
	size_t n = 0;

	if (sized->whole && !sized->half)
		print_run(sweep, 0, size_of(sized->whole) / 2, out);
	for (size_t i = 0; sized->part > 0 && i < sweep->n_gpus; i++)
		if (sweep->gpus[i].target.bytes && !run_on(sweep, i)) {
			print_run(sweep, i, sweep->gpus[i].target.bytes, out);
			n++;
		}
	if (sized->part > 0 && !n && !is_exact(sized) && sized->loads > STEP &&
		sweep->n_runs < GPC_SIZED_MAX_RUNS)
		print_run(sweep, 0, next_size(sized), out);
	fprintf(out, "runs 1 %d\n", GPC_SIZED_MAX_RUNS);
}

static void show_sized(const struct sized *sized, struct gpc_document *doc)
{
	static const struct gpc_section section = { NULL, "SIZED", .flags = GPC_MEMBERS };

	gpc_document_open(doc, &section);
	gpc_document_member(doc, "sizes_itself", gpc_truth(sized->part > 0));
	gpc_document_member(doc, "cache", gpc_name(sized->where));
	gpc_document_member(doc, "loads_bytes", gpc_bytes(gpc_unless_zero(sized->loads)));
	gpc_document_member(doc, "fails_bytes", gpc_bytes(gpc_unless_zero(sized->fails)));
	gpc_document_say(doc, "on the simulated GPU, %zu runs", sized->sweep->n_runs);
	if (sized->part > 0)
		gpc_document_say(doc,
			"it sizes itself by what is free: of each byte that a GPU has more, its "
			"cache takes %u %%",
			(unsigned)(sized->part * 100 + 0.5));
	if (sized->where)
		gpc_document_say(doc, "the cache: %s", sized->where);
	if (!(sized->part > 0))
		gpc_document_say(
			doc, "it does not size itself: on a GPU of half the size it takes as much");
	gpc_document_close(doc);
}

static const struct gpc_sweep_run *run_of(const struct sized *sized, uint64_t size)
{
	for (size_t i = 0; i < sized->sweep->n_runs; i++)
		if (size_of(&sized->sweep->runs[i]) == size &&
			gpc_sweep_is_own(sized->sweep, &sized->sweep->runs[i], 0))
			return &sized->sweep->runs[i];
	return NULL;
}

static void show_loads(const struct sized *sized, struct gpc_document *doc)
{
	const struct gpc_sweep_run *failed = run_of(sized, sized->fails);

	gpc_document_open_text(doc, "LOADS");
	if (sized->part > 0 && sized->loads)
		gpc_document_say(doc, "on a GPU of %" PRIu64 " MiB it ran, with %s for the cache",
			sized->loads / GPC_MIB,
			gpc_show_bytes(cache_of(sized, run_of(sized, sized->loads))));
	if (sized->part > 0 && failed)
		gpc_document_say(doc, "on one of %" PRIu64 " MiB it failed%s%s",
			sized->fails / GPC_MIB, failed->said ? ": " : "",
			failed->said ? failed->said : "");
	gpc_document_close(doc);
}

/* Returns true if it ran on every GPU. */
static bool show_leaves(const struct sized *sized, struct gpc_document *doc)
{
	static const struct gpc_column columns[] = { { "gpu" }, { NULL, "GPU", 10 },
		{ "total_bytes" }, { NULL, "GPU, MiB", 10 }, { "cache_bytes" },
		{ NULL, "for the cache", 14 }, { "runs" }, { NULL, "" } };
	static const struct gpc_section section = { "leaves", "LEAVES", GPC_COLUMNS(columns) };
	const struct gpc_sweep *sweep = sized->sweep;
	bool is_good = true;

	gpc_document_open(doc, &section);
	if (sized->part > 0)
		gpc_document_say(doc, "for the cache on each GPU, as it ran there, in MiB");
	for (size_t i = 0; sized->part > 0 && i < sweep->n_gpus; i++) {
		const struct gpc_sweep_run *run = run_on(sweep, i);
		const uint64_t cache = run && run->is_measured ? cache_of(sized, run) : 0;

		if (!run)
			continue;
		is_good &= run->is_measured;
		gpc_document_row(doc, gpc_name(sweep->gpus[i].word), gpc_name(sweep->gpus[i].word),
			gpc_bytes(sweep->gpus[i].target.bytes),
			gpc_number(sweep->gpus[i].target.bytes / GPC_MIB), gpc_bytes(cache),
			gpc_number(cache / GPC_MIB), gpc_truth(run->is_measured),
			gpc_name(run->is_measured ? "" : "it does not load"));
	}
	gpc_document_close(doc);
	return is_good;
}

enum gpc_exit gpc_sized_answer(const struct gpc_sweep *sweep, struct gpc_report *report)
{
	const struct sized sized = look(sweep);
	bool is_good;

	if (report->options->next) {
		print_next(&sized, report->out);
		return GPC_EXIT_MADE;
	}
	gpc_page_begin(report, "sweep");
	show_sized(&sized, report->doc);
	show_loads(&sized, report->doc);
	is_good = show_leaves(&sized, report->doc);
	gpc_document_end(report->doc);
	return is_good ? GPC_EXIT_MADE : GPC_EXIT_CONDITION;
}
