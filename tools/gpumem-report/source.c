/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/gpumem-report/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#define CHUNK (1 << 18)

static bool is_compressed(const char *path)
{
	unsigned char magic[2] = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool is_it = fd >= 0 && pread(fd, magic, sizeof magic, 0) == sizeof magic &&
		     magic[0] == 0x1f && magic[1] == 0x8b;

	if (fd >= 0)
		close(fd);
	return is_it;
}

static bool write_all(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, data, size);

		if (n < 0 && errno != EINTR)
			return false;
		data += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* zlib passes on what is not compressed. */
static enum gpc_status unpack(gzFile in, int to, struct gpc_text *why)
{
	char *chunk = malloc(CHUNK);
	enum gpc_status status = chunk ? GPC_OK : GPC_NO_METADATA;
	uint64_t total = 0;

	while (status == GPC_OK) {
		int n = gzread(in, chunk, CHUNK);
		int code = Z_OK;

		(void)gzerror(in, &code);
		if (n == 0 && gzeof(in) && code != Z_BUF_ERROR)
			break;
		total += n > 0 ? (uint64_t)n : 0;
		if (n <= 0) {
			gpc_text_add(why, "cannot be unpacked: %s",
				code == Z_BUF_ERROR ? "its end is missing" : gzerror(in, &code));
			status = GPC_DAMAGED;
		} else if (total > GPC_RECORDING_MAX_BYTES) {
			gpc_text_add(why, "too big when it is unpacked");
			status = GPC_LIMIT;
		} else if (!write_all(to, chunk, (size_t)n)) {
			gpc_text_add(why, "no room to unpack it: %s", strerror(errno));
			status = GPC_NO_METADATA;
		}
	}
	free(chunk);
	return status;
}

/* What is in memory now. */
static enum gpc_status open_memory(
	int memory, const char *path, struct gpc_recording **ret_recording, struct gpc_text *why)
{
	char name[40];
	char *copy = strdup(path);
	enum gpc_status status;

	snprintf(name, sizeof name, "/proc/self/fd/%d", memory);
	if (!copy)
		return GPC_NO_METADATA;
	status = gpc_recording_open(name, ret_recording, why);
	if (status != GPC_OK) {
		free(copy);
		return status;
	}
	free((*ret_recording)->path);
	(*ret_recording)->path = copy;
	return GPC_OK;
}

enum gpc_status gpc_source_open(
	const char *path, struct gpc_recording **ret_recording, struct gpc_text *why)
{
	bool is_stdin = strcmp(path, "-") == 0;
	enum gpc_status status;
	gzFile in;
	int memory;

	if (!is_stdin && !is_compressed(path))
		return gpc_recording_open(path, ret_recording, why);
	in = is_stdin ? gzdopen(dup(STDIN_FILENO), "rb") : gzopen(path, "rb");
	memory = memfd_create("gpumem-report", MFD_CLOEXEC);
	if (!in || memory < 0) {
		gpc_text_add(why, "%s", strerror(errno));
		status = GPC_IO;
	} else {
		status = unpack(in, memory, why);
	}
	if (in)
		gzclose(in);
	if (status == GPC_OK)
		status = open_memory(memory, path, ret_recording, why);
	if (memory >= 0)
		close(memory);
	return status;
}
