/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <sys/auxv.h>
#include <time.h>

#include "base/bytes.h"
#include "config/config.h"
#include "config/option.h"
#include "unit.h"

static struct gpc_config parsed(const char *text)
{
	struct gpc_config config;

	gpc_config_init(&config);
	gpc_config_parse(&config, text);
	return config;
}

static void assert_warns(const char *text, const char *expected)
{
	struct gpc_config config = parsed(text);

	assert_int_equal(config.n_warnings, 1);
	assert_string_equal(config.warnings[0], expected);
}

TEST(every_default_is_what_the_table_says)
{
	struct gpc_config config = parsed(NULL);

	assert_int_equal(config.cache, GPC_CACHE_AUTO);
	assert_true(config.record);
	assert_int_equal(config.stacks, GPC_STACKS_ALL);
	assert_true(config.python);
	assert_int_equal(config.max_split_size_mb, 0);
	assert_int_equal(config.roundup_power2_divisions, 0);
	assert_int_equal(config.garbage_collection_threshold, 0);
	assert_int_equal(config.per_process_memory_fraction, 1000000);
	assert_int_equal(config.limit.bytes, 0);
	assert_int_equal(config.limit.ppm, 0);
	assert_int_equal(config.pending_limit, 0);
	assert_int_equal(config.reserve, 256 * GPC_MIB);
	assert_int_equal(config.decay_ms, 0);
	assert_int_equal(config.free_order, GPC_FREE_ORDER_DEVICE);
	assert_int_equal(config.oom_report, GPC_OOM_REPORT_AUTO);
	assert_int_equal(config.oom_wait_ms, 0);
	assert_int_equal(config.recording_size, 8 * GPC_MIB);
	assert_string_equal(config.output, "");
	assert_false(config.leak_report);
	assert_int_equal(config.rank, -1);
	assert_false(config.strict);
	assert_false(config.help);
	assert_int_equal(config.n_warnings, 0);
}

TEST(every_default_can_be_given)
{
	for (unsigned i = 0; i < GPC_OPTION_COUNT; i++) {
		const struct gpc_option_row *row = &gpc_option_rows[i];
		struct gpc_config config;

		gpc_config_init(&config);
		assert_true(gpc_option_read(
			row, &config, row->default_text, strlen(row->default_text)));
	}
}

TEST(every_type_of_value_is_read)
{
	struct gpc_config config =
		parsed("cache:off, record:FALSE ,stacks:Sampled,max_split_size_mb:512,"
		       "garbage_collection_threshold:0.8,per_process_memory_fraction:50%,limit:80%,"
		       "pending_limit:1.5GiB,decay_ms:10s,oom_wait_ms:2m,free_order:host,"
		       "output:/a:b/%p,rank:7,reserve:0,");

	assert_int_equal(config.n_warnings, 0);
	assert_int_equal(config.cache, GPC_CACHE_OFF);
	assert_false(config.record);
	assert_int_equal(config.stacks, GPC_STACKS_SAMPLED);
	assert_int_equal(config.max_split_size_mb, 512);
	assert_int_equal(config.garbage_collection_threshold, 800000);
	assert_int_equal(config.per_process_memory_fraction, 500000);
	assert_int_equal(config.limit.ppm, 800000);
	assert_int_equal(config.limit.bytes, 0);
	assert_int_equal(config.pending_limit, 3 * GPC_GIB / 2);
	assert_int_equal(config.decay_ms, 10000);
	assert_int_equal(config.oom_wait_ms, 120000);
	assert_int_equal(config.free_order, GPC_FREE_ORDER_HOST);
	assert_string_equal(config.output, "/a:b/%p");
	assert_int_equal(config.rank, 7);
	assert_int_equal(config.reserve, 0);
	assert_int_equal(config.sources[GPC_OPTION_cache], GPC_SOURCE_CONF);
	assert_int_equal(config.sources[GPC_OPTION_help], GPC_SOURCE_DEFAULT);
}

TEST(the_words_of_a_switch_choose_between_on_and_off)
{
	assert_int_equal(parsed("cache:0").cache, GPC_CACHE_OFF);
	assert_int_equal(parsed("cache:True").cache, GPC_CACHE_ON);
	assert_int_equal(parsed("cache:auto").cache, GPC_CACHE_AUTO);
	assert_int_equal(parsed("free_order:no").n_warnings, 1); /* has neither */
}

TEST(an_unknown_key_names_the_nearest_one)
{
	assert_warns("stack:off",
		"GPUCACHE_CONF: unknown key \"stack\" (did you mean \"stacks\"?), ignored");
	assert_warns("garbage_colection_treshold:0.8",
		"GPUCACHE_CONF: unknown key \"garbage_colection_treshold\" (did you mean "
		"\"garbage_collection_threshold\"?), ignored");
	assert_warns("expandable_segments:True",
		"GPUCACHE_CONF: unknown key \"expandable_segments\", ignored");
	assert_warns(":x", "GPUCACHE_CONF: unknown key \"\", ignored");
	assert_warns("a\x1b[31m\n:1", "GPUCACHE_CONF: unknown key \"a?[31m\", ignored");
}

TEST(a_bad_value_names_what_is_used)
{
	assert_warns("limit:lots",
		"GPUCACHE_CONF: bad value \"lots\" for limit (size or part, as "
		"80%), using 0");
	assert_warns("max_split_size_mb:19",
		"GPUCACHE_CONF: bad value \"19\" for max_split_size_mb (number), using 0");
	assert_warns("cache:off,cache:perhaps",
		"GPUCACHE_CONF: bad value \"perhaps\" for cache (off|auto|on), using off");
	assert_warns(
		"reserve", "GPUCACHE_CONF: no value for reserve (size, as 512M), using 256MiB");
	assert_warns("roundup_power2_divisions:[256:1,512:2]",
		"GPUCACHE_CONF: bad value \"[256:1,512:2]\" for roundup_power2_divisions "
		"(number), using 0");
}

TEST(values_out_of_range_are_refused)
{
	static const char *const bad[] = { "garbage_collection_threshold:1",
		"garbage_collection_threshold:1.0", "garbage_collection_threshold:-0.5",
		"per_process_memory_fraction:0", "per_process_memory_fraction:101%", "limit:101%",
		"limit:0%", "limit:1K", "recording_size:1G1", "recording_size:2GiB",
		"recording_size:1", "rank:-2", "rank:99999999999", "decay_ms:1y", "decay_ms:-1",
		"oom_wait_ms:2h", "reserve:-1", "reserve:99999999999999999999",
		"max_split_size_mb:99999999999999999999", "stacks:al", "stacks:all|off",
		"cache:", "output:a\tb", "rank:-", "limit:%", "decay_ms:.", "help:2" };

	for (size_t i = 0; i < N_OF(bad); i++) {
		struct gpc_config config = parsed(bad[i]);
		struct gpc_config defaults = parsed(NULL);

		if (config.n_warnings != 1)
			print_error("%s\n", bad[i]);
		assert_int_equal(config.n_warnings, 1);
		assert_memory_equal(&config, &defaults, offsetof(struct gpc_config, sources));
	}
}

TEST(warnings_are_bounded_and_the_rest_counted)
{
	char text[400] = "";
	struct gpc_config config;

	for (int i = 0; i < 30; i++)
		strcat(text, "zzzzzzzz:1,");
	config = parsed(text);
	assert_int_equal(config.n_warnings, GPC_CONFIG_MAX_WARNINGS);
	assert_int_equal(config.n_more_warnings, 30 - GPC_CONFIG_MAX_WARNINGS);
}

TEST(strict_makes_a_warning_fatal)
{
	assert_false(parsed("strict:true").is_fatal);
	assert_false(parsed("nonsense:1").is_fatal);
	assert_true(parsed("nonsense:1,strict:true").is_fatal);
}

TEST(a_second_text_keeps_what_the_first_one_set)
{
	struct gpc_config config = parsed("rank:3,cache:off");

	gpc_config_parse(&config, "rank:4");
	assert_int_equal(config.rank, 4);
	assert_int_equal(config.cache, GPC_CACHE_OFF);
}

TEST(the_environment_is_read_and_its_output_wins)
{
	struct gpc_config config;
	char longer[GPC_CONFIG_MAX_STRING + 1];

	setenv("GPUCACHE_CONF", "output:here,rank:2", 1);
	unsetenv("GPUCACHE_OUTPUT");
	gpc_config_load(&config);
	assert_string_equal(config.output, "here");
	assert_string_equal(config.text, "output:here,rank:2");
	setenv("GPUCACHE_OUTPUT", "there,%p", 1);
	gpc_config_load(&config);
	assert_string_equal(config.output, "there,%p");
	assert_int_equal(config.sources[GPC_OPTION_output], GPC_SOURCE_OUTPUT);
	assert_int_equal(config.rank, 2);
	memset(longer, 'x', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	setenv("GPUCACHE_OUTPUT", longer, 1);
	gpc_config_load(&config);
	assert_string_equal(config.output, "here");
	assert_int_equal(config.n_warnings, 1);
	assert_non_null(strstr(config.warnings[0], "GPUCACHE_OUTPUT: bad value \"xxx"));
	unsetenv("GPUCACHE_CONF");
	unsetenv("GPUCACHE_OUTPUT");
}

TEST(the_switch_has_four_words_for_off)
{
	static const char *const off[] = { "0", "off", "False", "NO" };
	static const char *const on[] = { "1", "on", "", "00" };

	for (size_t i = 0; i < N_OF(off); i++) {
		setenv("GPUCACHE", off[i], 1);
		assert_true(gpc_config_is_off());
		setenv("GPUCACHE", on[i], 1);
		assert_false(gpc_config_is_off());
	}
	unsetenv("GPUCACHE");
	assert_false(gpc_config_is_off());
}

TEST(parts_of_a_device_are_exact)
{
	struct gpc_amount none = { 0 };
	struct gpc_amount bytes = { .bytes = 5 };
	struct gpc_amount part = { .ppm = 800000 };

	assert_true(gpc_amount_of(&none, 100) == UINT64_MAX);
	assert_int_equal(gpc_amount_of(&bytes, 100), 5);
	assert_int_equal(gpc_amount_of(&part, 80 * GPC_GIB), 64 * GPC_GIB);
	assert_true(gpc_fraction_of(1000000, UINT64_MAX) == UINT64_MAX);
}

TEST(the_help_has_a_line_for_every_option_and_fits)
{
	char buf[GPC_CONFIG_HELP_SIZE];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	gpc_config_help(&text);
	assert_false(text.cut);
	for (unsigned i = 0; i < GPC_OPTION_COUNT; i++) {
		char start[64];

		snprintf(start, sizeof start, "\n%s ", gpc_option_rows[i].name);
		assert_non_null(strstr(buf, start));
		assert_non_null(strstr(buf, gpc_option_rows[i].help));
	}
}

/* Makes of "key value source" the item "key:value" again. */
static void collect_line(void *arg, const char *line)
{
	char *text = arg;
	const char *space = strchr(line, ' ');
	const char *last = strrchr(line, ' ');

	assert_non_null(space);
	assert_true(last > space);
	if (last == space + 2 && space[1] == '-')
		return; /* no value */
	sprintf(text + strlen(text), "%.*s:%.*s,", (int)(space - line), line,
		(int)(last - space - 1), space + 1);
}

TEST(a_description_reads_back_the_same)
{
	struct gpc_config config =
		parsed("cache:off,stacks:off,limit:12.5%,pending_limit:3G,reserve:1025,"
		       "garbage_collection_threshold:0.000001,per_process_memory_fraction:0.75,"
		       "output:/x/%e y,decay_ms:1500,rank:3,recording_size:4M");
	struct gpc_config again;
	char text[4096] = "";

	assert_int_equal(config.n_warnings, 0);
	gpc_config_describe(&config, collect_line, text);
	again = parsed(text);
	assert_int_equal(again.n_warnings, 0);
	assert_memory_equal(&config, &again, offsetof(struct gpc_config, sources));
}

TEST(any_text_leaves_every_value_in_its_range)
{
	static const char alphabet[] = "acdefgilmnoprstuy_0123456789.:=,%[]{}KMGB- \t\n\x80\xff";
	unsigned seed = (unsigned)time(NULL);

	print_message("seed %u\n", seed);
	srand(seed);
	for (int i = 0; i < 100000; i++) {
		struct gpc_config config;
		char text[128] = "";
		size_t len = (size_t)rand() % 60;
		const char *key = gpc_option_rows[rand() % GPC_OPTION_COUNT].name;

		if (rand() % 2)
			sprintf(text, "%s:", key);
		for (size_t n = strlen(text); len > 0; len--, n++) {
			text[n] = alphabet[(size_t)rand() % (sizeof alphabet - 1)];
			text[n + 1] = '\0';
		}
		gpc_config_init(&config);
		gpc_config_parse(&config, text);
		assert_true(config.stacks <= GPC_STACKS_ALL);
		assert_true(config.garbage_collection_threshold < 1000000);
		assert_true(config.limit.ppm <= 1000000);
		assert_true(config.limit.ppm == 0 || config.limit.bytes == 0);
		assert_true(config.recording_size >= GPC_MIB && config.recording_size <= GPC_GIB);
		assert_true(config.rank >= -1 && config.rank <= INT32_MAX);
		assert_true(config.n_warnings <= GPC_CONFIG_MAX_WARNINGS);
		for (unsigned w = 0; w < config.n_warnings; w++)
			assert_true(strlen(config.warnings[w]) < GPC_CONFIG_MAX_WARNING);
	}
}

static unsigned long secure;

/* Instead of libc's. */
unsigned long getauxval(unsigned long type)
{
	return type == AT_SECURE ? secure : 0;
}

TEST(a_program_with_rights_of_its_own_is_left_alone)
{
	assert_false(gpc_config_is_off());
	secure = 1;
	assert_true(gpc_config_is_off());
	secure = 0;
}

TEST(under_a_checker_the_cache_is_off_unless_it_was_asked_for)
{
	static const char *const variables[][3] = {
		{ "NV_SANITIZER_INJECTION_PORT_BASE", "49152", "compute-sanitizer" },
		{ "NV_SANITIZER_INJECTION_PORT_RANGE_BEGIN", "49152", "compute-sanitizer" },
		{ "CUDA_INJECTION64_PATH", "/opt/libsanitizer-collection.so", "compute-sanitizer" },
		{ "CUDA_MEMCHECK", "1", "cuda-memcheck" },
	};
	struct gpc_config config;

	for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
		setenv(variables[i][0], variables[i][1], 1);
		gpc_config_load(&config);
		assert_int_equal(config.cache, GPC_CACHE_OFF);
		assert_string_equal(config.checker, variables[i][2]);
		assert_int_equal(config.sources[GPC_OPTION_cache], GPC_SOURCE_CHECKER);
		assert_int_equal(config.n_warnings, 0);
		setenv("GPUCACHE_CONF", "cache:on", 1);
		gpc_config_load(&config);
		assert_true(config.cache && !config.checker);
		unsetenv("GPUCACHE_CONF");
		unsetenv(variables[i][0]);
	}
	setenv("CUDA_INJECTION64_PATH", "/opt/a/profiler.so", 1);
	gpc_config_load(&config);
	assert_true(config.cache && !config.checker);
	unsetenv("CUDA_INJECTION64_PATH");
}
