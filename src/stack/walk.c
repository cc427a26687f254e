/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules lie in the order in which they were learned, so the rules of one stack lie side by side.  Each rule keeps the
 * number of the rule that followed it last, and that guess is mostly right; if it is not, a hash table finds the
 * rule of the address.  The branch predictor expects a right guess, so the processor reads frames ahead.
 *
 * A rule is derived from the registers before and after a step of libunwind.  If a frame ends 16 bytes above its frame
 * pointer, its end may be a constant offset from rbp or from rsp.  Both ways must agree until a step refutes one.
 */
#include "stack/walk.h"

#include <stddef.h>

#include "base/metamem.h"
#include "stack/trail.h"

#define N_SLOTS (2 * GPC_WALK_RULES)

/* The two words of a rule: address and successor; the address's lowest bits and the rule. */
#define ADDRESS_BITS 47 /* in user space */
#define RULE_BITS    28
#define CHECK_BITS   (64 - RULE_BITS)
#define ADDRESS_MASK ((UINT64_C(1) << ADDRESS_BITS) - 1)

_Static_assert(GPC_WALK_RULES < 1 << (64 - ADDRESS_BITS), "a successor beside an address");
_Static_assert(GPC_WALK_RULES < UINT16_MAX, "1 + a number in a slot");

/* A rule: its kind, the frame's size, and the distance from the saved rbp to the frame's end, 0 if not saved. */
#define KIND_BITS 3
#define SIZE_BITS 13
#define SAVE_BITS (RULE_BITS - KIND_BITS - SIZE_BITS)

enum kind {
	UNKNOWN, /* no rule; 0, like an empty word */
	ASK,     /* left to libunwind */
	LAST,    /* the outermost frame */
	BY_SIZE, /* the frame ends at rsp + size; a walk can follow this kind and those below */
	BY_BP,   /* the frame ends at rbp + 16 */
	BY_BOTH, /* in all steps so far the frame ended at both */
};

/*
 * The most steps of a learning walk; and the most such walks, until code is unloaded and may be replaced by new code:
 * code that cannot be learned would cause one each time.
 */
#define MAX_STEPS 256
#define MAX_WALKS 20000u

/* DWARF register numbers; and sizes of libunwind's types, which its ABI fixes, rounded up. */
#define REG_BP        6
#define REG_SP        7
#define REG_IP        16
#define CONTEXT_WORDS 128
#define CURSOR_WORDS  128
#define INFO_WORDS    32

struct save_location {
	int type;
	uintptr_t address;
	uintptr_t room[4];
};
#define SAVED_IN_MEMORY 1

/* The largest frame that a rule can describe is smaller than this. */
#define MAX_FRAME_BYTES (UINT64_C(8) << SIZE_BITS)

/* The part of this thread's stack known to be readable. */
#define PAGE 4096u
static _Thread_local struct {
	uintptr_t start;
	uintptr_t end;
} known;

static inline uint64_t make_rule(enum kind kind, uint64_t size, uint64_t save)
{
	return (uint64_t)kind | size / 8 << KIND_BITS | save / 8 << (KIND_BITS + SIZE_BITS);
}

static inline enum kind kind_of(uint64_t rule)
{
	return (enum kind)(rule & ((1u << KIND_BITS) - 1));
}

static inline uintptr_t size_of(uint64_t rule)
{
	return (rule >> KIND_BITS & ((1u << SIZE_BITS) - 1)) * 8;
}

static inline uintptr_t save_of(uint64_t rule)
{
	return (rule >> (KIND_BITS + SIZE_BITS) & ((1u << SAVE_BITS) - 1)) * 8;
}

static inline uint64_t load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static inline void store(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

static inline bool is_of(uint64_t place, uintptr_t ip)
{
	return (place & ADDRESS_MASK) == ip;
}

static inline uint64_t word_of_rule(uintptr_t ip, uint64_t rule)
{
	return (uint64_t)ip << RULE_BITS | rule;
}

/* The rule in a second word, or UNKNOWN if the word has another address than ip: a thread may be writing the pair. */
static inline uint64_t rule_in(uint64_t word, uintptr_t ip)
{
	return (word >> RULE_BITS ^ ip) << RULE_BITS ? UNKNOWN
						     : word & ((UINT64_C(1) << RULE_BITS) - 1);
}

/* The number of ip's rule, or GPC_WALK_RULES.  The lowest bits of a return address serve as its hash. */
static inline uint32_t find_number(const struct gpc_walk_table *table, uintptr_t ip)
{
	for (uint32_t i = 0; i < N_SLOTS; i++) {
		uint32_t end = atomic_load_explicit(
			&table->slots[(ip + i) % N_SLOTS], memory_order_relaxed);

		if (!end)
			break;
		if (is_of(load(&table->rules[end - 1].place), ip))
			return end - 1;
	}
	return GPC_WALK_RULES;
}

static uint64_t find_rule(const struct gpc_walk *walk, uintptr_t ip)
{
	uint32_t number = find_number(walk->table, ip);

	return number < GPC_WALK_RULES ? rule_in(load(&walk->table->rules[number].word), ip)
				       : UNKNOWN;
}

static void note_change(struct gpc_walk *walk)
{
	atomic_fetch_add_explicit(&walk->n_changes, 1, memory_order_release);
}

/* What is learned again need not be what it was. */
static void forget_all(struct gpc_walk *walk)
{
	struct gpc_walk_table *table = walk->table;

	for (uint32_t i = 0; i < N_SLOTS; i++)
		atomic_store_explicit(&table->slots[i], 0, memory_order_relaxed);
	for (uint32_t i = 0; i < GPC_WALK_RULES; i++) {
		store(&table->rules[i].place, 0);
		store(&table->rules[i].word, 0);
	}
	atomic_store_explicit(&table->n_rules, 0, memory_order_relaxed);
	note_change(walk);
}

/* Adds an address, with the address learned next as the guess for its successor.  Clears a full table first. */
static void add_rule(struct gpc_walk *walk, uintptr_t ip, uint64_t rule)
{
	struct gpc_walk_table *table = walk->table;
	uint32_t number;
	uint16_t end = 0;

	if (atomic_load_explicit(&table->n_rules, memory_order_relaxed) >= GPC_WALK_RULES)
		forget_all(walk);
	number = atomic_fetch_add_explicit(&table->n_rules, 1, memory_order_relaxed);
	if (number >= GPC_WALK_RULES)
		return;
	store(&table->rules[number].place, ip | (uint64_t)(number + 1) << ADDRESS_BITS);
	store(&table->rules[number].word, word_of_rule(ip, rule));
	for (uint32_t i = 0; i < N_SLOTS; i++, end = 0) {
		if (atomic_compare_exchange_strong_explicit(&table->slots[(ip + i) % N_SLOTS], &end,
			    (uint16_t)(number + 1), memory_order_release, memory_order_acquire))
			return;
		/* Another thread has added this address.  Of two rules, gpc_walk_refute would change only one. */
		if (is_of(load(&table->rules[end - 1].place), ip))
			break;
	}
	/* Both words: a walk that has read `place` may store the address once more, with a new successor. */
	store(&table->rules[number].word, 0);
	store(&table->rules[number].place, 0);
}

static void put_rule(struct gpc_walk *walk, uintptr_t ip, uint64_t rule)
{
	uint32_t number = find_number(walk->table, ip);

	if (ip >> ADDRESS_BITS)
		return;
	if (number == GPC_WALK_RULES) {
		add_rule(walk, ip, rule);
	} else if (load(&walk->table->rules[number].word) != word_of_rule(ip, rule)) {
		store(&walk->table->rules[number].word, word_of_rule(ip, rule));
		note_change(walk);
	}
}

static __attribute__((noinline)) bool find_readable(
	const struct gpc_walk *walk, uintptr_t start, uintptr_t end)
{
	bool is_next = start >= known.start && start <= known.end;

	if (end < start || end - start > MAX_FRAME_BYTES + PAGE)
		return false;
	for (uintptr_t page = start & ~(uintptr_t)(PAGE - 1); page < end; page += PAGE)
		if (!(is_next && page < known.end) && !walk->is_readable(page))
			return false;
	known.start = is_next ? known.start : start & ~(uintptr_t)(PAGE - 1);
	known.end = (end + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
	return true;
}

static inline bool is_readable(const struct gpc_walk *walk, uintptr_t start, uintptr_t end)
{
	return (start >= known.start && end <= known.end) || find_readable(walk, start, end);
}

static inline __attribute__((no_sanitize("address"))) uintptr_t word_at(uintptr_t address)
{
	return *(const volatile uintptr_t *)address;
}

/*
 * Returns the number of ip's rule, or GPC_WALK_RULES if it has none, and stores that number as the successor of `last`.
 * Called if the guess was wrong, and if it was right but the rule is half written or contradicts the frame.
 */
static inline uint32_t find_successor(
	struct gpc_walk_table *table, _Atomic uint64_t *last, uintptr_t ip)
{
	uint32_t number = find_number(table, ip);

	store(last, (load(last) & ADDRESS_MASK) | (uint64_t)number << ADDRESS_BITS);
	return number;
}

/* A trail being written. */
struct tracer {
	struct gpc_walk_trail *trail;
	uintptr_t sp;
	uintptr_t bp_from; /* where the frame pointer was loaded; 0: it is the one at the start */
	bool has_bp;       /* the trail has that word */
	uint32_t n;
	bool failed;
};

static inline void trace_word(struct tracer *tracer, uintptr_t address, uintptr_t word)
{
	uint64_t offset = (address - tracer->sp) / sizeof word;

	if (tracer->n == GPC_WALK_TRAIL_WORDS || offset > UINT16_MAX) {
		tracer->failed = true;
		return;
	}
	trail_store(&tracer->trail->offsets[tracer->n], (uint16_t)offset);
	trail_store(&tracer->trail->words[tracer->n++], word);
}

/* The walk is about to depend on the frame pointer. */
static inline void trace_bp(struct tracer *tracer, uintptr_t bp)
{
	if (tracer->has_bp)
		return;
	tracer->has_bp = true;
	if (tracer->bp_from) {
		trace_word(tracer, tracer->bp_from, bp);
		return;
	}
	trail_store(&tracer->trail->bp, bp);
	trail_store(&tracer->trail->needs_bp, true);
}

/* Inlined into two functions: in gpc_walk_frames `tracer` is NULL. */
static inline __attribute__((always_inline, no_sanitize("address"))) uint32_t walk_on(
	const struct gpc_walk *walk, const struct gpc_walk_start *start, uint64_t *frames,
	uint32_t max, uint32_t skip, bool *ret_must_learn, struct tracer *tracer)
{
	struct gpc_walk_table *table = walk->table;
	struct gpc_walk_start at = *start;
	uintptr_t readable_end = at.sp >= known.start ? known.end : 0;
	_Atomic uint64_t *last;
	uint64_t place;

	if (!table)
		return 0;
	last = &table->rules[GPC_WALK_RULES].place;
	place = load(last);
	for (uint32_t i = 0; i < max + skip; i++) {
		struct gpc_walk_rule *found = &table->rules[place >> ADDRESS_BITS];
		enum kind kind;
		uint64_t rule;
		uintptr_t end;

		if (!is_of(load(&found->place), at.ip))
			found = &table->rules[find_successor(table, last, at.ip)];
		place = load(&found->place);
		rule = rule_in(load(&found->word), at.ip);
		kind = kind_of(rule);
		end = at.sp + size_of(rule);
		if (tracer && i > 0)
			trace_word(tracer, at.sp - 8, at.ip);
		if (i >= skip)
			frames[i - skip] = at.ip;
		if (__builtin_expect(kind < BY_SIZE, 0)) {
			*ret_must_learn = kind == UNKNOWN;
			if (kind == UNKNOWN)
				(void)find_successor(table, last, at.ip);
			return kind == LAST && i + 1 > skip ? i + 1 - skip : 0;
		}
		if (tracer && kind != BY_SIZE)
			trace_bp(tracer, at.bp);
		if (kind != BY_SIZE && end != at.bp + 16) {
			*ret_must_learn = kind == BY_BOTH;
			if (kind == BY_BOTH)
				(void)find_successor(table, last, at.ip);
			end = at.bp + 16;
			if (kind == BY_BOTH || end <= at.sp || end % 8 ||
				end - at.sp < save_of(rule))
				return 0;
		}
		if (__builtin_expect(end > readable_end, 0)) {
			if (!is_readable(walk, at.sp, end))
				return 0;
			readable_end = known.end;
		}
		if (tracer && save_of(rule)) {
			tracer->bp_from = end - save_of(rule);
			tracer->has_bp = false;
		}
		if (save_of(rule))
			at.bp = word_at(end - save_of(rule));
		at.ip = word_at(end - 8);
		at.sp = end;
		last = &found->place;
	}
	return max;
}

__attribute__((no_sanitize("address"))) uint32_t gpc_walk_frames(const struct gpc_walk *walk,
	const struct gpc_walk_start *start, uint64_t *frames, uint32_t max, uint32_t skip,
	bool *ret_must_learn)
{
	return walk_on(walk, start, frames, max, skip, ret_must_learn, NULL);
}

__attribute__((no_sanitize("address"))) uint32_t gpc_walk_trace(const struct gpc_walk *walk,
	const struct gpc_walk_start *start, uint64_t *frames, uint32_t max, uint32_t skip,
	struct gpc_walk_trail *trail)
{
	struct tracer tracer = { .trail = trail, .sp = start->sp };
	bool must_learn = false;
	uint32_t n;

	trail_store(&trail->ip, start->ip);
	trail_store(&trail->sp, start->sp);
	trail_store(&trail->needs_bp, false);
	n = walk_on(walk, start, frames, max, skip, &must_learn, &tracer);
	trail_store(&trail->n, tracer.n);
	return tracer.failed ? 0 : n;
}

__attribute__((no_sanitize("address"))) bool gpc_walk_follows(const struct gpc_walk_start *start,
	const struct gpc_walk_trail *trail, const _Atomic uint32_t *seq, uint32_t of)
{
	uintptr_t end = start->sp >= known.start && start->sp < known.end ? known.end : start->sp;
	uint32_t n = trail_load(&trail->n);

	if (trail_load(&trail->ip) != start->ip || trail_load(&trail->sp) != start->sp ||
		(trail_load(&trail->needs_bp) && trail_load(&trail->bp) != start->bp))
		return false;
	/*
	 * The processor expects that the words are equal, and reads all of them at once.  The order of the conditions is that
	 * of their needs: this offset and all words before are of one trail, so the walk would read there, too.
	 */
	for (uint32_t i = 0; i < n && i < GPC_WALK_TRAIL_WORDS; i++) {
		uintptr_t at = start->sp + 8 * (uintptr_t)trail_load(&trail->offsets[i]);

		if (at >= end || atomic_load_explicit(seq, memory_order_acquire) != of ||
			word_at(at) != trail_load(&trail->words[i]))
			return false;
	}
	return true;
}

/* --- Learning --------------------------------------------------------------------------------- */

static bool read_registers(
	const struct gpc_walk *walk, void *cursor, struct gpc_walk_start *ret_registers)
{
	return walk->steps.get_reg(cursor, REG_IP, &ret_registers->ip) == 0 &&
	       walk->steps.get_reg(cursor, REG_SP, &ret_registers->sp) == 0 &&
	       walk->steps.get_reg(cursor, REG_BP, &ret_registers->bp) == 0;
}

/* *ret_save: the distance from the saved rbp to the frame's end; 0: rbp was not saved.  False if it is not known. */
static bool find_save(const struct gpc_walk *walk, void *cursor, const struct gpc_walk_start *in,
	const struct gpc_walk_start *out, uintptr_t *ret_save)
{
	struct save_location location = { 0 };

	*ret_save = 0;
	if (walk->steps.get_save_loc(cursor, REG_BP, &location) == 0 &&
		location.type == SAVED_IN_MEMORY && location.address >= in->sp &&
		location.address < out->sp)
		*ret_save = out->sp - location.address;
	else
		return in->bp == out->bp;
	return *ret_save % 8 == 0 && *ret_save < UINT64_C(8) << SAVE_BITS;
}

/* True for a frame that aligned its stack: such a function pushes its return address again, above the saved rbp. */
static bool is_realigned(const struct gpc_walk_start *in, const struct gpc_walk_start *out)
{
	/* Compared by differences: rbp may hold any number, so bp + 16 may overflow. */
	return in->bp >= in->sp && in->bp < out->sp && out->sp - in->bp > 16 &&
	       word_at(in->bp + 8) == out->ip;
}

/* The rule that describes this step, from `in` to `out`, and all earlier ones from this address; ASK if none does. */
static uint64_t rule_of(const struct gpc_walk *walk, void *cursor, const struct gpc_walk_start *in,
	const struct gpc_walk_start *out)
{
	uint64_t old = find_rule(walk, in->ip);
	uintptr_t size = out->sp - in->sp;
	bool is_new = kind_of(old) == UNKNOWN;
	uintptr_t save;

	if (kind_of(old) == ASK || out->sp <= in->sp || size % 8 || size >= MAX_FRAME_BYTES ||
		!is_readable(walk, in->sp, out->sp) || word_at(out->sp - 8) != out->ip ||
		is_realigned(in, out) || !find_save(walk, cursor, in, out, &save) ||
		(!is_new && save_of(old) != save))
		return make_rule(ASK, 0, 0);
	if (in->bp + 16 != out->sp)
		return make_rule(is_new || size_of(old) == size ? BY_SIZE : ASK, size, save);
	if (is_new || size_of(old) == size)
		return is_new ? make_rule(BY_BOTH, size, save) : old;
	return make_rule(kind_of(old) == BY_SIZE ? ASK : BY_BP, size, save);
}

void gpc_walk_forget(struct gpc_walk *walk, uintptr_t start, uintptr_t end)
{
	if (!walk->table)
		return;
	/* Set before rules are forgotten: those that another thread learns meanwhile must be compared, too. */
	atomic_store_explicit(&walk->has_forgotten, true, memory_order_relaxed);
	/* The addresses stay, so that the numbers of a library that comes back to its place are used again. */
	for (uint32_t i = 0; i < GPC_WALK_RULES; i++) {
		uintptr_t ip = load(&walk->table->rules[i].place) & ADDRESS_MASK;

		/* A call that is its function's last instruction returns to what lies behind. */
		if (ip > start && ip <= end)
			store(&walk->table->rules[i].word, word_of_rule(ip, UNKNOWN));
	}
	atomic_store_explicit(&walk->n_learned, 0, memory_order_relaxed);
	note_change(walk);
}

void gpc_walk_refute(struct gpc_walk *walk, uintptr_t ip)
{
	put_rule(walk, ip, make_rule(ASK, 0, 0));
}

__attribute__((noinline, no_sanitize("address"))) void gpc_walk_learn(struct gpc_walk *walk)
{
	uintptr_t context[CONTEXT_WORDS] = { 0 }, cursor[CURSOR_WORDS] = { 0 }, info[INFO_WORDS];
	struct gpc_walk_start in, out;

	if (atomic_fetch_add_explicit(&walk->n_learned, 1, memory_order_relaxed) >= MAX_WALKS)
		return;
	if (walk->steps.get_context(context) || walk->steps.init_local(cursor, context) ||
		walk->steps.step(cursor) <= 0 || !read_registers(walk, cursor, &in))
		return;
	for (uint32_t i = 0; i < MAX_STEPS; i++, in = out) {
		bool has_tables = walk->steps.get_proc_info(cursor, info) == 0;
		int stepped = walk->steps.step(cursor);
		bool is_there = stepped > 0 && read_registers(walk, cursor, &out);
		uint64_t rule = make_rule(stepped == 0 ? LAST : ASK, 0, 0);

		if (is_there)
			rule = rule_of(walk, cursor, &in, &out);
		put_rule(walk, in.ip, has_tables ? rule : make_rule(ASK, 0, 0));
		if (!is_there)
			return;
	}
}

void gpc_walk_init(struct gpc_walk *walk, const struct gpc_walk_steps *steps,
	bool (*readable)(uintptr_t address))
{
	*walk = (struct gpc_walk){ .steps = *steps, .is_readable = readable };
	/* Rules describe rsp and rbp.  Elsewhere there is no table: gpc_walk_frames returns 0, and libunwind walks. */
#if defined(__x86_64__)
	if (steps->get_context && steps->init_local && steps->step && steps->get_reg &&
		steps->get_save_loc && steps->get_proc_info && readable((uintptr_t)&walk))
		walk->table = gpc_metamem_map(sizeof *walk->table);
#endif
}

void gpc_walk_fini(struct gpc_walk *walk)
{
	gpc_metamem_unmap(walk->table, sizeof *walk->table);
	walk->table = NULL;
}
