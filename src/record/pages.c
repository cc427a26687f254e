/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PAGES marks the pages of the file that hold data.  A reader that finds zeros in a marked page, as after a crash of
 * the machine, knows that the data of the page were lost.  A mark is set after the data are stored.  If the process is
 * killed in between, the page is unmarked, and readers do not check it.
 */
#include "record/store.h"

static bool holds_something(const unsigned char *page)
{
	const gpc_word *words = (const void *)page;

	for (size_t i = 0; i < GPUCACHE_PAGE / sizeof *words; i++)
		if (__atomic_load_n(&words[i], __ATOMIC_RELAXED))
			return true;
	return false;
}

void gpc_record_mark(struct gpc_record *rec, const void *ptr, size_t size)
{
	size_t first = (size_t)((const unsigned char *)ptr - rec->base) / GPUCACHE_PAGE;
	size_t end = ((size_t)((const unsigned char *)ptr - rec->base) + size - 1) / GPUCACHE_PAGE;

	for (size_t page = first; page <= end; page++)
		if (holds_something(rec->base + page * GPUCACHE_PAGE))
			__atomic_store_n(&rec->pages[page], 1, __ATOMIC_RELEASE);
}

void gpc_record_unmark(struct gpc_record *rec, const void *ptr, size_t size)
{
	size_t first = (size_t)((const unsigned char *)ptr - rec->base) / GPUCACHE_PAGE;
	size_t end = ((size_t)((const unsigned char *)ptr - rec->base) + size - 1) / GPUCACHE_PAGE;

	for (size_t page = first; page <= end; page++)
		__atomic_store_n(&rec->pages[page], 0, __ATOMIC_SEQ_CST);
}
