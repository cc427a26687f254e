/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains a failed request of a recording: the facts of its record, and those that only a report can know, judged by
 * why/why.h as the library has judged it.
 *
 *	record of the failure --> MOMENT     gpc_facts_from_oom()
 *	names of frames       --> NAMES      named_facts.h
 *	replays of the events --> REPLAY     what_if.h
 *
 * Threads     One.
 * Failure     None: what cannot be found out is unknown.
 */
#ifndef GPC_REPORT_FAILURE_H
#define GPC_REPORT_FAILURE_H

#include "tools/gpumem-report/why/named_facts.h"
#include "tools/gpumem-report/why/what_if.h"

struct gpc_failure {
	const struct gpc_report *report;
	struct gpucache_oom oom; /* a copy; `verdict`, `strength` and `also` are judged anew */
	struct gpc_facts facts;
	struct gpc_answer answer;
	struct gpc_named_texts named; /* texts that the facts refer to */
	struct gpc_replayed_texts replayed;
	char conf[64];
};

/* `facts` refers to texts in *ret_failure: it is not to be copied. */
void gpc_failure_explain(const struct gpc_report *report, const struct gpucache_oom *oom,
	struct gpc_failure *ret_failure);

/* Appends "growth (likely): ...", and what the numbers alone said if names or a replay changed the cause. */
void gpc_failure_say_why(const struct gpc_failure *failure, struct gpc_text *ret_text);

/* Appends advice number n; false if there is none. */
bool gpc_failure_say_try(const struct gpc_failure *failure, unsigned n, struct gpc_text *ret_text,
	const char **ret_reach);

/* Adds the object `verdict`, with the known facts in JSON: in text the sections WHY, ALSO, HELD, SHORT and TRY that have words. */
void gpc_failure_show(const struct gpc_failure *failure);

#endif
