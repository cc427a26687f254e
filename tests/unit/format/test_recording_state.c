/* SPDX-License-Identifier: Apache-2.0 */
/* How a recording's run ended: its state, and the lock of its writer. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/recording.h"
#include "tests/unit/format/recording_builder.h"

FIXTURE(recording_file_begin, recording_file_end);

struct look {
	struct gpucache_header header;
	enum gpc_run_state run;
	uint64_t size;
	uint32_t owner;
	char why[100];
};

static enum gpc_status look_at(const struct recording_file *file, struct look *ret_look)
{
	struct gpc_text text = gpc_text_init(ret_look->why, sizeof ret_look->why);

	return gpc_recording_peek(file->path, &ret_look->header, &ret_look->run, &ret_look->size,
		&ret_look->owner, &text);
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

/* Locks are of the open file: another descriptor of this process stands for the writer. */
TEST(the_lock_tells_alive_from_ended_exited_and_killed)
{
	struct recording_file *file = *state;
	struct look look;
	int fd;

	builder_write(&file->b, file->path);
	fd = open(file->path, O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(look_at(file, &look), GPC_OK);
	assert_int_equal(look.run, GPC_RUN_ALIVE);
	assert_int_equal(look.size, file->b.size);
	close(fd);
	assert_int_equal(look_at(file, &look), GPC_OK);
	assert_int_equal(look.run, GPC_RUN_ENDED);
	file->b.header->state = GPUCACHE_STATE_OPENED;
	builder_write(&file->b, file->path);
	assert_int_equal(look_at(file, &look), GPC_OK);
	assert_int_equal(look.run, GPC_RUN_KILLED);
	file->b.header->state = GPUCACHE_STATE_OPENED | GPUCACHE_STATE_EXITED;
	builder_write(&file->b, file->path);
	assert_int_equal(look_at(file, &look), GPC_OK);
	assert_int_equal(look.run, GPC_RUN_EXITED);
	/* Our own look must not keep a writer out. */
	fd = open(file->path, O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	close(fd);
}

TEST(a_writer_that_ends_during_the_look_was_not_killed)
{
	struct recording_file *file = *state;
	struct look look;

	file->b.header->state = GPUCACHE_STATE_OPENED;
	builder_write(&file->b, file->path);
	ends_now = file->path;
	assert_int_equal(look_at(file, &look), GPC_OK);
	ends_now = NULL;
	assert_int_equal(look.run, GPC_RUN_ENDED);
	assert_true(look.header.state & GPUCACHE_STATE_CLEAN_EXIT);
}

TEST(a_state_that_cannot_be_read_again_is_an_error)
{
	struct recording_file *file = *state;
	struct gpc_recording *recording = NULL;
	struct look look;
	struct gpc_text text = gpc_text_init(look.why, sizeof look.why);

	builder_write(&file->b, file->path);
	becomes_unreadable_now = true;
	assert_int_equal(look_at(file, &look), GPC_IO);
	assert_string_equal(look.why, "Is a directory");
	assert_int_equal(gpc_recording_open(file->path, &recording, &text), GPC_IO);
	becomes_unreadable_now = false;
	assert_null(recording);
	assert_int_equal(look.header.state, 0);
}
