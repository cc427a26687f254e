/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics for Prometheus, by node_exporter's textfile collector, and for OpenMetrics.
 *
 * The labels of a GPU are those of dcgm-exporter; gpu is the process's own ordinal, so join series on
 * UUID.  Samples have no timestamps: the collector refuses files with any.
 */
#include <string.h>

#include "format/sheet.h"
#include "model/counters.h"
#include "tools/gpumem-report/export/export.h"

struct metrics {
	const struct gpc_report *reports; /* one per process */
	size_t n;
	FILE *out;
	bool is_open; /* OpenMetrics */
};

struct family {
	char name[80]; /* without _total */
	const char *type;
	const char *unit; /* NULL: a count */
	char help[120];
};

static void print_label(FILE *out, const char *name, const char *value)
{
	fprintf(out, ",%s=\"", name);
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", out);
		else
			fprintf(out, *value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
	}
	fputc('"', out);
}

static void print_family(const struct metrics *metrics, const struct family *family)
{
	bool is_counter = strcmp(family->type, "counter") == 0;
	const char *suffix = is_counter && !metrics->is_open ? "_total" : "";
	FILE *out = metrics->out;

	if (!metrics->is_open)
		fprintf(out, "# HELP %s%s %s\n", family->name, suffix, family->help);
	fprintf(out, "# TYPE %s%s %s\n", family->name, suffix, family->type);
	if (metrics->is_open && family->unit)
		fprintf(out, "# UNIT %s %s\n", family->name, family->unit);
	if (metrics->is_open)
		fprintf(out, "# HELP %s %s\n", family->name, family->help);
}

static void print_sample(FILE *out, const struct gpc_report *report, const struct family *family,
	const struct gpucache_device *device, uint64_t value)
{
	const struct gpucache_header *header = &report->recording->header;

	fprintf(out, "%s%s{gpu=\"%d\"", family->name,
		strcmp(family->type, "counter") == 0 ? "_total" : "", device->ordinal);
	print_label(out, "UUID", device->uuid);
	print_label(out, "modelName", device->name);
	print_label(out, "Hostname", header->host);
	fprintf(out, ",pid=\"%u\"", header->pid);
	if (header->rank >= 0)
		fprintf(out, ",rank=\"%d\"", header->rank);
	if (header->job[0])
		print_label(out, "hpc_job", header->job);
	fprintf(out, "} %llu\n", (unsigned long long)value);
}

static struct family family_of(const struct gpc_counter *counter)
{
	static const char *const moments[] = { [GPC_WHEN_HEAP] = "now",
		[GPC_WHEN_BESIDE] = "now",
		[GPC_WHEN_PEAK] = "at most",
		[GPC_WHEN_EVER] = "since the start" };
	struct family family = {
		.type = counter->when == GPC_WHEN_EVER ? "counter" : "gauge",
		.unit = counter->counts == GPC_COUNTS_BYTES ? "bytes" : NULL,
	};

	snprintf(family.name, sizeof family.name, "gpucache_%s%s",
		counter->when == GPC_WHEN_PEAK ? "peak_" : "", counter->key);
	snprintf(family.help, sizeof family.help, "%s of the process on this GPU, %s.",
		counter->key, moments[counter->when]);
	return family;
}

/* Prints the samples of `counter`.  If `counter` is NULL, prints the known values of the balance line at `offset`. */
static void print_samples(const struct metrics *metrics, const struct family *family,
	const struct gpc_counter *counter, size_t offset)
{
	struct gpucache_balance balance;
	struct gpucache_device device;

	print_family(metrics, family);
	for (size_t r = 0; r < metrics->n; r++)
		for (uint64_t i = 0; gpc_report_next_device(&metrics->reports[r], &i, &device);) {
			const struct gpc_recording *rec = metrics->reports[r].recording;
			uint64_t value = GPUCACHE_UNKNOWN;

			if (counter) {
				struct gpc_device_totals totals =
					gpc_recording_totals(rec, device.ordinal);

				value = *gpc_counter_words(&totals.sum, counter);
			} else if (gpc_recording_balance(rec, &device, &balance)) {
				memcpy(&value, (const char *)&balance + offset, sizeof value);
			}
			if (counter || value != GPUCACHE_UNKNOWN)
				print_sample(
					metrics->out, &metrics->reports[r], family, &device, value);
		}
}

/* Of the bytes by kind, these have a metric of their own: they are not in the others. */
static const struct gpc_counter spilled = { "spilled_bytes",
	offsetof(struct gpucache_counters, kind_bytes[GPUCACHE_KIND_SPILLED]), 1, GPC_WHEN_BESIDE,
	GPC_ADDS_SUM, GPC_COUNTS_BYTES };

/* Lines of the balance sheet that are no counters of gpucache. */
static const struct {
	struct family family;
	size_t offset;
} lines[] = {
#define LINE(line, help)                                                \
	{                                                               \
		{ "gpucache_" #line "_bytes", "gauge", "bytes", help }, \
			offsetof(struct gpucache_balance, line)         \
	}
	LINE(process_outside, "This process, not tracked by gpucache."),
	LINE(other_processes, "Other processes on this GPU."),
	LINE(device_free, "Free on this GPU."),
	LINE(device_total, "All memory of this GPU."),
};

/*
 * Prints the identity of each process as a metric of its own, which queries join with the others by pid and Hostname.
 * The command line is left out, because it may contain secrets.
 */
static void print_info(const struct metrics *metrics)
{
	struct family family = {
		.name = "gpucache_run", .type = "info", .help = "The process and how it ended."
	};
	FILE *out = metrics->out;

	if (!metrics->is_open) {
		family.type = "gauge";
		strcat(family.name, "_info");
	}
	print_family(metrics, &family);
	for (size_t r = 0; r < metrics->n; r++) {
		const struct gpc_recording *rec = metrics->reports[r].recording;

		fprintf(out, "gpucache_run_info{pid=\"%u\"", rec->header.pid);
		print_label(out, "Hostname", rec->header.host);
		print_label(out, "comm", gpc_base_name(rec->header.exe));
		print_label(out, "state", gpc_state_word(rec->run_state));
		print_label(out, "version", rec->header.version);
		fputs("} 1\n", out);
	}
}

static void print_left_out(const struct metrics *metrics, uint64_t n_left_out)
{
	static const struct family family = { .name = "gpucache_processes_left_out",
		.type = "gauge",
		.help = "Processes without metrics, because there are too many." };

	print_family(metrics, &family);
	fprintf(metrics->out, "%s %llu\n", family.name, (unsigned long long)n_left_out);
}

void gpc_export_metrics(
	const struct gpc_report *reports, size_t n, uint64_t n_left_out, FILE *out, bool is_open)
{
	const struct metrics metrics = { reports, n, out, is_open };
	const struct family now = family_of(&spilled);

	print_info(&metrics);
	for (size_t i = 0; i < GPC_N_COUNTERS; i++) {
		const struct gpc_counter *counter = &gpc_counters[i];
		struct family family = family_of(counter);

		if (counter->counts == GPC_COUNTS_BYTES || counter->counts == GPC_COUNTS_CALLS)
			print_samples(&metrics, &family, counter, 0);
	}
	print_samples(&metrics, &now, &spilled, 0);
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		print_samples(&metrics, &lines[i].family, NULL, lines[i].offset);
	if (n_left_out)
		print_left_out(&metrics, n_left_out);
	if (is_open)
		fputs("# EOF\n", out);
}

enum gpc_exit gpc_export_prometheus(struct gpc_report *report)
{
	gpc_export_metrics(report, 1, 0, report->out, false);
	return GPC_EXIT_MADE;
}

enum gpc_exit gpc_export_openmetrics(struct gpc_report *report)
{
	gpc_export_metrics(report, 1, 0, report->out, true);
	return GPC_EXIT_MADE;
}
