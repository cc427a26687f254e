/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry point of NVTX, called by a fake NVTX that may be older or smaller than ours in every way;
 * tests/programs/nvtx.c uses NVIDIA's own.
 */
#include "unit.h"

/* Its functions are static: reached as NVTX reaches them, by what the door writes into the tables. */
#include "preload/nvtx.c"

#define N_CORE  16
#define N_CORE2 16

typedef int (*call_push)(const char *);
typedef int (*call_push_wide)(const wchar_t *);
typedef int (*call_push_ex)(const struct gpc_nvtx_attributes *);
typedef int (*call_pop)(void);
typedef int (*call_domain_push_ex)(const void *, const struct gpc_nvtx_attributes *);
typedef int (*call_domain_pop)(const void *);
typedef void *(*call_create)(const char *);
typedef void *(*call_create_wide)(const wchar_t *);
typedef void *(*call_register)(const void *, const char *);
typedef void *(*call_register_wide)(const void *, const wchar_t *);

static struct {
	gpc_nvtx_function core[N_CORE];
	gpc_nvtx_function core2[N_CORE2];
	gpc_nvtx_function *core_table[N_CORE];
	gpc_nvtx_function *core2_table[N_CORE2];
	unsigned n_core;
	bool has_core2;
	struct gpc_nvtx_callbacks callbacks;
	bool has_callbacks;
} copy;

static int find_functions(int module, gpc_nvtx_function ***ret_functions, unsigned *ret_n)
{
	if (module == GPC_NVTX_MODULE_CORE2 && !copy.has_core2)
		return 0;
	*ret_functions = module == GPC_NVTX_MODULE_CORE ? copy.core_table : copy.core2_table;
	*ret_n = module == GPC_NVTX_MODULE_CORE ? copy.n_core : N_CORE2;
	return 1;
}

static const void *find_table(uint32_t table)
{
	return table == GPC_NVTX_TABLE_CALLBACKS && copy.has_callbacks ? &copy.callbacks : NULL;
}

static int setup(void **state)
{
	memset(&copy, 0, sizeof copy);
	for (unsigned i = 1; i < N_CORE; i++) {
		copy.core_table[i] = &copy.core[i];
		copy.core2_table[i] = &copy.core2[i];
	}
	copy.n_core = N_CORE;
	copy.has_core2 = true;
	copy.has_callbacks = true;
	copy.callbacks = (struct gpc_nvtx_callbacks){ sizeof copy.callbacks, find_functions };
	gpc_thread.place = (struct gpc_tag_place){ 0 };
	unsetenv("GPUCACHE");
	return 0;
}

FIXTURE(setup, NULL);

/* The name of the range that this thread is in, without those around it. */
static const char *here(void)
{
	return gpc_runtime_tag_name(gpc_thread_tag());
}

TEST(ranges_without_a_domain_are_tags)
{
	struct gpc_nvtx_attributes attributes = { .size = sizeof attributes };
	call_push_ex push_with;
	call_pop pop_one;

	assert_int_equal(InitializeInjectionNvtx2(find_table), 1);
	push_with = (call_push_ex)copy.core[GPC_NVTX_CORE_PUSH_EX];
	pop_one = (call_pop)copy.core[GPC_NVTX_CORE_POP];
	assert_int_equal(((call_push)copy.core[GPC_NVTX_CORE_PUSH_A])("plain"), 0);
	assert_string_equal(here(), "plain");
	assert_int_equal(
		((call_push_wide)copy.core[GPC_NVTX_CORE_PUSH_W])(L"\u00e4\u2264\U0001f642"), 1);
	assert_string_equal(here(), "\u00e4\u2264\U0001f642");
	attributes.message_type = GPC_NVTX_MESSAGE_ASCII;
	attributes.message.ascii = "with attributes";
	assert_int_equal(push_with(&attributes), 2);
	assert_string_equal(here(), "with attributes");
	attributes.message_type = GPC_NVTX_MESSAGE_UNICODE;
	attributes.message.unicode = L"wide";
	assert_int_equal(push_with(&attributes), 3);
	assert_string_equal(here(), "wide");
	for (int level = 3; level >= 0; level--)
		assert_int_equal(pop_one(), level);
	assert_int_equal(pop_one(), -1);
}

TEST(a_range_without_text_is_unnamed)
{
	struct gpc_nvtx_attributes attributes = { .size = sizeof attributes };
	call_push_ex push_with;

	assert_int_equal(InitializeInjectionNvtx2(find_table), 1);
	push_with = (call_push_ex)copy.core[GPC_NVTX_CORE_PUSH_EX];
	((call_push)copy.core[GPC_NVTX_CORE_PUSH_A])(NULL);
	assert_string_equal(here(), "unnamed");
	((call_push)copy.core[GPC_NVTX_CORE_PUSH_A])("x");
	((call_push_wide)copy.core[GPC_NVTX_CORE_PUSH_W])(NULL);
	assert_string_equal(here(), "unnamed");
	push_with(NULL);
	for (int type = 0; type <= 4; type++) {
		attributes.message_type = type;
		assert_true(push_with(&attributes) > 0);
		assert_string_equal(here(), "unnamed");
	}
	attributes.message_type = GPC_NVTX_MESSAGE_ASCII;
	attributes.message.ascii = "beyond what this caller says that it has";
	attributes.size = offsetof(struct gpc_nvtx_attributes, message_type);
	push_with(&attributes);
	assert_string_equal(here(), "unnamed");
}

TEST(domains_prefix_their_ranges_and_end_them_alone)
{
	struct gpc_nvtx_attributes attributes = { .size = sizeof attributes,
		.message_type = GPC_NVTX_MESSAGE_REGISTERED };
	call_domain_push_ex push_with;
	call_domain_pop pop_one;
	void *domain;
	void *wide;

	assert_int_equal(InitializeInjectionNvtx2(find_table), 1);
	push_with = (call_domain_push_ex)copy.core2[GPC_NVTX_CORE2_PUSH_EX];
	pop_one = (call_domain_pop)copy.core2[GPC_NVTX_CORE2_POP];
	domain = ((call_create)copy.core2[GPC_NVTX_CORE2_CREATE_DOMAIN_A])("net");
	wide = ((call_create_wide)copy.core2[GPC_NVTX_CORE2_CREATE_DOMAIN_W])(L"wide");
	assert_non_null(domain);
	assert_ptr_equal(((call_create)copy.core2[GPC_NVTX_CORE2_CREATE_DOMAIN_A])("net"), domain);
	assert_null(((call_create)copy.core2[GPC_NVTX_CORE2_CREATE_DOMAIN_A])(NULL));
	attributes.message.registered =
		((call_register)copy.core2[GPC_NVTX_CORE2_REGISTER_STRING_A])(domain, "forward");
	assert_int_equal(push_with(domain, &attributes), 0);
	assert_string_equal(here(), "net:forward");
	attributes.message.registered =
		((call_register_wide)copy.core2[GPC_NVTX_CORE2_REGISTER_STRING_W])(wide, L"rück");
	assert_int_equal(push_with(wide, &attributes), 0);
	assert_string_equal(here(), "wide:rück");
	assert_int_equal(push_with(NULL, &attributes), 0);
	assert_string_equal(here(), "rück");
	attributes.message.registered = NULL;
	assert_int_equal(push_with(domain, &attributes), 1);
	assert_string_equal(here(), "net:unnamed");
	assert_int_equal(pop_one(NULL), 0);
	assert_string_equal(here(), "net:unnamed");
	assert_int_equal(pop_one(domain), 1);
	assert_int_equal(pop_one(domain), 0);
	assert_string_equal(here(), "wide:rück");
	assert_int_equal(pop_one(wide), 0);
	assert_int_equal(pop_one(wide), -1);
}

TEST(a_smaller_copy_gets_what_it_has)
{
	copy.n_core = GPC_NVTX_CORE_PUSH_A + 1;
	copy.core_table[GPC_NVTX_CORE_PUSH_EX] = NULL;
	copy.has_core2 = false;
	assert_int_equal(InitializeInjectionNvtx2(find_table), 1);
	assert_non_null(copy.core[GPC_NVTX_CORE_PUSH_A]);
	assert_null(copy.core[GPC_NVTX_CORE_PUSH_EX]);
	assert_null(copy.core[GPC_NVTX_CORE_PUSH_W]);
	assert_null(copy.core[GPC_NVTX_CORE_POP]);
	assert_null(copy.core2[GPC_NVTX_CORE2_PUSH_EX]);
}

TEST(a_copy_that_we_do_not_know_or_that_is_not_wanted_gets_nothing)
{
	assert_int_equal(InitializeInjectionNvtx2(NULL), 0);
	setenv("GPUCACHE", "0", 1);
	assert_int_equal(InitializeInjectionNvtx2(find_table), 0);
	unsetenv("GPUCACHE");
	copy.callbacks.struct_size = sizeof(size_t);
	assert_int_equal(InitializeInjectionNvtx2(find_table), 0);
	copy.has_callbacks = false;
	assert_int_equal(InitializeInjectionNvtx2(find_table), 0);
	assert_null(copy.core[GPC_NVTX_CORE_PUSH_A]);
}

TEST(a_wide_character_that_is_none_is_a_question_mark)
{
	const wchar_t name[] = { 'a', 0x110000, 'b', 0 };

	assert_int_equal(InitializeInjectionNvtx2(find_table), 1);
	((call_push_wide)copy.core[GPC_NVTX_CORE_PUSH_W])(name);
	assert_string_equal(here(), "a?b");
}
