/* SPDX-License-Identifier: Apache-2.0 */
/* The name before a message is that by which the tool was called. */
#include "tools/lib/command_line.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void gpc_complain(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

const char *gpc_nearest(const char *word, const void *rows, size_t n, size_t size)
{
	size_t len = strlen(word);
	size_t least = (len < 6 ? len / 2 : 3) + 1;
	const char *nearest = NULL;

	for (size_t i = 0; i < n; i++) {
		const char *name =
			*(const char *const *)(const void *)((const char *)rows + i * size);
		size_t d = gpc_text_distance(name, word, len);

		if (d < least) {
			least = d;
			nearest = name;
		}
	}
	return nearest;
}

void gpc_complain_option(const char *word, const struct option *options)
{
	const char *tool = program_invocation_short_name;
	size_t n_options = 0;
	size_t len = strcspn(word, "=");
	const char *nearest;
	char name[24];

	if (strncmp(word, "--", 2) != 0 || len < 3 || len - 2 >= sizeof name) {
		gpc_complain("unknown option or missing value: `%s`; `%s -h` lists the options",
			word, tool);
		return;
	}
	snprintf(name, sizeof name, "%.*s", (int)len - 2, word + 2);
	while (options[n_options].name)
		n_options++;
	nearest = gpc_nearest(name, options, n_options, sizeof *options);
	if (nearest && strcmp(nearest, name) == 0)
		gpc_complain("`--%s` needs a value, or takes none", nearest);
	else if (nearest)
		gpc_complain("unknown option `--%s`; did you mean `--%s`?", name, nearest);
	else
		gpc_complain("unknown option `--%s`; `%s -h` lists the options", name, tool);
}

bool gpc_is_number(const char *word)
{
	return *word && word[strspn(word, "0123456789")] == '\0' && strlen(word) < 10;
}

bool gpc_read_number(const char *option, const char *text, uint64_t most, uint64_t *ret_number)
{
	char *end;
	unsigned long long number = strtoull(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end || number > most)
		return gpc_refuse("%s needs a number from 0 to %llu, not `%s`", option,
			(unsigned long long)most, text);
	*ret_number = number;
	return true;
}
