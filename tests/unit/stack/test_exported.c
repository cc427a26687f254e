/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/exported.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define MAX_ROWS 16

/* What the sink was told. */
struct told {
	unsigned n;
	bool is_wanted;
	struct {
		uint64_t address;
		uint64_t start;
		uint32_t tag;
		char name[64];
		char path[200];
	} rows[MAX_ROWS];
};

static bool wants(void *self, const char *path)
{
	return ((struct told *)self)->is_wanted;
}

static void found(void *self, const struct gpc_exported *exported, const char *path, uint64_t base)
{
	struct told *told = self;

	assert_true(told->n < MAX_ROWS);
	told->rows[told->n].address = exported->address;
	told->rows[told->n].start = exported->start;
	told->rows[told->n].tag = exported->tag;
	snprintf(told->rows[told->n].name, sizeof told->rows[0].name, "%s",
		exported->name ? exported->name : "");
	snprintf(told->rows[told->n].path, sizeof told->rows[0].path, "%s", path);
	told->n++;
}

static int compare(const void *left, const void *right)
{
	const struct gpc_exported *a = left, *b = right;

	return (a->address > b->address) - (a->address < b->address);
}

/* Ascending, without what occurs twice. */
static unsigned fill(struct gpc_exported *rows, const uint64_t *addresses, unsigned n)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++)
		rows[i] = (struct gpc_exported){ .address = addresses[i], .tag = i };
	qsort(rows, n, sizeof *rows, compare);
	for (unsigned i = 0; i < n; i++)
		if (!kept || rows[kept - 1].address != rows[i].address)
			rows[kept++] = rows[i];
	return kept;
}

static struct told find(const uint64_t *addresses, unsigned n, bool is_wanted)
{
	struct gpc_exported rows[MAX_ROWS];
	struct told told = { .is_wanted = is_wanted };
	const struct gpc_exported_sink sink = { &told, wants, found };

	gpc_exported_find(rows, fill(rows, addresses, n), &sink);
	return told;
}

static uint64_t address_of(const char *function)
{
	void *symbol = dlsym(RTLD_DEFAULT, function);

	assert_non_null(symbol);
	return (uint64_t)(uintptr_t)symbol;
}

TEST(a_function_is_found_where_the_loader_finds_it)
{
	static const char *const functions[] = { "getppid", "qsort", "strtol", "malloc", "fopen",
		"dlopen", "abort", "snprintf" };
	uint64_t addresses[MAX_ROWS];
	unsigned n = sizeof functions / sizeof *functions;
	struct told told;
	Dl_info info;

	for (unsigned i = 0; i < n; i++)
		addresses[i] = address_of(functions[i]) + 1;
	told = find(addresses, n, true);
	assert_int_equal(told.n, n);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(addresses[told.rows[i].tag], told.rows[i].address);
		assert_int_not_equal(dladdr((void *)(uintptr_t)told.rows[i].address, &info), 0);
		assert_int_equal(told.rows[i].start, (uint64_t)(uintptr_t)info.dli_saddr);
		assert_string_equal(told.rows[i].path, info.dli_fname);
	}
}

TEST(an_address_outside_all_objects_is_not_told)
{
	const uint64_t addresses[] = { 1, (uint64_t)(uintptr_t)state, address_of("getppid") };
	struct told told;

	told = find(addresses, 3, true);
	assert_int_equal(told.n, 1);
	assert_int_equal(told.rows[0].tag, 2);
}

TEST(what_nobody_wants_is_told_without_a_name)
{
	const uint64_t address = address_of("getppid");
	struct told told = find(&address, 1, false);

	assert_int_equal(told.n, 1);
	assert_string_equal(told.rows[0].name, "");
	assert_true(told.rows[0].path[0]);
}

static int of_this_program(void)
{
	return 7;
}

TEST(the_executable_has_no_path)
{
	const uint64_t address = (uint64_t)(uintptr_t)of_this_program;
	struct told told = find(&address, 1, true);

	assert_int_equal(of_this_program(), 7);
	assert_int_equal(told.n, 1);
	assert_string_equal(told.rows[0].path, "");
}

TEST(no_addresses_ask_nobody)
{
	assert_int_equal(find(NULL, 0, true).n, 0);
}

/* The names that the executable imports: it is the first object, and has no path. */
static int ask_executable(struct dl_phdr_info *info, size_t size, void *arg)
{
	static const char *const wanted[] = { "a_function_of_nobody", "dlsym", NULL };
	static const char *const others[] = { "a_function_of_nobody", "main", NULL };
	bool *answers = arg;

	answers[0] = gpc_exported_is_imported(info, wanted);
	answers[1] = gpc_exported_is_imported(info, others);
	return 1;
}

TEST(an_import_is_known_by_its_name)
{
	bool answers[2] = { false, true };

	assert_non_null(dlsym(RTLD_DEFAULT, "malloc"));
	(void)dl_iterate_phdr(ask_executable, answers);
	assert_true(answers[0]);
	assert_false(answers[1]);
}
