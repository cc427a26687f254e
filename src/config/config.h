/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options, from GPUCACHE_CONF=key:value,key:value.
 *
 * options.def has one row per option; the field of struct gpc_config with its name has its value.  After a
 * mistake the default stays, and a warning names the key, the nearest key, and the value used instead.
 * The caller prints the warnings and writes them into the recording; it ends the program only if
 * `is_fatal` (strict:true).
 *
 *	struct gpc_config config;
 *
 *	gpc_config_load(&config);                            -> environment
 *	for (unsigned i = 0; i < config.n_warnings; i++)
 *		gpc_log("%s", config.warnings[i]);
 *	if (config.is_fatal || config.help) ...
 *
 * Invariants  1 After any parse every field is within its range.  2 A second parse keeps options of the
 *               first that it does not name.
 * Threads     An object belongs to one thread while it is filled; constant afterwards.
 * Failure     None: see `warnings`, `n_more_warnings` and `is_fatal`.
 * Limits      PyTorch's list form of roundup_power2_divisions is not supported.
 */
#ifndef GPC_CONFIG_CONFIG_H
#define GPC_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* Bytes, or a fraction of the device; 0 bytes and 0 ppm: not set. */
struct gpc_amount {
	uint64_t bytes;
	uint32_t ppm; /* millionths; if not 0, `bytes` is 0 */
};

/* What the word "auto" means as a SIZE, in an option that has that word. */
#define GPC_SIZE_AUTO UINT64_MAX

/* The values of the ENUM options, in the order of their choices. */
enum gpc_cache_policy {
	GPC_CACHE_OFF,
	GPC_CACHE_AUTO,
	GPC_CACHE_ON
};
enum gpc_stack_policy {
	GPC_STACKS_OFF,
	GPC_STACKS_SAMPLED,
	GPC_STACKS_ALL
};
enum gpc_tensor_policy {
	GPC_TENSORS_AUTO,
	GPC_TENSORS_SAMPLED,
	GPC_TENSORS_OFF
};
enum gpc_free_order {
	GPC_FREE_ORDER_DEVICE,
	GPC_FREE_ORDER_FENCE,
	GPC_FREE_ORDER_HOST
};
/* vmm: enum gpc_vmm of alloc/pool.h. */
enum gpc_oom_report {
	GPC_OOM_REPORT_AUTO,
	GPC_OOM_REPORT_ALWAYS,
	GPC_OOM_REPORT_NEVER
};

enum gpc_option {
#define OPTION(name, ...) GPC_OPTION_##name,
#include "config/options.def"
	GPC_OPTION_COUNT,
};

/* Where a value came from. */
enum gpc_config_source {
	GPC_SOURCE_DEFAULT,
	GPC_SOURCE_CONF,    /* GPUCACHE_CONF */
	GPC_SOURCE_OUTPUT,  /* GPUCACHE_OUTPUT */
	GPC_SOURCE_CHECKER, /* a memory checker, see `checker` */
};

#define GPC_CONFIG_MAX_STRING   512
#define GPC_CONFIG_MAX_WARNINGS 16
#define GPC_CONFIG_MAX_WARNING  192

#define GPC_FIELD_BOOL(name)     bool name;
#define GPC_FIELD_ENUM(name)     unsigned name;
#define GPC_FIELD_INT(name)      int64_t name;
#define GPC_FIELD_SIZE(name)     uint64_t name;
#define GPC_FIELD_AMOUNT(name)   struct gpc_amount name;
#define GPC_FIELD_FRACTION(name) uint32_t name;
#define GPC_FIELD_DURATION(name) uint64_t name;
#define GPC_FIELD_STRING(name)   char name[GPC_CONFIG_MAX_STRING];

struct gpc_config {
#define OPTION(name, type, ...) GPC_FIELD_##type(name)
#include "config/options.def"
	uint8_t sources[GPC_OPTION_COUNT]; /* enum gpc_config_source */
	unsigned n_warnings;
	unsigned n_more_warnings; /* warnings for which `warnings` had no room */
	char warnings[GPC_CONFIG_MAX_WARNINGS][GPC_CONFIG_MAX_WARNING];
	bool is_fatal; /* `strict` is set, and there was a warning */
	/* GPUCACHE_CONF as it was read, or its beginning: other threads may change the environment later. */
	char text[GPC_CONFIG_MAX_STRING];
	const char *checker; /* the memory checker that switched the cache off; NULL: none */
};

/* Gives every option its default, and clears the warnings. */
void gpc_config_init(struct gpc_config *config);

/* Applies `text`, in the syntax of GPUCACHE_CONF; NULL changes nothing.  Does not read the environment. */
void gpc_config_parse(struct gpc_config *config, const char *text);

/*
 * Applies defaults, GPUCACHE_CONF, then GPUCACHE_OUTPUT.  Under compute-sanitizer and cuda-memcheck the
 * cache is off unless GPUCACHE_CONF sets it: they know the bounds of driver allocations, not of our
 * blocks.
 */
void gpc_config_load(struct gpc_config *config);

/*
 * True if the library must stay inactive: GPUCACHE is 0, off, false or no, or the program has more
 * privileges than its caller (AT_SECURE).
 */
bool gpc_config_is_off(void);

/* An amount in bytes, on a device of that size; UINT64_MAX if it is not set. */
uint64_t gpc_amount_of(const struct gpc_amount *amount, uint64_t device_bytes);

/* `bytes` times `ppm` millionths, without overflow. */
uint64_t gpc_fraction_of(uint32_t ppm, uint64_t bytes);

/* Appends the table of all options, for which GPC_CONFIG_HELP_SIZE bytes suffice. */
void gpc_config_help(struct gpc_text *text);
#define GPC_CONFIG_HELP_SIZE 4096

/* Calls emit once per option with a line "key value source", without a newline. */
void gpc_config_describe(
	const struct gpc_config *config, void (*emit)(void *arg, const char *line), void *arg);

#endif
