/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX ranges as tags: PyTorch, NCCL and other unmodified programs mark their work by nvtxRangePush and nvtxRangePop.
 *
 * NVTX is a header.  Each object that includes it has its own copy, which looks for a tool once, at its first use: the
 * library named by NVTX_INJECTION64_PATH, else a tool linked into the program.  NVTX does not look at preloaded
 * libraries, so the variable has to name us.  gpucache-run sets it, unless it already names a profiler: then the
 * profiler gets the ranges, and we get none.
 *
 * Handles of domains and strings are the ids of stack/tags.h.  A range of nvtxRangeStart may end in another thread, so
 * it says nothing about the thread that allocates: such ranges are not tags.
 */
#include <string.h>

#include "base/text.h"
#include "base/thread.h"
#include "preload/nvtx_abi.h"
#include "preload/real.h"
#include "runtime/process/tags.h"

/* Room for the name of a domain and of a range, each as long as a tag may be. */
#define NAME_SIZE 160

EXPORT int InitializeInjectionNvtx2(gpc_nvtx_find_table find_table);

/* Appends as UTF-8; an invalid character becomes '?'. */
static void put_wide(struct gpc_text *text, const wchar_t *wide)
{
	for (; *wide && !text->cut; wide++) {
		uint32_t letter = (uint32_t)*wide;
		char utf8[4];

		gpc_text_add(text, "%.*s",
			(int)gpc_text_encode(letter < 0x110000 ? letter : '?', utf8), utf8);
	}
}

static uint32_t id_of(const void *handle)
{
	return (uint32_t)(uintptr_t)handle;
}

static void *handle_of(uint32_t id)
{
	return (void *)(uintptr_t)id; /* 0, without room, becomes NVTX's default domain */
}

static void put_message(struct gpc_text *text, const struct gpc_nvtx_attributes *attributes)
{
	if (!attributes || attributes->size < sizeof *attributes)
		return;
	if (attributes->message_type == GPC_NVTX_MESSAGE_REGISTERED)
		gpc_text_add(
			text, "%s", gpc_runtime_tag_name(id_of(attributes->message.registered)));
	else if (attributes->message_type == GPC_NVTX_MESSAGE_ASCII && attributes->message.ascii)
		gpc_text_add(text, "%s", attributes->message.ascii);
	else if (attributes->message_type == GPC_NVTX_MESSAGE_UNICODE &&
		 attributes->message.unicode)
		put_wide(text, attributes->message.unicode);
}

/* Pushes the range named by `text`, which begins with a prefix of `prefix_len` bytes, the name of the domain. */
static int push(uint32_t domain, struct gpc_text *text, size_t prefix_len)
{
	if (text->len == prefix_len)
		gpc_text_add(text, "unnamed");
	return (int)gpc_runtime_tag_push(domain, text->buf);
}

static int push_a(const char *name)
{
	GPC_TEXT(text, NAME_SIZE);

	if (name)
		gpc_text_add(&text, "%s", name);
	return push(GPC_TAG_OF_NVTX, &text, 0);
}

static int push_w(const wchar_t *name)
{
	GPC_TEXT(text, NAME_SIZE);

	if (name)
		put_wide(&text, name);
	return push(GPC_TAG_OF_NVTX, &text, 0);
}

static uint32_t domain_of(const void *handle)
{
	return handle ? id_of(handle) : GPC_TAG_OF_NVTX; /* NULL: NVTX's default domain */
}

/*
 * XLA marks each pass of its compiler and each kernel, with numbers: a thousand names for a few operations, and none of them
 * the program's.  Its executions have ranges of their own (hooks_pjrt.c).
 */
static bool is_xla(const void *domain)
{
	return domain && strcmp(gpc_runtime_tag_name(id_of(domain)), "TSL") == 0;
}

static int domain_push_ex(const void *domain, const struct gpc_nvtx_attributes *attributes)
{
	GPC_TEXT(text, NAME_SIZE);
	size_t prefix_len;

	if (is_xla(domain))
		return 0;
	if (domain)
		gpc_text_add(&text, "%s:", gpc_runtime_tag_name(id_of(domain)));
	prefix_len = text.len;
	put_message(&text, attributes);
	return push(domain_of(domain), &text, prefix_len);
}

static int push_ex(const struct gpc_nvtx_attributes *attributes)
{
	return domain_push_ex(NULL, attributes);
}

/* NVTX reports an error as a negative level. */
static int domain_pop(const void *domain)
{
	uint32_t level;

	if (is_xla(domain))
		return 0;
	return gpc_runtime_tag_pop(domain_of(domain), &level) ? (int)level : -1;
}

static int pop(void)
{
	return domain_pop(NULL);
}

static void *register_string_a(const void *domain, const char *string)
{
	(void)domain;
	return handle_of(string ? gpc_runtime_tag_string(string) : 0);
}

static void *register_string_w(const void *domain, const wchar_t *string)
{
	GPC_TEXT(text, NAME_SIZE);

	if (string)
		put_wide(&text, string);
	return register_string_a(domain, text.buf);
}

static void *create_domain_a(const char *name)
{
	return handle_of(name ? gpc_runtime_tag_domain(name) : 0);
}

static void *create_domain_w(const wchar_t *name)
{
	GPC_TEXT(text, NAME_SIZE);

	if (name)
		put_wide(&text, name);
	return create_domain_a(text.buf);
}

struct function {
	unsigned number;
	gpc_nvtx_function ours;
};

static const struct function core[] = {
	{ GPC_NVTX_CORE_PUSH_EX, (gpc_nvtx_function)push_ex },
	{ GPC_NVTX_CORE_PUSH_A, (gpc_nvtx_function)push_a },
	{ GPC_NVTX_CORE_PUSH_W, (gpc_nvtx_function)push_w },
	{ GPC_NVTX_CORE_POP, (gpc_nvtx_function)pop },
};

static const struct function core2[] = {
	{ GPC_NVTX_CORE2_PUSH_EX, (gpc_nvtx_function)domain_push_ex },
	{ GPC_NVTX_CORE2_POP, (gpc_nvtx_function)domain_pop },
	{ GPC_NVTX_CORE2_REGISTER_STRING_A, (gpc_nvtx_function)register_string_a },
	{ GPC_NVTX_CORE2_REGISTER_STRING_W, (gpc_nvtx_function)register_string_w },
	{ GPC_NVTX_CORE2_CREATE_DOMAIN_A, (gpc_nvtx_function)create_domain_a },
	{ GPC_NVTX_CORE2_CREATE_DOMAIN_W, (gpc_nvtx_function)create_domain_w },
};

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Fills in only the functions that this copy of NVTX has: an older one has fewer. */
static void attach(const struct gpc_nvtx_callbacks *callbacks, int module,
	const struct function *functions, size_t n)
{
	gpc_nvtx_function **table = NULL;
	unsigned n_in_table = 0;

	if (!callbacks->find_functions(module, &table, &n_in_table) || !table)
		return;
	for (size_t i = 0; i < n; i++) {
		if (functions[i].number < n_in_table && table[functions[i].number])
			*table[functions[i].number] = functions[i].ours;
	}
}

int InitializeInjectionNvtx2(gpc_nvtx_find_table find_table)
{
	const struct gpc_nvtx_callbacks *callbacks;

	if (!find_table || !gpc_runtime_wants_tags())
		return 0;
	callbacks = find_table(GPC_NVTX_TABLE_CALLBACKS);
	if (!callbacks || callbacks->struct_size < sizeof *callbacks)
		return 0;
	attach(callbacks, GPC_NVTX_MODULE_CORE, core, N_OF(core));
	attach(callbacks, GPC_NVTX_MODULE_CORE2, core2, N_OF(core2));
	return 1;
}
