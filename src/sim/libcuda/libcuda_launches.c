/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: a line per launch and copy, for comparing two runs, and the list of entries that were called.
 *
 *      0.0 libtorch_cuda.so+0x1c3f2a0 grid 40,1,1 block 128,1,1 shared 0
 *      0.0 copy 4096 from the host
 *
 * Kernels are named by something that is the same in each run of a program: their offset in their file, or the name
 * requested from a module.  Streams are numbered by device and by the order of their first work.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "sim/libcuda/face.h"

#define MAX_STREAMS 256
#define LINE_BYTES  768

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct gpc_sim_stream *streams[MAX_STREAMS];
static unsigned n_streams;

/* The number of this stream among its device's. */
static unsigned number_locked(const struct gpc_sim_stream *stream)
{
	unsigned number = 0;
	unsigned i = 0;

	for (; i < n_streams && streams[i] != stream; i++)
		number += streams[i]->context->device == stream->context->device;
	if (i == n_streams && n_streams < MAX_STREAMS)
		streams[n_streams++] = stream;
	return number;
}

/* If a write fails, clears the name, which ends the log. */
static void append_locked(char *name, const char *line, int size)
{
	int fd = gpc_io_open_at(AT_FDCWD, name, O_WRONLY | O_APPEND | O_CREAT, 0600);

	if (fd >= 0 && write(fd, line, (size_t)size) != size)
		name[0] = '\0';
	if (fd >= 0)
		close(fd);
}

static void write_line(const struct gpc_sim_stream *stream, const char *what)
{
	char line[LINE_BYTES + 32];
	int size;

	pthread_mutex_lock(&lock);
	size = snprintf(line, sizeof line, "%u.%u %s\n", stream->context->device->ordinal,
		number_locked(stream), what);
	append_locked(face_sim()->config.launches, line, size);
	pthread_mutex_unlock(&lock);
}

void face_log_call(const char *entry)
{
	char line[64];

	if (!face_sim()->config.calls[0])
		return;
	pthread_mutex_lock(&lock);
	append_locked(face_sim()->config.calls, line, snprintf(line, sizeof line, "%s\n", entry));
	pthread_mutex_unlock(&lock);
}

static void add_kernel(CUfunction function, char *line, size_t room)
{
	const char *name;
	const char *file;
	Dl_info info;

	if (cuFuncGetName(&name, function) == CUDA_SUCCESS)
		snprintf(line, room, "%s", name);
	else if (dladdr((void *)function, &info) && info.dli_fname) {
		file = strrchr(info.dli_fname, '/');
		snprintf(line, room, "%s+0x%zx", file ? file + 1 : info.dli_fname,
			(size_t)((char *)function - (char *)info.dli_fbase));
	} else
		snprintf(line, room, "?");
}

void face_log_launch(
	const struct gpc_sim_stream *stream, CUfunction function, const struct face_shape *shape)
{
	char line[LINE_BYTES];
	size_t at;

	if (!face_sim()->config.launches[0])
		return;
	add_kernel(function, line, sizeof line - 128);
	at = strlen(line);
	snprintf(line + at, sizeof line - at, " grid %u,%u,%u block %u,%u,%u shared %u",
		shape->grid[0], shape->grid[1], shape->grid[2], shape->block[0], shape->block[1],
		shape->block[2], shape->shared);
	write_line(stream, line);
}

void face_log_copy(
	const struct gpc_sim_stream *stream, uint64_t bytes, bool to_host, bool from_host)
{
	char line[LINE_BYTES];

	if (!face_sim()->config.launches[0])
		return;
	snprintf(line, sizeof line, "copy %llu%s%s", (unsigned long long)bytes,
		from_host ? " from the host" : "", to_host ? " to the host" : "");
	write_line(stream, line);
}
