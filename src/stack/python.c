/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk over the interpreter's frame list, by offsets from python_layout.h: one load per link, one lookup per code
 * object.  The compiler makes two copies of walk(): one reads memory directly, the other through a probe.  The probing
 * copy must first succeed on real frames, and find the expected type pointers.
 */
#include "stack/python.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "model/python_lines.h"
#include "stack/python_text.h"
#include "stack/trail.h"

/*
 * Values of frame->owner.  A shim is a frame of the interpreter itself: FRAME_OWNED_BY_CSTACK in 3.12 and 3.13,
 * FRAME_OWNED_BY_INTERPRETER in 3.14, and all higher values.
 */
#define GENERATOR_OWNER  1
#define FIRST_SHIM_OWNER 3

/* From 3.11 on a code object has _co_firsttraceable this many bytes before its first instruction. */
#define FIRST_TRACEABLE_BEFORE 16u

/* 3.14 keeps flags in the lowest bits of a reference, for example that its count is deferred. */
#define TAG_BITS UINT64_C(3)

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* A trial walks at most this many frames; deeper frames have the same layout. */
#define TRIAL_FRAMES 64u

/* Bounds the walk of a corrupt chain, in which shims and hidden frames, which do not count for `max`, form a cycle. */
#define MAX_LINKS 4096u

/* A walk.  In each copy of the inlined functions the compiler knows whether `probe` is NULL. */
struct walker {
	const struct gpc_python *python;
	const struct gpc_probe *probe; /* NULL: read directly */
	bool failed;
};

/* Reads `size` bytes.  False if the probe finds them unreadable; *ret may then be partly written. */
static ALWAYS_INLINE bool fetch(
	const struct walker *walker, uintptr_t address, void *ret, unsigned size)
{
	if (walker->probe)
		return gpc_probe_read(walker->probe, address, ret, size);
	memcpy(ret, (const void *)address, size);
	return true;
}

/*
 * Reads a field of 1, 4 or 8 bytes.  Each size has a variable of its own: a narrow store, read back by a wider load,
 * would stall that load.
 */
static ALWAYS_INLINE uint64_t load(
	struct walker *walker, uintptr_t object, uint16_t offset, unsigned size)
{
	uint8_t byte = 0;
	uint32_t half = 0;
	uint64_t word = 0;
	void *to = size == 1 ? (void *)&byte : size == 4 ? (void *)&half : (void *)&word;

	if (!fetch(walker, object + offset, to, size))
		walker->failed = true;
	return size == 1 ? byte : size == 4 ? half : word;
}

static ALWAYS_INLINE uintptr_t load_pointer(
	struct walker *walker, uintptr_t object, uint16_t offset)
{
	return (uintptr_t)load(walker, object, offset, sizeof(uintptr_t));
}

static uintptr_t untag(uintptr_t reference)
{
	return reference & ~(uintptr_t)TAG_BITS;
}

/* The members of an interpreter's frame that a walk uses. */
struct frame {
	uintptr_t at;
	uintptr_t code;
	uint8_t owner;
	bool is_shim;
	bool is_entry;
};

static ALWAYS_INLINE uint32_t instruction_offset(struct walker *walker, const struct frame *frame)
{
	const struct gpc_python_layout *layout = &walker->python->layout;
	uint64_t n_units;
	int64_t offset;

	if (layout->chain == GPC_PYTHON_FRAME_OBJECTS) {
		/* f_lasti is in bytes up to 3.9, in units of 2 bytes in 3.10, and -1 before the first instruction. */
		offset = (int32_t)load(
			walker, frame->at, layout->frame_instruction, sizeof(int32_t));
		if (offset < 0)
			return 0;
		return (uint32_t)offset * (layout->version >= 0x030a ? 2 : 1);
	}
	offset = (int64_t)(load_pointer(walker, frame->at, layout->frame_instruction) -
			   (frame->code + layout->code_bytes));
	n_units = load(walker, frame->code, layout->object_size, sizeof(uint64_t));
	/* The pointer is one unit before the first instruction until the frame starts. */
	if (offset < 0 && offset >= -2)
		return 0;
	if (offset < 0 || (uint64_t)offset >= 2 * n_units)
		return GPC_PYTHON_NO_OFFSET;
	return (uint32_t)offset;
}

static ALWAYS_INLINE struct frame load_frame(struct walker *walker, uintptr_t at)
{
	const struct gpc_python_layout *layout = &walker->python->layout;
	struct frame frame = { .at = at };

	if (layout->chain == GPC_PYTHON_FRAME_OBJECTS)
		frame.is_entry = true;
	else
		frame.owner = (uint8_t)load(walker, at, layout->frame_owner, 1);
	frame.is_shim = frame.owner >= FIRST_SHIM_OWNER;
	if (layout->chain == GPC_PYTHON_ENTRY_FLAGS)
		frame.is_entry = load(walker, at, layout->frame_is_entry, 1) != 0;
	if (!frame.is_shim)
		frame.code = untag(load_pointer(walker, at, layout->frame_code));
	return frame;
}

/*
 * True for a frame that Python's own tracebacks omit, because its function has not begun: its arguments are being set
 * up, or it is the helper that 3.13 and later push below an inlined __init__.
 */
static ALWAYS_INLINE bool is_incomplete(struct walker *walker, const struct frame *frame)
{
	const struct gpc_python_layout *layout = &walker->python->layout;
	uint64_t n_units;

	if (layout->chain == GPC_PYTHON_FRAME_OBJECTS || frame->owner == GENERATOR_OWNER)
		return false;
	n_units = load(walker, frame->code, (uint16_t)(layout->code_bytes - FIRST_TRACEABLE_BEFORE),
		sizeof(uint32_t));
	return load_pointer(walker, frame->at, layout->frame_instruction) <
	       frame->code + layout->code_bytes + 2 * n_units;
}

/* True if the members of the code object `code` have the expected types, and possible sizes. */
static bool verify_code(struct walker *walker, uintptr_t code)
{
	const struct gpc_python *python = walker->python;
	const struct gpc_python_layout *layout = &python->layout;
	uintptr_t file = load_pointer(walker, code, layout->code_file);
	uintptr_t name = load_pointer(walker, code, layout->code_name);
	uintptr_t lines = load_pointer(walker, code, layout->code_line_table);
	uint64_t first_line = load(walker, code, layout->code_first_line, sizeof(uint32_t));
	uint64_t lines_size;

	if (walker->failed || !file || !name || !lines || first_line > INT32_MAX)
		return false;
	if (load_pointer(walker, file, layout->object_type) != python->types.text ||
		load_pointer(walker, name, layout->object_type) != python->types.text ||
		load_pointer(walker, lines, layout->object_type) != python->types.bytes)
		return false;
	lines_size = load(walker, lines, layout->object_size, sizeof(uint64_t));
	if (lines_size > (UINT64_C(1) << 30))
		return false;
	return gpc_python_text_is_sane(layout,
		       load(walker, name, layout->text_state, sizeof(uint32_t)),
		       load(walker, name, layout->text_length, sizeof(uint64_t))) &&
	       !walker->failed;
}

/* Copies the names and the line table of a new code object. */
static __attribute__((noinline)) uint32_t add_code(
	const struct gpc_python *python, uintptr_t code, const struct gpc_code_key *key)
{
	struct gpc_python_code_texts texts;
	struct gpc_code text;

	if (gpc_intern_is_closed(&python->codes->intern))
		return 0;
	text = gpc_python_code_read(&python->layout, &python->types, code, &texts);
	return gpc_codes_add(python->codes, key, &text);
}

/* From 3.12 on by the number that Python gives each code object, else by what is in it. */
static ALWAYS_INLINE uint64_t fingerprint_of(const struct gpc_python *python, uintptr_t code)
{
	uint16_t at = python->layout.code_version;
	uint32_t version = 0;

	if (at != GPC_PYTHON_NO_FIELD &&
		!atomic_load_explicit(&python->has_seen_others, memory_order_relaxed))
		memcpy(&version, (const void *)(code + at), sizeof version);
	if (version)
		return version;
	return gpc_python_code_key(&python->layout, &python->types, code).fingerprint;
}

static ALWAYS_INLINE uint32_t number_of(const struct gpc_python *python, uintptr_t code)
{
	struct gpc_code_key key = { code, fingerprint_of(python, code) };
	uint32_t number = gpc_codes_find(python->codes, &key);

	return number ? number : add_code(python, code, &key);
}

static ALWAYS_INLINE uint64_t encode(struct walker *walker, const struct frame *frame)
{
	/* A trial adds no code objects to the table: what it takes for frames may be anything. */
	uint64_t number = walker->probe ? 0 : number_of(walker->python, frame->code);

	return GPUCACHE_FRAME_PYTHON | (frame->is_entry ? GPUCACHE_FRAME_FROM_C : 0) |
	       number << 32 | instruction_offset(walker, frame);
}

static ALWAYS_INLINE uintptr_t innermost_frame(struct walker *walker, uintptr_t thread)
{
	const struct gpc_python_layout *layout = &walker->python->layout;
	uintptr_t at = load_pointer(walker, thread, layout->thread_frame);

	if (at && layout->cframe_frame != GPC_PYTHON_NO_FIELD)
		at = load_pointer(walker, at, layout->cframe_frame);
	return at;
}

/*
 * Walks a thread state's frames, innermost first.  Stops and sets walker->failed at a frame that the probe cannot read,
 * or whose code has not the type of code objects; in a trial also if verify_code refuses the code.
 */
static ALWAYS_INLINE uint32_t walk(struct walker *walker, bool is_trial, uintptr_t thread,
	uint64_t *frames, uint32_t max, uint32_t *flags)
{
	const struct gpc_python *python = walker->python;
	uint32_t links = 0;
	uint32_t n = 0;

	for (uintptr_t at = innermost_frame(walker, thread);
		at && !walker->failed && links < MAX_LINKS; links++) {
		struct frame frame = load_frame(walker, at);

		if (walker->failed)
			break;
		at = load_pointer(walker, frame.at, python->layout.frame_previous);
		if (frame.is_shim) {
			if (n)
				frames[n - 1] |= GPUCACHE_FRAME_FROM_C;
			continue;
		}
		if (!frame.code ||
			load_pointer(walker, frame.code, python->layout.object_type) !=
				python->types.code ||
			(is_trial && !verify_code(walker, frame.code))) {
			walker->failed = true;
			break;
		}
		if (is_incomplete(walker, &frame)) {
			if (n && frame.is_entry)
				frames[n - 1] |= GPUCACHE_FRAME_FROM_C;
			continue;
		}
		if (n == max) {
			*flags |= GPUCACHE_STACK_CUT;
			break;
		}
		frames[n++] = encode(walker, &frame);
	}
	return n;
}

/* If true, PyGILState_GetThisThreadState may return another state than the one that runs on this thread. */
static bool has_subinterpreters(const struct gpc_python *python)
{
	return python->get_first_interpreter() != python->get_main_interpreter();
}

/*
 * Finds this thread's state; 0: none.  *ret_is_ours: it has this thread's id, and no other state can run here.  In a
 * subinterpreter the running state is not PyGILState's.  A thread without the GIL has no running state.
 */
static ALWAYS_INLINE uintptr_t own_thread(
	struct gpc_python *python, struct walker *walker, bool *ret_is_ours)
{
	uintptr_t running = python->get_running_state ? (uintptr_t)python->get_running_state() : 0;
	uintptr_t thread = running ? running : (uintptr_t)python->get_thread_state();
	bool has_others = thread && has_subinterpreters(python);

	/* Each interpreter numbers its code objects itself (fingerprint_of). */
	if (has_others)
		atomic_store_explicit(&python->has_seen_others, true, memory_order_relaxed);
	*ret_is_ours = thread && (running || !has_others) &&
		       load(walker, thread, python->layout.thread_id, sizeof(uint64_t)) ==
			       (uint64_t)pthread_self();
	return thread;
}

static bool is_one_object(const void *a, const void *b)
{
	Dl_info info_a, info_b;

	return dladdr(a, &info_a) && dladdr(b, &info_b) && info_a.dli_fbase == info_b.dli_fbase;
}

static void *find(const struct gpc_python *python, const char *name)
{
	return python->lookup_in(RTLD_DEFAULT, name);
}

/* Finds Python's symbols and the layout of its version.  Returns the next state. */
static enum gpc_python_state look(struct gpc_python *python)
{
	void *thread_state = find(python, "PyGILState_GetThisThreadState");
	const char *(*get_version)(void);
	void *finalizing;

	if (!thread_state)
		return GPC_PYTHON_LOOK;
	*(void **)&python->is_initialized = find(python, "Py_IsInitialized");
	*(void **)&get_version = find(python, "Py_GetVersion");
	finalizing = find(python, "Py_IsFinalizing");
	if (!finalizing)
		finalizing = find(python, "_Py_IsFinalizing");
	*(void **)&python->get_thread_state = thread_state;
	*(void **)&python->is_finalizing = finalizing;
	*(void **)&python->get_first_interpreter = find(python, "PyInterpreterState_Head");
	*(void **)&python->get_main_interpreter = find(python, "PyInterpreterState_Main");
	python->types.code = (uintptr_t)find(python, "PyCode_Type");
	python->types.text = (uintptr_t)find(python, "PyUnicode_Type");
	python->types.bytes = (uintptr_t)find(python, "PyBytes_Type");
	if (!python->is_initialized || !get_version || !finalizing ||
		!python->get_first_interpreter || !python->get_main_interpreter ||
		!python->types.code || !python->types.text || !python->types.bytes ||
		!is_one_object(thread_state, finalizing))
		return GPC_PYTHON_UNUSABLE;
	if (!python->is_initialized())
		return GPC_PYTHON_LOOK;
	if (gpc_python_layout_find(get_version(), find(python, "_PyRuntime"), &python->layout) !=
		GPC_OK)
		return GPC_PYTHON_UNUSABLE;
	/* Up to 3.11 _PyThreadState_UncheckedGet may return another thread's state: that of the holder of the GIL. */
	if (python->layout.version >= 0x030d)
		*(void **)&python->get_running_state = find(python, "PyThreadState_GetUnchecked");
	else if (python->layout.version == 0x030c)
		*(void **)&python->get_running_state = find(python, "_PyThreadState_UncheckedGet");
	return GPC_PYTHON_TRIAL;
}

/* Walks this thread's frames through `probe`.  Returns the next state. */
static enum gpc_python_state walk_for_trial(
	struct gpc_python *python, const struct gpc_probe *probe)
{
	struct walker walker = { .python = python, .probe = probe };
	uint64_t frames[TRIAL_FRAMES];
	uint32_t flags = 0;
	uintptr_t thread;
	bool is_ours;
	uint32_t n;

	thread = own_thread(python, &walker, &is_ours);
	if (!thread || (!is_ours && has_subinterpreters(python)))
		return GPC_PYTHON_TRIAL;
	if (walker.failed || !is_ours)
		return GPC_PYTHON_UNUSABLE;
	n = walk(&walker, true, thread, frames, TRIAL_FRAMES, &flags);
	if (walker.failed)
		return GPC_PYTHON_UNUSABLE;
	return n ? GPC_PYTHON_READY : GPC_PYTHON_TRIAL;
}

/* Tries the layout on this thread's frames, and its second kind_shift if there is one.  Returns the next state. */
static enum gpc_python_state try_layout(struct gpc_python *python)
{
	struct gpc_python_layout *layout = &python->layout;
	enum gpc_python_state state;
	struct gpc_probe probe;

	if (!gpc_probe_init(&probe))
		return GPC_PYTHON_TRIAL;
	state = walk_for_trial(python, &probe);
	if (state == GPC_PYTHON_UNUSABLE && layout->other_kind_shift) {
		layout->kind_shift = layout->other_kind_shift;
		layout->other_kind_shift = 0;
		state = walk_for_trial(python, &probe);
	}
	gpc_probe_fini(&probe);
	return state;
}

/* Changes the state from `from` to BUSY; false if another thread has changed it. */
static bool begin(struct gpc_python *python, uint32_t from)
{
	return atomic_compare_exchange_strong_explicit(
		&python->state, &from, GPC_PYTHON_BUSY, memory_order_acquire, memory_order_relaxed);
}

static uint32_t end(struct gpc_python *python, uint32_t state)
{
	atomic_store_explicit(&python->state, state, memory_order_release);
	return state;
}

static uint32_t look_if_due(struct gpc_python *python)
{
	uint32_t wait = atomic_load_explicit(&python->wait, memory_order_relaxed);
	uint32_t n_waited = atomic_load_explicit(&python->n_waited, memory_order_relaxed) + 1;
	uint32_t state;

	/* Not a locked increment: if two threads lose a count, the lookup comes one capture later. */
	atomic_store_explicit(&python->n_waited, n_waited, memory_order_relaxed);
	if (n_waited < wait)
		return GPC_PYTHON_LOOK;
	if (!begin(python, GPC_PYTHON_LOOK))
		return GPC_PYTHON_BUSY;
	state = look(python);
	atomic_store_explicit(&python->n_waited, 0, memory_order_relaxed);
	atomic_store_explicit(
		&python->wait, wait < GPC_PYTHON_MAX_WAIT ? 2 * wait : wait, memory_order_relaxed);
	return end(python, state);
}

static bool may_read(const struct gpc_python *python)
{
	return python->is_initialized() && !python->is_finalizing();
}

/* Takes the steps LOOK and TRIAL if they are due.  Returns the new state. */
static __attribute__((noinline)) uint32_t prepare(struct gpc_python *python, uint32_t state)
{
	if (state == GPC_PYTHON_LOOK)
		state = look_if_due(python);
	if (state == GPC_PYTHON_TRIAL && may_read(python) && begin(python, GPC_PYTHON_TRIAL))
		state = end(python, try_layout(python));
	return state;
}

/* Sets GPUCACHE_STACK_NO_PYTHON if this thread has a Python thread state. */
static void note_unreadable(const struct gpc_python *python, uint32_t *flags)
{
	if (python->get_thread_state && python->get_thread_state())
		*flags |= GPUCACHE_STACK_NO_PYTHON;
}

uint32_t gpc_python_capture(
	struct gpc_python *python, uint64_t *frames, uint32_t max, uint32_t *flags)
{
	struct walker walker = { .python = python };
	uint32_t state = atomic_load_explicit(&python->state, memory_order_acquire);
	uintptr_t thread;
	bool is_ours;
	uint32_t n = 0;

	if (state == GPC_PYTHON_OFF)
		return 0;
	if (state == GPC_PYTHON_LOOK || state == GPC_PYTHON_TRIAL)
		state = prepare(python, state);
	if (state == GPC_PYTHON_UNUSABLE || (state == GPC_PYTHON_READY && !may_read(python))) {
		note_unreadable(python, flags);
		return 0;
	}
	if (state != GPC_PYTHON_READY)
		return 0;
	thread = own_thread(python, &walker, &is_ours);
	if (is_ours)
		n = walk(&walker, false, thread, frames, max, flags);
	if (thread && (!is_ours || walker.failed))
		*flags |= GPUCACHE_STACK_NO_PYTHON;
	return n;
}

/* --- Trails ----------------------------------------------------------------------------------- */

bool gpc_python_find_top(struct gpc_python *python, struct gpc_python_top *ret_top)
{
	struct walker walker = { .python = python };
	uint32_t state = atomic_load_explicit(&python->state, memory_order_acquire);
	bool is_ours;

	*ret_top = (struct gpc_python_top){ 0 };
	if (state == GPC_PYTHON_LOOK)
		state = prepare(python, state);
	if (state == GPC_PYTHON_OFF || state == GPC_PYTHON_LOOK)
		return true;
	if (state != GPC_PYTHON_READY || !may_read(python))
		return false;
	ret_top->thread = own_thread(python, &walker, &is_ours);
	if (!ret_top->thread)
		return true;
	if (!is_ours)
		return false;
	ret_top->frame = innermost_frame(&walker, ret_top->thread);
	if (ret_top->frame)
		ret_top->instruction =
			load_pointer(&walker, ret_top->frame, python->layout.frame_instruction);
	return true;
}

/* All that the walk reads of a frame, but for the link to the next. */
struct sight {
	uint64_t code;
	uint64_t fingerprint; /* 0: no code object */
	uint64_t instruction;
	uint32_t kind;
};

static ALWAYS_INLINE struct sight see(struct walker *walker, const struct frame *frame)
{
	const struct gpc_python_layout *layout = &walker->python->layout;
	struct sight sight = { .kind = frame->owner | (uint32_t)frame->is_entry << 8 };

	if (frame->is_shim)
		return sight;
	sight.code = frame->code;
	if (!frame->code || load_pointer(walker, frame->code, layout->object_type) !=
				    walker->python->types.code)
		return sight;
	sight.fingerprint = fingerprint_of(walker->python, frame->code);
	if (layout->chain == GPC_PYTHON_FRAME_OBJECTS)
		sight.instruction =
			load(walker, frame->at, layout->frame_instruction, sizeof(uint32_t));
	else
		sight.instruction =
			load_pointer(walker, frame->at, layout->frame_instruction) - frame->code;
	return sight;
}

bool gpc_python_trace(const struct gpc_python *python, const struct gpc_python_top *top,
	uint32_t max, struct gpc_python_trail *trail)
{
	struct walker walker = { .python = python };
	uint32_t n_frames = 0, n = 0;
	bool is_cut = false;

	for (uintptr_t at = top->frame; at && !is_cut; n++) {
		struct frame frame = load_frame(&walker, at);
		struct gpc_python_link *link = &trail->links[n];
		struct sight sight = see(&walker, &frame);

		if (n == GPC_PYTHON_TRAIL_LINKS || (!frame.is_shim && !sight.fingerprint) ||
			sight.instruction > UINT32_MAX)
			return false;
		trail_store(&link->at, at);
		trail_store(&link->code, sight.code);
		trail_store(&link->fingerprint, sight.fingerprint);
		trail_store(&link->instruction, (uint32_t)sight.instruction);
		trail_store(&link->kind, sight.kind);
		if (!frame.is_shim && !is_incomplete(&walker, &frame))
			is_cut = n_frames++ == max;
		at = load_pointer(&walker, at, python->layout.frame_previous);
	}
	trail_store(&trail->thread, top->thread);
	trail_store(&trail->is_cut, is_cut);
	trail_store(&trail->n, n);
	return true;
}

bool gpc_python_follows(const struct gpc_python *python, const struct gpc_python_top *top,
	const struct gpc_python_trail *trail)
{
	struct walker walker = { .python = python };
	uint32_t n = trail_load(&trail->n);
	uintptr_t at = top->frame;

	if (trail_load(&trail->thread) != top->thread)
		return false;
	for (uint32_t i = 0; i < n && i < GPC_PYTHON_TRAIL_LINKS; i++) {
		const struct gpc_python_link *link = &trail->links[i];
		uintptr_t expected = trail_load(&link->at);
		struct frame frame;
		struct sight sight;

		if (at != expected)
			return false;
		/* The same address, but the processor need not wait for the load of the link before. */
		__asm__("" : "+r"(expected));
		frame = load_frame(&walker, expected);
		sight = see(&walker, &frame);
		if (sight.code != trail_load(&link->code) ||
			sight.fingerprint != trail_load(&link->fingerprint) ||
			sight.instruction != trail_load(&link->instruction) ||
			sight.kind != trail_load(&link->kind))
			return false;
		at = load_pointer(&walker, expected, python->layout.frame_previous);
	}
	return !at || trail_load(&trail->is_cut);
}

void gpc_python_init(struct gpc_python *python, bool is_on, struct gpc_codes *codes,
	void *(*lookup_in)(void *handle, const char *name))
{
	*python = (struct gpc_python){
		.codes = codes,
		.lookup_in = lookup_in,
		.state = is_on ? GPC_PYTHON_LOOK : GPC_PYTHON_OFF,
		.wait = 1,
	};
}
