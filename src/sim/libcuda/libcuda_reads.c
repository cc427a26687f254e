/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: results that no kernel computed, and what is said of them.
 *
 * Kernels do nothing.  A program behaves differently only if it reads a result and branches on it: a loop over a
 * tensor's values, the number of elements that a mask selects.  A copy of a few bytes to the host counts as such a read
 * if a kernel was launched after the last copy or fill that wrote them.  Reads are counted by site: the Python
 * lines of a stack, or its native frames where it has none, and the row of steers.def that tells what was called there.
 * With Python, native frames do not count: the interpreter's own change while it warms up.
 *
 *      the first that is a size (nonzero)         a line on stderr, at once, because it goes into shapes
 *      MANY_READS, and memory stays as it is      a line on stderr: a loop that waits for a result never ends
 *      any                                        counted in the line at the program's end
 *
 * GPUSIM=reads: has them read as a number instead of what is in memory.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "model/python_lines.h"
#include "sim/libcuda/face.h"
#include "stack/named.h"

#define MANY_READS 1000
#define MAX_FRAMES 48
#define MAX_STACKS 4096
#define MAX_LINES  16 /* on stderr */
#define MAX_WRITES 64

static const struct {
	const char *word;
	const char *name;
	bool is_size;
} steers[] = {
#define STEERS(word, name) { word, name, false },
#define SIZES(word, name)  { word, name, true },
#include "sim/libcuda/steers.def"
};

#define N_STEERS (sizeof steers / sizeof steers[0])

struct site {
	uint64_t key;
	size_t steer; /* N_STEERS: an unknown caller */
	uint64_t n_reads;
	uint64_t n_alike; /* the last reads, during which the devices had `used` bytes in use */
	uint64_t used;
	bool is_told;
};

/* A copy to the device, or a fill, after so many launches of kernels and graphs. */
struct write {
	uint64_t ptr, size;
	uint64_t after;
};

static _Atomic uint64_t n_kernels, n_graphs;
static struct gpc_stacks stacks;
static bool has_stacks;

/* Lock: lock. */
static struct site sites[1 + MAX_STACKS + N_STEERS + 1]; /* [0] is not used */
static uint16_t n_sites;
static uint16_t
	site_of[MAX_STACKS + 1]; /* by the id of the stack; 0: not looked up yet, or stack 0 */
static struct write writes[MAX_WRITES];
static size_t n_writes;
static uint64_t
	n_reads[N_STEERS + 1]; /* by row of steers.def; the last one counts unknown callers */
static unsigned n_lines;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void face_note_launch(void)
{
	atomic_fetch_add_explicit(&n_kernels, 1, memory_order_relaxed);
}

void face_note_graph(void)
{
	atomic_fetch_add_explicit(&n_graphs, 1, memory_order_relaxed);
}

void face_note_write(uint64_t ptr, uint64_t size)
{
	pthread_mutex_lock(&lock);
	writes[n_writes++ % MAX_WRITES] = (struct write){
		.ptr = ptr, .size = size, .after = atomic_load(&n_kernels) + atomic_load(&n_graphs)
	};
	pthread_mutex_unlock(&lock);
}

bool face_is_known(uint64_t ptr, uint64_t size)
{
	uint64_t now = atomic_load(&n_kernels) + atomic_load(&n_graphs);
	bool is_known = !atomic_load(&n_kernels);

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < MAX_WRITES && !is_known; i++)
		is_known = writes[i].after == now && ptr >= writes[i].ptr &&
			   size <= writes[i].size && ptr - writes[i].ptr <= writes[i].size - size;
	pthread_mutex_unlock(&lock);
	return is_known;
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

static bool is_size(size_t steer)
{
	return steer < N_STEERS && steers[steer].is_size && !face_sim()->config.is_answered;
}

static const char *name_of(size_t steer)
{
	return steer < N_STEERS ? steers[steer].name : "small copies to the host";
}

static bool keep(void *self, enum gpucache_region_kind region, const void *record, uint32_t size)
{
	return true;
}

static void start(void)
{
	const struct gpc_stacks_params params = {
		.sink = { .append = keep },
		.lookup_in = dlsym,
		.max_stacks = MAX_STACKS,
		.with_python = true,
	};

	has_stacks = gpc_stacks_init(&stacks, &params) == GPC_OK;
	/* The first capture only looks for Python. */
	if (has_stacks)
		(void)gpc_stack_capture(&stacks, 0);
}

static uint64_t mix(uint64_t key, uint64_t more)
{
	return (key ^ more) * UINT64_C(0x9e3779b97f4a7c15);
}

/* A Python frame as code object and line: a loop's condition is compiled twice, and has two offsets. */
static uint64_t line_of(uint64_t frame)
{
	uint32_t number = GPUCACHE_FRAME_CODE(frame);
	struct gpc_code code;

	if (!gpc_codes_get(&stacks.codes, number, &code))
		return frame;
	return (uint64_t)number << 32 |
	       gpc_python_line(code.python_version, code.lines, code.lines_size, code.first_line,
		       GPUCACHE_FRAME_OFFSET(frame));
}

/* Stack 0 is any that could not be captured. */
static uint64_t key_of(uint32_t stack, size_t steer)
{
	struct gpc_raw_stack frames = { .frames = NULL };
	uint64_t key = steer + 1;

	if (!has_stacks || !gpc_depot_find(&stacks.depot, stack, &frames))
		return key;
	for (uint32_t i = 0; i < frames.n_python; i++)
		key = mix(key, line_of(frames.frames[frames.n_native + i]));
	for (uint32_t i = 0; i < frames.n_native && !frames.n_python; i++)
		key = mix(key, frames.frames[i]);
	return key;
}

static uint64_t bytes_in_use(void)
{
	struct gpc_sim *sim = face_sim();
	uint64_t used = 0;

	for (unsigned i = 0; i < sim->config.n_devices; i++)
		used += gpc_sim_device_used_bytes(&sim->devices[i]);
	return used;
}

static struct site *find_site(uint32_t stack)
{
	uint16_t i;

	pthread_mutex_lock(&lock);
	i = site_of[stack];
	pthread_mutex_unlock(&lock);
	if (i)
		return &sites[i];
	size_t steer = find_steer();
	uint64_t key = key_of(stack, steer);
	pthread_mutex_lock(&lock);
	for (i = 1; i <= n_sites && sites[i].key != key; i++)
		;
	if (i > n_sites)
		sites[n_sites = i] = (struct site){ .key = key, .steer = steer };
	site_of[stack] = stack ? i : 0;
	pthread_mutex_unlock(&lock);
	return &sites[i];
}

/* Adds a read to those of the stack.  Returns the site, and whether something is to be told of it. */
static struct site count(uint32_t stack, bool *ret_tells)
{
	struct site *site = find_site(stack);
	uint64_t used = bytes_in_use();

	pthread_mutex_lock(&lock);
	site->n_alike = site->used == used ? site->n_alike + 1 : 1;
	site->used = used;
	site->n_reads++;
	n_reads[site->steer]++;
	*ret_tells = stack && !site->is_told && n_lines < MAX_LINES &&
		     (is_size(site->steer) || site->n_alike == MANY_READS);
	site->is_told |= *ret_tells;
	n_lines += *ret_tells;
	struct site seen = *site;
	pthread_mutex_unlock(&lock);
	return seen;
}

static void tell(uint32_t stack, const struct site *site)
{
	char line[192] = "?";

	(void)gpc_stack_describe(&stacks, stack, line, sizeof line);
	if (is_size(site->steer))
		fprintf(stderr,
			"gpusim: %s: %s of a count that no kernel computed: sizes and shapes are "
			"by chance; --sim-options reads:zero or reads:one sets it "
			"(docs/inside/SIMULATED-GPU.md)\n",
			line, name_of(site->steer));
	else
		fprintf(stderr,
			"gpusim: %s: read %u results by %s that no kernel computed, and memory did "
			"not change: a loop that waits for one may never end; --sim-options "
			"reads:zero, reads:one or reads:one/N sets them "
			"(docs/inside/SIMULATED-GPU.md)\n",
			line, MANY_READS, name_of(site->steer));
}

bool face_note_read(uint64_t ptr, uint64_t size, char *ret_answer)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct gpc_sim_config *config = &face_sim()->config;
	uint64_t unit = size & (~size + 1);
	bool tells;

	if (size > FACE_MAX_READ || face_is_known(ptr, size))
		return false;
	pthread_once(&once, start);
	uint32_t stack = has_stacks ? gpc_stack_capture(&stacks, 1) : 0;
	struct site site = count(stack, &tells);
	if (tells)
		tell(stack, &site);
	memset(ret_answer, 0, size);
	if (config->one_every && site.n_reads % config->one_every == 0)
		for (uint64_t at = 0; at < size; at += unit < 8 ? unit : 8)
			ret_answer[at] = 1;
	return config->is_answered;
}

static void append(char *line, size_t room, const char *before, uint64_t n, const char *name)
{
	size_t at = strlen(line);

	snprintf(line + at, room - at, "%s%llu x %s", before, (unsigned long long)n, name);
}

void face_reads_close(void)
{
	uint64_t launches = atomic_load(&n_kernels);
	char line[512] = "";

	if (!launches)
		return;
	for (size_t i = 0; i <= N_STEERS; i++)
		if (n_reads[i])
			append(line, sizeof line, *line ? ", " : "", n_reads[i],
				i < N_STEERS ? name_of(i) : "other small copies to the host");
	fprintf(stderr, "gpusim: kernels do nothing here: %llu were launched; %s%s%s\n",
		(unsigned long long)launches,
		*line ? "their results were read back by " : "no small result was read back", line,
		*line ? ": what the program decides by them may differ on a GPU" : "");
}
