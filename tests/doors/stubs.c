/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function for each row of symbols.def, and the table of them.  They do nothing: this driver is only looked up.
 *
 * Weak, and without their parameters: driver.c has those that do something.  A file of its own, because the
 * prototypes differ.
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
