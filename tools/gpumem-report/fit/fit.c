/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fit`: which GPU a recorded run needs, and whether it fits on a given one.  gpucache-run --fit runs a program, asks for
 * its --progress once in a while, and tells in --ended how it ended.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/gpumem-report/fit/smallest_gpu.h"
#include "tools/gpumem-report/output/page.h"

#define FIRST_SIGNAL \
	128 /* an exit status above it is that of a program that a signal ended, as in a shell */

static unsigned status_of(const char *ended)
{
	return (unsigned)strtoul(ended, NULL, 10);
}

static void add_ending(struct gpc_text *text, unsigned status)
{
	const bool is_signal = status > FIRST_SIGNAL;

	gpc_text_add(text, "%s %u", is_signal ? "signal" : "status",
		is_signal ? status - FIRST_SIGNAL : status);
}

static void show_ending(const struct gpc_report *report)
{
	const char *ended = report->options->ended;
	const bool is_stopped = strcmp(ended, "stopped") == 0;
	const bool is_interrupted = strcmp(ended, "interrupted") == 0;
	const bool is_late = strcmp(ended, "late") == 0;
	struct gpc_document *doc = report->doc;
	GPC_TEXT(text, 40);

	gpc_document_member(doc, "stopped", gpc_truth(is_stopped));
	gpc_document_member(doc, "interrupted", gpc_truth(is_interrupted));
	gpc_document_member(doc, "late", gpc_truth(is_late));
	gpc_document_member(doc, "status", gpc_number(status_of(ended)));
	gpc_document_member(doc, "processes", gpc_count(report->n_processes));
	if (report->n_processes > 1)
		gpc_document_say(doc, "the largest of %u processes; each needs a part of a GPU",
			report->n_processes);
	add_ending(&text, status_of(ended));
	if (is_stopped)
		gpc_document_say(doc, "ended after its steps; --steps=N runs more");
	else if (is_interrupted)
		gpc_document_say(doc, "interrupted: this is the answer so far");
	else if (is_late)
		gpc_document_say(doc,
			"ended after its time: this is the answer so far; --time-limit=S gives it "
			"more");
	else if (strcmp(ended, "grown") == 0)
		gpc_document_say(doc, "ended, because no GPU is large enough, and it still grew");
	else if (status_of(ended))
		gpc_document_say(
			doc, "it FAILED, with %s: this is the answer up to that point", text.buf);
}

void gpc_fit_complain_unused(const struct gpc_report *report)
{
	GPC_TEXT(text, 80);

	if (report->options->ended) {
		gpc_text_add(&text, "it ended with ");
		add_ending(&text, status_of(report->options->ended));
		gpc_complain("the program took no memory of a GPU; %s", text.buf);
	} else {
		gpc_complain("%s: no process took memory of a GPU",
			report->recording ? report->recording->path : report->options->target);
	}
}

/*
 * Prints the steps so far and the most bytes that were asked for at a time: "12 9.29 GiB asked for".  GPC_EXIT_CONDITION: it
 * outgrows every GPU.
 */
static enum gpc_exit show_progress(const struct gpc_report *report)
{
	struct gpc_fit_target target = { 0 };
	struct gpc_steps steps;
	struct gpc_trace trace;
	bool is_outgrown;

	if (report->options->on)
		(void)gpc_fit_read_target(report->options->on, &target);
	gpc_trace_from_recording(report->recording, report->options->device, true, &trace);
	steps = gpc_steps_count(&trace);
	fprintf(report->out, "%" PRIu64 " %s asked for\n", steps.n,
		gpc_show_bytes(trace.peak_live_bytes));
	is_outgrown = gpc_fit_outgrows(&trace, &steps, &target);
	gpc_trace_fini(&trace);
	return is_outgrown ? GPC_EXIT_CONDITION : GPC_EXIT_MADE;
}

enum gpc_exit gpc_cmd_fit(struct gpc_report *report)
{
	struct gpc_fit fit;
	enum gpc_status st;

	if (report->options->progress)
		return show_progress(report);
	st = gpc_fit_find(report, &fit);
	if (st == GPC_NOT_FOUND) {
		gpc_fit_complain_unused(report);
		return GPC_EXIT_NOT_FOUND;
	}
	if (st) {
		gpc_complain("no memory for the replay");
		return GPC_EXIT_IO;
	}
	gpc_page_begin(report, "fit");
	gpc_page_say_who(report, GPC_INK_PLAIN, "", NULL);
	if (report->options->ended)
		show_ending(report);
	gpc_fit_show(report, &fit);
	if (!report->options->ended)
		gpc_page_notes(report);
	gpc_document_end(report->doc);
	return gpc_fit_is_good(&fit) ? GPC_EXIT_MADE : GPC_EXIT_CONDITION;
}
