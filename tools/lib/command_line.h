/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tools say of a command line, and how they read its values.
 *
 * Threads   One.
 * Failure   A message on standard error, and false.
 */
#ifndef GPC_LIB_COMMAND_LINE_H
#define GPC_LIB_COMMAND_LINE_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What gpc_arguments_read() of a tool answers. */
enum gpc_arguments_answer {
	GPC_ARGUMENTS_RUN,
	GPC_ARGUMENTS_DONE, /* -h, -V: printed */
	GPC_ARGUMENTS_BAD,
};

/* Flushes stdout, and prints "gpumem-report: ", the text and a newline on stderr.  gpc_refuse also returns false. */
void gpc_complain(const char *format, ...) __attribute__((format(__printf__, 1, 2)));
#define gpc_refuse(...) (gpc_complain(__VA_ARGS__), false)

/*
 * Returns the name nearest to the word by edit distance, from `n` rows of `size` bytes that each begin with a name.
 * NULL if that takes more than 3 edits, or for a short word more than half as many as it has letters: that is no typo.
 */
const char *gpc_nearest(const char *word, const void *rows, size_t n, size_t size);

/* Complains of the word of argv that getopt_long() refused; `options` ends with an all-zero row. */
void gpc_complain_option(const char *word, const struct option *options);

/* True for a decimal number of at most nine digits. */
bool gpc_is_number(const char *word);

/* Reads a decimal number up to `most`. */
bool gpc_read_number(const char *option, const char *text, uint64_t most, uint64_t *ret_number);

#endif
