/* SPDX-License-Identifier: Apache-2.0 */
/* What several commands read from a recording or print of it: devices, live blocks, failures, options, notes. */
#include "tools/gpumem-report/report.h"

#include "tools/gpumem-report/holders/filter.h"

#include <pwd.h>
#include <stdarg.h>
#include <string.h>

/* The most files without symbols that a note names. */
#define MOST_MISSING 4

void gpc_complain(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("gpumem-report: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

void gpc_owner_add(uint32_t owner, struct gpc_text *ret_text)
{
	const struct passwd *user = getpwuid(owner);

	if (user)
		gpc_text_add(ret_text, "%s", user->pw_name);
	else
		gpc_text_add(ret_text, "uid %u", (unsigned)owner);
}

const char *gpc_state_word(enum gpc_run_state state)
{
	static const char *const words[] = {
		[GPC_RUN_ALIVE] = "alive",
		[GPC_RUN_ENDED] = "ended",
		[GPC_RUN_KILLED] = "killed",
		[GPC_RUN_EXITED] = "exited",
	};

	return words[state];
}

struct gpc_words gpc_rung_words(unsigned rung)
{
	static const struct gpc_words rungs[] = {
#define RUNG(function, text) { #function, text },
#include "model/rungs.def"
#undef RUNG
	};

	return rung < GPC_RUNG_COUNT
		       ? rungs[rung]
		       : (struct gpc_words){ "unknown", "a step that this version does not know" };
}

struct gpc_words gpc_one_stream_end_words(uint64_t end)
{
	static const struct gpc_words ends[] = {
#define ONE_STREAM_END(name, word, text) [GPUCACHE_ONE_STREAM_END_##name] = { word, text },
#include "base/one_stream.def"
#undef ONE_STREAM_END
	};

	return end < GPUCACHE_ONE_STREAM_END_COUNT
		       ? ends[end]
		       : (struct gpc_words){ "unknown",
				 "something that this version does not know" };
}

uint64_t gpc_report_realtime(const struct gpc_recording *recording, uint64_t monotonic_ns)
{
	return recording->header.start_realtime_ns +
	       (monotonic_ns - recording->header.start_monotonic_ns);
}

void gpc_report_target(const struct gpc_report *report, struct gpc_text *ret_text)
{
	if (!report->is_newest_by_default)
		gpc_text_add(ret_text, " %s", report->recording->path);
}

bool gpc_report_wants(const struct gpc_report *report, int32_t ordinal)
{
	return report->options->device < 0 || report->options->device == ordinal;
}

bool gpc_report_next_device(
	const struct gpc_report *report, uint64_t *i, struct gpucache_device *ret_device)
{
	const struct gpc_recording *rec = report->recording;

	while (*i < rec->regions[GPUCACHE_REGION_DEVICES].count)
		if (gpc_recording_read_device(rec, (*i)++, ret_device) &&
			gpc_report_wants(report, ret_device->ordinal))
			return true;
	return false;
}

bool gpc_report_next_live(const struct gpc_report *report, int32_t ordinal, uint64_t *i,
	struct gpucache_block *ret_block)
{
	const struct gpc_recording *rec = report->recording;

	while (*i < rec->regions[GPUCACHE_REGION_BLOCKS].count)
		if (gpc_recording_read_block(rec, (*i)++, ret_block) &&
			gpc_recording_holds_device_memory(ret_block) &&
			gpc_report_wants(report, ret_block->device) &&
			(ordinal < 0 || ret_block->device == ordinal) &&
			gpc_filter_takes_block(report, ret_block))
			return true;
	return false;
}

uint64_t gpc_report_count_live(
	const struct gpc_report *report, int32_t ordinal, uint64_t *ret_bytes)
{
	struct gpucache_block block;
	uint64_t bytes = 0;
	uint64_t n = 0;

	for (uint64_t i = 0; gpc_report_next_live(report, ordinal, &i, &block);) {
		if (!gpc_recording_can_leak(&block))
			continue;
		bytes = gpc_bytes_add(bytes, block.requested);
		n++;
	}
	*ret_bytes = bytes;
	return n;
}

void gpc_report_print_who(const struct gpc_report *report)
{
	const struct gpucache_header *header = &report->recording->header;

	gpc_paper_head(&report->paper, "%s, pid %u on %s: %s",
		header->exe[0] ? gpc_base_name(header->exe) : "?", header->pid,
		header->host[0] ? header->host : "?", gpc_state_word(report->recording->run_state));
	if (header->command[0])
		gpc_paper_head(&report->paper, "%s", header->command);
}

void gpc_report_add_names(const struct gpucache_device *device, struct gpc_text *ret_text)
{
	size_t start = ret_text->len;

	if (device->physical)
		gpc_text_add(ret_text, "physical %u", (unsigned)(device->physical - 1));
	if (device->uuid[0])
		gpc_text_add(ret_text, "%s%s", ret_text->len > start ? ", " : "", device->uuid);
	if (device->pci_bus_id[0])
		gpc_text_add(
			ret_text, "%s%s", ret_text->len > start ? ", " : "", device->pci_bus_id);
}

bool gpc_report_find_oom(const struct gpc_report *report, int32_t ordinal, bool is_fatal,
	struct gpucache_oom *ret_oom)
{
	const struct gpc_recording *rec = report->recording;
	struct gpucache_oom oom;
	uint64_t best = 0;

	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_OOMS].count; i++) {
		if (!gpc_recording_read_oom(rec, i, &oom) || oom.number <= best ||
			(is_fatal && oom.recovered) || !gpc_report_wants(report, oom.device) ||
			(ordinal >= 0 && oom.device != ordinal))
			continue;
		best = oom.number;
		*ret_oom = oom;
	}
	return best != 0;
}

unsigned gpc_report_count_ooms(const struct gpc_report *report, bool is_recovered)
{
	const struct gpc_recording *rec = report->recording;
	struct gpucache_oom oom;
	unsigned n = 0;

	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_OOMS].count; i++)
		n += gpc_recording_read_oom(rec, i, &oom) && gpc_report_wants(report, oom.device) &&
		     !oom.recovered == !is_recovered;
	return n;
}

static bool ends_with(const char *text, size_t size, const char *end)
{
	size_t len = strlen(end);

	return size > len && memcmp(text + size - len, end, len) == 0;
}

bool gpc_report_read_line(const struct gpc_recording *recording, size_t i,
	enum gpc_text_kind *ret_kind, struct gpc_text *ret_text)
{
	static const char warning[] = "warning: ";
	const char *line;
	size_t size;

	if (!gpc_recording_read_text(recording, i, &line, &size))
		return false;
	if (size > sizeof warning - 1 && memcmp(line, warning, sizeof warning - 1) == 0)
		*ret_kind = GPC_TEXT_WARNING;
	else if (ends_with(line, size, " default"))
		*ret_kind = GPC_TEXT_DEFAULT;
	else
		*ret_kind = GPC_TEXT_CHANGED;
	if (*ret_kind == GPC_TEXT_WARNING) {
		line += sizeof warning - 1;
		size -= sizeof warning - 1;
	}
	gpc_text_add_clean(ret_text, line, size);
	return true;
}

bool gpc_report_read_option(
	const struct gpc_recording *recording, const char *option, char *value, size_t size)
{
	size_t length = strlen(option);
	enum gpc_text_kind kind;

	for (size_t i = 0;; i++) {
		GPC_TEXT(text, 256);
		const char *at = text.buf + length + 1;

		if (!gpc_report_read_line(recording, i, &kind, &text))
			return false;
		if (kind != GPC_TEXT_CHANGED || strncmp(text.buf, option, length) != 0 ||
			text.buf[length] != ' ')
			continue;
		gpc_format(value, size, "%.*s", (int)strcspn(at, " "), at);
		return true;
	}
}

bool gpc_report_read_env(
	const struct gpc_recording *recording, const char *name, char *value, size_t size)
{
	size_t length = strlen(name);
	const char *line;
	size_t n;

	for (size_t i = 0; gpc_recording_read_text(recording, i, &line, &n); i++) {
		if (n <= 4 + length || memcmp(line, "env ", 4) != 0 ||
			memcmp(line + 4, name, length) != 0 || line[4 + length] != '=')
			continue;
		gpc_format(value, size, "%.*s", (int)(n - 5 - length), line + 5 + length);
		return true;
	}
	return false;
}

/* Prints a note; the name of the section, NOTES, stands only before the first one. */
static void __attribute__((format(__printf__, 3, 4)))
note(struct gpc_report *report, bool *is_first, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (*is_first)
		fputc('\n', report->paper.out);
	gpc_paper_wrap(&report->paper, *is_first ? "NOTES" : NULL, text);
	*is_first = false;
}

static void note_dropped(struct gpc_report *report, bool *is_first, uint64_t n, const char *what)
{
	if (n)
		note(report, is_first, "%s %s", gpc_show_count(n), what);
}

static void note_problems(struct gpc_report *report, bool *is_first)
{
	const struct gpc_recording *rec = report->recording;

	for (unsigned i = 0; i < rec->n_problems && i < GPC_RECORDING_MAX_PROBLEMS; i++)
		note(report, is_first, "DAMAGED: %s %s", gpc_region_name(rec->problems[i].kind),
			rec->problems[i].text);
	for (unsigned kind = 0; kind < GPUCACHE_REGION_COUNT; kind++)
		if (rec->regions[kind].n_torn)
			note(report, is_first,
				"%s of %s: being written when the process died, omitted",
				gpc_show_count(rec->regions[kind].n_torn),
				gpc_region_name((enum gpucache_region_kind)kind));
	if (rec->header.state & GPUCACHE_STATE_PASS)
		note(report, is_first,
			"The library disabled itself during this run; it recorded nothing after "
			"that.");
}

/* Names the files whose symbols are missing, and tells how to provide them. */
static void note_missing(struct gpc_report *report, bool *is_first)
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
	note(report, is_first, "%s", text.buf);
}

void gpc_report_print_notes(struct gpc_report *report)
{
	const struct gpc_recording *rec = report->recording;
	const struct gpucache_header *header = &rec->header;
	bool is_first = true;
	enum gpc_text_kind kind;

	note_problems(report, &is_first);
	note_missing(report, &is_first);
	for (size_t i = 0;; i++) {
		GPC_TEXT(text, 512);

		if (!gpc_report_read_line(rec, i, &kind, &text))
			break;
		if (kind == GPC_TEXT_WARNING)
			note(report, &is_first, "%s", text.buf);
	}
	note_dropped(report, &is_first, header->dropped_blocks,
		"live allocations did not fit into the recording; tables lack them");
	note_dropped(
		report, &is_first, header->dropped_stacks, "stacks did not fit into the recording");
	note_dropped(report, &is_first, header->dropped_sites,
		"call sites did not fit into the recording; failures count them as others");
	note_dropped(report, &is_first, header->dropped_segments,
		"segments did not fit into the recording");
	note_dropped(report, &is_first, header->dropped_tags,
		"ranges did not fit into the recording; they count for the enclosing range");
	note_dropped(report, &is_first, header->dropped_python,
		"stacks lack their Python frames, which could not be read safely");
	if (header->sample_bytes)
		note(report, &is_first,
			"stacks of small requests were sampled (stacks:sampled): sums by call site "
			"are estimates, all other numbers are exact");
}
