/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver: its lines on stderr about what is not simulated, and at the program's end. */
#include <dlfcn.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "sim/libcuda/face.h"

#define MAX_FRAMES 48

/* The file name of the innermost caller that is neither this library nor gpucache. */
static const char *find_asker(void)
{
	void *frames[MAX_FRAMES];
	int n = backtrace(frames, MAX_FRAMES);
	static const char here;
	Dl_info own = { 0 };

	/* Compares load addresses: a program may have opened this library under another name, libcuda.so. */
	(void)dladdr(&here, &own);
	for (int i = 0; i < n; i++) {
		Dl_info info;

		if (dladdr(frames[i], &info) && info.dli_fname && info.dli_fbase != own.dli_fbase &&
			!strstr(info.dli_fname, "/libgpucache.so"))
			return info.dli_fname;
	}
	return "a library";
}

void face_note_export_table(void)
{
	static atomic_flag is_told = ATOMIC_FLAG_INIT;

	if (atomic_flag_test_and_set(&is_told))
		return;
	fprintf(stderr,
		"gpusim: %s asks for private tables of the driver, as NVIDIA's static CUDA runtime "
		"does: it cannot be simulated; link with --cudart=shared "
		"(docs/inside/SIMULATED-GPU.md)\n",
		find_asker());
}

void face_close(const struct gpc_sim *sim)
{
	face_reads_close();
	if (sim->data.dropped)
		fprintf(stderr,
			"gpusim: %.1f GiB that were copied to the GPU were not kept%s; "
			"GPUSIM=data:full or keep:BYTES keeps more\n",
			(double)sim->data.dropped / (double)GPC_GIB,
			sim->data.dropped_was_read ? ", and some of them were read back" : "");
}
