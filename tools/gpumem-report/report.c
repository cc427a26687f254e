/* SPDX-License-Identifier: Apache-2.0 */
/* What several commands read from a recording or print of it: devices, live blocks, failures, options, notes. */
#include "tools/gpumem-report/report.h"

#include "tools/gpumem-report/holders/filter.h"

#include <pwd.h>
#include <string.h>

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
	static const struct {
		const char *start;
		enum gpc_text_kind kind;
	} prefixes[] = { { "warning: ", GPC_TEXT_WARNING }, { "own cache: ", GPC_TEXT_CALLER } };
	const char *line;
	size_t size;

	if (!gpc_recording_read_text(recording, i, &line, &size))
		return false;
	*ret_kind = ends_with(line, size, " default") ? GPC_TEXT_DEFAULT : GPC_TEXT_CHANGED;
	for (size_t k = 0; k < sizeof prefixes / sizeof prefixes[0]; k++) {
		size_t length = strlen(prefixes[k].start);

		if (size <= length || memcmp(line, prefixes[k].start, length) != 0)
			continue;
		*ret_kind = prefixes[k].kind;
		line += length;
		size -= length;
		break;
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
