/* SPDX-License-Identifier: Apache-2.0 */
/* Opcodes of protocol 2 as they come; words already written are named by number from a hash of them. */
#include "tools/gpumem-report/pickle.h"

#include <string.h>

/* As CPython's own pickler. */
#define BATCH 1000

static void put_little(struct gpc_pickle *pickle, uint64_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		fputc((int)(value >> (8 * i) & 0xff), pickle->out);
}

void gpc_pickle_begin(struct gpc_pickle *pickle, FILE *out)
{
	*pickle = (struct gpc_pickle){ .out = out, .memo = json_object_new_object() };
	fputs("\x80\x02", out);
}

void gpc_pickle_end(struct gpc_pickle *pickle)
{
	fputc('.', pickle->out);
	json_object_put(pickle->memo);
}

/* LONG_BINGET; false where it was not named yet. */
static bool get(struct gpc_pickle *pickle, const char *name)
{
	struct json_object *number;

	if (!json_object_object_get_ex(pickle->memo, name, &number))
		return false;
	fputc('j', pickle->out);
	put_little(pickle, json_object_get_uint64(number), 4);
	return true;
}

/* LONG_BINPUT of what was written last. */
static void name_it(struct gpc_pickle *pickle, const char *name)
{
	json_object_object_add(pickle->memo, name, json_object_new_uint64(pickle->n_memo));
	fputc('r', pickle->out);
	put_little(pickle, pickle->n_memo++, 4);
}

void gpc_pickle_begin_dict(struct gpc_pickle *pickle)
{
	fputs("}(", pickle->out);
}

void gpc_pickle_end_dict(struct gpc_pickle *pickle)
{
	fputc('u', pickle->out);
}

static void begin_items(struct gpc_pickle *pickle)
{
	fputc('(', pickle->out);
	pickle->n_items[pickle->depth++] = 0;
}

void gpc_pickle_begin_list(struct gpc_pickle *pickle)
{
	fputc(']', pickle->out);
	begin_items(pickle);
}

bool gpc_pickle_begin_named_list(struct gpc_pickle *pickle, const char *name)
{
	if (get(pickle, name))
		return false;
	fputc(']', pickle->out);
	name_it(pickle, name);
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
	fputc('e', pickle->out);
	pickle->depth--;
}

void gpc_pickle_word(struct gpc_pickle *pickle, const char *text)
{
	size_t len = strlen(text);

	if (get(pickle, text))
		return;
	fputc('X', pickle->out);
	put_little(pickle, len, 4);
	fwrite(text, 1, len, pickle->out);
	name_it(pickle, text);
}

void gpc_pickle_number(struct gpc_pickle *pickle, uint64_t number)
{
	if (number <= INT32_MAX) {
		fputc('J', pickle->out);
		put_little(pickle, number, 4);
		return;
	}
	/* LONG1 is signed: a ninth byte keeps the highest numbers positive. */
	fprintf(pickle->out, "\x8a%c", number > INT64_MAX ? 9 : 8);
	put_little(pickle, number, 8);
	if (number > INT64_MAX)
		fputc(0, pickle->out);
}

void gpc_pickle_false(struct gpc_pickle *pickle)
{
	fputc('\x89', pickle->out);
}

void gpc_pickle_put_word(struct gpc_pickle *pickle, const char *key, const char *text)
{
	gpc_pickle_word(pickle, key);
	gpc_pickle_word(pickle, text);
}

void gpc_pickle_put_number(struct gpc_pickle *pickle, const char *key, uint64_t number)
{
	gpc_pickle_word(pickle, key);
	gpc_pickle_number(pickle, number);
}
