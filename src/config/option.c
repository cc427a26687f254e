/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.def becomes a table of {name, type, offset, default, range, choices, help}.  A value is parsed into a union,
 * checked against its range, and then stored, so a rejected value has no effect.
 */
#include "config/option.h"

#include <string.h>
#include <strings.h>

#include "base/bytes.h"

#define MILLION 1000000

/* More than any range in options.def, and far from overflow when multiplied by a million. */
#define MAX_WHOLE (UINT64_C(1) << 41)

const struct gpc_option_row gpc_option_rows[GPC_OPTION_COUNT] = {
#define OPTION(name, type, default_text, smallest, largest, choices, help)                     \
	{ #name, GPC_OPTION_##type, offsetof(struct gpc_config, name), default_text, smallest, \
		largest, choices, help },
#include "config/options.def"
};

/* The value of a field of any type, before it is stored. */
union value {
	bool flag;
	unsigned choice;
	int64_t number;
	uint64_t size;
	uint32_t ppm;
	struct gpc_amount amount;
};

static bool is_word(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && strncasecmp(text, word, len) == 0;
}

static bool read_bool(const char *text, size_t len, bool *ret_flag)
{
	static const char *const words[] = { "off", "on", "false", "true", "no", "yes", "0", "1" };

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (is_word(text, len, words[i])) {
			*ret_flag = i % 2;
			return true;
		}
	}
	return false;
}

/* The length of the choice that starts at `at`. */
static size_t choice_length(const char *at)
{
	return strcspn(at, "|");
}

static bool read_choice(const char *choices, const char *text, size_t len, unsigned *ret_choice)
{
	unsigned place = 0;

	for (const char *at = choices;; place++) {
		size_t n = choice_length(at);

		if (n == len && strncasecmp(at, text, n) == 0) {
			*ret_choice = place;
			return true;
		}
		if (!at[n])
			return false;
		at += n + 1;
	}
}

/* Reads a word of BOOL, for choices that have both "on" and "off". */
static bool read_flag(const char *choices, const char *text, size_t len, unsigned *ret_choice)
{
	unsigned sides[2];
	bool flag;

	if (!read_bool(text, len, &flag) || !read_choice(choices, "off", 3, &sides[0]) ||
		!read_choice(choices, "on", 2, &sides[1]))
		return false;
	*ret_choice = sides[flag];
	return true;
}

/* Reads a number as millionths.  Returns its end; NULL if there is no number, or one larger than any range. */
static const char *read_decimal(const char *at, const char *end, uint64_t *ret_millionths)
{
	unsigned __int128 value;

	if (!gpc_read_millionths(&at, end, &value) || value > MAX_WHOLE * MILLION)
		return NULL;
	*ret_millionths = (uint64_t)value;
	return at;
}

static bool read_int(const char *text, size_t len, int64_t *ret_number)
{
	bool negative = len > 0 && text[0] == '-';
	uint64_t value = 0;

	text += negative;
	len -= negative;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9' || value > MAX_WHOLE)
			return false;
		value = value * 10 + (uint64_t)(text[i] - '0');
	}
	*ret_number = negative ? -(int64_t)value : (int64_t)value;
	return len > 0;
}

static bool read_fraction(const char *text, size_t len, uint32_t *ret_ppm)
{
	const char *end = text + len;
	uint64_t millionths;
	const char *at = read_decimal(text, end, &millionths);

	if (at && at + 1 == end && *at == '%') {
		millionths /= 100;
		at++;
	}
	if (!at || at != end || millionths > UINT32_MAX)
		return false;
	*ret_ppm = (uint32_t)millionths;
	return true;
}

static bool read_duration(const char *text, size_t len, uint64_t *ret_ms)
{
	static const struct {
		const char *name;
		uint64_t ms;
	} units[] = { { "", 1 }, { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "min", 60000 },
		{ "h", 3600000 } };
	const char *end = text + len;
	uint64_t millionths;
	const char *at = read_decimal(text, end, &millionths);

	for (size_t i = 0; at && i < sizeof units / sizeof units[0]; i++) {
		if (is_word(at, (size_t)(end - at), units[i].name)) {
			*ret_ms = (uint64_t)((unsigned __int128)millionths * units[i].ms / MILLION);
			return true;
		}
	}
	return false;
}

static bool read_amount(const char *text, size_t len, struct gpc_amount *ret_amount)
{
	struct gpc_amount amount = { 0 };

	if (len > 0 && text[len - 1] == '%') {
		if (!read_fraction(text, len, &amount.ppm) || amount.ppm == 0 ||
			amount.ppm > MILLION)
			return false;
	} else if (!gpc_bytes_parse(text, len, &amount.bytes)) {
		return false;
	}
	*ret_amount = amount;
	return true;
}

static bool is_in_range(const struct gpc_option_row *row, uint64_t value)
{
	return value >= (uint64_t)row->smallest && value <= (uint64_t)row->largest;
}

/* Parses any type but STRING, without a range check. */
static bool read_value(
	const struct gpc_option_row *row, const char *text, size_t len, union value *ret_value)
{
	switch (row->type) {
	case GPC_OPTION_BOOL:
		return read_bool(text, len, &ret_value->flag);
	case GPC_OPTION_ENUM:
		return read_choice(row->choices, text, len, &ret_value->choice) ||
		       read_flag(row->choices, text, len, &ret_value->choice);
	case GPC_OPTION_INT:
		return read_int(text, len, &ret_value->number);
	case GPC_OPTION_SIZE:
		ret_value->size = GPC_SIZE_AUTO;
		return (row->choices && is_word(text, len, row->choices)) ||
		       gpc_bytes_parse(text, len, &ret_value->size);
	case GPC_OPTION_AMOUNT:
		return read_amount(text, len, &ret_value->amount);
	case GPC_OPTION_FRACTION:
		return read_fraction(text, len, &ret_value->ppm);
	case GPC_OPTION_DURATION:
		return read_duration(text, len, &ret_value->size);
	case GPC_OPTION_STRING:
		break;
	}
	return false;
}

/* True if the value is in the row's range, or is the default: a default of 0 may mean "none" and lie outside. */
static bool is_allowed(const struct gpc_option_row *row, const union value *value)
{
	union value preset = { 0 };

	if (!read_value(row, row->default_text, strlen(row->default_text), &preset))
		return false;
	switch (row->type) {
	case GPC_OPTION_INT:
		return value->number == preset.number ||
		       (value->number >= row->smallest && value->number <= row->largest);
	case GPC_OPTION_SIZE:
	case GPC_OPTION_DURATION:
		return value->size == preset.size || is_in_range(row, value->size) ||
		       (row->choices && value->size == GPC_SIZE_AUTO);
	case GPC_OPTION_AMOUNT:
		return value->amount.ppm || value->amount.bytes == preset.amount.bytes ||
		       is_in_range(row, value->amount.bytes);
	case GPC_OPTION_FRACTION:
		return value->ppm == preset.ppm || is_in_range(row, value->ppm);
	case GPC_OPTION_BOOL:
	case GPC_OPTION_ENUM:
	case GPC_OPTION_STRING:
		break;
	}
	return true;
}

static bool read_string(char *field, const char *text, size_t len)
{
	if (len >= GPC_CONFIG_MAX_STRING)
		return false;
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	}
	memcpy(field, text, len);
	field[len] = '\0';
	return true;
}

bool gpc_option_read(
	const struct gpc_option_row *row, struct gpc_config *config, const char *text, size_t len)
{
	/* The value of each type is as many bytes at the start of the union. */
	static const uint8_t sizes[] = {
		[GPC_OPTION_BOOL] = sizeof(bool),
		[GPC_OPTION_ENUM] = sizeof(unsigned),
		[GPC_OPTION_INT] = sizeof(int64_t),
		[GPC_OPTION_SIZE] = sizeof(uint64_t),
		[GPC_OPTION_AMOUNT] = sizeof(struct gpc_amount),
		[GPC_OPTION_FRACTION] = sizeof(uint32_t),
		[GPC_OPTION_DURATION] = sizeof(uint64_t),
	};
	void *field = (char *)config + row->offset;
	union value value = { 0 };

	if (row->type == GPC_OPTION_STRING)
		return read_string(field, text, len);
	if (!read_value(row, text, len, &value) || !is_allowed(row, &value))
		return false;
	memcpy(field, &value, sizes[row->type]);
	return true;
}

/* Writes bytes in the largest unit in which they are a whole number. */
static void write_size(struct gpc_text *text, uint64_t bytes)
{
	static const char *const units[] = { "", "KiB", "MiB", "GiB" };
	unsigned unit = 0;

	while (unit < 3 && bytes && bytes % GPC_KIB == 0) {
		bytes /= GPC_KIB;
		unit++;
	}
	gpc_text_add(text, "%llu%s", (unsigned long long)bytes, units[unit]);
}

/* Writes value / scale in decimals, without trailing zeros. */
static void write_decimal(struct gpc_text *text, uint32_t value, uint32_t scale)
{
	uint32_t rest = value % scale;

	gpc_text_add(text, "%u", value / scale);
	if (rest)
		gpc_text_add(text, ".");
	while (rest) {
		rest *= 10;
		gpc_text_add(text, "%u", rest / scale);
		rest %= scale;
	}
}

static void write_choice(struct gpc_text *text, const char *choices, unsigned place)
{
	const char *at = choices;

	while (place-- > 0)
		at += choice_length(at) + 1;
	gpc_text_add(text, "%.*s", (int)choice_length(at), at);
}

void gpc_option_write(
	const struct gpc_option_row *row, const struct gpc_config *config, struct gpc_text *text)
{
	const void *field = (const char *)config + row->offset;
	const struct gpc_amount *amount = field;

	switch (row->type) {
	case GPC_OPTION_BOOL:
		gpc_text_add(text, "%s", *(const bool *)field ? "on" : "off");
		break;
	case GPC_OPTION_ENUM:
		write_choice(text, row->choices, *(const unsigned *)field);
		break;
	case GPC_OPTION_INT:
		gpc_text_add(text, "%lld", (long long)*(const int64_t *)field);
		break;
	case GPC_OPTION_SIZE:
		if (row->choices && *(const uint64_t *)field == GPC_SIZE_AUTO)
			gpc_text_add(text, "%s", row->choices);
		else
			write_size(text, *(const uint64_t *)field);
		break;
	case GPC_OPTION_DURATION:
		gpc_text_add(text, "%llu", (unsigned long long)*(const uint64_t *)field);
		break;
	case GPC_OPTION_AMOUNT:
		if (amount->ppm) {
			write_decimal(text, amount->ppm, MILLION / 100);
			gpc_text_add(text, "%%");
		} else {
			write_size(text, amount->bytes);
		}
		break;
	case GPC_OPTION_FRACTION:
		write_decimal(text, *(const uint32_t *)field, MILLION);
		break;
	case GPC_OPTION_STRING:
		gpc_text_add(text, "%s", (const char *)field);
		break;
	}
}

const char *gpc_option_hint(const struct gpc_option_row *row)
{
	static const char *const hints[] = {
		[GPC_OPTION_BOOL] = "on|off",
		[GPC_OPTION_INT] = "number",
		[GPC_OPTION_SIZE] = "size, as 512M",
		[GPC_OPTION_AMOUNT] = "size or part, as 80%",
		[GPC_OPTION_FRACTION] = "part, as 0.8",
		[GPC_OPTION_DURATION] = "time, as 10s",
		[GPC_OPTION_STRING] = "text",
	};

	if (row->type == GPC_OPTION_SIZE && row->choices)
		return "size, or auto";
	return row->type == GPC_OPTION_ENUM ? row->choices : hints[row->type];
}
