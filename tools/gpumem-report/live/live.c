/* SPDX-License-Identifier: Apache-2.0 */
/* `live`: the screen and its keys, or a single reading as text or JSON. */
#include <curses.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "model/sheet.h"
#include "tools/gpumem-report/live/processes.h"
#include "tools/gpumem-report/output/page.h"

#define DEFAULT_EVERY_NS UINT64_C(1000000000)
#define LEAST_EVERY_NS   UINT64_C(100000000)
#define MOST_EVERY_NS    UINT64_C(60000000000)

static struct gpc_cell rate(double a_s)
{
	return gpc_number(a_s >= 0 ? (uint64_t)a_s : GPUCACHE_UNKNOWN);
}

static void tell_others(struct gpc_document *doc, const struct live_others *others)
{
	static const struct gpc_column columns[] = { { "pid" }, { "name" }, { "bytes" } };
	static const struct gpc_section section = { "other_processes", NULL, GPC_COLUMNS(columns) };

	if (!others) {
		gpc_document_member(doc, "other_processes", gpc_blank());
		return;
	}
	gpc_document_open(doc, &section);
	for (unsigned i = 0; i < others->n; i++)
		gpc_document_row(doc, gpc_number(others->rows[i].pid),
			gpc_name(others->rows[i].name), gpc_bytes(others->rows[i].bytes));
	gpc_document_close(doc);
}

static void tell_balance(struct gpc_document *doc, const struct live_gpu *gpu)
{
	static const struct gpc_section section = { "balance", NULL, gpc_sheet_columns, 4,
		.flags = GPC_SHEET_FLAGS };
	const struct gpc_sheet sheet = { &gpu->balance, gpu->sum.kind_bytes, 0, 0, 0, 0 };

	if (!gpu->has_balance) {
		gpc_document_member(doc, "balance", gpc_blank());
		return;
	}
	gpc_document_open(doc, &section);
	gpc_sheet_show(doc, &sheet);
	gpc_document_close(doc);
}

static void tell_gpu(struct gpc_document *doc, const struct live *live, const struct live_gpu *gpu)
{
	static const struct gpc_column columns[] = { { "where" }, { "live_bytes" }, { "blocks" } };
	static const struct gpc_section holders = { "holders", NULL, GPC_COLUMNS(columns) };
	static const struct gpc_section element = { .flags = GPC_OBJECT };

	gpc_document_open(doc, &element);
	gpc_document_member(doc, "ordinal", gpc_number((uint64_t)gpu->ordinal));
	gpc_document_member(doc, "name", gpc_name(gpu->name));
	gpc_document_member(doc, "uuid", gpc_name(gpu->uuid));
	tell_balance(doc, gpu);
	gpc_document_member(doc, "live_bytes", gpc_bytes(live_in_use(gpu)));
	gpc_document_member(doc, "pending_bytes", gpc_bytes(gpu->sum.pending_bytes));
	gpc_document_member(doc, "cached_bytes", gpc_bytes(gpu->sum.cached_bytes));
	gpc_document_member(doc, "peak_live_bytes", gpc_bytes(gpu->sum.peak_live_bytes));
	gpc_document_member(doc, "calls", gpc_count(gpu->n_calls));
	gpc_document_member(doc, "waits", gpc_count(gpu->sum.n_sync));
	gpc_document_member(doc, "oom", gpc_count(gpu->sum.n_oom));
	gpc_document_member(doc, "growth_bytes_per_second", rate(gpu->growth_a_s));
	gpc_document_member(doc, "seconds_left", rate(gpu->seconds_left));
	gpc_document_open(doc, &holders);
	for (unsigned i = 0; i < gpu->n_holders; i++)
		gpc_document_row(doc, gpc_name(gpu->holders[i].where),
			gpc_bytes(gpu->holders[i].bytes), gpc_count(gpu->holders[i].n_blocks));
	gpc_document_close(doc);
	tell_others(doc, live_find_others(live, gpu));
	gpc_document_close(doc);
}

static void print_json(const struct live *live)
{
	static const struct gpc_section processes = { "processes" };
	static const struct gpc_section element = { .flags = GPC_OBJECT };
	struct gpc_document *doc = live->report->doc;

	gpc_page_begin(live->report, "live");
	gpc_document_open(doc, &processes);
	for (unsigned p = 0; p < live->n_processes; p++) {
		const struct live_process *process = &live->processes[p];

		gpc_document_open(doc, &element);
		gpc_page_identify(doc, process->path, &process->header, process->state,
			process->header.file_size);
		gpc_document_open(doc, &gpc_page_devices);
		for (unsigned g = 0; g < process->n_gpus; g++)
			tell_gpu(doc, live, &process->gpus[g]);
		gpc_document_close(doc);
		gpc_document_close(doc);
	}
	gpc_document_close(doc);
	gpc_document_end(doc);
}

/* ---- the terminal ---- */

static void start_colours(const struct gpc_report *report)
{
	if (report->options->colour == GPC_COLOUR_NEVER || getenv("NO_COLOR") || !has_colors())
		return;
	start_color();
	use_default_colors();
	init_pair(GPC_INK_ALARM, COLOR_RED, -1);
	init_pair(GPC_INK_CHOSEN, COLOR_BLACK, COLOR_CYAN);
	init_pair(GPC_INK_GREEN, COLOR_GREEN, -1);
	init_pair(GPC_INK_YELLOW, COLOR_YELLOW, -1);
	init_pair(GPC_INK_CYAN, COLOR_CYAN, -1);
	init_pair(GPC_INK_MAGENTA, COLOR_MAGENTA, -1);
}

/* The colour pairs of start_colours() are numbered by ink; without colours, attributes tell the inks apart. */
static void set_ink(void *self, enum gpc_ink ink)
{
	static const attr_t attributes[GPC_INK_COUNT] = { [GPC_INK_BOLD] = A_BOLD,
		[GPC_INK_DIM] = A_DIM,
		[GPC_INK_ALARM] = A_BOLD,
		[GPC_INK_CHOSEN] = A_REVERSE };
	bool has_pair = ink >= GPC_INK_ALARM && COLOR_PAIRS > GPC_INK_COUNT;

	(void)self;
	attr_set(has_pair && ink == GPC_INK_CHOSEN ? A_NORMAL : attributes[ink],
		(short)(has_pair ? ink : 0), NULL);
}

/* `self`: the row on the screen.  A word that is longer than a line goes on over the next one, which is cleared. */
static void put_on_screen(void *self, const char *bytes, size_t n)
{
	int *row = self;

	if (n == 1 && *bytes == '\n') {
		move(++*row, 0);
		clrtoeol();
	} else if (*row < LINES) {
		addnstr(bytes, (int)n);
	}
}

static void draw(const struct live *live, struct live_screen *screen, bool is_help)
{
	int row = 0;
	struct gpc_document doc = { .renderer = &gpc_render_text,
		.put = put_on_screen,
		.self = &row,
		.set_ink = set_ink,
		.width = (unsigned)COLS,
		.max_lines = (unsigned)LINES };

	erase();
	move(0, 0);
	if (is_help)
		live_show_help(&doc);
	else
		live_show(&doc, live, screen, LINES);
	refresh();
}

/* Handles a key while the filter is typed; false if it is no key of the filter. */
static bool type(struct live_screen *screen, int key)
{
	size_t len = strlen(screen->filter);

	if (!screen->is_typing)
		return false;
	if (key == 27) {
		screen->filter[0] = '\0';
		screen->is_typing = false;
	} else if (key == '\n' || key == KEY_ENTER) {
		screen->is_typing = false;
	} else if (key == KEY_BACKSPACE || key == 127 || key == 8) {
		screen->filter[len ? len - 1 : 0] = '\0';
	} else if (key >= 32 && key < 127 && len + 1 < sizeof screen->filter) {
		screen->filter[len] = (char)key;
		screen->filter[len + 1] = '\0';
	} else {
		return false;
	}
	return true;
}

/* Handles a key, as in htop; false: quit. */
static bool press(struct live_screen *screen, int key, bool *is_help)
{
	if (type(screen, key))
		return true;
	if (key == 'q' || key == KEY_F(10) || key == 3)
		return false;
	if (key == KEY_UP || key == 'k')
		screen->chosen--;
	else if (key == KEY_DOWN || key == 'j')
		screen->chosen++;
	else if (key == KEY_PPAGE)
		screen->chosen -= 10;
	else if (key == KEY_NPAGE)
		screen->chosen += 10;
	else if (key == KEY_HOME)
		screen->chosen = 0;
	else if (key == KEY_END)
		screen->chosen = screen->n_lines - 1;
	else if (key == 'M')
		screen->order = LIVE_BY_MEMORY;
	else if (key == 'G')
		screen->order = LIVE_BY_GROWTH;
	else if (key == 'P')
		screen->order = LIVE_BY_PID;
	else if (key == '>' || key == KEY_F(6))
		screen->order = (enum live_order)((screen->order + 1) % LIVE_ORDER_COUNT);
	else if (key == '/' || key == '\\' || key == KEY_F(3) || key == KEY_F(4))
		screen->is_typing = true;
	else if (key == 27)
		screen->filter[0] = '\0';
	else if (key == 'Z' || key == ' ')
		screen->is_paused = !screen->is_paused;
	else if (key == '+' && screen->every_ns / 2 >= LEAST_EVERY_NS)
		screen->every_ns /= 2;
	else if (key == '-' && screen->every_ns * 2 <= MOST_EVERY_NS)
		screen->every_ns *= 2;
	else if (key == KEY_F(1) || key == 'h' || key == '?')
		*is_help = true;
	return true;
}

static enum gpc_exit watch(struct live *live, struct live_screen *screen)
{
	enum gpc_exit code = GPC_EXIT_MADE;
	bool is_help = false;
	int key = ERR;

	do {
		/* ERR: the interval has passed without a key.  A key only draws the last reading again. */
		if (key == ERR && !screen->is_paused && !is_help)
			code = live_look(live);
		draw(live, screen, is_help);
		timeout((int)(screen->every_ns / 1000000));
		key = getch();
		if (is_help && key != ERR && key != KEY_RESIZE) {
			is_help = false;
			continue;
		}
	} while (code == GPC_EXIT_MADE && (key == ERR || press(screen, key, &is_help)));
	return code;
}

static void end_screen(void)
{
	endwin();
}

static void on_end(int number)
{
	endwin();
	_exit(128 + number);
}

static enum gpc_exit watch_terminal(
	struct live *live, struct gpc_report *report, struct live_screen *screen)
{
	enum gpc_exit code;

	if (!newterm(NULL, fdopen(STDOUT_FILENO, "w"), stdin)) {
		gpc_complain("this terminal (TERM=%s) cannot be drawn on; --once prints text",
			getenv("TERM") ? getenv("TERM") : "");
		return GPC_EXIT_USAGE;
	}
	atexit(end_screen); /* gpc_no_memory() calls exit() */
	start_colours(report);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	signal(SIGTERM, on_end);
	signal(SIGHUP, on_end);
	code = watch(live, screen);
	endwin();
	return code;
}

enum gpc_exit gpc_cmd_live(struct gpc_report *report)
{
	const struct gpc_options *options = report->options;
	const bool is_once = options->json || options->once || options->output ||
			     !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO);
	struct live_screen screen = { .every_ns = is_once             ? 0
						  : options->watch_ns ? options->watch_ns
								      : DEFAULT_EVERY_NS };
	struct live live;
	enum gpc_exit code;

	live_init(&live, report);
	setlocale(LC_CTYPE, "");
	screen.is_unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	code = live_look(&live);
	if (code == GPC_EXIT_MADE && !is_once)
		code = watch_terminal(&live, report, &screen);
	else if (code == GPC_EXIT_MADE && options->json)
		print_json(&live);
	else if (code == GPC_EXIT_MADE)
		live_show(report->doc, &live, &screen, INT_MAX);
	live_fini(&live);
	return code;
}
