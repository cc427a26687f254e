/* SPDX-License-Identifier: Apache-2.0 */
/* `live`: the screen and its keys, or a single reading as text or JSON. */
#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "format/memory.h"
#include "tools/gpumem-report/live/processes.h"
#include "tools/gpumem-report/output/json.h"

#define DEFAULT_EVERY_NS UINT64_C(1000000000)
#define LEAST_EVERY_NS   UINT64_C(100000000)
#define MOST_EVERY_NS    UINT64_C(60000000000)

static void make_grid(struct live_grid *grid, int rows, int columns)
{
	struct live_cell *cells =
		gpc_resize(grid->cells, (size_t)rows * (size_t)columns, sizeof *cells);

	*grid = (struct live_grid){ cells, rows, columns, 0 };
	for (int i = 0; i < rows * columns; i++)
		cells[i] = (struct live_cell){ " ", LIVE_PLAIN };
}

static void print_grid(const struct live_grid *grid, FILE *out)
{
	for (int row = 0; row < grid->used; row++) {
		const struct live_cell *cells = &grid->cells[row * grid->columns];
		int end = grid->columns;

		while (end > 0 && strcmp(cells[end - 1].letter, " ") == 0)
			end--;
		for (int i = 0; i < end; i++)
			fputs(cells[i].letter, out);
		fputc('\n', out);
	}
}

static void add_rate(struct json_object *object, const char *key, double rate)
{
	json_object_object_add(object, key, rate >= 0 ? json_object_new_double(rate) : NULL);
}

static struct json_object *others_json(const struct live_others *others)
{
	struct json_object *array = others ? json_object_new_array() : NULL;

	for (unsigned i = 0; others && i < others->n; i++) {
		struct json_object *row = gpc_json_row(array);

		gpc_json_bytes(row, "pid", others->rows[i].pid);
		gpc_json_text(row, "name", others->rows[i].name);
		gpc_json_bytes(row, "bytes", others->rows[i].bytes);
	}
	return array;
}

static struct json_object *gpu_json(const struct live *live, const struct live_gpu *gpu)
{
	struct json_object *object = json_object_new_object();
	struct json_object *holders;

	json_object_object_add(object, "ordinal", json_object_new_int(gpu->ordinal));
	gpc_json_text(object, "name", gpu->name);
	gpc_json_text(object, "uuid", gpu->uuid);
	json_object_object_add(object, "balance",
		gpu->has_balance ? gpc_json_balance(&gpu->balance, gpu->sum.kind_bytes) : NULL);
	gpc_json_bytes(object, "live_bytes", live_in_use(gpu));
	gpc_json_bytes(object, "pending_bytes", gpu->sum.pending_bytes);
	gpc_json_bytes(object, "cached_bytes", gpu->sum.cached_bytes);
	gpc_json_bytes(object, "peak_live_bytes", gpu->sum.peak_live_bytes);
	gpc_json_bytes(object, "calls", gpu->n_calls);
	gpc_json_bytes(object, "waits", gpu->sum.n_sync);
	gpc_json_bytes(object, "oom", gpu->sum.n_oom);
	add_rate(object, "growth_bytes_per_second", gpu->growth_a_s);
	add_rate(object, "seconds_left", gpu->seconds_left);
	holders = gpc_json_add(object, "holders", json_object_new_array());
	for (unsigned i = 0; i < gpu->n_holders; i++) {
		struct json_object *row = gpc_json_row(holders);

		gpc_json_text(row, "where", gpu->holders[i].where);
		gpc_json_bytes(row, "live_bytes", gpu->holders[i].bytes);
		gpc_json_bytes(row, "blocks", gpu->holders[i].n_blocks);
	}
	json_object_object_add(object, "other_processes", others_json(live_find_others(live, gpu)));
	return object;
}

static void print_json(const struct live *live)
{
	struct json_object *root = gpc_json_begin(live->report, "live");
	struct json_object *processes = gpc_json_add(root, "processes", json_object_new_array());

	for (unsigned p = 0; p < live->n_processes; p++) {
		const struct live_process *process = &live->processes[p];
		struct json_object *object = gpc_json_identity(
			process->path, &process->header, process->state, process->header.file_size);
		struct json_object *gpus = gpc_json_add(object, "devices", json_object_new_array());

		for (unsigned g = 0; g < process->n_gpus; g++)
			json_object_array_add(gpus, gpu_json(live, &process->gpus[g]));
		json_object_array_add(processes, object);
	}
	gpc_json_end(live->report, root);
}

static void print_once(
	const struct live *live, const struct gpc_report *report, struct live_screen *screen)
{
	struct live_grid grid = { 0 };

	make_grid(&grid, (int)live->n_processes * LIVE_MAX_GPUS + 80, report->paper.width);
	live_draw(live, screen, &grid);
	print_grid(&grid, report->paper.out);
	free(grid.cells);
}

static void start_colours(const struct gpc_report *report)
{
	if (report->options->colour == GPC_COLOUR_NEVER || getenv("NO_COLOR") || !has_colors())
		return;
	start_color();
	use_default_colors();
	init_pair(LIVE_ALARM, COLOR_RED, -1);
	init_pair(LIVE_HEAD, COLOR_BLACK, COLOR_GREEN);
	init_pair(LIVE_CHOSEN, COLOR_BLACK, COLOR_CYAN);
	init_pair(LIVE_BAR_LIVE, COLOR_GREEN, -1);
	init_pair(LIVE_BAR_PENDING, COLOR_YELLOW, -1);
	init_pair(LIVE_BAR_CACHED, COLOR_CYAN, -1);
	init_pair(LIVE_BAR_OTHER, COLOR_MAGENTA, -1);
}

/* The colour pairs of start_colours() are numbered by ink; without colours, attributes tell the inks apart. */
static void set_ink(unsigned ink)
{
	static const attr_t plain[LIVE_INK_COUNT] = { [LIVE_BOLD] = A_BOLD,
		[LIVE_DIM] = A_DIM,
		[LIVE_ALARM] = A_BOLD,
		[LIVE_HEAD] = A_REVERSE,
		[LIVE_CHOSEN] = A_REVERSE };

	if ((ink == LIVE_ALARM || ink >= LIVE_HEAD) && COLOR_PAIRS > LIVE_INK_COUNT)
		attr_set(ink == LIVE_ALARM ? A_BOLD : A_NORMAL, (short)ink, NULL);
	else
		attr_set(plain[ink], 0, NULL);
}

static void show_grid(const struct live_grid *grid)
{
	for (int row = 0; row < grid->rows; row++)
		for (int column = 0; column < grid->columns; column++) {
			const struct live_cell *cell = &grid->cells[row * grid->columns + column];

			set_ink(cell->ink);
			mvaddstr(row, column, cell->letter);
		}
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

static void draw(
	const struct live *live, struct live_screen *screen, struct live_grid *grid, bool is_help)
{
	make_grid(grid, LINES, COLS);
	if (is_help)
		live_draw_help(grid);
	else
		live_draw(live, screen, grid);
	erase();
	show_grid(grid);
}

static enum gpc_exit watch(struct live *live, struct live_screen *screen)
{
	struct live_grid grid = { 0 };
	enum gpc_exit code = GPC_EXIT_MADE;
	bool is_help = false;
	int key = ERR;

	do {
		/* ERR: the interval has passed without a key.  A key only draws the last reading again. */
		if (key == ERR && !screen->is_paused && !is_help)
			code = live_look(live);
		draw(live, screen, &grid, is_help);
		timeout((int)(screen->every_ns / 1000000));
		key = getch();
		if (is_help && key != ERR && key != KEY_RESIZE) {
			is_help = false;
			continue;
		}
	} while (code == GPC_EXIT_MADE && (key == ERR || press(screen, key, &is_help)));
	free(grid.cells);
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
		print_once(&live, report, &screen);
	live_fini(&live);
	return code;
}
