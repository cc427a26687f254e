/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws `live` on a grid: a bar per GPU, a line per process and GPU, and the largest holders of the chosen line.
 *
 * A bar means the same without colour: | live, : pending, . cached, # others.  A narrow grid omits columns of the
 * table.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format/array.h"
#include "tools/gpumem-report/live/processes.h"

/* Warns if the GPU will be full within this time. */
#define WARN_SECONDS 600

#define MAX_LINES (LIVE_MAX_PROCESSES * 4)

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
	double growth_a_s;
};

static int put(struct live_grid *grid, int row, int column, enum live_ink ink, const char *format,
	...) __attribute__((format(__printf__, 5, 6)));

/* Draws UTF-8 text, clipped to the grid; returns the column after the whole text. */
static int put(
	struct live_grid *grid, int row, int column, enum live_ink ink, const char *format, ...)
{
	char buf[600];
	va_list args;
	const char *at = buf;

	va_start(args, format);
	vsnprintf(buf, sizeof buf, format, args);
	va_end(args);
	if (row < 0 || row >= grid->rows)
		return column;
	if (row >= grid->used)
		grid->used = row + 1;
	for (size_t n; *at; at += n, column++) {
		bool is_harmless;
		struct live_cell cell = { "?", (uint8_t)ink };

		n = gpc_text_letter(at, strlen(at), &is_harmless);
		if (is_harmless)
			snprintf(cell.letter, sizeof cell.letter, "%.*s", (int)n, at);
		if (column >= 0 && column < grid->columns)
			grid->cells[row * grid->columns + column] = cell;
	}
	return column;
}

/* Formats a number in at most five columns, with binary units: "12.3M". */
static const char *brief(double n)
{
	static char buffers[8][16];
	static unsigned next;
	char *buf = buffers[next++ % 8];
	static const char units[] = " KMGTPE";
	unsigned unit = 0;

	while (n >= 1000 && unit < 6) {
		n /= 1024;
		unit++;
	}
	if (unit == 0)
		snprintf(buf, 16, "%.0f", n);
	else
		snprintf(buf, 16,
			n < 10    ? "%.2f%c"
			: n < 100 ? "%.1f%c"
				  : "%.0f%c",
			n, units[unit]);
	return buf;
}

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
			cards[c].growth_a_s += gpu->growth_a_s;
		}
	return n;
}

static void draw_bar(
	struct live_grid *grid, int row, int column, int width, const struct card *card)
{
	const uint64_t total = card->gpu->balance.device_total;
	const uint64_t ours = gpc_bytes_add(card->live, gpc_bytes_add(card->pending, card->cached));
	const uint64_t used = gpc_bytes_less(total, card->gpu->balance.device_free);
	const uint64_t parts[] = { card->live, card->pending, card->cached,
		gpc_bytes_less(used, ours) };
	static const char letters[] = "|:.#";
	uint64_t sum = 0;
	int at = 0;

	put(grid, row, column, LIVE_BOLD, "[");
	put(grid, row, column + width - 1, LIVE_BOLD, "]");
	for (unsigned i = 0; i < 4 && total; i++) {
		int end;

		sum = gpc_bytes_add(sum, parts[i]);
		end = (int)((double)sum / (double)total * (width - 2) + 0.5);
		for (; at < end && at < width - 2; at++)
			put(grid, row, column + 1 + at, (enum live_ink)(LIVE_BAR_LIVE + i), "%c",
				letters[i]);
	}
}

static int draw_card(struct live_grid *grid, int row, const struct card *card)
{
	const struct gpucache_balance *balance = &card->gpu->balance;
	char label[64];
	char end[64];
	int used = 0;

	snprintf(label, sizeof label, "%d %.*s", card->gpu->ordinal,
		grid->columns >= 100  ? 24
		: grid->columns >= 76 ? 12
				      : 0,
		card->gpu->name);
	if (!card->gpu->has_balance || balance->device_free == GPUCACHE_UNKNOWN) {
		put(grid, row, 0, LIVE_BOLD, "%s", label);
		put(grid, row, (int)strlen(label) + 1, LIVE_DIM,
			"its free memory is not known yet");
		return row + 1;
	}
	snprintf(end, sizeof end, " %s/%s",
		brief((double)gpc_bytes_less(balance->device_total, balance->device_free)),
		brief((double)balance->device_total));
	used = put(grid, row, 0, LIVE_BOLD, "%s", label) + 1;
	draw_bar(grid, row, used, grid->columns - used - (int)strlen(end), card);
	put(grid, row, grid->columns - (int)strlen(end), LIVE_BOLD, "%s", end);
	return row + 1;
}

/* Draws a warning if the GPU will soon be full; returns the row after it. */
static int draw_warning(struct live_grid *grid, int row, const struct card *card)
{
	const struct gpucache_balance *balance = &card->gpu->balance;
	double room = (double)gpc_bytes_add(
		balance->device_free, gpc_bytes_add(card->cached, card->pending));
	double seconds = card->growth_a_s > 0 ? room / card->growth_a_s : -1;

	if (!card->gpu->has_balance || balance->device_free == GPUCACHE_UNKNOWN || seconds < 0 ||
		seconds > WARN_SECONDS)
		return row;
	put(grid, row, 2, LIVE_ALARM, "! GPU %d will be full in %s at %s/s", card->gpu->ordinal,
		gpc_show_duration((uint64_t)(seconds * 1e9)),
		gpc_show_bytes((uint64_t)card->growth_a_s));
	return row + 1;
}

/* Draws the other processes of the GPU, as gpustat does: "blender(5151) 300M".  Returns the row after them. */
static int draw_others(
	const struct live *live, struct live_grid *grid, int row, const struct card *card)
{
	const struct live_others *others = live_find_others(live, card->gpu);
	int at;

	if (!others || others->n == 0)
		return row;
	at = put(grid, row, 2, LIVE_DIM, "others:");
	for (unsigned i = 0; i < others->n; i++) {
		const struct gpucache_neighbour *one = &others->rows[i];

		at = put(grid, row, at, LIVE_DIM, " %.*s(%u) %s", (int)sizeof one->name,
			one->name[0] ? one->name : "?", one->pid,
			one->bytes == GPUCACHE_UNKNOWN ? "?" : brief((double)one->bytes));
	}
	return row + 1;
}

static int compare_lines(const struct line *a, const struct line *b, enum live_order order)
{
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

/* Inserts a line in the order of the screen, if the filter takes it.  An insertion sort. */
static void add_line(struct line *lines, int *n, struct line line, const struct live_screen *screen)
{
	int at = *n;

	if (*n == MAX_LINES || !is_wanted(&line, screen->filter))
		return;
	for (; at > 0 && compare_lines(&line, &lines[at - 1], screen->order) < 0; at--)
		lines[at] = lines[at - 1];
	lines[at] = line;
	(*n)++;
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
	return n;
}

static const char *word_of(const struct live_process *process)
{
	return process->is_seen ? gpc_state_word(process->state) : "gone";
}

static const char *rate(double a_s)
{
	return a_s >= 0 ? brief(a_s) : "-";
}

/* Draws the columns from left to right; a narrow grid omits some of them. */
static void draw_line(struct live_grid *grid, int row, const struct line *line, enum live_ink ink)
{
	const struct live_process *process = line->process;
	const struct live_gpu *gpu = line->gpu;
	bool is_wide = grid->columns >= 100;
	int at = put(grid, row, 0, ink, "%7u ", process->header.pid);

	if (is_wide)
		at = process->header.rank >= 0
			     ? put(grid, row, at, ink, "%5d ", process->header.rank)
			     : put(grid, row, at, ink, "    - ");
	at = gpu ? put(grid, row, at, ink, "%3d ", gpu->ordinal) : put(grid, row, at, ink, "  - ");
	at = put(grid, row, at, ink, "%-6s ", word_of(process));
	if (gpu) {
		at = put(grid, row, at, ink, "%6s ", brief((double)live_in_use(gpu)));
		at = put(grid, row, at, ink, "%6s ",
			gpu->growth_a_s > 0 ? brief(gpu->growth_a_s) : "0");
		at = put(grid, row, at, ink, "%6s ", brief((double)gpu->sum.cached_bytes));
		if (grid->columns >= 72)
			at = put(grid, row, at, ink, "%6s ", brief((double)gpu->sum.pending_bytes));
		if (grid->columns >= 76)
			at = put(grid, row, at, ink, "%6s ", rate(gpu->calls_a_s));
		if (is_wide) {
			at = put(grid, row, at, ink, "%6s ", rate(gpu->waits_a_s));
			at = put(grid, row, at, ink, "%4llu ", (unsigned long long)gpu->sum.n_oom);
			at = put(grid, row, at, ink, "%6s ",
				brief((double)gpu->sum.peak_live_bytes));
		}
	}
	at = put(grid, row, at, ink, "%s",
		is_wide && process->header.command[0] ? process->header.command
						      : gpc_base_name(process->header.exe));
	for (; ink == LIVE_CHOSEN && at < grid->columns; at++)
		put(grid, row, at, ink, " ");
}

static void draw_head(struct live_grid *grid, int row)
{
	bool is_wide = grid->columns >= 100;
	int at = put(grid, row, 0, LIVE_HEAD, "    PID ");

	if (is_wide)
		at = put(grid, row, at, LIVE_HEAD, " RANK ");
	at = put(grid, row, at, LIVE_HEAD, "GPU STATE    LIVE GROW/s CACHED ");
	if (grid->columns >= 72)
		at = put(grid, row, at, LIVE_HEAD, "PENDIN ");
	if (grid->columns >= 76)
		at = put(grid, row, at, LIVE_HEAD, "CALL/s ");
	if (is_wide)
		at = put(grid, row, at, LIVE_HEAD, "WAIT/s  OOM   PEAK ");
	at = put(grid, row, at, LIVE_HEAD, "PROGRAM");
	for (; at < grid->columns; at++)
		put(grid, row, at, LIVE_HEAD, " ");
}

/* Draws the history of live bytes: each character stands for as many of its points, and shows their maximum. */
static void draw_past(struct live_grid *grid, int row, int column, int width,
	const struct live_gpu *gpu, bool is_unicode)
{
	static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char letters[] = "_.-=+*#@";
	unsigned n = gpu->n_points;
	int shown = (int)n < width ? (int)n : width;
	uint64_t most = 1;

	for (unsigned i = 0; i < n; i++)
		most = gpu->points[i] > most ? gpu->points[i] : most;
	for (int i = 0; i < shown; i++) {
		uint64_t highest = 0;
		unsigned level;

		for (unsigned p = (unsigned)i * n / (unsigned)shown;
			p < (unsigned)(i + 1) * n / (unsigned)shown; p++)
			highest = gpu->points[p] > highest ? gpu->points[p] : highest;
		level = (unsigned)((double)highest * 7.99 / (double)most);
		if (is_unicode)
			put(grid, row, column + i, LIVE_BAR_LIVE, "%s", blocks[level & 7]);
		else
			put(grid, row, column + i, LIVE_BAR_LIVE, "%c", letters[level & 7]);
	}
}

static void draw_holders(
	struct live_grid *grid, int row, const struct line *line, const struct live_screen *screen)
{
	const struct live_gpu *gpu = line->gpu;
	int at;

	if (!gpu) {
		put(grid, row, 0, LIVE_BOLD, "%u uses no GPU yet", line->process->header.pid);
		return;
	}
	at = put(grid, row, 0, LIVE_BOLD, "%u, GPU %d: ", line->process->header.pid, gpu->ordinal);
	draw_past(grid, row, at, grid->columns - at - 22, gpu, screen->is_unicode);
	put(grid, row, grid->columns - 20, LIVE_DIM, "%20s", gpc_show_bytes(live_in_use(gpu)));
	row++;
	for (unsigned i = 0; i < gpu->n_holders; i++, row++)
		put(grid, row, 0, LIVE_PLAIN, "%11s %6s  %s", gpc_show_bytes(gpu->holders[i].bytes),
			brief((double)gpu->holders[i].n_blocks),
			gpu->holders[i].where ? gpu->holders[i].where : "?");
	if (gpu->n_holders == 0)
		put(grid, row, 2, LIVE_DIM, "nothing is held");
}

static void draw_title(
	const struct live *live, const struct live_screen *screen, struct live_grid *grid)
{
	static const char *const orders[] = { "memory", "growth", "pid" };
	unsigned n_alive = 0;

	for (unsigned p = 0; p < live->n_processes; p++)
		n_alive += live->processes[p].state == GPC_RUN_ALIVE && live->processes[p].is_seen;
	put(grid, 0, 0, LIVE_BOLD, "gpumem live: %u process%s%s", n_alive, n_alive == 1 ? "" : "es",
		n_alive < live->n_processes ? " alive" : "");
	if (screen->is_typing || screen->filter[0])
		put(grid, 0, 30, LIVE_ALARM, "filter: %s%s", screen->filter,
			screen->is_typing ? "_" : "");
	/* With --once there are no keys to tell of. */
	if (grid->columns >= 76 && screen->every_ns)
		put(grid, 0, grid->columns - 34, LIVE_DIM, "%34s",
			screen->is_paused ? "paused" : "F1 help  q ends");
	if (grid->columns >= 100)
		put(grid, 0, grid->columns - 60, LIVE_DIM, "by %s", orders[screen->order]);
}

void live_draw(const struct live *live, struct live_screen *screen, struct live_grid *grid)
{
	static struct line lines[MAX_LINES];
	struct card cards[16];
	unsigned n_cards = find_cards(live, cards, 16);
	int n = find_lines(live, screen, lines);
	int row = 1;
	int room;

	draw_title(live, screen, grid);
	for (unsigned c = 0; c < n_cards && row < grid->rows / 2; c++) {
		row = draw_warning(grid, draw_card(grid, row, &cards[c]), &cards[c]);
		row = draw_others(live, grid, row, &cards[c]);
	}
	draw_head(grid, ++row);
	screen->n_lines = n;
	screen->chosen = screen->chosen >= n ? n - 1 : screen->chosen;
	screen->chosen = screen->chosen < 0 ? 0 : screen->chosen;
	/* The table leaves room for the holders below it, but has at least three lines. */
	room = grid->rows - row - 1 - (LIVE_MAX_HOLDERS + 2);
	room = room < 3 ? 3 : room;
	if (screen->first > screen->chosen)
		screen->first = screen->chosen;
	if (screen->first + room <= screen->chosen)
		screen->first = screen->chosen - room + 1;
	for (int i = screen->first; i < n && i < screen->first + room; i++)
		draw_line(grid, ++row, &lines[i],
			i == screen->chosen && screen->every_ns    ? LIVE_CHOSEN
			: lines[i].process->state == GPC_RUN_ALIVE ? LIVE_PLAIN
								   : LIVE_DIM);
	if (n == 0)
		put(grid, ++row, 2, LIVE_DIM, "%s",
			live->n_processes ? "no match" : "no live process is recorded");
	else
		draw_holders(grid, row + 2, &lines[screen->chosen], screen);
}

void live_draw_help(struct live_grid *grid)
{
	static const char *const text[] = { "gpumem-report live", "",
		"Up Down PgUp PgDn Home End   choose a line",
		"M  G  P    by memory, growth, pid;  F6 > the next order",
		"F3 / F4 \\  filter: program, \"rank 3\", call site;  Esc ends it",
		"Z Space    pause", "+ -        refresh more or less often",
		"F1 h ?     this;  F10 q ends", "",
		"|  live, and straight from the driver    :  pending: freed, work may still use it",
		".  cached: free, kept                    #  other processes, contexts, the driver",
		"GROW/s  of the minimum: what a step takes and returns does not count", "",
		"any key goes back" };

	for (int i = 0; i < (int)(sizeof text / sizeof text[0]); i++)
		put(grid, i, 0, i ? LIVE_PLAIN : LIVE_BOLD, "%s", text[i]);
}
