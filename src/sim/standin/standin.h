/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the stand-ins for the libraries over CUDA (cuBLAS, cuDNN, cuFFT ...).
 *
 * Every function of a library is a row of its table, made from its names.txt by names.awk:
 *
 *      OWN(name)     has a body in its folder
 *      CREATE(name), DESTROY(name), STREAM(name)    of a handle that has only a stream: creates it, destroys it, sets the stream
 *      WORK(name)    submits a kernel without effect to the stream of its handle, the first argument
 *      RESULT(name)  as WORK if the handle's results go to the device; "not supported" if they go to the host
 *      NOT(name)     returns the library's own "not supported"; the first call prints the name on stderr
 *
 * stubs.c, compiled once per library, defines the functions of all rows but OWN, and struct standin_library where the
 * table has a row CODES.
 *
 * Invariants  1 A function that returns success has taken its device memory and submitted its work.
 *             2 A handle begins with struct standin_handle.
 * Threads     Any; a handle is used by one thread at a time, as with the real libraries.
 * Failure     The library's own codes, from its struct standin_library.
 * Limits      Except for copies and NCCL, nothing is computed.  Device memory is taken only by standin_take and
 *             standin_load_code.
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
	int not_initialized; /* the handle is invalid */
	int failed;          /* the driver refuses the work */
	int no_memory;       /* CREATE: for the handle */
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

/* Creates a handle of `size` bytes, zeroed after its struct standin_handle; NULL if out of memory. */
void *standin_create(size_t size);

/* Destroys the handle and its device memory; false if it is invalid. */
bool standin_destroy(void *handle);

/* Allocates device memory for the handle in the current context; false if the driver has none. */
bool standin_take(struct standin_handle *handle, size_t size);

/* The bodies of CREATE, STREAM, WORK and RESULT functions.  Return the library's code, 0 for success. */
int standin_plain(struct standin_handle **ret_handle);
int standin_set_stream(struct standin_handle *handle, struct CUstream_st *stream);
int standin_work(const struct standin_handle *handle);
int standin_result(const struct standin_handle *handle);

/*
 * Allocates device memory for a library's code, by its name in code.def, once per context.  Call before the library's
 * work.  Does nothing if the simulated GPU does not charge for code, or has no memory left.
 */
void standin_load_code(const char *library);

/* True if the simulated GPU charges for code. */
bool standin_has_code(void);

/* Submits a copy between device addresses, which moves the bytes. */
int standin_copy(struct CUstream_st *stream, void *dst, const void *src, size_t size);

/* A stream of a context, which NULL means the default stream of. */
struct standin_place {
	struct CUctx_st *context;
	struct CUstream_st *stream;
};

/*
 * Computes on the host in place of a kernel, in the order of n streams, at least one: calls `fn` when the earlier work of
 * all is over; their later work begins when `fn` returns.  If the streams are captured, each launch of the graph calls
 * `fn`.  Within `fn`, standin_bytes copies between device and host memory, and returns false for an invalid address.
 */
int standin_call_together(
	const struct standin_place *places, size_t n, void (*fn)(void *arg), void *arg);
bool standin_bytes(void *dst, const void *src, size_t size);
bool standin_is_captured(const struct standin_place *place);
void standin_wait(const struct standin_place *place);

/* Lets work go on whose time has come: for who waits for another process without calling the driver. */
void standin_settle(void);

/* The current context, or else the primary one of device 0; the primary one of a device.  NULL: there is none. */
struct CUctx_st *standin_context(void);
struct CUctx_st *standin_primary(int device);

/* Makes the context current until standin_exit; false, with nothing to exit, if it cannot be. */
bool standin_enter(struct CUctx_st *context);
void standin_exit(void);

/* Prints once that `name` is not simulated; returns the library's "not supported". */
int standin_not_supported(const char *name);

/*
 * The versions of what the driver would load of a fat binary, by gpusim_image, and its CUresult; those of the current
 * device under a driver without that function, or if `image` is NULL.
 */
int standin_image(const void *image, int *ret_ptx, int *ret_binary);

/* The compute capability of the current device, 90 for 9.0; 0 if there is none. */
int standin_capability(void);

#endif
