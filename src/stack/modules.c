/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dl_iterate_phdr reports how many objects the loader has opened and closed.  If a number has changed, a scan writes new
 * mappings into a buffer, which goes to the sink after the loader's lock is released, and then marks as gone what it
 * did not see.
 */
#include "stack/modules.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/metamem.h"
#include "base/saturating.h"
#include "base/text.h"

/* A pass writes at most the 1,000 to 2,000 records that fit into its buffer.  A scan makes at most MAX_LOOKS passes. */
#define BATCH_BYTES (256u << 10)
#define MAX_LOOKS   8

struct gpc_module {
	/* The identity of a mapping. */
	uint64_t start;
	uint64_t end;
	uint64_t bias;
	uint64_t build_hash;

	uint32_t generation;
	uint32_t scan; /* the last that saw the mapping */
	bool is_gone;
	char name[GPC_MODULE_NAME]; /* without folders */
};

struct batch {
	struct gpc_modules *modules;
	uint32_t scan; /* its number; 0: no object was reported yet */
	struct gpc_loader_counts counts;
	uint64_t time_ns;
	uint32_t used;
	bool is_cut;
	bool has_turned; /* a mapping came back, or took the place of another one */
	char path[GPUCACHE_MAX_PATH];
	char exe[GPUCACHE_MAX_PATH];
	char directory[GPUCACHE_MAX_PATH]; /* the working directory, for relative paths */
	char records[BATCH_BYTES];
};

_Atomic uint64_t gpc_modules_unloads;

/* The address as recorded. */
static uint64_t in_generation(uint32_t generation, uint64_t address)
{
	return generation * (UINT64_C(1) << 48) + address;
}

#define IN_PROGRESS UINT64_C(0xffff)
#define ONE_ENDED   (IN_PROGRESS + 1)

int gpc_modules_unload(int (*close)(void *handle), void *handle)
{
	int result;

	atomic_fetch_add_explicit(&gpc_modules_unloads, 1, memory_order_acq_rel);
	result = close(handle);
	atomic_fetch_add_explicit(&gpc_modules_unloads, ONE_ENDED - 1, memory_order_acq_rel);
	return result;
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

/* Writes the object's path to batch->path, and returns its length.  A relative path with a folder becomes absolute. */
static uint32_t make_path(struct batch *batch, const char *name)
{
	char *path = batch->path;
	size_t prefix = 0;
	size_t n;

	/* The loader has no name for the main program. */
	if (!name || !*name)
		name = batch->exe;
	if (*name != '/' && strchr(name, '/')) {
		prefix = strlen(batch->directory);
		memcpy(path, batch->directory, prefix);
		if (prefix < GPUCACHE_MAX_PATH - 1)
			path[prefix++] = '/';
	}
	n = strnlen(name, GPUCACHE_MAX_PATH - 1 - prefix);
	memcpy(path + prefix, name, n);
	path[prefix + n] = '\0';
	return (uint32_t)(prefix + n);
}

/* --- The table -------------------------------------------------------------------------------- */

static bool is_in(const struct gpc_module *module, uint64_t address)
{
	return address >= module->start && address < module->end;
}

/* The number of mappings that start at or below `address`. */
static uint32_t count_to_locked(const struct gpc_modules *modules, uint64_t address)
{
	uint32_t low = 0, high = modules->n_known;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (modules->known[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct gpc_module *find_locked(struct gpc_modules *modules, const struct gpc_module *wanted)
{
	for (uint32_t i = count_to_locked(modules, wanted->start); i > 0; i--) {
		struct gpc_module *module = &modules->known[i - 1];

		if (module->start != wanted->start)
			break;
		if (module->end == wanted->end && module->bias == wanted->bias &&
			module->build_hash == wanted->build_hash)
			return module;
	}
	return NULL;
}

/* From now on frames in this mapping's place are looked up. */
static void attend_locked(struct gpc_modules *modules, const struct gpc_module *module)
{
	uint64_t start = atomic_load_explicit(&modules->start, memory_order_relaxed);
	uint64_t end = atomic_load_explicit(&modules->end, memory_order_relaxed);

	if (!end || module->start < start)
		atomic_store_explicit(&modules->start, module->start, memory_order_relaxed);
	if (module->end > end)
		atomic_store_explicit(&modules->end, module->end, memory_order_relaxed);
}

/* Adds a mapping, which gets a generation of its own if another one was in its place. */
static void add_locked(struct gpc_modules *modules, struct gpc_module *module)
{
	uint32_t at = count_to_locked(modules, module->start);

	for (uint32_t i = 0; i < modules->n_known && !module->generation; i++)
		if (modules->known[i].start < module->end && module->start < modules->known[i].end)
			module->generation = ++modules->n_generations;
	if (module->generation)
		attend_locked(modules, module);
	memmove(&modules->known[at + 1], &modules->known[at],
		(modules->n_known - at) * sizeof *module);
	modules->known[at] = *module;
	modules->n_known++;
}

/* *ret_is_loaded: a mapping that is loaded has the address. */
static uint32_t generation_of_locked(
	const struct gpc_modules *modules, uint64_t address, bool *ret_is_loaded)
{
	uint32_t generation = 0;

	/* Loaded mappings do not overlap, so none beyond the first can have the address. */
	for (uint32_t i = count_to_locked(modules, address); i > 0; i--) {
		const struct gpc_module *module = &modules->known[i - 1];

		if (!module->is_gone) {
			*ret_is_loaded = is_in(module, address);
			return *ret_is_loaded ? module->generation : generation;
		}
		if (is_in(module, address))
			generation = GPC_NO_GENERATION;
	}
	*ret_is_loaded = false;
	return generation;
}

/* --- Scans ------------------------------------------------------------------------------------ */

/* Adds the mapping to the table and its record to the batch. */
static void add_mapping_locked(struct batch *batch, struct gpc_module *module, const char *name,
	const uint8_t *build_id, uint32_t build_id_size)
{
	uint32_t path_size = make_path(batch, name) + 1;
	struct gpucache_module record = {
		.size = (uint32_t)gpc_round_up(sizeof(record) + path_size, 8),
		.build_id_size = build_id_size,
		.time_ns = batch->time_ns,
	};
	char *to = batch->records + batch->used;

	if (batch->modules->n_known == GPUCACHE_MAX_MODULES)
		return;
	if (record.size > BATCH_BYTES - batch->used) {
		batch->is_cut = true;
		return;
	}
	gpc_format(module->name, sizeof module->name, "%s", gpc_base_name(batch->path));
	add_locked(batch->modules, module);
	batch->has_turned |= module->generation != 0;
	record.start = in_generation(module->generation, module->start);
	record.end = in_generation(module->generation, module->end);
	record.bias = in_generation(module->generation, module->bias);
	memcpy(record.build_id, build_id, build_id_size);
	memset(to, 0, record.size);
	memcpy(to, &record, sizeof(record));
	memcpy(to + sizeof(record), batch->path, path_size);
	batch->used += record.size;
}

static void look_at_mapping_locked(struct batch *batch, struct gpc_module *module, const char *name,
	const uint8_t *build_id, uint32_t build_id_size)
{
	struct gpc_module *known = find_locked(batch->modules, module);

	if (known) {
		batch->has_turned |= known->is_gone;
		known->scan = batch->scan;
		known->is_gone = false;
	} else {
		add_mapping_locked(batch, module, name, build_id, build_id_size);
	}
}

static int each_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct batch *batch = arg;
	struct gpc_modules *modules = batch->modules;
	uint8_t build_id[sizeof(((struct gpucache_module *)0)->build_id)];
	uint32_t build_id_size = find_build_id(info, build_id, sizeof(build_id));

	(void)size;
	gpc_lock_take(&modules->lock);
	if (!batch->scan) {
		batch->scan = ++modules->n_scans;
		batch->counts = (struct gpc_loader_counts){ info->dlpi_adds, info->dlpi_subs };
	}
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		struct gpc_module module = {
			.start = info->dlpi_addr + segment->p_vaddr,
			.end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz,
			.bias = info->dlpi_addr,
			.build_hash = gpc_hash_bytes(
				GPC_HASH_START ^ build_id_size, build_id, build_id_size),
			.scan = batch->scan,
		};

		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X))
			look_at_mapping_locked(
				batch, &module, info->dlpi_name, build_id, build_id_size);
	}
	gpc_lock_release(&modules->lock);
	return 0;
}

static void send(const struct batch *batch)
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

/* Marks as gone what the scan did not see, unless a later scan has finished. */
static void finish(const struct batch *batch)
{
	struct gpc_modules *modules = batch->modules;
	uint64_t start = UINT64_MAX, end = 0;

	gpc_lock_take(&modules->lock);
	if (batch->scan > modules->last_scan) {
		modules->last_scan = batch->scan;
		modules->counts = batch->counts;
		for (uint32_t i = 0; i < modules->n_known; i++) {
			struct gpc_module *module = &modules->known[i];

			if (module->scan >= batch->scan || module->is_gone)
				continue;
			module->is_gone = true;
			attend_locked(modules, module);
			start = gpc_smaller(start, module->start);
			end = gpc_larger(end, module->end);
		}
	}
	if (end && modules->walk)
		gpc_walk_forget(modules->walk, start, end);
	if (end || batch->has_turned)
		atomic_fetch_add_explicit(&modules->n_turns, 1, memory_order_release);
	gpc_lock_release(&modules->lock);
}

static void read_paths(struct batch *batch)
{
	ssize_t n = readlink("/proc/self/exe", batch->exe, sizeof(batch->exe) - 1);

	batch->exe[n > 0 ? n : 0] = '\0';
	if (!getcwd(batch->directory, sizeof(batch->directory)))
		batch->directory[0] = '\0';
}

/* Scans, in several passes if the buffer fills. */
static enum gpc_status scan(struct gpc_modules *modules)
{
	struct batch *batch = gpc_metamem_map(sizeof *batch);

	if (!batch)
		return GPC_NO_METADATA;
	batch->modules = modules;
	batch->time_ns = gpc_clock_monotonic_ns();
	read_paths(batch);
	for (int i = 0; i < MAX_LOOKS; i++) {
		batch->scan = 0;
		batch->used = 0;
		batch->is_cut = false;
		batch->has_turned = false;
		dl_iterate_phdr(each_object, batch);
		send(batch);
		finish(batch);
		if (!batch->is_cut)
			break;
	}
	gpc_metamem_unmap(batch, sizeof *batch);
	return GPC_OK;
}

static int first_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(struct gpc_loader_counts *)arg =
		(struct gpc_loader_counts){ info->dlpi_adds, info->dlpi_subs };
	return 1;
}

static bool is_scanned(struct gpc_modules *modules, const struct gpc_loader_counts *counts)
{
	bool is_same;

	gpc_lock_take(&modules->lock);
	is_same = counts->n_opened == modules->counts.n_opened &&
		  counts->n_closed == modules->counts.n_closed;
	gpc_lock_release(&modules->lock);
	return is_same;
}

void gpc_modules_look(struct gpc_modules *modules)
{
	uint64_t unloads = atomic_load_explicit(&gpc_modules_unloads, memory_order_acquire);
	struct gpc_loader_counts counts = { 0 };

	GPC_CHECK(!gpc_lock_is_any_held());
	dl_iterate_phdr(first_object, &counts);
	/* Without memory the counts stay as they are, so the next look tries again. */
	if (!is_scanned(modules, &counts) && scan(modules) != GPC_OK)
		return;
	/* While a call is in progress, each capture looks: the call may unload after this look. */
	if (!(unloads & IN_PROGRESS))
		atomic_store_explicit(&modules->watched, unloads, memory_order_release);
}

/* --- Frames ----------------------------------------------------------------------------------- */

bool gpc_modules_mark_all(struct gpc_modules *modules, uint64_t *frames, uint32_t n)
{
	uint64_t start = atomic_load_explicit(&modules->start, memory_order_relaxed);
	uint64_t end = atomic_load_explicit(&modules->end, memory_order_relaxed);
	bool has_looked = false;
	bool is_sure = true;

	for (uint32_t i = 0; i < n; i++) {
		/* If a call is its function's last instruction, it returns to what lies behind. */
		uint64_t call = frames[i] - 1;
		bool is_loaded = false;
		uint32_t generation;

		if (call < start || call >= end)
			continue;
		gpc_lock_take(&modules->lock);
		generation = generation_of_locked(modules, call, &is_loaded);
		gpc_lock_release(&modules->lock);
		if (!is_loaded && !has_looked) {
			gpc_modules_look(modules);
			has_looked = true;
			i--;
			continue;
		}
		is_sure &= is_loaded;
		frames[i] = in_generation(generation, frames[i]);
	}
	return is_sure;
}

/* The mapping that the frame is, or was, in; NULL: it has no record. */
static const struct gpc_module *owner_locked(struct gpc_modules *modules, uint64_t frame)
{
	uint64_t address = GPUCACHE_FRAME_ADDRESS(frame);

	for (uint32_t i = count_to_locked(modules, address - 1); i > 0; i--) {
		const struct gpc_module *module = &modules->known[i - 1];

		if (is_in(module, address - 1) &&
			in_generation(module->generation, address) == frame)
			return module;
	}
	return NULL;
}

void gpc_modules_find(
	struct gpc_modules *modules, uint64_t frame, struct gpc_module_place *ret_place)
{
	uint64_t address = GPUCACHE_FRAME_ADDRESS(frame);
	const struct gpc_module *module;
	uint64_t now = address;

	*ret_place = (struct gpc_module_place){ .address = address };
	(void)gpc_modules_mark(modules, &now, 1);
	ret_place->is_loaded = now == frame;
	if (ret_place->is_loaded)
		return;
	gpc_lock_take(&modules->lock);
	module = owner_locked(modules, frame);
	if (module) {
		memcpy(ret_place->name, module->name, sizeof module->name);
		ret_place->offset = address - module->bias;
	}
	gpc_lock_release(&modules->lock);
}

enum gpc_status gpc_modules_init(
	struct gpc_modules *modules, const struct gpc_stack_sink *sink, struct gpc_walk *walk)
{
	enum gpc_status st;

	*modules = (struct gpc_modules){ .sink = *sink, .walk = walk, .watched = UINT64_MAX };
	gpc_lock_init(&modules->lock, GPC_RANK_MODULES);
	modules->known = gpc_metamem_map(GPUCACHE_MAX_MODULES * sizeof(struct gpc_module));
	if (!modules->known)
		return GPC_NO_METADATA;
	st = scan(modules);
	if (st != GPC_OK)
		gpc_modules_fini(modules);
	return st;
}

void gpc_modules_fini(struct gpc_modules *modules)
{
	gpc_metamem_unmap(modules->known, GPUCACHE_MAX_MODULES * sizeof(struct gpc_module));
	modules->known = NULL;
}
