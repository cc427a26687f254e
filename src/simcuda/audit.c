/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgpusim-audit.so: the simulated libraries come before those that a program brings along.
 *
 *     LD_AUDIT=.../libgpusim-audit.so LD_LIBRARY_PATH=.../simcuda python train.py
 *
 * Wheels find their CUDA libraries by a run path of their own (DT_RPATH), or open them by their whole path, and pass
 * LD_LIBRARY_PATH and LD_PRELOAD by.  The loader asks an auditor about each name, and about each place before it
 * looks there.  For the names that are simulated, a folder before the name is dropped, and the run path is no place:
 *
 *      dlopen("/venv/.../libcublas.so.13") --> libcublas.so.13 --> not by run path --> LD_LIBRARY_PATH: simulated
 *      DT_NEEDED libcudart.so.13           ----------------------> not by run path --> LD_LIBRARY_PATH: simulated
 *      DT_NEEDED libc.so.6                 --> as it was
 *
 * Nothing is loaded that the program would not load: a child that uses no GPU pays for one small file.
 *
 * Invariants  1 It calls nothing, not even libc: it would get a second one, in a namespace of its own, in every process.
 * Threads     Any: it has no state.
 * Failure     A name that is not simulated is searched as it would be without us.
 * Limits      A library that is linked into the program (libcudart_static) has no name, and none is asked for.
 */
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT unsigned int la_version(unsigned int version);
EXPORT char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag);

/* rules.mk knows which. */
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

/* Every version so far calls what we have in the same way. */
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
