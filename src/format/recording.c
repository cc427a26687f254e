/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the file once by pread, skipping holes, then compares the region table with the file, and clamps it.  If the
 * process still runs, slots that it may have changed meanwhile are read again.  All later functions work on the copy.
 */
#include "format/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/memory.h"
#include "format/recording_internal.h"

#define READ_BYTES (64 * GPUCACHE_PAGE)

/* The longest record that we write, a history of 1,024 points, has 80 KiB. */
#define MAX_RECORD_BYTES (UINT32_C(16) << 20)

/* Bytes per read when a live file is read the second time. */
#define SETTLE_BYTES ((uint64_t)256 << 10)

#define HEADER_BYTES sizeof(struct gpucache_header)

enum region_shape {
	SHAPE_PLAIN,
	SHAPE_SEQ,  /* a seq word in the first four bytes of each record */
	SHAPE_RING, /* an event number in the first eight bytes */
	SHAPE_APPEND,
};

static const struct {
	const char *name;
	enum region_shape shape;
	uint32_t least_size; /* of a record; HISTORY: of its head */
	uint32_t most;       /* the most records that a writer creates; 0: as many as fit */
	unsigned part; /* a writer gives the region at most 1 / part of the file; 0: any part */
} kinds[GPUCACHE_REGION_COUNT] = {
	[GPUCACHE_REGION_NONE] = { "file", SHAPE_PLAIN, 0, 0, 0 },
	[GPUCACHE_REGION_DEVICES] = { "DEVICES", SHAPE_SEQ, 216, GPUCACHE_MAX_DEVICES, 0 },
	[GPUCACHE_REGION_COUNTERS] = { "COUNTERS", SHAPE_PLAIN, 256, GPUCACHE_MAX_CONTEXTS, 0 },
	[GPUCACHE_REGION_SITES] = { "SITES", SHAPE_PLAIN, 64, 0, 0 },
	[GPUCACHE_REGION_STACKS] = { "STACKS", SHAPE_APPEND, 0, 0, 4 },
	[GPUCACHE_REGION_CODES] = { "CODES", SHAPE_APPEND, 0, 0, 8 },
	[GPUCACHE_REGION_MODULES] = { "MODULES", SHAPE_APPEND, 0, 0, 8 },
	[GPUCACHE_REGION_TEXT] = { "TEXT", SHAPE_APPEND, 0, 0, 0 },
	[GPUCACHE_REGION_SEGMENTS] = { "SEGMENTS", SHAPE_SEQ, 64, 0, 0 },
	[GPUCACHE_REGION_BLOCKS] = { "BLOCKS", SHAPE_SEQ, 64, 0, 0 },
	[GPUCACHE_REGION_EVENTS] = { "EVENTS", SHAPE_RING, 64, 0, 0 },
	[GPUCACHE_REGION_HISTORY] = { "HISTORY", SHAPE_PLAIN, 64, GPUCACHE_MAX_DEVICES, 0 },
	[GPUCACHE_REGION_PEAKS] = { "PEAKS", SHAPE_SEQ, 1088, 2 * GPUCACHE_MAX_DEVICES, 0 },
	[GPUCACHE_REGION_OOMS] = { "OOMS", SHAPE_SEQ, 1632, GPUCACHE_MAX_OOMS, 0 },
	[GPUCACHE_REGION_TAGS] = { "TAGS", SHAPE_APPEND, 0, 0, 8 },
	[GPUCACHE_REGION_PAGES] = { "PAGES", SHAPE_PLAIN, 8, 0, 0 },
	[GPUCACHE_REGION_TORCH] = { "TORCH", SHAPE_PLAIN, 128, GPUCACHE_MAX_DEVICES, 0 },
	[GPUCACHE_REGION_STREAMS] = { "STREAMS", SHAPE_PLAIN, 32, GPUCACHE_MAX_STREAMS, 0 },
};

const char *gpc_region_name(enum gpucache_region_kind kind)
{
	return (unsigned)kind < GPUCACHE_REGION_COUNT ? kinds[kind].name : "unknown";
}

void gpc_recording_note(
	struct gpc_recording *recording, enum gpucache_region_kind kind, const char *format, ...)
{
	va_list args;

	if (recording->n_problems < GPC_RECORDING_MAX_PROBLEMS) {
		struct gpc_problem *problem = &recording->problems[recording->n_problems];

		problem->kind = kind;
		va_start(args, format);
		vsnprintf(problem->text, sizeof problem->text, format, args);
		va_end(args);
	}
	recording->n_problems++;
}

bool gpc_recording_has_problem(
	const struct gpc_recording *recording, enum gpucache_region_kind kind)
{
	for (unsigned i = 0; i < recording->n_problems && i < GPC_RECORDING_MAX_PROBLEMS; i++)
		if (recording->problems[i].kind == kind)
			return true;
	return false;
}

void gpc_recording_clean(char *text, size_t size)
{
	text[size - 1] = '\0';
	gpc_text_clean(text);
}

static enum gpc_status check_header(
	struct gpucache_header *header, uint64_t n_read, struct gpc_text *why)
{
	if (n_read < offsetof(struct gpucache_header, endian) ||
		memcmp(header->magic, GPUCACHE_FORMAT_MAGIC, sizeof header->magic) != 0) {
		gpc_text_add(why, "not a gpucache recording");
		return GPC_INVALID;
	}
	if (n_read < HEADER_BYTES) {
		gpc_text_add(why, "damaged: the file ends inside its header");
		return GPC_DAMAGED;
	}
	if (header->endian != GPUCACHE_ENDIAN) {
		bool swapped = header->endian == __builtin_bswap32(GPUCACHE_ENDIAN);

		gpc_text_add(why, "%s",
			swapped ? "written on a machine of the other byte order; read it there"
				: "damaged: the byte order mark is not one");
		return swapped ? GPC_VERSION : GPC_DAMAGED;
	}
	if (header->major != GPUCACHE_FORMAT_MAJOR) {
		gpc_text_add(why, "format %u.%u needs another gpumem-report; this one reads %d.x",
			(unsigned)header->major, (unsigned)header->minor, GPUCACHE_FORMAT_MAJOR);
		return GPC_VERSION;
	}
	if (header->minor < GPUCACHE_FORMAT_OLDEST) {
		gpc_text_add(why,
			"format %u.%u is from before the first release, and no longer read; record "
			"again",
			(unsigned)header->major, (unsigned)header->minor);
		return GPC_VERSION;
	}
	if (!(header->state & GPUCACHE_STATE_OPENED)) {
		gpc_text_add(why,
			"not complete: its process is only starting, or died while it started");
		return GPC_DAMAGED;
	}
	gpc_recording_clean(header->boot_id, sizeof header->boot_id);
	gpc_recording_clean(header->version, sizeof header->version);
	gpc_recording_clean(header->host, sizeof header->host);
	gpc_recording_clean(header->exe, sizeof header->exe);
	gpc_recording_clean(header->command, sizeof header->command);
	gpc_recording_clean(header->job, sizeof header->job);
	return GPC_OK;
}

/* True if the writer still holds its lock.  Our own lock, which the test takes, is released at once. */
static bool is_locked(int fd)
{
	if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
		flock(fd, LOCK_UN);
		return false;
	}
	return errno == EWOULDBLOCK;
}

static enum gpc_run_state state_of_dead(uint32_t state)
{
	if (state & GPUCACHE_STATE_CLEAN_EXIT)
		return GPC_RUN_ENDED;
	return state & GPUCACHE_STATE_EXITED ? GPC_RUN_EXITED : GPC_RUN_KILLED;
}

/* Opens the file and reads its header, which is all zero on failure.  On GPC_OK the caller owns *ret_fd. */
static enum gpc_status open_file(const char *path, struct gpucache_header *ret_header,
	uint64_t *ret_size, uint32_t *ret_owner, enum gpc_run_state *ret_state, int *ret_fd,
	struct gpc_text *why)
{
	enum gpc_status status;
	struct stat st;
	ssize_t n;
	int fd;

	/* O_NONBLOCK: opening a FIFO must not wait for a writer. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) != 0)
		goto fail_errno;
	if (!S_ISREG(st.st_mode)) {
		gpc_text_add(why, "not a regular file");
		status = GPC_INVALID;
		goto undo_open;
	}
	n = gpc_io_read_at(fd, ret_header, HEADER_BYTES, 0);
	if (n < 0)
		goto fail_errno;
	status = check_header(ret_header, (uint64_t)n, why);
	if (status != GPC_OK)
		goto undo_open;
	/* If the writer ended after the header was read, its state word says how: read it again. */
	*ret_state = GPC_RUN_ALIVE;
	if (!is_locked(fd)) {
		if (gpc_io_read_at(fd, &ret_header->state, sizeof ret_header->state,
			    offsetof(struct gpucache_header, state)) < 0)
			goto fail_errno;
		*ret_state = state_of_dead(ret_header->state);
	}
	*ret_size = (uint64_t)st.st_size;
	*ret_owner = (uint32_t)st.st_uid;
	*ret_fd = fd;
	return GPC_OK;

fail_errno:
	gpc_text_add(why, "%s", strerror(errno));
	status = GPC_IO;
undo_open:
	gpc_io_drop(fd);
	memset(ret_header, 0, sizeof *ret_header);
	return status;
}

enum gpc_status gpc_recording_peek(const char *path, struct gpucache_header *ret_header,
	enum gpc_run_state *ret_state, uint64_t *ret_file_size, uint32_t *ret_owner,
	struct gpc_text *why)
{
	int fd;
	enum gpc_status status =
		open_file(path, ret_header, ret_file_size, ret_owner, ret_state, &fd, why);

	if (status == GPC_OK)
		close(fd);
	return status;
}

bool gpc_recording_is_of_others(uint32_t owner)
{
	return owner != (uint32_t)geteuid() && owner != 0;
}

static void check_region(struct gpc_recording *rec, const struct gpucache_region *claim)
{
	enum gpucache_region_kind kind = (enum gpucache_region_kind)claim->kind;
	struct gpc_region *region;
	bool is_append;

	/* A newer minor version may have regions of other kinds. */
	if (claim->kind == GPUCACHE_REGION_NONE || claim->kind >= GPUCACHE_REGION_COUNT)
		return;
	region = &rec->regions[kind];
	is_append = kinds[kind].shape == SHAPE_APPEND;
	if (region->present) {
		gpc_recording_note(rec, kind, "listed twice; the first one counts");
		return;
	}
	if (claim->offset < GPUCACHE_PAGE || claim->offset % GPUCACHE_PAGE != 0) {
		gpc_recording_note(rec, kind, "starts at byte %llu, where no region can be",
			(unsigned long long)claim->offset);
		return;
	}
	if (claim->offset > rec->size) {
		gpc_recording_note(rec, kind, "is missing: it starts at byte %llu, beyond the end",
			(unsigned long long)claim->offset);
		return;
	}
	if (!is_append &&
		(claim->record_size < 8 || claim->record_size < kinds[kind].least_size ||
			claim->record_size % 8 != 0 || claim->record_size > MAX_RECORD_BYTES)) {
		gpc_recording_note(rec, kind, "has records of %u bytes", claim->record_size);
		return;
	}
	region->present = true;
	region->offset = claim->offset;
	region->size = claim->size;
	region->record_size = is_append ? 1 : claim->record_size;
	region->count = claim->count;
	if (region->size > rec->size - region->offset) {
		region->size = rec->size - region->offset;
		gpc_recording_note(rec, kind, "is truncated: only %llu of %llu bytes are there",
			(unsigned long long)region->size, (unsigned long long)claim->size);
	}
	if (!is_append && region->count > region->size / region->record_size) {
		region->count = region->size / region->record_size;
		if (region->size == claim->size)
			gpc_recording_note(rec, kind, "has room for %llu records, not for %llu",
				(unsigned long long)region->count,
				(unsigned long long)claim->count);
	}
	if (kinds[kind].most && region->count > kinds[kind].most) {
		gpc_recording_note(rec, kind, "has %llu records; at most %u are written",
			(unsigned long long)region->count, kinds[kind].most);
		region->count = kinds[kind].most;
	}
	if (kinds[kind].part && region->size > rec->header.file_size / kinds[kind].part) {
		gpc_recording_note(rec, kind,
			"is larger than 1/%u of the file, as no writer makes it", kinds[kind].part);
		region->size = rec->header.file_size / kinds[kind].part / 8 * 8;
	}
	if (is_append && region->size < sizeof(struct gpucache_append_head)) {
		region->present = false;
		if (region->size == claim->size)
			gpc_recording_note(rec, kind, "is too small for its head");
	}
}

static void check_regions(struct gpc_recording *rec)
{
	uint32_t n = rec->header.n_regions;

	if (rec->header.file_size != rec->size)
		gpc_recording_note(rec, GPUCACHE_REGION_NONE, "has %llu bytes and should have %llu",
			(unsigned long long)rec->size, (unsigned long long)rec->header.file_size);
	if (n > GPUCACHE_MAX_REGIONS) {
		gpc_recording_note(rec, GPUCACHE_REGION_NONE,
			"names %u regions; at most %u are possible", n, GPUCACHE_MAX_REGIONS);
		n = GPUCACHE_MAX_REGIONS;
	}
	for (uint32_t i = 0; i < n; i++)
		check_region(rec, &rec->header.regions[i]);
}

static uint32_t seq_of(const unsigned char *record)
{
	uint32_t seq;

	memcpy(&seq, record, sizeof seq);
	return seq;
}

static uint64_t number_of(const unsigned char *record)
{
	uint64_t number;

	memcpy(&number, record, sizeof number);
	return number;
}

/* Reads a slot of a live file until seq is even and the same before and after.  If it never is, marks the slot torn. */
static void settle_slot(struct gpc_recording *rec, int fd, uint64_t offset, uint32_t record_size)
{
	unsigned char *slot = rec->data + offset;
	uint32_t after;

	for (int i = 0; i < GPC_RECORDING_TRIES; i++) {
		if (gpc_io_read_at(fd, slot, record_size, offset) != (ssize_t)record_size ||
			gpc_io_read_at(fd, &after, sizeof after, offset) != sizeof after)
			break;
		if (seq_of(slot) == after && !(after & 1))
			return;
	}
	slot[0] |= 1;
}

/* Compares slots [i, i + n) with a second reading.  An event that changed becomes a hole; other slots are settled. */
static void settle_slots(struct gpc_recording *rec, int fd, const struct gpc_region *region,
	uint64_t i, uint64_t n, const unsigned char *again, bool is_ring)
{
	for (; n > 0; n--, i++, again += region->record_size) {
		uint64_t at = region->offset + i * region->record_size;
		unsigned char *slot = rec->data + at;

		if (is_ring) {
			if (number_of(slot) != number_of(again))
				memset(slot, 0, sizeof(uint64_t));
		} else if (seq_of(slot) != seq_of(again) || (seq_of(slot) & 1)) {
			settle_slot(rec, fd, at, region->record_size);
		}
	}
}

/*
 * Reads every seq word of a live region a second time.  The first reading read the seq word of a slot before its other
 * words.  So if seq is even and unchanged, no write happened in between.
 */
static void settle_region(
	struct gpc_recording *rec, int fd, struct gpc_region *region, bool is_ring)
{
	const uint64_t n_at_once = SETTLE_BYTES / region->record_size + 1;
	unsigned char *again = malloc(n_at_once * region->record_size);

	for (uint64_t i = 0; again && i < region->count; i += n_at_once) {
		uint64_t n = region->count - i < n_at_once ? region->count - i : n_at_once;
		uint64_t at = region->offset + i * region->record_size;
		uint64_t bytes = n * region->record_size;

		if (gpc_io_read_at(fd, again, bytes, at) != (ssize_t)bytes)
			break;
		settle_slots(rec, fd, region, i, n, again, is_ring);
	}
	free(again);
}

static void check_slots(struct gpc_recording *rec, int fd)
{
	for (unsigned kind = 0; kind < GPUCACHE_REGION_COUNT; kind++) {
		struct gpc_region *region = &rec->regions[kind];
		enum region_shape shape = kinds[kind].shape;

		if (!region->present || (shape != SHAPE_SEQ && shape != SHAPE_RING))
			continue;
		if (rec->run_state == GPC_RUN_ALIVE)
			settle_region(rec, fd, region, shape == SHAPE_RING);
		if (shape == SHAPE_SEQ)
			for (uint64_t i = 0; i < region->count; i++)
				region->n_torn += seq_of(rec->data + region->offset +
							  i * region->record_size) &
						  1;
	}
}

/* Finds the newest event.  An event whose number belongs to another slot is damage, and ignored. */
static void find_events(struct gpc_recording *rec)
{
	const struct gpc_region *region = &rec->regions[GPUCACHE_REGION_EVENTS];

	for (uint64_t i = 0; region->present && i < region->count; i++) {
		uint64_t number = number_of(rec->data + region->offset + i * region->record_size);

		if (number != 0 && (number - 1) % region->count == i && number > rec->end_event)
			rec->end_event = number;
	}
	if (region->present && rec->end_event > region->count)
		rec->first_event = rec->end_event - region->count;
}

/*
 * Reads [at .. end) upwards.  Pages of zeros, which are most of a recording, are not stored, so the copy takes no
 * memory for them.  Returns the number of bytes read, or -1 with errno set.
 */
static ssize_t read_piece(const struct gpc_recording *rec, int fd, uint64_t at, uint64_t end)
{
	static const unsigned char zeros[GPUCACHE_PAGE];
	unsigned char chunk[READ_BYTES];
	uint64_t first = at;

	while (at < end) {
		size_t wanted = end - at < sizeof chunk ? (size_t)(end - at) : sizeof chunk;
		ssize_t n = gpc_io_read_at(fd, chunk, wanted, at);

		if (n < 0)
			return n;
		for (size_t i = 0; i < (size_t)n; i += GPUCACHE_PAGE) {
			size_t size = (size_t)n - i < GPUCACHE_PAGE ? (size_t)n - i : GPUCACHE_PAGE;

			if (memcmp(chunk + i, zeros, size) != 0)
				memcpy(rec->data + at + i, chunk + i, size);
		}
		at += (uint64_t)n;
		if ((size_t)n < wanted)
			break;
	}
	return (ssize_t)(at - first);
}

/*
 * Reads all data between holes, upwards.  Returns the offset where it stopped, or -1 with errno set.  A file system
 * without holes reports one piece of data.
 */
static ssize_t read_data(const struct gpc_recording *rec, int fd)
{
	uint64_t at = 0;

	while (at < rec->size) {
		off_t data = lseek(fd, (off_t)at, SEEK_DATA);
		off_t end = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
		ssize_t n;

		if (data < 0 && errno == ENXIO)
			break;
		at = data < 0 ? at : (uint64_t)data;
		if (at >= rec->size)
			break;
		n = read_piece(rec, fd, at,
			end < 0 || (uint64_t)end > rec->size ? rec->size : (uint64_t)end);
		if (n <= 0)
			return n < 0 ? n : (ssize_t)at;
		at += (uint64_t)n;
	}
	return (ssize_t)rec->size;
}

static enum gpc_status read_file(struct gpc_recording *rec, int fd, struct gpc_text *why)
{
	ssize_t n;

	if (rec->size > GPC_RECORDING_MAX_BYTES) {
		gpc_text_add(why, "larger than any recording: %llu bytes",
			(unsigned long long)rec->size);
		return GPC_LIMIT;
	}
	rec->data = calloc(rec->size ? rec->size : 1, 1);
	if (!rec->data) {
		gpc_text_add(why, "no memory for %llu bytes", (unsigned long long)rec->size);
		return GPC_NO_METADATA;
	}
	n = read_data(rec, fd);
	if (n < 0) {
		gpc_text_add(why, "%s", strerror(errno));
		return GPC_IO;
	}
	rec->size = (uint64_t)n;
	check_regions(rec);
	check_slots(rec, fd);
	gpc_recording_check_pages(rec, fd);
	find_events(rec);
	if (gpc_recording_index(rec)) {
		gpc_text_add(why, "no memory for its index");
		return GPC_NO_METADATA;
	}
	return GPC_OK;
}

enum gpc_status gpc_recording_open(
	const char *path, struct gpc_recording **ret_recording, struct gpc_text *why)
{
	struct gpc_recording *rec = gpc_new(1, sizeof *rec);
	enum gpc_status status;
	int fd = -1;

	rec->path = gpc_copy(path);
	status = open_file(path, &rec->header, &rec->size, &rec->owner, &rec->run_state, &fd, why);
	if (status != GPC_OK)
		goto undo_recording;
	status = read_file(rec, fd, why);
	close(fd);
	if (status != GPC_OK)
		goto undo_recording;
	*ret_recording = rec;
	return GPC_OK;

undo_recording:
	gpc_recording_close(rec);
	return status;
}

void gpc_recording_close(struct gpc_recording *recording)
{
	if (!recording)
		return;
	free(recording->stacks);
	free(recording->codes);
	free(recording->tags);
	free(recording->modules);
	free(recording->ranges);
	free(recording->text_mark);
	free(recording->data);
	free(recording->path);
	free(recording);
}

enum gpc_slot gpc_recording_read(const struct gpc_recording *recording,
	enum gpucache_region_kind kind, uint64_t i, void *ret_record, size_t size)
{
	const struct gpc_region *region = &recording->regions[kind];
	const unsigned char *record;
	size_t n;

	if (!region->present || i >= region->count)
		return GPC_SLOT_NONE;
	record = recording->data + region->offset + i * region->record_size;
	if (kinds[kind].shape == SHAPE_SEQ && (seq_of(record) & 1))
		return GPC_SLOT_TORN;
	n = region->record_size < size ? region->record_size : size;
	memcpy(ret_record, record, n);
	memset((char *)ret_record + n, 0, size - n);
	return GPC_SLOT_OK;
}
