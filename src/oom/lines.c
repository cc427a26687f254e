/* SPDX-License-Identifier: Apache-2.0 */
/* Words are wrapped whole, and numbers keep their units. */
#include "oom/lines.h"

#include "base/bytes.h"

#define LABEL_WIDTH 7u /* "FULL   " */

void gpc_lines_put(struct gpc_lines *lines, const char *line, size_t len)
{
	if (len > GPC_LINES_WIDTH)
		len = GPC_LINES_WIDTH;
	if (lines->n_lines >= lines->max_lines || lines->n_bytes + len + 1 > lines->max_bytes)
		return;
	lines->n_lines++;
	lines->n_bytes += len + 1;
	for (size_t i = 0; i < len; i++) {
		char c = line[i];

		gpc_text_add(lines->out, "%c", c >= ' ' && c <= '~' ? c : '?');
	}
	gpc_text_add(lines->out, "\n");
}

/* Returns how much of words[0 .. len) fits on one line; splits an overlong word, but no number from its unit. */
static size_t take_words(const char *words, size_t len)
{
	size_t room = GPC_LINES_WIDTH - LABEL_WIDTH;
	size_t take = room;

	if (len <= room)
		return len;
	while (take > 0 && (words[take] != ' ' || gpc_bytes_is_unit(words + take + 1)))
		take--;
	return take > 0 ? take : room;
}

void gpc_lines_put_words(struct gpc_lines *lines, const char *label, const char *words, size_t len)
{
	do {
		GPC_TEXT(line, GPC_LINES_WIDTH + 1);
		size_t take = take_words(words, len);

		gpc_text_add(&line, "%-7s%.*s", label, (int)take, words);
		gpc_lines_put(lines, line.buf, line.len);
		label = "";
		while (take < len && words[take] == ' ')
			take++;
		words += take;
		len -= take;
	} while (len > 0);
}
