/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes recordings for tests directly from include/gpucache_format.h: a test fills slots, appends records to
 * append-only regions, and writes the file unchecked.
 *
 * Threads     One.
 * Failure     Ends the test program: a test cannot go on without its file.
 * Limits      Fixed sizes, see the enum.
 */
#ifndef GPC_TESTS_RECORDING_BUILDER_H
#define GPC_TESTS_RECORDING_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#include "gpucache_format.h"

enum {
	BUILDER_DEVICES = 2,
	BUILDER_COUNTERS = 4,
	BUILDER_SITES = 32,
	BUILDER_SEGMENTS = 16,
	BUILDER_BLOCKS = 64,
	BUILDER_EVENTS = 16,
	BUILDER_POINTS = 8,
	BUILDER_PEAKS = 2 * BUILDER_DEVICES,
	BUILDER_OOMS = 4,
	BUILDER_APPEND_BYTES = 16384,
};

/* 2026-08-09 14:00:00 UTC, and a monotonic clock that stood at 1000 s. */
#define BUILDER_START_REALTIME_NS  (UINT64_C(1786284000) * 1000000000)
#define BUILDER_START_MONOTONIC_NS (UINT64_C(1000) * 1000000000)

struct recording_builder {
	unsigned char *data;
	size_t size;
	struct gpucache_header *header;
	struct gpucache_device *devices;
	struct gpucache_counters *counters;
	struct gpucache_site *sites;
	struct gpucache_segment *segments;
	struct gpucache_block *blocks;
	struct gpucache_event *events;
	struct gpucache_peak *peaks;
	struct gpucache_oom *ooms;
	struct gpucache_history_head *history;
	uint64_t n_events;
	uint32_t n_blocks;
	uint32_t n_stacks;
	uint32_t n_codes;
	uint32_t n_tags;
};

/* An empty recording of a process that ended, with everything it needs to be read. */
void builder_init(struct recording_builder *builder);
void builder_fini(struct recording_builder *builder);
void builder_write(const struct recording_builder *builder, const char *path);
/* Writes dir/name, and ends the builder. */
void builder_end(struct recording_builder *builder, const char *dir, const char *name);

void *builder_region(const struct recording_builder *builder, enum gpucache_region_kind kind);
struct gpucache_region *builder_entry(
	const struct recording_builder *builder, enum gpucache_region_kind kind);
void builder_append(struct recording_builder *builder, enum gpucache_region_kind kind,
	const void *data, size_t size);

/* Return the id of the new record. */
uint32_t builder_stack(struct recording_builder *builder, const uint64_t *native, unsigned n_native,
	const uint64_t *python, unsigned n_python);
uint32_t builder_code(struct recording_builder *builder, const char *name, const char *file,
	uint16_t version, uint32_t first_line, const void *lines, size_t lines_size);
uint32_t builder_tag(struct recording_builder *builder, uint32_t parent, const char *name);
void builder_module(struct recording_builder *builder, const char *path, uint64_t start,
	uint64_t end, uint64_t bias);
void builder_line(struct recording_builder *builder, const char *line);

/* A live block of device 0, and the counters that go with it. */
struct gpucache_block *builder_live(struct recording_builder *builder, uint64_t requested,
	uint64_t size, uint32_t stack, double at_s);
void builder_event(struct recording_builder *builder, enum gpucache_event_kind kind, uint64_t size,
	double at_s);

/* Set-up and teardown of a test: *state is an initialised builder, with an empty file to write. */
struct recording_file {
	struct recording_builder b;
	char path[64];
};
int recording_file_begin(void **state);
int recording_file_end(void **state);

/* A moment, in seconds after the start. */
uint64_t builder_ns(double seconds);

#endif
