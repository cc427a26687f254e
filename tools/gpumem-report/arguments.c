/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses with getopt_long, over tables of options and filters.  A complaint about an unknown word suggests the nearest
 * known word by edit distance.
 */
#include "tools/gpumem-report/arguments.h"
#include "format/memory.h"
#include "format/streams.h"
#include "gpucache_version.h"
#include "tools/gpumem-report/export/export.h"
#include "tools/gpumem-report/fit/smallest_gpu.h"
#include "tools/gpumem-report/holders/filter.h"
#include "tools/gpumem-report/target.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct gpc_command gpc_commands[] = {
#define COMMAND(name, needs, help) { #name, help, GPC_NEEDS_##needs, gpc_cmd_##name },
#include "tools/gpumem-report/commands.def"
};

enum long_option {
	OPTION_COLOUR = 256,
	OPTION_NO_COLOUR,
	OPTION_FAIL_ON,
	OPTION_AT,
	OPTION_SYMBOLS,
	OPTION_NO_SYMBOLS,
	OPTION_WATCH,
	OPTION_TEXTS = 0x1000, /* + the offset of the member that is set to the text */
	OPTION_FLAGS = 0x2000, /* + the offset of the member that is set to true */
};

_Static_assert(OPTION_TEXTS + sizeof(struct gpc_options) <= OPTION_FLAGS, "offsets are told apart");

#define TEXT(member) (OPTION_TEXTS + (int)offsetof(struct gpc_options, member))
#define FLAG(member) (OPTION_FLAGS + (int)offsetof(struct gpc_options, member))

static const struct option long_options[] = {
	{ "device", required_argument, NULL, 'd' },
	{ "limit", required_argument, NULL, 'n' },
	{ "output", required_argument, NULL, 'o' },
	{ "force", no_argument, NULL, 'f' },
	{ "json", no_argument, NULL, FLAG(json) },
	{ "html", no_argument, NULL, FLAG(html) },
	{ "color", required_argument, NULL, OPTION_COLOUR },
	{ "no-color", no_argument, NULL, OPTION_NO_COLOUR },
	{ "fail-on", required_argument, NULL, OPTION_FAIL_ON },
	{ "format", required_argument, NULL, TEXT(format) },
	{ "at", required_argument, NULL, OPTION_AT },
	{ "query", required_argument, NULL, TEXT(query) },
	{ "sysroot", required_argument, NULL, TEXT(places.sysroot) },
	{ "debug-path", required_argument, NULL, TEXT(places.debug_path) },
	{ "bottom-up", no_argument, NULL, FLAG(is_bottom_up) },
	{ "symbols", no_argument, NULL, OPTION_SYMBOLS },
	{ "no-symbols", no_argument, NULL, OPTION_NO_SYMBOLS },
	{ "once", no_argument, NULL, FLAG(once) },
	{ "watch", required_argument, NULL, OPTION_WATCH },
	{ "on", required_argument, NULL, TEXT(on) },
	{ "run", required_argument, NULL, TEXT(run) },
	{ "ended", required_argument, NULL, TEXT(ended) },
	{ "progress", no_argument, NULL, FLAG(progress) },
	{ "next", no_argument, NULL, FLAG(next) },
	{ "trials", required_argument, NULL, TEXT(trials) },
#define FILTER(name, value, is_of, help) { #name, required_argument, NULL, TEXT(filters.name) },
#include "tools/gpumem-report/holders/filters.def"
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static const struct gpc_command *find_command(const char *word)
{
	for (size_t i = 0; i < GPC_N_COMMANDS; i++)
		if (strcmp(gpc_commands[i].name, word) == 0)
			return &gpc_commands[i];
	return NULL;
}

static void complain_command(const char *word)
{
	const char *nearest =
		gpc_nearest(word, gpc_commands, GPC_N_COMMANDS, sizeof gpc_commands[0]);

	if (nearest)
		gpc_complain("no command or file `%s`; did you mean `%s`?", word, nearest);
	else
		gpc_complain(
			"no command or file `%s`; `gpumem-report -h` lists the commands", word);
}

/* Stores the index of `text` among three words. */
static bool read_choice(
	const char *option, const char *text, const char *const words[3], unsigned *ret_number)
{
	for (unsigned i = 0; i < 3; i++)
		if (strcmp(text, words[i]) == 0) {
			*ret_number = i;
			return true;
		}
	return gpc_refuse(
		"%s needs %s, %s or %s, not `%s`", option, words[0], words[1], words[2], text);
}

static bool read_conditions(const char *text, struct gpc_options *options)
{
	while (*text) {
		size_t len = strcspn(text, ",");

		if (len == 3 && strncmp(text, "oom", 3) == 0)
			options->fail_on_oom = true;
		else if (len == 4 && strncmp(text, "leak", 4) == 0)
			options->fail_on_leak = true;
		else
			return gpc_refuse(
				"--fail-on knows oom and leak, not `%.*s`", (int)len, text);
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
	return gpc_refuse("--watch needs a time from 100ms to a day, such as 15s, not `%s`", text);
}

/* Handles an option below OPTION_TEXTS; false if its value is wrong. */
static bool read_special(int letter, struct gpc_options *options)
{
	static const char *const colours[] = { "auto", "always", "never" };
	static const char *const moments[] = { "end", "peak", "oom" };
	uint64_t number = 0;
	unsigned choice = 0;
	bool is_good = true;

	switch (letter) {
	case 'd':
		is_good = gpc_read_number("-d", optarg, GPC_MAX_ORDINAL - 1, &number);
		options->device = (int32_t)number;
		break;
	case 'n':
		is_good = gpc_read_number("-n", optarg, 1000000, &number);
		options->limit = (unsigned)number;
		break;
	case 'o':
		options->output = optarg;
		break;
	case 'f':
		options->force = true;
		break;
	case OPTION_COLOUR:
		is_good = read_choice("--color", optarg, colours, &choice);
		options->colour = (enum gpc_colour_mode)choice;
		break;
	case OPTION_NO_COLOUR:
		options->colour = GPC_COLOUR_NEVER;
		break;
	case OPTION_FAIL_ON:
		return read_conditions(optarg, options);
	case OPTION_AT:
		is_good = read_choice("--at", optarg, moments, &choice);
		options->moment = (enum gpc_at)(GPC_AT_END + choice);
		break;
	case OPTION_SYMBOLS:
		options->places.symbols_of = GPC_SYMBOLS_OF_ALL;
		break;
	case OPTION_NO_SYMBOLS:
		options->places.symbols_of = GPC_SYMBOLS_OF_NONE;
		break;
	case OPTION_WATCH:
		return read_interval(optarg, &options->watch_ns);
	default:
		break;
	}
	return is_good;
}

static bool read_option(int letter, struct gpc_options *options)
{
	uint64_t thread;

	if (letter < OPTION_TEXTS)
		return read_special(letter, options);
	if (letter >= OPTION_FLAGS)
		*(bool *)((char *)options + (letter - OPTION_FLAGS)) = true;
	else
		memcpy((char *)options + (letter - OPTION_TEXTS), &optarg, sizeof optarg);
	if (letter == TEXT(filters.thread))
		return gpc_read_number("--thread", optarg, UINT32_MAX, &thread);
	if (letter == TEXT(places.sysroot) && !gpc_target_is_folder(optarg))
		return gpc_refuse("--sysroot needs a directory, not `%s`", optarg);
	if (letter == TEXT(filters.stream) && !gpc_stream_is_wish(optarg))
		return gpc_refuse(
			"--stream needs a number or a handle of a stream, legacy, "
			"per-thread or none, not `%s`",
			optarg);
	return true;
}

static bool read_word(const char *word, unsigned n_words, struct gpc_options *options,
	const struct gpc_command **command)
{
	const struct gpc_command *found = n_words == 0 ? find_command(word) : NULL;

	if (found) {
		*command = found;
		return true;
	}
	if (n_words == 0 && !gpc_is_number(word) && strcmp(word, "-") != 0 &&
		access(word, F_OK) != 0 && !strpbrk(word, "./")) {
		complain_command(word);
		return false;
	}
	/* In `oom 2 FILE`, 2 is the number of a failure.  For `oom 2`, see gpc_target_sort_out_number(). */
	if (options->n_targets == 1 && !options->number && (*command)->run == gpc_cmd_oom &&
		gpc_is_number(options->targets[0])) {
		options->number = strtoull(options->targets[0], NULL, 10);
		options->n_targets = 0;
	}
	options->targets[options->n_targets++] = word;
	return true;
}

static bool are_targets_fine(const struct gpc_options *options, const struct gpc_command *command)
{
	if (command->needs == GPC_NEEDS_TWO_RECORDINGS)
		return options->n_targets == 2 || gpc_refuse("`%s` compares two recordings: %s A B",
							  command->name, command->name);
	if (options->n_targets < 2 || command->needs == GPC_NEEDS_RECORDINGS ||
		command->needs == GPC_NEEDS_FOLDERS)
		return true;
	if (command->needs > GPC_NEEDS_LARGEST || command->run == gpc_cmd_export)
		return gpc_refuse("`%s` takes one at a time, not `%s` and `%s`", command->name,
			options->targets[0], options->targets[1]);
	return !options->json ||
	       gpc_refuse("--json takes one recording at a time, not `%s` and `%s`",
		       options->targets[0], options->targets[1]);
}

/* The options that only some commands have. */
#define OF(kind, member, commands)              \
	{                                       \
#member, kind(member), commands \
	}
static const struct {
	const char *name;
	int letter;
	const char *commands;
} owned[] = {
	OF(FLAG, once, "`live`"),
	OF(FLAG, html, "`fit`, `sweep` and `cure`"),
	OF(FLAG, next, "`sweep` and `cure`"),
	OF(FLAG, progress, "`fit`"),
	OF(TEXT, ended, "`fit`"),
	OF(TEXT, on, "`fit`"),
	OF(TEXT, trials, "`cure`"),
	OF(TEXT, run, "`oom`"),
	OF(TEXT, format, "`export`"),
	OF(TEXT, query, "`export`"),
};

static bool is_given(const struct gpc_options *options, int letter)
{
	const char *at = (const char *)options;
	const char *text;

	if (letter >= OPTION_FLAGS)
		return *(const bool *)(at + (letter - OPTION_FLAGS));
	memcpy(&text, at + (letter - OPTION_TEXTS), sizeof text);
	return text != NULL;
}

static bool are_options_of(const struct gpc_options *options, const struct gpc_command *command)
{
	GPC_TEXT(quoted, 24);

	gpc_text_add(&quoted, "`%s`", command->name);
	for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
		if (is_given(options, owned[i].letter) && !strstr(owned[i].commands, quoted.buf))
			return gpc_refuse("--%s is an option of %s, not of %s", owned[i].name,
				owned[i].commands, quoted.buf);
	return true;
}

static bool is_moment_fine(const struct gpc_options *options)
{
	return !gpc_filter_is_of_blocks(options) || options->moment <= GPC_AT_END ||
	       gpc_refuse(
		       "--at=peak and --at=oom list stacks only: the filters that they take are "
		       "--where and --library");
}

/* With --watch, gpc_cmd_watch() runs instead of gpc_cmd_export().  `live` takes --watch itself. */
static bool is_watch_fine(const struct gpc_options *options, const struct gpc_command **command)
{
	static const struct gpc_command watch = { "export", NULL, GPC_NEEDS_NOTHING,
		gpc_cmd_watch };
	const bool is_export = (*command)->run == gpc_cmd_export;
	const char *format = options->format ? options->format : "";

	if (!options->watch_ns || (*command)->run == gpc_cmd_live)
		return true;
	if (!is_export || (strcmp(format, "prometheus") != 0 && strcmp(format, "openmetrics") != 0))
		return gpc_refuse(
			"--watch is an option of `live`, and of `export` with --format=prometheus "
			"or openmetrics");
	*command = &watch;
	return true;
}

static bool are_values_fine(const struct gpc_options *options, const struct gpc_command *command)
{
	struct gpc_fit_target target;

	if (options->html && options->json)
		return gpc_refuse("--html and --json: one of them");
	if (options->on && !gpc_fit_read_target(options->on, &target))
		return gpc_refuse(
			"--on needs a GPU or a size, not `%s`; `gpucache-run --sim list` "
			"names the GPUs",
			options->on);
	if (options->run && options->n_targets > 1)
		return gpc_refuse("--run looks into one folder, not into `%s` and `%s`",
			options->targets[0], options->targets[1]);
	return command->run != gpc_cmd_export || gpc_export_is_possible(options);
}

enum gpc_arguments_answer gpc_arguments_read(int argc, char **argv, struct gpc_options *ret_options,
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
			gpc_complain_option(argv[optind - 1], long_options);
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
	for (; optind < argc; optind++)
		if (!read_word(argv[optind], n_words++, &options, &command))
			return GPC_ARGUMENTS_BAD;
	/* An export has one moment for all GPUs; GPC_AT_USUAL could choose another moment for each. */
	if (command->run == gpc_cmd_export && options.moment == GPC_AT_USUAL)
		options.moment = GPC_AT_END;
	if (!is_moment_fine(&options) || !are_targets_fine(&options, command) ||
		!are_options_of(&options, command) || !are_values_fine(&options, command) ||
		!is_watch_fine(&options, &command))
		return GPC_ARGUMENTS_BAD;
	*ret_options = options;
	*ret_command = command;
	return GPC_ARGUMENTS_RUN;
}
