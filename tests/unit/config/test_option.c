/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/bytes.h"
#include "config/option.h"

static struct gpc_config config;

static int set_up(void **state)
{
	gpc_config_init(&config);
	return 0;
}

FIXTURE(set_up, NULL);

static bool reads(enum gpc_option option, const char *text)
{
	return gpc_option_read(&gpc_option_rows[option], &config, text, strlen(text));
}

static void assert_writes(enum gpc_option option, const char *expected)
{
	char buf[GPC_CONFIG_MAX_STRING];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	gpc_option_write(&gpc_option_rows[option], &config, &text);
	assert_string_equal(buf, expected);
	assert_false(text.cut);
}

static void assert_refused(enum gpc_option option, const char *const *bad, size_t n)
{
	struct gpc_config before = config;

	for (size_t i = 0; i < n; i++) {
		if (reads(option, bad[i]))
			fail_msg("%s: \"%s\" was taken", gpc_option_rows[option].name, bad[i]);
		assert_memory_equal(&config, &before, sizeof config);
	}
}

TEST(every_row_is_complete_and_its_name_is_its_own)
{
	for (unsigned i = 0; i < GPC_OPTION_COUNT; i++) {
		const struct gpc_option_row *row = &gpc_option_rows[i];

		assert_true(row->offset < offsetof(struct gpc_config, sources));
		assert_true(row->smallest <= row->largest);
		assert_true(strlen(row->help) > 0);
		assert_true(strlen(gpc_option_hint(row)) > 0);
		assert_int_equal(row->choices != NULL,
			row->type == GPC_OPTION_ENUM || row == &gpc_option_rows[GPC_OPTION_spill]);
		for (unsigned k = 0; k < i; k++) {
			assert_string_not_equal(row->name, gpc_option_rows[k].name);
			assert_true(row->offset > gpc_option_rows[k].offset);
		}
	}
}

TEST(a_value_ends_where_its_length_says)
{
	const struct gpc_option_row *row = &gpc_option_rows[GPC_OPTION_rank];

	assert_true(gpc_option_read(row, &config, "123", 2));
	assert_int_equal(config.rank, 12);
	assert_true(gpc_option_read(&gpc_option_rows[GPC_OPTION_stacks], &config, "sampled:x", 7));
	assert_int_equal(config.stacks, GPC_STACKS_SAMPLED);
	assert_true(
		gpc_option_read(&gpc_option_rows[GPC_OPTION_output], &config, "/tmp/x,rank:3", 6));
	assert_string_equal(config.output, "/tmp/x");
}

TEST(a_switch_has_four_words_for_each_side_in_any_case)
{
	static const char *const off[] = { "off", "FALSE", "No", "0" };
	static const char *const on[] = { "on", "True", "YES", "1" };
	static const char *const bad[] = { "", "o", "onn", "2", "01", "on ", "-1" };

	for (size_t i = 0; i < N_OF(off); i++) {
		assert_true(reads(GPC_OPTION_record, off[i]));
		assert_false(config.record);
		assert_true(reads(GPC_OPTION_record, on[i]));
		assert_true(config.record);
	}
	assert_refused(GPC_OPTION_record, bad, N_OF(bad));
	assert_writes(GPC_OPTION_record, "on");
	assert_writes(GPC_OPTION_strict, "off");
	/* A choice that has both takes the other words for them, too. */
	for (size_t i = 0; i < N_OF(off); i++) {
		assert_true(reads(GPC_OPTION_cache, off[i]));
		assert_int_equal(config.cache, GPC_CACHE_OFF);
		assert_true(reads(GPC_OPTION_cache, on[i]));
		assert_int_equal(config.cache, GPC_CACHE_ON);
	}
}

TEST(a_choice_is_its_place_among_the_choices)
{
	static const char *const bad[] = { "", "al", "alll", "off|sampled", "|", "sampled|", "0" };

	assert_true(reads(GPC_OPTION_stacks, "OFF"));
	assert_int_equal(config.stacks, GPC_STACKS_OFF);
	assert_writes(GPC_OPTION_stacks, "off");
	assert_true(reads(GPC_OPTION_stacks, "Sampled"));
	assert_int_equal(config.stacks, GPC_STACKS_SAMPLED);
	assert_writes(GPC_OPTION_stacks, "sampled");
	assert_true(reads(GPC_OPTION_stacks, "all"));
	assert_int_equal(config.stacks, GPC_STACKS_ALL);
	assert_writes(GPC_OPTION_stacks, "all");
	assert_refused(GPC_OPTION_stacks, bad, N_OF(bad));
}

TEST(a_whole_number_lies_in_its_range_or_is_the_default)
{
	static const char *const bad_rank[] = { "", "-", "--1", "+1", "1.0", " 1", "1 ", "0x1",
		"-2", "2147483648", "99999999999999999999" };
	static const char *const bad_split[] = { "19", "-1", "1", "1099511627777" };

	assert_true(reads(GPC_OPTION_rank, "2147483647"));
	assert_int_equal(config.rank, INT32_MAX);
	assert_writes(GPC_OPTION_rank, "2147483647");
	assert_refused(GPC_OPTION_rank, bad_rank, N_OF(bad_rank));
	assert_true(reads(GPC_OPTION_rank, "-1"));
	assert_writes(GPC_OPTION_rank, "-1");
	assert_true(reads(GPC_OPTION_max_split_size_mb, "1099511627776"));
	assert_true(reads(GPC_OPTION_max_split_size_mb, "20"));
	assert_refused(GPC_OPTION_max_split_size_mb, bad_split, N_OF(bad_split));
	assert_true(reads(GPC_OPTION_max_split_size_mb, "0"));
	assert_int_equal(config.max_split_size_mb, 0);
}

TEST(a_size_is_written_in_the_largest_unit_that_is_exact)
{
	static const char *const bad[] = { "", "M", "-1", "1X", "1M1", "0x10", "16777217T" };
	static const struct {
		const char *text;
		uint64_t bytes;
		const char *written;
	} good[] = { { "0", 0, "0" }, { "1023", 1023, "1023" }, { "1K", GPC_KIB, "1KiB" },
		{ "1.5GiB", 3 * GPC_GIB / 2, "1536MiB" }, { "4096M", 4 * GPC_GIB, "4GiB" },
		{ "2048G", 2048 * GPC_GIB, "2048GiB" }, { "1048577", GPC_MIB + 1, "1048577" } };

	for (size_t i = 0; i < N_OF(good); i++) {
		assert_true(reads(GPC_OPTION_reserve, good[i].text));
		assert_true(config.reserve == good[i].bytes);
		assert_writes(GPC_OPTION_reserve, good[i].written);
	}
	assert_refused(GPC_OPTION_reserve, bad, N_OF(bad));
}

TEST(a_size_outside_its_range_is_refused)
{
	static const char *const bad[] = { "0", "1048575", "1G1", "1025M" };

	assert_true(reads(GPC_OPTION_recording_size, "1M"));
	assert_true(reads(GPC_OPTION_recording_size, "1G"));
	assert_refused(GPC_OPTION_recording_size, bad, N_OF(bad));
}

TEST(an_amount_is_bytes_or_a_part_and_never_both)
{
	static const char *const bad[] = { "0%", "101%", "%", "", "-1%", "80%%", "80 %", "1K",
		"0.0000001%", "%80" };

	assert_true(reads(GPC_OPTION_limit, "12.5%"));
	assert_int_equal(config.limit.ppm, 125000);
	assert_int_equal(config.limit.bytes, 0);
	assert_writes(GPC_OPTION_limit, "12.5%");
	assert_true(reads(GPC_OPTION_limit, "3G"));
	assert_int_equal(config.limit.ppm, 0);
	assert_int_equal(config.limit.bytes, 3 * GPC_GIB);
	assert_writes(GPC_OPTION_limit, "3GiB");
	assert_true(reads(GPC_OPTION_limit, "100%"));
	assert_int_equal(config.limit.ppm, 1000000);
	assert_writes(GPC_OPTION_limit, "100%");
	assert_true(reads(GPC_OPTION_limit, "0.0001%"));
	assert_int_equal(config.limit.ppm, 1);
	assert_writes(GPC_OPTION_limit, "0.0001%");
	assert_refused(GPC_OPTION_limit, bad, N_OF(bad));
	assert_true(reads(GPC_OPTION_limit, "0"));
	assert_int_equal(config.limit.ppm, 0);
	assert_writes(GPC_OPTION_limit, "0");
}

TEST(a_part_is_exact_to_a_millionth_and_cut_below)
{
	static const char *const bad[] = { "0", "1.000001", "100.01%", "", ".", "%", "-0.5", "0.5x",
		"0.5%x", "0,5", "5000", "9999999999999999999999" };
	static const struct {
		const char *text;
		uint32_t ppm;
		const char *written;
	} good[] = { { "0.8", 800000, "0.8" }, { "80%", 800000, "0.8" }, { ".5", 500000, "0.5" },
		{ "1", 1000000, "1" }, { "1.", 1000000, "1" }, { "100%", 1000000, "1" },
		{ "0.000001", 1, "0.000001" }, { "0.1234567", 123456, "0.123456" },
		{ "0.99999999", 999999, "0.999999" } };

	for (size_t i = 0; i < N_OF(good); i++) {
		assert_true(reads(GPC_OPTION_per_process_memory_fraction, good[i].text));
		assert_int_equal(config.per_process_memory_fraction, good[i].ppm);
		assert_writes(GPC_OPTION_per_process_memory_fraction, good[i].written);
	}
	assert_refused(GPC_OPTION_per_process_memory_fraction, bad, N_OF(bad));
}

TEST(a_time_is_in_milliseconds_unless_it_names_its_unit)
{
	static const char *const bad[] = { "", "ms", "1d", "1 s", "-1", "60.1m", "1.1h", "3600001",
		"s1", "99999999999999999999" };
	static const struct {
		const char *text;
		uint64_t ms;
		const char *written;
	} good[] = { { "500", 500, "500" }, { "500MS", 500, "500" }, { "10s", 10000, "10000" },
		{ "1.5s", 1500, "1500" }, { "2m", 120000, "120000" }, { "2min", 120000, "120000" },
		{ "1h", 3600000, "3600000" }, { "1.9", 1, "1" }, { "0", 0, "0" } };

	for (size_t i = 0; i < N_OF(good); i++) {
		assert_true(reads(GPC_OPTION_oom_wait_ms, good[i].text));
		assert_int_equal(config.oom_wait_ms, good[i].ms);
		assert_writes(GPC_OPTION_oom_wait_ms, good[i].written);
	}
	assert_refused(GPC_OPTION_oom_wait_ms, bad, N_OF(bad));
}

TEST(a_text_is_taken_whole_or_not_at_all)
{
	static const char *const bad[] = { "a\nb", "\t", "\x7f", "\x1b[0m" };
	char longest[GPC_CONFIG_MAX_STRING + 1];

	assert_true(reads(GPC_OPTION_output, "/a b/%p\xc3\xa9"));
	assert_string_equal(config.output, "/a b/%p\xc3\xa9");
	assert_writes(GPC_OPTION_output, "/a b/%p\xc3\xa9");
	assert_refused(GPC_OPTION_output, bad, N_OF(bad));
	memset(longest, 'x', sizeof longest);
	assert_false(gpc_option_read(
		&gpc_option_rows[GPC_OPTION_output], &config, longest, GPC_CONFIG_MAX_STRING));
	assert_string_equal(config.output, "/a b/%p\xc3\xa9");
	assert_true(gpc_option_read(
		&gpc_option_rows[GPC_OPTION_output], &config, longest, GPC_CONFIG_MAX_STRING - 1));
	assert_int_equal(strlen(config.output), GPC_CONFIG_MAX_STRING - 1);
	assert_true(reads(GPC_OPTION_output, ""));
	assert_string_equal(config.output, "");
}

TEST(what_does_not_fit_is_cut_and_said_to_be)
{
	char buf[4];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);

	gpc_option_write(&gpc_option_rows[GPC_OPTION_reserve], &config, &text);
	assert_true(text.cut);
	assert_string_equal(buf, "256");
}

TEST(reading_one_option_leaves_every_other_as_it_was)
{
	static const char *const values[] = { "off", "all", "64", "0.5", "2M", "text", "10s" };

	for (unsigned i = 0; i < GPC_OPTION_COUNT; i++) {
		const struct gpc_option_row *row = &gpc_option_rows[i];
		size_t end = i + 1 < GPC_OPTION_COUNT ? row[1].offset
						      : offsetof(struct gpc_config, sources);

		for (size_t k = 0; k < N_OF(values); k++) {
			struct gpc_config before;

			gpc_config_init(&config);
			before = config;
			(void)reads((enum gpc_option)i, values[k]);
			assert_memory_equal(&config, &before, row->offset);
			assert_memory_equal(
				(char *)&config + end, (char *)&before + end, sizeof config - end);
		}
	}
}
