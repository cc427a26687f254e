/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The law of each line: bytes = constant + factor x term, where the term is a product of powers of the variables.  Of the
 * terms the simplest is taken that explains the runs as well as any, by least squares.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/array.h"
#include "format/memory.h"
#include "tools/gpumem-report/sweep/sweep.h"

#define MOST_POWER  2u
#define MOST_SITES  256
#define N_ROWS      8
#define LEAST_BYTES ((double)GPC_MIB) /* of growth, for a line to be named */
#define LEAST_FIT   0.99              /* the part of a line's variance that its law explains */
#define MUCH_BETTER \
	0.25 /* what a less simple term must leave of the variance that is not explained */

/* Exponents of the variables. */
struct term {
	unsigned powers[GPC_SWEEP_MAX_VARIABLES];
	unsigned degree;
};

struct law {
	struct term term;
	double constant;
	double factor;
	double explained;
	double growth; /* between the runs that asked for the least and for the most */
};

struct sample {
	double values[GPC_SWEEP_MAX_VARIABLES];
	const struct gpc_sweep_run *run;
};

struct samples {
	struct sample *all;
	size_t n;
	size_t n_variables;
	size_t least; /* asked for the least, and for the most */
	size_t most;
};

static double value_at(const struct sample *sample, const struct term *term, size_t n_variables)
{
	double value = 1;

	for (size_t i = 0; i < n_variables; i++)
		for (unsigned k = 0; k < term->powers[i]; k++)
			value *= sample->values[i];
	return value;
}

/* Term number i; false after the last.  Simple ones are not first: the caller compares degrees. */
static bool term_at(size_t n_variables, size_t i, struct term *ret_term)
{
	*ret_term = (struct term){ 0 };
	for (size_t k = 0; k < n_variables; k++, i /= MOST_POWER + 1) {
		ret_term->powers[k] = (unsigned)(i % (MOST_POWER + 1));
		ret_term->degree += ret_term->powers[k];
	}
	return i == 0;
}

/* A straight line of bytes over the term; false if the term has one value only. */
static bool fit(const struct samples *samples, const double *bytes, const struct term *term,
	struct law *ret_law)
{
	double n = (double)samples->n;
	double mean_t = 0, mean_y = 0;
	double vt = 0, vy = 0, cov = 0;

	for (size_t i = 0; i < samples->n; i++) {
		mean_t += value_at(&samples->all[i], term, samples->n_variables) / n;
		mean_y += bytes[i] / n;
	}
	for (size_t i = 0; i < samples->n; i++) {
		double t = value_at(&samples->all[i], term, samples->n_variables) - mean_t;
		double y = bytes[i] - mean_y;

		vt += t * t;
		vy += y * y;
		cov += t * y;
	}
	if (!(vt > 0) || !(vy > 0))
		return false;
	*ret_law = (struct law){ .term = *term, .factor = cov / vt };
	ret_law->constant = mean_y - ret_law->factor * mean_t;
	ret_law->explained = cov * cov / (vt * vy);
	return true;
}

/* The best law of these bytes, one for each sample; false if they do not grow. */
static bool find_law(const struct samples *samples, const double *bytes, struct law *ret_law)
{
	struct law best = { 0 };
	struct term term;

	/* By degree: a less simple term has to be much better. */
	for (unsigned degree = 1; degree <= MOST_POWER * samples->n_variables; degree++)
		for (size_t i = 1; term_at(samples->n_variables, i, &term); i++) {
			struct law law;

			if (term.degree != degree || !fit(samples, bytes, &term, &law))
				continue;
			if (best.term.degree == 0 ||
				(best.term.degree == degree
						? law.explained > best.explained
						: 1 - law.explained <
							  MUCH_BETTER * (1 - best.explained) -
								  1e-9))
				best = law;
		}
	best.growth = bytes[samples->most] - bytes[samples->least];
	*ret_law = best;
	return best.term.degree > 0 && best.growth >= LEAST_BYTES && best.factor >= 1;
}

static bool is_number(const char *text, double *ret_value)
{
	char *end;

	*ret_value = strtod(text, &end);
	return end != text && *end == '\0';
}

/* The measured runs, one for each combination of values. */
static void take_samples(const struct gpc_sweep *sweep, struct samples *samples)
{
	*samples = (struct samples){ .all = gpc_new(sweep->n_runs, sizeof *samples->all),
		.n_variables = sweep->n_variables };
	for (size_t i = 0; i < sweep->n_runs; i++) {
		const struct gpc_sweep_run *run = &sweep->runs[i];
		struct sample sample = { .run = run };
		bool is_good = run->is_measured && !run->is_cut &&
			       gpc_sweep_is_own(sweep, run, sweep->runs[0].gpu);

		for (size_t k = 0; k < sweep->n_variables; k++)
			is_good &= is_number(run->values[k], &sample.values[k]);
		for (size_t k = 0; k < samples->n && is_good; k++)
			is_good = !gpc_sweep_run_has(
				sweep, samples->all[k].run, (const char *const *)run->values);
		if (is_good)
			samples->all[samples->n++] = sample;
	}
	for (size_t i = 1; i < samples->n; i++) {
		if (samples->all[i].run->asked_bytes <
			samples->all[samples->least].run->asked_bytes)
			samples->least = i;
		if (samples->all[i].run->asked_bytes > samples->all[samples->most].run->asked_bytes)
			samples->most = i;
	}
}

static double bytes_at(const struct gpc_sweep_run *run, const char *where)
{
	double bytes = 0;

	for (size_t i = 0; i < run->n_sites; i++)
		if (strcmp(run->sites[i].where, where) == 0)
			bytes += (double)run->sites[i].bytes;
	return bytes;
}

static void add_term(const struct gpc_sweep *sweep, const struct term *term, struct gpc_text *text)
{
	for (size_t i = 0; i < sweep->n_variables; i++) {
		if (!term->powers[i])
			continue;
		gpc_text_add(text, "%s%s", text->len ? " x " : "", sweep->variables[i].name);
		if (term->powers[i] > 1)
			gpc_text_add(text, "^%u", term->powers[i]);
	}
}

struct row {
	const char *where;
	struct law law;
};

static int by_growth(const void *a, const void *b)
{
	const struct row *left = a;
	const struct row *right = b;

	return GPC_ORDER(right->law.growth, left->law.growth);
}

/* The lines of the run that holds most, with their laws. */
static size_t find_rows(const struct samples *samples, struct row rows[MOST_SITES])
{
	const struct gpc_sweep_run *largest = samples->all[samples->most].run;
	double *bytes = gpc_new(samples->n, sizeof *bytes);
	size_t n = 0;

	for (size_t i = 0; i < largest->n_sites && n < MOST_SITES; i++) {
		rows[n].where = largest->sites[i].where;
		for (size_t k = 0; k < samples->n; k++)
			bytes[k] = bytes_at(samples->all[k].run, rows[n].where);
		if (find_law(samples, bytes, &rows[n].law) && rows[n].law.explained >= LEAST_FIT)
			n++;
	}
	free(bytes);
	qsort(rows, n, sizeof *rows, by_growth);
	return n;
}

/* *ret_law is that of all bytes; of degree 0 if there is none. */
static void say_all(const struct gpc_sweep *sweep, const struct samples *samples,
	struct gpc_document *doc, struct law *ret_law)
{
	double *bytes = gpc_new(samples->n, sizeof *bytes);
	struct law law;
	GPC_TEXT(term, 160);

	for (size_t i = 0; i < samples->n; i++)
		bytes[i] = (double)samples->all[i].run->asked_bytes;
	if (find_law(samples, bytes, &law) && law.explained >= LEAST_FIT && law.constant >= 0) {
		add_term(sweep, &law.term, &term);
		gpc_document_say(doc, "at the peak %s, and %s a %s: the law of %zu runs",
			gpc_show_bytes((uint64_t)law.constant),
			gpc_show_bytes((uint64_t)law.factor), term.buf, samples->n);
	} else {
		gpc_document_say(doc, "at the peak no simple law; by line:");
		law.term = (struct term){ 0 };
	}
	*ret_law = law;
	if (samples->n == 2)
		gpc_document_say(
			doc, "of two runs: a straight line is assumed, a third would tell a bend");
	free(bytes);
}

static void show_row(const struct gpc_sweep *sweep, const struct row *row, struct gpc_document *doc)
{
	GPC_TEXT(text, 160);
	GPC_TEXT(term, 160);

	add_term(sweep, &row->law.term, &term);
	gpc_text_add(&text, "a %s", term.buf);
	gpc_document_row(doc, gpc_bytes((uint64_t)row->law.factor),
		gpc_name(gpc_document_is_whole(doc) ? term.buf : text.buf),
		gpc_bytes((uint64_t)row->law.growth), gpc_sentence(row->where));
}

static struct gpc_cell cell_of(double bytes)
{
	return bytes < 0 ? gpc_signed((int64_t)bytes) : gpc_bytes((uint64_t)bytes);
}

/* What the rows leave of all bytes: other lines, some of which hold less where the peak is at another moment. */
static void show_others(const struct gpc_sweep *sweep, const struct row *rows, size_t n,
	const struct law *all, struct gpc_document *doc)
{
	struct law left = *all;
	GPC_TEXT(text, 160);
	GPC_TEXT(term, 160);

	for (size_t i = 0; i < n; i++) {
		left.growth -= rows[i].law.growth;
		left.factor -= rows[i].law.factor;
		if (memcmp(&rows[i].law.term, &all->term, sizeof all->term) != 0)
			left.term = (struct term){ 0 };
	}
	add_term(sweep, &left.term, &term);
	if (term.len)
		gpc_text_add(&text, "a %s", term.buf);
	gpc_document_row(doc, term.len ? cell_of(left.factor) : gpc_blank(), gpc_name(text.buf),
		cell_of(left.growth), gpc_sentence("all others"));
}

void gpc_sweep_show_growth(const struct gpc_sweep *sweep, struct gpc_document *doc)
{
	static const struct gpc_column columns[] = {
		{ "bytes_each", "each", 12 },
		{ "term", "", -14 },
		{ "growth_bytes", "in all", 12 },
		{ "where", "where" },
	};
	static const struct gpc_section section = { "growth", "GROWTH", GPC_COLUMNS(columns) };
	static struct row rows[MOST_SITES];
	struct samples samples;
	struct law all;
	size_t n;

	take_samples(sweep, &samples);
	if (samples.n >= 2 && (n = find_rows(&samples, rows)) > 0) {
		gpc_document_open(doc, &section);
		say_all(sweep, &samples, doc, &all);
		n = gpc_document_is_whole(doc) || n < N_ROWS ? n : N_ROWS;
		for (size_t i = 0; i < n; i++)
			show_row(sweep, &rows[i], doc);
		if (!gpc_document_is_whole(doc))
			show_others(sweep, rows, n, &all, doc);
		gpc_document_close(doc);
	}
	free(samples.all);
}
