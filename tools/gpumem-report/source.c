/* SPDX-License-Identifier: Apache-2.0 */
/* zlib inflates into a memfd of bounded size, leaving runs of zeros as holes; the reader opens that. */
#include "tools/gpumem-report/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "format/memory.h"
#include "tools/replay/clean_stream.h"

#define CHUNK      (1 << 16)
#define LEAST_MOST (UINT64_C(32) << 20)
#define PACKS_TO   8

/* A file, or standard input, and what must be known before unpacking. */
struct packed {
	int fd;
	uint32_t owner;
	uint64_t size; /* 0: a pipe */
};

static struct packed open_packed(const char *path)
{
	struct packed packed = { .fd = strcmp(path, "-") == 0
					       ? dup(STDIN_FILENO)
					       : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK |
								    O_NOCTTY) };
	struct stat st;

	if (packed.fd >= 0 && fstat(packed.fd, &st) == 0) {
		packed.owner = (uint32_t)st.st_uid;
		packed.size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	}
	return packed;
}

static bool is_compressed(const struct packed *packed)
{
	unsigned char magic[2] = { 0 };

	return packed->fd >= 0 && pread(packed->fd, magic, sizeof magic, 0) == sizeof magic &&
	       magic[0] == 0x1f && magic[1] == 0x8b;
}

/* The most non-zero data to expect.  Records of a real run compress to about an eighth, a bomb to a thousandth. */
static uint64_t most_data(const struct packed *packed)
{
	return packed->size ? LEAST_MOST + PACKS_TO * packed->size : GPC_RECORDING_MAX_BYTES;
}

/* Most of a recording is zeros: such chunks stay holes. */
static bool is_zero(const char *chunk, size_t size)
{
	return chunk[0] == 0 && memcmp(chunk, chunk + 1, size - 1) == 0;
}

/* zlib passes uncompressed data through. */
static enum gpc_status unpack(gzFile in, uint64_t most, int to, struct gpc_text *why)
{
	char *chunk = gpc_new(CHUNK, 1);
	enum gpc_status status = GPC_OK;
	uint64_t total = 0;
	uint64_t data = 0;

	while (status == GPC_OK) {
		int n = gzread(in, chunk, CHUNK);
		int code = Z_OK;

		(void)gzerror(in, &code);
		if (n == 0 && gzeof(in) && code != Z_BUF_ERROR)
			break;
		if (n <= 0) {
			gpc_text_add(why, "cannot be unpacked: %s",
				code == Z_BUF_ERROR ? "its end is missing" : gzerror(in, &code));
			status = GPC_DAMAGED;
			break;
		}
		total += (uint64_t)n;
		if (is_zero(chunk, (size_t)n) && total <= GPC_RECORDING_MAX_BYTES) {
			(void)lseek(to, n, SEEK_CUR);
			continue;
		}
		data += (uint64_t)n;
		if (total > GPC_RECORDING_MAX_BYTES || data > most) {
			gpc_text_add(why, "too large when unpacked: more than %llu bytes",
				(unsigned long long)(data > most ? most : GPC_RECORDING_MAX_BYTES));
			status = GPC_LIMIT;
		} else if (!gpc_write_all(to, chunk, (size_t)n)) {
			gpc_text_add(why, "no room to unpack it: %s", strerror(errno));
			status = GPC_NO_METADATA;
		}
	}
	if (status == GPC_OK && ftruncate(to, (off_t)total) != 0)
		status = GPC_NO_METADATA;
	free(chunk);
	return status;
}

/* Opens the unpacked recording. */
static enum gpc_status open_memory(int memory, const char *path, uint32_t owner,
	struct gpc_recording **ret_recording, struct gpc_text *why)
{
	char name[40];
	enum gpc_status status;

	snprintf(name, sizeof name, "/proc/self/fd/%d", memory);
	status = gpc_recording_open(name, ret_recording, why);
	if (status != GPC_OK)
		return status;
	free((*ret_recording)->path);
	(*ret_recording)->path = gpc_copy(path);
	(*ret_recording)->owner = owner;
	return GPC_OK;
}

enum gpc_status gpc_source_open(
	const char *path, struct gpc_recording **ret_recording, struct gpc_text *why)
{
	struct packed packed = open_packed(path);
	enum gpc_status status;
	gzFile in;
	int memory;

	if (strcmp(path, "-") != 0 && !is_compressed(&packed)) {
		if (packed.fd >= 0)
			close(packed.fd);
		return gpc_recording_open(path, ret_recording, why);
	}
	in = gzdopen(packed.fd, "rb");
	memory = memfd_create("gpumem-report", MFD_CLOEXEC);
	if (!in || memory < 0) {
		gpc_text_add(why, "%s", strerror(errno));
		status = GPC_IO;
	} else {
		status = unpack(in, most_data(&packed), memory, why);
	}
	if (in)
		gzclose(in);
	if (status == GPC_OK)
		status = open_memory(memory, path, packed.owner, ret_recording, why);
	if (memory >= 0)
		close(memory);
	return status;
}
