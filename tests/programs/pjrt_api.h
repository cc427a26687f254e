/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pjrt_tables.c, a plugin of XLA, and pjrt.c, its user, know of each other: arguments as xla/pjrt/c/pjrt_c_api.h of
 * openxla/xla lays them out, and places in its table.
 *
 * The plugin's programs are not compiled: their code says what an execution does.
 */
#ifndef PROGRAMS_PJRT_API_H
#define PROGRAMS_PJRT_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIB ((size_t)1 << 20)

enum place {
	ERROR_DESTROY = 0,
	ERROR_MESSAGE = 1,
	ERROR_GET_CODE = 2,
	EVENT_DESTROY = 5,
	EVENT_IS_READY = 6,
	EVENT_ERROR = 7,
	CLIENT_CREATE = 10,
	CLIENT_DESTROY = 11,
	CLIENT_ADDRESSABLE_MEMORIES = 19,
	CLIENT_COMPILE = 20,
	CLIENT_BUFFER_FROM_HOST_BUFFER = 22,
	DEVICE_LOCAL_HARDWARE_ID = 31,
	DEVICE_MEMORY_STATS = 34,
	MEMORY_KIND = 36,
	MEMORY_ADDRESSABLE_BY_DEVICES = 39,
	EXECUTABLE_DESTROY = 40,
	EXECUTABLE_NAME = 41,
	EXECUTABLE_NUM_OUTPUTS = 44,
	LOADED_EXECUTABLE_DESTROY = 50,
	LOADED_EXECUTABLE_GET_EXECUTABLE = 51,
	LOADED_EXECUTABLE_EXECUTE = 55,
	BUFFER_DESTROY = 58,
	BUFFER_ON_DEVICE_SIZE = 64,
	BUFFER_MEMORY = 66,
	BUFFER_DELETE = 67,
	BUFFER_IS_DELETED = 68,
	BUFFER_COPY_TO_DEVICE = 69,
	BUFFER_READY_EVENT = 72,
	BUFFER_UNSAFE_POINTER = 73,
	BUFFER_COPY_TO_MEMORY = 92,
	EXECUTABLE_COMPILED_MEMORY_STATS = 96,
};

#define ROOM 138

typedef void *fn(void *args);

struct api {
	size_t struct_size;
	void *extensions;
	size_t version_size;
	void *version_extensions;
	int major, minor;
	fn *fns[ROOM];
};

#define HEAD                \
	size_t struct_size; \
	void *extensions

/* Most arguments: about what, and what comes back. */
struct about {
	HEAD;
	void *object;
	union {
		size_t number;
		void *pointer;
		int code;
		bool is_true;
	};
};

struct text_of {
	HEAD;
	void *object;
	const char *text;
	size_t size;
};

struct list_of {
	HEAD;
	void *object;
	void *const *items;
	size_t n;
};

struct create {
	HEAD;
	const void *create_options;
	size_t n_options;
	void *callbacks[4];
	void *client;
};

struct compile {
	HEAD;
	void *client;
	const void *program;
	const char *options;
	size_t options_size;
	void *loaded;
};

struct from_host {
	HEAD;
	void *client;
	const void *data;
	int type;
	const int64_t *dims;
	size_t num_dims;
	const int64_t *byte_strides;
	size_t num_byte_strides;
	int host_buffer_semantics;
	void *device;
	void *memory;
	void *device_layout;
	void *done_with_host_buffer;
	void *buffer;
};

struct copy {
	HEAD;
	void *buffer;
	void *to;
	void *copied;
};

struct execute {
	HEAD;
	void *loaded;
	void *options;
	void *const *const *argument_lists;
	size_t num_devices;
	size_t num_args;
	void **const *output_lists;
	void **complete_events;
	void *execute_device;
};

struct memory_stats {
	HEAD;
	void *object;
	int64_t bytes_in_use;
};

struct compiled_stats {
	HEAD;
	void *object;
	int64_t code, arguments, outputs, aliases, temporaries;
};

/* The code of a program. */
enum outcome {
	MAKES,   /* its outputs */
	REFUSES, /* the execution */
	LATER,   /* gives outputs that turn out to have no memory */
	DELAYS,  /* gives outputs that are not ready, at address 8 */
};

struct code {
	const char *name;
	size_t n_outputs;
	size_t sizes[8];
	enum outcome outcome;
	bool donates;       /* its arguments */
	bool waits;         /* until two threads ask what it is */
	size_t temporaries; /* 0: 3 MiB */
};

#define CODE_RESOURCE_EXHAUSTED 8

/* Beside the table: the plugin's own, which counts the calls at each place, and the bytes of its arrays on the GPU. */
struct api *own_table(void);
size_t calls_at(enum place place);
size_t live_bytes(void);

#endif
