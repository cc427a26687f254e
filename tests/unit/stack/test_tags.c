/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <pthread.h>

#include "base/metamem.h"
#include "stack/sink_box.h"
#include "stack/tags.h"

#define N_THREADS 4

static struct sink_box box;
static struct gpc_stack_sink sink;
static struct gpc_tags tags;
static struct gpc_tag_place place;

static int setup(void **state)
{
	sink_box_clear(&box);
	sink = sink_box_sink(&box);
	place = (struct gpc_tag_place){ 0 };
	gpc_metamem_fail_at(0);
	return 0;
}

static int teardown(void **state)
{
	gpc_metamem_fail_at(0);
	gpc_tags_fini(&tags);
	return 0;
}

FIXTURE(setup, teardown);

/* The label of a tag as a reader of the records would put it together. */
static const char *label(uint32_t id)
{
	static char text[4096];
	const struct gpucache_tag *record = NULL;
	char *at = text + sizeof text - 1;

	while (id && (record = sink_box_next(&box, GPUCACHE_REGION_TAGS, record))) {
		if (record->id != id)
			continue;
		assert_true(record->parent < id);
		assert_int_equal(record->size, sizeof *record + (record->name_size + 7) / 8 * 8);
		if (*at)
			*--at = '/';
		at -= record->name_size;
		memcpy(at, record + 1, record->name_size);
		id = record->parent;
		record = NULL;
	}
	assert_int_equal(id, 0);
	return at;
}

static uint32_t push(uint32_t domain, const char *name)
{
	return gpc_tags_push(&tags, &place, domain, name);
}

static uint32_t pop(uint32_t domain)
{
	uint32_t level = UINT32_MAX;

	assert_true(gpc_tags_pop(&tags, &place, domain, &level));
	return level;
}

TEST(a_path_of_names_has_one_id_and_one_record)
{
	uint32_t first;

	gpc_tags_attach(&tags, &sink);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(push(GPC_TAG_OF_API, "outer"), 0);
		assert_int_equal(push(GPC_TAG_OF_API, "inner"), 1);
		if (i == 0)
			first = place.tag;
		assert_int_equal(place.tag, first);
		assert_string_equal(label(place.tag), "outer/inner");
		assert_string_equal(label(gpc_tags_parent(&tags, place.tag)), "outer");
		assert_int_equal(pop(GPC_TAG_OF_API), 1);
		assert_string_equal(label(place.tag), "outer");
		assert_int_equal(pop(GPC_TAG_OF_API), 0);
		assert_int_equal(place.tag, 0);
	}
	assert_int_equal(box.n[GPUCACHE_REGION_TAGS], 2);
	assert_int_equal(gpc_tags_end(&tags), first + 1);
	/* The same name elsewhere, and of somebody else, is another tag. */
	push(GPC_TAG_OF_API, "inner");
	assert_true(place.tag > first);
	assert_int_equal(pop(GPC_TAG_OF_API), 0);
	push(GPC_TAG_OF_NVTX, "outer");
	assert_int_equal(box.n[GPUCACHE_REGION_TAGS], 4);
}

TEST(the_end_of_nothing_is_refused)
{
	uint32_t level = 7;

	assert_int_equal(gpc_tags_end(&tags), 0);
	assert_false(gpc_tags_pop(&tags, &place, GPC_TAG_OF_API, &level));
	push(GPC_TAG_OF_NVTX, "other");
	assert_false(gpc_tags_pop(&tags, &place, GPC_TAG_OF_API, &level));
	assert_int_equal(level, 7);
	assert_true(place.tag != 0);
	pop(GPC_TAG_OF_NVTX);
	assert_false(gpc_tags_pop(&tags, &place, GPC_TAG_OF_NVTX, &level));
}

TEST(an_outer_range_of_another_domain_ends_alone)
{
	gpc_tags_attach(&tags, &sink);
	push(GPC_TAG_OF_API, "a");
	push(GPC_TAG_OF_NVTX, "x");
	assert_int_equal(push(GPC_TAG_OF_API, "b"), 1);
	assert_int_equal(push(GPC_TAG_OF_NVTX, "y"), 1);
	assert_string_equal(label(place.tag), "a/x/b/y");
	assert_int_equal(pop(GPC_TAG_OF_API), 1);
	assert_string_equal(label(place.tag), "a/x/y");
	assert_int_equal(pop(GPC_TAG_OF_API), 0);
	assert_string_equal(label(place.tag), "x/y");
	assert_int_equal(pop(GPC_TAG_OF_NVTX), 1);
	assert_int_equal(pop(GPC_TAG_OF_NVTX), 0);
	assert_int_equal(place.tag, 0);
}

static void step(unsigned i, const char *inner)
{
	char name[32];

	snprintf(name, sizeof name, "step %u", i);
	push(GPC_TAG_OF_API, name);
	push(GPC_TAG_OF_API, inner);
}

TEST(numbers_become_stars_below_a_range_with_many)
{
	gpc_tags_attach(&tags, &sink);
	for (unsigned i = 1; i <= 100000; i++) {
		step(i, "forward");
		if (i == 32)
			assert_string_equal(label(place.tag), "step 32/forward");
		if (i == 33 || i == 100000)
			assert_string_equal(label(place.tag), "step */forward");
		pop(GPC_TAG_OF_API);
		pop(GPC_TAG_OF_API);
	}
	assert_int_equal(box.n[GPUCACHE_REGION_TAGS], 2 * 33);
	/* Those that were named keep their names; new ones without a number get theirs. */
	step(7, "forward");
	assert_string_equal(label(place.tag), "step 7/forward");
	push(GPC_TAG_OF_API, "12 of 345, 6");
	assert_string_equal(label(place.tag), "step 7/forward/12 of 345, 6");
	place.tag = 0;
	push(GPC_TAG_OF_API, "12 of 345, 6");
	assert_string_equal(label(place.tag), "* of *, *");
	pop(GPC_TAG_OF_API);
	push(GPC_TAG_OF_API, "evaluate");
	assert_string_equal(label(place.tag), "evaluate");
	assert_int_equal(atomic_load(&tags.n_dropped), 0);
}

/* Names without numbers, different for different i. */
static void name_of(unsigned i, char *name)
{
	for (int k = 0; k < 6; k++, i /= 26)
		name[k] = (char)('a' + i % 26);
	name[6] = '\0';
}

TEST(a_range_with_very_many_has_one_star_for_the_rest)
{
	char name[8];

	gpc_tags_attach(&tags, &sink);
	for (unsigned i = 0; i < 1000; i++) {
		name_of(i, name);
		push(GPC_TAG_OF_API, name);
		assert_string_equal(label(place.tag), i < 128 ? name : "*");
		pop(GPC_TAG_OF_API);
	}
	assert_int_equal(box.n[GPUCACHE_REGION_TAGS], 129);
}

TEST(a_crowded_table_makes_alike_earlier_and_is_never_full_of_one_habit)
{
	gpc_tags_attach(&tags, &sink);
	for (unsigned i = 0; i < 33 * 40 * 40; i++) {
		char inner[32];

		snprintf(inner, sizeof inner, "layer %u", i % 40);
		step(i / 1600, inner);
		snprintf(inner, sizeof inner, "head %u", i / 40 % 40);
		push(GPC_TAG_OF_API, inner);
		pop(GPC_TAG_OF_API);
		pop(GPC_TAG_OF_API);
		pop(GPC_TAG_OF_API);
	}
	assert_int_equal(atomic_load(&tags.n_dropped), 0);
	assert_true(gpc_tags_end(&tags) < GPUCACHE_MAX_TAGS);
	step(999, "layer 999");
	assert_string_equal(label(place.tag), "step */layer *");
}

TEST(ranges_beyond_the_depth_count_for_the_one_around_them)
{
	uint32_t deepest;

	for (uint32_t i = 0; i < GPC_TAG_MAX_DEPTH; i++)
		assert_int_equal(push(GPC_TAG_OF_API, "in"), i);
	deepest = place.tag;
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(push(GPC_TAG_OF_API, "deeper"), GPC_TAG_MAX_DEPTH + i);
		assert_int_equal(place.tag, deepest);
	}
	assert_int_equal(atomic_load(&tags.n_dropped), 100);
	for (uint32_t i = GPC_TAG_MAX_DEPTH + 100; i-- > 0;) {
		assert_int_equal(place.tag == deepest, i >= GPC_TAG_MAX_DEPTH - 1);
		assert_int_equal(pop(GPC_TAG_OF_API), i);
	}
	assert_int_equal(place.tag, 0);
}

TEST(a_long_name_is_cut_between_characters)
{
	char name[200];

	gpc_tags_attach(&tags, &sink);
	memset(name, 'x', sizeof name);
	name[199] = '\0';
	push(GPC_TAG_OF_API, name);
	assert_int_equal(strlen(label(place.tag)), GPC_TAG_NAME_SIZE - 1);
	pop(GPC_TAG_OF_API);
	memcpy(name + GPC_TAG_NAME_SIZE - 2, "\xe2\x89\xa4", 3);
	push(GPC_TAG_OF_API, name);
	assert_int_equal(strlen(label(place.tag)), GPC_TAG_NAME_SIZE - 2);
	pop(GPC_TAG_OF_API);
	memset(name, 0x80, sizeof name - 1); /* not UTF-8 at all: still a name */
	push(GPC_TAG_OF_API, name);
	assert_int_equal(place.n_untagged, 0);
}

TEST(what_was_named_before_the_sink_came_is_told_once)
{
	push(GPC_TAG_OF_API, "early");
	(void)gpc_tags_domain(&tags, "domain");
	(void)gpc_tags_string(&tags, "string");
	push(GPC_TAG_OF_API, "inner");
	gpc_tags_attach(&tags, &sink);
	assert_int_equal(box.n[GPUCACHE_REGION_TAGS], 2);
	assert_string_equal(label(place.tag), "early/inner");
	gpc_tags_attach(&tags, &sink);
	assert_int_equal(box.n[GPUCACHE_REGION_TAGS], 2);
}

TEST(a_full_sink_closes_the_table)
{
	gpc_tags_attach(&tags, &sink);
	push(GPC_TAG_OF_API, "known");
	box.refuses = true;
	push(GPC_TAG_OF_API, "inner");
	assert_string_equal(label(place.tag), "known");
	assert_int_equal(place.n_untagged, 1);
	pop(GPC_TAG_OF_API);
	box.refuses = false; /* there is never room again */
	push(GPC_TAG_OF_API, "inner");
	assert_int_equal(place.n_untagged, 1);
	pop(GPC_TAG_OF_API);
	pop(GPC_TAG_OF_API);
	push(GPC_TAG_OF_API, "known");
	assert_string_equal(label(place.tag), "known");
	assert_int_equal(atomic_load(&tags.n_dropped), 2);
}

TEST(a_sink_that_is_full_when_it_comes_closes_it_too)
{
	push(GPC_TAG_OF_API, "early");
	box.refuses = true;
	gpc_tags_attach(&tags, &sink);
	box.refuses = false;
	push(GPC_TAG_OF_API, "inner");
	assert_int_equal(place.n_untagged, 1);
}

TEST(a_range_that_cannot_be_moved_counts_for_the_one_around_it)
{
	gpc_tags_attach(&tags, &sink);
	push(GPC_TAG_OF_API, "a");
	push(GPC_TAG_OF_NVTX, "x");
	box.refuses = true;
	pop(GPC_TAG_OF_API);
	assert_int_equal(place.tag, 0);
	assert_int_equal(place.n_untagged, 1);
	pop(GPC_TAG_OF_NVTX);
	assert_int_equal(place.n_untagged, 0);
}

TEST(without_memory_there_are_no_labels_and_ends_still_match)
{
	uint32_t level;

	gpc_metamem_fail_at(1);
	assert_int_equal(push(GPC_TAG_OF_API, "a"), 0);
	assert_int_equal(push(GPC_TAG_OF_API, "b"), 1);
	assert_int_equal(place.tag, 0);
	assert_int_equal(gpc_tags_domain(&tags, "d"), 0);
	assert_int_equal(gpc_tags_string(&tags, "s"), 0);
	assert_string_equal(gpc_tags_name(&tags, 1), "");
	assert_int_equal(gpc_tags_parent(&tags, 1), 0);
	gpc_metamem_fail_at(0);
	/* Inside ranges without a tag there are none, or their ends would be taken for each other. */
	push(GPC_TAG_OF_API, "c");
	assert_int_equal(place.tag, 0);
	pop(GPC_TAG_OF_API);
	pop(GPC_TAG_OF_API);
	pop(GPC_TAG_OF_API);
	assert_false(gpc_tags_pop(&tags, &place, GPC_TAG_OF_API, &level));
}

TEST(domains_and_strings_have_one_id_each_and_a_bound)
{
	uint32_t domain = gpc_tags_domain(&tags, "net");
	uint32_t string = gpc_tags_string(&tags, "net");
	char name[32];
	unsigned n = 0;

	assert_true(domain > GPC_TAG_OF_NVTX && string > GPC_TAG_OF_NVTX && domain != string);
	assert_int_equal(gpc_tags_domain(&tags, "net"), domain);
	assert_int_equal(gpc_tags_string(&tags, "net"), string);
	assert_string_equal(gpc_tags_name(&tags, string), "net");
	assert_string_equal(gpc_tags_name(&tags, 0), "");
	assert_string_equal(gpc_tags_name(&tags, string + 1), "");
	assert_string_equal(gpc_tags_name(&tags, UINT32_MAX), "");
	do
		snprintf(name, sizeof name, "%u", n++);
	while (gpc_tags_domain(&tags, name));
	assert_int_equal(n, 64);
	n = 0;
	do
		snprintf(name, sizeof name, "%u", n++);
	while (gpc_tags_string(&tags, name));
	assert_int_equal(n, 2048);
	/* Ranges have their own room. */
	push(domain, "range");
	assert_int_equal(place.n_untagged, 0);
}

struct shared {
	uint32_t ids[64];
};

static void *push_all(void *arg)
{
	struct gpc_tag_place mine = { 0 };
	struct shared *shared = arg;
	uint32_t level;
	char name[8];

	for (unsigned i = 0; i < N_OF(shared->ids); i++) {
		name_of(i, name);
		gpc_tags_push(&tags, &mine, GPC_TAG_OF_API, name);
		gpc_tags_push(&tags, &mine, GPC_TAG_OF_NVTX, "inner");
		shared->ids[i] = mine.tag;
		(void)!gpc_tags_pop(&tags, &mine, GPC_TAG_OF_API, &level);
		(void)!gpc_tags_pop(&tags, &mine, GPC_TAG_OF_NVTX, &level);
		if (i == 20)
			gpc_tags_attach(&tags, &sink);
	}
	return NULL;
}

TEST(threads_that_name_the_same_at_once_agree)
{
	static struct shared shared[N_THREADS];
	pthread_t threads[N_THREADS];
	char name[16];

	for (int i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, push_all, &shared[i]), 0);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned k = 0; k < N_OF(shared[0].ids); k++) {
		for (int i = 0; i < N_THREADS; i++)
			assert_int_equal(shared[i].ids[k], shared[0].ids[k]);
		name_of(k, name);
		strcat(name, "/inner");
		assert_string_equal(label(shared[0].ids[k]), name);
	}
}
