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
#include "tools/gpumem-report/json.h"
#include "tools/gpumem-report/live.h"

#define DEFAULT_EVERY_NS UINT64_C(1000000000)
#define LEAST_EVERY_NS   UINT64_C(100000000)
#define MOST_EVERY_NS    UINT64_C(60000000000)

static void make_grid(struct live_grid *grid, int rows, int columns)
{
	struct live_cell *cells =
		gpc_resize(grid->cells, (size_t)rows * (size_t)columns, sizeof *cells);

	*grid = (struct live_grid){ cells, rows, columns, 0 };
	for (int i = 0; i < rows * columns; i++)
		cells[i] = (struct live_cell){ L' ', LIVE_PLAIN };
}

/* Prints a character as UTF-8. */
static void print_letter(FILE *out, wchar_t letter)
{
	unsigned code = (unsigned)letter;

	if (code < 0x80) {
		fputc((int)code, out);
	} else if (code < 0x800) {
		fputc((int)(0xc0 | code >> 6), out);
		fputc((int)(0x80 | (code & 0x3f)), out);
	} else {
		fputc((int)(0xe0 | (code >> 12 & 0x0f)), out);
		fputc((int)(0x80 | (code >> 6 & 0x3f)), out);
		fputc((int)(0x80 | (code & 0x3f)), out);
	}
}

static void print_grid(const struct live_grid *grid, FILE *out)
{
	for (int row = 0; row < grid->used; row++) {
		const struct live_cell *cells = &grid->cells[row * grid->columns];
		int end = grid->columns;

		while (end > 0 && cells[end - 1].letter == L' ')
			end--;
		for (int i = 0; i < end; i++)
			print_letter(out, cells[i].letter);
		fputc('\n', out);
	}
}

static enum gpc_exit show_once(
	struct live *live, struct gpc_report *report, struct live_screen *screen)
{
	struct live_grid grid = { 0 };

	if (report->options->json) {
		struct json_object *root = live_json(live);

		gpc_json_end(report, root);
		return GPC_EXIT_MADE;
	}
	make_grid(&grid, (int)live->n_processes * LIVE_MAX_GPUS + 80, report->paper.width);
	live_draw(live, screen, &grid);
	print_grid(&grid, report->paper.out);
	free(grid.cells);
	return GPC_EXIT_MADE;
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

static attr_t attributes_of(enum live_ink ink)
{
	static const attr_t plain[LIVE_INK_COUNT] = { [LIVE_BOLD] = A_BOLD,
		[LIVE_DIM] = A_DIM,
		[LIVE_ALARM] = A_BOLD,
		[LIVE_HEAD] = A_REVERSE,
		[LIVE_CHOSEN] = A_REVERSE };
	bool is_coloured = ink == LIVE_ALARM || ink >= LIVE_HEAD;

	if (!is_coloured || COLOR_PAIRS <= LIVE_INK_COUNT)
		return plain[ink];
	return ink == LIVE_ALARM ? A_BOLD : A_NORMAL;
}

static void show_grid(const struct live_grid *grid)
{
	for (int row = 0; row < grid->rows; row++)
		for (int column = 0; column < grid->columns; column++) {
			const struct live_cell *cell = &grid->cells[row * grid->columns + column];
			bool is_coloured = cell->ink == LIVE_ALARM || cell->ink >= LIVE_HEAD;
			wchar_t text[2] = { cell->letter, 0 };
			cchar_t letter;

			setcchar(&letter, text, attributes_of((enum live_ink)cell->ink),
				is_coloured && COLOR_PAIRS > LIVE_INK_COUNT ? cell->ink : 0, NULL);
			mvadd_wch(row, column, &letter);
		}
	refresh();
}

/* Adds a character to the filter; false if the key means something else. */
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

static void choose(struct live_screen *screen, int key)
{
	switch (key) {
	case KEY_UP:
	case 'k':
		screen->chosen--;
		break;
	case KEY_DOWN:
	case 'j':
		screen->chosen++;
		break;
	case KEY_PPAGE:
		screen->chosen -= 10;
		break;
	case KEY_NPAGE:
		screen->chosen += 10;
		break;
	case KEY_HOME:
		screen->chosen = 0;
		break;
	case KEY_END:
		screen->chosen = screen->n_lines - 1;
		break;
	default:
		break;
	}
}

/* Handles a key, as in htop; false: quit. */
static bool press(struct live_screen *screen, int key, bool *is_help)
{
	if (type(screen, key))
		return true;
	choose(screen, key);
	if (key == 'q' || key == KEY_F(10) || key == 3)
		return false;
	if (key == 'M')
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
	if (key == KEY_F(1) || key == 'h' || key == '?')
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
		/* A key press does not trigger the next reading much too early. */
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
	atexit(end_screen); /* also where memory ends */
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
	if (code == GPC_EXIT_MADE)
		code = is_once ? show_once(&live, report, &screen)
			       : watch_terminal(&live, report, &screen);
	live_fini(&live);
	return code;
}
