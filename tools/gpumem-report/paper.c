/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/gpumem-report/paper.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/text.h"
#include "gpucache_format.h"

#define WIDTH_PIPED 80
#define WIDTH_LEAST 60
#define WIDTH_MOST  200

static int width_of(FILE *out)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	long width = WIDTH_PIPED;

	if (columns && *columns)
		width = strtol(columns, NULL, 10);
	else if (isatty(fileno(out)) && ioctl(fileno(out), TIOCGWINSZ, &size) == 0 &&
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
	return !(no_color && *no_color) && term && strcmp(term, "dumb") != 0 && isatty(fileno(out));
}

void gpc_paper_init(struct gpc_paper *paper, FILE *out, enum gpc_colour_mode mode)
{
	paper->out = out;
	paper->width = width_of(out);
	paper->has_colour = wants_colour(out, mode);
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

static void print_name(const struct gpc_paper *paper, const char *name)
{
	fprintf(paper->out, "%s%-*s%s", gpc_paper_ink(paper, GPC_INK_BOLD), GPC_PAPER_INDENT, name,
		gpc_paper_ink(paper, GPC_INK_PLAIN));
}

void gpc_paper_section(const struct gpc_paper *paper, const char *name, const char *format, ...)
{
	va_list args;

	fputc('\n', paper->out);
	print_name(paper, name);
	va_start(args, format);
	vfprintf(paper->out, format, args);
	va_end(args);
	fputc('\n', paper->out);
}

void gpc_paper_line(const struct gpc_paper *paper, const char *format, ...)
{
	va_list args;

	fprintf(paper->out, "%*s", GPC_PAPER_INDENT, "");
	va_start(args, format);
	vfprintf(paper->out, format, args);
	va_end(args);
	fputc('\n', paper->out);
}

void gpc_paper_wrap(const struct gpc_paper *paper, const char *name, const char *text)
{
	size_t room = (size_t)(paper->width - GPC_PAPER_INDENT);
	bool is_first = true;

	while (*text) {
		size_t len = strlen(text);

		if (len > room) {
			len = room;
			while (len > 0 && (text[len] != ' ' || gpc_bytes_is_unit(text + len + 1)))
				len--;
			/* A word longer than the line is not cut: it may be a path to copy. */
			if (len == 0)
				len = strcspn(text, " ");
		}
		if (is_first && name)
			print_name(paper, name);
		else
			fprintf(paper->out, "%*s", GPC_PAPER_INDENT, "");
		fprintf(paper->out, "%.*s\n", (int)len, text);
		is_first = false;
		text += len;
		while (*text == ' ')
			text++;
	}
}

/* One of eight buffers in turn. */
static struct gpc_text next_buffer(void)
{
	static char buffers[8][40];
	static unsigned next;

	next = (next + 1) % 8;
	return gpc_text_init(buffers[next], sizeof buffers[next]);
}

const char *gpc_show_bytes(uint64_t bytes)
{
	struct gpc_text text = next_buffer();

	if (bytes == GPUCACHE_UNKNOWN)
		return "unknown";
	gpc_text_add_bytes(&text, bytes);
	return text.buf;
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

const char *gpc_show_share(uint64_t part, uint64_t whole)
{
	struct gpc_text text = next_buffer();
	char number[16];

	if (whole == 0 || part == GPUCACHE_UNKNOWN)
		return "";
	snprintf(number, sizeof number, "%.1f", 100.0 * (double)part / (double)whole);
	gpc_text_add(&text, "%s %%", number);
	return text.buf;
}
