/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "stack/probe.h"

TEST(memory_that_is_there_is_copied)
{
	static const char text[] = "frames";
	struct gpc_probe probe;
	char copy[sizeof(text)];

	assert_true(gpc_probe_init(&probe));
	assert_true(gpc_probe_read(&probe, (uintptr_t)text, copy, sizeof(text)));
	assert_string_equal(copy, text);
	assert_true(gpc_probe_read(&probe, 0, copy, 0));
	assert_false(gpc_probe_read(&probe, (uintptr_t)text, copy, GPC_PROBE_MAX + 1));
	gpc_probe_fini(&probe);
}

TEST(memory_that_is_not_there_is_refused_and_the_next_read_is_right)
{
	long page = sysconf(_SC_PAGESIZE);
	char *pages = mmap(
		NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct gpc_probe probe;
	char copy[64];

	assert_true(pages != MAP_FAILED);
	assert_int_equal(munmap(pages + page, (size_t)page), 0);
	strcpy(pages, "here");
	assert_true(gpc_probe_init(&probe));
	errno = 77;
	assert_false(gpc_probe_read(&probe, 8, copy, 8));
	assert_false(gpc_probe_read(&probe, (uintptr_t)(pages + page), copy, 8));
	/* A range that begins in mapped memory and ends beyond it. */
	assert_false(gpc_probe_read(&probe, (uintptr_t)(pages + page - 16), copy, 64));
	assert_int_equal(errno, 77);
	assert_true(gpc_probe_read(&probe, (uintptr_t)pages, copy, 5));
	assert_string_equal(copy, "here");
	gpc_probe_fini(&probe);
	munmap(pages, (size_t)page);
}

TEST(without_descriptors_there_is_no_probe)
{
	struct rlimit before, none = { 0 };
	struct gpc_probe probe;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_false(gpc_probe_init(&probe));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(gpc_probe_init(&probe));
	gpc_probe_fini(&probe);
}
