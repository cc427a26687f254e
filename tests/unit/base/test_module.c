/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <dlfcn.h>

#include "base/module.h"

static const char *const none[] = { NULL };
static const char *const libc[] = { "ld-", "libc.", NULL };

static int written = 1; /* in another part than code */

int main(void);

TEST(code_and_data_of_a_program_are_in_one_module)
{
	struct gpc_module module = gpc_module_of((const void *)(uintptr_t)main, none);

	assert_true(module.end);
	assert_false(module.is_named);
	assert_in_range((uintptr_t)&written, module.start, module.end - 1);
	assert_int_equal(gpc_module_of(&written, none).start, module.start);
	assert_int_equal(gpc_module_of((const void *)module.start, none).end, module.end);
	assert_int_not_equal(gpc_module_of((const void *)module.end, none).start, module.start);
	assert_int_not_equal(gpc_module_of((const void *)(module.start - 1), none).end, module.end);
}

/* A function that no sanitizer replaces by its own. */
TEST(a_library_is_known_by_how_its_file_begins)
{
	static const char *const cmocka[] = { "ld-", "libcmocka.", NULL };
	const void *inside = dlsym(RTLD_DEFAULT, "_cmocka_run_group_tests");
	Dl_info info;

	assert_int_not_equal(dladdr(inside, &info), 0);
	assert_int_equal(gpc_module_of(inside, cmocka).start, (uintptr_t)info.dli_fbase);
	assert_true(gpc_module_of(inside, cmocka).is_named);
	assert_false(gpc_module_of(inside, libc).is_named);
	assert_false(gpc_module_of(&written, cmocka).is_named);
}

TEST(memory_of_its_own_is_in_no_module)
{
	void *block = test_malloc(16);

	assert_int_equal(gpc_module_of(block, libc).end, 0);
	assert_false(gpc_module_of(NULL, libc).is_named);
	test_free(block);
}

TEST(a_folder_is_no_part_of_the_name)
{
	assert_true(gpc_module_file_begins("/lib/libc.so.6", libc));
	assert_true(gpc_module_file_begins("libc.so.6", libc));
	assert_false(gpc_module_file_begins("/libc.d/libm.so.6", libc));
	assert_false(gpc_module_file_begins("/lib/libcap.so", libc));
	assert_false(gpc_module_file_begins("", libc));
}
