/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentences of causes.def.  A condition is a member of struct gpc_facts, so a wrong one does not compile; a wrong
 * name in braces is found by gpc_sentences_check(), which a test calls.
 */
#include <string.h>

#include "why/why.h"
#include "why/words.h"

enum part {
	BECAUSE,
	AND,
	TRY,
	ELSE,
	RERUN,
	SHORT
};
enum reach {
	SAID,
	SERVED,
	ENOUGH,
	ONCE,
	LOOK
};

static const struct sentence {
	enum gpucache_verdict cause;
	enum part part;
	enum reach reach;
	size_t condition; /* offset of a TRUTH */
	const char *template;
} sentences[] = {
#define WHEN(condition) offsetof(struct gpc_facts, condition)
#define CAUSE(...)
#define BECAUSE(id, when, text)     { GPUCACHE_VERDICT_##id, BECAUSE, SAID, WHEN(when), text },
#define AND(id, when, text)         { GPUCACHE_VERDICT_##id, AND, SAID, WHEN(when), text },
#define TRY(id, when, reach, text)  { GPUCACHE_VERDICT_##id, TRY, reach, WHEN(when), text },
#define ELSE(id, when, reach, text) { GPUCACHE_VERDICT_##id, ELSE, reach, WHEN(when), text },
#define RERUN(id, when, text)       { GPUCACHE_VERDICT_##id, RERUN, SAID, WHEN(when), text },
#define SHORT(when, text)           { GPUCACHE_VERDICT_NONE, SHORT, SAID, WHEN(when), text },
#include "why/causes.def"
};

#define N_SENTENCES (sizeof sentences / sizeof sentences[0])

static const struct {
	const char *key;
	const char *words;
} reaches[] = {
	[SAID] = { "", "" },
	[SERVED] = { "served", ": replayed with it, this request succeeds" },
	[ENOUGH] = { "enough", "" },
	[ONCE] = { "once", ": enough for this request, perhaps not for the next" },
	[LOOK] = { "look", "" },
};

const char *gpc_purpose_words(enum gpc_purpose purpose)
{
	static const char *const words[] = {
#define PURPOSE(name, words) words,
#include "why/purpose.def"
	};

	return words[purpose < GPC_N_PURPOSES ? purpose : GPC_PURPOSE_OTHER];
}

static void add_value(struct gpc_text *text, enum gpc_fact_kind kind, uint64_t number,
	const char *words, const struct gpc_site_names *names)
{
	switch (kind) {
	case GPC_FACT_BYTES:
		gpc_text_add_bytes(text, number);
		return;
	case GPC_FACT_COUNT:
		gpc_text_add(text, "%llu", (unsigned long long)number);
		return;
	case GPC_FACT_FRACTION:
		gpc_text_add(text, "%llu.%04llu", (unsigned long long)number / 10000,
			(unsigned long long)number % 10000);
		return;
	case GPC_FACT_TIME:
		gpc_text_add_age(text, number);
		return;
	case GPC_FACT_SITE:
		if (names)
			names->add(names->self, (uint32_t)number, text);
		else
			gpc_text_add(text, "stack %u", (unsigned)number);
		return;
	case GPC_FACT_PURPOSE:
		gpc_text_add(text, "%s", gpc_purpose_words((enum gpc_purpose)number));
		return;
	case GPC_FACT_TRUTH:
		gpc_text_add(text, "%s", number == GPC_YES ? "yes" : "no");
		return;
	case GPC_FACT_WORDS:
		gpc_text_add_clean(text, words, strlen(words));
		return;
	}
}

/* The fact whose name is at[0 .. len); NULL: there is none. */
static const struct gpc_fact_row *row_of(const char *at, size_t len)
{
	for (size_t i = 0; i < gpc_n_fact_rows; i++)
		if (strlen(gpc_fact_rows[i].name) == len &&
			memcmp(gpc_fact_rows[i].name, at, len) == 0)
			return &gpc_fact_rows[i];
	return NULL;
}

/* Finds the first name in braces from `at` on; NULL at the end.  {CAPITALS} stay.  *ret_row is NULL if no fact has that name. */
static const char *next_name(const char *at, const struct gpc_fact_row **ret_row, size_t *ret_len)
{
	const char *open = strchr(at, '{');

	while (open && open[1] >= 'A' && open[1] <= 'Z')
		open = strchr(open + 1, '{');
	if (!open)
		return NULL;
	*ret_len = strcspn(open + 1, "}");
	*ret_row = row_of(open + 1, *ret_len);
	return open;
}

static bool has_facts(const char *template, const struct gpc_facts *facts)
{
	const struct gpc_fact_row *row;
	const char *words;
	uint64_t number;
	size_t len;

	for (const char *at = template; (at = next_name(at, &row, &len)); at++)
		if (!row || !gpc_fact_read(facts, row, &number, &words))
			return false;
	return true;
}

static bool applies(const struct sentence *s, const struct gpc_facts *facts)
{
	uint64_t truth;

	memcpy(&truth, (const char *)facts + s->condition, sizeof truth);
	return truth == GPC_YES && has_facts(s->template, facts);
}

bool gpc_say_filled(struct gpc_text *text, const char *template, const struct gpc_facts *facts,
	const struct gpc_site_names *names)
{
	const struct gpc_fact_row *row;
	const char *at = template;
	const char *open;
	size_t len;

	if (!has_facts(template, facts))
		return false;
	while ((open = next_name(at, &row, &len))) {
		const char *words = NULL;
		uint64_t number = 0;

		gpc_text_add(text, "%.*s", (int)(open - at), at);
		(void)gpc_fact_read(facts, row, &number, &words);
		add_value(text, row->kind, number, words, names);
		at = open + len + 2;
	}
	gpc_text_add(text, "%s", at);
	return true;
}

static void say(struct gpc_text *text, const struct sentence *s, const struct gpc_facts *facts,
	const struct gpc_site_names *names)
{
	(void)gpc_say_filled(text, s->template, facts, names);
	gpc_text_add(text, "%s", reaches[s->reach].words);
}

void gpc_say_why(struct gpc_text *text, const struct gpc_facts *facts,
	const struct gpc_answer *answer, const struct gpc_site_names *names)
{
	bool is_said = false;

	gpc_text_add(text, "%s", gpc_cause_word(answer->cause));
	if (answer->cause != GPUCACHE_VERDICT_NONE)
		gpc_text_add(text, " (%s)", gpc_strength_word(answer->strength));
	for (size_t i = 0; i < N_SENTENCES; i++) {
		const struct sentence *s = &sentences[i];

		if (s->cause != answer->cause || (s->part != BECAUSE && s->part != AND) ||
			(s->part == BECAUSE && is_said) || !applies(s, facts))
			continue;
		gpc_text_add(text, "%s", is_said ? "; " : ": ");
		say(text, s, facts, names);
		is_said = true;
	}
	if (!is_said)
		gpc_text_add(text, ": %s", gpc_cause_meaning(answer->cause));
}

void gpc_say_also(struct gpc_text *text, const struct gpc_answer *answer)
{
	const char *gap = "";

	for (unsigned c = 1; c < GPUCACHE_VERDICT_COUNT; c++) {
		if (!(answer->also >> c & 1))
			continue;
		gpc_text_add(text, "%s%s", gap, gpc_cause_word(c));
		gap = ", ";
	}
}

void gpc_say_short(
	struct gpc_text *text, const struct gpc_facts *facts, const struct gpc_site_names *names)
{
	size_t n = 0;

	for (size_t i = 0; i < N_SENTENCES; i++) {
		if (sentences[i].part != SHORT || !applies(&sentences[i], facts))
			continue;
		if (n++ > 0)
			gpc_text_add(
				text, "%s", n == 2 && facts->is_missing == GPC_YES ? ": " : ", ");
		say(text, &sentences[i], facts, names);
	}
}

bool gpc_say_try(struct gpc_text *text, const struct gpc_facts *facts,
	const struct gpc_answer *answer, const struct gpc_site_names *names, unsigned n,
	const char **ret_reach)
{
	bool is_said = false; /* since the last TRY */
	unsigned n_said = 0;

	for (size_t i = 0; n < GPC_MAX_TRIES && i < N_SENTENCES; i++) {
		const struct sentence *s = &sentences[i];

		if (s->cause != answer->cause || (s->part != TRY && s->part != ELSE))
			continue;
		if (s->part == TRY)
			is_said = false;
		if (is_said || !applies(s, facts))
			continue;
		is_said = true;
		if (n_said++ != n)
			continue;
		say(text, s, facts, names);
		*ret_reach = reaches[s->reach].key;
		return true;
	}
	return false;
}

void gpc_say_rerun(
	struct gpc_text *text, const struct gpc_facts *facts, const struct gpc_answer *answer)
{
	for (size_t i = 0; i < N_SENTENCES; i++) {
		const struct sentence *s = &sentences[i];

		if (s->part != RERUN || s->cause != answer->cause || !applies(s, facts))
			continue;
		gpc_text_add(text, "%s", text->len ? ", " : "");
		say(text, s, facts, NULL);
	}
}

void gpc_say_change(struct gpc_text *text, const struct gpc_answer *answer)
{
	if (answer->then_cause != answer->cause)
		gpc_text_add(text, "at the failure: %s (%s)", gpc_cause_word(answer->then_cause),
			gpc_strength_word(answer->then_strength));
}

static const char *check_names(const struct sentence *s)
{
	const struct gpc_fact_row *row;
	size_t len;

	for (const char *at = s->template; (at = next_name(at, &row, &len)); at++)
		if (!row || at[len + 1] != '}')
			return "names no fact";
	return NULL;
}

const char *gpc_sentences_check(const char **ret_wrong)
{
	unsigned n_because[GPUCACHE_VERDICT_COUNT] = { 0 };
	unsigned n_try[GPUCACHE_VERDICT_COUNT] = { 0 };

	for (size_t i = 0; i < N_SENTENCES; i++) {
		const struct sentence *s = &sentences[i];

		*ret_wrong = check_names(s);
		for (size_t k = 0; k < i && !*ret_wrong; k++)
			if (sentences[k].cause == s->cause &&
				sentences[k].condition == s->condition &&
				strcmp(sentences[k].template, s->template) == 0)
				*ret_wrong = "is said twice";
		n_because[s->cause] += s->part == BECAUSE;
		n_try[s->cause] += s->part == TRY;
		if (!*ret_wrong && s->part == ELSE && n_try[s->cause] == 0)
			*ret_wrong = "is an ELSE without a TRY";
		if (*ret_wrong)
			return s->template;
	}
	*ret_wrong = "has no BECAUSE or no TRY";
	for (unsigned c = 0; c < GPUCACHE_VERDICT_COUNT; c++)
		if (n_because[c] == 0 || n_try[c] == 0)
			return gpc_cause_word(c);
	return NULL;
}
