/* SPDX-License-Identifier: Apache-2.0 */
/* Two tables without locks: a row is claimed, filled in, and then has its key, so that who finds the key finds the rest. */
#include "preload/pjrt_books.h"

#include <string.h>

#include "base/bytes.h"

#define MAX_PROGRAMS 1024u
#define MAX_MEMORIES 64u
#define CLAIMED      1u
#define ENDED        2u

_Atomic(const struct pjrt_table *) gpc_pjrt_own;

void gpc_pjrt_begin(const struct pjrt_table *table)
{
	atomic_store_explicit(&gpc_pjrt_own, table, memory_order_release);
}

void *gpc_pjrt_call(enum pjrt_place place, void *args)
{
	pjrt_fn *real = atomic_load_explicit(&gpc_pjrt_own, memory_order_acquire)->fns[place];

	return real(args);
}

void gpc_pjrt_end_error(void *error)
{
	struct pjrt_args end = { .size = sizeof end, .object = error };

	if (error)
		(void)gpc_pjrt_call(PJRT_ERROR_DESTROY, &end);
}

bool gpc_pjrt_ask(enum pjrt_place place, struct pjrt_args *args, size_t size, void *about)
{
	void *error;

	args->size = size;
	args->object = about;
	error = gpc_pjrt_call(place, args);
	gpc_pjrt_end_error(error);
	return !error;
}

/* ---- memories: which device's, if any ---- */

static struct gpc_pjrt_memory memories[MAX_MEMORIES];

static bool is_on_device(void *memory)
{
	struct pjrt_text kind = { .ret_size = 0 };

	return GPC_PJRT_ASK(PJRT_MEMORY_KIND, &kind, memory) && kind.ret_size == 6 &&
	       memcmp(kind.ret_text, "device", 6) == 0;
}

static uintptr_t key_of(const struct gpc_pjrt_memory *row)
{
	return atomic_load_explicit(&row->memory, memory_order_acquire);
}

static struct gpc_pjrt_memory *claim_memory(void)
{
	for (size_t i = 0; i < MAX_MEMORIES; i++) {
		uintptr_t none = 0;

		if (atomic_compare_exchange_strong(&memories[i].memory, &none, CLAIMED))
			return &memories[i];
	}
	return NULL;
}

/* Whose it is. */
static void read_memory(void *memory, struct gpc_pjrt_memory *row)
{
	struct pjrt_list devices = { .ret_n = 0 };
	struct pjrt_word id = { .ret.number = 0 };

	row->device = -1;
	row->handle = NULL;
	atomic_store_explicit(&row->first, 0, memory_order_relaxed);
	atomic_store_explicit(&row->end, 0, memory_order_relaxed);
	if (is_on_device(memory) && GPC_PJRT_ASK(PJRT_MEMORY_DEVICES, &devices, memory) &&
		devices.ret_n == 1 &&
		GPC_PJRT_ASK(PJRT_DEVICE_HARDWARE_ID, &id, devices.ret_items[0])) {
		row->device = id.ret.code;
		row->handle = devices.ret_items[0];
	}
}

struct gpc_pjrt_memory *gpc_pjrt_memory_of(void *memory)
{
	struct gpc_pjrt_memory *row;

	for (size_t i = 0; i < MAX_MEMORIES; i++)
		if (key_of(&memories[i]) == (uintptr_t)memory)
			return &memories[i];
	row = claim_memory();
	if (!row)
		return NULL;
	read_memory(memory, row);
	atomic_store_explicit(&row->memory, (uintptr_t)memory, memory_order_release);
	return row;
}

uint64_t gpc_pjrt_in_use(void *handle)
{
	struct pjrt_memory_stats stats = { .ret_in_use = 0 };

	for (size_t i = 0; !handle && i < MAX_MEMORIES; i++)
		if (key_of(&memories[i]) > CLAIMED)
			handle = memories[i].handle;
	return handle && GPC_PJRT_ASK(PJRT_DEVICE_MEMORY_STATS, &stats, handle)
		       ? (uint64_t)stats.ret_in_use
		       : 0;
}

/* Of threads that see a memory for the first time, each may have claimed a row. */
static void end_memory(const void *memory)
{
	for (size_t i = 0; i < MAX_MEMORIES; i++)
		if (key_of(&memories[i]) == (uintptr_t)memory)
			atomic_store_explicit(&memories[i].memory, 0, memory_order_release);
}

void gpc_pjrt_client_end(const void *client)
{
	struct pjrt_list own = { .ret_n = 0 };

	if (!GPC_PJRT_ASK(PJRT_CLIENT_MEMORIES, &own, client))
		return;
	for (size_t i = 0; i < own.ret_n; i++)
		end_memory(own.ret_items[i]);
}

/* ---- programs ---- */

static struct gpc_pjrt_program programs[MAX_PROGRAMS];

static size_t home_of(uintptr_t loaded)
{
	return (loaded >> 4) * 0x9e3779b1u % MAX_PROGRAMS;
}

/* The next row of a program, from row *at on; NULL: none.  *at: where to go on. */
static struct gpc_pjrt_program *next_row(uintptr_t loaded, size_t *at)
{
	for (; *at < MAX_PROGRAMS; ++*at) {
		struct gpc_pjrt_program *row = &programs[(home_of(loaded) + *at) % MAX_PROGRAMS];
		uintptr_t known = atomic_load_explicit(&row->loaded, memory_order_acquire);

		if (!known)
			return NULL;
		if (known == loaded) {
			++*at;
			return row;
		}
	}
	return NULL;
}

static struct gpc_pjrt_program *find_program(uintptr_t loaded)
{
	size_t at = 0;

	return next_row(loaded, &at);
}

static struct gpc_pjrt_program *claim_program(uintptr_t loaded)
{
	for (size_t i = 0; i < MAX_PROGRAMS; i++) {
		struct gpc_pjrt_program *row = &programs[(home_of(loaded) + i) % MAX_PROGRAMS];
		uintptr_t known = atomic_load(&row->loaded);

		if ((known == 0 || known == ENDED) &&
			atomic_compare_exchange_strong(&row->loaded, &known, CLAIMED))
			return row;
	}
	return NULL;
}

static bool has_place(enum pjrt_place place)
{
	const struct pjrt_table *own = atomic_load_explicit(&gpc_pjrt_own, memory_order_acquire);

	return own->size >= offsetof(struct pjrt_table, fns) + (place + 1) * sizeof(pjrt_fn *);
}

/* Fills in what is known of a program; false if the plugin does not say. */
static bool read_program(void *loaded, struct gpc_pjrt_program *program)
{
	struct pjrt_memory_needed needed = { .ret_code = 0 };
	struct pjrt_word executable = { .ret.pointer = NULL };
	struct pjrt_word n = { .ret.number = 0 };
	struct pjrt_word end;
	struct pjrt_text name = { .ret_size = 0 };
	bool is_known;

	if (!GPC_PJRT_ASK(PJRT_LOADED_EXECUTABLE, &executable, loaded))
		return false;
	is_known = GPC_PJRT_ASK(PJRT_EXECUTABLE_OUTPUTS, &n, executable.ret.pointer) &&
		   GPC_PJRT_ASK(PJRT_EXECUTABLE_NAME, &name, executable.ret.pointer);
	if (is_known) {
		size_t size = gpc_smaller(name.ret_size, sizeof program->needs.name - 1);

		memset(&program->needs, 0, sizeof program->needs);
		memcpy(program->needs.name, name.ret_text, size);
		program->n_outputs = n.ret.number;
	}
	if (is_known && has_place(PJRT_MEMORY_NEEDED) &&
		GPC_PJRT_ASK(PJRT_MEMORY_NEEDED, &needed, executable.ret.pointer)) {
		program->needs.temporaries = (uint64_t)needed.ret_temporaries;
		program->needs.arguments = (uint64_t)needed.ret_arguments;
		program->needs.outputs =
			gpc_bytes_less((uint64_t)needed.ret_outputs, (uint64_t)needed.ret_aliased);
		program->needs.code = (uint64_t)needed.ret_code;
	}
	(void)GPC_PJRT_ASK(PJRT_EXECUTABLE_DESTROY, &end, executable.ret.pointer);
	return is_known;
}

const struct gpc_pjrt_program *gpc_pjrt_program_of(void *loaded, struct gpc_pjrt_program *room)
{
	struct gpc_pjrt_program *program = find_program((uintptr_t)loaded);

	if (program)
		return program;
	if (!read_program(loaded, room))
		return NULL;
	program = claim_program((uintptr_t)loaded);
	if (!program)
		return room;
	program->n_outputs = room->n_outputs;
	program->needs = room->needs;
	atomic_store_explicit(&program->loaded, (uintptr_t)loaded, memory_order_release);
	return program;
}

bool gpc_pjrt_program_of_size(uint64_t temporaries, struct gpucache_oom_program *ret_needs)
{
	for (size_t i = 0; temporaries && i < MAX_PROGRAMS; i++) {
		struct gpc_pjrt_program *row = &programs[i];
		uintptr_t loaded = atomic_load_explicit(&row->loaded, memory_order_acquire);
		uint64_t own;

		if (loaded <= ENDED)
			continue;
		*ret_needs = row->needs;
		atomic_thread_fence(memory_order_acquire);
		own = ret_needs->temporaries;
		if (gpc_larger(own, temporaries) - gpc_smaller(own, temporaries) <=
				temporaries / 128 &&
			atomic_load_explicit(&row->loaded, memory_order_relaxed) == loaded)
			return true;
	}
	return false;
}

/* Of threads that execute a program for the first time, each may have claimed a row. */
void gpc_pjrt_program_end(const void *loaded)
{
	struct gpc_pjrt_program *row;
	size_t at = 0;

	while ((row = next_row((uintptr_t)loaded, &at)))
		atomic_store_explicit(&row->loaded, ENDED, memory_order_release);
}
