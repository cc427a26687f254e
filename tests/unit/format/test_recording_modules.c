/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "format/recording.h"
#include "recording_builder.h"
#include "unit.h"

#define N_MODULES 40

static struct recording_builder builder;
static struct gpc_recording *recording;
static char path[] = "/tmp/gpucache-modules-XXXXXX";

static int begin(void **state)
{
	builder_init(&builder);
	strcpy(path + sizeof path - 7, "XXXXXX");
	close(mkstemp(path));
	return 0;
}

static int end(void **state)
{
	gpc_recording_close(recording);
	recording = NULL;
	builder_fini(&builder);
	return unlink(path);
}

FIXTURE(begin, end);

static void open_it(void)
{
	char why[100];
	struct gpc_text text = gpc_text_init(why, sizeof why);

	builder_write(&builder, path);
	assert_int_equal(gpc_recording_open(path, &recording, &text), GPC_OK);
}

static void assert_in(uint64_t address, int expected)
{
	struct gpc_module_view view;
	size_t number = 99;
	bool is_found = gpc_recording_find_module(recording, address, &number, &view);

	assert_int_equal(is_found ? (int)number : -1, expected);
}

TEST(a_later_module_replaces_what_it_covers)
{
	builder_module(&builder, "/a", 0x1000, 0x9000, 0);
	builder_module(&builder, "/b", 0x3000, 0x5000, 0);
	builder_module(&builder, "/c", 0x8000, 0xa000, 0);
	open_it();
	assert_in(0xfff, -1);
	assert_in(0x1000, 0);
	assert_in(0x2fff, 0);
	assert_in(0x3000, 1);
	assert_in(0x4fff, 1);
	assert_in(0x5000, 0);
	assert_in(0x8000, 2);
	assert_in(0x9fff, 2);
	assert_in(0xa000, -1);
}

TEST(without_modules_none_is_found)
{
	open_it();
	assert_in(0x1000, -1);
	assert_in(UINT64_MAX, -1);
}

/* Of modules anywhere, the same as a search from the last to the first. */
TEST(every_address_is_in_the_last_module_that_covers_it)
{
	uint64_t bounds[N_MODULES][2];
	uint64_t random = 1;

	for (int i = 0; i < N_MODULES; i++) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		bounds[i][0] = random >> 56;
		bounds[i][1] = bounds[i][0] + 1 + (random >> 32 & 63);
		builder_module(&builder, "/m", bounds[i][0], bounds[i][1], 0);
	}
	open_it();
	for (uint64_t address = 0; address < 330; address++) {
		int expected = N_MODULES - 1;

		while (expected >= 0 &&
			(address < bounds[expected][0] || address >= bounds[expected][1]))
			expected--;
		assert_in(address, expected);
	}
}
