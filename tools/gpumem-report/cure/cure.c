/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cure`: what would make a run go on that ran out of memory.
 *
 *      RAN      PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py
 *      SETTINGS that need no change of the program, the cheapest first
 *      TRY      what the failure's cause advises
 *      CHANGES  of the program, and what each saves
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/gpumem-report/cure/cure.h"
#include "tools/gpumem-report/output/page.h"
#include "why/numbers.h"

/* A trial that makes more steps than so many times those of the failed run, and than so many, is ended: it has done better. */
#define STEPS_FACTOR 2
#define LEAST_STEPS  20

static const char *state_words(const struct gpc_cure_setting *setting, bool has_trials)
{
	switch (setting->state) {
	case GPC_CURE_RAN:
		return setting->n_ran == GPC_CURE_RUNS ? "ran twice" : "ran once";
	case GPC_CURE_EDGE:
		return "at the edge: one of two ran";
	case GPC_CURE_FAILED:
		return "ran out of memory, too";
	case GPC_CURE_LATE:
		return "was not over in time";
	case GPC_CURE_OTHER:
		return "failed for another reason";
	case GPC_CURE_HOPELESS:
		return "not tried: cannot help";
	case GPC_CURE_OPEN:
		break;
	}
	if (setting->is_replayed)
		return "replayed: served";
	return has_trials ? "not tried: one before it ran" : "not tried";
}

static const char *state_key(enum gpc_cure_state state)
{
	static const char *const keys[] = { "open", "hopeless", "ran", "edge", "failed", "late",
		"other" };

	return keys[state];
}

static void show_ran(const struct gpc_cure *cure, struct gpc_document *doc)
{
	/* A cell, because a sentence ends after 1 KiB. */
	static const struct gpc_column columns[] = { { NULL, "" } };
	static const struct gpc_section section = { NULL, "RAN", GPC_COLUMNS(columns),
		.flags = GPC_TEXT_ONLY | GPC_BESIDE };
	const struct gpc_cure_setting *first = gpc_cure_first(cure);

	gpc_document_member(doc, "ran", gpc_name(first ? first->key : NULL));
	gpc_document_member(doc, "command", gpc_name(first ? first->command : NULL));
	if (!first)
		return;
	gpc_document_open(doc, &section);
	gpc_document_row(doc, gpc_sentence(first->command ? first->command : first->assignments));
	gpc_document_say(doc, "%s on the simulated GPU", state_words(first, true));
	/* A cache that takes all there is before it returns something leaves none. */
	if (or_none(first->headroom_bytes))
		gpc_document_say(doc, "with %s of headroom", gpc_show_bytes(first->headroom_bytes));
	if (first->n_driver_calls != GPUCACHE_UNKNOWN)
		gpc_document_say(doc,
			"%s calls of the driver for memory, the run that failed had made %s",
			gpc_show_count(first->n_driver_calls),
			gpc_show_count(cure->n_driver_calls));
	gpc_document_close(doc);
}

static void show_settings(const struct gpc_cure *cure, struct gpc_document *doc)
{
	static const struct gpc_column columns[] = {
		{ "key" },
		{ "state" },
		{ "replayed" },
		{ "headroom_bytes" },
		{ "driver_calls" },
		{ NULL, "", -30 },
		{ "set" },
		{ "refused" },
		{ NULL, "setting" },
	};
	static const struct gpc_section section = { "settings", "SETTINGS", GPC_COLUMNS(columns) };
	const struct gpc_facts *facts = &cure->failure.facts;

	gpc_document_open(doc, &section);
	gpc_document_say(doc, "that need no change of the program, the cheapest first");
	if (cure->is_hopeless)
		gpc_document_say(doc,
			"where memory is placed cannot help: a perfect placement gives back %s, %s "
			"are missing",
			gpc_show_bytes(facts->slack), gpc_show_bytes(facts->short_by));
	for (size_t i = 0; i < cure->n; i++) {
		const struct gpc_cure_setting *setting = &cure->settings[i];
		GPC_TEXT(text, 600);

		if (setting->state == GPC_CURE_HOPELESS && !gpc_document_is_whole(doc))
			continue;
		gpc_text_add(&text, "%s: %s%s%s", setting->assignments, setting->words,
			setting->refused ? "; " : "", setting->refused ? setting->refused : "");
		gpc_document_row(doc, gpc_name(setting->key), gpc_name(state_key(setting->state)),
			gpc_truth(setting->is_replayed), gpc_bytes(setting->headroom_bytes),
			gpc_count(setting->n_driver_calls),
			gpc_name(state_words(setting, cure->report->options->trials != NULL)),
			gpc_name(setting->assignments), gpc_name(setting->refused),
			gpc_sentence(text.buf));
	}
	gpc_document_close(doc);
}

/* "KEY STEPS NAME=VALUE...", unless one ran each time. */
static void print_next(const struct gpc_cure *cure, FILE *out)
{
	const uint64_t steps = gpc_larger(STEPS_FACTOR * cure->n_steps, LEAST_STEPS);
	const struct gpc_cure_setting *next = gpc_cure_first(cure);

	for (size_t i = 0; i < cure->n && !next; i++)
		if (cure->settings[i].state == GPC_CURE_OPEN)
			next = &cure->settings[i];
	if (next && next->n_ran < GPC_CURE_RUNS)
		fprintf(out, "%s %" PRIu64 " %s\n", next->key, steps, next->assignments);
}

static void show_none(const struct gpc_cure *cure, struct gpc_document *doc)
{
	bool is_at_edge = false;

	for (size_t i = 0; i < cure->n; i++)
		is_at_edge |= cure->settings[i].state == GPC_CURE_EDGE;
	gpc_document_open_text(doc, "RAN");
	gpc_document_say(doc, "with none of the settings that were tried%s",
		is_at_edge ? ", each time" : "");
	gpc_document_close(doc);
}

enum gpc_exit gpc_cmd_cure(struct gpc_report *report)
{
	static struct gpc_cure cure;
	struct gpucache_oom oom;

	if (!gpc_report_find_oom(report, report->options->device, true, &oom)) {
		gpc_complain("no request failed in %s", report->recording->path);
		return GPC_EXIT_NOT_FOUND;
	}
	gpc_cure_find(&cure, report, &oom);
	if (report->options->next) {
		print_next(&cure, report->out);
		return GPC_EXIT_MADE;
	}
	gpc_page_begin(report, "cure");
	gpc_page_say_who(report, GPC_INK_PLAIN, "", NULL);
	show_ran(&cure, report->doc);
	if (report->options->trials && !gpc_cure_first(&cure))
		show_none(&cure, report->doc);
	gpc_failure_show(&cure.failure);
	show_settings(&cure, report->doc);
	gpc_cure_show_changes(&cure, report->doc);
	gpc_page_notes(report);
	gpc_document_end(report->doc);
	return !report->options->trials || gpc_cure_first(&cure) ? GPC_EXIT_MADE
								 : GPC_EXIT_CONDITION;
}
