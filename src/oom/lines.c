/* SPDX-License-Identifier: Apache-2.0 */
/* Words are wrapped whole, and numbers keep their units. */
#include "oom/lines.h"

#include "base/bytes.h"

#define LABEL_WIDTH 7u /* "FULL   " */
#define MORE        " ..."

static bool has_room(const struct gpc_lines *lines, unsigned n_lines, size_t bytes)
{
	return lines->n_lines + n_lines <= lines->max_lines &&
	       lines->n_bytes + bytes + n_lines <= lines->max_bytes;
}

bool gpc_lines_put(struct gpc_lines *lines, const char *line, size_t len)
{
	if (len > GPC_LINES_WIDTH)
		len = GPC_LINES_WIDTH;
	if (!has_room(lines, 1, len))
		return false;
	lines->n_lines++;
	lines->n_bytes += len + 1;
	for (size_t i = 0; i < len; i++) {
		char c = line[i];

		gpc_text_add(lines->out, "%c", c >= ' ' && c <= '~' ? c : '?');
	}
	gpc_text_add(lines->out, "\n");
	return true;
}

/* Returns how much of words[0 .. len) fits into `room`; splits an overlong word, but no number from its unit. */
static size_t take_words(const char *words, size_t len, size_t room)
{
	size_t take = room;

	if (len <= room)
		return len;
	while (take > 0 && (words[take] != ' ' || gpc_bytes_is_unit(words + take + 1)))
		take--;
	return take > 0 ? take : room;
}

static size_t count_spaces(const char *words, size_t len)
{
	size_t n = 0;

	while (n < len && words[n] == ' ')
		n++;
	return n;
}

void gpc_lines_put_words(struct gpc_lines *lines, const char *label, const char *words, size_t len)
{
	const size_t room = GPC_LINES_WIDTH - LABEL_WIDTH;

	while (len > 0) {
		GPC_TEXT(line, GPC_LINES_WIDTH + 1);
		size_t take = take_words(words, len, room);
		size_t end = take + count_spaces(words + take, len - take);
		size_t next = take_words(words + end, len - end, room);
		/* The next line may have to be cut, too. */
		size_t least = 2 * LABEL_WIDTH + take + next + (sizeof MORE - 1);
		const bool is_cut = next > 0 && !has_room(lines, 2, least);

		if (is_cut)
			take = take_words(words, len, room - (sizeof MORE - 1));
		gpc_text_add(&line, "%-7s%.*s%s", label, (int)take, words, is_cut ? MORE : "");
		if (!gpc_lines_put(lines, line.buf, line.len) || is_cut)
			return;
		label = "";
		words += end;
		len -= end;
	}
}
