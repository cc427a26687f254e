/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose code a file is: the program's, or a library's that only asks on its behalf.
 *
 *      libcudart.so.13                              DRIVER       on the way to the driver
 *      libstdc++.so.6                               SYSTEM
 *      libtorch_cuda.so                             NAMED        "PyTorch"
 *      .../site-packages/rmm/librmm_ext.so          PACKAGE      of any installed Python package
 *      /opt/app/train                               PROGRAM
 *
 * Who holds memory is the innermost frame of the program.  The names are libraries.def.
 *
 * Threads     Any: pure functions.
 * Failure     None.
 * Limits      Goes by the path alone: a library linked into the program is the program.
 */
#ifndef GPC_MODEL_LIBRARIES_H
#define GPC_MODEL_LIBRARIES_H

#include <stdbool.h>
#include <stddef.h>

enum gpc_library_kind {
	GPC_LIBRARY_PROGRAM,
	GPC_LIBRARY_OURS,
	GPC_LIBRARY_DRIVER,
	GPC_LIBRARY_SYSTEM,
	GPC_LIBRARY_INTERPRETER,
	GPC_LIBRARY_NAMED,
	GPC_LIBRARY_PACKAGE,
};

struct gpc_library_row {
	enum gpc_library_kind kind;
	const char *start;
	const char *name; /* NULL: it is looked through */
};

/* The first row that fits the file at `path`; NULL: none. */
const struct gpc_library_row *gpc_library_row_of(const char *path);

/* What the mapped file at `path` is; one in a Python package is never PROGRAM. */
enum gpc_library_kind gpc_library_kind_of(const char *path);

/* The name of the Python package that a file belongs to, up to the next slash; NULL: to none. */
const char *gpc_library_package(const char *path);

/*
 * Whether Python source file[0 .. size) is no part of the program: installed packages, the standard
 * library, frozen modules, code that torch.compile wrote, and the scripts in bin/ that start a package.
 */
bool gpc_library_holds_python(const char *file, size_t size);

#endif
