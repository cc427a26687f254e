/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes opcodes as they come.  In pickle's own memo, an object gets a number by which later opcodes refer to it.
 * `words` finds the number of a word by its text.  A trace repeats the same ten keys a million times: `constants` finds
 * the numbers of keys by the address of the literal.
 */
#include "tools/gpumem-report/export/pickle.h"

#include <string.h>

/* The number of items after which CPython's own pickler begins a new batch, too. */
#define BATCH 1000

static void put_byte(struct gpc_pickle *pickle, int byte)
{
	putc_unlocked(byte, pickle->out);
}

static void put_little(struct gpc_pickle *pickle, uint64_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		put_byte(pickle, (int)(value >> (8 * i) & 0xff));
}

void gpc_pickle_begin(struct gpc_pickle *pickle, FILE *out)
{
	*pickle = (struct gpc_pickle){ .out = out };
	fputs("\x80\x02", out);
}

void gpc_pickle_end(struct gpc_pickle *pickle)
{
	put_byte(pickle, '.');
	gpc_map_fini(&pickle->words);
	gpc_map_fini(&pickle->constants);
	gpc_map_fini(&pickle->lists);
}

/* Writes LONG_BINGET, a reference to the object of that number. */
static void get(struct gpc_pickle *pickle, uint32_t number)
{
	put_byte(pickle, 'j');
	put_little(pickle, number, 4);
}

/* Writes LONG_BINPUT, which numbers the object written last; returns the number. */
static uint32_t name_it(struct gpc_pickle *pickle)
{
	put_byte(pickle, 'r');
	put_little(pickle, pickle->n_memo, 4);
	return pickle->n_memo++;
}

void gpc_pickle_begin_dict(struct gpc_pickle *pickle)
{
	fputs("}(", pickle->out);
}

void gpc_pickle_end_dict(struct gpc_pickle *pickle)
{
	put_byte(pickle, 'u');
}

static void begin_items(struct gpc_pickle *pickle)
{
	put_byte(pickle, '(');
	pickle->n_items[pickle->depth++] = 0;
}

void gpc_pickle_begin_list(struct gpc_pickle *pickle)
{
	put_byte(pickle, ']');
	begin_items(pickle);
}

bool gpc_pickle_begin_numbered_list(struct gpc_pickle *pickle, size_t id)
{
	uint64_t *known = gpc_map_at(&pickle->lists, id);

	if (*known) {
		get(pickle, (uint32_t)*known - 1);
		return false;
	}
	put_byte(pickle, ']');
	*known = name_it(pickle) + UINT64_C(1);
	begin_items(pickle);
	return true;
}

void gpc_pickle_item(struct gpc_pickle *pickle)
{
	unsigned *n = &pickle->n_items[pickle->depth - 1];

	if (++*n <= BATCH)
		return;
	fputs("e(", pickle->out);
	*n = 1;
}

void gpc_pickle_end_list(struct gpc_pickle *pickle)
{
	put_byte(pickle, 'e');
	pickle->depth--;
}

/* Writes a word, or refers to it if it was written before.  Returns 1 + its number. */
static uint64_t put_word(struct gpc_pickle *pickle, const char *text)
{
	uint64_t *known = gpc_map_of(&pickle->words, text);
	size_t len = strlen(text);

	if (*known) {
		get(pickle, (uint32_t)*known - 1);
		return *known;
	}
	put_byte(pickle, 'X');
	put_little(pickle, len, 4);
	fwrite(text, 1, len, pickle->out);
	return *known = name_it(pickle) + UINT64_C(1);
}

void gpc_pickle_constant(struct gpc_pickle *pickle, const char *text)
{
	uint64_t *known = gpc_map_at(&pickle->constants, (uintptr_t)text);

	if (*known)
		get(pickle, (uint32_t)*known - 1);
	else
		*known = put_word(pickle, text);
}

void gpc_pickle_false(struct gpc_pickle *pickle)
{
	put_byte(pickle, '\x89');
}

void gpc_pickle_put_word(struct gpc_pickle *pickle, const char *key, const char *text)
{
	gpc_pickle_constant(pickle, key);
	(void)put_word(pickle, text);
}

void gpc_pickle_put_number(struct gpc_pickle *pickle, const char *key, uint64_t number)
{
	gpc_pickle_constant(pickle, key);
	if (number <= INT32_MAX) {
		put_byte(pickle, 'J');
		put_little(pickle, number, 4);
		return;
	}
	/* LONG1 is signed: a number with the highest bit set needs a ninth byte, of 0. */
	fprintf(pickle->out, "\x8a%c", number > INT64_MAX ? 9 : 8);
	put_little(pickle, number, 8);
	if (number > INT64_MAX)
		put_byte(pickle, 0);
}
