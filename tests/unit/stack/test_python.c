/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python frames against real interpreters.
 *
 * Every CPython 3.9 and later that has a shared library and is in a folder of GPUCACHE_TEST_PYTHONS,
 * on PATH or under pyenv is embedded in a child of its own.  The program below calls back into this test through ctypes, with what Python
 * itself says of its frames.
 */
#include "unit.h"

#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/python_lines.h"
#include "stack/python.h"
#include "stack/sink_box.h"

#define MAX_FRAMES  100
#define MAX_PYTHONS 16

/* ISO C has no cast from a function to void *; POSIX promises that it works. */
#define ADDRESS(function) ((void *)(uintptr_t) & (function))

static const char program[] =
	"import ctypes, sys, threading\n"
	"C = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(PROBE)\n"  /* lets the GIL go */
	"P = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(PROBE)\n" /* keeps it */
	"CUT = ctypes.CFUNCTYPE(ctypes.c_int)(CUT)\n"
	"WRONG = ctypes.CFUNCTYPE(ctypes.c_int)(WRONG)\n"
	"ENTRIES = ctypes.CFUNCTYPE(ctypes.c_int)(ENTRIES)\n"
	"def frames():\n"
	"    out = []\n"
	"    f = sys._getframe(2)\n"
	"    while f:\n"
	"        c = f.f_code\n"
	"        out.append('%s:%d:%s\\n' % (c.co_filename, f.f_lineno,\n"
	"                   getattr(c, 'co_qualname', c.co_name)))\n"
	"        f = f.f_back\n"
	"    return ''.join(out[:99]).encode()\n"
	"def call(what=C):\n"
	"    if what(frames()) != 0: raise SystemExit(3)\n"
	"    if P(frames()) != 0: raise SystemExit(4)\n"
	"    return 1\n"
	"class Net:\n"
	"    def grow(self):\n"
	"        return (call(\n"
	"            C) +\n"
	"            call(P))\n"
	"    @property\n"
	"    def size(self): return self.grow()\n"
	"class Made:\n"
	"    def __init__(self): self.part = [call() for _ in range(2)]\n"
	"def make():\n"
	"    for _ in range(60): Made()\n" /* long enough to be specialised */
	"def generate():\n"
	"    yield call()\n"
	"    for i in range(3):\n"
	"        yield call()\n"
	"def delegate():\n"
	"    yield from generate()\n"
	"def recurse(n):\n"
	"    return call() if n == 0 else recurse(n - 1)\n"
	"def handler():\n"
	"    try:\n"
	"        raise ValueError\n"
	"    except ValueError:\n"
	"        return call()\n"
	"    finally:\n"
	"        call()\n"
	"async def inner(): return call()\n"
	"async def outer(): return await inner()\n"
	"def run(co):\n"
	"    try: co.send(None)\n"
	"    except StopIteration: pass\n"
	"call()\n"
	"Net().grow(); Net().size; make()\n"
	"list(generate()); list(delegate())\n"
	"[call() for _ in range(3)]; {call(): call()}\n"
	"(lambda: call())()\n"
	"list(map(lambda x: call(), [1, 2]))\n"
	"sorted([2, 1], key=lambda x: call())\n"
	"handler(); run(outer())\n"
	"recurse(40); recurse(300)\n"
	"source = ('\\n' * 700) + 'def gr\\u00f6\\u00dfe():\\n    x = 1\\n\\n    return "
	"call()\\ngr\\u00f6\\u00dfe()\\n'\n"
	"for name in ['m\\u00f6dul.py', '\\u65e5\\u672c.py', '\\U0001f600.py', 'plain.py']:\n"
	"    exec(compile(source, name, 'exec'), dict(call=call))\n"
	"for i in range(300):\n" /* code objects that die and whose memory is used again */
	"    exec(compile('\\n' * (i % 7) + 'def f%d(): call()\\nf%d()' % (i, i), 'e%d.py' % i, "
	"'exec'), dict(call=call))\n"
	"exec(compile('x = 1\\n' * 3000 + 'call()', 'long.py', 'exec'), dict(call=call))\n"
	"def work():\n"
	"    for i in range(50): recurse(i % 9); Net().grow(); list(delegate())\n"
	"ts = [threading.Thread(target=work) for _ in range(4)]\n"
	"[t.start() for t in ts]; [t.join() for t in ts]\n"
	"def deep(n): return CUT() if n == 0 else deep(n - 1)\n"
	"assert deep(30) == 0\n"
	"def other(n): return WRONG() if n == 0 else other(n - 1)\n"
	"assert other(9) == 0\n"
	"def entry(): return ENTRIES()\n"
	"def plain(): return entry()\n"
	"mask = list(map(lambda x: plain(), [1]))[0]\n" /* entry, plain, lambda from C, module from C */
	"assert mask == (0b1111 if sys.version_info < (3, 11) else 0b1100), bin(mask)\n";

static struct sink_box box;
static struct gpc_codes codes;
static struct gpc_python python;
static _Atomic unsigned n_probes;

/* The frames behind the first one, as the program writes them. */
static size_t render(const uint64_t *frames, uint32_t n, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (uint32_t i = 1; i < n; i++) {
		struct gpc_code code;
		uint32_t line;
		int wrote;

		if (!gpc_codes_get(&codes, GPUCACHE_FRAME_CODE(frames[i]), &code))
			return 0;
		line = gpc_python_line(code.python_version, code.lines, code.lines_size,
			code.first_line, GPUCACHE_FRAME_OFFSET(frames[i]));
		wrote = snprintf(buf + used, size - used, "%.*s:%u:%.*s\n", (int)code.file_size,
			code.file, line, (int)code.name_size, code.name);
		if (wrote < 0 || (size_t)wrote >= size - used)
			return 0;
		used += (size_t)wrote;
	}
	return used;
}

/* Trails of earlier probes, each with what Python said then. */
#define N_TRAILS 64

static struct {
	pthread_mutex_t lock;
	struct gpc_python_trail trails[N_TRAILS];
	char *said[N_TRAILS];
	unsigned n_kept;
	unsigned n_followed;
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Whoever follows a trail has the frames that Python shows now.  Returns false if one has others. */
static bool follow_trails(const char *expected)
{
	struct gpc_python no_codes = python;
	struct gpc_python_top top;
	bool is_right = gpc_python_find_top(&python, &top);
	unsigned at;

	no_codes.types.code++;
	pthread_mutex_lock(&kept.lock);
	for (unsigned i = 0; i < N_TRAILS && is_right; i++) {
		if (!kept.said[i] || !gpc_python_follows(&python, &top, &kept.trails[i]))
			continue;
		kept.n_followed++;
		/* Nor does anybody follow where no code object is. */
		is_right = !strcmp(kept.said[i], expected) &&
			   !gpc_python_follows(&no_codes, &top, &kept.trails[i]);
	}
	at = kept.n_kept % N_TRAILS;
	free(kept.said[at]);
	kept.said[at] = NULL;
	if (gpc_python_trace(&python, &top, MAX_FRAMES, &kept.trails[at])) {
		kept.said[at] = strdup(expected);
		kept.n_kept++;
	}
	pthread_mutex_unlock(&kept.lock);
	return is_right;
}

static int probe(const char *expected)
{
	uint64_t frames[MAX_FRAMES];
	char buf[16384];
	uint32_t flags = 0;
	uint32_t n = gpc_python_capture(&python, frames, MAX_FRAMES, &flags);

	n_probes++;
	render(frames, n, buf, sizeof(buf));
	if (strcmp(buf, expected) != 0 || (flags & GPUCACHE_STACK_NO_PYTHON)) {
		fprintf(stderr, "flags %x, expected\n%sbut got %u\n%s", flags, expected, n, buf);
		return 1;
	}
	if (!follow_trails(expected)) {
		fprintf(stderr, "a trail of other frames is followed by\n%s", expected);
		return 1;
	}
	return 0;
}

static int probe_cut(void)
{
	uint64_t frames[11] = { [10] = 77 };
	uint32_t flags = 0;
	uint32_t n = gpc_python_capture(&python, frames, 10, &flags);

	return n == 10 && flags == GPUCACHE_STACK_CUT && frames[10] == 77 ? 0 : 1;
}

/* Bit i: frame i was entered from C. */
static int probe_entries(void)
{
	uint64_t frames[MAX_FRAMES];
	uint32_t flags = 0;
	uint32_t n = gpc_python_capture(&python, frames, MAX_FRAMES, &flags);
	int mask = 0;

	for (uint32_t i = 0; i < n; i++)
		mask |= (frames[i] & GPUCACHE_FRAME_FROM_C ? 1 : 0) << i;
	return mask;
}

static const char *false_version;

static const char *say_false_version(void)
{
	return false_version;
}

static void *find_false_version(void *handle, const char *name)
{
	return strcmp(name, "Py_GetVersion") ? dlsym(handle, name) : ADDRESS(say_false_version);
}

/* A release whose strings lie otherwise is met in the trial: here, this one after a wrong guess. */
static bool trial_finds_the_other_strings(void)
{
	struct gpc_python other = python;
	uint64_t frames[8];
	uint32_t flags = 0;

	other.layout.other_kind_shift = other.layout.kind_shift;
	other.layout.kind_shift = 16;
	other.state = GPC_PYTHON_TRIAL;
	return gpc_python_capture(&other, frames, 8, &flags) == 8 &&
	       other.state == GPC_PYTHON_READY && !(flags & GPUCACHE_STACK_NO_PYTHON);
}

/* Layouts of other versions must not get through the trial, and must not fault. */
static int probe_wrong(void)
{
	static const char *const versions[] = { "3.8.0", "3.9.0", "3.10.0", "3.11.0", "3.12.0",
		"3.13.0", "3.14.0" };
	unsigned own = python.layout.version & 0xff;

	if (!trial_finds_the_other_strings())
		return 1;
	for (unsigned i = 0; i < N_OF(versions); i++) {
		unsigned minor = 8 + i;
		struct gpc_python wrong;
		uint64_t frames[8];
		uint32_t flags = 0;
		uint32_t n;

		/* 3.9 and 3.10 differ in one number only, which no type pointer guards. */
		if (minor == own || (minor <= 10 && minor >= 9 && own <= 10))
			continue;
		false_version = versions[i];
		gpc_python_init(&wrong, true, &codes, find_false_version);
		for (int again = 0; again < 3; again++) {
			flags = 0;
			n = gpc_python_capture(&wrong, frames, 8, &flags);
			if (n || wrong.state == GPC_PYTHON_READY) {
				fprintf(stderr, "%s was taken for right: %u frames, flags %x\n",
					versions[i], n, flags);
				return 1;
			}
		}
	}
	return 0;
}

static void *capture_outside_python(void *arg)
{
	uint64_t frames[8];
	uint32_t flags = 0;

	return gpc_python_capture(&python, frames, 8, &flags) || flags ? &python : NULL;
}

static void *another_interpreter(void)
{
	return &box;
}

/* Each interpreter has its own numbers for code objects: they must not be compared from the first look on. */
static bool top_sees_others(void)
{
	struct gpc_python other = python;
	struct gpc_python_top top;

	other.get_first_interpreter = another_interpreter;
	(void)gpc_python_find_top(&other, &top);
	return !python.has_seen_others && other.has_seen_others;
}

static void say_address(char *text, size_t size, const char *name, void *function)
{
	size_t used = strlen(text);

	snprintf(text + used, size - used, "%s = %p\n", name, function);
}

#define NO_LIBRARY 12 /* an exit code of embed() */

/* The life of one child: 0 if all is well. */
static int embed(const char *library, const char *home)
{
	struct gpc_stack_sink sink = sink_box_sink(&box);
	int (*run)(const char *);
	void (*initialize)(int);
	int (*finalize)(void);
	char prefix[512] = "";
	uint64_t frames[8];
	uint32_t flags = 0;
	pthread_t thread;
	void *wrong;

	setenv("PYTHONHOME", home, 1);
	setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
	if (gpc_codes_init(&codes, &sink) != GPC_OK)
		return 10;
	gpc_python_init(&python, true, &codes, dlsym);
	/* No Python yet. */
	if (gpc_python_capture(&python, frames, 8, &flags) || flags)
		return 11;
	if (!dlopen(library, RTLD_NOW | RTLD_GLOBAL))
		return NO_LIBRARY;
	*(void **)&initialize = dlsym(RTLD_DEFAULT, "Py_InitializeEx");
	*(void **)&run = dlsym(RTLD_DEFAULT, "PyRun_SimpleString");
	*(void **)&finalize = dlsym(RTLD_DEFAULT, "Py_FinalizeEx");
	initialize(0);
	/* Found on one of the next captures; no frames run yet. */
	for (int i = 0; i < 8; i++)
		if (gpc_python_capture(&python, frames, 8, &flags) || flags)
			return 13;
	say_address(prefix, sizeof(prefix), "PROBE", ADDRESS(probe));
	say_address(prefix, sizeof(prefix), "CUT", ADDRESS(probe_cut));
	say_address(prefix, sizeof(prefix), "WRONG", ADDRESS(probe_wrong));
	say_address(prefix, sizeof(prefix), "ENTRIES", ADDRESS(probe_entries));
	if (run(prefix) != 0 || run(program) != 0)
		return 14;
	if (n_probes < 3000 || kept.n_followed < 100)
		return 15;
	if (!top_sees_others())
		return 18;
	if (pthread_create(&thread, NULL, capture_outside_python, NULL) ||
		pthread_join(thread, &wrong) || wrong)
		return 16;
	finalize();
	return gpc_python_capture(&python, frames, 8, &flags) ? 17 : 0;
}

static char pythons[MAX_PYTHONS][2][512];
static unsigned n_pythons;

/* Remembers the shared library and home of an interpreter, once. */
static void ask(const char *interpreter)
{
	static const char question[] =
		"import os, sys, sysconfig as s\n"
		"so = s.get_config_var('INSTSONAME') or ''\n"
		"path = os.path.join(s.get_config_var('LIBDIR') or '', so)\n"
		"print(path if os.path.exists(path) else so)\n"
		"print(sys.base_prefix)\n";
	char command[1024], library[512] = "", home[512] = "";
	FILE *answer;

	snprintf(command, sizeof(command), "'%s' -c \"%s\" 2>/dev/null", interpreter, question);
	answer = popen(command, "r");
	if (!answer)
		return;
	if (fgets(library, sizeof(library), answer) && fgets(home, sizeof(home), answer)) {
		library[strcspn(library, "\n")] = '\0';
		home[strcspn(home, "\n")] = '\0';
	}
	pclose(answer);
	if (!strstr(library, ".so") || n_pythons == MAX_PYTHONS)
		return;
	for (unsigned i = 0; i < n_pythons; i++)
		if (!strcmp(pythons[i][0], library))
			return;
	memcpy(pythons[n_pythons][0], library, sizeof(library));
	memcpy(pythons[n_pythons++][1], home, sizeof(home));
}

static void ask_all(const char *folder)
{
	char pattern[1024];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/python3.[0-9]*", folder);
	if (glob(pattern, 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *minor = strrchr(found.gl_pathv[i], '.') + 1;

		if (strspn(minor, "0123456789") == strlen(minor) && atoi(minor) >= 9)
			ask(found.gl_pathv[i]);
	}
	globfree(&found);
}

static int find_pythons(void **state)
{
	const char *extra = getenv("GPUCACHE_TEST_PYTHONS"), *path = getenv("PATH");
	const char *user = getenv("HOME");
	char copy[8192], folder[1024];
	char *rest = copy, *part;

	snprintf(copy, sizeof(copy), "%s:%s", extra ? extra : "", path ? path : "/usr/bin");
	while ((part = strsep(&rest, ":")))
		ask_all(part);
	snprintf(folder, sizeof(folder), "%s/.pyenv/versions/*/bin", user ? user : "");
	ask_all(folder);
	return 0;
}

GROUP(find_pythons, NULL);

static unsigned n_lookups;

static void *count_lookups(void *handle, const char *name)
{
	n_lookups++;
	return NULL;
}

TEST(without_python_a_million_captures_look_rarely_and_find_nothing)
{
	struct gpc_python none;
	uint64_t frames[4];
	uint32_t flags = 0;

	n_lookups = 0;
	gpc_python_init(&none, true, &codes, count_lookups);
	for (int i = 0; i < 1000000; i++)
		assert_int_equal(gpc_python_capture(&none, frames, 4, &flags), 0);
	assert_int_equal(flags, 0);
	assert_in_range(n_lookups, 10, 300);
}

TEST(switched_off_it_never_looks)
{
	struct gpc_python off;
	uint64_t frames[4];
	uint32_t flags = 0;

	n_lookups = 0;
	gpc_python_init(&off, false, &codes, count_lookups);
	assert_int_equal(gpc_python_capture(&off, frames, 4, &flags), 0);
	assert_int_equal(n_lookups, 0);
}

static int lie(void)
{
	return 0;
}

static void *find_half_a_python(void *handle, const char *name)
{
	return strcmp(name, "PyGILState_GetThisThreadState") ? NULL : ADDRESS(lie);
}

TEST(a_python_without_the_other_symbols_is_left_alone)
{
	struct gpc_python half;
	uint64_t frames[4];
	uint32_t flags = 0;

	gpc_python_init(&half, true, &codes, find_half_a_python);
	assert_int_equal(gpc_python_capture(&half, frames, 4, &flags), 0);
	assert_int_equal(half.state, GPC_PYTHON_UNUSABLE);
	assert_int_equal(flags, 0);
}

TEST(every_interpreter_of_this_machine_shows_the_frames_that_python_shows)
{
	unsigned n_seen = 0;

	for (unsigned i = 0; i < n_pythons; i++) {
		pid_t child;
		int status = -1;

		print_message("           %s\n", pythons[i][0]);
		fflush(NULL);
		child = fork();
		assert_true(child >= 0);
		if (!child)
			_exit(embed(pythons[i][0], pythons[i][1]));
		assert_int_equal(waitpid(child, &status, 0), child);
		/* An interpreter may be built with a library that is not installed beside it. */
		if (WIFEXITED(status) && WEXITSTATUS(status) == NO_LIBRARY)
			continue;
		assert_int_equal(status, 0);
		n_seen++;
	}
	if (!n_seen)
		skip();
}
