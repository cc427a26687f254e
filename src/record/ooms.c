/* SPDX-License-Identifier: Apache-2.0 */
/* OOMS: a ring of failed requests.  While a thread fills or changes a slot, the slot's seq is odd. */
#include <string.h>

#include "base/bytes.h"
#include "record/record.h"

static struct gpucache_oom *slot_of(const struct gpc_record *rec, uint64_t number)
{
	struct gpucache_oom *ooms =
		(void *)(rec->base + rec->regions[GPUCACHE_REGION_OOMS]->offset);

	return &ooms[(number - 1) % GPUCACHE_MAX_OOMS];
}

struct gpucache_oom *gpc_record_oom_begin(struct gpc_record *rec)
{
	struct gpucache_oom *oom;
	uint32_t seq;

	if (!rec->base)
		return NULL;
	gpc_lock_take(&rec->lock);
	oom = slot_of(rec, rec->oom_number + 1);
	seq = __atomic_load_n(&oom->seq, __ATOMIC_RELAXED);
	/* More threads fail at once than there are slots, and one is still filling this slot: drop this failure. */
	if (seq & 1) {
		gpc_lock_release(&rec->lock);
		return NULL;
	}
	gpc_record_unmark(rec, oom, sizeof *oom);
	__atomic_store_n(&oom->seq, seq + 1, __ATOMIC_SEQ_CST);
	memset((char *)oom + sizeof oom->seq, 0, sizeof *oom - sizeof oom->seq);
	oom->number = ++rec->oom_number;
	gpc_lock_release(&rec->lock);
	return oom;
}

void gpc_record_oom_commit(struct gpc_record *rec, struct gpucache_oom *oom)
{
	if (!rec->base || !oom)
		return;
	__atomic_store_n(&oom->seq, oom->seq + 1, __ATOMIC_RELEASE);
	gpc_record_mark(rec, oom, sizeof *oom);
	gpc_record_state_add(rec, GPUCACHE_STATE_OOM_SEEN);
}

/*
 * Begins a change of a committed OOM: takes rec->lock and makes the slot's seq odd, until change_end.  NULL, without
 * the lock, if a later OOM has taken the slot.
 */
static struct gpucache_oom *change_begin(struct gpc_record *rec, uint64_t number)
{
	struct gpucache_oom *oom;
	uint32_t seq;

	if (!rec->base || number == 0)
		return NULL;
	oom = slot_of(rec, number);
	gpc_lock_take(&rec->lock);
	seq = __atomic_load_n(&oom->seq, __ATOMIC_RELAXED);
	if ((seq & 1) || oom->number != number) {
		gpc_lock_release(&rec->lock);
		return NULL;
	}
	__atomic_store_n(&oom->seq, seq + 1, __ATOMIC_RELAXED);
	return oom;
}

static void change_end(struct gpc_record *rec, struct gpucache_oom *oom)
{
	__atomic_store_n(&oom->seq, oom->seq + 1, __ATOMIC_RELEASE);
	gpc_lock_release(&rec->lock);
}

bool gpc_record_oom_read(struct gpc_record *rec, uint64_t number, struct gpucache_oom *ret_oom)
{
	const struct gpucache_oom *oom;
	bool is_there;

	if (!rec->base || number == 0)
		return false;
	oom = slot_of(rec, number);
	gpc_lock_take(&rec->lock);
	is_there = !(__atomic_load_n(&oom->seq, __ATOMIC_ACQUIRE) & 1) && oom->number == number;
	if (is_there)
		*ret_oom = *oom;
	gpc_lock_release(&rec->lock);
	return is_there;
}

static bool is_settled_with(
	const struct gpucache_oom *oom, const struct gpucache_oom *last, uint64_t size)
{
	return !oom->recovered && oom->device == last->device && oom->thread == last->thread &&
	       gpucache_kind_place(oom->kind) == gpucache_kind_place(last->kind) &&
	       gpc_larger(oom->requested, oom->torch.requested) <= size;
}

void gpc_record_oom_recover(struct gpc_record *rec, uint64_t number, uint64_t size)
{
	struct gpucache_oom *oom = change_begin(rec, number);
	struct gpucache_oom last;

	if (!oom)
		return;
	last = *oom;
	__atomic_store_n(&oom->recovered, 1, __ATOMIC_RELEASE);
	change_end(rec, oom);
	for (uint64_t n = 1; n < GPUCACHE_MAX_OOMS && n < number; n++) {
		oom = change_begin(rec, number - n);
		if (!oom)
			continue;
		if (is_settled_with(oom, &last, size))
			__atomic_store_n(&oom->recovered, 1, __ATOMIC_RELEASE);
		change_end(rec, oom);
	}
}

/* A reader may see one of the two stores without the other. */
void gpc_record_oom_say(struct gpc_record *rec, uint64_t number)
{
	struct gpucache_oom *oom = rec->base && number ? slot_of(rec, number) : NULL;

	if (!oom || __atomic_load_n(&oom->number, __ATOMIC_RELAXED) != number)
		return;
	__atomic_store_n(&oom->recovered, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&oom->reported, 1, __ATOMIC_RELEASE);
}

static void store_cause(struct gpucache_oom *oom, uint8_t verdict, uint8_t strength, uint32_t also)
{
	__atomic_store_n(&oom->verdict, verdict, __ATOMIC_RELEASE);
	__atomic_store_n(&oom->strength, strength, __ATOMIC_RELEASE);
	__atomic_store_n(&oom->also, also, __ATOMIC_RELEASE);
}

void gpc_record_oom_set_cause(struct gpc_record *rec, uint64_t number, enum gpucache_verdict cause,
	enum gpucache_strength strength, uint32_t also)
{
	struct gpucache_oom *oom = change_begin(rec, number);

	if (!oom)
		return;
	store_cause(oom, (uint8_t)cause, (uint8_t)strength, also);
	change_end(rec, oom);
}

void gpc_record_oom_set_torch(struct gpc_record *rec, const struct gpucache_oom *told)
{
	struct gpucache_oom *oom = change_begin(rec, told->number);

	if (!oom)
		return;
	__atomic_store_n(&oom->requested, told->requested, __ATOMIC_RELEASE);
	__atomic_store_n(&oom->rounded, told->rounded, __ATOMIC_RELEASE);
	__atomic_store_n(&oom->torch.requested, told->torch.requested, __ATOMIC_RELEASE);
	__atomic_store_n(&oom->torch.allocated, told->torch.allocated, __ATOMIC_RELEASE);
	__atomic_store_n(&oom->torch.reserved, told->torch.reserved, __ATOMIC_RELEASE);
	oom->program = told->program;
	oom->balance = told->balance;
	oom->rest_bytes = told->rest_bytes;
	memcpy(oom->kind_bytes, told->kind_bytes, sizeof oom->kind_bytes);
	store_cause(oom, told->verdict, told->strength, told->also);
	__atomic_store_n(&oom->short_by, told->short_by, __ATOMIC_RELEASE);
	change_end(rec, oom);
}
