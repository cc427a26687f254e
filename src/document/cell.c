/* SPDX-License-Identifier: Apache-2.0 */
/* The one text of each quantity. */
#include "document/document.h"
#include "gpucache_format.h"

static void write_count(struct gpc_text *text, uint64_t count)
{
	GPC_TEXT(digits, 24);

	gpc_text_add(&digits, "%llu", (unsigned long long)count);
	for (size_t i = 0; i < digits.len; i++)
		gpc_text_add(
			text, "%s%c", i > 0 && (digits.len - i) % 3 == 0 ? "," : "", digits.buf[i]);
}

/* "12.3M": three digits and a unit. */
static void write_brief(struct gpc_text *text, uint64_t n)
{
	static const char units[] = " KMGTPE";
	unsigned unit = 0;
	double value = (double)n;
	unsigned tenths;

	for (; value >= 1000 && unit < 6; unit++)
		value /= 1024;
	tenths = (unsigned)(value * 10 + 0.5);
	if (unit == 0)
		gpc_text_add(text, "%u", (unsigned)n);
	else if (value < 9.995)
		gpc_text_add(text, "%u.%02u%c", (unsigned)(value * 100 + 0.5) / 100,
			(unsigned)(value * 100 + 0.5) % 100, units[unit]);
	else if (tenths < 1000)
		gpc_text_add(text, "%u.%u%c", tenths / 10, tenths % 10, units[unit]);
	else
		gpc_text_add(text, "%u%c", (unsigned)(value + 0.5), units[unit]);
}

static void write_share(struct gpc_text *text, uint64_t part, uint64_t whole)
{
	if (whole != 0 && whole != GPUCACHE_UNKNOWN)
		gpc_text_add_share(text, part, whole);
}

static void write_change(struct gpc_text *text, uint64_t before, uint64_t after)
{
	if (before != after)
		gpc_text_add(text, after > before ? "+" : "-");
	gpc_text_add_bytes(text, after > before ? after - before : before - after);
}

static void write_duration(struct gpc_text *text, uint64_t ns)
{
	uint64_t ms = ns / 1000000;
	uint64_t s = ms / 1000;

	if (ns && ns < 1000)
		gpc_text_add(text, "%u ns", (unsigned)ns);
	else if (ns && ns < 1000000)
		gpc_text_add(text, "%u us", (unsigned)(ns / 1000));
	else if (ms < 1000)
		gpc_text_add(text, "%u ms", (unsigned)ms);
	else if (s < 60)
		gpc_text_add(text, "%u.%u s", (unsigned)s, (unsigned)(ms % 1000 / 100));
	else if (s < 3600)
		gpc_text_add(text, "%u min %02u s", (unsigned)(s / 60), (unsigned)(s % 60));
	else if (s < 86400)
		gpc_text_add(text, "%u h %02u min", (unsigned)(s / 3600), (unsigned)(s / 60 % 60));
	else
		gpc_text_add(text, "%llu d %02u h", (unsigned long long)(s / 86400),
			(unsigned)(s / 3600 % 24));
}

/*
 * The Gregorian calendar without the C library, whose functions read files and take locks.  A year begins in March
 * here, so that the leap day is its last; 400 years are an era of 146097 days.
 */
static void write_time(struct gpc_text *text, uint64_t ns)
{
	unsigned long long s = ns / 1000000000;
	unsigned day = (unsigned)(s / 86400 + 719468); /* since 0000-03-01 */
	unsigned of_era = day % 146097;
	unsigned year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	unsigned of_year = of_era - (365 * year + year / 4 - year / 100);
	unsigned month = (5 * of_year + 2) / 153; /* 0: March */

	gpc_text_add(text, "%04u-%02u-%02u %02u:%02u:%02u",
		year + day / 146097 * 400 + (month >= 10), month < 10 ? month + 3 : month - 9,
		of_year - (153 * month + 2) / 5 + 1, (unsigned)(s / 3600 % 24),
		(unsigned)(s / 60 % 60), (unsigned)(s % 60));
}

void gpc_cell_write(struct gpc_text *text, struct gpc_cell cell)
{
	if (cell.number == GPUCACHE_UNKNOWN) {
		gpc_text_add(text, cell.kind == GPC_KIND_BYTES ? "unknown" : "");
		return;
	}
	switch (cell.kind) {
	case GPC_KIND_BLANK:
		break;
	case GPC_KIND_BYTES:
		gpc_text_add_bytes(text, cell.number);
		break;
	case GPC_KIND_BRIEF:
		write_brief(text, cell.number);
		break;
	case GPC_KIND_CHANGE:
		write_change(text, cell.whole, cell.number);
		break;
	case GPC_KIND_COUNT:
		write_count(text, cell.number);
		break;
	case GPC_KIND_NUMBER:
		gpc_text_add(text, "%llu", (unsigned long long)cell.number);
		break;
	case GPC_KIND_SHARE:
		write_share(text, cell.number, cell.whole);
		break;
	case GPC_KIND_DURATION:
		write_duration(text, cell.number);
		break;
	case GPC_KIND_TIME:
		write_time(text, cell.number);
		break;
	case GPC_KIND_TRUTH:
		gpc_text_add(text, cell.number ? "yes" : "no");
		break;
	case GPC_KIND_NAME:
	case GPC_KIND_SENTENCE:
		gpc_text_add(text, "%s", cell.text ? cell.text : "");
		break;
	}
}
