/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "oom/short_form.h"
#include "tests/unit/why/scene.h"

static void describe_by_number(void *self, uint32_t stack, bool has_via, char *buf, size_t size)
{
	snprintf(
		buf, size, stack == 1 ? "load_weights loader.cpp:88" : "attn.forward model.py:212");
}

static const struct gpc_describer describer = { .describe = describe_by_number };

static char page[GPC_SHORT_SIZE];

static struct gpc_short_form form_of(const struct scene *s)
{
	return (struct gpc_short_form){
		.oom = &s->oom,
		.describer = &describer,
		.gpu_name = "NVIDIA H200",
		.program = "python3",
		.recording = "/dev/shm/gpumem-0/python3.gpumem",
		.pid = 4711,
		.rank = -1,
	};
}

/* In hundredths of a byte. */
static double read_amount(const char *line)
{
	double number;
	char unit[8];

	if (sscanf(line + 8, "%lf %7s", &number, unit) != 2)
		return 0;
	for (const char *letter = "KMGTPE"; unit[0] != 'B'; letter++) {
		number *= 1024;
		if (*letter == unit[0])
			break;
	}
	return number;
}

/* The lines of the sheet add up but for their rounding, as their shares do. */
static void assert_sheet_adds_up(const char *sheet)
{
	double sum = 0;
	double share = 0;
	double total;

	for (; sheet[7] != '='; sheet = strchr(sheet, '\n') + 1) {
		const char *percent = strstr(sheet, "iB ");

		/* What a line consists of counts with it. */
		if (memcmp(strchr(sheet, '%') + 1, "    ", 4) == 0)
			continue;
		sum += read_amount(sheet);
		share += percent ? atof(percent + 3) : 0;
	}
	total = read_amount(sheet);
	if (strstr(sheet, "the lines"))
		return;
	assert_true(sum > total * 0.9999 && sum < total * 1.0001);
	assert_true(share > 99.5 && share < 100.5);
}

/* Writes the page and checks what holds for every page. */
static unsigned write_page(const struct gpc_short_form *form)
{
	struct gpc_text text = gpc_text_init(page, sizeof page);
	unsigned lines = 0;
	size_t width = 0;

	gpc_short_form_write(form, &text);
	assert_false(text.cut);
	for (const char *at = page; *at; at++) {
		if (*at == '\n') {
			assert_true(
				width <= GPC_SHORT_WIDTH || strncmp(at - width, "FULL ", 5) == 0);
			width = 0;
			lines++;
			continue;
		}
		assert_in_range(*at, ' ', '~');
		width++;
	}
	assert_int_equal(width, 0);
	assert_true(lines <= GPC_SHORT_LINES);
	assert_true(strlen(page) <= GPC_SHORT_BYTES);
	if (strstr(page, "WHERE"))
		assert_sheet_adds_up(strstr(page, "WHERE"));
	return lines;
}

static struct scene with_holders(struct scene s)
{
	s.oom.n_holders = 2;
	s.oom.holders[0] = (struct gpucache_holder){ 1, 1204, 56 * GPC_GIB };
	s.oom.holders[1] = (struct gpucache_holder){ 2, 1, 34 * GPC_GIB - 1 };
	return s;
}

TEST(an_exhausted_gpu)
{
	struct scene s = with_holders(scene_of_an_exhausted_gpu());
	struct gpc_short_form form = form_of(&s);

	judge(&s);
	write_page(&form);
	assert_string_equal(page,
		"gpucache: OUT OF MEMORY on GPU 0 (NVIDIA H200, 100.00 GiB) - pid 4711, python3\n"
		"WHY    exhausted (certain): 90.00 GiB is held here, 4.00 GiB in all was left, "
		"8.00 GiB was asked for\n"
		"SHORT  by 4.00 GiB: 8.00 GiB asked for, by attn.forward model.py:212, 4.00 GiB "
		"free on the GPU\n"
		"TRY    hold at least 4.00 GiB less (a smaller batch, a shorter type, an earlier "
		"free): "
		"load_weights\n       loader.cpp:88 holds most, 56.00 GiB: enough for this "
		"request, perhaps not for the next\n"
		"WHERE          90.00 GiB   90.0 %  held by the program\n"
		"       +        2.00 GiB    2.0 %  this process, not tracked\n"
		"       +        3.00 GiB    3.0 %  other processes\n"
		"       +        1.00 GiB    1.0 %  reserved by the driver\n"
		"       +        4.00 GiB    4.0 %  free on the GPU\n"
		"       =      100.00 GiB  100.0 %  total\n"
		"HOLD           56.00 GiB    1204 blocks  load_weights loader.cpp:88\n"
		"               34.00 GiB       1 block   attn.forward model.py:212\n"
		"FULL   gpumem-report oom /dev/shm/gpumem-0/python3.gpumem\n");
}

TEST(holders_that_read_the_same_are_one_row)
{
	struct scene s = with_holders(scene_of_an_exhausted_gpu());
	struct gpc_short_form form = form_of(&s);

	judge(&s);
	s.oom.n_holders = 3;
	s.oom.holders[0] = (struct gpucache_holder){ 2, 1, 34 * GPC_GIB };
	s.oom.holders[1] = (struct gpucache_holder){ 1, 10, 30 * GPC_GIB };
	s.oom.holders[2] = (struct gpucache_holder){ 1, 5, 20 * GPC_GIB };
	write_page(&form);
	assert_non_null(strstr(page,
		"HOLD           50.00 GiB      15 blocks  load_weights loader.cpp:88\n"
		"               34.00 GiB       1 block   attn.forward model.py:212\n"
		"FULL "));
}

TEST(what_is_not_listed_is_counted)
{
	struct scene s = with_holders(scene_of_an_exhausted_gpu());
	struct gpc_short_form form = form_of(&s);

	judge(&s);
	s.oom.n_sites = 2 + 17;
	s.oom.rest_bytes = 3 * GPC_GIB;
	s.oom.torch.reserved = 2 * GPC_GIB;
	s.oom.torch.allocated = 1 * GPC_GIB;
	write_page(&form);
	assert_non_null(strstr(page,
		"               34.00 GiB       1 block   attn.forward model.py:212\n"
		"       +        2.00 GiB                 17 more call sites\n"
		"FULL "));
}

TEST(what_the_driver_alone_would_do_is_said)
{
	struct scene s = with_holders(scene_of_an_exhausted_gpu());
	struct gpc_short_form form = form_of(&s);

	s.oom.balance.rounding = 4 * GPC_GIB;
	s.oom.balance.driver_reserve = GPUCACHE_UNKNOWN;
	s.oom.plain_live = 90 * GPC_GIB + 1;
	judge(&s);
	write_page(&form);
	assert_non_null(strstr(page, "plain CUDA would"));
	s.oom.plain_live = 90 * GPC_GIB;
	judge(&s);
	write_page(&form);
	assert_null(strstr(page, "plain CUDA would"));
	/* Rounded up it would have been short, but the driver does not round so. */
	s.oom.requested = 7 * GPC_GIB;
	s.oom.plain_live = 91 * GPC_GIB;
	judge(&s);
	write_page(&form);
	assert_null(strstr(page, "plain CUDA would"));
	/* The host's memory is short, whatever the GPU has. */
	s = scene_of_an_exhausted_gpu();
	form = form_of(&s);
	s.oom.plain_live = 90 * GPC_GIB;
	s.oom.kind = GPUCACHE_KIND_HOST;
	judge(&s);
	write_page(&form);
	assert_null(strstr(page, "plain CUDA would"));
}

TEST(a_fragmented_cache_of_a_ranked_process)
{
	struct scene s = scene_of_an_exhausted_gpu();
	struct gpc_short_form form = form_of(&s);

	s.oom.balance.requested = 81 * GPC_GIB;
	s.oom.balance.cached = 9 * GPC_GIB;
	s.oom.balance.cached_largest = GPC_GIB;
	s.oom.balance.pending = 8 * GPC_GIB;
	s.oom.largest_pending = 8 * GPC_GIB;
	s.oom.balance.other_processes = GPUCACHE_UNKNOWN;
	form.rank = 3;
	form.world_size = 8;
	judge(&s);
	write_page(&form);
	assert_string_equal(page,
		"gpucache: OUT OF MEMORY on GPU 0 (NVIDIA H200, 100.00 GiB) - rank 3 of 8, pid "
		"4711, python3\n"
		"WHY    fragmented (likely): 9.00 GiB is cached and 4.00 GiB free, largest piece "
		"1.00 GiB, 8.00 GiB\n       asked for\n"
		"ALSO   pending\n"
		"SHORT  by 4.00 GiB: 8.00 GiB asked for, by attn.forward model.py:212, 4.00 GiB "
		"free "
		"on the GPU,\n       largest cached piece 1.00 GiB\n"
		"TRY    gpumem-report replays this run, and says if a setting would have made "
		"room\n"
		"WHERE          81.00 GiB   81.0 %  held by the program\n"
		"       +        8.00 GiB    8.0 %  freed, the GPU may still use it\n"
		"       +        9.00 GiB    9.0 %  gpucache's cache, free\n"
		"       +        2.00 GiB    2.0 %  this process, not tracked\n"
		"       +        1.00 GiB    1.0 %  reserved by the driver\n"
		"       +        4.00 GiB    4.0 %  free on the GPU\n"
		"       =      100.00 GiB  100.0 %  total (the lines pass it by 5.00 GiB)\n"
		"FULL   gpumem-report oom /dev/shm/gpumem-0/python3.gpumem\n");
}

TEST(an_unknown_number_is_not_printed)
{
	struct scene s = scene_of_an_exhausted_gpu();
	struct gpc_short_form form = form_of(&s);

	memset(&s.oom.balance, 0xff, sizeof s.oom.balance);
	form.gpu_name = form.program = form.recording = NULL;
	judge(&s);
	write_page(&form);
	assert_string_equal(page,
		"gpucache: OUT OF MEMORY on GPU 0 - pid 4711\n"
		"WHY    unknown: 8.00 GiB was asked for; the numbers do not say why it failed\n"
		"SHORT  8.00 GiB asked for, by attn.forward model.py:212\n"
		"TRY    look at what holds the memory\n");
}

TEST(a_request_that_grew_by_rounding_says_so)
{
	struct scene s = scene_of_an_exhausted_gpu();
	struct gpc_short_form form = form_of(&s);

	s.oom.requested = 6 * GPC_GIB;
	judge(&s);
	write_page(&form);
	assert_non_null(strstr(
		page, "6.00 GiB asked for, by attn.forward model.py:212, rounded to 8.00 GiB,"));
}

TEST(a_path_that_cannot_be_pasted_gives_way_to_the_pid)
{
	struct scene s = scene_of_an_exhausted_gpu();
	struct gpc_short_form form = form_of(&s);
	char path[500];

	judge(&s);
	form.recording = "/tmp/a file;rm -rf x";
	write_page(&form);
	assert_non_null(strstr(page, "FULL   gpumem-report oom 4711\n"));

	/* 25 characters stand before the path; the command is not cut at a line's width. */
	memset(path, 'a', sizeof path);
	path[0] = '/';
	path[374] = '\0';
	form.recording = path;
	write_page(&form);
	assert_non_null(strstr(page, "gpumem-report oom /aaaa"));
	path[374] = 'a';
	path[375] = '\0';
	write_page(&form);
	assert_non_null(strstr(page, "FULL   gpumem-report oom 4711\n"));
	form.report = "/opt/gpucache/bin/gpumem-report";
	write_page(&form);
	assert_non_null(strstr(page, "FULL   /opt/gpucache/bin/gpumem-report oom 4711\n"));
}

TEST(small_devices_are_shown_in_their_own_unit)
{
	struct scene s = scene_of_an_exhausted_gpu();
	struct gpc_short_form form = form_of(&s);

	s.oom.balance = (struct gpucache_balance){ .requested = 12 * GPC_MIB + 512 * 1024,
		.device_free = 3 * GPC_MIB + 512 * 1024,
		.device_total = 16 * GPC_MIB };
	judge(&s);
	write_page(&form);
	assert_non_null(strstr(page, "WHERE          12.50 MiB   78.1 %  held by the program\n"));
	assert_non_null(strstr(page, "       =       16.00 MiB  100.0 %  total\n"));
}

TEST(direct_allocations_are_listed_by_kind)
{
	struct scene s = scene_of_an_exhausted_gpu();
	struct gpc_short_form form = form_of(&s);

	s.oom.balance = (struct gpucache_balance){
		.direct = 12 * GPC_GIB, .device_free = 4 * GPC_GIB, .device_total = 16 * GPC_GIB
	};
	s.oom.kind_bytes[GPUCACHE_KIND_ASYNC] = 9 * GPC_GIB;
	s.oom.kind_bytes[GPUCACHE_KIND_GRAPH] = 3 * GPC_GIB - GPC_MIB;
	s.oom.kind_bytes[GPUCACHE_KIND_PITCHED] = GPC_MIB; /* not worth a line */
	s.oom.kind_bytes[GPUCACHE_KIND_HOST] = 99 * GPC_GIB;
	judge(&s);
	write_page(&form);
	assert_non_null(strstr(page,
		"WHERE          12.00 GiB   75.0 %  straight from the driver\n"
		"                9.00 GiB   56.3 %    stream-ordered memory\n"
		"                3.00 GiB   18.7 %    graph memory\n"
		"       +        4.00 GiB   25.0 %  free on the GPU\n"));
}

TEST(names_from_elsewhere_stay_printable)
{
	struct scene s = scene_of_an_exhausted_gpu();
	struct gpc_short_form form = form_of(&s);

	form.program = "caf\xc3\xa9\x1b[31m\n";
	judge(&s);
	write_page(&form);
	assert_non_null(strstr(page, "pid 4711, caf???[31m?\n"));
}

static void describe_at_length(void *self, uint32_t stack, bool has_via, char *buf, size_t size)
{
	memset(buf, 'a' + (int)(stack % 26), size - 1);
	buf[size - 1] = '\0';
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Bytes of any kind: small, of the order of the device, absurd, unknown. */
static uint64_t any_bytes(uint64_t *seed)
{
	switch (next_random(seed) % 5) {
	case 0:
		return next_random(seed) % 4096;
	case 1:
		return GPUCACHE_UNKNOWN;
	case 2:
		return next_random(seed);
	default:
		return next_random(seed) % (100 * GPC_GIB);
	}
}

TEST(a_number_and_its_unit_stay_on_one_line)
{
	unsigned n_before_a_number = 0;

	/* Amounts of other widths break the lines elsewhere. */
	for (uint64_t by = 1; by < 1000; by = by * 3 / 2 + 1) {
		struct scene s = scene_of_an_exhausted_gpu();
		struct gpc_short_form form = form_of(&s);

		s.oom.requested = s.oom.rounded = 8 * GPC_GIB + by * GPC_GIB;
		s.oom.balance.device_free = by * GPC_MIB;
		s.oom.piece = by * 12345;
		s.oom.stack = by % 2 ? 0 : 7;
		judge(&s);
		write_page(&form);
		for (const char *unit = "BKMGT"; *unit; unit++)
			assert_null(strstr(page, (char[]){ '\n', ' ', ' ', ' ', ' ', ' ', ' ', ' ',
							 *unit, *unit == 'B' ? '\n' : 'i', '\0' }));
		for (const char *at = page; (at = strstr(at, "\n       ")); at++)
			n_before_a_number +=
				at[8] >= '0' && at[8] <= '9' && at[7] == ' ' && at[6] == ' ';
	}
	assert_true(n_before_a_number > 0);
}

TEST(no_numbers_and_no_names_break_the_page)
{
	static const struct gpc_describer long_names = { .describe = describe_at_length };
	uint64_t seed = 88172645463325252u;

	for (uint32_t round = 0; round < 20000; round++) {
		struct scene s = scene_of_an_exhausted_gpu();
		struct gpc_short_form form = form_of(&s);
		uint64_t *more = &s.oom.free_before;

		for (size_t i = 0; i < sizeof s.oom.balance / 8; i++)
			((uint64_t *)&s.oom.balance)[i] = any_bytes(&seed);
		for (size_t i = 0; &more[i] <= &s.oom.host_bytes; i++)
			more[i] = any_bytes(&seed);
		s.oom.requested = any_bytes(&seed);
		s.oom.rounded = any_bytes(&seed);
		s.oom.limit = any_bytes(&seed) & -(next_random(&seed) % 2);
		s.oom.growth_bytes = any_bytes(&seed);
		s.oom.growth_stack = 3;
		s.oom.setup = (uint32_t)next_random(&seed) % 64;
		s.oom.n_contexts = round % 4 ? round % 30 : UINT32_MAX;
		s.oom.kind_bytes[GPUCACHE_KIND_CONTEXT] = any_bytes(&seed) >> 1;
		s.oom.kind_bytes[GPUCACHE_KIND_MANAGED] = any_bytes(&seed) >> 1;
		s.oom.kind = round % 7 ? GPUCACHE_KIND_DEVICE : GPUCACHE_KIND_HOST;
		form.conf = round % 3 ? "limit:99GiB,record:on,stacks:native,decay_ms:1" : "";
		s.oom.n_holders = round % 5;
		for (uint32_t i = 0; i < s.oom.n_holders; i++)
			s.oom.holders[i] =
				(struct gpucache_holder){ i, UINT32_MAX, any_bytes(&seed) };
		s.oom.n_neighbours = round % 2;
		s.oom.neighbours[0].bytes = any_bytes(&seed);
		memset(s.oom.neighbours[0].name, '\xff', sizeof s.oom.neighbours[0].name);
		form.describer = &long_names;
		form.gpu_name =
			"a name of a GPU that is much longer than any GPU has ever had, with tail";
		form.program =
			"a program with quite a long name that goes on and on and does not stop";
		judge(&s);
		write_page(&form);
		assert_non_null(strstr(
			page, "\nFULL   gpumem-report oom /dev/shm/gpumem-0/python3.gpumem\n"));
	}
}

TEST(another_number_of_the_gpu_is_said)
{
	struct scene s = scene_of_an_exhausted_gpu();
	struct gpc_short_form form = form_of(&s);

	judge(&s);
	form.physical = 2;
	write_page(&form);
	assert_non_null(strstr(page, " on GPU 0 (physical 2, NVIDIA H200, 100.00 GiB) - "));
	form.gpu_name = NULL;
	s.oom.balance.device_total = GPUCACHE_UNKNOWN;
	write_page(&form);
	assert_non_null(strstr(page, " on GPU 0 (physical 2) - "));
	form.physical = -1;
	write_page(&form);
	assert_non_null(strstr(page, " on GPU 0 - "));
}
