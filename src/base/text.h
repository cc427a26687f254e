/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded text: a formatter that needs no heap, no locale and no stdio.
 *
 * A struct gpc_text is a buffer of the caller that is filled from the left.  It is always a
 * terminated string; what does not fit is cut and `cut` says so.
 *
 *	char buf[64];
 *	struct gpc_text text = gpc_text_init(buf, sizeof buf);
 *	gpc_text_add(&text, "%s has %zu blocks, ", name, n);
 *	gpc_text_add_bytes(&text, bytes);                     -> "1.50 GiB"
 *
 * Threads   An object belongs to one thread.
 * Failure   None; see `cut`.
 * Limits    Conversions: %s %.*s %c %d %i %u %x %p %%, with l, ll, z, a width and a leading 0 or
 *           '-'.
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

/* Append. */
void gpc_text_add(struct gpc_text *text, const char *format, ...)
	__attribute__((format(__printf__, 2, 3)));
void gpc_text_vadd(struct gpc_text *text, const char *format, va_list args)
	__attribute__((format(__printf__, 2, 0)));

/*
 * What a program or a person wrote, made harmless to who reads it: a question mark for each byte of what is
 * no UTF-8, controls a terminal (C0, DEL, C1) or turns the direction of writing.  Everything that is printed
 * and was not written by us has passed one of these.  The second appends.
 */
void gpc_text_clean(char *text);

/* The bytes of the letter at at[0 .. size), size > 0, and whether it may stand; 1 where it is none. */
size_t gpc_text_letter(const char *at, size_t size, bool *ret_is_harmless);
void gpc_text_add_clean(struct gpc_text *text, const char *from, size_t size);

/* Append a byte count for a person, in binary units with two decimals: "512 B", "1.50 GiB". */
void gpc_text_add_bytes(struct gpc_text *text, uint64_t bytes);

/* Pad with spaces until the text is `column` characters long; nothing if it already is. */
void gpc_text_pad_to(struct gpc_text *text, size_t column);

/*
 * How many letters of word[0 .. len) are to be changed, added or left out to get `name`, without regard to
 * case; SIZE_MAX for words that are longer than any of ours.
 */
size_t gpc_text_distance(const char *name, const char *word, size_t len);

/* True where a shell takes the text as it stands. */
bool gpc_text_is_plain(const char *text);

/* The last component of a path. */
const char *gpc_base_name(const char *path);

/* Format into buf as snprintf would; returns the length written (cut texts included). */
size_t gpc_format(char *buf, size_t size, const char *format, ...)
	__attribute__((format(__printf__, 3, 4)));

#endif
