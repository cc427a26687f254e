/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SITES: one record per pair of stack and device that ever held memory, in order of appearance, so that a scan costs
 * only what is in use.  A private table [device][stack] maps pairs to records; only its touched pages take memory.
 */
#include "record/store.h"

uint32_t gpc_record_take_site(struct gpc_record *rec, uint32_t device, uint32_t stack)
{
	uint32_t *entry = &rec->site_of[(size_t)device * rec->n_sites + stack];
	uint32_t number;
	uint32_t end;

	gpc_lock_take(&rec->lock);
	number = *entry;
	end = gpc_record_site_end(rec);
	if (number == 0 && end < rec->n_sites) {
		number = end;
		rec->sites[number].stack = stack;
		rec->sites[number].device = (uint16_t)device;
		gpc_record_mark_page(rec, &rec->sites[number].stack);
		atomic_store_explicit(&rec->site_end, end + 1, memory_order_release);
	} else if (number == 0) {
		number = GPC_RECORD_NO_SITE;
		rec->header->dropped_sites++;
	}
	__atomic_store_n(entry, number, __ATOMIC_RELEASE);
	gpc_lock_release(&rec->lock);
	return number;
}
