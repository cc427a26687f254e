/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams opcodes of protocol 2.  A hash maps words to memo numbers, a table maps constants by address: a trace repeats
 * the same ten keys a million times.
 */
#include "tools/gpumem-report/pickle.h"

#include <stdlib.h>
#include <string.h>

#include "format/memory.h"

/* As CPython's own pickler. */
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
	*pickle = (struct gpc_pickle){ .out = out, .memo = json_object_new_object() };
	fputs("\x80\x02", out);
}

void gpc_pickle_end(struct gpc_pickle *pickle)
{
	put_byte(pickle, '.');
	json_object_put(pickle->memo);
	free(pickle->lists);
}

/* LONG_BINGET */
static void get(struct gpc_pickle *pickle, uint32_t number)
{
	put_byte(pickle, 'j');
	put_little(pickle, number, 4);
}

/* LONG_BINPUT of the last object; returns its number. */
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

bool gpc_pickle_begin_numbered_list(struct gpc_pickle *pickle, size_t id, size_t n_ids)
{
	if (!pickle->lists) {
		pickle->lists = gpc_new(n_ids, sizeof *pickle->lists);
		pickle->n_lists = n_ids;
	}
	if (id < pickle->n_lists && pickle->lists[id]) {
		get(pickle, pickle->lists[id] - 1);
		return false;
	}
	put_byte(pickle, ']');
	if (id < pickle->n_lists)
		pickle->lists[id] = name_it(pickle) + 1;
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

/* Writes a word, or refers to it if it was written before.  Returns its number. */
static uint32_t put_word(struct gpc_pickle *pickle, const char *text)
{
	struct json_object *known;
	size_t len = strlen(text);
	uint32_t number;

	if (json_object_object_get_ex(pickle->memo, text, &known)) {
		number = (uint32_t)json_object_get_uint64(known);
		get(pickle, number);
		return number;
	}
	put_byte(pickle, 'X');
	put_little(pickle, len, 4);
	fwrite(text, 1, len, pickle->out);
	number = name_it(pickle);
	json_object_object_add(pickle->memo, text, json_object_new_uint64(number));
	return number;
}

void gpc_pickle_constant(struct gpc_pickle *pickle, const char *text)
{
	size_t at = (uintptr_t)text % GPC_PICKLE_N_CONSTANTS;

	if (pickle->constants[at].text == text) {
		get(pickle, pickle->constants[at].number);
		return;
	}
	pickle->constants[at].number = put_word(pickle, text);
	pickle->constants[at].text = text;
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
	/* LONG1 is signed: a ninth byte keeps the highest numbers positive. */
	fprintf(pickle->out, "\x8a%c", number > INT64_MAX ? 9 : 8);
	put_little(pickle, number, 8);
	if (number > INT64_MAX)
		put_byte(pickle, 0);
}
