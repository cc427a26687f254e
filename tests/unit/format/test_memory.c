/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/memory.h"

/* Without these a sanitizer ends the program before the tool can. */
#define RETURNS_NULL(function)                                             \
	__attribute__((visibility("default"))) const char *function(void); \
	const char *function(void)                                         \
	{                                                                  \
		return "allocator_may_return_null=1";                      \
	}
RETURNS_NULL(__asan_default_options)
RETURNS_NULL(__tsan_default_options)

TEST(what_is_new_is_zero_even_if_empty)
{
	unsigned char *bytes = gpc_new(3, 5);
	void *none = gpc_new(0, 8);
	static const unsigned char zeros[15];

	assert_memory_equal(bytes, zeros, sizeof zeros);
	assert_non_null(none);
	bytes = gpc_resize(bytes, 100, 1);
	assert_memory_equal(bytes, zeros, sizeof zeros);
	bytes = gpc_resize(bytes, 0, 1);
	assert_non_null(bytes);
	free(bytes);
	free(none);
}

TEST(texts_are_copied_and_printed)
{
	char *copy = gpc_copy("as it is");
	char *text = gpc_print("%s %d", "number", 7);

	assert_string_equal(copy, "as it is");
	assert_string_equal(text, "number 7");
	free(copy);
	free(text);
}

/* The exit status of a child that runs it. */
static int status_of(void (*run)(void))
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

		(void)!dup2(nowhere, STDERR_FILENO);
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void ask_for_too_much(void)
{
	free(gpc_resize(NULL, SIZE_MAX / 2, 4)); /* the product overflows */
}

static void check_null(void)
{
	(void)gpc_checked(NULL);
}

TEST(where_there_is_none_the_tool_ends)
{
	assert_int_equal(status_of(ask_for_too_much), GPC_EXIT_NO_MEMORY);
	assert_int_equal(status_of(check_null), GPC_EXIT_NO_MEMORY);
}
