/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every format of `export` is made of: who held how much at one moment, as paths from the root.
 *
 *      holdings of each GPU --> samples --> GPU 0 ; main train.c:9 ; load vec.h:40     5,242,880 bytes
 *                                           GPU 0 ; main train.c:9 ; contexts        401,604,608 bytes
 *
 * Invariants  1 The samples of a device add up to what its holdings do.  2 A path has at least two
 *               names: the GPU, and who.  3 A format writes the whole file, or complains.
 * Threads     One.
 * Failure     GPC_NO_METADATA; a format answers an exit code.
 * Limits      A peak and a failed request list their biggest stacks only; what they leave out is a
 *             sample of its own.
 */
#ifndef GPC_REPORT_EXPORT_H
#define GPC_REPORT_EXPORT_H

#include "tools/gpumem-report/report.h"

/* A name of a path: a C++ template may be longer, and is cut. */
#define GPC_EXPORT_NAME_SIZE 1024

struct gpc_export_sample {
	int32_t device;
	uint32_t stack;
	const char *
		what; /* it is a context or a module, or not listed; NULL: what the program asked for */
	bool is_rest; /* of holders that the recording does not list: no stack */
	uint64_t bytes;
	uint64_t n_blocks;
};

struct gpc_export_samples {
	struct gpc_export_sample *rows;
	size_t n;
	uint64_t total_bytes;
};

/* At the moment that --at names. */
GPC_MUST_CHECK enum gpc_status gpc_export_samples_create(
	struct gpc_export_samples *samples, const struct gpc_report *report);
void gpc_export_samples_fini(struct gpc_export_samples *samples);

/* How many names lie on the path of a sample. */
size_t gpc_export_depth(const struct gpc_report *report, const struct gpc_export_sample *sample);

/* Appends name i of the path, the root's being 0; answers its frame where it is one. */
const struct gpc_frame *gpc_export_name(const struct gpc_report *report,
	const struct gpc_export_sample *sample, size_t i, struct gpc_text *ret_text);

/* The next device that is wanted, from *i on, which starts at 0; false: there is no more. */
bool gpc_export_next_device(
	const struct gpc_report *report, uint64_t *i, struct gpucache_device *ret_device);

/* In words: "live now", "at the peak". */
const char *gpc_export_moment(const struct gpc_report *report);

/* Whether --format, --at and --query can be done; complains where not. */
bool gpc_export_is_possible(const struct gpc_options *options);

/* Whether the form is no text: it is for another program, and goes out as it is. */
bool gpc_export_is_binary(const struct gpc_options *options);

/* The part of it that is the columns'. */
bool gpc_export_is_query_possible(const struct gpc_options *options);

/* Whether the word is in the list that follows the format's name: "csv,noheader". */
bool gpc_export_has_word(const struct gpc_options *options, const char *word);

/* Metrics of several processes at once: each family once, as both formats want it. */
void gpc_export_metrics(const struct gpc_report *const *reports, size_t n, FILE *out, bool is_open);

#define GPC_EXPORT_FORMATS(FORMAT)           \
	FORMAT(folded, "folded")             \
	FORMAT(speedscope, "speedscope")     \
	FORMAT(pprof, "pprof")               \
	FORMAT(perfetto, "perfetto")         \
	FORMAT(snapshot, "pytorch-snapshot") \
	FORMAT(csv, "csv")                   \
	FORMAT(prometheus, "prometheus")     \
	FORMAT(openmetrics, "openmetrics")   \
	FORMAT(json, "json")

#define GPC_EXPORT_DECLARE(function, name) \
	enum gpc_exit gpc_export_##function(struct gpc_report *report);
GPC_EXPORT_FORMATS(GPC_EXPORT_DECLARE)
#undef GPC_EXPORT_DECLARE

#endif
