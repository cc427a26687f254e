/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds pages that were written but hold zeros.  The library never syncs its file, so a crash of the machine leaves
 * such pages on disk.
 *
 * A page was written if its byte in PAGES is set.  The writer sets the byte after it stores into the page, and the
 * reader reads the byte before the page.  So if the byte is set and the page has zeros, the page is lost, or a live
 * writer has cleared it between the two reads.  Of a live file both are read again.
 */
#include <string.h>

#include "format/recording_internal.h"

static bool is_zero(const unsigned char *bytes, size_t size)
{
	return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* Reads the mark and the page again, from the file. */
static bool is_missing_still(int fd, uint64_t mark_at, uint64_t page)
{
	unsigned char bytes[GPUCACHE_PAGE];
	unsigned char mark = 0;

	return gpc_io_read_at(fd, &mark, 1, mark_at) == 1 && mark &&
	       gpc_io_read_at(fd, bytes, sizeof bytes, page * GPUCACHE_PAGE) ==
		       (ssize_t)sizeof bytes &&
	       is_zero(bytes, sizeof bytes);
}

static bool is_missing(const struct gpc_recording *rec, int fd, uint64_t page)
{
	const struct gpc_region *pages = &rec->regions[GPUCACHE_REGION_PAGES];
	uint64_t mark_at = pages->offset + page;

	if (page >= pages->size || (page + 1) * GPUCACHE_PAGE > rec->size || !rec->data[mark_at])
		return false;
	return is_zero(rec->data + page * GPUCACHE_PAGE, GPUCACHE_PAGE) &&
	       (rec->run_state != GPC_RUN_ALIVE || is_missing_still(fd, mark_at, page));
}

void gpc_recording_check_pages(struct gpc_recording *recording, int fd)
{
	const struct gpc_region *pages = &recording->regions[GPUCACHE_REGION_PAGES];

	if (!pages->present || pages->size == 0)
		return;
	if (!recording->data[pages->offset])
		gpc_recording_note(recording, GPUCACHE_REGION_PAGES,
			"is missing: it holds zeros, so what else is missing is unknown");
	for (unsigned kind = 1; kind < GPUCACHE_REGION_COUNT; kind++) {
		const struct gpc_region *region = &recording->regions[kind];
		uint64_t first = region->offset / GPUCACHE_PAGE;
		uint64_t end = (region->offset + region->size + GPUCACHE_PAGE - 1) / GPUCACHE_PAGE;
		uint64_t n = 0;

		for (uint64_t page = first; region->present && page < end; page++)
			n += is_missing(recording, fd, page);
		if (n)
			gpc_recording_note(recording, (enum gpucache_region_kind)kind,
				"has lost %llu of its pages: they were written, and hold zeros",
				(unsigned long long)n);
	}
}
