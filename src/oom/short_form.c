/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page of at most 25 lines of 100 characters, filled from the top; the last line, FULL, is reserved from the start.
 */
#include "oom/short_form.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "model/balance.h"
#include "model/torch.h"
#include "why/retries.h"
#include "why/torch_facts.h"

#define MAX_HOLDERS 3u
#define HOLD_WIDTH  41u /* at least so many columns precede the site */
#define SENTENCE    512 /* three lines of advice fit */

/* A longer GPUCACHE_CONF is not repeated before a new setting, so that the advice stays on one line. */
#define CONF_REPEATED 48u

struct page {
	const struct gpc_short_form *form;
	struct gpc_facts facts;
	struct gpc_answer answer;
	struct gpc_site_names names;
	/* Its limits: until FULL is next, less than GPC_SHORT_LINES and GPC_SHORT_BYTES by a line; until HOLD is, by more. */
	struct gpc_lines lines;
};

/* A line, with its end. */
#define LINE_BYTES (GPC_SHORT_WIDTH + 1)

#define FULL_BYTES 400

/* Of a site in a sentence: on its way through a model the line that calls the model has room, too. */
#define SAID_SITE_SIZE 128

static bool is_said(const char *text)
{
	return text && text[0];
}

/* " (physical 2, NVIDIA H200, 139.80 GiB)"; "physical 2" only if the program calls the GPU by another number. */
static void add_gpu(struct gpc_text *line, const struct gpc_short_form *form)
{
	uint64_t total = form->oom->balance.device_total;
	GPC_TEXT(words, GPC_SHORT_WIDTH);

	if (form->physical >= 0 && form->physical != form->oom->device)
		gpc_text_add(&words, ", physical %d", form->physical);
	if (is_said(form->gpu_name))
		gpc_text_add(&words, ", %.40s", form->gpu_name);
	if (total != GPUCACHE_UNKNOWN)
		gpc_text_add_amounts(&words, ", @", total);
	if (words.len > 0)
		gpc_text_add(line, " (%s)", words.buf + strlen(", "));
}

static void put_headline(struct page *page, const struct gpc_short_form *form)
{
	const struct gpucache_oom *oom = form->oom;
	GPC_TEXT(line, GPC_SHORT_WIDTH + 1);

	gpc_text_add(&line, "gpucache: OUT OF MEMORY on GPU %d", oom->device);
	add_gpu(&line, form);
	gpc_text_add(&line, " - ");
	if (form->rank >= 0) {
		gpc_text_add(&line, "rank %d", form->rank);
		if (form->world_size > 0)
			gpc_text_add(&line, " of %d", form->world_size);
		gpc_text_add(&line, ", ");
	}
	gpc_text_add(&line, "pid %u", form->pid);
	if (is_said(form->program))
		gpc_text_add(&line, ", %s", form->program);
	gpc_lines_put(&page->lines, line.buf, line.len);
}

static void put_why(struct page *page)
{
	GPC_TEXT(words, SENTENCE);

	gpc_say_why(&words, &page->facts, &page->answer, &page->names);
	gpc_lines_put_words(&page->lines, "WHY", words.buf, words.len);
	gpc_text_clear(&words);
	gpc_say_also(&words, &page->answer);
	if (words.len > 0)
		gpc_lines_put_words(&page->lines, "ALSO", words.buf, words.len);
	gpc_text_clear(&words);
	if (page->form->evidence)
		gpc_say_held(page->form->evidence, page->form->oom, &words);
	if (words.len > 0)
		gpc_lines_put_words(&page->lines, "HELD", words.buf, words.len);
	gpc_text_clear(&words);
	gpc_say_short(&words, &page->facts, &page->names);
	gpc_lines_put_words(&page->lines, "SHORT", words.buf, words.len);
}

/* One number of a column, right-aligned up to its unit. */
static void add_number(struct gpc_text *text, uint64_t bytes)
{
	GPC_TEXT(number, 32);

	gpc_text_add_bytes(&number, bytes);
	gpc_text_add(text, "%16s", number.buf);
}

static void put_balance_line(
	struct page *page, const char *label, const char *sign, uint64_t bytes, const char *what)
{
	GPC_TEXT(line, GPC_SHORT_WIDTH + 1);
	GPC_TEXT(share, 16);

	gpc_text_add(&line, "%-7s%s", label, sign);
	add_number(&line, bytes);
	gpc_text_add_share(&share, bytes, page->form->oom->balance.device_total);
	gpc_text_add(&line, " %8s  %s", share.buf, what);
	gpc_lines_put(&page->lines, line.buf, line.len);
}

/* The parts of the line above, except those below 1 % of the device: room is scarce. */
static void put_kinds(struct page *page, const struct gpucache_oom *oom)
{
	unsigned int kind = GPUCACHE_KIND_NONE;

	while ((kind = gpc_balance_next_kind(oom->kind_bytes, kind)) != GPUCACHE_KIND_NONE) {
		GPC_TEXT(what, 64);

		if (oom->kind_bytes[kind] < oom->balance.device_total / 100)
			continue;
		gpc_text_add(&what, "  %s", gpc_kind_words(kind));
		put_balance_line(page, "", " ", oom->kind_bytes[kind], what.buf);
	}
}

/* Divides the line above further: bytes in the framework's tensors, and in its cache but in no tensor. */
static void put_torch(struct page *page, const struct gpucache_oom *oom)
{
	const struct gpc_framework_words *words = gpc_framework_words(oom->framework);
	uint64_t unused = gpc_torch_unused(&oom->torch);
	GPC_TEXT(in_pieces, 64);
	GPC_TEXT(in_none, 64);

	if (!oom->torch.reserved)
		return;
	gpc_text_add(&in_pieces, "  %s", words->in_pieces);
	gpc_text_add(&in_none, "  %s", words->unused);
	put_balance_line(page, "", " ", oom->torch.reserved - unused, in_pieces.buf);
	put_balance_line(page, "", " ", unused, in_none.buf);
}

/* Zero and unknown lines are omitted; free memory is always printed. */
static void put_balance(struct page *page, const struct gpucache_oom *oom)
{
	const struct gpucache_balance *sheet = &oom->balance;
	int64_t difference = gpc_balance_difference(sheet);
	const char *label = "WHERE";
	const char *sign = " ";
	GPC_TEXT(total, 64);

	if (sheet->device_total == GPUCACHE_UNKNOWN || sheet->device_total == 0)
		return;
	for (size_t i = 0; i < GPC_BALANCE_LINE_COUNT; i++) {
		uint64_t bytes = gpc_balance_value(sheet, &gpc_balance_lines[i]);

		if (bytes == GPUCACHE_UNKNOWN || (bytes == 0 && i != GPC_BALANCE_LINE_device_free))
			continue;
		put_balance_line(page, label, sign, bytes, gpc_balance_lines[i].label);
		if (i == GPC_BALANCE_LINE_direct)
			put_kinds(page, oom);
		if (i == (gpc_torch_is_mapped(oom) ? GPC_BALANCE_LINE_direct
						   : GPC_BALANCE_LINE_requested))
			put_torch(page, oom);
		label = "";
		sign = "+";
	}
	gpc_text_add(&total, "total");
	if (difference < 0)
		gpc_text_add_amounts(&total, " (the lines pass it by @)", 0 - (uint64_t)difference);
	else if (difference > 0)
		gpc_text_add_amounts(&total, " (the lines miss it by @)", (uint64_t)difference);
	put_balance_line(page, label, "=", sheet->device_total, total.buf);
	if (oom->kind_bytes[GPUCACHE_KIND_SPILLED])
		put_balance_line(page, "", " ", oom->kind_bytes[GPUCACHE_KIND_SPILLED],
			"beyond it, spilled to host memory");
}

/* Fills rows from the holders; the largest one that the program can free is what advice is about. */
static uint32_t fill_rows(struct page *page, struct gpc_holder_row rows[GPUCACHE_MAX_OOM_HOLDERS])
{
	const struct gpc_short_form *form = page->form;
	const struct gpc_describer *describer = form->describer;
	const struct gpc_describer teller = { .self = describer ? describer->self : NULL,
		.describe = describer ? describer->describe : NULL };
	/* The describer cuts each site to the room on the line, because it knows which part to omit. */
	uint32_t n = gpc_holder_rows_fill(rows, form->oom->holders, form->oom->n_holders, &teller,
		GPC_SHORT_WIDTH - HOLD_WIDTH + 1);

	for (uint32_t i = 0; i < n; i++) {
		if (describer && describer->can_free &&
			!describer->can_free(describer->self, rows[i].stack))
			continue;
		page->facts.top_site = rows[i].stack;
		page->facts.top_held = rows[i].bytes;
		break;
	}
	return n;
}

/* What the rows before `first` leave of all call sites, so that HOLD adds up. */
static void put_more_holders(
	struct page *page, const struct gpc_holder_row *rows, uint32_t first, uint32_t n)
{
	const struct gpucache_oom *oom = page->form->oom;
	uint64_t bytes = gpc_oom_unlisted(oom);
	uint64_t n_more = gpc_bytes_less(oom->n_sites, oom->n_holders);
	GPC_TEXT(line, GPC_SHORT_WIDTH + 1);

	for (uint32_t i = first; i < n; i++, n_more++)
		bytes = gpc_bytes_add(bytes, rows[i].bytes);
	if (n_more == 0 || bytes == 0)
		return;
	gpc_text_add(&line, "%-7s+", "");
	add_number(&line, bytes);
	gpc_text_add(&line, "%16s %llu more call site%s", "", (unsigned long long)n_more,
		n_more == 1 ? "" : "s");
	gpc_lines_put(&page->lines, line.buf, line.len);
}

/* Returns the first row for which there was no room, or `end`. */
static uint32_t put_holders(
	struct page *page, const struct gpc_holder_row *rows, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++) {
		GPC_TEXT(line, GPC_SHORT_WIDTH + 1);

		gpc_text_add(&line, "%-7s ", i == 0 ? "HOLD" : "");
		add_number(&line, rows[i].bytes);
		gpc_text_add(&line, " %7llu block%s  %s", (unsigned long long)rows[i].n_blocks,
			rows[i].n_blocks == 1 ? " " : "s", rows[i].site);
		if (!gpc_lines_put(&page->lines, line.buf, line.len))
			return i;
	}
	return end;
}

static void put_advice(struct page *page)
{
	const char *label = "TRY";
	const char *reach;

	for (unsigned i = 0; i < GPC_MAX_TRIES; i++) {
		GPC_TEXT(words, SENTENCE);

		if (!gpc_say_try(&words, &page->facts, &page->answer, &page->names, i, &reach))
			return;
		gpc_lines_put_words(&page->lines, label, words.buf, words.len);
		label = "";
	}
}

/* A command is not cut, as no line above may be: it is there to be pasted. */
static void write_full(struct gpc_text *line, const struct gpc_short_form *form)
{
	const char *report = is_said(form->report) ? form->report : "gpumem-report";

	if (!is_said(form->recording))
		return;
	gpc_text_add(line, "%-7s%s oom ", "FULL", report);
	if (line->len + strlen(form->recording) < FULL_BYTES && gpc_text_is_plain(form->recording))
		gpc_text_add(line, "%s\n", form->recording);
	else
		gpc_text_add(line, "%u\n", form->pid);
}

static void add_site(void *self, uint32_t stack, struct gpc_text *text)
{
	char site[SAID_SITE_SIZE];

	gpc_site_describe(self, stack, true, site, sizeof site);
	gpc_text_add(text, "%s", site);
}

void gpc_conf_prefix(const char *conf, char *buf, size_t size)
{
	if (!is_said(conf))
		buf[0] = '\0';
	else if (strlen(conf) <= CONF_REPEATED && gpc_text_is_plain(conf))
		gpc_format(buf, size, "%s,", conf);
	else
		gpc_format(buf, size, "$GPUCACHE_CONF,");
}

struct gpc_answer gpc_short_form_write(const struct gpc_short_form *form, struct gpc_text *text)
{
	struct gpc_holder_row rows[GPUCACHE_MAX_OOM_HOLDERS];
	char conf[CONF_REPEATED + 2];
	struct page page = {
		.form = form,
		.facts = gpc_facts_unknown(),
		.names = { .self = (void *)(uintptr_t)form->describer, .add = add_site },
		.lines = { .out = text, .max_lines = GPC_SHORT_LINES - 1 },
	};
	struct gpc_torch_texts texts;
	GPC_TEXT(full, FULL_BYTES + 8);
	GPC_TEXT(sheet, GPC_SHORT_SIZE);
	uint32_t n_rows;
	uint32_t n_put;
	size_t most;

	write_full(&full, form);
	most = GPC_SHORT_BYTES - full.len;
	page.lines.max_bytes = most;
	gpc_facts_from_oom(&page.facts, form->oom);
	gpc_conf_prefix(form->conf, conf, sizeof conf);
	page.facts.conf = conf;
	n_rows = fill_rows(&page, rows);
	if (form->evidence) {
		gpc_torch_facts(form->evidence, form->oom, &page.facts, &texts);
		gpc_retries_find(form->evidence, form->oom, &page.facts);
	}
	page.answer = gpc_why(&page.facts);
	put_headline(&page, form);
	put_why(&page);
	/* Who holds the memory, and what to do, comes before the last lines of the sheet. */
	page.lines.out = &sheet;
	page.lines.max_bytes = most - (MAX_HOLDERS + GPC_MAX_TRIES) * LINE_BYTES;
	put_balance(&page, form->oom);
	page.lines.max_bytes = most;
	n_put = put_holders(&page, rows, 0, (uint32_t)gpc_smaller(n_rows, 1));
	/* Stands above the sheet. */
	page.lines.out = text;
	put_advice(&page);
	page.lines.out = &sheet;
	page.lines.max_bytes = most - LINE_BYTES;
	n_put = put_holders(&page, rows, n_put, (uint32_t)gpc_smaller(n_rows, MAX_HOLDERS));
	page.lines.max_bytes = most;
	put_more_holders(&page, rows, n_put, n_rows);
	gpc_text_add(text, "%s", sheet.buf);
	gpc_text_add(text, "%s", full.buf);
	return page.answer;
}
