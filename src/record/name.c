/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the pattern.  Expansions are cleaned, because the names of hosts, jobs and programs come from outside:
 * a slash in them could lead into another folder, and ".." into the parent.
 */
#include "record/name.h"

#include <string.h>

#include "base/env.h"

/* Bytes of one expansion.  A file name has at most 255 in all. */
#define MAX_PART 64

static void add_clean(struct gpc_text *text, const char *part, bool keep_slash)
{
	for (size_t i = 0; part[i] && (keep_slash || i < MAX_PART); i++) {
		char c = part[i];

		if ((unsigned char)c < ' ' || c == 0x7f ||
			(!keep_slash && (c == '/' || (c == '.' && i == 0))))
			c = '_';
		gpc_text_add(text, "%c", c);
	}
}

static void add_program(struct gpc_text *text, const struct gpucache_header *identity)
{
	const char *name = gpc_base_name(identity->exe);

	add_clean(text, *name ? name : "unknown", false);
}

static void add_rank(struct gpc_text *text, int32_t rank, const struct gpucache_header *identity)
{
	if (rank >= 0)
		gpc_text_add(text, "%d", rank);
	else
		gpc_text_add(text, "p%u", identity->pid);
}

/* Expands "{VAR}" at `at`, behind "%q".  Returns the position behind it, or NULL if there is no "{VAR}". */
static const char *add_variable(struct gpc_text *text, const char *at)
{
	const char *end = *at == '{' ? strchr(at, '}') : NULL;
	char name[128];
	const char *value;

	if (!end || (size_t)(end - at - 1) >= sizeof name)
		return NULL;
	memcpy(name, at + 1, (size_t)(end - at - 1));
	name[end - at - 1] = '\0';
	value = gpc_env_get(name);
	if (value)
		add_clean(text, value, true);
	return end + 1;
}

/* Expands one letter; false if it is unknown. */
static bool add_letter(struct gpc_text *text, char letter, const struct gpucache_header *identity,
	uint64_t seconds, unsigned attempt)
{
	switch (letter) {
	case 'p':
		gpc_text_add(text, "%u", identity->pid);
		return true;
	case 'h':
		add_clean(text, identity->host, false);
		return true;
	case 'e':
		add_program(text, identity);
		return true;
	case 't':
		gpc_text_add(text, "%llu", (unsigned long long)seconds);
		return true;
	case 'n':
		gpc_text_add(text, "%u", attempt);
		return true;
	case 'r':
		add_rank(text, identity->rank, identity);
		return true;
	case 'l':
		add_rank(text, identity->local_rank, identity);
		return true;
	case 'j':
		add_clean(text, *identity->job ? identity->job : "nojob", false);
		return true;
	case '%':
		gpc_text_add(text, "%%");
		return true;
	default:
		return false;
	}
}

/* Makes the name unique: inserts our pid and, from attempt 2 on, the number of the attempt, before GPC_NAME_SUFFIX. */
static void add_attempt(struct gpc_text *text, uint32_t pid, unsigned attempt)
{
	const size_t suffix_len = strlen(GPC_NAME_SUFFIX);
	bool has_suffix = text->len >= suffix_len &&
			  strcmp(text->buf + text->len - suffix_len, GPC_NAME_SUFFIX) == 0;

	if (has_suffix)
		text->len -= suffix_len;
	gpc_text_add(text, ".%u", pid);
	if (attempt > 1)
		gpc_text_add(text, ".%u", attempt);
	if (has_suffix)
		gpc_text_add(text, GPC_NAME_SUFFIX);
}

void gpc_name_expand(struct gpc_text *text, const char *pattern,
	const struct gpucache_header *identity, uint64_t seconds, unsigned attempt,
	char *ret_unknown)
{
	bool is_counted = false;
	const char *at = pattern;

	*ret_unknown = '\0';
	while (*at) {
		const char *behind = NULL;

		if (at[0] != '%' || !at[1]) {
			gpc_text_add(text, "%c", *at++);
			continue;
		}
		is_counted |= at[1] == 'n';
		if (at[1] == 'q')
			behind = add_variable(text, at + 2);
		else if (add_letter(text, at[1], identity, seconds, attempt))
			behind = at + 2;
		if (!behind) {
			gpc_text_add(text, "%c", at[0]);
			if (!*ret_unknown)
				*ret_unknown = at[1];
			behind = at + 1;
		}
		at = behind;
	}
	if (!is_counted && attempt > 0)
		add_attempt(text, identity->pid, attempt);
}

void gpc_name_default(
	struct gpc_text *text, const struct gpucache_header *identity, unsigned attempt)
{
	gpc_text_add(text, GPC_NAME_PREFIX);
	add_program(text, identity);
	if (*identity->job) {
		gpc_text_add(text, "-");
		add_clean(text, identity->job, false);
	}
	if (identity->rank >= 0)
		gpc_text_add(text, "-r%d", identity->rank);
	gpc_text_add(text, "-%u", identity->pid);
	if (attempt > 0)
		gpc_text_add(text, "-%u", attempt);
	gpc_text_add(text, GPC_NAME_SUFFIX);
}
