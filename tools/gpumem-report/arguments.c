/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses with getopt_long over tables of options and filters; for an unknown word the nearest one by edit distance is
 * suggested.
 */
#include "tools/gpumem-report/arguments.h"
#include "format/memory.h"
#include "format/streams.h"
#include "gpucache_version.h"
#include "tools/gpumem-report/export.h"
#include "tools/gpumem-report/filter.h"
#include "tools/gpumem-report/fit.h"

#include <getopt.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct gpc_command gpc_commands[] = {
#define COMMAND(name, needs, help) { #name, help, GPC_NEEDS_##needs, gpc_cmd_##name },
#include "tools/gpumem-report/commands.def"
#undef COMMAND
};

enum long_option {
	OPTION_JSON = 256,
	OPTION_COLOUR,
	OPTION_NO_COLOUR,
	OPTION_FAIL_ON,
	OPTION_FORMAT,
	OPTION_AT,
	OPTION_QUERY,
	OPTION_SYSROOT,
	OPTION_DEBUG_PATH,
	OPTION_BOTTOM_UP,
	OPTION_SYMBOLS,
	OPTION_NO_SYMBOLS,
	OPTION_ONCE,
	OPTION_WATCH,
	OPTION_ON,
	OPTION_STEPS,
	OPTION_SWEEP,
	OPTION_FILTER, /* + the filter's number; must be last */
};

static const struct option long_options[] = {
	{ "device", required_argument, NULL, 'd' },
	{ "limit", required_argument, NULL, 'n' },
	{ "output", required_argument, NULL, 'o' },
	{ "force", no_argument, NULL, 'f' },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "color", required_argument, NULL, OPTION_COLOUR },
	{ "no-color", no_argument, NULL, OPTION_NO_COLOUR },
	{ "fail-on", required_argument, NULL, OPTION_FAIL_ON },
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "at", required_argument, NULL, OPTION_AT },
	{ "query", required_argument, NULL, OPTION_QUERY },
	{ "sysroot", required_argument, NULL, OPTION_SYSROOT },
	{ "debug-path", required_argument, NULL, OPTION_DEBUG_PATH },
	{ "bottom-up", no_argument, NULL, OPTION_BOTTOM_UP },
	{ "symbols", no_argument, NULL, OPTION_SYMBOLS },
	{ "no-symbols", no_argument, NULL, OPTION_NO_SYMBOLS },
	{ "once", no_argument, NULL, OPTION_ONCE },
	{ "watch", required_argument, NULL, OPTION_WATCH },
	{ "on", required_argument, NULL, OPTION_ON },
	{ "steps", required_argument, NULL, OPTION_STEPS },
	{ "sweep", required_argument, NULL, OPTION_SWEEP },
#define FILTER(name, value, is_of, help)  \
	{ #name, required_argument, NULL, \
		OPTION_FILTER + (int)(offsetof(struct gpc_filters, name) / sizeof(char *)) },
#include "tools/gpumem-report/filters.def"
#undef FILTER
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

/* Beyond this distance a word is no typing error: half of its letters differ. */
static size_t farthest(const char *word)
{
	size_t len = strlen(word);

	return len < 6 ? len / 2 : 3;
}

static const struct gpc_command *find_command(const char *word)
{
	for (size_t i = 0; i < GPC_N_COMMANDS; i++)
		if (strcmp(gpc_commands[i].name, word) == 0)
			return &gpc_commands[i];
	return NULL;
}

static void complain_command(const char *word)
{
	const char *nearest = NULL;
	size_t least = farthest(word) + 1;

	for (size_t i = 0; i < GPC_N_COMMANDS; i++) {
		size_t d = gpc_text_distance(gpc_commands[i].name, word, strlen(word));

		if (d < least) {
			least = d;
			nearest = gpc_commands[i].name;
		}
	}
	if (nearest)
		gpc_complain("no command or file `%s`; did you mean `%s`?", word, nearest);
	else
		gpc_complain(
			"no command or file `%s`; `gpumem-report -h` lists the commands", word);
}

static void complain_option(const char *word)
{
	const char *nearest = NULL;
	size_t len = strcspn(word, "=");
	size_t least;
	char name[24];

	if (strncmp(word, "--", 2) != 0 || len < 3 || len - 2 >= sizeof name) {
		gpc_complain(
			"unknown option or missing value: `%s`; `gpumem-report -h` lists the "
			"options",
			word);
		return;
	}
	memcpy(name, word + 2, len - 2);
	name[len - 2] = '\0';
	least = farthest(name) + 1;
	for (const struct option *option = long_options; option->name; option++) {
		size_t d = gpc_text_distance(option->name, name, len - 2);

		if (d < least) {
			least = d;
			nearest = option->name;
		}
	}
	if (nearest && strcmp(nearest, name) == 0)
		gpc_complain("`--%s` needs a value, or takes none", nearest);
	else if (nearest)
		gpc_complain("unknown option `--%s`; did you mean `--%s`?", name, nearest);
	else
		gpc_complain("unknown option `--%s`; `gpumem-report -h` lists the options", name);
}

static bool read_number(const char *option, const char *text, uint64_t most, uint64_t *ret_number)
{
	char *end;
	unsigned long long number = strtoull(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end || number > most) {
		gpc_complain("%s needs a number from 0 to %llu, not `%s`", option,
			(unsigned long long)most, text);
		return false;
	}
	*ret_number = number;
	return true;
}

static bool read_colour(const char *text, enum gpc_colour_mode *ret_mode)
{
	static const char *const words[] = { "auto", "always", "never" };

	for (unsigned i = 0; i < 3; i++) {
		if (strcmp(text, words[i]) == 0) {
			*ret_mode = (enum gpc_colour_mode)i;
			return true;
		}
	}
	gpc_complain("--color needs auto, always or never, not `%s`", text);
	return false;
}

static bool read_moment(const char *text, enum gpc_at *ret_moment)
{
	static const char *const words[] = { "end", "peak", "oom" };

	for (unsigned i = 0; i < 3; i++) {
		if (strcmp(text, words[i]) == 0) {
			*ret_moment = (enum gpc_at)(GPC_AT_END + i);
			return true;
		}
	}
	gpc_complain("--at needs end, peak or oom, not `%s`", text);
	return false;
}

static bool read_conditions(const char *text, struct gpc_options *options)
{
	while (*text) {
		size_t len = strcspn(text, ",");

		if (len == 3 && strncmp(text, "oom", 3) == 0) {
			options->fail_on_oom = true;
		} else if (len == 4 && strncmp(text, "leak", 4) == 0) {
			options->fail_on_leak = true;
		} else {
			gpc_complain("--fail-on knows oom and leak, not `%.*s`", (int)len, text);
			return false;
		}
		text += len;
		text += *text == ',';
	}
	return true;
}

/* "15s", "500ms", "2m"; a number alone is seconds. */
static bool read_interval(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *word;
		double ns;
	} units[] = { { "", 1e9 }, { "s", 1e9 }, { "ms", 1e6 }, { "m", 60e9 }, { "min", 60e9 } };
	char *end;
	double value = strtod(text, &end);

	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (strcmp(end, units[i].word) == 0 && end != text && value * units[i].ns >= 1e8 &&
			value * units[i].ns <= 86400e9) {
			*ret_ns = (uint64_t)(value * units[i].ns);
			return true;
		}
	gpc_complain("--watch needs a time from 100ms to a day, such as 15s, not `%s`", text);
	return false;
}

static bool read_directory(const char *option, const char *text, const char **ret_path)
{
	struct stat st;

	if (stat(text, &st) != 0 || !S_ISDIR(st.st_mode)) {
		gpc_complain("%s needs a directory, not `%s`", option, text);
		return false;
	}
	*ret_path = text;
	return true;
}

static bool read_filter(size_t number, struct gpc_options *options)
{
	const char *name = gpc_filter_rows[number].name;
	uint64_t thread;

	memcpy((char *)&options->filters + number * sizeof optarg, &optarg, sizeof optarg);
	if (strcmp(name, "thread") == 0)
		return read_number("--thread", optarg, UINT32_MAX, &thread);
	if (strcmp(name, "stream") == 0 && !gpc_stream_is_wish(optarg)) {
		gpc_complain(
			"--stream needs a number or a handle of a stream, legacy, per-thread or "
			"none, "
			"not `%s`",
			optarg);
		return false;
	}
	return true;
}

/* One option; false if its value is wrong. */
static bool read_option(int letter, struct gpc_options *options)
{
	uint64_t number = 0;

	switch (letter) {
	case 'd':
		if (!read_number("-d", optarg, 1023, &number))
			return false;
		options->device = (int32_t)number;
		return true;
	case 'n':
		if (!read_number("-n", optarg, 1000000, &number))
			return false;
		options->limit = (unsigned)number;
		return true;
	case 'o':
		options->output = optarg;
		return true;
	case 'f':
		options->force = true;
		return true;
	case OPTION_JSON:
		options->json = true;
		return true;
	case OPTION_COLOUR:
		return read_colour(optarg, &options->colour);
	case OPTION_NO_COLOUR:
		options->colour = GPC_COLOUR_NEVER;
		return true;
	case OPTION_FAIL_ON:
		return read_conditions(optarg, options);
	case OPTION_FORMAT:
		options->format = optarg;
		return true;
	case OPTION_AT:
		return read_moment(optarg, &options->moment);
	case OPTION_QUERY:
		options->query = optarg;
		return true;
	case OPTION_SYSROOT:
		return read_directory("--sysroot", optarg, &options->places.sysroot);
	case OPTION_DEBUG_PATH:
		options->places.debug_path = optarg;
		return true;
	case OPTION_SYMBOLS:
		options->places.symbols_of = GPC_SYMBOLS_OF_ALL;
		return true;
	case OPTION_NO_SYMBOLS:
		options->places.symbols_of = GPC_SYMBOLS_OF_NONE;
		return true;
	case OPTION_ONCE:
		options->once = true;
		return true;
	case OPTION_WATCH:
		return read_interval(optarg, &options->watch_ns);
	case OPTION_ON:
		options->on = optarg;
		return true;
	case OPTION_STEPS:
		return read_number("--steps", optarg, 1000000, &options->steps);
	case OPTION_SWEEP:
		options->sweep = optarg;
		return true;
	case OPTION_BOTTOM_UP:
		options->is_bottom_up = true;
		return true;
	default:
		return read_filter((size_t)(letter - OPTION_FILTER), options);
	}
}

static bool is_number(const char *word)
{
	return *word && word[strspn(word, "0123456789")] == '\0' && strlen(word) < 10;
}

static bool read_word(const char *word, unsigned n_words, struct gpc_options *options,
	const struct gpc_command **command)
{
	if (n_words == 0 && find_command(word)) {
		*command = find_command(word);
		return true;
	}
	if (n_words == 0 && !is_number(word) && strcmp(word, "-") != 0 && access(word, F_OK) != 0 &&
		!strpbrk(word, "./")) {
		complain_command(word);
		return false;
	}
	/* `oom 2 FILE`, in this order; main looks a single number up as a pid first. */
	if (options->n_targets == 1 && !options->number && (*command)->run == gpc_cmd_oom &&
		is_number(options->targets[0])) {
		options->number = strtoull(options->targets[0], NULL, 10);
		options->n_targets = 0;
	}
	options->targets[options->n_targets++] = word;
	return true;
}

static bool are_targets_fine(const struct gpc_options *options, const struct gpc_command *command)
{
	if (command->needs == GPC_NEEDS_TWO_RECORDINGS) {
		if (options->n_targets != 2)
			gpc_complain("`%s` compares two recordings: %s A B", command->name,
				command->name);
		return options->n_targets == 2;
	}
	if (options->n_targets < 2 || command->needs == GPC_NEEDS_RECORDINGS)
		return true;
	if (command->needs != GPC_NEEDS_RECORDING || command->run == gpc_cmd_export) {
		gpc_complain("`%s` takes one at a time, not `%s` and `%s`", command->name,
			options->targets[0], options->targets[1]);
		return false;
	}
	if (options->json)
		gpc_complain("--json takes one recording at a time, not `%s` and `%s`",
			options->targets[0], options->targets[1]);
	return !options->json;
}

static bool is_moment_fine(const struct gpc_options *options)
{
	if (!gpc_filter_is_of_blocks(options) || options->moment <= GPC_AT_END)
		return true;
	gpc_complain(
		"a peak and a failure list stacks only: --at=peak and --at=oom take "
		"--where and --library");
	return false;
}

/* --watch turns `export` into another command; `live` has it anyway. */
static bool is_watch_fine(const struct gpc_options *options, const struct gpc_command **command)
{
	static const struct gpc_command watch = { "export", NULL, GPC_NEEDS_NOTHING,
		gpc_cmd_watch };
	const bool is_export = (*command)->run == gpc_cmd_export;
	const char *format = options->format ? options->format : "";

	if (options->once && (*command)->run != gpc_cmd_live) {
		gpc_complain("--once is an option of `live`, not of `%s`", (*command)->name);
		return false;
	}
	if (!options->watch_ns || (*command)->run == gpc_cmd_live)
		return true;
	if (!is_export ||
		(strcmp(format, "prometheus") != 0 && strcmp(format, "openmetrics") != 0)) {
		gpc_complain(
			"--watch is an option of `live`, and of `export` with --format=prometheus "
			"or "
			"openmetrics");
		return false;
	}
	*command = &watch;
	return true;
}

/* A program after `--` turns `fit` into another command. */
static bool is_fit_fine(const struct gpc_options *options, const struct gpc_command **command)
{
	static const struct gpc_command run = { "fit", NULL, GPC_NEEDS_NOTHING, gpc_fit_run };
	struct gpc_fit_target target;

	if ((*command)->run != gpc_cmd_fit) {
		if (options->on || options->steps || options->sweep)
			gpc_complain("--on, --steps and --sweep are options of `fit`, not of `%s`",
				(*command)->name);
		return !options->on && !options->steps && !options->sweep;
	}
	if (options->on && !gpc_fit_read_target(options->on, &target)) {
		gpc_complain(
			"--on needs a GPU or a size, not `%s`; `gpucache-run --sim list` names "
			"the GPUs",
			options->on);
		return false;
	}
	if (options->program)
		*command = &run;
	else if (options->steps || options->sweep)
		gpc_complain("--steps and --sweep need a program: fit ... -- PROGRAM");
	return options->program || (!options->steps && !options->sweep);
}

static bool is_export_fine(const struct gpc_options *options, const struct gpc_command *command)
{
	if (command->run == gpc_cmd_export)
		return gpc_export_is_possible(options);
	if (!options->format && !options->query)
		return true;
	gpc_complain("--format and --query are options of `export`, not of `%s`", command->name);
	return false;
}

enum gpc_arguments gpc_arguments_read(int argc, char **argv, struct gpc_options *ret_options,
	const struct gpc_command **ret_command)
{
	struct gpc_options options = { .device = -1 };
	const struct gpc_command *command = &gpc_commands[0];
	unsigned n_words = 0;
	int letter;

	options.targets = ret_options->targets = gpc_new((size_t)argc, sizeof *options.targets);
	opterr = 0;
	while ((letter = getopt_long(argc, argv, "-:d:n:o:fhV", long_options, NULL)) != -1) {
		switch (letter) {
		case 'h':
			gpc_help_print();
			return GPC_ARGUMENTS_DONE;
		case 'V':
			puts("gpumem-report " GPUCACHE_VERSION);
			return GPC_ARGUMENTS_DONE;
		case '?':
		case ':':
			complain_option(argv[optind - 1]);
			return GPC_ARGUMENTS_BAD;
		case 1:
			if (!read_word(optarg, n_words++, &options, &command))
				return GPC_ARGUMENTS_BAD;
			break;
		default:
			if (!read_option(letter, &options))
				return GPC_ARGUMENTS_BAD;
		}
	}
	if (command->run == gpc_cmd_fit && optind < argc && strcmp(argv[optind - 1], "--") == 0) {
		options.program = &argv[optind];
		optind = argc;
	}
	for (; optind < argc; optind++)
		if (!read_word(argv[optind], n_words++, &options, &command))
			return GPC_ARGUMENTS_BAD;
	/* Exports for other tools show one moment of all GPUs. */
	if (command->run == gpc_cmd_export && options.moment == GPC_AT_USUAL)
		options.moment = GPC_AT_END;
	if (!is_moment_fine(&options) || !are_targets_fine(&options, command) ||
		!is_export_fine(&options, command) || !is_watch_fine(&options, &command) ||
		!is_fit_fine(&options, &command))
		return GPC_ARGUMENTS_BAD;
	*ret_options = options;
	*ret_command = command;
	return GPC_ARGUMENTS_RUN;
}
