/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_history FILE GIB...: writes a recording with a history of these sizes, one per second, the last one live at the
 * end.
 */
#include <stdlib.h>

#include "tests/unit/format/recording_builder.h"

#define GIB (UINT64_C(1) << 30)

int main(int argc, char **argv)
{
	struct recording_builder b;
	struct gpucache_point *points;

	builder_init(&b);
	b.counters[0] = (struct gpucache_counters){ .context = 0xbeef };
	*b.history = (struct gpucache_history_head){ .max_points = BUILDER_POINTS,
		.interval_ns = 1000000000 };
	points = (struct gpucache_point *)(b.history + 1);
	for (int i = 2; i < argc && i < 2 + BUILDER_POINTS; i++) {
		uint64_t bytes = strtoull(argv[i], NULL, 10) * GIB;

		points[i - 2] = (struct gpucache_point){ builder_ns(i - 1), bytes, bytes, bytes };
		b.history[0].n_points[0] = (uint32_t)i - 1;
	}
	b.devices[0] = (struct gpucache_device){
		.seq = 2, .total_bytes = 80 * GIB, .look_ns = builder_ns(1), .free_bytes = 70 * GIB
	};
	b.header->end_ns = builder_ns(argc - 1);
	builder_write(&b, argv[1]);
	builder_fini(&b);
	return 0;
}
