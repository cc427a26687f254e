/* SPDX-License-Identifier: Apache-2.0 */
/* Replays only where a setting, or a number of bytes, may be the advice: a replay of a long run takes a second. */
#include "tools/gpumem-report/why/failure.h"

#include <string.h>

#include "oom/short_form.h"
#include "tools/gpumem-report/holders/by_library.h"

static bool is_told_by_bytes(enum gpucache_verdict cause)
{
	return cause == GPUCACHE_VERDICT_LIMIT || cause == GPUCACHE_VERDICT_SPIKE ||
	       cause == GPUCACHE_VERDICT_EXHAUSTED;
}

static void replay(struct gpc_failure *failure)
{
	bool is_up_to = gpc_why_is_up_to_settings(&failure->facts);
	enum gpucache_verdict cause = failure->answer.cause;
	struct gpc_what_if what_if;

	failure->facts.is_replayed = GPC_NO;
	if (!(is_up_to || is_told_by_bytes(cause)) ||
		!gpc_what_if_open(failure->report, &failure->oom, &what_if))
		return;
	gpc_what_if_play(&what_if, &failure->facts);
	if (failure->facts.is_replayed == GPC_YES && is_up_to)
		gpc_what_if_try_settings(&what_if, &failure->facts, &failure->replayed);
	failure->answer = gpc_why(&failure->facts);
	if (failure->facts.is_replayed == GPC_YES && is_told_by_bytes(failure->answer.cause))
		gpc_what_if_enough(&what_if, &failure->oom, &failure->facts);
	gpc_what_if_close(&what_if);
}

void gpc_failure_explain(const struct gpc_report *report, const struct gpucache_oom *oom,
	struct gpc_failure *ret_failure)
{
	struct gpc_failure *failure = ret_failure;
	char conf[1024] = "";

	*failure =
		(struct gpc_failure){ .report = report, .oom = *oom, .facts = gpc_facts_unknown() };
	gpc_facts_from_oom(&failure->facts, &failure->oom);
	/* PyTorch tells for what it asked only if it fails again, after it has returned its cache. */
	if (failure->facts.torch_asked == 0) {
		GPC_TEXT(library, 64);

		gpc_library_name(report->recording, oom->stack, &library);
		if (strcmp(library.buf, "PyTorch") == 0) {
			failure->facts.is_first_ask = GPC_YES;
			failure->facts.torch_asked = oom->requested;
		}
	}
	(void)gpc_report_read_env(report->recording, "GPUCACHE_CONF", conf, sizeof conf);
	gpc_conf_prefix(conf, failure->conf, sizeof failure->conf);
	failure->facts.conf = failure->conf;
	gpc_named_facts(report, &failure->oom, &failure->facts, &failure->named);
	failure->answer = gpc_why(&failure->facts);
	replay(failure);
	failure->answer = gpc_why(&failure->facts);
	/* What was printed at the failure, if it was: with the names that were cheap. */
	if (oom->verdict != GPUCACHE_VERDICT_NONE) {
		failure->answer.then_cause = (enum gpucache_verdict)oom->verdict;
		failure->answer.then_strength = (enum gpucache_strength)oom->strength;
	}
	failure->oom.verdict = (uint8_t)failure->answer.cause;
	failure->oom.strength = (uint8_t)failure->answer.strength;
	failure->oom.also = failure->answer.also;
}

static void add_site(void *self, uint32_t stack, struct gpc_text *text)
{
	gpc_frames_where(((const struct gpc_report *)self)->frames, stack, GPC_SITE_CALLERS, text);
}

static struct gpc_site_names names_of(const struct gpc_failure *failure)
{
	return (struct gpc_site_names){ .self = (void *)(uintptr_t)failure->report,
		.add = add_site };
}

void gpc_failure_say_why(const struct gpc_failure *failure, struct gpc_text *ret_text)
{
	const struct gpc_site_names names = names_of(failure);
	GPC_TEXT(change, 80);

	gpc_say_why(ret_text, &failure->facts, &failure->answer, &names);
	gpc_say_change(&change, &failure->answer);
	if (change.len)
		gpc_text_add(ret_text, " (%s)", change.buf);
}

bool gpc_failure_say_try(const struct gpc_failure *failure, unsigned n, struct gpc_text *ret_text,
	const char **ret_reach)
{
	const struct gpc_site_names names = names_of(failure);

	return gpc_say_try(ret_text, &failure->facts, &failure->answer, &names, n, ret_reach);
}

/* A sentence beside a label; with a key, it is also a member in JSON. */
static void tell(
	struct gpc_document *doc, const char *key, const char *label, struct gpc_text *text)
{
	const struct gpc_section section = { NULL, label, .flags = GPC_MEMBERS | GPC_JOINED };

	gpc_document_open(doc, &section);
	if (key)
		gpc_document_member(doc, key, gpc_sentence(text->buf));
	if (text->len)
		gpc_document_say(doc, "%s", text->buf);
	gpc_document_close(doc);
	gpc_text_clear(text);
}

static void show_tries(const struct gpc_failure *failure)
{
	static const struct gpc_column columns[] = { { "advice", "" }, { "reach" } };
	static const struct gpc_section section = { "try", "TRY", GPC_COLUMNS(columns),
		.flags = GPC_BESIDE | GPC_JOINED };
	struct gpc_document *doc = failure->report->doc;
	const char *reach;

	gpc_document_open(doc, &section);
	for (unsigned n = 0; n < GPC_MAX_TRIES; n++) {
		GPC_TEXT(text, 2 * GPC_PLACE_SIZE + 800);

		if (!gpc_failure_say_try(failure, n, &text, &reach))
			break;
		gpc_document_row(doc, gpc_sentence(text.buf), gpc_name(reach));
	}
	gpc_document_close(doc);
}

/* The facts that are known, as src/why/facts.def names them; a site is the number of its stack. */
static void tell_facts(const struct gpc_failure *failure)
{
	struct gpc_document *doc = failure->report->doc;

	gpc_document_open_object(doc, "facts");
	for (size_t i = 0; i < gpc_n_fact_rows; i++) {
		const struct gpc_fact_row *row = &gpc_fact_rows[i];
		const char *words = NULL;
		uint64_t number = 0;
		struct gpc_cell cell;

		if (!gpc_fact_read(&failure->facts, row, &number, &words))
			continue;
		if (row->kind == GPC_FACT_WORDS)
			cell = gpc_name(words);
		else if (row->kind == GPC_FACT_TRUTH)
			cell = gpc_truth(number == GPC_YES);
		else if (row->kind == GPC_FACT_PURPOSE)
			cell = gpc_name(gpc_purpose_words((enum gpc_purpose)number));
		else
			cell = gpc_number(number);
		gpc_document_member(doc, row->name, cell);
	}
	gpc_document_close(doc);
}

void gpc_failure_show(const struct gpc_failure *failure)
{
	static const struct gpc_section section = { "verdict", .flags = GPC_OBJECT };
	const struct gpc_site_names names = names_of(failure);
	const struct gpc_answer *answer = &failure->answer;
	struct gpc_document *doc = failure->report->doc;
	GPC_TEXT(text, 2 * GPC_PLACE_SIZE + 800);

	gpc_document_gap(doc);
	gpc_document_open(doc, &section);
	gpc_document_member(doc, "word", gpc_name(gpc_cause_word(answer->cause)));
	gpc_document_member(doc, "strength", gpc_name(gpc_strength_word(answer->strength)));
	gpc_document_member(doc, "then", gpc_name(gpc_cause_word(answer->then_cause)));
	gpc_document_member(
		doc, "then_strength", gpc_name(gpc_strength_word(answer->then_strength)));
	gpc_document_member(doc, "oom_number", gpc_number(failure->oom.number));
	gpc_document_open_flat(doc, "also");
	for (unsigned cause = 1; cause < GPUCACHE_VERDICT_COUNT; cause++)
		if (answer->also >> cause & 1)
			gpc_document_row(doc, gpc_name(gpc_cause_word(cause)));
	gpc_document_close(doc);
	gpc_failure_say_why(failure, &text);
	tell(doc, "why", "WHY", &text);
	gpc_say_also(&text, answer);
	tell(doc, NULL, "ALSO", &text);
	gpc_report_held(failure->report, &failure->oom, &text);
	tell(doc, "held", "HELD", &text);
	gpc_say_short(&text, &failure->facts, &names);
	tell(doc, "short", "SHORT", &text);
	show_tries(failure);
	if (!failure->report->options->trials)
		gpc_say_rerun(&text, &failure->facts, answer);
	tell(doc, "rerun", "RERUN", &text);
	tell_facts(failure);
	gpc_document_close(doc);
}
