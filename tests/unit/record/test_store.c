/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer stopped inside an event, at each of its words, while other writers try to fill the ring.
 *
 * The event to be stored lies across two pages, and the second cannot be read: loading the word of our choice raises
 * SIGSEGV.  The handler is "the others": it fills the ring, if a writer may enter now, and lets the stopped one go on.
 */
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "private_record.h"
#include "verify.h"

#define N_WORDS (sizeof(struct gpucache_event) / 8)

static struct {
	unsigned char *pages;
	size_t page;
	uint64_t next; /* the value of the next event of the others */
	unsigned n_stops;
	unsigned n_laps;
} others;

static void fill_ring(void)
{
	for (uint32_t i = 0; i < rec.n_events; i++) {
		struct gpucache_event event = fill_event(others.next++);

		gpc_record_event(&rec, &event);
	}
}

static void go_round_meanwhile(int signal)
{
	others.n_stops++;
	if (mprotect(others.pages + others.page, others.page, PROT_READ | PROT_WRITE))
		_exit(1);
	if (!gpc_lock_grab(&rec.event_lock))
		return; /* they wait */
	gpc_lock_release(&rec.event_lock);
	others.n_laps++;
	fill_ring();
}

/* An event of which the words from `word` on are in the second page, which is closed. */
static struct gpucache_event *event_that_stops_at(size_t word, uint64_t n)
{
	struct gpucache_event event = fill_event(n);
	unsigned char *at = others.pages + others.page - 8 * word;

	memcpy(at, &event, sizeof event);
	assert_int_equal(mprotect(others.pages + others.page, others.page, PROT_NONE), 0);
	return (void *)at;
}

/* Slot for slot: the newest event of its place, and whole. */
static void assert_ring_is_whole(void)
{
	uint64_t end = atomic_load(&rec.next_event);

	for (uint64_t n = end > rec.n_events ? end - rec.n_events : 0; n < end; n++) {
		const struct gpucache_event *event = &rec.events[n % rec.n_events];

		assert_int_equal(event->seq, n + 1);
		assert_true(is_whole_event(event));
	}
}

TEST(a_writer_that_is_stopped_inside_an_event_mixes_it_with_no_other)
{
	struct sigaction action = { .sa_handler = go_round_meanwhile };
	struct sigaction before;

	others.page = (size_t)sysconf(_SC_PAGESIZE);
	others.next = 1;
	others.pages = mmap(
		NULL, 2 * others.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(others.pages != MAP_FAILED);
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	for (size_t word = 1; word < N_WORDS; word++) {
		uint64_t end = atomic_load(&rec.next_event);

		gpc_record_event(&rec, event_that_stops_at(word, others.next++));
		assert_ring_is_whole();
		assert_int_equal(atomic_load(&rec.next_event), end + 1);
		fill_ring();
		assert_ring_is_whole();
	}
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
	assert_int_equal(others.n_stops, N_WORDS - 1);
	assert_int_equal(others.n_laps, 0);
	munmap(others.pages, 2 * others.page);
}
