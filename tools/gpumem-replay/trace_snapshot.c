/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces from PyTorch's memory snapshots: a pickle by torch.cuda.memory._dump_snapshot, or the same as JSON.
 *
 *   device_traces[N]   the history of GPU N: alloc, free_requested, oom and others, oldest first
 *   segments           the state at the end
 *
 * PyTorch keeps only the last entries of the history, so blocks may have been live before its first one.  A walk back
 * from the segments finds these blocks: a free adds a block, an allocation removes it.
 *
 * PyTorch returns its idle segments to the driver when the program calls empty_cache(), which is replayed, and when the
 * driver has refused a segment, which is not: on another device it may not be refused.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/size_class.h"
#include "format/array.h"
#include "format/memory.h"
#include "tools/gpumem-replay/trace_file.h"
#include "tools/gpumem-replay/trace_pickle.h"
#include "tools/replay/trace_build.h"

/* A block that may have been live before the history. */
struct held {
	uint64_t address;
	uint64_t size;
	uint64_t stream;
	bool is_born_later; /* the walk found the block's allocation in the history */
};

struct snapshot {
	struct gpc_trace_builder *builder;
	struct json_object *root;
	struct json_object *entries; /* the history of the device */
	struct gpc_address_map map;  /* address -> index into held, + 1 */
	struct held *held;
	size_t n_held;
	size_t n_room;
	const char *free_action; /* the action of an entry that is the program's free */
	uint64_t reserved;       /* by PyTorch, before the entry that is being added */
	uint64_t most_reserved;
	int device;
};

static uint64_t number_of(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	(void)json_object_object_get_ex(object, key, &value);
	return json_object_is_type(value, json_type_int) ? json_object_get_uint64(value) : 0;
}

static bool is_word(struct json_object *object, const char *key, const char *word)
{
	struct json_object *value = NULL;

	(void)json_object_object_get_ex(object, key, &value);
	return json_object_is_type(value, json_type_string) &&
	       strcmp(json_object_get_string(value), word) == 0;
}

static struct json_object *list_of(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	if (json_object_is_type(object, json_type_object))
		(void)json_object_object_get_ex(object, key, &value);
	return json_object_is_type(value, json_type_array) ? value : NULL;
}

static size_t length(const struct json_object *list)
{
	return json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
}

/* A snapshot may contain any numbers; true for those that the maps of the walk and of the trace can hold. */
static bool is_block(uint64_t address, uint64_t size)
{
	return address > 0 && address < UINT64_MAX && size > 0 && size <= GPC_SIZE_MAX;
}

static void hold(struct snapshot *snapshot, uint64_t address, uint64_t size, uint64_t stream)
{
	if (!is_block(address, size) || gpc_address_map_find(&snapshot->map, address))
		return;
	gpc_array_grow(
		&snapshot->held, sizeof *snapshot->held, snapshot->n_held, &snapshot->n_room);
	snapshot->held[snapshot->n_held++] =
		(struct held){ .address = address, .size = size, .stream = stream };
	gpc_trace_map_insert(&snapshot->map, address, (void *)(uintptr_t)snapshot->n_held);
}

/* Old snapshots lack the addresses of blocks.  Each block begins where the one before it in the segment ends. */
static void hold_segment(struct snapshot *snapshot, struct json_object *segment)
{
	struct json_object *blocks = list_of(segment, "blocks");
	uint64_t address = number_of(segment, "address");

	if (number_of(segment, "device") != (uint64_t)snapshot->device)
		return;
	for (size_t i = 0; i < length(blocks); i++) {
		struct json_object *block = json_object_array_get_idx(blocks, i);
		uint64_t size = number_of(block, "requested_size");

		if (number_of(block, "address"))
			address = number_of(block, "address");
		if (is_word(block, "state", "active_allocated"))
			hold(snapshot, address, size ? size : number_of(block, "size"),
				number_of(segment, "stream"));
		address = gpc_bytes_add(address, number_of(block, "size"));
	}
}

static void find_held(struct snapshot *snapshot)
{
	struct json_object *segments = list_of(snapshot->root, "segments");

	for (size_t i = 0; i < length(segments); i++)
		hold_segment(snapshot, json_object_array_get_idx(segments, i));
	for (size_t i = length(snapshot->entries); i-- > 0;) {
		struct json_object *entry = json_object_array_get_idx(snapshot->entries, i);
		uint64_t address = number_of(entry, "addr");

		if (is_word(entry, "action", "alloc")) {
			uintptr_t born = (uintptr_t)gpc_address_map_take(&snapshot->map, address);

			if (born)
				snapshot->held[born - 1].is_born_later = true;
		} else if (is_word(entry, "action", snapshot->free_action)) {
			hold(snapshot, address, number_of(entry, "size"),
				number_of(entry, "stream"));
		}
	}
}

static void add_held(struct snapshot *snapshot)
{
	struct gpc_trace_recorded *recorded = &snapshot->builder->trace.recorded;

	for (size_t i = 0; i < snapshot->n_held; i++) {
		const struct held *held = &snapshot->held[i];

		if (held->is_born_later)
			continue;
		recorded->n_held_before++;
		recorded->held_before_bytes += held->size;
		gpc_trace_add(
			snapshot->builder, &(const struct gpc_trace_row){ .kind = GPC_TRACE_ALLOC,
						   .identity = held->address,
						   .size = held->size,
						   .stream = held->stream });
	}
}

/* PyTorch returned memory to the driver; of expandable segments, pages. */
static bool is_return(struct json_object *entry)
{
	return is_word(entry, "action", "segment_free") ||
	       is_word(entry, "action", "segment_unmap");
}

static bool is_growth(struct json_object *entry)
{
	return is_word(entry, "action", "segment_alloc") || is_word(entry, "action", "segment_map");
}

/* Entry `number` of the history, or NULL behind its end. */
static struct json_object *entry_at(const struct snapshot *snapshot, size_t number)
{
	return number < length(snapshot->entries)
		       ? json_object_array_get_idx(snapshot->entries, number)
		       : NULL;
}

static void follow_reserved(struct snapshot *snapshot, struct json_object *entry)
{
	uint64_t size = number_of(entry, "size");

	if (is_growth(entry))
		snapshot->reserved = gpc_bytes_add(snapshot->reserved, size);
	else if (is_return(entry))
		snapshot->reserved = gpc_bytes_less(snapshot->reserved, size);
	if (snapshot->reserved > snapshot->most_reserved)
		snapshot->most_reserved = snapshot->reserved;
}

/* Finds what PyTorch reserved before the history, and its most. */
static void find_reserved(struct snapshot *snapshot)
{
	struct json_object *segments = list_of(snapshot->root, "segments");
	uint64_t first = 0;

	for (size_t i = 0; i < length(segments); i++) {
		struct json_object *segment = json_object_array_get_idx(segments, i);

		if (number_of(segment, "device") == (uint64_t)snapshot->device)
			first = gpc_bytes_add(first, number_of(segment, "total_size"));
	}
	for (size_t i = length(snapshot->entries); i-- > 0;) {
		struct json_object *entry = entry_at(snapshot, i);

		if (is_growth(entry))
			first = gpc_bytes_less(first, number_of(entry, "size"));
		else if (is_return(entry))
			first = gpc_bytes_add(first, number_of(entry, "size"));
	}
	snapshot->reserved = snapshot->most_reserved = first;
	for (size_t i = 0; i < length(snapshot->entries); i++)
		follow_reserved(snapshot, entry_at(snapshot, i));
	snapshot->reserved = first;
}

/* True if PyTorch would have served this allocation from the segment that it returned. */
static bool would_serve(struct json_object *returned, struct json_object *alloc)
{
	uint64_t size = number_of(returned, "size");
	uint64_t wanted = number_of(alloc, "size");

	return number_of(returned, "stream") == number_of(alloc, "stream") && size >= wanted &&
	       (size > GPC_SMALL_SEGMENT) == (wanted > GPC_SMALL_MAX);
}

/*
 * True if the returns from entry `first` on are of a call of empty_cache().  After a refusal PyTorch asks for the same
 * segment again, or gives up.  It had asked only because no free block served the request, and the driver refuses
 * nothing that would have kept it below its later most.
 */
static bool is_empty_cache(const struct snapshot *snapshot, size_t first)
{
	size_t next = first;
	struct json_object *growth;

	while (next < length(snapshot->entries) && is_return(entry_at(snapshot, next)))
		next++;
	growth = entry_at(snapshot, next);
	if (!growth || !is_growth(growth))
		return !growth || !is_word(growth, "action", "oom");
	if (gpc_bytes_add(snapshot->reserved, number_of(growth, "size")) <= snapshot->most_reserved)
		return true;
	for (size_t i = first; i < next; i++)
		if (would_serve(entry_at(snapshot, i), entry_at(snapshot, next + 1)))
			return true;
	return false;
}

static void add_entry(struct snapshot *snapshot, size_t number, uint64_t first_us)
{
	struct json_object *entry = entry_at(snapshot, number);
	uint64_t us = number_of(entry, "time_us");
	struct gpc_trace_row row = { .identity = number_of(entry, "addr"),
		.size = number_of(entry, "size"),
		.stream = number_of(entry, "stream"),
		.time_ns = gpc_bytes_times(gpc_bytes_less(us, first_us), 1000),
		.line = number + 1 };

	if (is_word(entry, "action", snapshot->free_action))
		row.kind = GPC_TRACE_FREE;
	else if (is_word(entry, "action", "alloc"))
		row.kind = GPC_TRACE_ALLOC;
	else if (is_word(entry, "action", "oom"))
		row.kind = GPC_TRACE_FAILURE;
	else if (is_return(entry) && !(number > 0 && is_return(entry_at(snapshot, number - 1))) &&
		 is_empty_cache(snapshot, number))
		row.kind = GPC_TRACE_EMPTY_CACHE;
	else
		return;
	if (row.kind == GPC_TRACE_EMPTY_CACHE)
		row.identity = row.size = 0;
	else if (row.kind == GPC_TRACE_FAILURE ? !row.size : !is_block(row.identity, row.size))
		return;
	gpc_trace_add(snapshot->builder, &row);
}

/* Chooses the requested device, or the one with the most entries. */
static bool choose_device(struct snapshot *snapshot, int device, struct gpc_text *why)
{
	struct json_object *traces = list_of(snapshot->root, "device_traces");
	struct gpc_trace_recorded *recorded = &snapshot->builder->trace.recorded;
	size_t n_all = 0;

	if (!traces || device >= (int)length(traces)) {
		gpc_text_add(why,
			traces ? "the snapshot has no GPU %d"
			       : "not a snapshot of PyTorch: no device_traces",
			device);
		return false;
	}
	for (size_t i = 0; i < length(traces); i++) {
		struct json_object *entries = json_object_array_get_idx(traces, i);

		n_all += length(entries);
		if (device >= 0 ? device == (int)i
				: !snapshot->entries ||
					  length(entries) > length(snapshot->entries)) {
			snapshot->entries = entries;
			snapshot->device = (int)i;
		}
	}
	recorded->device = snapshot->device;
	recorded->n_events = length(snapshot->entries);
	recorded->first_event = recorded->n_events > 0;
	recorded->last_event = recorded->n_events;
	recorded->n_other_devices = n_all - recorded->n_events;
	return true;
}

/* "free_requested" is the program's free.  Old snapshots lack it, and have only the later "free_completed". */
static const char *free_action(const struct snapshot *snapshot)
{
	for (size_t i = 0; i < length(snapshot->entries); i++)
		if (is_word(json_object_array_get_idx(snapshot->entries, i), "action",
			    "free_requested"))
			return "free_requested";
	return "free_completed";
}

static enum gpc_status build(struct snapshot *snapshot, int device, struct gpc_text *why)
{
	uint64_t first_us;

	if (!choose_device(snapshot, device, why))
		return GPC_DAMAGED;
	snapshot->free_action = free_action(snapshot);
	/* json_object_array_get_idx() aborts if `entries` is no list. */
	first_us = length(snapshot->entries)
			   ? number_of(json_object_array_get_idx(snapshot->entries, 0), "time_us")
			   : 0;
	find_held(snapshot);
	add_held(snapshot);
	find_reserved(snapshot);
	for (size_t i = 0; i < length(snapshot->entries); i++) {
		add_entry(snapshot, i, first_us);
		follow_reserved(snapshot, entry_at(snapshot, i));
	}
	return GPC_OK;
}

static struct json_object *parse(uint8_t *data, size_t size, struct gpc_text *why)
{
	struct json_object *root;
	enum json_tokener_error error = json_tokener_success;

	if (data[0] == 0x80)
		return gpc_unpickle(data, size, why);
	data[size] = '\0'; /* the buffer is one byte longer than the file */
	root = json_tokener_parse_verbose((const char *)data, &error);
	if (!root)
		gpc_text_add(why, "not JSON: %s", json_tokener_error_desc(error));
	return root;
}

/* Reads the whole file, with room for one more byte; NULL with errno on failure. */
static uint8_t *read_file(const char *path, size_t *ret_size)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t n_room = 0;
	size_t size = 0;

	while (file && !ferror(file) && !feof(file)) {
		n_room = n_room ? 2 * n_room : 1 << 16;
		data = gpc_resize(data, n_room + 1, 1);
		size += fread(data + size, 1, n_room - size, file);
	}
	if (!file || !data || !feof(file)) {
		free(data);
		data = NULL;
	}
	if (file)
		(void)fclose(file);
	*ret_size = size;
	return data;
}

enum gpc_status gpc_trace_read_snapshot(
	const char *path, int device, struct gpc_text *why, struct gpc_trace *ret_trace)
{
	struct snapshot snapshot = { .builder = gpc_trace_begin(path, true) };
	enum gpc_status st = GPC_IO;
	size_t size = 0;
	uint8_t *data = read_file(path, &size);

	if (!data) {
		gpc_text_add(why, "%s", strerror(errno));
	} else {
		/* If `path` is a pipe, gpc_trace_read() has taken its first bytes, perhaps all of them. */
		if (!size)
			gpc_text_add(why, "the file is empty");
		snapshot.root = size ? parse(data, size, why) : NULL;
		st = snapshot.root ? build(&snapshot, device, why) : GPC_DAMAGED;
	}
	json_object_put(snapshot.root);
	gpc_address_map_fini(&snapshot.map);
	free(snapshot.held);
	free(data);
	return gpc_trace_end(snapshot.builder, st, ret_trace);
}
