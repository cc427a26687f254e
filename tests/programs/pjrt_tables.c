/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin of XLA with a table of version MAJOR.112 and of FNS functions (pjrt_api.h).
 *
 * A client has one device, whose hardware id it is created with as n_options, and a pool of 64 MiB on it, every other of
 * physical memory, of which arrays are cut from the start on; what is ended is not used again.  An array that has no memory has an address all the same, 4096.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "pjrt_api.h"

#define POOL (64 * MIB)

struct error {
	int code;
	char message[96];
};

struct memory {
	const char *kind;
	struct client *client;
};

/* Its address is the device's, too. */
struct client {
	int hardware_id;
	struct client *device;
	struct memory on_device, on_host;
	struct memory *memories[2];
	CUdeviceptr pool;
	CUmemGenericAllocationHandle physical; /* of the pool; 0: it is plain memory */
	size_t used;
};

struct buffer {
	struct memory *memory;
	size_t size;
	uint64_t address;
	bool is_ready, has_failed, is_deleted;
};

/* Programs have few places, as their handles come again. */
static struct loaded {
	const struct code *code;
	struct client *client;
} loaded[4];

/* Taken in turns, so that the handles of memories come again. */
static struct client clients[100];
static size_t calls[ROOM];
static size_t live; /* bytes of arrays on GPUs */

size_t calls_at(enum place place)
{
	return calls[place];
}

size_t live_bytes(void)
{
	return live;
}

static void *out_of_memory(const char *words)
{
	struct error *error = calloc(1, sizeof *error);

	error->code = CODE_RESOURCE_EXHAUSTED;
	(void)snprintf(error->message, sizeof error->message, "%s", words);
	return error;
}

static struct buffer *make(struct memory *memory, size_t size)
{
	struct client *client = memory->client;
	struct buffer *buffer = calloc(1, sizeof *buffer);

	buffer->memory = memory;
	buffer->size = size;
	buffer->is_ready = true;
	if (memory == &client->on_host) {
		buffer->address = (uintptr_t)buffer;
		return buffer;
	}
	buffer->address = client->pool + client->used;
	client->used += (size + 255) / 256 * 256;
	live += size;
	return buffer;
}

static void end(struct buffer *buffer)
{
	if (!buffer->is_deleted && buffer->memory == &buffer->memory->client->on_device &&
		buffer->address >= buffer->memory->client->pool)
		live -= buffer->size;
	buffer->is_deleted = true;
}

static void *execute(struct execute *a)
{
	const struct loaded *program = a->loaded;
	const struct code *code = program->code;

	if (code->outcome == REFUSES)
		return out_of_memory("Out of memory while trying to allocate 3.50GiB.");
	for (size_t i = 0; code->donates && i < a->num_args; i++)
		end(a->argument_lists[0][i]);
	for (size_t i = 0; i < code->n_outputs; i++) {
		struct buffer *buffer = calloc(1, sizeof *buffer);

		if (code->outcome == MAKES) {
			free(buffer);
			buffer = make(&program->client->on_device, code->sizes[i]);
		} else {
			buffer->memory = &program->client->on_device;
			buffer->size = code->sizes[i];
			buffer->has_failed = buffer->is_ready = code->outcome == LATER;
			buffer->address = code->outcome == LATER ? 4096 : 8;
		}
		a->output_lists[0][i] = buffer;
	}
	return NULL;
}

/* Until two threads have come. */
static void meet(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
	static int n;

	pthread_mutex_lock(&lock);
	n++;
	pthread_cond_broadcast(&changed);
	while (n < 2)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void *error_destroy(struct about *a)
{
	free(a->object);
	return NULL;
}

static void *error_message(struct text_of *a)
{
	a->text = ((struct error *)a->object)->message;
	a->size = strlen(a->text);
	return NULL;
}

static void *error_code(struct about *a)
{
	a->code = ((struct error *)a->object)->code;
	return NULL;
}

/* An event is that of its buffer. */
static void *event_destroy(struct about *a)
{
	(void)a;
	return NULL;
}

static void *event_is_ready(struct about *a)
{
	a->is_true = ((struct buffer *)a->object)->is_ready;
	return NULL;
}

static void *event_error(struct about *a)
{
	return ((struct buffer *)a->object)->has_failed
		       ? out_of_memory("Out of memory while trying to allocate 1073741824 bytes.")
		       : NULL;
}

static CUresult take_physical(struct client *client)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = client->hardware_id },
	};
	CUresult result = cuMemCreate(&client->physical, POOL, &prop, 0);

	if (!result)
		result = cuMemAddressReserve(&client->pool, POOL, 0, 0, 0);
	return result ? result : cuMemMap(client->pool, POOL, 0, client->physical, 0);
}

static void end_pool(struct client *client)
{
	if (!client->physical) {
		(void)cuMemFree(client->pool);
		return;
	}
	(void)cuMemUnmap(client->pool, POOL);
	(void)cuMemAddressFree(client->pool, POOL);
	(void)cuMemRelease(client->physical);
}

static void *client_create(struct create *a)
{
	static unsigned n;
	struct client *client = &clients[n % 100];
	CUresult result;

	*client = (struct client){
		.hardware_id = (int)a->n_options,
		.device = client,
		.on_device = { "device", client },
		.on_host = { "pinned_host", client },
		.memories = { &client->on_device, &client->on_host },
	};
	a->client = client;
	result = n++ % 2 ? take_physical(client) : cuMemAlloc(&client->pool, POOL);
	return result ? out_of_memory("no pool") : NULL;
}

static void *client_destroy(struct about *a)
{
	struct client *client = a->object;

	end_pool(client);
	memset(client, 0, sizeof *client);
	return NULL;
}

static void *client_memories(struct list_of *a)
{
	a->items = (void *const *)((struct client *)a->object)->memories;
	a->n = 2;
	return NULL;
}

static void *client_compile(struct compile *a)
{
	struct loaded *program = loaded;

	while (program->code)
		program++;
	*program = (struct loaded){ a->program, a->client };
	a->loaded = program;
	return NULL;
}

static void *from_host(struct from_host *a)
{
	struct client *client = a->client;
	size_t size = (size_t)a->dims[0];

	if (client->used + size > POOL)
		return out_of_memory("Out of memory while trying to allocate 65536.0KiB.");
	a->buffer = make(a->memory ? a->memory : &client->on_device, size);
	return NULL;
}

static void *hardware_id(struct about *a)
{
	a->code = ((struct client *)a->object)->hardware_id;
	return NULL;
}

static void *device_stats(struct memory_stats *a)
{
	a->bytes_in_use = (int64_t)((struct client *)a->object)->used;
	return NULL;
}

static void *memory_kind(struct text_of *a)
{
	a->text = ((struct memory *)a->object)->kind;
	a->size = strlen(a->text);
	return NULL;
}

static void *memory_devices(struct list_of *a)
{
	a->items = (void *const *)&((struct memory *)a->object)->client->device;
	a->n = 1;
	return NULL;
}

/* An executable is that which is loaded. */
static void *executable_destroy(struct about *a)
{
	(void)a;
	return NULL;
}

static void *executable_name(struct text_of *a)
{
	a->text = ((struct loaded *)a->object)->code->name;
	a->size = strlen(a->text);
	return NULL;
}

static void *executable_outputs(struct about *a)
{
	a->number = ((struct loaded *)a->object)->code->n_outputs;
	return NULL;
}

static void *executable_stats(struct compiled_stats *a)
{
	const struct code *code = ((struct loaded *)a->object)->code;

	a->temporaries = (int64_t)(code->temporaries ? code->temporaries : 3 * MIB);
	a->outputs = 2 * (int64_t)MIB;
	a->aliases = (int64_t)MIB;
	return NULL;
}

static void *loaded_destroy(struct about *a)
{
	memset(a->object, 0, sizeof(struct loaded));
	return NULL;
}

static void *loaded_executable(struct about *a)
{
	struct loaded *program = a->object;

	if (program->code->waits)
		meet();
	a->pointer = program;
	return NULL;
}

static void *buffer_destroy(struct about *a)
{
	if (a->object)
		end(a->object);
	free(a->object);
	return NULL;
}

static void *buffer_size(struct about *a)
{
	a->number = ((struct buffer *)a->object)->size;
	return NULL;
}

static void *buffer_memory(struct about *a)
{
	a->pointer = ((struct buffer *)a->object)->memory;
	return NULL;
}

static void *buffer_delete(struct about *a)
{
	end(a->object);
	return NULL;
}

static void *buffer_is_deleted(struct about *a)
{
	a->is_true = ((struct buffer *)a->object)->is_deleted;
	return NULL;
}

static void *buffer_event(struct about *a)
{
	a->pointer = a->object;
	return NULL;
}

static void *buffer_address(struct about *a)
{
	a->number = ((struct buffer *)a->object)->address;
	return NULL;
}

static void *copy_to_device(struct copy *a)
{
	a->copied = make(&((struct client *)a->to)->on_device, ((struct buffer *)a->buffer)->size);
	return NULL;
}

static void *copy_to_memory(struct copy *a)
{
	a->copied = make(a->to, ((struct buffer *)a->buffer)->size);
	return NULL;
}

/* The functions with their places: F(place, arguments, function), in a table and as it counts them. */
#define FUNCTIONS(F)                                                  \
	F(ERROR_DESTROY, about, error_destroy)                        \
	F(ERROR_MESSAGE, text_of, error_message)                      \
	F(ERROR_GET_CODE, about, error_code)                          \
	F(EVENT_DESTROY, about, event_destroy)                        \
	F(EVENT_IS_READY, about, event_is_ready)                      \
	F(EVENT_ERROR, about, event_error)                            \
	F(CLIENT_CREATE, create, client_create)                       \
	F(CLIENT_DESTROY, about, client_destroy)                      \
	F(CLIENT_ADDRESSABLE_MEMORIES, list_of, client_memories)      \
	F(CLIENT_COMPILE, compile, client_compile)                    \
	F(CLIENT_BUFFER_FROM_HOST_BUFFER, from_host, from_host)       \
	F(DEVICE_LOCAL_HARDWARE_ID, about, hardware_id)               \
	F(DEVICE_MEMORY_STATS, memory_stats, device_stats)            \
	F(MEMORY_KIND, text_of, memory_kind)                          \
	F(MEMORY_ADDRESSABLE_BY_DEVICES, list_of, memory_devices)     \
	F(EXECUTABLE_DESTROY, about, executable_destroy)              \
	F(EXECUTABLE_NAME, text_of, executable_name)                  \
	F(EXECUTABLE_NUM_OUTPUTS, about, executable_outputs)          \
	F(LOADED_EXECUTABLE_DESTROY, about, loaded_destroy)           \
	F(LOADED_EXECUTABLE_GET_EXECUTABLE, about, loaded_executable) \
	F(LOADED_EXECUTABLE_EXECUTE, execute, execute)                \
	F(BUFFER_DESTROY, about, buffer_destroy)                      \
	F(BUFFER_ON_DEVICE_SIZE, about, buffer_size)                  \
	F(BUFFER_MEMORY, about, buffer_memory)                        \
	F(BUFFER_DELETE, about, buffer_delete)                        \
	F(BUFFER_IS_DELETED, about, buffer_is_deleted)                \
	F(BUFFER_COPY_TO_DEVICE, copy, copy_to_device)                \
	F(BUFFER_READY_EVENT, about, buffer_event)                    \
	F(BUFFER_UNSAFE_POINTER, about, buffer_address)               \
	F(BUFFER_COPY_TO_MEMORY, copy, copy_to_memory)                \
	F(EXECUTABLE_COMPILED_MEMORY_STATS, compiled_stats, executable_stats)

#define COUNTED(place, type, function)                                  \
	static void *counted_##function(void *a)                        \
	{                                                               \
		__atomic_add_fetch(&calls[place], 1, __ATOMIC_RELAXED); \
		return function((struct type *)a);                      \
	}
FUNCTIONS(COUNTED)

#define ROW(place, type, function) [place] = counted_##function,
static struct api table = {
	.struct_size = offsetof(struct api, fns) + FNS * sizeof(fn *),
	.version_size = 24,
	.major = MAJOR,
	.minor = 112,
	.fns = { FUNCTIONS(ROW) },
};

struct api *own_table(void)
{
	return &table;
}

const void *GetPjrtApi(void);

const void *GetPjrtApi(void)
{
	return &table;
}
