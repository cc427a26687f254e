/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples behind the formats of `export` that list holders: the holders of one moment, as paths from the root.
 *
 *      holdings of each GPU --> samples --> GPU 0 ; main train.c:9 ; load vec.h:40     5,242,880 bytes
 *                                           GPU 0 ; main train.c:9 ; contexts        401,604,608 bytes
 *
 * Invariants  1 The samples of a device add up to its holdings.
 *             2 A path has at least two names: the GPU and the holder.
 *             3 A format writes the whole file, or prints a message.
 * Threads     One.
 * Failure     A format returns an exit code.
 * Limits      A peak and a failed request list only their biggest stacks; the rest is one sample.
 */
#ifndef GPC_REPORT_EXPORT_H
#define GPC_REPORT_EXPORT_H

#include "tools/gpumem-report/report.h"
#include "tools/lib/map.h"

/* A name in a path; longer ones, such as C++ templates, are truncated. */
#define GPC_EXPORT_NAME_SIZE 1024

struct gpc_export_sample {
	int32_t device;
	uint32_t stack;
	/* A name for memory of contexts and modules, which the program did not request; else NULL. */
	const char *what;
	/* Sums without a stack: of unlisted holders, and what PyTorch caches outside tensors. */
	bool is_rest;
	bool is_cache;
	uint64_t bytes;
	uint64_t n_blocks;
};

struct gpc_export_samples {
	struct gpc_export_sample *rows;
	size_t n;
};

/* At the moment of --at. */
void gpc_export_samples_create(struct gpc_export_samples *samples, const struct gpc_report *report);
void gpc_export_samples_fini(struct gpc_export_samples *samples);

/* The number of names in the path of a sample. */
size_t gpc_export_depth(const struct gpc_report *report, const struct gpc_export_sample *sample);

/* The frame that name i of the path stands for; NULL if it is no frame. */
const struct gpc_frame *gpc_export_frame(
	const struct gpc_report *report, const struct gpc_export_sample *sample, size_t i);

/* Appends name i of the path; the root is 0. */
void gpc_export_name(const struct gpc_report *report, const struct gpc_export_sample *sample,
	size_t i, struct gpc_text *ret_text);

/* Numbers the names of paths in the order of first use.  An all-zero object is empty. */
struct gpc_export_numbers {
	struct gpc_map by_name;  /* number + 1 */
	struct gpc_map by_place; /* number + 1, by gpc_frame.place: saves making the name */
};

/* The number of name i of the path.  Returns true if it is new: the name is in ret_text. */
bool gpc_export_number(struct gpc_export_numbers *numbers, const struct gpc_report *report,
	const struct gpc_export_sample *sample, size_t i, struct gpc_text *ret_text,
	unsigned *ret_number);
void gpc_export_numbers_fini(struct gpc_export_numbers *numbers);

/* The moment in words: "live now", "at the peak". */
const char *gpc_export_moment(const struct gpc_report *report);

/* Checks --format and --query; prints a message and returns false if one is invalid. */
bool gpc_export_is_possible(const struct gpc_options *options);

/* True for a binary format, whose output must not pass clean_stream.h. */
bool gpc_export_is_binary(const struct gpc_options *options);

/* Prints the formats for --help, a line each. */
void gpc_export_print_formats(void);

/* Checks --query; gpc_export_is_possible calls it. */
bool gpc_export_is_query_possible(const struct gpc_options *options);

/* True if the word follows the format's name, as in "csv,noheader". */
bool gpc_export_has_word(const struct gpc_options *options, const char *word);

/* Writes the metrics of `n` processes for Prometheus, each family once; is_open: as OpenMetrics. */
void gpc_export_metrics(
	const struct gpc_report *reports, size_t n, uint64_t n_left_out, FILE *out, bool is_open);

#define GPC_EXPORT_FORMATS(FORMAT)                                                   \
	FORMAT(folded, "folded", TEXT, "flamegraph.pl, inferno, speedscope")         \
	FORMAT(pprof, "pprof", BINARY, "go tool pprof, Pyroscope")                   \
	FORMAT(perfetto, "perfetto", TEXT, "ui.perfetto.dev, chrome://tracing")      \
	FORMAT(snapshot, "pytorch-snapshot", BINARY, "PyTorch's memory_viz")         \
	FORMAT(csv, "csv", TEXT, "tables; csv[,noheader][,nounits] as nvidia-smi")   \
	FORMAT(prometheus, "prometheus", TEXT, "node_exporter's textfile collector") \
	FORMAT(openmetrics, "openmetrics", TEXT, "the same, as OpenMetrics has it")  \
	FORMAT(json, "json", TEXT, "holders with whole stacks, and the history")

#define GPC_EXPORT_DECLARE(function, name, kind, help) \
	enum gpc_exit gpc_export_##function(struct gpc_report *report);
GPC_EXPORT_FORMATS(GPC_EXPORT_DECLARE)
#undef GPC_EXPORT_DECLARE

#endif
