/* SPDX-License-Identifier: Apache-2.0 */
/* Each name is scanned once from left to right; templates are skipped up to the bracket that closes them. */
#include "names/short_names.h"

#include <string.h>

#include "model/torch.h"

static bool skip(const char **at, const char *what)
{
	size_t len = strlen(what);

	if (strncmp(*at, what, len) != 0)
		return false;
	*at += len;
	return true;
}

/* Returns the position after the `>` that closes the `<` at `at`, or the end of the text. */
static const char *behind_template(const char *at)
{
	int depth = 0;

	for (; *at; at++) {
		depth += *at == '<';
		depth -= *at == '>' && at[-1] != '-';
		if (depth == 0)
			return at + 1;
	}
	return at;
}

void gpc_name_short(const char *function, struct gpc_text *ret_text)
{
	static const char word[] = "operator";
	bool is_operator = false;
	const char *at = function;
	size_t start = ret_text->len;

	while (*at) {
		size_t plain = strcspn(at, "(<o "); /* the rules below begin with one of these */

		if (plain) {
			gpc_text_add(ret_text, "%.*s", (int)plain, at);
			at += plain;
			continue;
		}
		if (skip(&at, "(anonymous namespace)::") || skip(&at, "<locals>."))
			continue;
		if (skip(&at, word)) {
			is_operator = true;
			gpc_text_add(ret_text, "%s", word);
			/* Copies the operator's name, which may consist of brackets: operator<<, operator(). */
			while (*at && strchr("<>()=!-[]+*", *at) && *at != '(')
				gpc_text_add(ret_text, "%c", *at++);
			if (skip(&at, "()"))
				gpc_text_add(ret_text, "()");
		} else if (*at == '(' ||
			   (*at == ' ' && !is_operator && strncmp(at, " [clone", 7) == 0)) {
			break;
		} else if (*at == '<' && at > function && at[-1] != '.') {
			at = behind_template(at);
		} else if (*at == ' ' && !is_operator) {
			/* Everything before the blank was the return type. */
			ret_text->len = start;
			ret_text->buf[start] = '\0';
			at++;
		} else {
			gpc_text_add(ret_text, "%c", *at++);
		}
	}
}

bool gpc_name_node(const char *function, struct gpc_text *ret_text)
{
	size_t len;
	const char *node = gpc_torch_node(function, &len);

	if (node)
		gpc_text_add(ret_text, "%.*s", (int)len, node);
	return node;
}

bool gpc_name_operator(const char *function, struct gpc_text *ret_text)
{
	static const char scope[] = "at::_ops::";
	const char *name = function + sizeof scope - 1;

	if (strncmp(function, scope, sizeof scope - 1) != 0)
		return false;
	gpc_text_add(ret_text, "%.*s", (int)strcspn(name, ":"), name);
	return true;
}
