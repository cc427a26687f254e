/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A caller tries the usual name first.  If another user owns that folder, it uses the name with a random suffix, which
 * later processes find by listing the parent.  Ownership and mode are checked on the open descriptor, so nobody can
 * exchange the folder between check and use.
 */
#include "base/own_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/text.h"

#define MAX_PATH        1024u
#define FOLDER_MAX_SEEN 4096u

static void add_path(struct gpc_text *text, const char *path, uint32_t suffix)
{
	gpc_text_add(text, "%s", path);
	if (suffix)
		gpc_text_add(text, "-%08x", suffix);
}

static bool is_ours(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && st->st_uid == geteuid() && (st->st_mode & 077) == 0;
}

int gpc_own_folder_open(const char *path, uint32_t suffix)
{
	GPC_TEXT(text, MAX_PATH);
	struct stat st;
	int fd;

	add_path(&text, path, suffix);
	fd = gpc_io_open(text.buf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && is_ours(&st))
		return fd;
	gpc_io_drop(fd);
	errno = EPERM;
	return -1;
}

/* A umask may have stripped our own permission bits, now or when the folder was created; chmod() restores them. */
static int make(const char *path, uint32_t suffix)
{
	GPC_TEXT(text, MAX_PATH);
	struct stat st;

	add_path(&text, path, suffix);
	if (mkdir(text.buf, 0700) != 0 && errno != EEXIST)
		return -1;
	if (lstat(text.buf, &st) == 0 && is_ours(&st) && (st.st_mode & 0700) != 0700)
		(void)chmod(text.buf, 0700);
	return gpc_own_folder_open(path, suffix);
}

/* The number after "NAME-" in an entry's name; 0 if the entry does not match. */
static uint32_t suffix_of(const char *entry, const char *name)
{
	size_t len = strlen(name);
	uint32_t suffix = 0;

	if (strncmp(entry, name, len) != 0 || entry[len] != '-' || strlen(entry + len) != 9)
		return 0;
	for (const char *at = entry + len + 1; *at; at++) {
		const char *digit = strchr("0123456789abcdef", *at);

		if (!digit)
			return 0;
		suffix = suffix << 4 | (uint32_t)(digit - "0123456789abcdef");
	}
	return suffix;
}

/* Opens the folder path-SUFFIX that a process of this user has created; -1 if there is none. */
static int find_random(const char *path, int parent, uint32_t *ret_suffix)
{
	struct gpc_io_listing listing = { .fd = parent, .n_left = FOLDER_MAX_SEEN };
	const char *entry;
	int fd = -1;

	while (fd < 0 && (entry = gpc_io_next_entry(&listing))) {
		*ret_suffix = suffix_of(entry, gpc_base_name(path));
		fd = *ret_suffix ? gpc_own_folder_open(path, *ret_suffix) : -1;
	}
	return fd;
}

static int open_parent(const char *path)
{
	char buf[MAX_PATH];

	gpc_format(buf, sizeof buf, "%.*s", (int)(gpc_base_name(path) - path), path);
	return gpc_io_open(buf, O_RDONLY | O_DIRECTORY);
}

int gpc_own_folder_make(const char *path)
{
	return make(path, 0);
}

int gpc_own_folder_make_random(const char *path, uint32_t *ret_suffix)
{
	int parent = open_parent(path);
	int fd;

	if (parent < 0)
		return -1;
	fd = find_random(path, parent, ret_suffix);
	gpc_io_drop(parent);
	if (fd < 0 &&
		getrandom(ret_suffix, sizeof *ret_suffix, GRND_NONBLOCK) == sizeof *ret_suffix)
		fd = make(path, *ret_suffix |= 1);
	return fd;
}
