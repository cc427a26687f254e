/* SPDX-License-Identifier: Apache-2.0 */
/* Opens what a builder has, through a file that is gone at once. */
#ifndef GPC_TESTS_UNIT_FORMAT_BUILT_H
#define GPC_TESTS_UNIT_FORMAT_BUILT_H

#include <unistd.h>

#include "format/recording.h"
#include "tests/unit/format/recording_builder.h"
#include "tests/unit/unit.h"

static inline struct gpc_recording *open_written(const struct recording_builder *b)
{
	char path[] = "/tmp/gpucache-test-XXXXXX";
	struct gpc_recording *rec = NULL;
	char why[100];
	struct gpc_text text = gpc_text_init(why, sizeof why);

	close(mkstemp(path));
	builder_write(b, path);
	at_int_equal(gpc_recording_open(path, &rec, &text), GPC_OK);
	unlink(path);
	return rec;
}

/* And ends the builder. */
static inline struct gpc_recording *open_built(struct recording_builder *b)
{
	struct gpc_recording *rec = open_written(b);

	builder_fini(b);
	return rec;
}

/* Checks in these helpers report the line of the test: unit.h. */
#define open_written(...) AT(open_written(__VA_ARGS__))
#define open_built(...)   AT(open_built(__VA_ARGS__))

#endif
