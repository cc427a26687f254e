/* SPDX-License-Identifier: Apache-2.0 */
/* Which recordings remain: not that of a process that only counted GPUs. */
#include <sys/stat.h>
#include <unistd.h>

#include "record/store.h"
#include "verify.h"

static char directory[] = "/tmp/gpc-discard-XXXXXX";
static char path[256];
static struct gpc_record rec;

static int set_up(void **state)
{
	return mkdtemp(directory) ? 0 : -1;
}

static int tear_down(void **state)
{
	return rmdir(directory);
}

GROUP(set_up, tear_down);

static int open_one(void **state)
{
	struct gpc_record_params params = { .pattern = path, .n_devices = 1, .rank = -1 };

	snprintf(path, sizeof path, "%s/one", directory);
	return gpc_record_open(&rec, &params) == GPC_OK ? 0 : -1;
}

static int close_it(void **state)
{
	gpc_record_close(&rec);
	(void)unlink(path);
	return 0;
}

FIXTURE(open_one, close_it);

static bool is_there(void)
{
	return access(path, F_OK) == 0;
}

TEST(without_a_context_it_goes_and_may_be_written_on)
{
	struct gpucache_event event = fill_event(7);

	assert_true(gpc_record_discard_unused(&rec));
	assert_false(is_there());
	/* Destructors of the program may still call us. */
	gpc_record_event(&rec, &event);
	gpc_record_end(&rec, 99);
	/* And it is not there any more to be discarded. */
	assert_false(gpc_record_discard_unused(&rec));
}

TEST(what_had_a_context_stays)
{
	rec.counters[rec.n_counters - 1].context = 1;
	assert_false(gpc_record_discard_unused(&rec));
	assert_true(is_there());
}

TEST(the_file_of_another_at_its_path_stays)
{
	FILE *file;

	assert_int_equal(unlink(path), 0);
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	assert_false(gpc_record_discard_unused(&rec));
	assert_true(is_there());
}

TEST(without_its_descriptor_nothing_is_touched)
{
	/* The program closed it, and has opened something else under its number. */
	assert_int_equal(dup2(STDIN_FILENO, rec.fd), rec.fd);
	assert_false(gpc_record_discard_unused(&rec));
	assert_true(is_there());
}

TEST(on_private_memory_or_closed_there_is_nothing)
{
	struct gpc_record none = { 0 };

	assert_false(gpc_record_discard_unused(&none));
	gpc_record_close(&rec);
	assert_false(gpc_record_discard_unused(&rec));
	assert_true(is_there());
}
