/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded text: a formatter without heap, locale or stdio.
 *
 * A struct gpc_text appends to a buffer of the caller.  The text is always NUL-terminated; if it does
 * not fit, it is truncated and `cut` is set.
 *
 *	GPC_TEXT(text, 64);
 *	gpc_text_add(&text, "%s has %zu blocks, ", name, n);
 *	gpc_text_add_bytes(&text, bytes);                     -> "1.50 GiB"
 *	puts(text.buf);
 *
 * Threads   An object belongs to one thread.
 * Failure   None; see `cut`.
 * Limits    Conversions: %s %c %d %i %u %x %p %%, with l, ll, z, a width (also *), a leading 0 or '-', and for %s a
 *           precision (also *).
 */
#ifndef GPC_BASE_TEXT_H
#define GPC_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_text {
	char *buf;
	size_t size; /* of buf, the final NUL included */
	size_t len;  /* of the text so far, without the NUL */
	bool cut;
};

/* An empty text over buf[0 .. size), size > 0. */
struct gpc_text gpc_text_init(char *buf, size_t size);

/* Declares an empty text with a buffer of its own, of `bytes` bytes. */
#define GPC_TEXT(name, bytes)    \
	char name##_buf_[bytes]; \
	struct gpc_text name = gpc_text_init(name##_buf_, sizeof name##_buf_)

/* Makes the text empty again. */
static inline void gpc_text_clear(struct gpc_text *text)
{
	*text = gpc_text_init(text->buf, text->size);
}

/* Append the arguments, formatted as by printf with the conversions above. */
void gpc_text_add(struct gpc_text *text, const char *format, ...)
	__attribute__((format(__printf__, 2, 3)));
void gpc_text_vadd(struct gpc_text *text, const char *format, va_list args)
	__attribute__((format(__printf__, 2, 0)));

/*
 * Replaces by question marks each byte that is not valid UTF-8, and each character that controls a terminal (C0, DEL,
 * C1), changes the direction of writing or separates lines (U+2028, U+2029).  All foreign text must pass through this,
 * or gpc_text_add_clean, before it is printed.
 */
void gpc_text_clean(char *text);

/*
 * Returns the size of the first character of at[0 .. size), size > 0; 1 if it is invalid.  *ret_is_harmless: false if
 * gpc_text_clean would replace it.
 */
size_t gpc_text_letter(const char *at, size_t size, bool *ret_is_harmless);

/* Appends from[0 .. size), with the same replacements as gpc_text_clean. */
void gpc_text_add_clean(struct gpc_text *text, const char *from, size_t size);

/* Encodes one character as UTF-8 and returns its size.  A surrogate or a number beyond Unicode becomes U+FFFD. */
uint32_t gpc_text_encode(uint32_t letter, char out[4]);

/* Appends a byte count in binary units with two decimals: "512 B", "1.50 GiB". */
void gpc_text_add_bytes(struct gpc_text *text, uint64_t bytes);

/* Appends part of whole, which is not 0: "12.3 %". */
void gpc_text_add_share(struct gpc_text *text, uint64_t part, uint64_t whole);

/* Appends a time, in nanoseconds, in its largest unit: "850 ms", "12 s", "5 min", "3 h", "2 d". */
void gpc_text_add_age(struct gpc_text *text, uint64_t ns);

/* Appends a sentence: each @ in it becomes the next of these byte counts, as gpc_text_add_bytes writes it. */
#define gpc_text_add_amounts(text, sentence, ...)                                  \
	gpc_text_add_amounts_of(text, sentence, (const uint64_t[]){ __VA_ARGS__ }, \
		sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))
void gpc_text_add_amounts_of(
	struct gpc_text *text, const char *sentence, const uint64_t amounts[], size_t n);

/* Pads the text with spaces to `column` characters; no-op if it is longer. */
void gpc_text_pad_to(struct gpc_text *text, size_t column);

/*
 * The edit distance (Levenshtein, ignoring case) between word[0 .. len) and `name`; SIZE_MAX if the word is longer than
 * MAX_WORD (text.c).
 */
size_t gpc_text_distance(const char *name, const char *word, size_t len);

/* Returns true if the text needs no quoting in a shell. */
bool gpc_text_is_plain(const char *text);

/* The last component of a path; the whole path if it has no slash, or ends in one. */
const char *gpc_base_name(const char *path);

/* Formats into buf as gpc_text_add does, truncating what does not fit.  Returns the length of the result. */
size_t gpc_format(char *buf, size_t size, const char *format, ...)
	__attribute__((format(__printf__, 3, 4)));

#endif
