/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a request failed: one struct of facts in, one answer out, and every sentence about it.
 *
 *	facts.def ---> struct gpc_facts --- gpc_why() ---> struct gpc_answer
 *	                    ^                                   |
 *	  library: MOMENT, cheap NAMES                          v
 *	  report:  NAMES, REPLAY too               causes.def: because, short, try
 *
 * The library and the report call the same function; the report only knows more.  So it also knows what the facts of
 * the moment alone say, and where names or a replay change the cause it says both: "at the failure: growth (likely)".
 *
 *	need <= free                       refused by the driver
 *	     <= free + cached              fragmented
 *	     <= ... + pending              pending
 *	     <= ... + rounding             rounding
 *	     <= ... + others               neighbour, and likewise contexts, managed memory, growth
 *	     >  all that a placement saves exhausted
 *
 * Invariants
 *   1 An unknown fact satisfies no condition and stands in no sentence: the next row of the table is tried.
 *   2 CERTAIN is arithmetic over measured numbers.  A cause that rests on records is at most likely if a record was
 *     dropped.
 *   3 What the facts of the MOMENT make certain stays the answer, whatever NAMES and REPLAY add.
 *
 * Threads   Pure functions, except for the caller's struct gpc_site_names.
 * Failure   None: the cause is NONE if nothing explains the failure; a text that does not fit is cut.
 * Limits    One failed request.  Freestanding: no malloc, no stdio.
 */
#ifndef GPC_WHY_WHY_H
#define GPC_WHY_WHY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "gpucache_format.h"
#include "model/sizes.h"

#define GPC_MAX_TRIES 3u

/* Nothing is spilled (runtime/rescue/spill.h) where other processes hold more than one part in so many of the device. */
#define GPC_SPILL_OTHERS 16u

/* In the next run other threads may ask earlier, or in another order: a segment more. */
#define GPC_MARGIN (20 * GPC_MIB)

/* Or with so many of one size, though nothing is freed: hardly the shards of one load. */
#define GPC_LOADED_BLOCKS 320u

/* What memory is for. */
enum gpc_purpose {
#define PURPOSE(name, words) GPC_PURPOSE_##name,
#include "why/purpose.def"
	GPC_N_PURPOSES,
};

/* "weights", "optimizer state" */
const char *gpc_purpose_words(enum gpc_purpose purpose);

enum gpc_truth {
	GPC_NOT_KNOWN,
	GPC_NO,
	GPC_YES,
};

enum gpc_fact_kind {
	GPC_FACT_BYTES,
	GPC_FACT_COUNT,
	GPC_FACT_FRACTION, /* parts of 10000 */
	GPC_FACT_TIME,     /* nanoseconds */
	GPC_FACT_SITE,     /* number of a stack */
	GPC_FACT_PURPOSE,  /* enum gpc_purpose */
	GPC_FACT_TRUTH,    /* enum gpc_truth */
	GPC_FACT_WORDS,    /* NULL: unknown */
};

enum gpc_fact_source {
	GPC_FROM_MOMENT,
	GPC_FROM_NAMES,
	GPC_FROM_REPLAY,
	GPC_FROM_DERIVED,
};

#define GPC_TYPE_BYTES    uint64_t
#define GPC_TYPE_COUNT    uint64_t
#define GPC_TYPE_FRACTION uint64_t
#define GPC_TYPE_TIME     uint64_t
#define GPC_TYPE_SITE     uint64_t
#define GPC_TYPE_PURPOSE  uint64_t
#define GPC_TYPE_TRUTH    uint64_t
#define GPC_TYPE_WORDS    const char *

/* Begin with gpc_facts_unknown(): numbers and sites GPUCACHE_UNKNOWN, truths GPC_NOT_KNOWN, words NULL. */
struct gpc_facts {
#define FACT(source, kind, name, meaning) GPC_TYPE_##kind name;
#include "why/facts.def"
};

struct gpc_fact_row {
	const char *name;
	const char *meaning;
	size_t offset;
	enum gpc_fact_kind kind;
	enum gpc_fact_source source;
};

extern const struct gpc_fact_row gpc_fact_rows[];
extern const size_t gpc_n_fact_rows;

struct gpc_facts gpc_facts_unknown(void);

/* Makes all facts of a source unknown. */
void gpc_facts_forget(struct gpc_facts *facts, enum gpc_fact_source source);

/*
 * All facts of the MOMENT, but `conf`.  `facts` refers to texts of `oom`.  The library calls this with
 * the record that it is about to store, the report with the one that it has read.
 */
void gpc_facts_from_oom(struct gpc_facts *facts, const struct gpucache_oom *oom);

/* The value of a fact: a number; false if it is unknown.  For WORDS, *ret_words instead. */
bool gpc_fact_read(const struct gpc_facts *facts, const struct gpc_fact_row *row,
	uint64_t *ret_number, const char **ret_words);

struct gpc_answer {
	enum gpucache_verdict cause;
	enum gpucache_strength strength;
	enum gpucache_verdict then_cause; /* by the facts of the MOMENT alone */
	enum gpucache_strength then_strength;
	uint32_t also;     /* bit c: cause c is at least likely, too */
	uint32_t possible; /* bit c: it is at least possible; read by tests */
};

/*
 * Computes the DERIVED facts and judges every cause.  gpc_why_then: for a caller that has only facts of the MOMENT, and
 * little stack.
 */
struct gpc_answer gpc_why(struct gpc_facts *facts);
struct gpc_answer gpc_why_then(struct gpc_facts *facts);

/* True if a setting of the cache may be the remedy: no cause that a setting cannot remove is likely. */
bool gpc_why_is_up_to_settings(const struct gpc_facts *facts);

/* A word and a sentence for a cause, a word for a strength.  Any number that a recording may hold is accepted. */
const char *gpc_cause_word(unsigned cause);
const char *gpc_cause_meaning(unsigned cause);
const char *gpc_strength_word(unsigned strength);

/* ---- sentences (sentences.c): each function appends one, without a full stop ---- */

/* Names call sites; in the library without malloc, and without a lock that the program may hold. */
struct gpc_site_names {
	void *self;
	void (*add)(void *self, uint32_t stack, struct gpc_text *text);
};

/* Appends the template with the facts for its {names}.  False, and nothing appended, if one is unknown.  {CAPITALS} stay. */
bool gpc_say_filled(struct gpc_text *text, const char *template, const struct gpc_facts *facts,
	const struct gpc_site_names *names);

/* "fragmented (likely): 9.00 GiB is cached and free, largest piece 1.40 GiB, 3.25 GiB asked for" */
void gpc_say_why(struct gpc_text *text, const struct gpc_facts *facts,
	const struct gpc_answer *answer, const struct gpc_site_names *names);

/* "fragmented, neighbour": the other causes that are at least likely; nothing if there are none. */
void gpc_say_also(struct gpc_text *text, const struct gpc_answer *answer);

/* "by 1.66 GiB: 3.10 GiB asked for, rounded to 3.25 GiB, 1.54 GiB free on the GPU" */
void gpc_say_short(
	struct gpc_text *text, const struct gpc_facts *facts, const struct gpc_site_names *names);

/*
 * Advice number n < GPC_MAX_TRIES for the answer's cause; false if there is none.  *ret_reach: how far it reaches, as
 * in causes.def, in lower case.
 */
bool gpc_say_try(struct gpc_text *text, const struct gpc_facts *facts,
	const struct gpc_answer *answer, const struct gpc_site_names *names, unsigned n,
	const char **ret_reach);

/* "gpucache-run --cure --on l4 -- COMMAND tries settings, on a simulated GPU"; nothing if no run of a simulated GPU tries it. */
void gpc_say_rerun(
	struct gpc_text *text, const struct gpc_facts *facts, const struct gpc_answer *answer);

/* "at the failure: growth (likely)"; nothing if the facts of the moment say the same cause. */
void gpc_say_change(struct gpc_text *text, const struct gpc_answer *answer);

/* For a test: a row of causes.def that is wrong, or NULL.  *ret_wrong says what is wrong. */
const char *gpc_sentences_check(const char **ret_wrong);

#endif
