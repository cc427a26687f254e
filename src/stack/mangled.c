/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over a symbol of the Itanium ABI, which keeps identifiers and skips all else.  Template arguments end where
 * every I has met its E.  There is no recursion, so no symbol can exhaust the stack.
 */
#include "stack/mangled.h"

#include <ctype.h>
#include <string.h>

struct identifier {
	const char *start;
	size_t len;
};

/* Parses the identifier at *at, such as "4fill", and moves past it; empty if there is none. */
static struct identifier take_identifier(const char **at)
{
	struct identifier id = { *at, 0 };
	size_t len = 0;

	while (*id.start >= '0' && *id.start <= '9' && len < 10000)
		len = len * 10 + (size_t)(*id.start++ - '0');
	if (len == 0 || strnlen(id.start, len) < len)
		return id;
	id.len = len;
	*at = id.start + len;
	return id;
}

/* Skips the number of a substitution or template parameter: "1_" of S1_, "_" of T_. */
static const char *skip_number(const char *at)
{
	while (isdigit((unsigned char)*at) || isupper((unsigned char)*at))
		at++;
	return *at == '_' ? at + 1 : at;
}

/* Skips the template arguments that begin at the 'I' at `at`; NULL if they do not end. */
static const char *skip_arguments(const char *at)
{
	int depth = 0;

	do {
		if (*at >= '1' && *at <= '9') {
			if (!take_identifier(&at).len)
				return NULL;
		} else if (*at == 'L' && at[1] != '_') {
			at = strchr(at, 'E');
			if (!at)
				return NULL;
			at++;
		} else if (*at == 'S' || *at == 'T') {
			at++;
			at = islower((unsigned char)*at) ? at + 1 : skip_number(at);
		} else {
			depth += *at && strchr("INXJFL", *at) != NULL;
			depth -= *at == 'E';
			if (!*at++)
				return NULL;
		}
	} while (depth > 0);
	return at;
}

static void add_scope(struct gpc_text *text, size_t start, const char *name, size_t len)
{
	gpc_text_add(text, "%s%.*s", text->len > start ? "::" : "", (int)len, name);
}

bool gpc_mangled_read(const char *symbol, struct gpc_text *text)
{
	struct identifier last = { "", 0 };
	size_t start = text->len;
	const char *at = symbol;
	bool is_nested;

	if (strncmp(at, "_Z", 2) != 0)
		return false;
	/* A lambda, and what else is local, gets the name of the function that it stands in. */
	at += 1 + strspn(at + 1, "Z");
	is_nested = *at == 'N';
	at += is_nested;
	while (is_nested && *at && strchr("rVKRO", *at))
		at++;
	while (at && *at) {
		at += *at == 'L';
		if (strncmp(at, "St", 2) == 0) {
			add_scope(text, start, "std", 3);
			at += 2;
			continue;
		}
		if (*at >= '1' && *at <= '9') {
			last = take_identifier(&at);
			if (!last.len)
				break;
			if (strncmp(last.start, "_GLOBAL__N", 10) != 0)
				add_scope(text, start, last.start, last.len);
			if (!is_nested)
				break;
		} else if (*at == 'I') {
			at = skip_arguments(at);
		} else {
			if (last.len && (*at == 'C' || *at == 'D')) {
				add_scope(text, start, *at == 'C' ? "" : "~", *at == 'D');
				gpc_text_add(text, "%.*s", (int)last.len, last.start);
			}
			break;
		}
	}
	return text->len > start;
}
