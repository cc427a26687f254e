/* SPDX-License-Identifier: Apache-2.0 */
/* What a failure tells of PyTorch's cache. */
#include "record/store.h"
#include "runtime/context/streams.h"
#include "runtime/process/state.h"
#include "torch_side.h"

#define CONF "stacks:all"

static void with_idle_segments(void)
{
	CUdeviceptr used;
	CUdeviceptr idle;
	CUdeviceptr ptr;

	world_start();
	used = segment(64 * MIB);
	tell(used + MIB, 2 * MIB);
	idle = segment(32 * MIB);
	tell(idle + MIB, 2 * MIB);
	CHECK(world_malloc(&ptr, 1000 * MIB));
	CHECK(world_oom(0)->idle_bytes == 0 && world_oom(0)->setup & GPUCACHE_OOM_IDLE);
	tell(idle + MIB, -2 * (int64_t)MIB);
	CHECK(world_malloc(&ptr, 1000 * MIB));
	CHECK(world_oom(1)->idle_bytes == 32 * MIB && world_oom(1)->idle_stack);
	CHECK(!(world_oom(1)->setup & GPUCACHE_OOM_GRAPHS));
	/* A tensor without a record may lie there. */
	gpc_runtime.record.header->dropped_blocks++;
	tell(used + 8 * MIB, MIB);
	CHECK(world_malloc(&ptr, 1000 * MIB));
	CHECK(!(world_oom(2)->setup & GPUCACHE_OOM_IDLE));
}

TEST(segments_without_a_tensor_are_told_at_a_failure)
{
	world_run("memory:1GiB,context:0", CONF ",oom_report:never", with_idle_segments);
}

static bool has_captured(void)
{
	for (uint32_t i = 1; i < gpc_record_site_end(&gpc_runtime.record); i++)
		if (gpc_runtime.record.sites[i].flags & GPUCACHE_SITE_CAPTURED)
			return true;
	return false;
}

static void in_a_capture(void)
{
	CUgraph graph = NULL;
	CUstream other;
	CUdeviceptr arena;

	world_start();
	torch.stream = world_stream();
	torch.has_streams = true;
	other = world_stream();
	arena = segment(20 * MIB);
	CHECK(world_enter());
	gpc_runtime_capture_begins(other);
	CHECK(!world.cuStreamBeginCapture_v2(other, CU_STREAM_CAPTURE_MODE_RELAXED));
	gpc_runtime_leave();
	tell(arena, MIB);
	CHECK(!has_captured());
	torch.stream = other;
	tell(arena + MIB, MIB);
	CHECK(has_captured());
	CHECK(!world.cuStreamEndCapture(other, &graph));
}

TEST(a_site_that_makes_tensors_for_a_graph_is_marked)
{
	world_run(NULL, CONF, in_a_capture);
}
