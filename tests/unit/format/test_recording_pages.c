/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "format/recording.h"
#include "tests/unit/format/recording_builder.h"

/* A recording with something in every region; one page of its file is filled with zeros. */
static struct gpc_recording *open_without(enum gpucache_region_kind kind, bool alive)
{
	static const unsigned char zeros[GPUCACHE_PAGE];
	char path[] = "/tmp/gpucache-test-XXXXXX";
	struct gpc_recording *rec = NULL;
	struct recording_builder b;
	char why[100];
	struct gpc_text text = gpc_text_init(why, sizeof why);
	int fd = mkstemp(path);
	uint64_t at;

	builder_init(&b);
	for (size_t i = 0; i < b.header->n_regions; i++)
		if (b.header->regions[i].record_size > 8) /* neither append-only nor PAGES */
			memset(b.data + b.header->regions[i].offset, 2, 8);
	builder_line(&b, "line");
	builder_stack(&b, (uint64_t[]){ 1 }, 1, NULL, 0);
	builder_code(&b, "name", "file", 0x030b, 1, "", 0);
	builder_module(&b, "/m", 1, 2, 0);
	builder_tag(&b, 0, "tag");
	at = kind ? builder_entry(&b, kind)->offset : 0;
	builder_write(&b, path);
	builder_fini(&b);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	if (kind)
		assert_int_equal(pwrite(fd, zeros, sizeof zeros, (off_t)at), sizeof zeros);
	if (!alive)
		close(fd);
	assert_int_equal(gpc_recording_open(path, &rec, &text), GPC_OK);
	assert_int_equal(rec->run_state, alive ? GPC_RUN_ALIVE : GPC_RUN_ENDED);
	if (alive)
		close(fd);
	unlink(path);
	return rec;
}

TEST(a_missing_page_of_any_region_is_a_problem_of_that_region)
{
	for (unsigned kind = 1; kind < GPUCACHE_REGION_COUNT; kind++)
		for (int alive = 0; alive <= 1; alive++) {
			struct gpc_recording *rec =
				open_without((enum gpucache_region_kind)kind, alive);

			assert_int_equal(rec->n_problems, 1);
			assert_int_equal(rec->problems[0].kind, kind);
			assert_non_null(strstr(rec->problems[0].text,
				kind == GPUCACHE_REGION_PAGES ? "is missing" : "has lost 1 of"));
			gpc_recording_close(rec);
		}
}

TEST(a_whole_recording_misses_no_page)
{
	for (int alive = 0; alive <= 1; alive++) {
		struct gpc_recording *rec = open_without(GPUCACHE_REGION_NONE, alive);

		assert_int_equal(rec->n_problems, 0);
		gpc_recording_close(rec);
	}
}
