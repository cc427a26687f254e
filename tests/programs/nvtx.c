/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that marks what it does by NVTX, and knows nothing of gpucache: ranges of both kinds of
 * domains, of every kind of text, overlapping, numbered, and in two threads.  It keeps what it
 * allocates, and prints the levels that NVTX gave it, -2 where no tool listens.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#define MIB ((size_t)1 << 20)

static void keep(size_t size)
{
	void *memory;

	if (cudaMalloc(&memory, size) != cudaSuccess) {
		fprintf(stderr, "cudaMalloc of %zu bytes failed\n", size);
		exit(1);
	}
}

static nvtxEventAttributes_t attributes(void)
{
	nvtxEventAttributes_t attributes;

	memset(&attributes, 0, sizeof attributes);
	attributes.version = NVTX_VERSION;
	attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	return attributes;
}

/* "net:forward" begins inside "train" and ends behind it.  What XLA marks is no range of the program. */
static void overlap(void)
{
	nvtxDomainHandle_t net = nvtxDomainCreateA("net");
	nvtxDomainHandle_t xla = nvtxDomainCreateA("TSL");
	nvtxEventAttributes_t forward = attributes();
	nvtxEventAttributes_t pass = attributes();

	forward.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	forward.message.registered = nvtxDomainRegisterStringA(net, "forward");
	pass.messageType = NVTX_MESSAGE_TYPE_ASCII;
	pass.message.ascii = "XlaPass:#name=dce,module=jit_step,program_id=7#";
	printf("levels: %d", nvtxRangePushA("train"));
	nvtxDomainRangePushEx(xla, &pass);
	keep(8 * MIB);
	nvtxDomainRangePop(xla);
	printf(" %d", nvtxDomainRangePushEx(net, &forward));
	keep(16 * MIB);
	printf(" %d", nvtxRangePop());
	keep(4 * MIB);
	printf(" %d", nvtxDomainRangePop(net));
	keep(2 * MIB);
	printf(" %d\n", nvtxRangePop());
}

static void count_steps(void)
{
	nvtxEventAttributes_t step = attributes();
	char name[32];

	for (int i = 1; i <= 100; i++) {
		snprintf(name, sizeof name, "step %d", i);
		step.messageType = NVTX_MESSAGE_TYPE_ASCII;
		step.message.ascii = name;
		nvtxRangePushEx(&step);
		keep(MIB);
		nvtxRangePop();
	}
}

static void *work(void *arg)
{
	keep(64 * MIB);
	return arg;
}

static void speak_german(void)
{
	nvtxEventAttributes_t inner = attributes();
	pthread_t thread;

	nvtxRangePushW(L"gr\u00f6\u00dfe");
	inner.messageType = NVTX_MESSAGE_TYPE_UNICODE;
	inner.message.unicode = L"\u2264 \U0001f642";
	nvtxRangePushEx(&inner);
	keep(32 * MIB);
	nvtxRangePop();
	if (pthread_create(&thread, NULL, work, NULL) == 0)
		pthread_join(thread, NULL);
	nvtxRangePop();
}

int main(void)
{
	overlap();
	count_steps();
	speak_german();
	return 0;
}
