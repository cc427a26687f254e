/* SPDX-License-Identifier: Apache-2.0 */
#include "record/stale.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpucache_format.h"
#include "record/name.h"

/* As the kernel's getdents64 writes it; readdir would allocate. */
struct entry {
	uint64_t inode;
	int64_t offset;
	uint16_t size;
	uint8_t type;
	char name[];
};

/* What the first pass learns. */
struct survey {
	uint64_t newest[GPC_STALE_KEEP]; /* times of change, newest first */
	unsigned n_newest;
	uint64_t crashed_ns; /* of the newest file of a killed process */
	uint64_t crashed_inode;
};

struct dead_file {
	uint64_t changed_ns;
	uint64_t inode;
	bool is_crashed;
};

typedef void (*visit_fn)(int dir_fd, const char *name, const struct dead_file *file, void *arg);

static bool is_our_name(const char *name)
{
	size_t len = strlen(name);
	size_t suffix = strlen(GPC_NAME_SUFFIX);

	return len > strlen(GPC_NAME_PREFIX) + suffix &&
	       strncmp(name, GPC_NAME_PREFIX, strlen(GPC_NAME_PREFIX)) == 0 &&
	       strcmp(name + len - suffix, GPC_NAME_SUFFIX) == 0;
}

static bool was_killed(int fd)
{
	struct gpucache_header header;

	return pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
	       memcmp(header.magic, GPUCACHE_FORMAT_MAGIC, sizeof header.magic) == 0 &&
	       header.state != 0 && !(header.state & GPUCACHE_STATE_CLEAN_EXIT);
}

/*
 * Calls visit, with the file locked, where `name` is a recording of this user that nobody
 * writes.
 */
static void look_at(int dir_fd, const char *name, visit_fn visit, void *arg)
{
	struct dead_file file;
	struct stat st;
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		flock(fd, LOCK_EX | LOCK_NB) == 0) {
		file.changed_ns = (uint64_t)st.st_mtim.tv_sec * UINT64_C(1000000000) +
				  (uint64_t)st.st_mtim.tv_nsec;
		file.inode = (uint64_t)st.st_ino;
		file.is_crashed = was_killed(fd);
		visit(dir_fd, name, &file, arg);
	}
	close(fd);
}

static void each_dead_file(int dir_fd, visit_fn visit, void *arg)
{
	_Alignas(struct entry) char buf[4096];
	unsigned n_seen = 0;
	long n;

	if (lseek(dir_fd, 0, SEEK_SET) < 0)
		return;
	while ((n = syscall(SYS_getdents64, dir_fd, buf, sizeof buf)) > 0) {
		for (long at = 0; at < n;) {
			const struct entry *entry = (const void *)(buf + at);

			if (n_seen++ >= GPC_STALE_MAX_FILES)
				return;
			if (is_our_name(entry->name))
				look_at(dir_fd, entry->name, visit, arg);
			at += entry->size;
		}
	}
}

static void survey_file(int dir_fd, const char *name, const struct dead_file *file, void *arg)
{
	struct survey *survey = arg;
	unsigned at = survey->n_newest;

	(void)dir_fd;
	(void)name;
	if (file->is_crashed && file->changed_ns >= survey->crashed_ns) {
		survey->crashed_ns = file->changed_ns;
		survey->crashed_inode = file->inode;
	}
	while (at > 0 && survey->newest[at - 1] < file->changed_ns)
		at--;
	if (at == GPC_STALE_KEEP)
		return;
	if (survey->n_newest < GPC_STALE_KEEP)
		survey->n_newest++;
	memmove(&survey->newest[at + 1], &survey->newest[at],
		(survey->n_newest - 1 - at) * sizeof survey->newest[0]);
	survey->newest[at] = file->changed_ns;
}

struct removal {
	const struct survey *survey;
	uint64_t now_ns;
};

static void remove_file(int dir_fd, const char *name, const struct dead_file *file, void *arg)
{
	const struct removal *removal = arg;
	const struct survey *survey = removal->survey;
	uint64_t age = file->changed_ns < removal->now_ns ? removal->now_ns - file->changed_ns : 0;
	bool is_surplus = survey->n_newest == GPC_STALE_KEEP &&
			  file->changed_ns < survey->newest[GPC_STALE_KEEP - 1];

	if (age < GPC_STALE_YOUNG_NS || file->inode == survey->crashed_inode)
		return;
	if (age > GPC_STALE_AGE_NS || is_surplus)
		unlinkat(dir_fd, name, 0);
}

void gpc_stale_clean(int dir_fd, uint64_t now_ns)
{
	struct survey survey = { .n_newest = 0 };
	struct removal removal = { .survey = &survey, .now_ns = now_ns };

	each_dead_file(dir_fd, survey_file, &survey);
	each_dead_file(dir_fd, remove_file, &removal);
}
