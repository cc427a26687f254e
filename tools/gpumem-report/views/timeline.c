/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `timeline`: the memory of a GPU over the run, from HISTORY, drawn in ASCII.
 *
 *       4.00 GiB |            .~:::::::x          # asked for    : with rounding    ~ pending    . reserved
 *                |       .::::########::          x a request failed
 *       2.00 GiB |  ..:::##############
 *            0 B +------------------------
 *                0 s                 12 min
 *
 * A column shows the highest values within its time, as the points of HISTORY do.  Those are samples, and know PyTorch's
 * segments only: as far back as the ring of events goes, it tells what was held and reserved.  Pending are always samples.
 */
#include <stdlib.h>
#include <string.h>

#include "format/sheet.h"
#include "model/balance.h"
#include "tools/gpumem-report/holders/moment.h"
#include "tools/gpumem-report/holders/over_time.h"
#include "tools/gpumem-report/holders/torch_pool.h"
#include "tools/gpumem-report/output/page.h"

#define HEIGHT       12
#define AXIS_WIDTH   12
#define MOST_COLUMNS 200

struct column {
	uint64_t requested;
	uint64_t live;
	uint64_t pending;
	uint64_t reserved;
	bool has_point;
	unsigned n_failed;
};

struct chart {
	struct column columns[MOST_COLUMNS];
	int n; /* AXIS_WIDTH .. MOST_COLUMNS */
	uint64_t first_ns;
	uint64_t last_ns;
	uint64_t most;
};

static struct column *column_at(struct chart *chart, uint64_t time_ns)
{
	uint64_t span = gpc_bytes_less(chart->last_ns, chart->first_ns);
	uint64_t at = gpc_smaller(gpc_bytes_less(time_ns, chart->first_ns), span);

	return &chart->columns[span ? (size_t)((double)at / (double)span * (double)(chart->n - 1) +
					       0.5)
				    : 0];
}

/* `levels` are those of a moment; pending bytes apart. */
static void add_point(struct chart *chart, const struct gpucache_point *levels, uint64_t pending)
{
	struct column *column = column_at(chart, levels->time_ns);

	column->requested = gpc_larger(column->requested, levels->requested_bytes);
	column->live = gpc_larger(column->live, levels->live_bytes);
	column->pending = gpc_larger(column->pending, pending);
	column->reserved = gpc_larger(column->reserved, levels->reserved_bytes);
	column->has_point = true;
	chart->most = gpc_larger(chart->most, gpc_larger(column->reserved, column->live));
}

/* The peak, if it was between two points, and the end, after the last one. */
static void add_peak_and_end(struct chart *chart, const struct gpc_recording *rec, int32_t ordinal)
{
	const struct gpc_device_totals totals = gpc_recording_totals(rec, ordinal);
	const struct gpucache_counters *sum = &totals.sum;
	uint64_t used = gpc_bytes_less(sum->direct_bytes, sum->kind_bytes[GPUCACHE_KIND_POOL]);
	struct gpucache_peak peak;

	if (gpc_recording_find_peak(rec, ordinal, &peak) && peak.reserved_bytes > chart->most)
		add_point(chart,
			&(struct gpucache_point){ .time_ns = peak.time_ns,
				.requested_bytes = peak.requested_bytes,
				.live_bytes = peak.live_bytes,
				.reserved_bytes = peak.reserved_bytes },
			0);
	add_point(chart,
		&(struct gpucache_point){ .time_ns = chart->last_ns,
			.requested_bytes = gpc_bytes_add(sum->requested_bytes, used),
			.live_bytes = gpc_bytes_add(sum->live_bytes, used),
			.reserved_bytes = gpc_bytes_add(sum->reserved_bytes, sum->direct_bytes) },
		sum->pending_bytes);
}

/* Gives a column without a point the values of the column before it. */
static void fill_gaps(struct chart *chart)
{
	for (int i = 1; i < chart->n; i++) {
		struct column *column = &chart->columns[i];
		unsigned n_failed = column->n_failed;

		if (column->has_point)
			continue;
		*column = column[-1];
		column->n_failed = n_failed;
	}
}

/* Raises `most` to what the level has. */
static void raise(struct column *most, const struct gpc_over_time_level *level)
{
	most->requested = gpc_larger(most->requested, level->requested_bytes);
	most->live = gpc_larger(most->live, level->live_bytes);
	if (level->reserved_bytes != GPUCACHE_UNKNOWN)
		most->reserved = gpc_larger(most->reserved, level->reserved_bytes);
}

/* Replaces what HISTORY knows by what the events tell, in their columns. */
static void add_levels(struct chart *chart, const struct gpc_over_time *moments)
{
	struct column level = { 0 };
	size_t row = 0;

	for (int i = 0; i < chart->n && moments->n; i++) {
		struct column *column = &chart->columns[i];
		struct column most = level;

		for (; row < moments->n &&
			column_at(chart, moments->rows[row].most.time_ns) <= column;
			row++) {
			raise(&most, &moments->rows[row].most);
			level = (struct column){ 0 };
			raise(&level, &moments->rows[row].last);
		}
		if (!row)
			continue;
		column->requested = most.requested;
		column->live = most.live;
		if (moments->is_exact)
			column->reserved = most.reserved;
		chart->most = gpc_larger(chart->most, gpc_larger(column->reserved, most.live));
	}
}

static void add_failures(struct chart *chart, const struct gpc_report *report, int32_t ordinal,
	const struct gpc_over_time *moments)
{
	const struct gpc_recording *rec = report->recording;
	struct gpucache_oom oom;

	for (uint64_t i = 0; i < rec->regions[GPUCACHE_REGION_OOMS].count; i++)
		if (gpc_recording_read_oom(rec, i, &oom) && oom.device == ordinal)
			column_at(chart, gpc_over_time_time_of(moments, &oom))->n_failed++;
}

static char letter_of(const struct column *column, uint64_t level)
{
	if (column->requested >= level)
		return '#';
	if (column->live >= level)
		return ':';
	if (gpc_bytes_add(column->live, column->pending) >= level && column->reserved >= level)
		return '~';
	return column->reserved >= level ? '.' : ' ';
}

static void say_chart(struct gpc_document *doc, const struct chart *chart)
{
	for (int row = HEIGHT; row > 0; row--) {
		uint64_t level = chart->most / HEIGHT * (uint64_t)row;
		char line[MOST_COLUMNS + 1];

		/* A character is drawn if the value reaches the middle of its row. */
		for (int i = 0; i < chart->n; i++)
			line[i] = row == HEIGHT && chart->columns[i].n_failed
					  ? 'x'
					  : letter_of(&chart->columns[i],
						    level - chart->most / HEIGHT / 2);
		line[chart->n] = '\0';
		for (int end = chart->n; end > 0 && line[end - 1] == ' '; end--)
			line[end - 1] = '\0';
		gpc_document_say(doc, "%*s |%s", AXIS_WIDTH,
			row == HEIGHT       ? gpc_show_bytes(chart->most)
			: row == HEIGHT / 2 ? gpc_show_bytes(chart->most / 2)
					    : "",
			line);
	}
}

static void say_axis(
	struct gpc_document *doc, const struct gpc_report *report, const struct chart *chart)
{
	uint64_t start = report->recording->header.start_monotonic_ns;
	const char *from = gpc_show_duration(gpc_bytes_less(chart->first_ns, start));
	const char *to = gpc_show_duration(gpc_bytes_less(chart->last_ns, start));
	char line[MOST_COLUMNS + 1] = "";

	for (int i = 0; i < chart->n; i++)
		line[i] = '-';
	gpc_document_say(doc, "%*s +%s", AXIS_WIDTH, "0 B", line);
	gpc_document_say(
		doc, "%*s%s%*s", AXIS_WIDTH + 2, "", from, chart->n - (int)strlen(from), to);
}

static void draw(struct gpc_document *doc, const struct gpc_report *report,
	const struct gpucache_device *device, const struct gpc_history_view *history)
{
	static const struct gpc_section section = { .flags = GPC_TEXT_ONLY | GPC_RAW };
	const bool has_torch = gpc_torch_is_there(report, device->ordinal);
	unsigned n_failed = 0;
	struct chart chart = { .n = (int)doc->width - AXIS_WIDTH - 2 };
	struct gpc_over_time moments;

	chart.n = chart.n > MOST_COLUMNS ? MOST_COLUMNS : chart.n;
	chart.first_ns = history->points[0].time_ns;
	chart.last_ns = gpc_larger(history->points[history->n_points - 1].time_ns,
		gpc_recording_last_ns(report->recording));
	gpc_over_time_create(&moments, report, device->ordinal);
	for (size_t i = 0; i < history->n_points; i++)
		add_point(&chart, &history->points[i], history->pending_bytes[i]);
	add_peak_and_end(&chart, report->recording, device->ordinal);
	add_failures(&chart, report, device->ordinal, &moments);
	fill_gaps(&chart);
	add_levels(&chart, &moments);
	gpc_over_time_fini(&moments);
	for (int i = 0; i < chart.n; i++)
		n_failed += chart.columns[i].n_failed;
	gpc_document_say(doc, "GPU %d, %s: at most %s reserved", device->ordinal, device->name,
		gpc_show_bytes(chart.most));
	gpc_document_open(doc, &section);
	say_chart(doc, &chart);
	say_axis(doc, report, &chart);
	gpc_document_close(doc);
	gpc_document_say(doc, "# %s, : rounded, ~ pending, . reserved%s",
		has_torch ? "in tensors and other blocks" : "asked for",
		n_failed ? "; x a request failed" : "");
}

static void show_device(const struct gpc_report *report, const struct gpucache_device *device,
	const struct gpc_moment *moment)
{
	static const struct gpc_column columns[] = { { "time" }, GPC_POINT_COLUMNS };
	static const struct gpc_section section = { "history", "TIMELINE", GPC_COLUMNS(columns) };
	struct gpc_document *doc = report->doc;
	struct gpc_history_view history;

	(void)moment;
	(void)gpc_recording_find_history(report->recording, device->ordinal, &history);
	gpc_document_member(doc, "interval_ns", gpc_number(history.interval_ns));
	gpc_document_open(doc, &section);
	if (history.n_points)
		draw(doc, report, device, &history);
	else
		gpc_document_say(doc, "GPU %d: no history was recorded", device->ordinal);
	for (size_t i = 0; i < history.n_points; i++)
		gpc_document_row(doc, gpc_page_time(report, history.points[i].time_ns),
			GPC_POINT_CELLS(&history, i));
	gpc_document_close(doc);
}

enum gpc_exit gpc_cmd_timeline(struct gpc_report *report)
{
	return gpc_moment_view(report, "timeline", show_device);
}
