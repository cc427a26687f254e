/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of the PJRT C API that we call and intercept: a table of functions that a plugin of XLA gives its user.
 *
 *      JAX --> dlsym(plugin, "GetPjrtApi")() --> { size, extensions, version, function 0, function 1, ... }
 *
 * Within a major version, functions are only appended, and their arguments only grow at the end, so a function is known by
 * its place.  Every function takes one pointer, to arguments that begin with their size, and returns an error or NULL.
 *
 * Reference: xla/pjrt/c/pjrt_c_api.h of openxla/xla.
 */
#ifndef GPC_PRELOAD_PJRT_ABI_H
#define GPC_PRELOAD_PJRT_ABI_H

#include <stddef.h>
#include <stdint.h>

#define PJRT_MAJOR 0

/* From this minor version on, the places below are right.  jax 0.4.35 has 55, 0.10.2 has 112. */
#define PJRT_LEAST_MINOR 51

#define PJRT_RESOURCE_EXHAUSTED 8

enum pjrt_place {
	PJRT_ERROR_DESTROY = 0,
	PJRT_ERROR_MESSAGE = 1,
	PJRT_ERROR_CODE = 2,
	PJRT_EVENT_DESTROY = 5,
	PJRT_EVENT_IS_READY = 6,
	PJRT_EVENT_ERROR = 7,
	PJRT_CLIENT_DESTROY = 11,
	PJRT_CLIENT_MEMORIES = 19,
	PJRT_FROM_HOST_BUFFER = 22,
	PJRT_DEVICE_HARDWARE_ID = 31,
	PJRT_DEVICE_MEMORY_STATS = 34,
	PJRT_MEMORY_KIND = 36,
	PJRT_MEMORY_DEVICES = 39,
	PJRT_EXECUTABLE_DESTROY = 40,
	PJRT_EXECUTABLE_NAME = 41,
	PJRT_EXECUTABLE_OUTPUTS = 44,
	PJRT_LOADED_DESTROY = 50,
	PJRT_LOADED_EXECUTABLE = 51,
	PJRT_EXECUTE = 55,
	PJRT_BUFFER_DESTROY = 58,
	PJRT_BUFFER_SIZE = 64,
	PJRT_BUFFER_MEMORY = 66,
	PJRT_BUFFER_DELETE = 67,
	PJRT_BUFFER_IS_DELETED = 68,
	PJRT_BUFFER_TO_DEVICE = 69,
	PJRT_BUFFER_READY = 72,
	PJRT_BUFFER_ADDRESS = 73,
	PJRT_BUFFER_TO_MEMORY = 92,
	PJRT_N_PLACES, /* from PJRT_LEAST_MINOR on */
	PJRT_MEMORY_NEEDED = 96,
};

typedef void *pjrt_fn(void *args);

struct pjrt_table {
	size_t size; /* of the table */
	void *extensions;
	struct {
		size_t size;
		void *extensions;
		int major;
		int minor;
	} version;
	pjrt_fn *fns[];
};

/* Arguments begin so; `object` is what most functions are about. */
struct pjrt_args {
	size_t size;
	void *extensions;
	void *object;
};

/* A later version may want more room for what it returns. */
#define PJRT_ROOM uint64_t room[16]

struct pjrt_word {
	struct pjrt_args args;
	union {
		uint64_t number;
		void *pointer;
		int code;
		_Bool is_true;
	} ret;
	PJRT_ROOM;
};

struct pjrt_text {
	struct pjrt_args args;
	const char *ret_text;
	size_t ret_size;
	PJRT_ROOM;
};

struct pjrt_list {
	struct pjrt_args args;
	void *const *ret_items;
	size_t ret_n;
	PJRT_ROOM;
};

struct pjrt_optional {
	int64_t value;
	_Bool is_set;
};

struct pjrt_memory_stats {
	struct pjrt_args args;
	int64_t ret_in_use;
	struct pjrt_optional peak, n_allocs, largest, limit, reserved, peak_reserved, reservable,
		largest_free, pool, peak_pool;
	PJRT_ROOM;
};

struct pjrt_memory_needed {
	struct pjrt_args args;
	int64_t ret_code, ret_arguments, ret_outputs, ret_aliased, ret_temporaries;
	int64_t on_host[5];
	PJRT_ROOM;
};

struct pjrt_from_host {
	struct pjrt_args args;
	const void *data;
	int type;
	const int64_t *dims;
	size_t n_dims;
	const int64_t *strides;
	size_t n_strides;
	int semantics;
	void *device;
	void *memory;
	void *layout;
	void *ret_done;
	void *ret_buffer;
};

struct pjrt_execute {
	struct pjrt_args args;
	void *options;
	void *const *const *arguments; /* a list for each device */
	size_t n_devices;
	size_t n_arguments;
	void **const *ret_outputs;
};

struct pjrt_copy {
	struct pjrt_args args;
	void *to; /* a device or a memory */
	void *ret_buffer;
};

#endif
