/* SPDX-License-Identifier: Apache-2.0 */
/* getopt_long() finds the options; the words that it leaves are traces. */
#include "tools/gpumem-replay/arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "gpucache_version.h"
#include "tools/gpumem-replay/kit.h"

enum long_option {
	OPTION_SMALLEST = 256,
	OPTION_SIZES,
	OPTION_CHECK,
	OPTION_JSON,
	OPTION_SAVE,
	OPTION_DEVICE,
	OPTION_TENSORS,
};

/* Of the kit's options, which the words of a tool without them leave out. */
#define N_OF_KIT     2
#define LETTERS      ":p:m:s:hV"
#define WITH_LETTERS LETTERS "g:"

static const struct option long_options[] = {
	{ "generate", required_argument, NULL, 'g' },
	{ "save", required_argument, NULL, OPTION_SAVE },
	{ "policy", required_argument, NULL, 'p' },
	{ "memory", required_argument, NULL, 'm' },
	{ "set", required_argument, NULL, 's' },
	{ "device", required_argument, NULL, OPTION_DEVICE },
	{ "tensors", no_argument, NULL, OPTION_TENSORS },
	{ "smallest", no_argument, NULL, OPTION_SMALLEST },
	{ "sizes", no_argument, NULL, OPTION_SIZES },
	{ "check", no_argument, NULL, OPTION_CHECK },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static void print_examples(void)
{
	puts("gpumem-replay - what an allocator would have done with these allocations, without a "
	     "GPU\n"
	     "\n"
	     "Usage: gpumem-replay [OPTIONS] [TRACE...]\n"
	     "\n"
	     "Examples:\n"
	     "  gpumem-replay train.csv.gz                    peak memory, driver calls, hit rate\n"
	     "  gpumem-replay -p gpucache -p pytorch run.csv  two allocators side by side\n"
	     "  gpumem-replay --memory 24GiB train.csv.gz     would it fit?  exit code 1: no\n"
	     "  gpumem-replay --smallest train.csv.gz         the smallest GPU that it fits on\n"
	     "  gpumem-replay -s max_split_size_mb:200 run.csv    with another parameter\n"
	     "  gpumem-replay /dev/shm/gpucache-1000/gpucache-train-2810.gpucache\n"
	     "                                                what a program of yours did");
}

static void print_options(void)
{
	puts("\n"
	     "Options:\n"
	     "  -p, --policy NAME    repeat it for several columns; default gpucache");
	for (size_t i = 0; i < gpc_kit.n_policies; i++)
		printf("                         %-11s %s\n", gpc_kit.policies[i]->name,
			gpc_kit.policies[i]->help);
	puts("  -m, --memory SIZE    of the device, such as 24GiB; default: more than enough\n"
	     "  -s, --set KEY:VALUE[,KEY:VALUE...]\n"
	     "                         max_split_size_mb, roundup_power2_divisions,\n"
	     "                         garbage_collection_threshold (as in PyTorch)\n"
	     "      --smallest       find the smallest device, in steps of 2 MiB\n"
	     "      --sizes          a table of devices: the smallest, 1.01 to 1.5 of the live "
	     "peak,\n"
	     "                       and without limit, with driver calls, waits and time\n"
	     "      --device N       of a recording or snapshot with several; default: the "
	     "busiest\n"
	     "      --tensors        of a recording: requests to PyTorch, not those to the driver\n"
	     "      --check          verify the whole heap after every operation: slow\n"
	     "      --json           for programs\n"
	     "  -h, --help           this text                -V, --version\n"
	     "\n"
	     "Exit codes: 0 done, 1 an operation failed or memory was reused too early,\n"
	     "            2 wrong usage, 3 no such trace, 4 damaged trace,\n"
	     "            5 cannot read or write, or no memory");
}

static void print_formats(void)
{
	puts("\n"
	     "A trace is a recording of libgpucache.so, whose last events are replayed after the\n"
	     "blocks that were held before them (without any, your newest recording); or a CSV\n"
	     "file, gzip or plain, whose first line is one of\n"
	     "  op,id,size,stream,time_us                 op is alloc, free or empty_cache\n"
	     "  Thread,Time,Action,Pointer,Size,Stream    the log of RMM\n"
	     "or a memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot), pickle or JSON;\n"
	     "nothing in a pickle is run");
	puts("\n"
	     "JSON: {schema, tool_version, traces: [{path, n_operations, n_streams, fixed_bytes,\n"
	     "peak_live_bytes, n_work, n_unknown_frees, n_implied_frees, n_failures,\n"
	     "recording: null or {device, gpu, total_bytes, failed, first_event, last_event,\n"
	     "n_events, n_held_before, held_before_bytes, n_missing_events, n_torn,\n"
	     "n_other_device_events},\n"
	     "runs: [{policy, device_bytes, peak_live_bytes, peak_reserved_bytes,\n"
	     "reserved_at_end_bytes, fragmentation, smallest_device_bytes, n_driver_calls,\n"
	     "n_mem_alloc, n_mem_free, n_mem_get_info, n_event_create_destroy, n_event_record,\n"
	     "n_event_query, n_stream_wait, n_synchronize, driver_ns, hit_rate,\n"
	     "ns_per_operation, n_failures_served, n_failures_again, peak_pending_bytes,\n"
	     "n_waits, waited_ns, program_ns, n_races, result, failure: null or\n"
	     "{event, line, size_bytes, why},\n"
	     "sizes: [of --sizes: runs]}]}]}");
	puts("\n"
	     "driver_ns and `published cost` charge each call as measured on V100 to H20:\n"
	     "35 us to take memory, 35 to return it (without the wait for the device), 10 to\n"
	     "query free memory, 0.2 to 1 for events, 5 for a wait.");
}

static bool add_policy(const char *name, struct gpc_arguments *arguments)
{
	const struct gpc_policy_ops *policy = NULL;

	for (size_t i = 0; i < gpc_kit.n_policies; i++)
		if (strcmp(gpc_kit.policies[i]->name, name) == 0)
			policy = gpc_kit.policies[i];
	if (!policy) {
		GPC_TEXT(text, 120);

		for (size_t i = 0; i < gpc_kit.n_policies; i++)
			gpc_text_add(&text, "%s %s", i ? "," : "", gpc_kit.policies[i]->name);
		return gpc_refuse("no policy `%s`; there are%s", name, text.buf);
	}
	for (unsigned i = 0; i < arguments->n_policies; i++)
		if (arguments->policies[i] == policy)
			return true;
	arguments->policies[arguments->n_policies++] = policy;
	return true;
}

static bool read_memory(const char *text, uint64_t *ret_bytes)
{
	uint64_t bytes = 0;

	if (!gpc_bytes_parse(text, strlen(text), &bytes) || bytes < GPC_RUN_DEVICE_STEP ||
		bytes > UINT64_C(1) << 42)
		return gpc_refuse("--memory needs a size from 2MiB to 4TiB, not `%s`", text);
	*ret_bytes = bytes;
	return true;
}

/* Reads a decimal number from `least` to `most`, or 0. */
static bool read_whole(const char *text, uint64_t least, uint64_t most, uint64_t *ret_value)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || (value != 0 && (value < least || value > most)))
		return false;
	*ret_value = value;
	return true;
}

static bool read_setting(char *key, char *value, struct gpc_policy_settings *settings)
{
	uint64_t whole = 0;
	double part;
	char *end;

	if (strcmp(key, "max_split_size_mb") == 0 &&
		read_whole(value, 20, UINT64_C(1) << 40, &whole)) {
		settings->max_split_size = whole * GPC_MIB;
	} else if (strcmp(key, "roundup_power2_divisions") == 0 &&
		   read_whole(value, 1, 64, &whole) && (whole & (whole - 1)) == 0) {
		settings->roundup_divisions = (uint32_t)whole;
	} else if (strcmp(key, "garbage_collection_threshold") == 0) {
		part = strtod(value, &end);
		if (end == value || *end || !(part >= 0 && part < 1))
			return false;
		settings->gc_threshold_ppm = (uint32_t)(part * 1e6 + 0.5);
	} else {
		return false;
	}
	return true;
}

/* Reads KEY:VALUE pairs, and cuts `text`, a word of argv, between them. */
static bool read_settings(char *text, struct gpc_policy_settings *settings)
{
	char *rest = NULL;

	for (char *part = strtok_r(text, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
		char *colon = strchr(part, ':');

		if (colon)
			*colon = '\0';
		if (colon && read_setting(part, colon + 1, settings))
			continue;
		return gpc_refuse(
			"--set knows max_split_size_mb (20 ..), roundup_power2_divisions (1 .. 64, "
			"a power of two) and garbage_collection_threshold (0 .. 1), not `%s%s%s`",
			part, colon ? ":" : "", colon ? colon + 1 : "");
	}
	return true;
}

static bool add_source(const char *text, bool is_workload, struct gpc_arguments *arguments)
{
	if (arguments->n_sources == GPC_MAX_SOURCES)
		return gpc_refuse("at most %d traces at a time", GPC_MAX_SOURCES);
	arguments->sources[arguments->n_sources++] =
		(struct gpc_source){ .text = text, .is_workload = is_workload };
	return true;
}

static bool read_device(const char *text, int *ret_ordinal)
{
	uint64_t ordinal = 0;

	if (!gpc_read_number("--device", text, UINT8_MAX, &ordinal))
		return false;
	*ret_ordinal = (int)ordinal;
	return true;
}

static bool read_option(int letter, struct gpc_arguments *arguments)
{
	switch (letter) {
	case 'p':
		return add_policy(optarg, arguments);
	case 'm':
		return read_memory(optarg, &arguments->settings.device_bytes);
	case 's':
		return read_settings(optarg, &arguments->settings.policy);
	case 'g':
		return add_source(optarg, true, arguments);
	case OPTION_SAVE:
		arguments->save = optarg;
		return true;
	case OPTION_DEVICE:
		return read_device(optarg, &arguments->which.device);
	case OPTION_TENSORS:
		arguments->which.of_tensors = true;
		return true;
	case OPTION_SMALLEST:
		arguments->with_smallest = true;
		return true;
	case OPTION_SIZES:
		arguments->with_sizes = true;
		return true;
	case OPTION_CHECK:
		arguments->settings.check_always = true;
		return true;
	case OPTION_JSON:
		arguments->json = true;
		return true;
	default:
		return false;
	}
}

static bool do_fit_together(const struct gpc_arguments *arguments)
{
	if (arguments->save && arguments->n_sources > 1)
		return gpc_refuse("--save takes one trace");
	if (arguments->with_sizes && arguments->settings.device_bytes)
		return gpc_refuse("--sizes chooses the memory itself: no --memory");
	return true;
}

enum gpc_arguments_answer gpc_arguments_read(
	int argc, char **argv, struct gpc_arguments *ret_arguments)
{
	const struct option *known = long_options + (gpc_kit.generate ? 0 : N_OF_KIT);
	const char *letters = gpc_kit.generate ? WITH_LETTERS : LETTERS;
	struct gpc_arguments arguments = { .which.device = -1 };
	int letter;

	opterr = 0;
	while ((letter = getopt_long(argc, argv, letters, known, NULL)) != -1) {
		switch (letter) {
		case 'h':
			print_examples();
			print_options();
			print_formats();
			if (gpc_kit.print_help)
				gpc_kit.print_help();
			return GPC_ARGUMENTS_DONE;
		case 'V':
			puts("gpumem-replay " GPUCACHE_VERSION);
			return GPC_ARGUMENTS_DONE;
		case '?':
		case ':':
			gpc_complain_option(argv[optind - 1], known);
			return GPC_ARGUMENTS_BAD;
		default:
			if (!read_option(letter, &arguments))
				return GPC_ARGUMENTS_BAD;
		}
	}
	for (; optind < argc; optind++)
		if (!add_source(argv[optind], false, &arguments))
			return GPC_ARGUMENTS_BAD;
	if (!do_fit_together(&arguments))
		return GPC_ARGUMENTS_BAD;
	if (arguments.n_policies == 0)
		arguments.policies[arguments.n_policies++] = &gpc_policy_gpucache;
	*ret_arguments = arguments;
	return GPC_ARGUMENTS_RUN;
}
