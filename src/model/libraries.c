/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the start of the file name with the rows of libraries.def, in order; a file below site-packages belongs to a
 * Python package.  Only the path counts, so a library that is linked statically into the program is the program.
 */
#include "model/libraries.h"

#include <string.h>

#include "base/text.h"

static const struct gpc_library_row table[] = {
#define LIBRARY(kind, start, name) { GPC_LIBRARY_##kind, start, name },
#include "model/libraries.def"
};

const char *gpc_library_package(const char *path)
{
	static const char mark[] = "-packages/";
	const char *package = strstr(path, mark);

	if (package)
		package += sizeof mark - 1;
	return package && strchr(package, '/') ? package : NULL;
}

const struct gpc_library_row *gpc_library_row_of(const char *path)
{
	const char *package = gpc_library_package(path);
	const char *file = gpc_base_name(path);

	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		const char *text = table[i].kind == GPC_LIBRARY_PACKAGE ? package : file;

		if (text && strncmp(text, table[i].start, strlen(table[i].start)) == 0)
			return &table[i];
	}
	return NULL;
}

/* A shared object where the system's packages have theirs. */
static bool is_of_system(const char *path)
{
	static const char *const folders[] = { "/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/" };
	bool is_there = false;

	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
		is_there |= strncmp(path, folders[i], strlen(folders[i])) == 0;
	return is_there && strstr(gpc_base_name(path), ".so");
}

enum gpc_library_kind gpc_library_kind_of(const char *path)
{
	const struct gpc_library_row *row = gpc_library_row_of(path);

	if (row)
		return row->kind;
	/* Modules that come with CPython, such as _asyncio, below which notebooks run their cells. */
	if (strstr(path, "/lib-dynload/"))
		return GPC_LIBRARY_INTERPRETER;
	return gpc_library_package(path) || is_of_system(path) ? GPC_LIBRARY_PACKAGE
							       : GPC_LIBRARY_PROGRAM;
}

bool gpc_library_keeper_look(struct gpc_library_keeper *keeper, const char *path)
{
	enum gpc_library_kind kind = gpc_library_kind_of(path);

	if (kind == GPC_LIBRARY_CUDA)
		keeper->is_in_cuda = true;
	else if (kind == GPC_LIBRARY_NAMED || kind == GPC_LIBRARY_PACKAGE)
		keeper->is_kept = keeper->is_in_cuda;
	return kind == GPC_LIBRARY_CUDA || kind == GPC_LIBRARY_OURS || kind == GPC_LIBRARY_DRIVER ||
	       kind == GPC_LIBRARY_SYSTEM;
}

/* A program without a suffix in a folder `bin`: pip writes one for each command of a package. */
static bool is_launcher(const char *file, size_t size)
{
	size_t folder;

	while (size > 0 && file[size - 1] != '/') {
		if (file[size - 1] == '.')
			return false;
		size--;
	}
	folder = size > 5 ? size - 5 : 0;
	return size >= 5 && memcmp(file + folder, "/bin/", 5) == 0;
}

/*
 * A file of torch.compile, in whatever folder TORCHINDUCTOR_CACHE_DIR names: "c" and the hash of the code in base 32,
 * in a folder of the hash's first two letters (torch/_inductor/codecache.py, get_path).
 */
static bool is_compiled(const char *file, size_t size)
{
	static const char suffix[] = ".py";
	const size_t stem = 52, name = stem + sizeof suffix - 1, path = sizeof "/nc/" - 1 + name;
	const char *start;

	if (size < path)
		return false;
	start = file + size - name;
	if (start[0] != 'c' || memcmp(start + stem, suffix, sizeof suffix - 1) != 0)
		return false;
	for (size_t i = 1; i < stem; i++)
		if (!(start[i] >= 'a' && start[i] <= 'z') && !(start[i] >= '2' && start[i] <= '7'))
			return false;
	return start[-4] == '/' && start[-3] == start[1] && start[-2] == start[2] &&
	       start[-1] == '/';
}

bool gpc_library_holds_python(const char *file, size_t size)
{
	static const char *const parts[] = { "/site-packages/", "/dist-packages/", "/lib/python3",
		"/lib64/python3", "/torchinductor_" };
	/* Frozen modules; code that torch.fx generated. */
	static const char *const starts[] = { "<frozen ", "<eval_with_key>" };

	for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
		if (size >= strlen(starts[i]) && memcmp(file, starts[i], strlen(starts[i])) == 0)
			return true;
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (memmem(file, size, parts[i], strlen(parts[i])))
			return true;
	return is_launcher(file, size) || is_compiled(file, size);
}

bool gpc_library_holds_header(const char *file)
{
	static const char *const parts[] = { "/c++/", "/include/cccl/", "/include/thrust/",
		"/include/cub/", "/include/cuda/", "/include/cuda_runtime.h",
		"/include/cuda_runtime_api.h" };

	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (strstr(file, parts[i]))
			return true;
	return false;
}

bool gpc_library_holds_code(const char *file, size_t size, const char *name, size_t name_size)
{
	static const char generated[] = "__create_fn__"; /* dataclasses */

	return gpc_library_holds_python(file, size) ||
	       (name_size >= strlen(generated) && memcmp(name, generated, strlen(generated)) == 0);
}
