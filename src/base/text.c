/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A printf for the conversions that the library uses, into the caller's buffer: no heap, no locale, O(length).  Text
 * from files and programs goes through a UTF-8 decoder that replaces control characters and characters that change
 * the direction of writing.
 */
#include "base/text.h"

#include <string.h>

/* gpc_text_distance() does not compare longer words. */
#define MAX_WORD 48

struct conversion {
	size_t width;
	size_t precision; /* of %s */
	bool pad_zero;
	bool left;
	int n_long; /* 0 int, 1 long or size_t, 2 long long */
};

struct gpc_text gpc_text_init(char *buf, size_t size)
{
	buf[0] = '\0';
	return (struct gpc_text){ .buf = buf, .size = size };
}

static void add_char(struct gpc_text *text, char c)
{
	if (text->len + 1 >= text->size) {
		text->cut = true;
		return;
	}
	text->buf[text->len++] = c;
	text->buf[text->len] = '\0';
}

static void add_run(struct gpc_text *text, const char *s, size_t n)
{
	size_t room = text->size - 1 - text->len;
	size_t take = n < room ? n : room;

	memcpy(text->buf + text->len, s, take);
	text->len += take;
	text->buf[text->len] = '\0';
	text->cut |= take < n;
}

static void add_repeated(struct gpc_text *text, char c, size_t n)
{
	while (n-- > 0 && !text->cut)
		add_char(text, c);
}

static void add_padded(
	struct gpc_text *text, const char *s, size_t n, const struct conversion *conv)
{
	size_t gap = conv->width > n ? conv->width - n : 0;

	if (!conv->left)
		add_repeated(text, conv->pad_zero ? '0' : ' ', gap);
	add_run(text, s, n);
	if (conv->left)
		add_repeated(text, ' ', gap);
}

static void add_number(struct gpc_text *text, uint64_t value, bool negative, unsigned base,
	const struct conversion *conv)
{
	struct conversion rest = *conv;
	char digits[24];
	size_t at = sizeof digits;

	do {
		digits[--at] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value > 0);
	if (negative && conv->pad_zero && !conv->left) {
		/* The zeros stand between the sign and the digits. */
		add_char(text, '-');
		rest.width -= rest.width > 0;
	} else if (negative) {
		digits[--at] = '-';
	}
	add_padded(text, digits + at, sizeof digits - at, &rest);
}

static uint64_t take_unsigned(va_list *args, const struct conversion *conv)
{
	if (conv->n_long == 0)
		return va_arg(*args, unsigned);
	if (conv->n_long == 1)
		return va_arg(*args, unsigned long);
	return va_arg(*args, unsigned long long);
}

static int64_t take_signed(va_list *args, const struct conversion *conv)
{
	if (conv->n_long == 0)
		return va_arg(*args, int);
	if (conv->n_long == 1)
		return va_arg(*args, long);
	return va_arg(*args, long long);
}

static void add_string(struct gpc_text *text, const char *s, struct conversion *conv)
{
	if (!s)
		s = "(null)";
	add_padded(text, s, strnlen(s, conv->precision), conv);
}

/* Parses what stands between '%' and the conversion letter; returns the letter's position. */
static const char *read_conversion(const char *at, va_list *args, struct conversion *conv)
{
	*conv = (struct conversion){ .precision = SIZE_MAX };
	for (; *at == '0' || *at == '-'; at++) {
		conv->pad_zero |= *at == '0';
		conv->left |= *at == '-';
	}
	if (*at == '*') {
		int width = va_arg(*args, int);

		conv->left |= width < 0;
		conv->width = (size_t)(width < 0 ? -width : width);
		at++;
	}
	for (; *at >= '0' && *at <= '9'; at++)
		conv->width = conv->width * 10 + (size_t)(*at - '0');
	if (at[0] == '.' && at[1] == '*') {
		int precision = va_arg(*args, int);

		conv->precision = precision < 0 ? SIZE_MAX : (size_t)precision;
		at += 2;
	} else if (at[0] == '.') {
		conv->precision = 0;
		for (at++; *at >= '0' && *at <= '9'; at++)
			conv->precision = conv->precision * 10 + (size_t)(*at - '0');
	}
	for (; *at == 'l' || *at == 'z'; at++)
		conv->n_long++;
	return at;
}

static void convert(struct gpc_text *text, char letter, va_list *args, struct conversion *conv)
{
	int64_t number;
	char c;

	switch (letter) {
	case 's':
		add_string(text, va_arg(*args, const char *), conv);
		break;
	case 'c':
		c = (char)va_arg(*args, int);
		add_padded(text, &c, 1, conv);
		break;
	case 'd':
	case 'i':
		number = take_signed(args, conv);
		add_number(text, number < 0 ? -(uint64_t)number : (uint64_t)number, number < 0, 10,
			conv);
		break;
	case 'u':
		add_number(text, take_unsigned(args, conv), false, 10, conv);
		break;
	case 'x':
		add_number(text, take_unsigned(args, conv), false, 16, conv);
		break;
	case 'p':
		add_char(text, '0');
		add_char(text, 'x');
		add_number(text, (uint64_t)(uintptr_t)va_arg(*args, void *), false, 16, conv);
		break;
	case '%':
		add_char(text, '%');
		break;
	default: /* unsupported: print it, so that the mistake is seen */
		add_char(text, '%');
		add_char(text, letter);
		break;
	}
}

void gpc_text_vadd(struct gpc_text *text, const char *format, va_list args)
{
	struct conversion conv;
	va_list copy;

	va_copy(copy, args);
	for (const char *at = format; *at && !text->cut; at++) {
		size_t literal = strcspn(at, "%");

		add_run(text, at, literal);
		if (!at[literal])
			break;
		at = read_conversion(at + literal + 1, &copy, &conv);
		if (!*at)
			break;
		convert(text, *at, &copy, &conv);
	}
	va_end(copy);
}

void gpc_text_add(struct gpc_text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	gpc_text_vadd(text, format, args);
	va_end(args);
}

void gpc_text_add_age(struct gpc_text *text, uint64_t ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "d", UINT64_C(86400000000000) }, { "h", UINT64_C(3600000000000) },
		{ "min", UINT64_C(60000000000) }, { "s", UINT64_C(1000000000) },
		{ "ms", UINT64_C(1000000) } };
	size_t i = 0;

	while (i + 1 < sizeof units / sizeof units[0] && ns < units[i].ns)
		i++;
	gpc_text_add(text, "%llu %s", (unsigned long long)(ns / units[i].ns), units[i].name);
}

__extension__ typedef unsigned __int128 wide;

static uint64_t rounded(wide number, uint64_t by)
{
	return (uint64_t)((number + by / 2) / by);
}

void gpc_text_add_bytes(struct gpc_text *text, uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	unsigned unit = 0;
	uint64_t hundredths = bytes;

	while (bytes >> (10 * unit) >= 1024)
		unit++;
	if (unit > 0)
		hundredths = rounded((wide)bytes * 100, UINT64_C(1) << (10 * unit));
	if (hundredths == 102400 && unit > 0 && unit < 6) {
		/* Rounding gave 1024.00: that is 1.00 of the next unit. */
		hundredths = 100;
		unit++;
	}
	if (unit == 0)
		gpc_text_add(text, "%llu B", (unsigned long long)bytes);
	else
		gpc_text_add(text, "%llu.%02llu %s", (unsigned long long)(hundredths / 100),
			(unsigned long long)(hundredths % 100), units[unit]);
}

void gpc_text_add_share(struct gpc_text *text, uint64_t part, uint64_t whole)
{
	const uint64_t tenths = rounded((wide)part * 1000, whole);

	gpc_text_add(text, "%llu.%llu %%", (unsigned long long)(tenths / 10),
		(unsigned long long)(tenths % 10));
}

void gpc_text_add_amounts_of(
	struct gpc_text *text, const char *sentence, const uint64_t amounts[], size_t n)
{
	for (; *sentence; sentence++) {
		if (*sentence != '@') {
			add_char(text, *sentence);
		} else if (n > 0) {
			gpc_text_add_bytes(text, *amounts++);
			n--;
		}
	}
}

uint32_t gpc_text_encode(uint32_t letter, char out[4])
{
	uint32_t n;

	if ((letter >= 0xd800 && letter < 0xe000) || letter > 0x10ffff)
		letter = 0xfffd;
	n = letter < 0x80 ? 1 : letter < 0x800 ? 2 : letter < 0x10000 ? 3 : 4;
	for (uint32_t i = n - 1; i > 0; i--, letter >>= 6)
		out[i] = (char)(0x80 | (letter & 0x3f));
	/* The first of n > 1 bytes begins with n bits that are 1, then a 0. */
	out[0] = (char)(n == 1 ? letter : (0xf00 >> n & 0xff) | letter);
	return n;
}

/* Decodes the first character of at[0 .. size), size > 0; UINT32_MAX if it is invalid.  *ret_bytes: its size, or 1. */
static uint32_t read_letter(const unsigned char *at, size_t size, size_t *ret_bytes)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
	uint32_t letter = n == 1 ? at[0] : at[0] & (0x7fu >> n);

	*ret_bytes = 1;
	if ((at[0] >= 0x80 && at[0] < 0xc2) || at[0] > 0xf4 || n > size)
		return UINT32_MAX;
	for (size_t i = 1; i < n; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return UINT32_MAX;
		letter = letter << 6 | (at[i] & 0x3f);
	}
	if (letter < least[n] || letter > 0x10ffff || (letter >= 0xd800 && letter <= 0xdfff))
		return UINT32_MAX;
	*ret_bytes = n;
	return letter;
}

/* False for C0, DEL, C1, and for characters that change the direction of writing or start a line. */
static bool is_harmless(uint32_t letter)
{
	return letter >= 0x20 && (letter < 0x7f || letter > 0x9f) && letter != UINT32_MAX &&
	       letter != 0x61c && letter != 0x200e && letter != 0x200f &&
	       (letter < 0x2028 || letter > 0x202e) && (letter < 0x2066 || letter > 0x2069);
}

size_t gpc_text_letter(const char *at, size_t size, bool *ret_is_harmless)
{
	size_t n;

	*ret_is_harmless = is_harmless(read_letter((const unsigned char *)at, size, &n));
	return n;
}

static void clean(char *text, size_t size)
{
	bool is;

	for (size_t n = 1, i = 0; i < size; i += n, n = 1) {
		/* Most text is printable ASCII, which needs no decoder. */
		if (text[i] >= 0x20 && text[i] < 0x7f)
			continue;
		n = gpc_text_letter(text + i, size - i, &is);
		if (!is)
			memset(text + i, '?', n);
	}
}

void gpc_text_clean(char *text)
{
	clean(text, strlen(text));
}

void gpc_text_add_clean(struct gpc_text *text, const char *from, size_t size)
{
	size_t start = text->len;

	add_run(text, from, size);
	clean(text->buf + start, text->len - start);
}

void gpc_text_pad_to(struct gpc_text *text, size_t column)
{
	while (text->len < column && !text->cut)
		add_char(text, ' ');
}

size_t gpc_text_distance(const char *name, const char *word, size_t len)
{
	size_t row[MAX_WORD + 1];

	if (len > MAX_WORD)
		return SIZE_MAX;
	for (size_t j = 0; j <= len; j++)
		row[j] = j;
	for (size_t i = 0; name[i]; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t j = 0; j < len; j++) {
			size_t change = diagonal + ((name[i] | 0x20) != (word[j] | 0x20));
			size_t shift = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;

			diagonal = row[j + 1];
			row[j + 1] = change < shift ? change : shift;
		}
	}
	return row[len];
}

bool gpc_text_is_plain(const char *text)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789/._-+=:,@%";

	return text[strspn(text, plain)] == '\0';
}

const char *gpc_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

size_t gpc_format(char *buf, size_t size, const char *format, ...)
{
	struct gpc_text text = gpc_text_init(buf, size);
	va_list args;

	va_start(args, format);
	gpc_text_vadd(&text, format, args);
	va_end(args);
	return text.len;
}
