/* SPDX-License-Identifier: Apache-2.0 */
/* driver_cuda over fake functions of libcuda, which log their calls and fail on demand. */
#include "driver/sticky.h"
#include "tests/unit/driver/calls.h"

#define OURS   ((CUcontext)(uintptr_t)0x100)
#define THEIRS ((CUcontext)(uintptr_t)0x200)
#define EVENT  ((gpc_event)0x300)

/* The thread as libcuda sees it. */
static struct {
	CUcontext stack[4];
	unsigned depth;
	CUstreamCaptureMode mode;
} cuda;

static CUcontext current(void)
{
	return cuda.stack[cuda.depth - 1];
}

/* A call that needs our context and a relaxed mode. */
static CUresult called_inside(const char *name)
{
	assert_ptr_equal(current(), OURS);
	assert_int_equal(cuda.mode, CU_STREAM_CAPTURE_MODE_RELAXED);
	return called(name);
}

static CUresult get_current(CUcontext *ctx)
{
	CUresult result = called("get");

	if (!result)
		*ctx = current();
	return result;
}

static CUresult push(CUcontext ctx)
{
	CUresult result = called("push");

	if (!result)
		cuda.stack[cuda.depth++] = ctx;
	return result;
}

static CUresult pop(CUcontext *ctx)
{
	CUresult result = called("pop");

	assert_true(cuda.depth > 1);
	*ctx = cuda.stack[--cuda.depth];
	return result;
}

static CUresult exchange(CUstreamCaptureMode *mode)
{
	CUresult result = called("mode");
	CUstreamCaptureMode before = cuda.mode;

	if (!result) {
		cuda.mode = *mode;
		*mode = before;
	}
	return result;
}

static CUresult alloc(CUdeviceptr *ptr, size_t size)
{
	CUresult result = called_inside("alloc");

	if (!result)
		*ptr = (CUdeviceptr)(size << 20);
	return result;
}

static CUresult release(CUdeviceptr ptr)
{
	assert_int_equal(ptr, 0x500000);
	return called_inside("free");
}

#define BESIDE ((CUstream)(uintptr_t)0x600)

static CUresult create_stream(CUstream *stream, unsigned int flags)
{
	CUresult result = called_inside("stream");

	assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
	if (!result)
		*stream = BESIDE;
	return result;
}

static CUresult release_in_order(CUdeviceptr ptr, CUstream stream)
{
	assert_int_equal(ptr, 0x500000);
	assert_ptr_equal(stream, BESIDE);
	return called_inside("free_async");
}

static CUresult get_device(CUdevice *dev)
{
	*dev = 3;
	return called_inside("device");
}

static int has_pools;

static CUresult get_attribute(int *value, CUdevice_attribute attribute, CUdevice dev)
{
	assert_int_equal(attribute, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
	assert_int_equal(dev, 3);
	*value = has_pools;
	return called("attribute");
}

static CUresult get_info(size_t *available, size_t *total)
{
	CUresult result = called_inside("info");

	if (!result) {
		*available = 11;
		*total = 22;
	}
	return result;
}

static CUresult create(CUevent *event, unsigned int flags)
{
	CUresult result = called_inside("create");

	assert_int_equal(flags, 2); /* CU_EVENT_DISABLE_TIMING */
	if (!result)
		*event = (CUevent)(uintptr_t)EVENT;
	return result;
}

static CUresult destroy(CUevent event)
{
	assert_int_equal((uintptr_t)event, EVENT);
	return called("destroy");
}

static CUresult query(CUevent event)
{
	assert_int_equal((uintptr_t)event, EVENT);
	return called("query");
}

static CUresult synchronize_event(CUevent event)
{
	assert_int_equal((uintptr_t)event, EVENT);
	return called_inside("wait");
}

static CUresult synchronize(void)
{
	return called_inside("sync");
}

static CUresult record(CUevent event, CUstream stream)
{
	assert_int_equal((uintptr_t)event, EVENT);
	assert_int_equal((uintptr_t)stream, (uintptr_t)CU_STREAM_LEGACY);
	return called_inside("record");
}

static CUresult wait_event(CUstream stream, CUevent event, unsigned int flags)
{
	assert_int_equal((uintptr_t)event, EVENT);
	assert_int_equal((uintptr_t)stream, 0x77);
	assert_int_equal(flags, 0);
	return called_inside("stream_wait");
}

static CUresult record_context(CUcontext ctx, CUevent event)
{
	assert_ptr_equal(ctx, OURS);
	assert_int_equal((uintptr_t)event, EVENT);
	return called_inside("ctx_record");
}

static CUresult wait_context(CUcontext ctx, CUevent event)
{
	assert_ptr_equal(ctx, OURS);
	assert_int_equal((uintptr_t)event, EVENT);
	return called_inside("ctx_wait");
}

static struct gpc_cuda_fns fns;
static struct gpc_cuda_driver driver;
static struct gpc_driver *const drv = &driver.base;

static int start(void **state)
{
	memset(&cuda, 0, sizeof cuda);
	memset(&calls, 0, sizeof calls);
	cuda.stack[0] = OURS;
	cuda.depth = 1;
	has_pools = 1;
	fns = (struct gpc_cuda_fns){
		.cuCtxGetCurrent = get_current,
		.cuCtxPushCurrent_v2 = push,
		.cuCtxPopCurrent_v2 = pop,
		.cuCtxSynchronize = synchronize,
		.cuMemAlloc_v2 = alloc,
		.cuMemFree_v2 = release,
		.cuMemFreeAsync = release_in_order,
		.cuStreamCreate = create_stream,
		.cuCtxGetDevice = get_device,
		.cuDeviceGetAttribute = get_attribute,
		.cuMemGetInfo_v2 = get_info,
		.cuEventCreate = create,
		.cuEventDestroy_v2 = destroy,
		.cuEventQuery = query,
		.cuEventSynchronize = synchronize_event,
		.cuEventRecord = record,
		.cuStreamWaitEvent = wait_event,
		.cuThreadExchangeStreamCaptureMode = exchange,
		.cuCtxRecordEvent = record_context,
		.cuCtxWaitEvent = wait_context,
	};
	gpc_cuda_driver_init(&driver, &fns, OURS);
	return 0;
}

/* The thread is as the program left it. */
static int stop(void **state)
{
	assert_int_equal(cuda.depth, 1);
	assert_int_equal(cuda.mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
	return 0;
}

FIXTURE(start, stop);

TEST(in_its_own_context_nothing_is_pushed)
{
	gpc_devptr ptr = 0;

	assert_int_equal(drv->ops->mem_alloc(drv, 5, &ptr), GPC_OK);
	assert_int_equal(ptr, 0x500000);
	assert_string_equal(calls.log, "get mode alloc mode ");
}

TEST(in_another_context_its_own_is_pushed_and_popped)
{
	cuda.stack[0] = THEIRS;
	assert_int_equal(drv->ops->mem_free(drv, 0x500000), GPC_OK);
	assert_string_equal(calls.log, "get push mode free mode pop ");
	assert_ptr_equal(current(), THEIRS);
}

TEST(without_any_context_its_own_is_pushed_and_popped)
{
	cuda.stack[0] = NULL;
	assert_int_equal(drv->ops->context_sync(drv), GPC_OK);
	assert_string_equal(calls.log, "get push mode sync mode pop ");
	assert_null(current());
}

TEST(the_programs_capture_mode_is_put_back)
{
	cuda.mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
	assert_int_equal(drv->ops->mem_free(drv, 0x500000), GPC_OK);
	assert_int_equal(cuda.mode, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	cuda.mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
}

TEST(a_failed_call_puts_everything_back_and_writes_nothing)
{
	gpc_devptr ptr = 77;

	cuda.stack[0] = THEIRS;
	calls.failing = "alloc";
	calls.code = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(drv->ops->mem_alloc(drv, 5, &ptr), GPC_DEVICE_NO_MEMORY);
	assert_int_equal(ptr, 77);
	assert_string_equal(calls.log, "get push mode alloc mode pop ");
	assert_ptr_equal(current(), THEIRS);
}

TEST(a_driver_that_is_shut_down_is_not_called_again)
{
	uint64_t available = 77;
	uint64_t total = 78;

	calls.failing = "get";
	calls.code = CUDA_ERROR_DEINITIALIZED;
	assert_int_equal(drv->ops->mem_info(drv, &available, &total),
		gpc_status_from_device(CUDA_ERROR_DEINITIALIZED));
	assert_int_equal(available, 77);
	assert_int_equal(total, 78);
	assert_string_equal(calls.log, "get ");
}

TEST(a_context_that_cannot_be_pushed_is_not_popped)
{
	gpc_event event = 77;

	cuda.stack[0] = THEIRS;
	calls.failing = "push";
	calls.code = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	assert_int_equal(drv->ops->event_create(drv, &event),
		gpc_status_from_device(CUDA_ERROR_CONTEXT_IS_DESTROYED));
	assert_int_equal(event, 77);
	assert_string_equal(calls.log, "get push ");
}

TEST(every_op_calls_the_function_it_is_named_after)
{
	uint64_t available = 0;
	uint64_t total = 0;
	gpc_event event = 0;

	assert_int_equal(drv->ops->mem_info(drv, &available, &total), GPC_OK);
	assert_int_equal(available, 11);
	assert_int_equal(total, 22);
	assert_int_equal(drv->ops->event_create(drv, &event), GPC_OK);
	assert_int_equal(event, EVENT);
	assert_int_equal(drv->ops->fence_record(drv, event), GPC_OK);
	assert_int_equal(drv->ops->fence_wait(drv, event), GPC_OK);
	assert_int_equal(drv->ops->event_wait(drv, event), GPC_OK);
	assert_int_equal(drv->ops->legacy_record(drv, event), GPC_OK);
	assert_int_equal(drv->ops->stream_wait(drv, 0x77, event), GPC_OK);
	drv->ops->event_destroy(drv, event);
	assert_string_equal(calls.log,
		"get mode info mode get mode create mode get mode ctx_record mode "
		"get mode ctx_wait mode get mode wait mode get mode record mode "
		"get mode stream_wait mode destroy ");
}

TEST(memory_is_freed_beside_work_in_a_stream_of_our_own)
{
	cuda.stack[0] = THEIRS;
	assert_int_equal(drv->ops->prepare_beside(drv), GPC_OK);
	assert_int_equal(drv->ops->prepare_beside(drv), GPC_OK); /* the stream is there */
	assert_int_equal(drv->ops->mem_free_beside(drv, 0x500000), GPC_OK);
	assert_string_equal(calls.log,
		"get push mode device mode pop attribute "
		"get push mode stream mode pop "
		"get push mode free_async mode pop ");
}

TEST(a_driver_that_cannot_free_beside_work_says_so)
{
	has_pools = 0;
	assert_int_equal(drv->ops->prepare_beside(drv), GPC_UNSUPPORTED);
	has_pools = 1;
	calls.failing = "attribute";
	calls.code = CUDA_ERROR_INVALID_VALUE;
	assert_int_equal(drv->ops->prepare_beside(drv), GPC_UNSUPPORTED);
	calls.failing = "stream";
	calls.code = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(drv->ops->prepare_beside(drv), GPC_DEVICE_NO_MEMORY);
	fns.cuMemFreeAsync = NULL;
	assert_int_equal(drv->ops->prepare_beside(drv), GPC_UNSUPPORTED);
}

TEST(every_op_carries_the_drivers_code)
{
	static const char *const names[] = { "alloc", "free", "info", "create", "ctx_record",
		"ctx_wait", "query", "wait", "sync", "record", "stream_wait" };
	enum gpc_status expected = gpc_status_from_device(CUDA_ERROR_ILLEGAL_ADDRESS);

	calls.code = CUDA_ERROR_ILLEGAL_ADDRESS;
	for (size_t i = 0; i < N_OF(names); i++) {
		uint64_t out = 0;
		enum gpc_status got[] = {
			drv->ops->mem_alloc(drv, 5, &out),
			drv->ops->mem_free(drv, 0x500000),
			drv->ops->mem_info(drv, &out, &out),
			drv->ops->event_create(drv, &out),
			drv->ops->fence_record(drv, EVENT),
			drv->ops->fence_wait(drv, EVENT),
			drv->ops->event_query(drv, EVENT),
			drv->ops->event_wait(drv, EVENT),
			drv->ops->context_sync(drv),
			drv->ops->legacy_record(drv, EVENT),
			drv->ops->stream_wait(drv, 0x77, EVENT),
		};

		for (size_t k = 0; k < N_OF(got) && i > 0; k++)
			assert_int_equal(got[k], k == i - 1 ? expected : GPC_OK);
		/* And remembers it, for those who answer without asking. */
		assert_int_equal(driver.sticky, i > 0 ? CUDA_ERROR_ILLEGAL_ADDRESS : 0);
		driver.sticky = 0;
		calls.failing = names[i];
		calls.log[0] = '\0';
	}
	calls.failing = NULL;
}

TEST(only_errors_after_which_a_context_is_lost_are_sticky)
{
	static const int sticky[] = { 214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719,
		721, 810, 911 };
	size_t n_sticky = 0;

	for (int code = 0; code < 1000; code++) {
		bool is_listed = n_sticky < N_OF(sticky) && sticky[n_sticky] == code;

		assert_int_equal(gpc_cuda_is_sticky((CUresult)code), is_listed);
		n_sticky += is_listed;
	}
	assert_int_equal(n_sticky, N_OF(sticky));
}

TEST(only_the_first_error_that_breaks_a_context_is_remembered)
{
	gpc_cuda_driver_note(&driver, CUDA_SUCCESS);
	gpc_cuda_driver_note(&driver, CUDA_ERROR_NOT_READY);
	gpc_cuda_driver_note(&driver, CUDA_ERROR_OUT_OF_MEMORY);
	gpc_cuda_driver_note(&driver, CUDA_ERROR_CONTEXT_IS_DESTROYED);
	assert_int_equal(driver.sticky, 0);
	gpc_cuda_driver_note(&driver, CUDA_ERROR_LAUNCH_FAILED);
	gpc_cuda_driver_note(&driver, CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(driver.sticky, CUDA_ERROR_LAUNCH_FAILED);
}

TEST(an_unfinished_event_is_not_ready_and_not_an_error)
{
	calls.failing = "query";
	calls.code = CUDA_ERROR_NOT_READY;
	assert_int_equal(drv->ops->event_query(drv, EVENT), GPC_DEVICE_NOT_READY);
}

TEST(a_refused_record_is_unsupported)
{
	calls.failing = "ctx_record";
	calls.code = CUDA_ERROR_NOT_SUPPORTED;
	assert_int_equal(drv->ops->fence_record(drv, EVENT), GPC_UNSUPPORTED);
	calls.failing = "ctx_wait";
	assert_int_equal(drv->ops->fence_wait(drv, EVENT), GPC_UNSUPPORTED);
}

TEST(a_driver_without_context_events_is_unsupported)
{
	fns.cuCtxRecordEvent = NULL;
	fns.cuCtxWaitEvent = NULL;
	assert_int_equal(drv->ops->fence_record(drv, EVENT), GPC_UNSUPPORTED);
	assert_int_equal(drv->ops->fence_wait(drv, EVENT), GPC_UNSUPPORTED);
	assert_string_equal(calls.log, "");
}

TEST(the_clock_goes_forward)
{
	uint64_t before = drv->ops->now_ns(drv);

	assert_true(before > 0);
	assert_true(drv->ops->now_ns(drv) >= before);
}
