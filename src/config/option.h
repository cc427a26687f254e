/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of options.def as data; parses and formats one value.  Private to config, except for
 * `gpumem-report options`.
 */
#ifndef GPC_CONFIG_OPTION_H
#define GPC_CONFIG_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "config/config.h"

enum gpc_option_type {
	GPC_OPTION_BOOL,
	GPC_OPTION_ENUM,
	GPC_OPTION_INT,
	GPC_OPTION_SIZE,
	GPC_OPTION_AMOUNT,
	GPC_OPTION_FRACTION,
	GPC_OPTION_DURATION,
	GPC_OPTION_STRING,
};

struct gpc_option_row {
	const char *name;
	enum gpc_option_type type;
	size_t offset; /* of the field in struct gpc_config */
	const char *default_text;
	int64_t smallest;
	int64_t largest;
	const char *choices; /* "a|b|c" */
	const char *help;
};

extern const struct gpc_option_row gpc_option_rows[GPC_OPTION_COUNT];

/*
 * Parses text[0 .. len) as the row's type into its field.  Returns false, with the field unchanged, if
 * it is invalid.
 */
bool gpc_option_read(
	const struct gpc_option_row *row, struct gpc_config *config, const char *text, size_t len);

/* Appends the field's value, in a form that gpc_option_read understands. */
void gpc_option_write(
	const struct gpc_option_row *row, const struct gpc_config *config, struct gpc_text *text);

/* The form of a valid value, for messages. */
const char *gpc_option_hint(const struct gpc_option_row *row);

#endif
