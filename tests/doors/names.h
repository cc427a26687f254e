/* SPDX-License-Identifier: Apache-2.0 */
/* The base name of a driver's function: without its version, and without the suffix of a per-thread variant. */
#ifndef DOORS_NAMES_H
#define DOORS_NAMES_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MAX_NAME 128

/* Removes the suffix `end`; false if the name lacks it. */
static inline bool cut(char *name, const char *end)
{
	size_t n = strlen(name);

	if (n <= strlen(end) || strcmp(name + n - strlen(end), end) != 0)
		return false;
	name[n - strlen(end)] = '\0';
	return true;
}

/* Sets `base` to the base name of `name`; true if that is a per-thread variant. */
static inline bool base_of(const char *name, char base[static MAX_NAME])
{
	bool is_per_thread;

	snprintf(base, MAX_NAME, "%s", name);
	is_per_thread = cut(base, "_ptsz") || cut(base, "_ptds");
	if (!cut(base, "_v2") && !cut(base, "_v3"))
		(void)cut(base, "_v4");
	return is_per_thread;
}

#endif
