/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens and closes the recording.  OPENED is stored last, so a reader sees a complete header or none.  At the end of
 * the process only the time of the end and bits of the state word are stored.  Without a file all regions lie in
 * private memory.
 */
#include "record/record.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metamem.h"
#include "record/identity.h"
#include "record/layout.h"
#include "record/place.h"

#define DEFAULT_DEVICES 8u

_Static_assert(GPC_RECORD_MAX_PATH == GPC_PLACE_MAX_PATH, "one length for a path");

/* Makes `rec` a closed recording.  Frees nothing. */
static void forget(struct gpc_record *rec)
{
	memset(rec, 0, sizeof *rec);
	rec->fd = -1;
	gpc_lock_init(&rec->lock, GPC_RANK_RECORD);
	gpc_lock_init(&rec->event_lock, GPC_RANK_EVENTS);
	for (unsigned i = 0; i < GPUCACHE_MAX_DEVICES; i++) {
		gpc_lock_init(&rec->site_locks[i].lock, GPC_RANK_SITES);
		gpc_window_clock_init(&rec->site_locks[i].clock);
	}
}

static size_t choose_size(const struct gpc_record_params *params)
{
	size_t size = params->size ? params->size : GPC_RECORD_DEFAULT_SIZE;

	size = gpc_larger(GPC_RECORD_MIN_SIZE, gpc_smaller(size, GPC_RECORD_MAX_SIZE));
	return size & ~(size_t)(GPUCACHE_PAGE - 1);
}

static void write_header(struct gpc_record *rec, const struct gpc_record_params *params,
	const struct gpucache_header *identity, const struct gpc_layout *layout)
{
	struct gpucache_header *header = rec->header;
	const char *version = params->version ? params->version : "";

	*header = *identity;
	memcpy(header->magic, GPUCACHE_FORMAT_MAGIC, sizeof header->magic);
	header->endian = GPUCACHE_ENDIAN;
	header->major = GPUCACHE_FORMAT_MAJOR;
	header->minor = GPUCACHE_FORMAT_MINOR;
	header->header_size = GPUCACHE_PAGE;
	header->n_regions = layout->n_regions;
	header->file_size = rec->size;
	header->start_monotonic_ns = gpc_clock_monotonic_ns();
	header->start_realtime_ns = gpc_clock_realtime_ns();
	header->start_boottime_ns = gpc_clock_read(CLOCK_BOOTTIME);
	header->driver_version = params->driver_version > 0 ? (uint32_t)params->driver_version : 0;
	header->sample_bytes = params->sample_bytes;
	gpc_identity_copy_text(header->version, sizeof header->version, version, strlen(version));
	memcpy(header->regions, layout->regions, sizeof layout->regions);
}

static void *region_base(const struct gpc_record *rec, enum gpucache_region_kind kind)
{
	return rec->base + rec->regions[kind]->offset;
}

/* Sets the region pointers, by kind. */
static void set_pointers(struct gpc_record *rec)
{
	for (uint32_t i = 0; i < rec->header->n_regions; i++) {
		const struct gpucache_region *region = &rec->header->regions[i];

		rec->regions[region->kind] = region;
	}
	rec->pages = region_base(rec, GPUCACHE_REGION_PAGES);
	rec->blocks = region_base(rec, GPUCACHE_REGION_BLOCKS);
	rec->events = region_base(rec, GPUCACHE_REGION_EVENTS);
	rec->sites = region_base(rec, GPUCACHE_REGION_SITES);
	rec->segments = region_base(rec, GPUCACHE_REGION_SEGMENTS);
	rec->counters = region_base(rec, GPUCACHE_REGION_COUNTERS);
	rec->torch = region_base(rec, GPUCACHE_REGION_TORCH);
	rec->streams = region_base(rec, GPUCACHE_REGION_STREAMS);
	rec->n_blocks = (uint32_t)rec->regions[GPUCACHE_REGION_BLOCKS]->count;
	rec->n_events = (uint32_t)rec->regions[GPUCACHE_REGION_EVENTS]->count;
	rec->n_sites = (uint32_t)rec->regions[GPUCACHE_REGION_SITES]->count;
	rec->n_segments = (uint32_t)rec->regions[GPUCACHE_REGION_SEGMENTS]->count;
	rec->n_counters = (uint32_t)rec->regions[GPUCACHE_REGION_COUNTERS]->count;
	rec->n_devices = (uint32_t)rec->regions[GPUCACHE_REGION_DEVICES]->count;
}

/* Stores -1 for the device in unused records, where a zero would mean device 0. */
static void write_unused(struct gpc_record *rec, uint32_t max_points)
{
	struct gpucache_device *devices = region_base(rec, GPUCACHE_REGION_DEVICES);
	unsigned char *history = region_base(rec, GPUCACHE_REGION_HISTORY);

	for (uint32_t i = 0; i < rec->n_devices; i++) {
		struct gpucache_history_head *head =
			(void *)(history +
				 (size_t)i * rec->regions[GPUCACHE_REGION_HISTORY]->record_size);

		devices[i].ordinal = -1;
		head->device = -1;
		head->max_points = max_points;
		gpc_record_mark(rec, head, sizeof *head);
	}
	gpc_record_mark(rec, devices, rec->n_devices * sizeof *devices);
	gpc_record_mark_page(rec, rec->header);
	gpc_record_mark_page(rec, rec->pages);
}

static void append_variable(void *arg, const char *line)
{
	gpc_record_append_line(arg, line);
}

struct opening {
	struct gpc_record *rec;
	const struct gpc_record_params *params;
	struct gpucache_header identity;
};

/* Makes zeroed memory an empty recording. */
static void write_start(void *arg, void *base, size_t size)
{
	struct opening *opening = arg;
	struct gpc_record *rec = opening->rec;
	uint32_t n_devices =
		opening->params->n_devices ? opening->params->n_devices : DEFAULT_DEVICES;
	struct gpc_layout layout;

	rec->base = base;
	rec->size = size;
	rec->header = base;
	gpc_layout_make(&layout, size, (uint32_t)gpc_smaller(n_devices, GPUCACHE_MAX_DEVICES));
	write_header(rec, opening->params, &opening->identity, &layout);
	set_pointers(rec);
	write_unused(rec, layout.max_points);
	atomic_store(&rec->stream_end, 1);
	gpc_identity_each_variable(append_variable, rec);
	gpc_record_state_add(rec, GPUCACHE_STATE_OPENED);
}

/* On GPC_OK the recording is a file.  On failure `rec` has no memory yet. */
static enum gpc_status open_file(struct opening *opening, size_t size)
{
	const struct gpc_place_wish wish = {
		.size = size, .least = GPC_RECORD_MIN_SIZE, .fill = write_start, .arg = opening
	};
	struct gpc_record *rec = opening->rec;
	struct gpc_place place;
	enum gpc_status st;

	st = gpc_place_open(&place, opening->params->pattern, &opening->identity, &wish);
	/* write_start may have set pointers into a file that was unmapped because it could not be named. */
	if (st)
		forget(rec);
	rec->pattern_errno = place.pattern_errno;
	rec->pattern_error = place.pattern_error;
	rec->is_name_taken = place.is_name_taken;
	rec->default_errno = place.default_errno;
	if (st)
		return st;
	rec->fd = place.fd;
	rec->file = place.file;
	memcpy(rec->path, place.path, sizeof rec->path);
	return GPC_OK;
}

static size_t size_of_site_table(const struct gpc_record *rec)
{
	return (size_t)rec->n_devices * rec->n_sites * sizeof *rec->site_of;
}

static size_t size_of_windows(const struct gpc_record *rec)
{
	return rec->n_sites * sizeof *rec->windows;
}

/* Only touched pages take memory. */
static void end_sites(struct gpc_record *rec)
{
	gpc_metamem_unmap(rec->site_of, size_of_site_table(rec));
	gpc_metamem_unmap(rec->windows, size_of_windows(rec));
}

/* If there is no memory for the tables, SITES stay empty, and all else is recorded. */
static void start_sites(struct gpc_record *rec)
{
	rec->windows = gpc_metamem_map(size_of_windows(rec));
	rec->site_of = rec->windows ? gpc_metamem_map(size_of_site_table(rec)) : NULL;
	atomic_store(&rec->site_end, 1);
}

enum gpc_status gpc_record_open(struct gpc_record *rec, const struct gpc_record_params *params)
{
	struct opening opening = { .rec = rec, .params = params };
	size_t size = choose_size(params);
	enum gpc_status st = GPC_OK;
	int error = 0;
	void *base;

	forget(rec);
	gpc_identity_read(&opening.identity, params->rank);
	if (!params->is_private) {
		st = open_file(&opening, size);
		error = errno;
		if (st == GPC_OK) {
			start_sites(rec);
			return GPC_OK;
		}
	}
	base = gpc_metamem_map(size);
	if (!base)
		return GPC_NO_METADATA;
	write_start(&opening, base, size);
	start_sites(rec);
	errno = error;
	return st;
}

void gpc_record_state_add(struct gpc_record *rec, uint32_t bits)
{
	if (rec->header)
		__atomic_fetch_or(&rec->header->state, bits, __ATOMIC_RELEASE);
}

void gpc_record_end(struct gpc_record *rec, uint64_t now_ns)
{
	if (!rec->header)
		return;
	__atomic_store_n(&rec->header->end_ns, now_ns, __ATOMIC_RELAXED);
	gpc_record_state_add(rec, GPUCACHE_STATE_CLEAN_EXIT);
}

void gpc_record_end_without_handlers(struct gpc_record *rec, uint64_t now_ns)
{
	if (!rec->header ||
		__atomic_load_n(&rec->header->state, __ATOMIC_RELAXED) & GPUCACHE_STATE_CLEAN_EXIT)
		return;
	__atomic_store_n(&rec->header->end_ns, now_ns, __ATOMIC_RELAXED);
	gpc_record_state_add(rec, GPUCACHE_STATE_EXITED);
}

bool gpc_record_discard_unused(struct gpc_record *rec)
{
	struct stat st;

	if (!rec->header || !rec->path[0] || !gpc_io_is(rec->fd, &rec->file))
		return false;
	for (uint32_t i = 0; i < rec->n_counters; i++)
		if (__atomic_load_n(&rec->counters[i].context, __ATOMIC_RELAXED))
			return false;
	/* Another file may have the name now. */
	if (lstat(rec->path, &st) || st.st_dev != rec->file.device || st.st_ino != rec->file.inode)
		return false;
	return unlink(rec->path) == 0;
}

void gpc_record_mute(struct gpc_record *rec)
{
	rec->n_blocks = 0;
	rec->events = NULL;
}

void gpc_record_close(struct gpc_record *rec)
{
	if (!rec->base)
		return;
	end_sites(rec);
	if (rec->fd < 0)
		gpc_metamem_unmap(rec->base, rec->size);
	else
		munmap(rec->base, rec->size);
	gpc_io_close(rec->fd, &rec->file);
	forget(rec);
}

void gpc_record_detach(struct gpc_record *rec)
{
	if (!rec->base)
		return;
	end_sites(rec);
	/* At the same address: pointers that the child inherited must not reach unmapped memory or another mapping. */
	if (mmap(rec->base, rec->size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		munmap(rec->base, rec->size);
	gpc_io_close(rec->fd, &rec->file);
	forget(rec);
}
