/* SPDX-License-Identifier: Apache-2.0 */
/* Replays only where a setting, or a number of bytes, may be the advice: a replay of a long run takes a second. */
#include "tools/gpumem-report/why/failure.h"

#include <string.h>

#include "oom/short_form.h"

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
	(void)gpc_report_read_env(report->recording, "GPUCACHE_CONF", conf, sizeof conf);
	gpc_conf_prefix(conf, failure->conf, sizeof failure->conf);
	failure->facts.conf = failure->conf;
	gpc_named_facts(report, &failure->oom, &failure->facts, &failure->named);
	failure->answer = gpc_why(&failure->facts);
	replay(failure);
	failure->answer = gpc_why(&failure->facts);
	failure->oom.verdict = (uint8_t)failure->answer.cause;
	failure->oom.strength = (uint8_t)failure->answer.strength;
	failure->oom.also = failure->answer.also;
}

static void add_site(void *self, uint32_t stack, struct gpc_text *text)
{
	gpc_add_place(self, stack, text);
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

void gpc_failure_print(const struct gpc_failure *failure, bool with_also)
{
	const struct gpc_paper *paper = &failure->report->paper;
	const struct gpc_site_names names = names_of(failure);
	const char *label = "TRY";
	const char *reach;
	GPC_TEXT(text, 800);

	gpc_failure_say_why(failure, &text);
	gpc_paper_wrap(paper, "WHY", text.buf);
	gpc_text_clear(&text);
	gpc_say_also(&text, &failure->answer);
	if (with_also && text.len)
		gpc_paper_wrap(paper, "ALSO", text.buf);
	gpc_text_clear(&text);
	gpc_say_held(failure->report, &failure->oom, &text);
	if (text.len)
		gpc_paper_wrap(paper, "HELD", text.buf);
	gpc_text_clear(&text);
	gpc_say_short(&text, &failure->facts, &names);
	gpc_paper_wrap(paper, "SHORT", text.buf);
	for (unsigned n = 0; n < GPC_MAX_TRIES; n++) {
		gpc_text_clear(&text);
		if (!gpc_failure_say_try(failure, n, &text, &reach))
			break;
		gpc_paper_wrap(paper, label, text.buf);
		label = "";
	}
}
