/* SPDX-License-Identifier: Apache-2.0 */
/* `list`: the recordings that are there, newest first. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/gpumem-report/json.h"

struct figures {
	uint64_t peak_bytes; /* of one device */
	uint64_t n_ooms;
	bool known;
};

/* Now, or what a build that must not know the time says it is. */
static uint64_t now_ns(void)
{
	const char *fixed = getenv("SOURCE_DATE_EPOCH");
	struct timespec now;

	if (fixed && *fixed)
		return strtoull(fixed, NULL, 10) * 1000000000u;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct figures figures_of(const struct gpc_directory_entry *entry)
{
	struct figures figures = { 0 };
	struct gpc_recording *recording;
	struct gpucache_counters counters;
	char why[96];
	struct gpc_text text = gpc_text_init(why, sizeof why);

	if (gpc_recording_open(entry->path, &recording, &text) != GPC_OK)
		return figures;
	figures.known = true;
	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_COUNTERS].count; i++) {
		if (!gpc_recording_read_counters(recording, i, &counters))
			continue;
		if (counters.peak_reserved_bytes > figures.peak_bytes)
			figures.peak_bytes = counters.peak_reserved_bytes;
		figures.n_ooms += counters.n_oom;
	}
	gpc_recording_close(recording);
	return figures;
}

static void print_entry(
	const struct gpc_paper *paper, const struct gpc_directory_entry *entry, uint64_t now)
{
	struct figures figures = figures_of(entry);
	const char *exe = gpc_base_name(entry->header.exe);
	int used;

	if (entry->status != GPC_OK) {
		fprintf(paper->out, "%-7s %s: %s\n", "-", gpc_base_name(entry->path), entry->why);
		return;
	}
	used = fprintf(paper->out, "%-7s %11s %10s %8u %11s %5s  ", gpc_state_word(entry->state),
		gpc_show_duration(gpc_bytes_less(now, entry->header.start_realtime_ns)),
		gpc_show_bytes(entry->size), entry->header.pid,
		figures.known ? gpc_show_bytes(figures.peak_bytes) : "?",
		figures.known ? gpc_show_count(figures.n_ooms) : "?");
	fprintf(paper->out, "%.*s\n", paper->width - used, exe);
}

static void print_json(struct gpc_report *report)
{
	struct json_object *root = gpc_json_begin(report, "list");
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < report->directory.n_entries; i++) {
		const struct gpc_directory_entry *entry = &report->directory.entries[i];
		struct figures figures = figures_of(entry);
		struct json_object *object;

		if (entry->status == GPC_OK) {
			object = gpc_json_identity(
				entry->path, &entry->header, entry->state, entry->size);
			gpc_json_bytes(object, "peak_reserved_bytes",
				figures.known ? figures.peak_bytes : GPUCACHE_UNKNOWN);
			gpc_json_bytes(
				object, "ooms", figures.known ? figures.n_ooms : GPUCACHE_UNKNOWN);
		} else {
			object = json_object_new_object();
			gpc_json_text(object, "path", entry->path);
			gpc_json_text(object, "problem", entry->why);
		}
		json_object_array_add(array, object);
	}
	json_object_object_add(root, "recordings", array);
	gpc_json_end(report, root);
}

enum gpc_exit gpc_cmd_list(struct gpc_report *report)
{
	const struct gpc_directory *directory = &report->directory;
	const struct gpc_paper *paper = &report->paper;
	size_t limit = report->options->limit ? report->options->limit : directory->n_entries;
	uint64_t now = now_ns();

	if (report->options->json) {
		print_json(report);
		return GPC_EXIT_MADE;
	}
	fprintf(paper->out, "%s%-7s %11s %10s %8s %11s %5s  %s%s\n",
		gpc_paper_ink(paper, GPC_INK_DIM), "state", "started ago", "size", "pid", "peak",
		"OOMs", "program", gpc_paper_ink(paper, GPC_INK_PLAIN));
	for (size_t i = 0; i < directory->n_entries && i < limit; i++)
		print_entry(paper, &directory->entries[i], now);
	if (directory->n_entries > limit)
		fprintf(paper->out, "... and %zu more\n", directory->n_entries - limit);
	fputc('\n', paper->out);
	for (unsigned i = 0; i < directory->n_dirs; i++)
		if (directory->is_there[i])
			fprintf(paper->out, "in %s\n", directory->dirs[i]);
	return GPC_EXIT_MADE;
}
