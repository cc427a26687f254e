/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intercepts XLA's table of functions (pjrt_abi.h), and tells the runtime of every array that JAX has.
 *
 *      jaxlib --> dlsym(xla_cuda_plugin.so, "GetPjrtApi") --> ours: a copy of the plugin's table
 *                                                                   with hooks in place of some functions
 *
 * XLA takes most of a GPU at once and hands it out itself, so the driver sees neither arrays nor failures.  The hooks see
 * them: a buffer copied from the host, the outputs of an execution, copies, and their end: destroyed, deleted, or donated to
 * an execution.  Nothing is changed: each hook calls the plugin's function with the arguments that it got.
 *
 * An execution is a range by the name of its program (tags.h), so that arrays and failures have that name.
 *
 * Threads   Any.  A plugin's function is called with no lock of ours held, and not inside the runtime.
 * Failure   A table of another major version, or one that is too small or too large, is handed out as it is, with one line.
 * Limits    The first CUDA plugin of the process only.  Who calls the plugin's own table passes us by.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "base/env.h"
#include "base/log.h"
#include "base/module.h"
#include "preload/pjrt.h"
#include "preload/pjrt_abi.h"
#include "preload/pjrt_books.h"
#include "preload/real.h"
#include "runtime/ledger/arrays.h"
#include "runtime/process/stacks.h"
#include "runtime/process/tags.h"

#define MAX_FNS    400u
#define LEAST_POOL (2 * GPC_MIB)

typedef const struct pjrt_table *get_fn(void);

static struct {
	pthread_mutex_t lock;
	get_fn *get;                         /* the plugin's */
	uintptr_t start, end;                /* its code and data */
	const struct pjrt_table *handed_out; /* ours, or the plugin's */
	bool has_pool;
	union {
		struct pjrt_table table;
		char room[sizeof(struct pjrt_table) + MAX_FNS * sizeof(pjrt_fn *)];
	} copy;
} plugin = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- failures ---- */

/* The bytes in "... trying to allocate 4294967296 bytes.", "... to allocate 4.00GiB." or "32.0KiB."; 0: it does not say. */
static uint64_t bytes_in(const char *text, size_t size)
{
	static const char words[] = "to allocate ";
	const char *at = memmem(text, size, words, sizeof words - 1);
	uint64_t whole = 0;
	uint64_t hundredths = 0;
	unsigned shift = 0;
	const char *end = text + size;

	if (!at)
		return 0;
	for (at += sizeof words - 1; at < end && *at >= '0' && *at <= '9'; at++)
		whole = whole * 10 + (uint64_t)(*at - '0');
	if (at < end && *at == '.') {
		for (uint64_t worth = 10; ++at < end && *at >= '0' && *at <= '9'; worth /= 10)
			hundredths += (uint64_t)(*at - '0') * worth;
	}
	if (end - at > 1 && at[1] == 'i')
		shift = *at == 'K' ? 10 : *at == 'M' ? 20 : *at == 'G' ? 30 : *at == 'T' ? 40 : 0;
	return (whole << shift) + ((hundredths << shift) / 100);
}

/* Tells the runtime of an error, if it is "out of memory"; `size` is known, or 0. */
static void note_error(void *error, int device, void *handle, uint64_t size,
	const struct gpucache_oom_program *program)
{
	struct pjrt_word code = { .ret.code = 0 };
	struct pjrt_text message = { .args = { .size = sizeof message, .object = error } };
	struct gpucache_oom_program other;
	uint64_t in_use;

	if (!error || !GPC_PJRT_ASK(PJRT_ERROR_CODE, &code, error) ||
		code.ret.code != PJRT_RESOURCE_EXHAUSTED)
		return;
	(void)gpc_pjrt_call(PJRT_ERROR_MESSAGE, &message); /* returns nothing */
	if (!size)
		size = bytes_in(message.ret_text, message.ret_size);
	/* XLA executes later, and its error comes to who uses the outputs: often to another program. */
	if (program && size / 2 > gpc_bytes_add(program->temporaries, program->outputs) &&
		gpc_pjrt_program_of_size(size, &other))
		program = &other;
	in_use = gpc_pjrt_in_use(handle);
	INSIDE(gpc_runtime_array_failed(device, size, in_use, program));
}

/* ---- arrays ---- */

/* What the arrays of one call have in common. */
struct call {
	const struct gpucache_oom_program *program; /* NULL: none */
	uint32_t stack;                             /* of those that have one; 0: none has yet */
	bool has_failed;
};

/* True if the buffer is made, or failed to be, with *ret_error, which the caller destroys; false: not yet. */
static bool is_made(void *buffer, void **ret_error)
{
	struct pjrt_word event = { .ret.pointer = NULL };
	struct pjrt_word is_ready = { .ret.number = 0 };
	struct pjrt_args about = { .size = sizeof about };
	bool is_over;

	*ret_error = NULL;
	if (!GPC_PJRT_ASK(PJRT_BUFFER_READY, &event, buffer))
		return false;
	about.object = event.ret.pointer;
	is_over =
		GPC_PJRT_ASK(PJRT_EVENT_IS_READY, &is_ready, about.object) && is_ready.ret.is_true;
	if (is_over)
		*ret_error = gpc_pjrt_call(PJRT_EVENT_ERROR, &about);
	gpc_pjrt_end_error(gpc_pjrt_call(PJRT_EVENT_DESTROY, &about));
	return is_over;
}

/* From now on, the addresses of this array and those between it and earlier ones are taken for the memory's own. */
static void trust(struct gpc_pjrt_memory *memory, uint64_t address, uint64_t size)
{
	uint64_t first = atomic_load_explicit(&memory->first, memory_order_relaxed);
	uint64_t end = atomic_load_explicit(&memory->end, memory_order_relaxed);

	if (!end || address < first)
		atomic_store_explicit(&memory->first, address, memory_order_relaxed);
	if (address + size > end)
		atomic_store_explicit(&memory->end, address + size, memory_order_relaxed);
}

/*
 * The address of a buffer on the device; 0, and an error or NULL, if it has none.  A buffer for which there was no memory has
 * an address, too, but none of the device's.  So an address beyond those of arrays that were made is looked at.
 */
static uint64_t address_of(void *buffer, struct gpc_pjrt_memory *memory, uint64_t size,
	bool *ret_is_sure, void **ret_error)
{
	struct pjrt_word address = { .args = { .size = sizeof address, .object = buffer } };
	uint64_t first = atomic_load_explicit(&memory->first, memory_order_relaxed);
	uint64_t end = atomic_load_explicit(&memory->end, memory_order_relaxed);

	*ret_error = gpc_pjrt_call(PJRT_BUFFER_ADDRESS, &address);
	if (*ret_error)
		return 0;
	*ret_is_sure = address.ret.number >= first && address.ret.number < end;
	if (*ret_is_sure)
		return address.ret.number;
	*ret_is_sure = is_made(buffer, ret_error);
	if (*ret_error)
		return 0;
	if (*ret_is_sure)
		trust(memory, address.ret.number, size);
	return address.ret.number;
}

/* The plugin made this buffer. */
static void note_made(void *buffer, struct call *common)
{
	struct pjrt_word size = { .ret.number = 0 };
	struct pjrt_word where = { .ret.pointer = NULL };
	struct gpc_array array = { .buffer = (uintptr_t)buffer };
	struct gpc_pjrt_memory *memory;
	void *error;

	if (!buffer || !gpc_runtime_wants_arrays() ||
		!GPC_PJRT_ASK(PJRT_BUFFER_MEMORY, &where, buffer) ||
		!GPC_PJRT_ASK(PJRT_BUFFER_SIZE, &size, buffer))
		return;
	memory = gpc_pjrt_memory_of(where.ret.pointer);
	if (!memory || memory->device < 0 || !size.ret.number)
		return;
	array.size = size.ret.number;
	array.address = address_of(buffer, memory, array.size, &array.is_sure, &error);
	if (error && !common->has_failed) {
		note_error(error, memory->device, memory->handle, 0, common->program);
		common->has_failed = true;
	}
	gpc_pjrt_end_error(error);
	if (!array.address || !enter())
		return;
	gpc_runtime_array(
		memory->device, &array, gpc_runtime_stack_of_one(array.size, &common->stack));
	gpc_runtime_leave();
}

static void note_ended(const void *buffer)
{
	INSIDE(gpc_runtime_array_end((uintptr_t)buffer));
}

/* Notes what the plugin answered, a buffer or an error, and returns the error. */
static void *note_answer(void *error, void *const *ret_buffer)
{
	struct call common = { 0 };

	if (!error)
		note_made(*ret_buffer, &common);
	else
		note_error(error, -1, NULL, 0, NULL);
	return error;
}

static void *from_host(void *args)
{
	return note_answer(gpc_pjrt_call(PJRT_FROM_HOST_BUFFER, args),
		&((const struct pjrt_from_host *)args)->ret_buffer);
}

static void *to_device(void *args)
{
	return note_answer(gpc_pjrt_call(PJRT_BUFFER_TO_DEVICE, args),
		&((const struct pjrt_copy *)args)->ret_buffer);
}

static void *to_memory(void *args)
{
	return note_answer(gpc_pjrt_call(PJRT_BUFFER_TO_MEMORY, args),
		&((const struct pjrt_copy *)args)->ret_buffer);
}

static void *end_buffer(enum pjrt_place place, void *args)
{
	note_ended(((struct pjrt_args *)args)->object);
	return gpc_pjrt_call(place, args);
}

static void *destroy_buffer(void *args)
{
	return end_buffer(PJRT_BUFFER_DESTROY, args);
}

static void *delete_buffer(void *args)
{
	return end_buffer(PJRT_BUFFER_DELETE, args);
}

static void *destroy_client(void *args)
{
	gpc_pjrt_client_end(((struct pjrt_args *)args)->object);
	return gpc_pjrt_call(PJRT_CLIENT_DESTROY, args);
}

/* Donated arguments are deleted when the execution has begun; the outputs may have their memory. */
static void note_executed(const struct pjrt_execute *made, const struct gpc_pjrt_program *program)
{
	for (size_t d = 0; gpc_runtime_wants_arrays() && d < made->n_devices; d++) {
		struct call common = { .program = &program->needs };

		for (size_t i = 0; i < made->n_arguments; i++) {
			struct pjrt_word is_deleted = { .ret.number = 0 };

			if (GPC_PJRT_ASK(
				    PJRT_BUFFER_IS_DELETED, &is_deleted, made->arguments[d][i]) &&
				is_deleted.ret.is_true)
				note_ended(made->arguments[d][i]);
		}
		for (size_t i = 0; made->ret_outputs && i < program->n_outputs; i++)
			note_made(made->ret_outputs[d][i], &common);
	}
}

static void *destroy_program(void *args)
{
	gpc_pjrt_program_end(((struct pjrt_args *)args)->object);
	return gpc_pjrt_call(PJRT_LOADED_DESTROY, args);
}

static void *execute(void *args)
{
	static _Atomic uint32_t domain; /* 0: not known yet */
	const struct pjrt_execute *made = args;
	struct gpc_pjrt_program room;
	const struct gpc_pjrt_program *program;
	uint32_t level;
	void *error;

	if (!gpc_runtime_wants_tags())
		return gpc_pjrt_call(PJRT_EXECUTE, args);
	program = gpc_pjrt_program_of(made->args.object, &room);
	if (!program)
		return gpc_pjrt_call(PJRT_EXECUTE, args);
	if (!atomic_load(&domain))
		atomic_store(&domain, gpc_runtime_tag_domain("XLA"));
	(void)gpc_runtime_tag_push(atomic_load(&domain), program->needs.name);
	error = gpc_pjrt_call(PJRT_EXECUTE, args);
	if (!error)
		note_executed(made, program);
	else
		note_error(error, -1, NULL, 0, &program->needs);
	(void)gpc_runtime_tag_pop(atomic_load(&domain), &level);
	return error;
}

/* ---- the table ---- */

static const struct {
	enum pjrt_place place;
	pjrt_fn *ours;
} hooks[] = {
	{ PJRT_CLIENT_DESTROY, destroy_client },
	{ PJRT_FROM_HOST_BUFFER, from_host },
	{ PJRT_LOADED_DESTROY, destroy_program },
	{ PJRT_EXECUTE, execute },
	{ PJRT_BUFFER_DESTROY, destroy_buffer },
	{ PJRT_BUFFER_DELETE, delete_buffer },
	{ PJRT_BUFFER_TO_DEVICE, to_device },
	{ PJRT_BUFFER_TO_MEMORY, to_memory },
};

static bool is_known(const struct pjrt_table *table)
{
	size_t head = offsetof(struct pjrt_table, fns);

	return table->size >= head + PJRT_N_PLACES * sizeof(pjrt_fn *) &&
	       table->size <= sizeof plugin.copy && table->version.major == PJRT_MAJOR &&
	       table->version.minor >= PJRT_LEAST_MINOR;
}

static const struct pjrt_table *copy_locked(const struct pjrt_table *own)
{
	if (!is_known(own)) {
		gpc_log("XLA's plugin has version %d.%d of its API, which is not known: arrays of "
			"JAX "
			"are not recorded one by one",
			own->version.major, own->version.minor);
		return own;
	}
	memcpy(&plugin.copy, own, own->size);
	for (size_t i = 0; i < sizeof hooks / sizeof hooks[0]; i++)
		plugin.copy.table.fns[hooks[i].place] = hooks[i].ours;
	gpc_pjrt_begin(own);
	return &plugin.copy.table;
}

static const struct pjrt_table *get_table(void)
{
	const struct pjrt_table *own = plugin.get();

	if (!own)
		return NULL;
	pthread_mutex_lock(&plugin.lock);
	if (!plugin.handed_out)
		plugin.handed_out = copy_locked(own);
	pthread_mutex_unlock(&plugin.lock);
	return plugin.handed_out;
}

/* Some allocators of XLA ask for plain memory for each array by itself. */
static bool has_pool(void)
{
	const char *name = gpc_env_get("XLA_PYTHON_CLIENT_ALLOCATOR");

	return !name || (strcmp(name, "platform") != 0 && strcmp(name, "cuda_async") != 0);
}

bool gpc_pjrt_is_asking(const void *caller, size_t size)
{
	return (uintptr_t)caller - plugin.start < plugin.end - plugin.start && size >= LEAST_POOL;
}

bool gpc_pjrt_asks_for_pool(const void *caller, size_t size)
{
	return gpc_pjrt_is_asking(caller, size) && plugin.has_pool;
}

void *gpc_pjrt_exchange(void *pointer)
{
	static const char *const plugins[] = { "xla_cuda_plugin", "pjrt_c_api_gpu_plugin", NULL };
	struct gpc_module module;
	get_fn *get;

	if (!pointer || !gpc_runtime_wants_tags())
		return pointer;
	module = gpc_module_of(pointer, plugins);
	if (!module.is_named)
		return pointer;
	memcpy(&get, &pointer, sizeof get);
	pthread_mutex_lock(&plugin.lock);
	if (!plugin.get) {
		plugin.get = get;
		plugin.has_pool = has_pool();
		plugin.start = module.start;
		plugin.end = module.end;
	}
	if (plugin.get == get)
		*(get_fn **)(void *)&pointer = get_table;
	pthread_mutex_unlock(&plugin.lock);
	return pointer;
}
