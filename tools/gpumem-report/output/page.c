/* SPDX-License-Identifier: Apache-2.0 */
/* A document goes to its FILE as it comes; the width is that of the terminal, or COLUMNS. */
#include "tools/gpumem-report/output/page.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "gpucache_version.h"
#include "tools/gpumem-report/output/render_html.h"
#include "tools/lib/clean_stream.h"

#define WIDTH_PIPED 80
#define WIDTH_LEAST 60
#define WIDTH_MOST  200

/* The most files without symbols that a note names. */
#define MOST_MISSING 4

/* `stdout` may be a stream of clean_stream.h, which has no descriptor of its own. */
static int descriptor_of(FILE *out)
{
	return out == stdout ? STDOUT_FILENO : fileno(out);
}

static unsigned width_of(FILE *out)
{
	const char *columns = getenv("COLUMNS");
	long width = WIDTH_PIPED;
	struct winsize size;

	if (columns && *columns)
		width = strtol(columns, NULL, 10);
	else if (isatty(descriptor_of(out)) && ioctl(descriptor_of(out), TIOCGWINSZ, &size) == 0 &&
		 size.ws_col > 0)
		width = size.ws_col;
	if (width < WIDTH_LEAST)
		return WIDTH_LEAST;
	return width > WIDTH_MOST ? WIDTH_MOST : (unsigned)width;
}

static bool wants_colour(FILE *out, enum gpc_colour_mode mode)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (mode != GPC_COLOUR_AUTO)
		return mode == GPC_COLOUR_ALWAYS;
	return !(no_color && *no_color) && term && strcmp(term, "dumb") != 0 &&
	       isatty(descriptor_of(out));
}

static void put(void *self, const char *bytes, size_t n)
{
	fwrite_unlocked(bytes, 1, n, self);
}

void gpc_page_init(struct gpc_document *doc, FILE *out, const struct gpc_options *options)
{
	*doc = (struct gpc_document){
		.renderer = options->json   ? &gpc_render_json
			    : options->html ? &gpc_render_html
					    : &gpc_render_text,
		.put = put,
		.self = out,
		.limit = options->limit,
		.local_ns = gpc_local_ns,
		.width = width_of(out),
		.indent = 9,
		.has_colour = wants_colour(out, options->colour),
	};
	gpc_clean_let_colours(doc->has_colour);
}

struct gpc_cell gpc_page_time(const struct gpc_report *report, uint64_t monotonic_ns)
{
	return gpc_time(monotonic_ns ? gpc_report_realtime(report->recording, monotonic_ns) : 0);
}

void gpc_page_say_who(
	const struct gpc_report *report, enum gpc_ink ink, const char *ending, const char *started)
{
	const struct gpucache_header *header = &report->recording->header;
	struct gpc_document *doc = report->doc;

	gpc_document_shout(doc, ink, "%s, pid %u on %s: %s%s",
		header->exe[0] ? gpc_base_name(header->exe) : "?", header->pid,
		header->host[0] ? header->host : "?", gpc_state_word(report->recording->run_state),
		ending);
	if (started)
		gpc_document_say(doc, "%s", started);
	if (header->command[0])
		gpc_document_say(doc, "%s", header->command);
}

void gpc_page_identify(struct gpc_document *doc, const char *path,
	const struct gpucache_header *header, enum gpc_run_state state, uint64_t size)
{
	gpc_document_member(doc, "path", gpc_name(path));
	gpc_document_member(doc, "state", gpc_name(gpc_state_word(state)));
	gpc_document_member(doc, "oom_seen", gpc_truth(header->state & GPUCACHE_STATE_OOM_SEEN));
	gpc_document_member(doc, "pid", gpc_number(header->pid));
	gpc_document_member(doc, "exe", gpc_name(header->exe));
	gpc_document_member(doc, "command", gpc_name(header->command));
	gpc_document_member(doc, "host", gpc_name(header->host));
	gpc_document_member(doc, "job", gpc_name(header->job));
	gpc_document_member(doc, "rank", gpc_number(gpc_unless_negative(header->rank)));
	gpc_document_member(doc, "started", gpc_time(header->start_realtime_ns));
	gpc_document_member(doc, "library_version", gpc_name(header->version));
	gpc_document_member(
		doc, "driver_version", gpc_number(gpc_unless_zero(header->driver_version)));
	gpc_document_member(doc, "file_bytes", gpc_bytes(size));
}

static void begin_recording(struct gpc_document *doc, const struct gpc_recording *rec)
{
	static const struct gpc_column columns[] = { { "region" }, { "problem" } };
	static const struct gpc_section problems = { "problems", NULL, GPC_COLUMNS(columns) };
	const struct gpucache_header *header = &rec->header;

	gpc_document_open_object(doc, "recording");
	gpc_page_identify(doc, rec->path, header, rec->run_state, header->file_size);
	gpc_document_member(
		doc, "last_seen", gpc_time(gpc_report_realtime(rec, gpc_recording_last_ns(rec))));
	gpc_document_member(doc, "dropped_blocks", gpc_count(header->dropped_blocks));
	gpc_document_member(doc, "dropped_stacks", gpc_count(header->dropped_stacks));
	gpc_document_member(doc, "dropped_python", gpc_count(header->dropped_python));
	gpc_document_member(doc, "dropped_segments", gpc_count(header->dropped_segments));
	gpc_document_member(doc, "dropped_tags", gpc_count(header->dropped_tags));
	gpc_document_member(doc, "sampled_below_bytes", gpc_bytes(header->sample_bytes));
	gpc_document_open(doc, &problems);
	for (unsigned i = 0; i < rec->n_problems && i < GPC_RECORDING_MAX_PROBLEMS; i++)
		gpc_document_row(doc, gpc_name(gpc_region_name(rec->problems[i].kind)),
			gpc_name(rec->problems[i].text));
	gpc_document_close(doc);
	gpc_document_close(doc);
}

/* "train.py" of "python train.py", else the name of the executable. */
static void add_program(struct gpc_text *text, const struct gpucache_header *header)
{
	const char *exe = gpc_base_name(header->exe);
	const char *word = strncmp(exe, "python", 6) == 0 ? header->command : "";
	size_t len;

	for (; *word; word += len + (word[len] == ' ')) {
		len = strcspn(word, " ");
		if (len > 3 && strncmp(word + len - 3, ".py", 3) == 0) {
			const char *name = memrchr(word, '/', len);

			name = name ? name + 1 : word;
			gpc_text_add(text, "%.*s", (int)(word + len - name), name);
			return;
		}
	}
	gpc_text_add(text, "%s", *exe ? exe : "?");
}

/* "Cure: train.py on NVIDIA L4, 22.03 GiB".  What `fit` simulates has no limit, and its page names the GPU's size. */
static void add_title(struct gpc_text *text, const struct gpc_report *report, const char *view)
{
	const bool has_size = strcmp(view, "fit") != 0;
	const char *between = " on ";
	struct gpucache_device device;

	gpc_text_add(text, "%c%s: ", view[0] - 'a' + 'A', view + 1);
	add_program(text, &report->recording->header);
	for (uint64_t i = 0; gpc_report_next_device(report, &i, &device); between = "; ")
		gpc_text_add(text, "%s%s%s%s", between, device.name, has_size ? ", " : "",
			has_size ? gpc_show_bytes(device.total_bytes) : "");
}

void gpc_page_begin(const struct gpc_report *report, const char *view)
{
	struct gpc_document *doc = report->doc;
	GPC_TEXT(title, 600);

	if (report->options->html && report->recording) {
		add_title(&title, report, view);
		doc->title = title.buf;
	}
	gpc_document_begin(doc);
	doc->title = NULL;
	gpc_document_member(doc, "schema", gpc_name(GPC_REPORT_SCHEMA));
	gpc_document_member(doc, "tool_version", gpc_name(GPUCACHE_VERSION));
	gpc_document_member(doc, "view", gpc_name(view));
	if (report->recording)
		begin_recording(doc, report->recording);
}

const struct gpc_section gpc_page_devices = { "devices" };

void gpc_page_tell_device(struct gpc_document *doc, const struct gpucache_device *device)
{
	gpc_document_member(doc, "ordinal", gpc_number((uint64_t)device->ordinal));
	gpc_document_member(doc, "name", gpc_name(device->name));
	gpc_document_member(doc, "uuid", gpc_name(device->uuid));
	gpc_document_member(doc, "physical_index",
		gpc_number(gpc_unless_negative((int64_t)device->physical - 1)));
	gpc_document_member(doc, "pci_bus_id", gpc_name(device->pci_bus_id));
}

void gpc_page_open_device(struct gpc_document *doc, const struct gpucache_device *device)
{
	static const struct gpc_section element = { .flags = GPC_OBJECT };

	gpc_document_open(doc, &element);
	gpc_page_tell_device(doc, device);
}

/* ---- notes ---- */

static void __attribute__((format(__printf__, 2, 3)))
note(const struct gpc_report *report, const char *format, ...)
{
	GPC_TEXT(text, 1024);
	va_list args;

	va_start(args, format);
	gpc_text_vadd(&text, format, args);
	va_end(args);
	gpc_document_row(report->doc, gpc_sentence(text.buf));
}

static void note_dropped(const struct gpc_report *report, uint64_t n, const char *what)
{
	if (n)
		note(report, "%s %s", gpc_show_count(n), what);
}

static void note_problems(const struct gpc_report *report)
{
	const struct gpc_recording *rec = report->recording;

	for (unsigned i = 0; i < rec->n_problems && i < GPC_RECORDING_MAX_PROBLEMS; i++)
		note(report, "DAMAGED: %s %s", gpc_region_name(rec->problems[i].kind),
			rec->problems[i].text);
	for (unsigned kind = 0; kind < GPUCACHE_REGION_COUNT; kind++)
		if (rec->regions[kind].n_torn)
			note(report, "%s of %s: being written when the process died, omitted",
				gpc_show_count(rec->regions[kind].n_torn),
				gpc_region_name((enum gpucache_region_kind)kind));
	if (rec->header.state & GPUCACHE_STATE_PASS)
		note(report,
			"The library disabled itself during this run; it recorded nothing after "
			"that.");
}

/* Names the files whose symbols are missing, and tells how to provide them. */
static void note_missing(const struct gpc_report *report)
{
	GPC_TEXT(text, 700);
	const char *path;
	unsigned n = 0;

	for (size_t i = 0; report->frames && gpc_frames_next_missing(report->frames, &i, &path);
		n++) {
		const char *name = gpc_base_name(path);

		if (n >= MOST_MISSING || strstr(text.buf, name))
			continue;
		gpc_text_add(&text, "%s", n ? ", " : "no symbols of ");
		gpc_text_add_clean(&text, n ? name : path, strlen(n ? name : path));
	}
	if (n == 0)
		return;
	gpc_text_add(&text,
		"%s: not here, or another build. Run `gpumem-report pack` where they are: it "
		"writes the symbols next to the recording. Or name a copy: --sysroot DIR, "
		"--debug-path DIR",
		n > MOST_MISSING ? ", ..." : "");
	note(report, "%s", text.buf);
}

static void note_lineless(const struct gpc_report *report)
{
	const char *path = report->frames ? gpc_frames_lineless(report->frames) : NULL;
	GPC_TEXT(text, 300);

	if (!path)
		return;
	gpc_text_add_clean(&text, path, strlen(path));
	note(report, "no line numbers in %s: compile it with -g", text.buf);
}

static void add_notes(const struct gpc_report *report)
{
	const struct gpc_recording *rec = report->recording;
	const struct gpucache_header *header = &rec->header;
	enum gpc_text_kind kind;

	note_problems(report);
	/* A hint for the reader; which files were looked for depends on what was shown before. */
	if (!gpc_document_is_whole(report->doc)) {
		note_missing(report);
		note_lineless(report);
	}
	for (size_t i = 0;; i++) {
		GPC_TEXT(text, 512);

		if (!gpc_report_read_line(rec, i, &kind, &text))
			break;
		if (kind == GPC_TEXT_WARNING)
			note(report, "%s", text.buf);
	}
	note_dropped(report, header->dropped_blocks,
		"live allocations did not fit into the recording; tables lack them");
	note_dropped(report, header->dropped_stacks, "stacks did not fit into the recording");
	note_dropped(report, header->dropped_sites,
		"call sites did not fit into the recording; failures count them as others");
	note_dropped(report, header->dropped_segments, "segments did not fit into the recording");
	note_dropped(report, header->dropped_tags,
		"ranges did not fit into the recording; they count for the enclosing range");
	note_dropped(report, header->dropped_python,
		"stacks lack their Python frames, which could not be read safely");
	if (header->sample_bytes)
		note(report,
			"stacks of small requests were sampled (stacks:sampled): sums by call site "
			"are estimates, all other numbers are exact");
}

void gpc_page_notes(const struct gpc_report *report)
{
	static const struct gpc_column columns[] = { { "note", "" } };
	static const struct gpc_section notes = { "notes", "NOTES", GPC_COLUMNS(columns),
		.flags = GPC_FLAT | GPC_BESIDE };

	gpc_document_open(report->doc, &notes);
	add_notes(report);
	gpc_document_close(report->doc);
}
