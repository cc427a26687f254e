/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of key:value, split at commas outside brackets.  For an unknown key the nearest one, by edit distance, is
 * suggested if at most a third of its letters and one more differ.  A mistake is a warning; with `strict` it is fatal.
 */
#include "config/config.h"

#include <string.h>
#include <strings.h>
#include <sys/auxv.h>

#include "base/env.h"
#include "config/option.h"

/* A wrong key or value is shown up to this length. */
#define MAX_SHOWN 48

struct piece {
	const char *at;
	size_t len;
};

static struct piece trim(struct piece piece)
{
	while (piece.len > 0 && strchr(" \t\r\n", piece.at[0])) {
		piece.at++;
		piece.len--;
	}
	while (piece.len > 0 && strchr(" \t\r\n", piece.at[piece.len - 1]))
		piece.len--;
	return piece;
}

/* Counts one more warning.  Returns *text over a buffer for it, or NULL if all buffers are used. */
static struct gpc_text *begin_warning(struct gpc_config *config, struct gpc_text *text)
{
	if (config->n_warnings == GPC_CONFIG_MAX_WARNINGS) {
		config->n_more_warnings++;
		return NULL;
	}
	*text = gpc_text_init(config->warnings[config->n_warnings++], GPC_CONFIG_MAX_WARNING);
	return text;
}

/* Appends user input in quotes, truncated and without control characters. */
static void add_shown(struct gpc_text *text, struct piece piece)
{
	gpc_text_add(text, "\"");
	for (size_t i = 0; i < piece.len && i < MAX_SHOWN; i++) {
		unsigned char c = (unsigned char)piece.at[i];

		gpc_text_add(text, "%c", c < ' ' || c >= 0x7f ? '?' : c);
	}
	gpc_text_add(text, piece.len > MAX_SHOWN ? "...\"" : "\"");
}

/* The option most similar to `key`, or NULL. */
static const struct gpc_option_row *find_nearest(struct piece key)
{
	const struct gpc_option_row *nearest = NULL;
	size_t least = key.len / 3 + 2; /* a third of the letters may be wrong, and one more */

	if (key.len == 0)
		return NULL;
	for (unsigned i = 0; i < GPC_OPTION_COUNT; i++) {
		size_t d = gpc_text_distance(gpc_option_rows[i].name, key.at, key.len);

		if (d < least) {
			least = d;
			nearest = &gpc_option_rows[i];
		}
	}
	return nearest;
}

static const struct gpc_option_row *find_row(struct piece key)
{
	for (unsigned i = 0; i < GPC_OPTION_COUNT; i++) {
		const struct gpc_option_row *row = &gpc_option_rows[i];

		if (strlen(row->name) == key.len && strncasecmp(row->name, key.at, key.len) == 0)
			return row;
	}
	return NULL;
}

static void warn_unknown(struct gpc_config *config, struct piece key)
{
	const struct gpc_option_row *nearest = find_nearest(key);
	struct gpc_text buf;
	struct gpc_text *text = begin_warning(config, &buf);

	if (!text)
		return;
	gpc_text_add(text, "GPUCACHE_CONF: unknown key ");
	add_shown(text, key);
	if (nearest)
		gpc_text_add(text, " (did you mean \"%s\"?)", nearest->name);
	gpc_text_add(text, ", ignored");
}

static void warn_value(struct gpc_config *config, const struct gpc_option_row *row,
	const char *variable, struct piece value)
{
	struct gpc_text buf;
	struct gpc_text *text = begin_warning(config, &buf);

	if (!text)
		return;
	gpc_text_add(text, "%s: ", variable);
	if (value.len == 0) {
		gpc_text_add(text, "no value");
	} else {
		gpc_text_add(text, "bad value ");
		add_shown(text, value);
	}
	gpc_text_add(text, " for %s (%s), using ", row->name, gpc_option_hint(row));
	gpc_option_write(row, config, text);
}

/* The end of the item that starts at `at`: the next comma outside matched brackets, or the final NUL. */
static const char *find_item_end(const char *at)
{
	for (; *at && *at != ','; at++) {
		const char *close = NULL;

		if (*at == '[')
			close = strchr(at, ']');
		else if (*at == '{')
			close = strchr(at, '}');
		if (close)
			at = close;
	}
	return at;
}

static void parse_item(struct gpc_config *config, struct piece item)
{
	size_t key_len = 0;
	const struct gpc_option_row *row;
	struct piece key;
	struct piece value;

	while (key_len < item.len && item.at[key_len] != ':' && item.at[key_len] != '=')
		key_len++;
	key = trim((struct piece){ item.at, key_len });
	value = (struct piece){ item.at + key_len, item.len - key_len };
	if (value.len > 0) {
		value.at++;
		value.len--;
	}
	value = trim(value);
	row = find_row(key);
	if (!row) {
		warn_unknown(config, key);
		return;
	}
	if ((value.len > 0 || row->type == GPC_OPTION_STRING) &&
		gpc_option_read(row, config, value.at, value.len))
		config->sources[row - gpc_option_rows] = GPC_SOURCE_CONF;
	else
		warn_value(config, row, "GPUCACHE_CONF", value);
}

void gpc_config_init(struct gpc_config *config)
{
	memset(config, 0, sizeof *config);
	for (unsigned i = 0; i < GPC_OPTION_COUNT; i++) {
		const struct gpc_option_row *row = &gpc_option_rows[i];

		/* This cannot fail: the unit test reads every default. */
		(void)gpc_option_read(row, config, row->default_text, strlen(row->default_text));
	}
}

void gpc_config_parse(struct gpc_config *config, const char *text)
{
	while (text && *text) {
		const char *end = find_item_end(text);
		struct piece item = trim((struct piece){ text, (size_t)(end - text) });

		if (item.len > 0)
			parse_item(config, item);
		text = *end ? end + 1 : end;
	}
	config->is_fatal = config->strict && config->n_warnings > 0;
}

/* The memory checker that watches this process; NULL: none.  The checkers of CUDA 10 to 13 set these variables. */
static const char *find_checker(void)
{
	const char *injected = gpc_env_get("CUDA_INJECTION64_PATH");

	if (gpc_env_get("NV_SANITIZER_INJECTION_PORT_BASE") ||
		gpc_env_get("NV_SANITIZER_INJECTION_PORT_RANGE_BEGIN") ||
		(injected && strstr(injected, "libsanitizer-collection.so")))
		return "compute-sanitizer";
	return gpc_env_get("CUDA_MEMCHECK") ? "cuda-memcheck" : NULL;
}

static void heed_checker(struct gpc_config *config)
{
	const char *checker = find_checker();

	if (!checker || config->sources[GPC_OPTION_cache] != GPC_SOURCE_DEFAULT)
		return;
	config->cache = GPC_CACHE_OFF;
	config->sources[GPC_OPTION_cache] = GPC_SOURCE_CHECKER;
	config->checker = checker;
}

void gpc_config_load(struct gpc_config *config)
{
	const struct gpc_option_row *row = &gpc_option_rows[GPC_OPTION_output];
	const char *output = gpc_env_get("GPUCACHE_OUTPUT");
	const char *conf = gpc_env_get("GPUCACHE_CONF");

	gpc_config_init(config);
	gpc_config_parse(config, conf);
	gpc_format(config->text, sizeof config->text, "%s", conf ? conf : "");
	heed_checker(config);
	if (!output)
		return;
	if (gpc_option_read(row, config, output, strlen(output)))
		config->sources[GPC_OPTION_output] = GPC_SOURCE_OUTPUT;
	else
		warn_value(
			config, row, "GPUCACHE_OUTPUT", (struct piece){ output, strlen(output) });
	config->is_fatal = config->strict && config->n_warnings > 0;
}

bool gpc_config_is_off(void)
{
	static const char *const words[] = { "0", "off", "false", "no" };
	const char *value = gpc_env_get("GPUCACHE");

	if (getauxval(AT_SECURE))
		return true;
	for (size_t i = 0; value && i < sizeof words / sizeof words[0]; i++) {
		if (strcasecmp(value, words[i]) == 0)
			return true;
	}
	return false;
}

uint64_t gpc_fraction_of(uint32_t ppm, uint64_t bytes)
{
	return (uint64_t)((unsigned __int128)bytes * ppm / 1000000);
}

uint64_t gpc_amount_of(const struct gpc_amount *amount, uint64_t device_bytes)
{
	if (amount->ppm)
		return gpc_fraction_of(amount->ppm, device_bytes);
	return amount->bytes ? amount->bytes : UINT64_MAX;
}

void gpc_config_help(struct gpc_text *text)
{
	static const size_t columns[] = { 30, 51, 60 };

	gpc_text_add(text, "GPUCACHE_CONF=key:value,key:value\n\n");
	for (unsigned i = 0; i < GPC_OPTION_COUNT; i++) {
		const struct gpc_option_row *row = &gpc_option_rows[i];
		size_t start = text->len;

		gpc_text_add(text, "%s", row->name);
		gpc_text_pad_to(text, start + columns[0]);
		gpc_text_add(text, "%s", gpc_option_hint(row));
		gpc_text_pad_to(text, start + columns[1]);
		gpc_text_add(text, "%s", *row->default_text ? row->default_text : "-");
		gpc_text_pad_to(text, start + columns[2]);
		gpc_text_add(text, "%s\n", row->help);
	}
}

void gpc_config_describe(
	const struct gpc_config *config, void (*emit)(void *arg, const char *line), void *arg)
{
	static const char *const sources[] = { "default", "GPUCACHE_CONF", "GPUCACHE_OUTPUT",
		"checker" };

	for (unsigned i = 0; i < GPC_OPTION_COUNT; i++) {
		GPC_TEXT(text, GPC_CONFIG_MAX_STRING + 64);
		size_t before;

		gpc_text_add(&text, "%s ", gpc_option_rows[i].name);
		before = text.len;
		gpc_option_write(&gpc_option_rows[i], config, &text);
		if (text.len == before)
			gpc_text_add(&text, "-");
		gpc_text_add(&text, " %s", sources[config->sources[i]]);
		emit(arg, text.buf);
	}
}
