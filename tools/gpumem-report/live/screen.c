/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The screen of `live`: a bar per GPU, a line per process and GPU, and the largest holders of the chosen line.
 *
 * A bar means the same without colour: | live, : pending, . cached, # others.
 */
#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "tools/gpumem-report/live/processes.h"

/* Warns if the GPU will be full within this time. */
#define WARN_SECONDS 600

#define MAX_LINES (LIVE_MAX_PROCESSES * 4)

/* Letters of a bar. */
#define MAX_BAR 400

/* A line of the table. */
struct line {
	const struct live_process *process;
	const struct live_gpu *gpu; /* NULL: the process uses no GPU */
};

/* One GPU, with the sums over all processes that use it. */
struct card {
	const struct live_gpu *gpu; /* of the process that queried the device last */
	uint64_t live;
	uint64_t pending;
	uint64_t cached;
	uint64_t spilled;
	double growth_a_s;
};

static bool is_same_gpu(const struct live_gpu *a, const struct live_gpu *b)
{
	if (a->uuid[0] || b->uuid[0])
		return strcmp(a->uuid, b->uuid) == 0;
	return a->ordinal == b->ordinal && strcmp(a->name, b->name) == 0;
}

static unsigned find_cards(const struct live *live, struct card *cards, unsigned max)
{
	unsigned n = 0;

	for (unsigned p = 0; p < live->n_processes; p++)
		for (unsigned g = 0; g < live->processes[p].n_gpus; g++) {
			const struct live_gpu *gpu = &live->processes[p].gpus[g];
			unsigned c = 0;

			while (c < n && !is_same_gpu(cards[c].gpu, gpu))
				c++;
			if (c == max)
				continue;
			if (c == n)
				cards[n++] = (struct card){ .gpu = gpu };
			if (gpu->look_ns > cards[c].gpu->look_ns)
				cards[c].gpu = gpu;
			if (live->processes[p].state != GPC_RUN_ALIVE)
				continue;
			cards[c].live = gpc_bytes_add(cards[c].live, live_in_use(gpu));
			cards[c].pending = gpc_bytes_add(cards[c].pending, gpu->sum.pending_bytes);
			cards[c].cached = gpc_bytes_add(cards[c].cached, gpu->sum.cached_bytes);
			cards[c].spilled = gpc_bytes_add(
				cards[c].spilled, gpu->sum.kind_bytes[GPUCACHE_KIND_SPILLED]);
			cards[c].growth_a_s += gpu->growth_a_s;
		}
	return n;
}

static struct gpc_cell inked(const char *text, enum gpc_ink ink)
{
	struct gpc_cell cell = gpc_name(text);

	cell.ink = ink;
	return cell;
}

/* A bar with brackets, of `width` letters in all, and what stands on its sides. */
static void show_bar(struct gpc_document *doc, const char *label, size_t width,
	const struct card *card, const char *end)
{
	static const struct gpc_column columns[] = { { NULL, "" }, { NULL, "", 0, GPC_TIGHT },
		{ NULL, "", 0, GPC_TIGHT }, { NULL, "", 0, GPC_TIGHT }, { NULL, "", 0, GPC_TIGHT },
		{ NULL, "", 0, GPC_TIGHT }, { NULL, "", 0, GPC_TIGHT },
		{ NULL, "", 0, GPC_TIGHT } };
	static const struct gpc_section section = { "bar", NULL, GPC_COLUMNS(columns) };
	const uint64_t total = card->gpu->balance.device_total;
	const uint64_t ours = gpc_bytes_add(card->live, gpc_bytes_add(card->pending, card->cached));
	const uint64_t used = gpc_bytes_less(total, card->gpu->balance.device_free);
	const uint64_t bytes[] = { card->live, card->pending, card->cached,
		gpc_bytes_less(used, ours), GPUCACHE_UNKNOWN };
	char parts[5][MAX_BAR + 1] = { "" };
	uint64_t sum = 0;
	size_t at = 0;

	width = width < 2 ? 0 : width - 2 > MAX_BAR ? MAX_BAR : width - 2;
	for (unsigned i = 0; i < 5; i++) {
		size_t start = at;
		double share;

		sum = gpc_bytes_add(sum, bytes[i]);
		share = total && i < 4 ? (double)sum / (double)total : 1;
		for (; at < (size_t)(share * (double)width + 0.5) && at < width; at++)
			parts[i][at - start] = "|:.# "[i];
	}
	gpc_document_open(doc, &section);
	gpc_document_row(doc, gpc_name(label), inked("[", GPC_INK_BOLD),
		inked(parts[0], GPC_INK_GREEN), inked(parts[1], GPC_INK_YELLOW),
		inked(parts[2], GPC_INK_CYAN), inked(parts[3], GPC_INK_MAGENTA), gpc_name(parts[4]),
		inked(end, GPC_INK_BOLD));
	gpc_document_close(doc);
}

static void show_card(struct gpc_document *doc, const struct card *card)
{
	const struct gpucache_balance *balance = &card->gpu->balance;
	GPC_TEXT(label, 64);
	GPC_TEXT(end, 64);

	gpc_text_add(&label, "%d %.*s ", card->gpu->ordinal,
		doc->width >= 100  ? 24
		: doc->width >= 76 ? 12
				   : 0,
		card->gpu->name);
	if (!card->gpu->has_balance || balance->device_free == GPUCACHE_UNKNOWN) {
		gpc_document_say(doc, "%sits free memory is not known yet", label.buf);
		return;
	}
	gpc_text_add(&end, "] ");
	gpc_cell_write(
		&end, gpc_brief(gpc_bytes_less(balance->device_total, balance->device_free)));
	gpc_text_add(&end, "/");
	gpc_cell_write(&end, gpc_brief(balance->device_total));
	show_bar(doc, label.buf, doc->width - label.len - end.len + 1, card, end.buf);
}

static void warn(struct gpc_document *doc, const struct card *card)
{
	const struct gpucache_balance *balance = &card->gpu->balance;
	double room = (double)gpc_bytes_add(
		balance->device_free, gpc_bytes_add(card->cached, card->pending));
	double seconds = card->growth_a_s > 0 ? room / card->growth_a_s : -1;
	GPC_TEXT(growth, 16);

	if (!card->gpu->has_balance || balance->device_free == GPUCACHE_UNKNOWN || seconds < 0 ||
		seconds > WARN_SECONDS)
		return;
	gpc_cell_write(&growth, gpc_brief((uint64_t)card->growth_a_s));
	gpc_document_shout(doc, GPC_INK_ALARM, "  ! GPU %d will be full in %s at %s/s",
		card->gpu->ordinal, gpc_show_duration((uint64_t)(seconds * 1e9)), growth.buf);
}

static void say_spilled(struct gpc_document *doc, const struct card *card)
{
	GPC_TEXT(text, 16);

	if (!card->spilled)
		return;
	gpc_cell_write(&text, gpc_brief(card->spilled));
	gpc_document_shout(doc, GPC_INK_ALARM,
		"  ! GPU %d: %s spilled to host memory, beyond the GPU", card->gpu->ordinal,
		text.buf);
}

/* Says the other processes of the GPU, as gpustat does: "blender(5151) 300M". */
static void say_others(struct gpc_document *doc, const struct live *live, const struct card *card)
{
	const struct live_others *others = live_find_others(live, card->gpu);
	GPC_TEXT(text, 800);

	for (unsigned i = 0; others && i < others->n; i++) {
		const struct gpucache_neighbour *one = &others->rows[i];

		gpc_text_add(&text, " %.*s(%u) ", (int)sizeof one->name,
			one->name[0] ? one->name : "?", one->pid);
		if (one->bytes == GPUCACHE_UNKNOWN)
			gpc_text_add(&text, "?");
		else
			gpc_cell_write(&text, gpc_brief(one->bytes));
	}
	if (text.len)
		gpc_document_shout(doc, GPC_INK_DIM, "  others:%s", text.buf);
}

static int compare_lines(const void *left, const void *right, void *arg)
{
	const enum live_order order = *(const enum live_order *)arg;
	const struct line *a = left;
	const struct line *b = right;
	double x = a->gpu ? (double)live_in_use(a->gpu) : -1;
	double y = b->gpu ? (double)live_in_use(b->gpu) : -1;

	if (order == LIVE_BY_GROWTH && a->gpu && b->gpu) {
		x = a->gpu->growth_a_s;
		y = b->gpu->growth_a_s;
	}
	return (order == LIVE_BY_PID ? 0 : GPC_ORDER(y, x))
		       ?: GPC_ORDER(a->process->header.pid, b->process->header.pid)
		       ?: (a->gpu && b->gpu ? a->gpu->ordinal - b->gpu->ordinal : 0);
}

static bool is_wanted(const struct line *line, const char *filter)
{
	char rank[32];

	if (!*filter)
		return true;
	snprintf(rank, sizeof rank, "rank %d", line->process->header.rank);
	if (strcasestr(line->process->header.command, filter) ||
		strcasestr(line->process->header.exe, filter) || strcasestr(rank, filter))
		return true;
	for (unsigned i = 0; line->gpu && i < line->gpu->n_holders; i++)
		if (line->gpu->holders[i].where && strcasestr(line->gpu->holders[i].where, filter))
			return true;
	return false;
}

/* Appends a line, if the filter takes it. */
static void add_line(struct line *lines, int *n, struct line line, const struct live_screen *screen)
{
	if (*n < MAX_LINES && is_wanted(&line, screen->filter))
		lines[(*n)++] = line;
}

static int find_lines(const struct live *live, const struct live_screen *screen, struct line *lines)
{
	int n = 0;

	for (unsigned p = 0; p < live->n_processes; p++) {
		const struct live_process *process = &live->processes[p];

		if (process->n_gpus == 0)
			add_line(lines, &n, (struct line){ process, NULL }, screen);
		for (unsigned g = 0; g < process->n_gpus; g++)
			add_line(lines, &n, (struct line){ process, &process->gpus[g] }, screen);
	}
	qsort_r(lines, (size_t)n, sizeof *lines, compare_lines, (void *)&screen->order);
	return n;
}

static const char *word_of(const struct live_process *process)
{
	return process->is_seen ? gpc_state_word(process->state) : "gone";
}

static struct gpc_cell rate(double a_s)
{
	return a_s >= 0 ? gpc_brief((uint64_t)a_s) : gpc_name("-");
}

static const struct gpc_column columns[] = {
	{ NULL, "PID", 7 },
	{ NULL, "RANK", 5, .from = 100 },
	{ NULL, "GPU", 3 },
	{ NULL, "STATE", -6 },
	{ NULL, "LIVE", 6 },
	{ NULL, "GROW/s", 6 },
	{ NULL, "CACHED", 6 },
	{ NULL, "PENDIN", 6, .from = 72 },
	{ NULL, "CALL/s", 6, .from = 76 },
	{ NULL, "WAIT/s", 6, .from = 100 },
	{ NULL, "OOM", 4, .from = 100 },
	{ NULL, "PEAK", 6, .from = 100 },
	{ NULL, "PROGRAM" },
};
static const struct gpc_section table = { "lines", NULL, GPC_COLUMNS(columns) };

static void show_line(struct gpc_document *doc, const struct line *line, enum gpc_ink ink)
{
	static const struct live_gpu none = { .calls_a_s = -1, .waits_a_s = -1 };
	const struct live_process *process = line->process;
	const struct live_gpu *gpu = line->gpu ? line->gpu : &none;
	bool is_wide = doc->width >= 100 && process->header.command[0];
	struct gpc_cell pid = gpc_number(process->header.pid);

	pid.ink = ink;
	gpc_document_row(doc, pid,
		process->header.rank < 0 ? gpc_name("-")
					 : gpc_number((uint64_t)process->header.rank),
		line->gpu ? gpc_number((uint64_t)gpu->ordinal) : gpc_name("-"),
		gpc_name(word_of(process)), gpc_brief(live_in_use(gpu)),
		gpc_brief((uint64_t)gpu->growth_a_s), gpc_brief(gpu->sum.cached_bytes),
		gpc_brief(gpu->sum.pending_bytes), rate(gpu->calls_a_s), rate(gpu->waits_a_s),
		gpc_count(gpu->sum.n_oom), gpc_brief(gpu->sum.peak_live_bytes),
		gpc_name(is_wide ? process->header.command : gpc_base_name(process->header.exe)));
}

/* Appends the history of live bytes: each letter stands for as many of its points, and shows their maximum. */
static void add_past(
	struct gpc_text *text, const struct live_gpu *gpu, unsigned width, bool is_unicode)
{
	static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char letters[] = "_.-=+*#@";
	unsigned n = gpu->n_points;
	unsigned shown = n < width ? n : width;
	uint64_t most = 1;

	for (unsigned i = 0; i < n; i++)
		most = gpc_larger(most, gpu->points[i]);
	for (unsigned i = 0; i < shown; i++) {
		uint64_t highest = 0;
		unsigned level;

		for (unsigned p = i * n / shown; p < (i + 1) * n / shown; p++)
			highest = gpc_larger(highest, gpu->points[p]);
		level = (unsigned)((double)highest * 7.99 / (double)most) & 7;
		if (is_unicode)
			gpc_text_add(text, "%s", blocks[level]);
		else
			gpc_text_add(text, "%c", letters[level]);
	}
}

static void show_holders(
	struct gpc_document *doc, const struct line *line, const struct live_screen *screen)
{
	static const struct gpc_column past_columns[] = { { NULL, "" }, { NULL, "", 0, GPC_TIGHT },
		{ NULL, "", 0 } };
	static const struct gpc_section past = { "past", NULL, GPC_COLUMNS(past_columns) };
	static const struct gpc_column holder_columns[] = { { NULL, "", 7 }, { NULL, "", 8 },
		{ NULL, "" } };
	static const struct gpc_section holders = { "holders", NULL, GPC_COLUMNS(holder_columns) };
	const struct live_gpu *gpu = line->gpu;
	GPC_TEXT(history, 4 * LIVE_MAX_POINTS);
	GPC_TEXT(label, 40);
	GPC_TEXT(sum, 16);

	gpc_document_gap(doc);
	if (!gpu) {
		gpc_document_shout(
			doc, GPC_INK_BOLD, "%u uses no GPU yet", line->process->header.pid);
		return;
	}
	gpc_text_add(&label, "%u, GPU %d: ", line->process->header.pid, gpu->ordinal);
	gpc_cell_write(&sum, gpc_brief(live_in_use(gpu)));
	add_past(&history, gpu, doc->width - (unsigned)label.len - 9, screen->is_unicode);
	gpc_document_open(doc, &past);
	gpc_document_row(doc, gpc_name(label.buf), inked(history.buf, GPC_INK_GREEN),
		inked(sum.buf, GPC_INK_BOLD));
	gpc_document_close(doc);
	gpc_document_open(doc, &holders);
	for (unsigned i = 0; i < gpu->n_holders; i++)
		gpc_document_row(doc, gpc_brief(gpu->holders[i].bytes),
			gpc_count(gpu->holders[i].n_blocks),
			gpc_name(gpu->holders[i].where ? gpu->holders[i].where : "?"));
	if (gpu->n_holders == 0)
		gpc_document_say(doc, "  nothing is held");
	gpc_document_close(doc);
}

static void say_title(
	struct gpc_document *doc, const struct live *live, const struct live_screen *screen)
{
	static const char *const orders[] = { "memory", "growth", "pid" };
	unsigned n_alive = 0;
	GPC_TEXT(text, 200);

	for (unsigned p = 0; p < live->n_processes; p++)
		n_alive += live->processes[p].state == GPC_RUN_ALIVE && live->processes[p].is_seen;
	gpc_text_add(&text, "gpumem live: %u process%s%s", n_alive, n_alive == 1 ? "" : "es",
		n_alive < live->n_processes ? " alive" : "");
	if (screen->is_typing || screen->filter[0])
		gpc_text_add(&text, "  filter: %s%s", screen->filter, screen->is_typing ? "_" : "");
	/* With --once there are no keys to tell of. */
	if (screen->every_ns)
		gpc_text_add(&text, "  by %s  %s", orders[screen->order],
			screen->is_paused ? "paused" : "F1 help  q ends");
	gpc_document_shout(doc, GPC_INK_BOLD, "%s", text.buf);
}

/* Chooses the lines of the table that are shown: at least three, and room is left for the holders below. */
static int choose(struct live_screen *screen, int n, int n_lines, int rows)
{
	int room = rows - n_lines - 3 - (LIVE_MAX_HOLDERS + 2);

	screen->n_lines = n;
	screen->chosen = screen->chosen >= n ? n - 1 : screen->chosen;
	screen->chosen = screen->chosen < 0 ? 0 : screen->chosen;
	room = room < 3 ? 3 : room;
	if (screen->first > screen->chosen)
		screen->first = screen->chosen;
	if (screen->first + room <= screen->chosen)
		screen->first = screen->chosen - room + 1;
	return n < screen->first + room ? n : screen->first + room;
}

void live_show(
	struct gpc_document *doc, const struct live *live, struct live_screen *screen, int rows)
{
	static struct line lines[MAX_LINES];
	struct card cards[16];
	unsigned n_cards = find_cards(live, cards, 16);
	int n = find_lines(live, screen, lines);
	int end;

	gpc_document_begin(doc);
	say_title(doc, live, screen);
	for (unsigned c = 0; c < n_cards && (int)doc->n_lines < rows / 2; c++) {
		show_card(doc, &cards[c]);
		warn(doc, &cards[c]);
		say_spilled(doc, &cards[c]);
		say_others(doc, live, &cards[c]);
	}
	end = choose(screen, n, (int)doc->n_lines, rows);
	gpc_document_gap(doc);
	gpc_document_open(doc, &table);
	for (int i = screen->first; i < end; i++)
		show_line(doc, &lines[i],
			i == screen->chosen && screen->every_ns    ? GPC_INK_CHOSEN
			: lines[i].process->state == GPC_RUN_ALIVE ? GPC_INK_PLAIN
								   : GPC_INK_DIM);
	gpc_document_close(doc);
	if (n == 0)
		gpc_document_shout(doc, GPC_INK_DIM, "  %s",
			live->n_processes ? "no match"
			: live->report->options->target
				? "no live process is recorded there"
				: "no live process is recorded in the usual folders; "
				  "gpumem-report live FOLDER looks there");
	else
		show_holders(doc, &lines[screen->chosen], screen);
	gpc_document_end(doc);
}

void live_show_help(struct gpc_document *doc)
{
	static const char text[] =
		"Up Down PgUp PgDn Home End   choose a line\n"
		"M  G  P    by memory, growth, pid;  F6 > the next order\n"
		"F3 / F4 \\  filter: program, \"rank 3\", call site;  Esc ends it\n"
		"Z Space    pause\n"
		"+ -        refresh more or less often\n"
		"F1 h ?     this;  F10 q ends\n"
		"\n"
		"|  live, and straight from the driver    :  pending: freed, work may still use "
		"it\n"
		".  cached: free, kept                    #  other processes, contexts, the "
		"driver\n"
		"GROW/s  of the minimum: what a step takes and returns does not count\n"
		"\n"
		"any key goes back";

	gpc_document_begin(doc);
	gpc_document_shout(doc, GPC_INK_BOLD, "gpumem-report live");
	for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n')
		gpc_document_say(doc, "%.*s", (int)strcspn(at, "\n"), at);
	gpc_document_end(doc);
}
