/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the stand-ins for the libraries over CUDA (cuBLAS, cuDNN, cuFFT ...) share.
 *
 * Every function of such a library is a word in its table, names_<library>.def:
 *
 *      OWN(name)     has a body in lib_<library>.c
 *      WORK(name)    submits a kernel that does nothing to the stream of its handle, its first argument
 *      RESULT(name)  the same, where the result goes to the device; else it is not supported
 *      NOT(name)     answers the library's own "not supported"; the first call says its name on stderr
 *
 * stubs.c makes the functions of all but OWN rows, compiled once for each library.
 *
 * Invariants  1 Nothing answers success that did not do what memory and streams can see of it.
 *             2 A handle begins with struct standin_handle.
 * Threads     Any; a handle belongs to one at a time, as with the real libraries.
 * Failure     The library's own codes, which its struct standin_library names.
 * Limits      Nothing is computed, but for copies.  Device memory is taken where standin_take is called and nowhere else.
 */
#ifndef SIMCUDA_STANDIN_H
#define SIMCUDA_STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STANDIN_MAGIC UINT32_C(0x6770756c)

struct standin_library {
	const char *name;
	int not_supported;
	int not_initialized; /* no such handle */
	int failed;          /* the driver refused the work */
};

/* Defined by each library. */
extern const struct standin_library standin_library;

struct CUstream_st;

struct standin_handle {
	uint32_t magic;
	bool wants_result_on_host;
	struct CUstream_st *stream;
	uint64_t taken; /* device memory of its own; 0: none */
};

/* Creates a handle of `size` bytes, zeroed apart from its head; NULL without memory. */
void *standin_create(size_t size);

/* Destroys it with its device memory; false if it is no handle. */
bool standin_destroy(void *handle);

/* Allocates device memory for the handle in the current context; false if the driver has none. */
bool standin_take(struct standin_handle *handle, size_t size);

/* Submits a kernel without effect.  Returns the library's code, 0 for success. */
int standin_work(const struct standin_handle *handle);
int standin_result(const struct standin_handle *handle);

/*
 * Allocates device memory for a library's code, by its name in code.def, before its first work in the current context.
 * Work goes on without if the simulated GPU charges none, or has none left.  The second: true if it charges for code.
 */
void standin_load_code(const char *library);
bool standin_has_code(void);

/* A copy on the device whose bytes others see. */
int standin_copy(struct CUstream_st *stream, void *dst, const void *src, size_t size);

/*
 * Computation on the host in place of a kernel, in stream order: `fn` is called once earlier work is over, and later
 * work begins when it returns.  Within it standin_bytes copies between device and host memory; false: no such memory.
 * If captured, it is called at each launch of the graph.
 */
int standin_call(struct CUstream_st *stream, void (*fn)(void *arg), void *arg);
bool standin_bytes(void *dst, const void *src, size_t size);
bool standin_is_captured(struct CUstream_st *stream);
void standin_wait(struct CUstream_st *stream);

/* Prints once that `name` is not simulated; returns the library's "not supported". */
int standin_not_supported(const char *name);

/* The compute capability of the current device, 90 for 9.0; 0 if there is none. */
int standin_capability(void);

#endif
