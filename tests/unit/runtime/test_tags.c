/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "runtime/ledger/track.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"
#include "runtime/process/tags.h"
#include "world.h"

static void push(const char *name)
{
	(void)gpc_runtime_tag_push(GPC_TAG_OF_API, name);
}

static void pop(void)
{
	uint32_t level;

	CHECK(gpc_runtime_tag_pop(GPC_TAG_OF_API, &level));
}

static const struct gpucache_append_head *recorded(void)
{
	return (const void *)(gpc_runtime.record.base +
			      gpc_runtime.record.regions[GPUCACHE_REGION_TAGS]->offset);
}

static const struct gpucache_block *block_at(uint64_t address)
{
	for (uint32_t i = 0; i < gpc_runtime.record.n_blocks; i++) {
		const struct gpucache_block *block = &gpc_runtime.record.blocks[i];

		if (block->state != GPUCACHE_BLOCK_UNUSED && block->address == address)
			return block;
	}
	world_fail(__FILE__, __LINE__, "no such block");
}

static const struct gpucache_event *last_event(void)
{
	uint64_t n = atomic_load(&gpc_runtime.record.next_event);

	return &gpc_runtime.record.events[(n - 1) & (gpc_runtime.record.n_events - 1)];
}

static CUresult make_managed(struct gpc_passed_call *call)
{
	CUdeviceptr ptr = 0;
	CUresult result = world.cuMemAllocManaged(&ptr, call->size, CU_MEM_ATTACH_GLOBAL);

	call->ret_address = ptr;
	call->ret_size = call->size;
	return result;
}

static void labelled(void)
{
	struct gpc_passed_call call = {
		.make = make_managed, .kind = GPUCACHE_KIND_MANAGED, .size = MIB
	};
	CUdeviceptr outer;
	CUdeviceptr inner;
	uint32_t tag;

	push("early");
	world_start();
	CHECK(!world_malloc(&outer, MIB));
	CHECK(recorded()->n_records == 1);
	tag = block_at(outer)->tag;
	CHECK(tag && last_event()->tag == tag && gpc_thread_tag() == tag);
	push("late");
	CHECK(!world_malloc(&inner, MIB));
	CHECK(recorded()->n_records == 2 && block_at(inner)->tag != tag);
	CHECK(world_enter());
	CHECK(!gpc_runtime_passed_malloc(&call));
	gpc_runtime_leave();
	CHECK(block_at(call.ret_address)->tag == block_at(inner)->tag);
	pop();
	pop();
	CHECK(!world_free(outer) && block_at(outer)->tag == 0 && last_event()->tag == 0);
	CHECK(!world_malloc(&outer, MIB) && block_at(outer)->tag == 0);
}

TEST(allocations_get_the_range_that_their_thread_is_in)
{
	world_run("memory:1GiB", "stacks:off", labelled);
}

static void failed(void)
{
	const struct gpucache_oom *oom;
	CUdeviceptr ptr;

	world_start();
	CHECK(world_malloc(&ptr, 4096 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(world_oom(0)->tag == 0 && world_oom(0)->n_tags == 0);
	CHECK(!world_malloc(&ptr, 2 * MIB));
	push("step");
	CHECK(!world_malloc(&ptr, 64 * MIB));
	push("backward");
	CHECK(world_malloc(&ptr, 4096 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
	oom = world_oom(1);
	CHECK(oom->tag == gpc_thread_tag() && oom->n_tags == 2 && oom->tag_rest_bytes == 0);
	CHECK(oom->tags[0].bytes == 64 * MIB && oom->tags[0].tag && oom->tags[0].tag < oom->tag);
	CHECK(oom->tags[1].bytes == 2 * MIB && oom->tags[1].tag == 0);
	CHECK(last_event()->kind == GPUCACHE_EVENT_OOM && last_event()->tag == oom->tag);
}

TEST(a_failure_says_in_which_range_and_who_holds_by_range)
{
	world_run("memory:1GiB", "stacks:off,oom_report:never", failed);
}

static void too_many(void)
{
	world_start();
	for (int i = 0; i < 40; i++)
		push("in");
	CHECK(gpc_runtime.record.header->dropped_tags == 8);
}

TEST(ranges_without_room_are_counted_in_the_recording)
{
	world_run(NULL, NULL, too_many);
}

static void forked(void)
{
	const struct gpucache_append_head *head;
	int status = -1;
	pid_t pid;

	push("parent");
	world_start();
	head = recorded();
	CHECK(head->n_records == 1);
	pid = fork();
	if (pid == 0) {
		push("child");
		pop();
		pop();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	/* A child that the C library does not know of runs no handler of ours. */
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
	if (pid == 0) {
		push("child of clone");
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(head->n_records == 1 && gpc_runtime.record.header->dropped_tags == 0);
}

TEST(a_child_of_fork_writes_nothing_into_its_parents_recording)
{
	world_run(NULL, NULL, forked);
}

static void handles(void)
{
	uint32_t domain = gpc_runtime_tag_domain("net");
	uint32_t string = gpc_runtime_tag_string("forward");
	uint32_t level;

	CHECK(domain && string && domain != string);
	CHECK(strcmp(gpc_runtime_tag_name(string), "forward") == 0);
	CHECK(gpc_runtime_tag_push(domain, "net:forward") == 0);
	CHECK(!gpc_runtime_tag_pop(GPC_TAG_OF_NVTX, &level));
	CHECK(gpc_runtime_tag_pop(domain, &level) && level == 0);
	CHECK(gpc_runtime_wants_tags());
	setenv("GPUCACHE", "0", 1);
	CHECK(!gpc_runtime_wants_tags());
}

TEST(what_nvtx_asks_works_before_the_start)
{
	world_run(NULL, NULL, handles);
}
