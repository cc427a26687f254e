/* SPDX-License-Identifier: Apache-2.0 */
/* A folder and shared memory of the test's own, and a file system that may lack unnamed files. */
#ifndef GPC_TESTS_UNIT_RECORD_PLACE_STAGE_H
#define GPC_TESTS_UNIT_RECORD_PLACE_STAGE_H

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "record/identity.h"
#include "record/place.h"
#include "verify.h"

static char directory[] = "/tmp/gpc-place-XXXXXX";
static bool has_unnamed_files;

int openat(int dir_fd, const char *name, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	if (!has_unnamed_files && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return (int)syscall(SYS_openat, dir_fd, name, flags, mode);
}

static inline bool make_directory(void)
{
	strcpy(directory + sizeof directory - 7, "XXXXXX");
	has_unnamed_files = true;
	return mkdtemp(directory);
}

/* And what user `uid` has in shared memory. */
static inline int remove_directory(unsigned uid)
{
	char command[128];

	snprintf(command, sizeof command, "rm -rf %s /dev/shm/gpucache-%u*", directory, uid);
	return system(command);
}

static inline void fill(void *arg, void *base, size_t size)
{
	memset(base, 1, size < 16 ? size : 16);
}

/* As user `uid`.  64 KiB are enough. */
static inline enum gpc_status open_wished(
	struct gpc_place *place, const char *pattern, uint32_t uid, size_t size)
{
	const struct gpc_place_wish wish = { .size = size, .least = 65536, .fill = fill };
	struct gpucache_header identity;

	gpc_identity_read(&identity, -1);
	identity.uid = uid;
	errno = 0;
	return gpc_place_open(place, pattern, &identity, &wish);
}

static inline void close_place(struct gpc_place *place)
{
	munmap(place->base, place->size);
	close(place->fd);
	unlink(place->path);
}

GROUP(own_shared_memory, NULL);

#endif
