/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clean stream is a stream of fopencookie().  A write may end in the middle of a character or of a colour sequence:
 * the stream keeps that unit, and the next write completes it.
 */
#include "tools/lib/clean_stream.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

/* Bytes of the longest unit that a stream keeps for the next write: a colour sequence. */
#define MAX_UNIT 16

struct clean_stream {
	int fd;
	size_t n_kept;
	char kept[MAX_UNIT]; /* the begin of a unit that the next write completes */
};

static bool lets_colours;

/* The length of a colour sequence at the start of the text; 0 if there is none. */
static size_t colour_length(const char *at, size_t size)
{
	size_t n = 2;

	if (!lets_colours || size < 3 || at[0] != '\033' || at[1] != '[')
		return 0;
	while (n < size && n < MAX_UNIT && (at[n] == ';' || (at[n] >= '0' && at[n] <= '9')))
		n++;
	return n < size && at[n] == 'm' ? n + 1 : 0;
}

/* True if the rest of the text may be an incomplete character or colour sequence. */
static bool is_begun(const char *at, size_t size)
{
	size_t n = 1;

	if ((unsigned char)at[0] >= 0xc0) {
		while (n < size && ((unsigned char)at[n] & 0xc0) == 0x80)
			n++;
		return n == size && size < 4;
	}
	if (!lets_colours || at[0] != '\033' || size >= MAX_UNIT)
		return false;
	while (n < size && strchr("[;0123456789", at[n]))
		n++;
	return n == size;
}

/* Cleans text[0 .. size) in place.  Returns the size without an incomplete unit at the end; with `is_end`, `size`. */
static size_t clean(char *text, size_t size, bool is_end)
{
	size_t at = 0;

	while (at < size) {
		bool is_harmless = true;
		size_t n;

		while (at < size && text[at] >= ' ' && text[at] < 0x7f)
			at++;
		if (at == size)
			break;
		n = colour_length(text + at, size - at);
		if (n == 0 && !is_end && is_begun(text + at, size - at))
			break;
		if (n == 0 && (text[at] == '\n' || text[at] == '\t'))
			n = 1;
		if (n == 0)
			n = gpc_text_letter(text + at, size - at, &is_harmless);
		if (!is_harmless)
			memset(text + at, '?', n);
		at += n;
	}
	return at;
}

bool gpc_write_all(int fd, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, text, size);

		if (n < 0 && errno != EINTR)
			return false;
		text += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* Allocates nothing, so that the tool can still print that it has no memory. */
static ssize_t write_clean(void *cookie, const char *from, size_t size)
{
	struct clean_stream *stream = cookie;
	char text[MAX_UNIT + BUFSIZ];

	for (size_t at = 0, n_new; at < size; at += n_new) {
		size_t n;
		size_t n_done;

		n_new = size - at < BUFSIZ ? size - at : BUFSIZ;
		n = stream->n_kept + n_new;
		memcpy(text, stream->kept, stream->n_kept);
		memcpy(text + stream->n_kept, from + at, n_new);
		n_done = clean(text, n, false);
		stream->n_kept = n - n_done;
		memcpy(stream->kept, text + n_done, stream->n_kept);
		if (!gpc_write_all(stream->fd, text, n_done))
			return -1;
	}
	return (ssize_t)size;
}

static int close_clean(void *cookie)
{
	struct clean_stream *stream = cookie;

	(void)clean(stream->kept, stream->n_kept, true);
	(void)gpc_write_all(stream->fd, stream->kept, stream->n_kept);
	if (stream->fd > STDERR_FILENO)
		close(stream->fd);
	free(stream);
	return 0;
}

static FILE *open_stream(int fd, struct clean_stream **ret_stream)
{
	struct clean_stream *stream = calloc(1, sizeof *stream);
	FILE *file = NULL;

	if (!stream)
		return NULL;
	stream->fd = fd;
	file = fopencookie(
		stream, "w", (cookie_io_functions_t){ .write = write_clean, .close = close_clean });
	if (!file)
		free(stream);
	else if (isatty(fd) || fd == STDERR_FILENO)
		setvbuf(file, NULL, _IOLBF, 0);
	*ret_stream = file ? stream : NULL;
	return file;
}

FILE *gpc_clean_stream(int fd)
{
	struct clean_stream *stream;

	return open_stream(fd, &stream);
}

void gpc_clean_standard(void)
{
	/* LeakSanitizer must find a pointer: nobody closes the two. */
	static struct clean_stream *kept[2];
	FILE **standard[] = { &stdout, &stderr };

	for (unsigned i = 0; i < 2; i++) {
		int fd = fileno(*standard[i]); /* -1: the stream is clean already, or closed */
		FILE *clean = fd >= 0 ? open_stream(fd, &kept[i]) : NULL;

		if (clean)
			*standard[i] = clean;
	}
}

void gpc_clean_let_colours(bool lets)
{
	lets_colours = lets;
}
