/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dl_iterate_phdr reports how many objects the loader has opened.  If the number has grown, a scan writes new mappings
 * into a buffer, which goes to the sink after the loader's lock is released.
 */
#include "stack/modules.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/metamem.h"

/* A pass writes at most the 1,000 to 2,000 records that fit into its buffer.  A scan makes at most MAX_LOOKS passes. */
#define BATCH_BYTES (256u << 10)
#define MAX_LOOKS   8

struct gpc_module {
	uint64_t start;
	uint64_t end;
	uint64_t bias;
	uint64_t build_hash;
};

struct batch {
	struct gpc_modules *modules;
	char *records;
	uint32_t used;
	bool is_cut;
	uint64_t n_adds;
	uint64_t time_ns;
	char exe[GPUCACHE_MAX_PATH];
	char directory[GPUCACHE_MAX_PATH]; /* the working directory, for relative paths */
};

static uint64_t hash_bytes(const uint8_t *data, uint32_t size)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325) ^ size;

	for (uint32_t i = 0; i < size; i++)
		h = (h ^ data[i]) * UINT64_C(0x100000001b3);
	return h;
}

/* True if one segment maps [address, address + size) from the object's file. */
static bool is_mapped(const struct dl_phdr_info *info, uint64_t address, uint64_t size)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && address >= start && size <= segment->p_filesz &&
			address - start <= segment->p_filesz - size)
			return true;
	}
	return false;
}

/* Copies the build id in notes[0 .. size), truncated to `room` bytes; returns its size, 0 if there is none. */
static uint32_t find_note(
	const uint8_t *notes, uint64_t size, uint64_t align, uint8_t *ret_id, uint32_t room)
{
	uint64_t at = 0;
	ElfW(Nhdr) head;

	while (size - at >= sizeof(head)) {
		uint64_t name, data, next;

		memcpy(&head, notes + at, sizeof(head));
		name = at + sizeof(head);
		data = gpc_round_up(name + head.n_namesz, align);
		next = gpc_round_up(data + head.n_descsz, align);
		if (data > size || head.n_descsz > size - data)
			return 0;
		if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 &&
			!memcmp(notes + name, "GNU", 4)) {
			uint32_t n = head.n_descsz < room ? head.n_descsz : room;

			memcpy(ret_id, notes + data, n);
			return n;
		}
		if (next >= size)
			return 0;
		at = next;
	}
	return 0;
}

static uint32_t find_build_id(const struct dl_phdr_info *info, uint8_t *ret_id, uint32_t room)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uint64_t address = info->dlpi_addr + segment->p_vaddr;
		uint32_t n;

		if (segment->p_type != PT_NOTE || !is_mapped(info, address, segment->p_memsz))
			continue;
		n = find_note((const uint8_t *)(uintptr_t)address, segment->p_memsz,
			segment->p_align == 8 ? 8 : 4, ret_id, room);
		if (n)
			return n;
	}
	return 0;
}

/* Writes the object's path, and returns its length.  A relative path with a folder becomes absolute. */
static uint32_t make_path(const struct batch *batch, const char *name, char *ret_path)
{
	size_t prefix = 0;
	size_t n;

	/* The loader has no name for the main program. */
	if (!name || !*name)
		name = batch->exe;
	if (*name != '/' && strchr(name, '/')) {
		prefix = strlen(batch->directory);
		memcpy(ret_path, batch->directory, prefix);
		if (prefix < GPUCACHE_MAX_PATH - 1)
			ret_path[prefix++] = '/';
	}
	n = strnlen(name, GPUCACHE_MAX_PATH - 1 - prefix);
	memcpy(ret_path + prefix, name, n);
	ret_path[prefix + n] = '\0';
	return (uint32_t)(prefix + n);
}

/* True if the module is already recorded.  If not, drops the modules that it overlaps: they were unmapped. */
static bool is_known(struct gpc_modules *modules, const struct gpc_module *module)
{
	uint32_t i = 0;

	while (i < modules->n_known) {
		struct gpc_module *other = &modules->known[i];

		if (!memcmp(other, module, sizeof(*module)))
			return true;
		if (other->start < module->end && module->start < other->end)
			*other = modules->known[--modules->n_known];
		else
			i++;
	}
	return false;
}

/* Adds the mapping to the table and its record to the batch. */
static void add_mapping(struct batch *batch, const struct gpc_module *module, const char *name,
	const uint8_t *build_id, uint32_t build_id_size)
{
	struct gpc_modules *modules = batch->modules;
	char path[GPUCACHE_MAX_PATH];
	uint32_t path_size = make_path(batch, name, path) + 1;
	struct gpucache_module record = {
		.size = (uint32_t)gpc_round_up(sizeof(record) + path_size, 8),
		.build_id_size = build_id_size,
		.start = module->start,
		.end = module->end,
		.bias = module->bias,
		.time_ns = batch->time_ns,
	};
	char *to = batch->records + batch->used;

	if (modules->n_known == GPUCACHE_MAX_MODULES)
		return;
	if (record.size > BATCH_BYTES - batch->used) {
		batch->is_cut = true;
		return;
	}
	memcpy(record.build_id, build_id, build_id_size);
	memset(to, 0, record.size);
	memcpy(to, &record, sizeof(record));
	memcpy(to + sizeof(record), path, path_size);
	batch->used += record.size;
	modules->known[modules->n_known++] = *module;
}

static int each_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct batch *batch = arg;
	uint8_t build_id[sizeof(((struct gpucache_module *)0)->build_id)];
	uint32_t build_id_size = find_build_id(info, build_id, sizeof(build_id));

	(void)size;
	batch->n_adds = info->dlpi_adds;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		struct gpc_module module = {
			.start = info->dlpi_addr + segment->p_vaddr,
			.end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz,
			.bias = info->dlpi_addr,
			.build_hash = hash_bytes(build_id, build_id_size),
		};

		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) &&
			!is_known(batch->modules, &module))
			add_mapping(batch, &module, info->dlpi_name, build_id, build_id_size);
	}
	return 0;
}

static void send(struct batch *batch)
{
	const struct gpc_stack_sink *sink = &batch->modules->sink;
	struct gpucache_module head;
	uint32_t at = 0;

	while (at < batch->used) {
		memcpy(&head, batch->records + at, sizeof(head));
		(void)sink->append(
			sink->self, GPUCACHE_REGION_MODULES, batch->records + at, head.size);
		at += head.size;
	}
}

static void read_paths(struct batch *batch)
{
	ssize_t n = readlink("/proc/self/exe", batch->exe, sizeof(batch->exe) - 1);

	batch->exe[n > 0 ? n : 0] = '\0';
	if (!getcwd(batch->directory, sizeof(batch->directory)))
		batch->directory[0] = '\0';
}

/* Scans, in several passes if the buffer fills.  The caller has set is_looking, or is init. */
static enum gpc_status look(struct gpc_modules *modules)
{
	struct batch batch = { .modules = modules, .time_ns = gpc_clock_monotonic_ns() };

	batch.records = gpc_metamem_map(BATCH_BYTES);
	if (!batch.records)
		return GPC_NO_METADATA;
	read_paths(&batch);
	for (int i = 0; i < MAX_LOOKS; i++) {
		batch.used = 0;
		batch.is_cut = false;
		dl_iterate_phdr(each_object, &batch);
		send(&batch);
		if (!batch.is_cut)
			break;
	}
	gpc_metamem_unmap(batch.records, BATCH_BYTES);
	atomic_store_explicit(&modules->n_adds, batch.n_adds, memory_order_relaxed);
	return GPC_OK;
}

static int first_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uint64_t *)arg = info->dlpi_adds;
	return 1;
}

void gpc_modules_refresh(struct gpc_modules *modules)
{
	uint64_t n_adds = 0;

	GPC_CHECK(!gpc_lock_is_any_held());
	dl_iterate_phdr(first_object, &n_adds);
	if (n_adds == atomic_load_explicit(&modules->n_adds, memory_order_relaxed))
		return;
	if (atomic_exchange_explicit(&modules->is_looking, true, memory_order_acquire))
		return;
	/* Without memory n_adds stays as it is, so the next new stack tries again. */
	(void)!look(modules);
	atomic_store_explicit(&modules->is_looking, false, memory_order_release);
}

enum gpc_status gpc_modules_init(struct gpc_modules *modules, const struct gpc_stack_sink *sink)
{
	enum gpc_status st;

	*modules = (struct gpc_modules){ .sink = *sink };
	modules->known = gpc_metamem_map(GPUCACHE_MAX_MODULES * sizeof(struct gpc_module));
	if (!modules->known)
		return GPC_NO_METADATA;
	st = look(modules);
	if (st != GPC_OK)
		gpc_modules_fini(modules);
	return st;
}

void gpc_modules_fini(struct gpc_modules *modules)
{
	gpc_metamem_unmap(modules->known, GPUCACHE_MAX_MODULES * sizeof(struct gpc_module));
	modules->known = NULL;
}
