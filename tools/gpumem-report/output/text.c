/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks lines between words; the continuation starts below the last column.  A number stays with its unit. */
#include "tools/gpumem-report/output/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/text.h"
#include "gpucache_format.h"
#include "tools/replay/clean_stream.h"

#define WIDTH_PIPED 80
#define WIDTH_LEAST 60
#define WIDTH_MOST  200

/* The longest text of a line, before it is wrapped. */
#define MAX_LINE 1024

/* `stdout` may be a stream of clean_stream.h, which has no descriptor of its own. */
static int descriptor_of(FILE *out)
{
	return out == stdout ? STDOUT_FILENO : fileno(out);
}

static int width_of(FILE *out)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	long width = WIDTH_PIPED;

	if (columns && *columns)
		width = strtol(columns, NULL, 10);
	else if (isatty(descriptor_of(out)) && ioctl(descriptor_of(out), TIOCGWINSZ, &size) == 0 &&
		 size.ws_col > 0)
		width = size.ws_col;
	if (width < WIDTH_LEAST)
		return WIDTH_LEAST;
	return width > WIDTH_MOST ? WIDTH_MOST : (int)width;
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

void gpc_paper_init(struct gpc_paper *paper, FILE *out, enum gpc_colour_mode mode)
{
	paper->out = out;
	paper->width = width_of(out);
	paper->has_colour = wants_colour(out, mode);
	gpc_clean_let_colours(paper->has_colour);
}

const char *gpc_paper_ink(const struct gpc_paper *paper, enum gpc_ink ink)
{
	static const char *const inks[] = {
		[GPC_INK_PLAIN] = "\033[0m",
		[GPC_INK_BOLD] = "\033[1m",
		[GPC_INK_DIM] = "\033[2m",
		[GPC_INK_ALARM] = "\033[1;31m",
	};

	return paper->has_colour ? inks[ink] : "";
}

/* Prints the name of a section in the first columns; NULL: prints blanks. */
static void print_name(const struct gpc_paper *paper, const char *name)
{
	if (!name)
		fprintf(paper->out, "%*s", GPC_PAPER_INDENT, "");
	else
		fprintf(paper->out, "%s%-*s%s", gpc_paper_ink(paper, GPC_INK_BOLD),
			GPC_PAPER_INDENT, name, gpc_paper_ink(paper, GPC_INK_PLAIN));
}

/* Returns the length of the words that fit into `room`, at least one; does not part a number from its unit. */
static size_t take_line(const char *text, size_t room)
{
	size_t len = strlen(text);

	if (len <= room)
		return len;
	for (len = room; len > 0; len--)
		if (text[len] == ' ' && !gpc_bytes_is_unit(text + len + 1) &&
			strspn(text, " ") < len)
			return len;
	/* No word fits.  The first one is not split, because it may be a path that the user copies. */
	len = strspn(text, " ");
	return len + strcspn(text + len, " ");
}

/* Prints one line after `hang` blanks, without the blanks at the end of the text. */
static void print_line(const struct gpc_paper *paper, int hang, const char *text, size_t len)
{
	while (len && text[len - 1] == ' ')
		len--;
	fprintf(paper->out, "%*s%.*s\n", hang, "", (int)len, text);
}

/* Prints the text, wrapped.  The cursor is at `column`; the lines after the first start at `hang`. */
static void flow(const struct gpc_paper *paper, int column, int hang, const char *text)
{
	size_t len = take_line(text, (size_t)(paper->width - column));

	print_line(paper, 0, text, len);
	for (text += len; *(text += strspn(text, " ")); text += len) {
		len = take_line(text, (size_t)(paper->width - hang));
		print_line(paper, hang, text, len);
	}
}

/* Returns where the last column of the text starts: after its last gap of two or more blanks.  0: too far right. */
static int hang_of(const char *text)
{
	const char *column = text + strspn(text, " ");

	for (const char *at = column; (at = strstr(at, "  ")); column = at)
		at += strspn(at, " ");
	return column - text < 40 ? (int)(column - text) : 0;
}

void gpc_paper_section(const struct gpc_paper *paper, const char *name, const char *format, ...)
{
	char text[MAX_LINE];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (name)
		fputc('\n', paper->out);
	print_name(paper, name);
	flow(paper, GPC_PAPER_INDENT, GPC_PAPER_INDENT + hang_of(text), text);
}

void gpc_paper_head(const struct gpc_paper *paper, const char *format, ...)
{
	char text[MAX_LINE];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	flow(paper, 0, 2, text);
}

void gpc_paper_wrap(const struct gpc_paper *paper, const char *name, const char *text)
{
	print_name(paper, name);
	flow(paper, GPC_PAPER_INDENT, GPC_PAPER_INDENT, text);
}

/* Returns one of eight buffers, in rotation: a call of printf may show eight values. */
static struct gpc_text next_buffer(void)
{
	static char buffers[8][40];
	static unsigned next;

	next = (next + 1) % 8;
	return gpc_text_init(buffers[next], sizeof buffers[next]);
}

const char *gpc_show_rounded(struct gpc_rounded amount)
{
	struct gpc_text text = next_buffer();

	gpc_text_add_rounded(&text, amount);
	return text.buf;
}

const char *gpc_show_bytes(uint64_t bytes)
{
	return bytes == GPUCACHE_UNKNOWN ? "unknown" : gpc_show_rounded(gpc_rounded_of(bytes));
}

const char *gpc_show_count(uint64_t count)
{
	struct gpc_text text = next_buffer();
	char digits[24];
	int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);

	for (int i = 0; i < n; i++)
		gpc_text_add(&text, "%s%c", i > 0 && (n - i) % 3 == 0 ? "," : "", digits[i]);
	return text.buf;
}

const char *gpc_show_duration(uint64_t ns)
{
	struct gpc_text text = next_buffer();
	uint64_t ms = ns / 1000000;
	uint64_t s = ms / 1000;

	if (ms < 1000)
		gpc_text_add(&text, "%u ms", (unsigned)ms);
	else if (s < 60)
		gpc_text_add(&text, "%u.%u s", (unsigned)s, (unsigned)(ms % 1000 / 100));
	else if (s < 3600)
		gpc_text_add(&text, "%u min %02u s", (unsigned)(s / 60), (unsigned)(s % 60));
	else if (s < 86400)
		gpc_text_add(&text, "%u h %02u min", (unsigned)(s / 3600), (unsigned)(s / 60 % 60));
	else
		gpc_text_add(&text, "%llu d %02u h", (unsigned long long)(s / 86400),
			(unsigned)(s / 3600 % 24));
	return text.buf;
}

static const char *show_moment(uint64_t realtime_ns, bool utc)
{
	struct gpc_text text = next_buffer();
	time_t seconds = (time_t)(realtime_ns / 1000000000);
	struct tm tm;

	if (utc ? !gmtime_r(&seconds, &tm) : !localtime_r(&seconds, &tm))
		return "unknown";
	strftime(text.buf, text.size, utc ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%d %H:%M:%S", &tm);
	return text.buf;
}

const char *gpc_show_time(uint64_t realtime_ns)
{
	return show_moment(realtime_ns, false);
}

const char *gpc_show_rfc3339(uint64_t realtime_ns)
{
	return show_moment(realtime_ns, true);
}

const char *gpc_show_tenths(uint32_t tenths)
{
	struct gpc_text text = next_buffer();

	gpc_text_add(&text, "%u.%u %%", (unsigned)(tenths / 10), (unsigned)(tenths % 10));
	return text.buf;
}

const char *gpc_show_share(uint64_t part, uint64_t whole)
{
	if (whole == 0 || part == GPUCACHE_UNKNOWN)
		return "";
	return gpc_show_tenths((uint32_t)(1000.0 * (double)part / (double)whole + 0.5));
}
