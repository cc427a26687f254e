/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "private_record.h"

TEST(a_stream_keeps_its_number_from_the_first_time_on)
{
	assert_int_equal(gpc_record_stream(&rec, 0x5000), 1);
	assert_int_equal(gpc_record_stream(&rec, GPUCACHE_STREAM_LEGACY), 2);
	assert_int_equal(gpc_record_stream(&rec, 0x5000), 1);
	assert_int_equal(rec.streams[1].handle, 0x5000);
	assert_int_equal(rec.streams[2].handle, GPUCACHE_STREAM_LEGACY);
	assert_true(rec.streams[1].first_ns > 0);
	assert_int_equal(rec.streams[0].handle, 0);
	assert_int_equal(rec.streams[3].handle, 0);
}

TEST(a_handle_that_comes_again_is_another_stream)
{
	assert_int_equal(gpc_record_stream(&rec, 0x5000), 1);
	gpc_record_end_stream(&rec, 0x6000);
	assert_int_equal(rec.streams[1].end_ns, 0);
	gpc_record_end_stream(&rec, 0x5000);
	assert_true(rec.streams[1].end_ns >= rec.streams[1].first_ns);
	assert_int_equal(gpc_record_stream(&rec, 0x5000), 2);
	assert_int_equal(rec.streams[1].handle, 0x5000);
	assert_int_equal(rec.streams[2].end_ns, 0);
}

TEST(streams_without_room_have_one_number)
{
	for (uint32_t i = 1; i < GPUCACHE_MAX_STREAMS; i++)
		assert_int_equal(gpc_record_stream(&rec, 0x1000 * i), i);
	assert_int_equal(gpc_record_stream(&rec, 0x7), GPUCACHE_STREAM_OTHER);
	assert_int_equal(gpc_record_stream(&rec, 0x8), GPUCACHE_STREAM_OTHER);
	gpc_record_end_stream(&rec, 0x7);
	assert_int_equal(gpc_record_stream(&rec, 0x1000), 1);
}

TEST(a_closed_recording_names_none)
{
	struct gpc_record closed = { .fd = -1 };

	assert_int_equal(gpc_record_stream(&closed, 0x5000), 0);
	gpc_record_end_stream(&closed, 0x5000);
}

static void *name_all(void *arg)
{
	uint32_t *numbers = arg;

	for (uint32_t round = 0; round < 50; round++)
		for (uint32_t i = 0; i < 100; i++)
			numbers[i] = gpc_record_stream(&rec, 0x1000 + i);
	return NULL;
}

TEST(threads_agree_on_the_numbers)
{
	uint32_t numbers[4][100];
	pthread_t threads[4];

	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, name_all, numbers[i]), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(rec.streams[numbers[0][i]].handle, 0x1000 + i);
		for (unsigned t = 1; t < 4; t++)
			assert_int_equal(numbers[t][i], numbers[0][i]);
	}
}
