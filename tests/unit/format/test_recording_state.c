/* SPDX-License-Identifier: Apache-2.0 */
/* How a recording's run ended: its state, and the lock of its writer. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/recording.h"
#include "tests/unit/format/recording_builder.h"

struct world {
	struct recording_builder b;
	char path[64];
};

static int begin(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	int fd;

	builder_init(&world->b);
	strcpy(world->path, "/tmp/gpucache-test-XXXXXX");
	fd = mkstemp(world->path);
	assert_true(fd >= 0);
	close(fd);
	*state = world;
	return 0;
}

static int end(void **state)
{
	struct world *world = *state;

	unlink(world->path);
	builder_fini(&world->b);
	free(world);
	return 0;
}

/*
 * Replaces the C library's.  Between the reader's read of the header and its lock, the writer ends in order, or the
 * file becomes one that cannot be read.
 */
static const char *ends_now;
static bool becomes_unreadable_now;

int flock(int fd, int operation)
{
	if (ends_now && operation == (LOCK_SH | LOCK_NB)) {
		const uint32_t state = GPUCACHE_STATE_OPENED | GPUCACHE_STATE_CLEAN_EXIT;
		int writer = open(ends_now, O_WRONLY);

		assert_int_equal(pwrite(writer, &state, sizeof state,
					 offsetof(struct gpucache_header, state)),
			sizeof state);
		close(writer);
	}
	if (becomes_unreadable_now && operation == (LOCK_SH | LOCK_NB)) {
		int folder = open("/tmp", O_RDONLY | O_DIRECTORY);

		assert_int_equal(dup2(folder, fd), fd);
		close(folder);
		return 0;
	}
	return (int)syscall(SYS_flock, fd, operation);
}

static void a_writer_that_ends_during_the_look_was_not_killed(void **state)
{
	struct world *world = *state;
	struct gpucache_header header;
	enum gpc_run_state run = GPC_RUN_ALIVE;
	uint64_t size = 0;
	uint32_t owner = 0;
	char why[100];
	struct gpc_text text = gpc_text_init(why, sizeof why);

	world->b.header->state = GPUCACHE_STATE_OPENED;
	builder_write(&world->b, world->path);
	ends_now = world->path;
	assert_int_equal(
		gpc_recording_peek(world->path, &header, &run, &size, &owner, &text), GPC_OK);
	ends_now = NULL;
	assert_int_equal(run, GPC_RUN_ENDED);
	assert_true(header.state & GPUCACHE_STATE_CLEAN_EXIT);
}

static void a_state_that_cannot_be_read_again_is_an_error(void **state)
{
	struct world *world = *state;
	struct gpc_recording *recording = NULL;
	struct gpucache_header header;
	enum gpc_run_state run;
	uint64_t size;
	uint32_t owner;
	char why[100];
	struct gpc_text text = gpc_text_init(why, sizeof why);

	builder_write(&world->b, world->path);
	becomes_unreadable_now = true;
	assert_int_equal(
		gpc_recording_peek(world->path, &header, &run, &size, &owner, &text), GPC_IO);
	assert_string_equal(why, "Is a directory");
	assert_int_equal(gpc_recording_open(world->path, &recording, &text), GPC_IO);
	becomes_unreadable_now = false;
	assert_null(recording);
	assert_int_equal(header.state, 0);
}

/* Locks are of the open file: another descriptor of this process stands for the writer. */
static void the_lock_tells_alive_from_ended_exited_and_killed(void **state)
{
	struct world *world = *state;
	struct gpucache_header header;
	enum gpc_run_state run = GPC_RUN_KILLED;
	uint64_t size = 0;
	uint32_t owner = 0;
	char why[100];
	struct gpc_text text = gpc_text_init(why, sizeof why);
	int fd;

	builder_write(&world->b, world->path);
	fd = open(world->path, O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(
		gpc_recording_peek(world->path, &header, &run, &size, &owner, &text), GPC_OK);
	assert_int_equal(run, GPC_RUN_ALIVE);
	assert_int_equal(size, world->b.size);
	close(fd);
	assert_int_equal(
		gpc_recording_peek(world->path, &header, &run, &size, &owner, &text), GPC_OK);
	assert_int_equal(run, GPC_RUN_ENDED);
	world->b.header->state = GPUCACHE_STATE_OPENED;
	builder_write(&world->b, world->path);
	assert_int_equal(
		gpc_recording_peek(world->path, &header, &run, &size, &owner, &text), GPC_OK);
	assert_int_equal(run, GPC_RUN_KILLED);
	world->b.header->state = GPUCACHE_STATE_OPENED | GPUCACHE_STATE_EXITED;
	builder_write(&world->b, world->path);
	assert_int_equal(
		gpc_recording_peek(world->path, &header, &run, &size, &owner, &text), GPC_OK);
	assert_int_equal(run, GPC_RUN_EXITED);
	/* Our own look must not keep a writer out. */
	fd = open(world->path, O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_lock_tells_alive_from_ended_exited_and_killed),
		TEST(a_writer_that_ends_during_the_look_was_not_killed),
		TEST(a_state_that_cannot_be_read_again_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
