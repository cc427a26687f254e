/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of one library without a body, from its table: NAMES is the table's file.
 *
 * Callers may pass any arguments; a stub looks only at those that it names.
 */
#include "simcuda/standin.h"

/* The runtime remembers its last error. */
#ifndef NOT_SUPPORTED
#define NOT_SUPPORTED standin_not_supported
#endif
int NOT_SUPPORTED(const char *name);

#pragma GCC visibility push(default)
#define OWN(name)
#define WORK(name)   int name(const struct standin_handle *handle);
#define RESULT(name) WORK(name)
#define NOT(name)    int name(void);
#include NAMES
#undef WORK
#undef RESULT
#undef NOT
#pragma GCC visibility pop

#define WORK(name)                                    \
	int name(const struct standin_handle *handle) \
	{                                             \
		return standin_work(handle);          \
	}
#define RESULT(name)                                  \
	int name(const struct standin_handle *handle) \
	{                                             \
		return standin_result(handle);        \
	}
#define NOT(name)                            \
	int name(void)                       \
	{                                    \
		return NOT_SUPPORTED(#name); \
	}
#include NAMES
