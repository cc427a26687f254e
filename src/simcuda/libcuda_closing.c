/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: its line at the program's end, which tells where simulation and a real GPU may differ.
 *
 * Kernels do nothing.  A program behaves differently only if it reads a result and branches on it: a loop over a
 * tensor's values, the number of elements that a mask selects.  A copy of a few bytes to the host after a kernel
 * launch counts as such a read; the names of the functions on the stack tell what the program called.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "simcuda/face.h"

#define MAX_BYTES  64 /* a larger copy is no read of a result */
#define MAX_FRAMES 48

static const struct {
	const char *word;
	const char *name;
} steers[] = {
#define STEERS(word, name) { word, name },
#include "simcuda/steers.def"
};

#define N_STEERS (sizeof steers / sizeof steers[0])

static _Atomic uint64_t n_launches;
/* By row of steers.def; the last one counts unknown callers. */
static _Atomic uint64_t n_reads[N_STEERS + 1];

void face_note_launch(void)
{
	atomic_fetch_add_explicit(&n_launches, 1, memory_order_relaxed);
}

/* Rows with the same name share the counter of the first. */
static size_t first_of_name(size_t i)
{
	size_t first = 0;

	while (strcmp(steers[first].name, steers[i].name) != 0)
		first++;
	return first;
}

static size_t find_steer(void)
{
	void *frames[MAX_FRAMES];
	int n = backtrace(frames, MAX_FRAMES);

	for (int i = 0; i < n; i++) {
		Dl_info info;

		if (!dladdr(frames[i], &info) || !info.dli_sname)
			continue;
		for (size_t k = 0; k < N_STEERS; k++)
			if (strstr(info.dli_sname, steers[k].word))
				return first_of_name(k);
	}
	return N_STEERS;
}

void face_note_read(uint64_t bytes)
{
	if (bytes > MAX_BYTES || !atomic_load_explicit(&n_launches, memory_order_relaxed))
		return;
	atomic_fetch_add_explicit(&n_reads[find_steer()], 1, memory_order_relaxed);
}

/* The file name of the innermost caller that is neither this library nor gpucache. */
static const char *find_asker(void)
{
	void *frames[MAX_FRAMES];
	int n = backtrace(frames, MAX_FRAMES);
	Dl_info own = { 0 };

	/* Compares load addresses: a program may have opened this library under another name, libcuda.so. */
	(void)dladdr(&n_launches, &own);
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
		"(docs/simulated-gpu.md)\n",
		find_asker());
}

static void append(char *line, size_t room, const char *before, uint64_t n, const char *name)
{
	size_t at = strlen(line);

	snprintf(line + at, room - at, "%s%llu x %s", before, (unsigned long long)n, name);
}

void face_close(const struct gpc_sim *sim)
{
	uint64_t launches = atomic_load(&n_launches);
	char line[512] = "";

	if (!launches)
		return;
	for (size_t i = 0; i <= N_STEERS; i++)
		if (n_reads[i])
			append(line, sizeof line, *line ? ", " : "", n_reads[i],
				i < N_STEERS ? steers[i].name : "other small copies to the host");
	fprintf(stderr, "gpusim: kernels do nothing here: %llu were launched; %s%s%s\n",
		(unsigned long long)launches,
		*line ? "their results were read back by " : "no small result was read back", line,
		*line ? ": what the program decides by them may differ on a GPU" : "");
	if (sim->data.dropped)
		fprintf(stderr,
			"gpusim: %.1f GiB that were copied to the GPU were not kept%s; "
			"GPUSIM=data:full or keep:BYTES keeps more\n",
			(double)sim->data.dropped / (double)GPC_GIB,
			sim->data.dropped_was_read ? ", and some of them were read back" : "");
}
