/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `sweep`: a table of values against GPUs, the largest that fits, and what grows with them.
 *
 *      BATCH  needs, MiB         l4        h100
 *          8        4210     +18349      +76869    MiB left on the GPU, or missing
 *         64       29302      -6743      +51777
 *
 *      SHORT    l4 with BATCH=64: by 6.58 GiB; refused first is Block.forward gpt.py:24 < main:60
 *      LARGEST  BATCH=43 on l4
 *      GROWTH   ...
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/array.h"
#include "format/memory.h"
#include "tools/gpumem-report/output/page.h"
#include "tools/gpumem-report/sweep/sized.h"

/* A row of the table: one combination of values. */
struct row {
	const char *values[GPC_SWEEP_MAX_VARIABLES];
	const struct gpc_sweep_run *run;
};

/* By the variables in their order: numbers by value, words as listed. */
static int compare_values(
	const struct gpc_sweep_variable *variable, const char *left, const char *right)
{
	char *end_a;
	char *end_b;
	double a = strtod(left, &end_a);
	double b = strtod(right, &end_b);

	if (!*end_a && !*end_b)
		return GPC_ORDER(a, b);
	for (size_t i = 0; i < variable->n_values; i++) {
		if (strcmp(variable->values[i], left) == 0)
			return strcmp(left, right) != 0 ? -1 : 0;
		if (strcmp(variable->values[i], right) == 0)
			return 1;
	}
	return strcmp(left, right);
}

static int compare_rows(const void *left, const void *right, void *arg)
{
	const struct gpc_sweep *sweep = arg;
	const struct row *a = left;
	const struct row *b = right;
	int order = 0;

	for (size_t i = 0; i < sweep->n_variables && !order; i++)
		order = compare_values(&sweep->variables[i], a->values[i], b->values[i]);
	return order ?: GPC_ORDER(a->run->number, b->run->number);
}

/* A row for each combination that ran, ordered. */
static struct row *make_rows(const struct gpc_sweep *sweep, size_t *ret_n)
{
	struct row *rows = gpc_new(sweep->n_runs, sizeof *rows);
	size_t n = 0;

	for (size_t i = 0; i < sweep->n_runs; i++) {
		struct row row = { .run = &sweep->runs[i] };
		size_t k = 0;

		for (size_t v = 0; v < sweep->n_variables; v++)
			row.values[v] = sweep->runs[i].values[v];
		while (k < n && !gpc_sweep_run_has(sweep, rows[k].run, row.values))
			k++;
		if (k == n)
			rows[n++] = row;
	}
	qsort_r(rows, n, sizeof *rows, compare_rows, (void *)(uintptr_t)sweep);
	*ret_n = n;
	return rows;
}

static void add_values(
	const struct gpc_sweep *sweep, const char *const *values, struct gpc_text *text)
{
	for (size_t i = 0; i < sweep->n_variables; i++)
		if (values[i])
			gpc_text_add(text, "%s%s=%s", text->len ? " " : "",
				sweep->variables[i].name, values[i]);
}

/* "+11967", "-312"; what the run says, if it does not say that. */
static void add_cell(
	const struct gpc_sweep *sweep, const struct row *row, size_t gpu, struct gpc_text *text)
{
	const struct gpc_sweep_run *run;
	const struct gpc_sweep_answer *answer = gpc_sweep_find(sweep, row->values, gpu, &run);
	const uint64_t total = sweep->gpus[gpu].target.bytes;

	if (!answer)
		gpc_text_add(text, "failed");
	else if (answer->fits)
		gpc_text_add(text, "+%llu",
			(unsigned long long)(gpc_bytes_less(total, answer->need_bytes) / GPC_MIB));
	else
		gpc_text_add(text, "-%llu",
			(unsigned long long)(gpc_round_up(gpc_bytes_less(answer->need_bytes, total),
						     GPC_MIB) /
					     GPC_MIB));
}

static void show_table(
	const struct gpc_sweep *sweep, const struct row *rows, size_t n, struct gpc_document *doc)
{
	const bool has_on = sweep->gpus[0].target.bytes != 0;
	struct gpc_column columns[GPC_SWEEP_MAX_VARIABLES + GPC_SWEEP_MAX_GPUS + 1] = { 0 };
	const struct gpc_section section = { NULL, "SWEEP", columns,
		sweep->n_variables + 1 + (has_on ? sweep->n_gpus : 1), .flags = GPC_TEXT_ONLY };
	size_t k = 0;

	for (size_t i = 0; i < sweep->n_variables; i++)
		columns[k++] = (struct gpc_column){ .head = sweep->variables[i].name, .width = 9 };
	columns[k++] = (struct gpc_column){ .head = "needs, MiB", .width = 11 };
	for (size_t i = 0; i < sweep->n_gpus && has_on; i++)
		columns[k++] = (struct gpc_column){ .head = sweep->gpus[i].word, .width = 10 };
	if (!has_on)
		columns[k] = (struct gpc_column){ .head = "smallest GPU", .width = -12 };
	gpc_document_open(doc, &section);
	gpc_document_say(doc, "on the simulated GPU, %zu runs%s", sweep->n_runs,
		has_on ? "; MiB left (+) or missing (-) on each GPU" : "");
	for (size_t i = 0; i < n; i++) {
		struct gpc_cell cells[GPC_SWEEP_MAX_VARIABLES + GPC_SWEEP_MAX_GPUS + 1];
		char texts[GPC_SWEEP_MAX_GPUS][24];
		const struct gpc_sweep_answer *answer = &rows[i].run->answers[rows[i].run->gpu];

		k = 0;
		for (size_t v = 0; v < sweep->n_variables; v++)
			cells[k++] = gpc_name(rows[i].values[v]);
		cells[k++] = answer->is_known ? gpc_number(answer->need_bytes / GPC_MIB)
					      : gpc_name("failed");
		for (size_t g = 0; g < sweep->n_gpus && has_on; g++) {
			struct gpc_text text = gpc_text_init(texts[g], sizeof texts[g]);

			add_cell(sweep, &rows[i], g, &text);
			cells[k] = gpc_name(texts[g]);
			cells[k++].ink = texts[g][0] == '+' ? GPC_INK_GREEN : GPC_INK_ALARM;
		}
		if (!has_on)
			cells[k++] = gpc_name(answer->is_known && rows[i].run->smallest_gpu
						      ? rows[i].run->smallest_gpu
						      : "none");
		gpc_document_row_of(doc, cells, k);
	}
	gpc_document_close(doc);
}

/* A run that failed for another reason is told as that. */
static void show_failures(const struct gpc_sweep *sweep, struct gpc_document *doc)
{
	gpc_document_open_text(doc, "FAILED");
	for (size_t i = 0; i < sweep->n_runs; i++) {
		const struct gpc_sweep_run *run = &sweep->runs[i];
		GPC_TEXT(values, 300);

		if (run->is_measured && strcmp(run->ended, "grown") != 0)
			continue;
		add_values(sweep, (const char *const *)run->values, &values);
		if (run->is_measured)
			gpc_document_say(
				doc, "%s: it outgrew every GPU, and was ended", values.buf);
		else if (strcmp(run->ended, "interrupted") == 0)
			gpc_document_say(doc, "%s: interrupted", values.buf);
		else if (strcmp(run->ended, "late") == 0)
			gpc_document_say(
				doc, "%s: not over within its time (--time-limit)", values.buf);
		else
			gpc_document_say(doc, "%s: for another reason than memory: status %s%s%s",
				values.buf, run->ended, run->said ? ": " : "",
				run->said ? run->said : "");
	}
	gpc_document_close(doc);
}

/* On each GPU, the first row that does not fit, and the line that is refused first. */
static void show_short(
	const struct gpc_sweep *sweep, const struct row *rows, size_t n, struct gpc_document *doc)
{
	gpc_document_open_text(doc, "SHORT");
	for (size_t g = 0; g < sweep->n_gpus && sweep->gpus[0].target.bytes; g++) {
		const struct gpc_sweep_answer *answer = NULL;
		const struct gpc_sweep_run *run;
		size_t i = 0;
		GPC_TEXT(values, 300);

		while (i < n && (!(answer = gpc_sweep_find(sweep, rows[i].values, g, &run)) ||
					answer->fits))
			i++;
		if (i == n)
			continue;
		add_values(sweep, rows[i].values, &values);
		gpc_document_say(doc, "%s with %s: by %s%s%s", sweep->gpus[g].word, values.buf,
			gpc_show_bytes(
				gpc_bytes_less(answer->need_bytes, sweep->gpus[g].target.bytes)),
			answer->refused_at ? "; refused first is " : "",
			answer->refused_at ? answer->refused_at : "");
	}
	gpc_document_close(doc);
}

static void say_largest(struct gpc_document *doc, const char *name, const char *on,
	const char *with, struct gpc_sweep_largest largest)
{
	static const char *const why[] = {
		[GPC_SWEEP_OPEN] = "is not known: the search did not end",
		[GPC_SWEEP_NONE] = "does not fit even with the first value",
		[GPC_SWEEP_FAILED] = "is not known: a run failed for another reason",
		[GPC_SWEEP_IDLE] = "changes nothing: does the program read it?",
	};

	if (largest.end == GPC_SWEEP_ALL)
		gpc_document_say(doc, "%s=%" PRIu64 ", the last of the range, fits on %s%s", name,
			largest.value, on, with);
	else if (largest.end == GPC_SWEEP_FOUND)
		gpc_document_say(doc, "%s=%" PRIu64 " is the largest that fits on %s%s", name,
			largest.value, on, with);
	else if (largest.end == GPC_SWEEP_FAILED && largest.value)
		gpc_document_say(doc,
			"%s=%" PRIu64 " fits on %s%s; the next one failed for another reason", name,
			largest.value, on, with);
	else
		gpc_document_say(doc, "%s on %s%s %s", name, on, with, why[largest.end]);
}

/* Returns true if a value fits on every GPU. */
static bool show_largest(const struct gpc_sweep *sweep, struct gpc_document *doc)
{
	static const struct gpc_column columns[] = { { "gpu" }, { "variable" }, { "with" },
		{ "value" }, { "end" } };
	static const struct gpc_section section = { "largest", "LARGEST", GPC_COLUMNS(columns) };
	static const char *const words[] = {
		[GPC_SWEEP_OPEN] = "open",
		[GPC_SWEEP_FOUND] = "found",
		[GPC_SWEEP_ALL] = "all",
		[GPC_SWEEP_NONE] = "none",
		[GPC_SWEEP_FAILED] = "failed",
		[GPC_SWEEP_IDLE] = "idle",
	};
	const struct gpc_sweep_variable *range = gpc_sweep_range(sweep);
	const char *values[GPC_SWEEP_MAX_VARIABLES];
	bool is_good = true;

	if (!range)
		return true;
	gpc_document_open(doc, &section);
	for (size_t i = 0; gpc_sweep_combination(sweep, i, values); i++)
		for (size_t g = 0; g < sweep->n_gpus; g++) {
			struct gpc_sweep_largest largest = gpc_sweep_largest(sweep, values, g);
			GPC_TEXT(with, 300);
			GPC_TEXT(sentence, 310);

			add_values(sweep, values, &with);
			if (with.len)
				gpc_text_add(&sentence, ", with %s", with.buf);
			if (largest.end != GPC_SWEEP_FOUND && largest.end != GPC_SWEEP_ALL)
				largest.value = gpc_unless_zero(largest.value);
			if (gpc_document_is_whole(doc))
				gpc_document_row(doc, gpc_name(sweep->gpus[g].word),
					gpc_name(range->name), gpc_name(with.buf),
					gpc_number(largest.value), gpc_name(words[largest.end]));
			say_largest(doc, range->name, sweep->gpus[g].word, sentence.buf, largest);
			is_good &= largest.end == GPC_SWEEP_FOUND || largest.end == GPC_SWEEP_ALL;
		}
	gpc_document_close(doc);
	return is_good;
}

/* JSON: every run, and what it says about each GPU. */
static void tell_runs(const struct gpc_sweep *sweep, struct gpc_document *doc)
{
	static const struct gpc_column columns[] = { { "gpu" }, { "ended" }, { "measured" },
		{ "asked_bytes" }, { "needs_bytes" }, { "smallest_gpu" }, { "said" } };
	static const struct gpc_column on_columns[] = { { "gpu" }, { "total_bytes" },
		{ "needs_bytes" }, { "fits" }, { "refused_at" } };
	static const struct gpc_section runs = { "runs", .columns = columns,
		.n_columns = sizeof columns / sizeof columns[0], .flags = GPC_JSON_ONLY };
	static const struct gpc_section on = { "on", .columns = on_columns,
		.n_columns = sizeof on_columns / sizeof on_columns[0], .flags = GPC_JSON_ONLY };

	gpc_document_open(doc, &runs);
	for (size_t i = 0; i < sweep->n_runs; i++) {
		const struct gpc_sweep_run *run = &sweep->runs[i];
		const bool is_good = run->is_measured;

		gpc_document_row(doc, gpc_name(sweep->gpus[run->gpu].word), gpc_name(run->ended),
			gpc_truth(is_good), is_good ? gpc_bytes(run->asked_bytes) : gpc_blank(),
			is_good ? gpc_bytes(run->answers[run->gpu].need_bytes) : gpc_blank(),
			gpc_name(run->smallest_gpu), gpc_name(run->said));
		gpc_document_open_object(doc, "values");
		for (size_t v = 0; v < sweep->n_variables; v++)
			gpc_document_member(
				doc, sweep->variables[v].name, gpc_name(run->values[v]));
		gpc_document_close(doc);
		gpc_document_open(doc, &on);
		for (size_t g = 0; g < sweep->n_gpus && sweep->gpus[g].target.bytes; g++)
			if (run->answers[g].is_known)
				gpc_document_row(doc, gpc_name(sweep->gpus[g].word),
					gpc_bytes(sweep->gpus[g].target.bytes),
					gpc_bytes(run->answers[g].need_bytes),
					gpc_truth(run->answers[g].fits),
					gpc_name(run->answers[g].refused_at));
		gpc_document_close(doc);
	}
	gpc_document_close(doc);
}

/* "Sweep: python train.py {BATCH} on l4". */
static void begin(const struct gpc_sweep *sweep, const struct gpc_report *report)
{
	const bool has_on = sweep->gpus[0].target.bytes != 0;
	GPC_TEXT(title, 1000);

	gpc_text_add(&title, "Sweep: %s", sweep->command ? sweep->command : "?");
	for (size_t i = 0; has_on && i < sweep->n_gpus; i++)
		gpc_text_add(&title, "%s%s", i ? ", " : " on ", sweep->gpus[i].word);
	report->doc->title = title.buf;
	gpc_page_begin(report, "sweep");
}

enum gpc_exit gpc_cmd_sweep(struct gpc_report *report)
{
	const char *folder = report->options->n_targets ? report->options->targets[0] : ".";
	enum gpc_exit code = GPC_EXIT_NOT_FOUND;
	struct gpc_sweep sweep;
	struct row *rows;
	size_t n;

	if (!gpc_sweep_read(&sweep, folder)) {
		gpc_sweep_fini(&sweep);
		return GPC_EXIT_USAGE;
	}
	if (sweep.is_sized) {
		code = gpc_sized_answer(&sweep, report);
		gpc_sweep_fini(&sweep);
		return code;
	}
	if (report->options->next) {
		gpc_sweep_print_next(&sweep, report->out);
		gpc_sweep_fini(&sweep);
		return GPC_EXIT_MADE;
	}
	for (size_t i = 0; i < sweep.n_runs; i++)
		if (sweep.runs[i].is_measured)
			code = GPC_EXIT_MADE;
	rows = make_rows(&sweep, &n);
	begin(&sweep, report);
	show_table(&sweep, rows, n, report->doc);
	tell_runs(&sweep, report->doc);
	show_failures(&sweep, report->doc);
	show_short(&sweep, rows, n, report->doc);
	if (!show_largest(&sweep, report->doc) && code == GPC_EXIT_MADE)
		code = GPC_EXIT_CONDITION;
	gpc_sweep_show_growth(&sweep, report->doc);
	gpc_document_end(report->doc);
	free(rows);
	gpc_sweep_fini(&sweep);
	return code;
}
