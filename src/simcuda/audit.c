/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgpusim-audit.so: puts the simulated libraries before those that a program brings along.
 *
 *     LD_AUDIT=.../libgpusim-audit.so LD_LIBRARY_PATH=.../simcuda python train.py
 *
 * Wheels find their CUDA libraries by their own run path (DT_RPATH), or open them by full path, and so bypass
 * LD_LIBRARY_PATH and LD_PRELOAD.  The loader asks an auditor about each name, and about each place before it searches
 * there.  For names of simulated libraries the folder is dropped, and the run path is skipped:
 *
 *      dlopen("/venv/.../libcublas.so.13") --> libcublas.so.13 --> not by run path --> LD_LIBRARY_PATH: simulated
 *      DT_NEEDED libcudart.so.13           ----------------------> not by run path --> LD_LIBRARY_PATH: simulated
 *      DT_NEEDED libc.so.6                 --> unchanged
 *
 * Only libraries that the program would load are loaded: a child without a GPU pays for one small file.
 *
 * Invariants  1 It calls nothing, not even libc: every process would get a second one, in its own namespace.
 * Threads     Any: it has no state.
 * Failure     Other names are searched as without us.
 * Limits      A library linked into the program (libcudart_static) has no name that could be asked about.
 */
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT unsigned int la_version(unsigned int version);
EXPORT char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag);

/* From rules.mk. */
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

/* All versions so far call these functions in the same way. */
unsigned int la_version(unsigned int version)
{
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag)
{
	const char *base = name;

	(void)cookie;
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
