/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defines the functions of one library's table that have no body of their own; the macro NAMES is the table's file.
 *
 * A caller may pass more arguments than a stub declares; the stub ignores them.
 */
#include "sim/standin/standin.h"

/* rules.mk defines another one for the runtime, which stores its last error, and for NVML, which prints nothing. */
#ifndef NOT_SUPPORTED
#define NOT_SUPPORTED standin_not_supported
#endif
int NOT_SUPPORTED(const char *name);

#pragma GCC visibility push(default)
#define CODES(...)
#define OWN(name)
#define CREATE(name)  int name(struct standin_handle **handle);
#define DESTROY(name) int name(struct standin_handle *handle);
#define STREAM(name)  int name(struct standin_handle *handle, struct CUstream_st *stream);
#define WORK(name)    int name(const struct standin_handle *handle);
#define RESULT(name)  WORK(name)
#define NOT(name)     int name(void);
#include NAMES
#undef CODES
#undef CREATE
#undef DESTROY
#undef STREAM
#undef WORK
#undef RESULT
#undef NOT
#pragma GCC visibility pop

#define CODES(...) const struct standin_library standin_library = { .name = LIBRARY, __VA_ARGS__ };
#define CREATE(name)                             \
	int name(struct standin_handle **handle) \
	{                                        \
		return standin_plain(handle);    \
	}
#define DESTROY(name)                                                                 \
	int name(struct standin_handle *handle)                                       \
	{                                                                             \
		return standin_destroy(handle) ? 0 : standin_library.not_initialized; \
	}
#define STREAM(name)                                                        \
	int name(struct standin_handle *handle, struct CUstream_st *stream) \
	{                                                                   \
		return standin_set_stream(handle, stream);                  \
	}
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
