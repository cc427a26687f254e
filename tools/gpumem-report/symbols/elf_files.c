/* SPDX-License-Identifier: Apache-2.0 */
/* Tries paths in the order of elf_files.h, and takes the first regular file that has the recorded build id. */
#include "tools/gpumem-report/symbols/elf_files.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSTEM_DEBUG "/usr/lib/debug"

static bool is_same_build(int fd, const struct gpucache_module *recorded)
{
	Elf *elf;
	const void *bits = NULL;
	ssize_t size;
	bool is_same;

	if (recorded->build_id_size == 0)
		return true;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	size = elf ? dwelf_elf_gnu_build_id(elf, &bits) : -1;
	is_same = size >= 0 && (size_t)size >= recorded->build_id_size &&
		  memcmp(bits, recorded->build_id, recorded->build_id_size) == 0;
	elf_end(elf);
	return is_same;
}

/* Opens file->path, and keeps it open as file->fd if it is the recorded build. */
static bool try(struct gpc_object_file *file, const struct gpucache_module *recorded)
{
	struct stat st;
	int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return false;
	/* A recording may name a device or a pipe, which must not be read. */
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		if (is_same_build(fd, recorded)) {
			file->fd = fd;
			return true;
		}
		file->differs = true;
	}
	close(fd);
	return false;
}

static void name_by_build_id(
	struct gpc_object_file *file, const char *dir, const struct gpucache_module *recorded)
{
	struct gpc_text text = gpc_text_init(file->path, sizeof file->path);

	gpc_text_add(&text, "%s/.build-id/%02x/", dir, recorded->build_id[0]);
	for (uint32_t i = 1; i < recorded->build_id_size && i < sizeof recorded->build_id; i++)
		gpc_text_add(&text, "%02x", recorded->build_id[i]);
	gpc_text_add(&text, ".debug");
}

static bool try_dir(struct gpc_object_file *file, const char *dir,
	const struct gpc_module_view *view, bool debug_only)
{
	const char *const names[] = { view->path, gpc_base_name(view->path) };

	name_by_build_id(file, dir, &view->module);
	if (try(file, &view->module))
		return true;
	for (unsigned i = 0; i < (debug_only ? 2 : 4); i++) {
		snprintf(file->path, sizeof file->path, "%s/%s%s", dir, names[i % 2],
			i < 2 ? ".debug" : "");
		if (try(file, &view->module))
			return true;
	}
	return false;
}

static bool try_dirs(struct gpc_object_file *file, const struct gpc_places *places,
	const struct gpc_module_view *view, bool debug_only)
{
	const char *next = places->debug_path ? places->debug_path : "";
	char dir[512];

	/* These folders may have files of any build, so only a build id can tell the right one. */
	if (view->module.build_id_size == 0)
		return false;
	while (*next) {
		size_t len = strcspn(next, ":");

		snprintf(dir, sizeof dir, "%.*s", (int)len, next);
		if (len > 0 && len < sizeof dir && try_dir(file, dir, view, debug_only))
			return true;
		next += len + (next[len] == ':');
	}
	if (!places->sysroot)
		return false;
	snprintf(dir, sizeof dir, "%s" SYSTEM_DEBUG, places->sysroot);
	return try_dir(file, dir, view, debug_only);
}

struct gpc_object_file gpc_object_find(
	const struct gpc_places *places, const struct gpc_module_view *view)
{
	struct gpc_object_file file = { .fd = -1 };

	if (view->path[0] != '/')
		return file;
	snprintf(file.path, sizeof file.path, "%s%s", places->sysroot ? places->sysroot : "",
		view->path);
	if (!try(&file, &view->module))
		(void)try_dirs(&file, places, view, false);
	return file;
}

/* Tries the file `link` where gdb does: next to the module, in .debug there, below the system's folder. */
static void try_link(struct gpc_object_file *file, const char *root,
	const struct gpc_module_view *view, const char *link)
{
	const char *const befores[] = { "", "", SYSTEM_DEBUG };
	const char *const betweens[] = { "", ".debug/", "" };
	int len = (int)(gpc_base_name(view->path) - view->path);

	for (unsigned i = 0; i < 3; i++) {
		snprintf(file->path, sizeof file->path, "%s%s%.*s%s%s", root, befores[i], len,
			view->path, betweens[i], link);
		if (try(file, &view->module))
			return;
	}
}

struct gpc_object_file gpc_object_find_debug(
	const struct gpc_places *places, const struct gpc_module_view *view, const char *link)
{
	const char *root = places->sysroot ? places->sysroot : "";
	struct gpc_object_file file = { .fd = -1 };

	/* Without a build id, nothing tells whether a debug file is of the recorded build. */
	if (view->path[0] != '/' || view->module.build_id_size == 0 ||
		try_dirs(&file, places, view, true) ||
		(!places->sysroot && try_dir(&file, SYSTEM_DEBUG, view, true)))
		return file;
	if (link && *link && !strchr(link, '/'))
		try_link(&file, root, view, link);
	return file;
}
