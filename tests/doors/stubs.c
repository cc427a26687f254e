/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stub for each row of symbols.def, and the table of the stubs.
 *
 * Weak, because driver.c defines the functions that do something; in a file of its own, because the stubs are declared
 * without parameters.
 */
#include "driver.h"

#define STUB(name)                            \
	__attribute__((weak)) int name(void); \
	__attribute__((weak)) int name(void)  \
	{                                     \
		return NOT_SUPPORTED;         \
	}
#define ROW(name, since) STUB(name)
#include "rows.def"

const struct entry entries[] = {
#define ROW(row_name, version) \
	{ .name = #row_name, .since = (version), .function = (void *)row_name },
#include "rows.def"
};

const size_t n_entries = sizeof entries / sizeof entries[0];
