/* SPDX-License-Identifier: Apache-2.0 */
/* `list`: the recordings in a folder, newest first. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "format/balance.h"
#include "tools/gpumem-report/output/json.h"
#include "why/why.h"

/* Narrower output omits ages. */
#define WIDTH_OF_AGES 72

struct figures {
	uint64_t peak_bytes; /* the largest of any device */
	uint64_t n_ooms;
	bool known;
	char gpus[40];       /* used by the process: "0,1"; empty: none */
	const char *verdict; /* of the newest failure without recovery; "": none */
};

/* The current time.  $SOURCE_DATE_EPOCH replaces it, so that tests print the same ages at any time. */
static uint64_t now_ns(void)
{
	const char *fixed = getenv("SOURCE_DATE_EPOCH");

	return fixed && *fixed ? strtoull(fixed, NULL, 10) * 1000000000u : gpc_clock_realtime_ns();
}

/* Sets `gpus` to "0,1", or to "0,1 (2,3)" if the machine numbers these GPUs 2 and 3. */
static void add_gpus(struct figures *figures, const struct gpc_recording *recording)
{
	struct gpc_text text = gpc_text_init(figures->gpus, sizeof figures->gpus);
	GPC_TEXT(numbers, 20);
	bool is_other = false;
	struct gpucache_device device;

	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_DEVICES].count; i++) {
		if (!gpc_recording_read_device(recording, i, &device) ||
			gpc_recording_totals(recording, device.ordinal).n_contexts == 0)
			continue;
		gpc_text_add(&text, "%s%d", text.len ? "," : "", device.ordinal);
		if (device.physical)
			gpc_text_add(&numbers, "%s%llu", numbers.len ? "," : "",
				(unsigned long long)device.physical - 1);
		is_other |= device.physical && device.physical - 1 != (uint64_t)device.ordinal;
	}
	if (is_other)
		gpc_text_add(&text, " (%s)", numbers.buf);
}

static struct figures figures_of(const struct gpc_directory_entry *entry)
{
	const struct gpc_options all_gpus = { .device = -1 };
	struct gpc_report one = { .options = &all_gpus };
	struct figures figures = { .verdict = "" };
	struct gpucache_counters counters;
	struct gpucache_oom oom;
	GPC_TEXT(text, 96);

	if (gpc_recording_open(entry->path, &one.recording, &text) != GPC_OK)
		return figures;
	figures.known = true;
	for (uint64_t i = 0; i < one.recording->regions[GPUCACHE_REGION_COUNTERS].count; i++) {
		if (!gpc_recording_read_counters(one.recording, i, &counters))
			continue;
		figures.peak_bytes = gpc_larger(figures.peak_bytes, counters.peak_reserved_bytes);
		figures.n_ooms = gpc_bytes_add(figures.n_ooms, counters.n_oom);
	}
	add_gpus(&figures, one.recording);
	if (gpc_report_find_oom(&one, -1, true, &oom))
		figures.verdict = gpc_cause_word(oom.verdict);
	gpc_recording_close(one.recording);
	return figures;
}

/* Moves *at over spaces.  Returns the length of the word there; 0 at the end of the text. */
static size_t next_word(const char **at)
{
	size_t len;

	*at += strspn(*at, " ");
	len = strcspn(*at, " ");
	return len;
}

/*
 * The program's usual name: "train.py" for "/usr/bin/python3 -u /x/train.py --epochs 3", "-m package.train", else the
 * name of the executable.
 */
static void add_script(const struct gpucache_header *header, struct gpc_text *ret_text)
{
	const char *exe = header->exe[0] ? gpc_base_name(header->exe) : "?";
	const char *at = header->command;
	size_t len = next_word(&at);

	if (strncmp(exe, "python", 6) != 0) {
		gpc_text_add_clean(ret_text, exe, strlen(exe));
		return;
	}
	for (at += len; (len = next_word(&at)); at += len) {
		if (at[0] == '-' && (len != 2 || (at[1] != 'm' && at[1] != 'c')))
			continue;
		if (at[0] != '-') {
			const char *name = at + len;

			while (name > at && name[-1] != '/')
				name--;
			gpc_text_add_clean(ret_text, name, (size_t)(at + len - name));
			return;
		}
		gpc_text_add(ret_text, "%s %.*s ", exe, (int)len, at);
		if (at[1] == 'c')
			return;
		at += len;
		len = next_word(&at);
		gpc_text_add_clean(ret_text, at, len);
		return;
	}
	gpc_text_add_clean(ret_text, exe, strlen(exe));
}

static void print_entry(
	const struct gpc_paper *paper, const struct gpc_directory_entry *entry, uint64_t now)
{
	struct figures figures = figures_of(entry);
	char rank[16] = "";
	GPC_TEXT(text, 200);
	int used;

	if (entry->status != GPC_OK) {
		gpc_paper_head(paper, "%-7s %s: %s", "-", gpc_base_name(entry->path), entry->why);
		return;
	}
	if (entry->header.rank >= 0)
		snprintf(rank, sizeof rank, "%d", entry->header.rank);
	add_script(&entry->header, &text);
	if (entry->header.job[0])
		gpc_text_add(&text, ", job %s", entry->header.job);
	used = fprintf(paper->out, "%-6s ", gpc_state_word(entry->state));
	if (paper->width >= WIDTH_OF_AGES)
		used += fprintf(paper->out, "%11s ",
			gpc_show_duration(gpc_bytes_less(now, entry->header.start_realtime_ns)));
	used += fprintf(paper->out, "%7u %4s %-5s %10s %-10s ", entry->header.pid, rank,
		figures.known ? figures.gpus : "?",
		figures.known ? gpc_show_bytes(figures.peak_bytes) : "?",
		*figures.verdict ? figures.verdict
		: figures.n_ooms ? "recovered"
				 : "");
	fprintf(paper->out, "%.*s\n", paper->width > used ? paper->width - used : 0, text.buf);
}

static void print_json(struct gpc_report *report)
{
	struct json_object *root = gpc_json_begin(report, "list");
	struct json_object *array = gpc_json_add(root, "recordings", json_object_new_array());

	for (size_t i = 0; i < report->directory.n_entries; i++) {
		const struct gpc_directory_entry *entry = &report->directory.entries[i];
		struct figures figures = figures_of(entry);
		struct json_object *object;

		if (entry->status == GPC_OK) {
			GPC_TEXT(program, 200);

			object = gpc_json_identity(
				entry->path, &entry->header, entry->state, entry->size);
			gpc_json_bytes(object, "peak_reserved_bytes",
				figures.known ? figures.peak_bytes : GPUCACHE_UNKNOWN);
			gpc_json_bytes(
				object, "ooms", figures.known ? figures.n_ooms : GPUCACHE_UNKNOWN);
			add_script(&entry->header, &program);
			gpc_json_text(object, "program", program.buf);
			gpc_json_text(object, "gpus", figures.gpus);
			gpc_json_text(object, "verdict", figures.verdict);
		} else {
			object = json_object_new_object();
			gpc_json_text(object, "path", entry->path);
			gpc_json_text(object, "problem", entry->why);
		}
		json_object_array_add(array, object);
	}
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
	fprintf(paper->out, "%s%-6s ", gpc_paper_ink(paper, GPC_INK_DIM), "state");
	if (paper->width >= WIDTH_OF_AGES)
		fprintf(paper->out, "%11s ", "started ago");
	fprintf(paper->out, "%7s %4s %-5s %10s %-10s %s%s\n", "pid", "rank", "GPU", "peak",
		"verdict", "program", gpc_paper_ink(paper, GPC_INK_PLAIN));
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
