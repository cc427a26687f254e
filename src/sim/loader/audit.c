/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgpusim-audit.so: makes the loader prefer the simulated libraries to those that a program brings along.
 *
 *     LD_AUDIT=.../libgpusim-audit.so LD_LIBRARY_PATH=.../simcuda python train.py
 *
 * Wheels find their CUDA libraries by their own run path (DT_RPATH), or open them by full path, and so bypass
 * LD_LIBRARY_PATH and LD_PRELOAD.  The loader asks an auditor about each name, and about each place before it searches
 * there.  For the name of a simulated library, this auditor drops the folder and skips the run path:
 *
 *      dlopen("/venv/.../libcublas.so.13") --> libcublas.so.13 --> not by run path --> LD_LIBRARY_PATH: simulated
 *      DT_NEEDED libcudart.so.13           ----------------------> not by run path --> LD_LIBRARY_PATH: simulated
 *      DT_NEEDED libc.so.6                 --> unchanged
 *
 * The auditor loads no other library itself, so a child process that never uses a GPU pays for one small file.
 *
 * Invariants  1 The auditor calls nothing, not even libc: it is in a linker namespace of its own, into which the loader
 *               would have to load a second libc in every process.
 * Threads     Any: it has no state.
 * Failure     None: other names are searched as without the auditor.
 * Limits      Has no effect on a library linked into the program (libcudart_static), which the loader does not search.
 */
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT unsigned int la_version(unsigned int version);
EXPORT char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag);

/* Defined by rules.mk. */
static const char names[][24] = { SIMULATED_NAMES };

static bool is_simulated(const char *name)
{
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		size_t k = 0;

		while (name[k] && name[k] == names[i][k])
			k++;
		if (name[k] == names[i][k])
			return true;
	}
	return false;
}

/* Agrees on the older of the loader's and our version of the interface: all versions call these functions alike. */
unsigned int la_version(unsigned int version)
{
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag)
{
	const char *base = name;

	for (const char *at = name; *at; at++)
		if (*at == '/')
			base = at + 1;
	if (!is_simulated(base))
		base = name;
	else if (flag == LA_SER_RUNPATH)
		base = NULL;
	else if (flag != LA_SER_ORIG)
		base = name;
	return (char *)(uintptr_t)base;
}
