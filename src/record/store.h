/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hot stores of the recording: blocks, events, sites and peaks, inline.
 *
 * Invariants  Those of record.h, and
 *             1 Only the holder of event_lock stores into EVENTS.  So a slot never mixes two events, and the numbers of
 *               events only grow.
 *             2 seq is 0 before the first store of event n, and n + 1 after the last one; readers see these stores in
 *               this order.  A process that dies leaves at most one hole.
 * Threads     Any.  EVENTS has a lock, and so have the sums in SITES of each device, to which pools, tensors and the
 *             ledger add.  A lock costs one locked instruction.  Without a lock the number of an event would cost one
 *             locked instruction as well, and the sums four.
 * Progress    While the holder of such a lock is preempted, the other threads wait.
 * Failure     No-op on a closed recording.  A block, event or site that finds no room is counted.
 */
#ifndef GPC_RECORD_STORE_H
#define GPC_RECORD_STORE_H

#include "base/hot.h"
#include "model/share.h"
#include "record/record.h"

/* A word and a half word of a slot.  may_alias, because the same memory is also accessed as a struct. */
typedef uint64_t gpc_word __attribute__((may_alias));
typedef uint32_t gpc_half_word __attribute__((may_alias));

/* Stores all of `value` except its first 4 bytes, in whose place the slot's seq advances.  size: a multiple of 8. */
static inline void gpc_record_store(void *slot, const void *value, size_t size)
{
	gpc_half_word *half = slot;
	gpc_word *word = slot;
	const gpc_half_word *new_half = value;
	const gpc_word *new_word = value;
	uint32_t odd = __atomic_load_n(half, __ATOMIC_RELAXED) | 1;

	__atomic_store_n(half, odd, __ATOMIC_RELAXED);
	__atomic_store_n(half + 1, new_half[1], __ATOMIC_RELEASE);
	for (size_t i = 1; i < size / 8; i++)
		__atomic_store_n(word + i, new_word[i], __ATOMIC_RELEASE);
	__atomic_store_n(half, odd + 1, __ATOMIC_RELEASE);
}

/* Call after the first store of a slot of BLOCKS. */
void gpc_record_block_is_new(struct gpc_record *rec, uint32_t number);

/*
 * A slot of BLOCKS or EVENTS that is being stored, word by word: open, put the words from 1 on, close.
 *
 * A word is composed in 64 bits, from loads made just before it is put (a put keeps the compiler from moving them).  Half
 * words that wait in memory, in a struct or spilled, are loaded as a whole word, which waits for the smaller stores to
 * reach the cache: 10 ns of an allocation.
 */
struct gpc_record_slot {
	bool is_open; /* false: nothing is stored */
	gpc_word *word;
	uint64_t number;
	uint32_t odd; /* BLOCKS: seq while the slot is open */
};

/* The words that have two halves or more: a thing and its thread, a thing and its context, ... */
static inline uint64_t gpc_record_halves(uint32_t low, uint32_t high)
{
	return low | (uint64_t)high << 32;
}

GPC_HOT void gpc_record_put(struct gpc_record_slot slot, unsigned word, uint64_t value)
{
	__atomic_store_n(slot.word + word, value, __ATOMIC_RELEASE);
}

/*
 * Opens slot `number` of BLOCKS, and stores its first word, less its seq: `head` is state | kind << 8 | device << 16.  If
 * the table has no such slot, a live block is counted as dropped.
 */
GPC_HOT struct gpc_record_slot gpc_record_open_block(
	struct gpc_record *rec, uint32_t number, uint32_t head)
{
	struct gpc_record_slot slot = { .number = number };
	gpc_half_word *half;

	if (__builtin_expect(number >= rec->n_blocks, 0)) {
		if (rec->n_blocks && (uint8_t)head == GPUCACHE_BLOCK_LIVE)
			__atomic_fetch_add(&rec->header->dropped_blocks, 1, __ATOMIC_RELAXED);
		return slot;
	}
	half = (void *)&rec->blocks[number];
	slot.is_open = true;
	slot.word = (void *)half;
	slot.odd = __atomic_load_n(half, __ATOMIC_RELAXED) | 1;
	__atomic_store_n(half, slot.odd, __ATOMIC_RELAXED);
	__atomic_store_n(half + 1, head, __ATOMIC_RELEASE);
	return slot;
}

GPC_HOT void gpc_record_close_block(struct gpc_record *rec, struct gpc_record_slot slot)
{
	__atomic_store_n((gpc_half_word *)(void *)slot.word, slot.odd + 1, __ATOMIC_RELEASE);
	if (__builtin_expect(slot.odd == 1, 0))
		gpc_record_block_is_new(rec, (uint32_t)slot.number);
}

/* Opens the next slot of EVENTS, and takes its lock. */
GPC_HOT struct gpc_record_slot gpc_record_open_event(struct gpc_record *rec)
{
	struct gpc_record_slot slot = { 0 };

	if (__builtin_expect(!rec->events, 0))
		return slot;
	gpc_lock_take(&rec->event_lock);
	slot.is_open = true;
	slot.number = atomic_load_explicit(&rec->next_event, memory_order_relaxed);
	atomic_store_explicit(&rec->next_event, slot.number + 1, memory_order_relaxed);
	slot.word = (void *)&rec->events[slot.number & (rec->n_events - 1)];
	/* If the process dies after some of the puts, the old seq must not declare the mixture an event. */
	__atomic_store_n(slot.word, 0, __ATOMIC_RELAXED);
	return slot;
}

GPC_HOT void gpc_record_close_event(struct gpc_record *rec, struct gpc_record_slot slot)
{
	gpc_record_put(slot, 0, slot.number + 1);
	gpc_lock_release(&rec->event_lock);
	if (__builtin_expect(slot.number % GPC_RECORD_PAGE_EVENTS == 0, 0))
		gpc_record_mark_page(rec, slot.word);
}

/* Appends an event to the ring; `event->seq` is ignored. */
static inline void gpc_record_event(struct gpc_record *rec, const struct gpucache_event *event)
{
	struct gpc_record_slot slot = gpc_record_open_event(rec);

	if (!slot.is_open)
		return;
	gpc_record_put(slot, 1, event->time_ns);
	gpc_record_put(slot, 2, event->address);
	gpc_record_put(slot, 3, event->size);
	gpc_record_put(slot, 4, event->requested);
	gpc_record_put(slot, 5, gpc_record_halves(event->stack, event->thread));
	gpc_record_put(slot, 6,
		(uint64_t)event->kind | (uint64_t)event->alloc_kind << 8 |
			(uint64_t)event->device << 16 | (uint64_t)event->context << 32);
	gpc_record_put(slot, 7, gpc_record_halves(event->detail, event->tag));
	gpc_record_close_event(rec, slot);
}

/* 1 + the last slot of BLOCKS that was ever in use. */
static inline uint32_t gpc_record_block_end(const struct gpc_record *rec)
{
	return atomic_load_explicit(&rec->block_end, memory_order_acquire);
}

/*
 * The gpc_record_expect functions prefetch the cache lines that the next stores need.  A program that computes between
 * two allocations evicts them, and the next locked instruction waits until all earlier stores are done.
 */
static inline void gpc_record_expect_event(const struct gpc_record *rec)
{
	uint64_t number = atomic_load_explicit(&rec->next_event, memory_order_relaxed);

	if (rec->events)
		__builtin_prefetch(&rec->events[number & (rec->n_events - 1)], 1);
}

static inline void gpc_record_expect_block(const struct gpc_record *rec, uint32_t number)
{
	if (number < rec->n_blocks)
		__builtin_prefetch(&rec->blocks[number], 1);
}

/* 1 + the last record of SITES in use.  All records below have their stack and device. */
static inline uint32_t gpc_record_site_end(const struct gpc_record *rec)
{
	return atomic_load_explicit(&rec->site_end, memory_order_acquire);
}

/* Slow path of gpc_record_find_site: adds a new pair. */
uint32_t gpc_record_take_site(struct gpc_record *rec, uint32_t device, uint32_t stack);

#define GPC_RECORD_NO_SITE UINT32_MAX /* in site_of: the pair found no room in SITES */

static inline void gpc_record_expect_site(
	const struct gpc_record *rec, uint32_t device, uint32_t stack)
{
	uint32_t number;

	if (stack == 0 || stack >= rec->n_sites || device >= rec->n_devices || !rec->site_of)
		return;
	number = __atomic_load_n(
		&rec->site_of[(size_t)device * rec->n_sites + stack], __ATOMIC_RELAXED);
	if (number < rec->n_sites)
		__builtin_prefetch(&rec->sites[number], 1);
}

/* The record of a pair; NULL if SITES is full, and for stack 0 (none), whose bytes only COUNTERS include. */
static inline struct gpucache_site *gpc_record_find_site(
	struct gpc_record *rec, uint32_t device, uint32_t stack)
{
	uint32_t number;

	if (stack == 0 || stack >= rec->n_sites || device >= rec->n_devices || !rec->site_of)
		return NULL;
	number = __atomic_load_n(
		&rec->site_of[(size_t)device * rec->n_sites + stack], __ATOMIC_ACQUIRE);
	if (__builtin_expect(number == 0, 0))
		number = gpc_record_take_site(rec, device, stack);
	return number == GPC_RECORD_NO_SITE ? NULL : &rec->sites[number];
}

static inline void gpc_record_add(uint64_t *sum, uint64_t n)
{
	__atomic_store_n(sum, __atomic_load_n(sum, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

static inline struct gpc_windows *gpc_record_windows_of(
	const struct gpc_record *rec, const struct gpucache_site *site)
{
	return &rec->windows[site - rec->sites];
}

/*
 * Adds `share` to the sums of site `stack`.  What the driver takes for itself (a context, a module) is no site's: it is
 * in the kind_bytes of the counters.
 */
static inline void gpc_record_site_add(struct gpc_record *rec, uint32_t device, uint32_t stack,
	struct gpc_share share, uint64_t now_ns)
{
	struct gpucache_site *site = gpc_record_find_site(rec, device, stack);

	if (!site)
		return;
	gpc_lock_take(&rec->site_locks[device].lock);
	gpc_record_add(&site->live_bytes, share.bytes);
	gpc_record_add(&site->live_blocks, share.blocks);
	gpc_record_add(&site->total_bytes, share.bytes);
	gpc_record_add(&site->total_blocks, share.blocks);
	if (site->live_bytes > site->peak_bytes)
		__atomic_store_n(&site->peak_bytes, site->live_bytes, __ATOMIC_RELAXED);
	if (site->first_ns == 0)
		__atomic_store_n(&site->first_ns, now_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&site->last_ns, now_ns, __ATOMIC_RELAXED);
	gpc_windows_add(
		gpc_record_windows_of(rec, site), &rec->site_locks[device].clock, share.bytes);
	gpc_lock_release(&rec->site_locks[device].lock);
}

/* Adds GPUCACHE_SITE_* to site `stack`. */
static inline void gpc_record_site_mark(
	struct gpc_record *rec, uint32_t device, uint32_t stack, uint16_t flag)
{
	struct gpucache_site *site = gpc_record_find_site(rec, device, stack);

	if (site)
		__atomic_fetch_or(&site->flags, flag, __ATOMIC_RELAXED);
}

/* Subtracts `share` from the live sums of site `stack`. */
static inline void gpc_record_site_remove(
	struct gpc_record *rec, uint32_t device, uint32_t stack, struct gpc_share share)
{
	struct gpucache_site *site = gpc_record_find_site(rec, device, stack);

	if (!site)
		return;
	gpc_lock_take(&rec->site_locks[device].lock);
	gpc_record_add(&site->live_bytes, -share.bytes);
	gpc_record_add(&site->live_blocks, -share.blocks);
	gpc_windows_remove(
		gpc_record_windows_of(rec, site), &rec->site_locks[device].clock, share.bytes);
	gpc_lock_release(&rec->site_locks[device].lock);
}

/* Slow path of gpc_record_peak. */
void gpc_record_peak_take(struct gpc_record *rec, uint32_t device, uint64_t now_ns,
	uint64_t requested, uint64_t live, uint64_t reserved);

/* As many bytes as the last peak had make a new one: their holders were not known yet. */
static inline void gpc_record_peak_reopen(struct gpc_record *rec, uint32_t device)
{
	if (device < rec->n_devices)
		atomic_store_explicit(&rec->peak_next[device],
			atomic_load_explicit(&rec->peak_last[device], memory_order_relaxed),
			memory_order_relaxed);
}

/* True if this many live bytes make a new peak. */
static inline bool gpc_record_is_peak(struct gpc_record *rec, uint32_t device, uint64_t live)
{
	return device < rec->n_devices &&
	       live >= atomic_load_explicit(&rec->peak_next[device], memory_order_relaxed);
}

/*
 * Call after each allocation on the device.  Records a new peak and its holders if `live` exceeds the last peak by 1 %
 * or 64 MiB, whichever is less.
 */
static inline void gpc_record_peak(struct gpc_record *rec, uint32_t device, uint64_t now_ns,
	uint64_t requested, uint64_t live, uint64_t reserved)
{
	if (__builtin_expect(gpc_record_is_peak(rec, device, live), 0))
		gpc_record_peak_take(rec, device, now_ns, requested, live, reserved);
}

/* Sets the number of ranges whose names found no room. */
static inline void gpc_record_tags_dropped(struct gpc_record *rec, uint64_t n_tags)
{
	if (rec->header)
		__atomic_store_n(&rec->header->dropped_tags, n_tags, __ATOMIC_RELAXED);
}

/* Sets the numbers of stacks that found no room, and of stacks whose Python frames could not be read. */
static inline void gpc_record_stacks_dropped(
	struct gpc_record *rec, uint64_t n_stacks, uint64_t n_python)
{
	if (!rec->header)
		return;
	__atomic_store_n(&rec->header->dropped_stacks, n_stacks, __ATOMIC_RELAXED);
	__atomic_store_n(&rec->header->dropped_python, n_python, __ATOMIC_RELAXED);
}

#endif
