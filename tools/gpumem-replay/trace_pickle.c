/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack machine.  Its values are json-c objects; None is NULL.
 *
 * json-c frees objects recursively, so a hostile pickle could overflow the stack of the process by its depth.  Each
 * container therefore carries its depth, and is closed when it is put into another: nothing can be added to it later,
 * which would change the depth of the outer one.  Python's pickler never does that with plain data.
 */
#include "tools/gpumem-replay/trace_pickle.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "format/memory.h"

struct values {
	struct json_object **items;
	size_t n;
	size_t n_room;
};

struct machine {
	const uint8_t *at;
	const uint8_t *end;
	struct values stack;
	struct values memo;
	size_t *marks; /* the height of the stack at each MARK */
	size_t n_marks;
	size_t n_marks_room;
	const char *wrong;
};

static bool fail(struct machine *machine, const char *wrong)
{
	machine->wrong = wrong;
	return false;
}

/* Takes over the caller's reference, as push() and push_new() do. */
static void append(struct values *values, struct json_object *value)
{
	gpc_array_grow(&values->items, sizeof *values->items, values->n, &values->n_room);
	values->items[values->n++] = value;
}

static bool push(struct machine *machine, struct json_object *value)
{
	append(&machine->stack, value);
	return true;
}

static bool push_new(struct machine *machine, struct json_object *value)
{
	return push(machine, gpc_checked(value));
}

static size_t height_of_mark(const struct machine *machine)
{
	return machine->n_marks ? machine->marks[machine->n_marks - 1] : 0;
}

/* Pops the top of the stack. */
static bool pop(struct machine *machine, struct json_object **ret_value)
{
	if (machine->stack.n <= height_of_mark(machine))
		return fail(machine, "the stack is empty");
	*ret_value = machine->stack.items[--machine->stack.n];
	return true;
}

static bool is_container(const struct json_object *value)
{
	return json_object_is_type(value, json_type_array) ||
	       json_object_is_type(value, json_type_object);
}

/* The container's user data: its depth << 1, and in bit 0 whether the container is closed. */
static uintptr_t note_of(struct json_object *container)
{
	return (uintptr_t)json_object_get_userdata(container);
}

static void set_note(struct json_object *container, uintptr_t depth, bool is_closed)
{
	json_object_set_userdata(container, (void *)(depth << 1 | is_closed), NULL);
}

static bool may_put(struct machine *machine, struct json_object *into, struct json_object *value)
{
	uintptr_t depth = note_of(into) >> 1;

	if (note_of(into) & 1)
		return fail(machine, "a container grows after it was put into another");
	if (!is_container(value))
		return true;
	if (value == into || note_of(value) >> 1 >= GPC_UNPICKLE_DEPTH)
		return fail(machine, "too deep");
	if (note_of(value) >> 1 >= depth)
		depth = (note_of(value) >> 1) + 1;
	set_note(value, note_of(value) >> 1, true);
	set_note(into, depth, false);
	return true;
}

/* This function and add_to_dict() take over the references of `value` and `key`, even on failure. */
static bool add_to_list(
	struct machine *machine, struct json_object *list, struct json_object *value)
{
	if (!json_object_is_type(list, json_type_array)) {
		json_object_put(value);
		return fail(machine, "what is appended to is no list");
	}
	if (may_put(machine, list, value) && json_object_array_add(list, value) == 0)
		return true;
	json_object_put(value);
	return false;
}

static bool add_to_dict(struct machine *machine, struct json_object *dict, struct json_object *key,
	struct json_object *value)
{
	bool is_good = false;

	if (!json_object_is_type(dict, json_type_object))
		(void)fail(machine, "an item is set in what is no dict");
	else if (!key || is_container(key))
		(void)fail(machine, "a key is neither text nor a number");
	else if (may_put(machine, dict, value))
		is_good = json_object_object_add(dict, json_object_get_string(key), value) == 0;
	if (!is_good)
		json_object_put(value);
	json_object_put(key);
	return is_good;
}

/* Removes the last mark, and moves the values above it into `target`: a list (step 1) or a dict (step 2). */
static bool close_mark(struct machine *machine, struct json_object *target, size_t step)
{
	size_t first = height_of_mark(machine);
	size_t n = machine->stack.n - first;
	bool is_good = machine->n_marks > 0 && n % step == 0;

	if (!is_good)
		return fail(machine, "a mark is missing");
	machine->n_marks--;
	machine->stack.n = first;
	for (size_t i = 0; i < n; i += step) {
		struct json_object **items = &machine->stack.items[first + i];

		if (is_good && step == 2)
			is_good = add_to_dict(machine, target, items[0], items[1]);
		else if (is_good)
			is_good = add_to_list(machine, target, items[0]);
		else
			for (size_t k = 0; k < step; k++)
				json_object_put(items[k]);
	}
	return is_good;
}

/* APPENDS, SETITEMS: moves the values above the last mark into the container below the mark. */
static bool extend(struct machine *machine, size_t step)
{
	size_t height = height_of_mark(machine);
	struct json_object *target = height ? machine->stack.items[height - 1] : NULL;

	return target ? close_mark(machine, target, step) : fail(machine, "a mark is missing");
}

/* TUPLE, LIST, DICT: makes the values above the last mark a new container. */
static bool collect(struct machine *machine, struct json_object *target, size_t step)
{
	if (close_mark(machine, gpc_checked(target), step))
		return push(machine, target);
	json_object_put(target);
	return false;
}

/* Sets a mark below the top `n` values; at least `n_more` values must lie between it and the last mark. */
static bool mark(struct machine *machine, size_t n, size_t n_more)
{
	if (machine->stack.n < height_of_mark(machine) + n + n_more)
		return fail(machine, "the stack is empty");
	gpc_array_grow(
		&machine->marks, sizeof *machine->marks, machine->n_marks, &machine->n_marks_room);
	machine->marks[machine->n_marks++] = machine->stack.n - n;
	return true;
}

/* APPEND, SETITEM: moves the top `step` values into the container below them. */
static bool add_top(struct machine *machine, size_t step)
{
	return mark(machine, step, 1) &&
	       close_mark(machine, machine->stack.items[machine->stack.n - step - 1], step);
}

/* A little-endian number of `n` <= 8 bytes. */
static bool read_number(struct machine *machine, size_t n, uint64_t *ret_number)
{
	uint64_t number = 0;

	if ((size_t)(machine->end - machine->at) < n)
		return fail(machine, "cut off");
	for (size_t i = 0; i < n; i++)
		number |= (uint64_t)machine->at[i] << (8 * i);
	machine->at += n;
	*ret_number = number;
	return true;
}

static bool skip(struct machine *machine, size_t n)
{
	uint64_t ignored;

	return read_number(machine, n, &ignored);
}

/* A number of `n` <= 8 bytes, in two's complement if it is signed. */
static bool push_whole(struct machine *machine, size_t n, bool is_signed)
{
	uint64_t number = 0;

	if (!read_number(machine, n, &number))
		return false;
	if (!is_signed || n == 0 || !(number >> (8 * n - 1) & 1))
		return push_new(machine, json_object_new_uint64(number));
	if (n < 8)
		number |= ~UINT64_C(0) << (8 * n);
	return push_new(machine, json_object_new_int64((int64_t)number));
}

/* LONG1: a signed number of any length.  An unsigned number of 64 bits has a ninth byte, which is 0. */
static bool push_long(struct machine *machine)
{
	uint64_t n = 0;

	if (!read_number(machine, 1, &n))
		return false;
	if (n > 9 || (size_t)(machine->end - machine->at) < n || (n == 9 && machine->at[8] != 0))
		return fail(machine, "a number of more than 64 bits");
	if (n == 9)
		return push_whole(machine, 8, false) && skip(machine, 1);
	return push_whole(machine, n, true);
}

static bool push_float(struct machine *machine)
{
	uint64_t bits = 0;
	double value;

	if (!read_number(machine, 8, &bits))
		return false;
	bits = __builtin_bswap64(bits);
	memcpy(&value, &bits, sizeof value);
	return push_new(machine, json_object_new_double(value));
}

static bool push_text(struct machine *machine, size_t n_length)
{
	uint64_t length = 0;
	const char *text;

	if (!read_number(machine, n_length, &length))
		return false;
	if (length > (size_t)(machine->end - machine->at) || length > INT32_MAX)
		return fail(machine, "cut off");
	text = (const char *)machine->at;
	machine->at += length;
	return push_new(machine, json_object_new_string_len(text, (int)length));
}

static bool remember(struct machine *machine, uint64_t number)
{
	struct json_object *top;

	if (machine->stack.n <= height_of_mark(machine))
		return fail(machine, "the stack is empty");
	top = machine->stack.items[machine->stack.n - 1];
	/* Python's pickler numbers the entries in sequence, or overwrites an old one. */
	if (number > machine->memo.n)
		return fail(machine, "the memo has a gap");
	if (number == machine->memo.n)
		append(&machine->memo, NULL);
	json_object_put(machine->memo.items[number]);
	machine->memo.items[number] = json_object_get(top);
	return true;
}

static bool put_memo(struct machine *machine, size_t n_bytes)
{
	uint64_t number = 0;

	return read_number(machine, n_bytes, &number) && remember(machine, number);
}

static bool get_memo(struct machine *machine, size_t n_bytes)
{
	uint64_t number = 0;

	if (!read_number(machine, n_bytes, &number))
		return false;
	if (number >= machine->memo.n)
		return fail(machine, "the memo has no such value");
	return push(machine, json_object_get(machine->memo.items[number]));
}

/* The opcodes of plain data, with their names in Python's pickletools. */
static bool step(struct machine *machine, uint8_t opcode)
{
	switch (opcode) {
	case 0x80: /* PROTO */
		return skip(machine, 1);
	case 0x95: /* FRAME */
		return skip(machine, 8);
	case '(':
		return mark(machine, 0, 0);
	case '}': /* EMPTY_DICT */
		return push_new(machine, json_object_new_object());
	case ']': /* EMPTY_LIST */
	case ')': /* EMPTY_TUPLE */
		return push_new(machine, json_object_new_array());
	case 'l': /* LIST */
	case 't': /* TUPLE */
		return collect(machine, json_object_new_array(), 1);
	case 'd': /* DICT */
		return collect(machine, json_object_new_object(), 2);
	case 0x85: /* TUPLE1, 2, 3 */
	case 0x86:
	case 0x87:
		return mark(machine, opcode - 0x84u, 0) &&
		       collect(machine, json_object_new_array(), 1);
	case 'a': /* APPEND */
		return add_top(machine, 1);
	case 'e': /* APPENDS */
		return extend(machine, 1);
	case 's': /* SETITEM */
		return add_top(machine, 2);
	case 'u': /* SETITEMS */
		return extend(machine, 2);
	case 'K': /* BININT1, 2 */
		return push_whole(machine, 1, false);
	case 'M':
		return push_whole(machine, 2, false);
	case 'J': /* BININT */
		return push_whole(machine, 4, true);
	case 0x8a: /* LONG1 */
		return push_long(machine);
	case 'G': /* BINFLOAT */
		return push_float(machine);
	case 0x8c: /* SHORT_BINUNICODE */
	case 'C':  /* SHORT_BINBYTES */
	case 'U':  /* SHORT_BINSTRING */
		return push_text(machine, 1);
	case 'X': /* BINUNICODE */
	case 'B': /* BINBYTES */
	case 'T': /* BINSTRING */
		return push_text(machine, 4);
	case 0x8d: /* BINUNICODE8 */
		return push_text(machine, 8);
	case 'N': /* NONE */
		return push(machine, NULL);
	case 0x88: /* NEWTRUE, NEWFALSE */
	case 0x89:
		return push_new(machine, json_object_new_boolean(opcode == 0x88));
	case 0x94: /* MEMOIZE */
		return remember(machine, machine->memo.n);
	case 'q': /* BINPUT, LONG_BINPUT */
		return put_memo(machine, 1);
	case 'r':
		return put_memo(machine, 4);
	case 'h': /* BINGET, LONG_BINGET */
		return get_memo(machine, 1);
	case 'j':
		return get_memo(machine, 4);
	default:
		return fail(machine, "not plain data: Python would run code, or we do not know it");
	}
}

static void put_all(struct values *values)
{
	for (size_t i = 0; i < values->n; i++)
		json_object_put(values->items[i]);
	free(values->items);
}

struct json_object *gpc_unpickle(const uint8_t *data, size_t size, struct gpc_text *why)
{
	struct machine machine = { .at = data, .end = data + size };
	struct json_object *result = NULL;
	bool goes_on = true;

	while (goes_on && machine.at < machine.end && *machine.at != '.')
		goes_on = step(&machine, *machine.at++);
	if (goes_on && machine.at == machine.end)
		goes_on = fail(&machine, "cut off");
	if (goes_on && pop(&machine, &result) && !result)
		(void)fail(&machine, "nothing is in it");
	if (machine.wrong)
		gpc_text_add(why, "offset %zu of the pickle: %s", (size_t)(machine.at - data),
			machine.wrong);
	put_all(&machine.stack);
	put_all(&machine.memo);
	free(machine.marks);
	return result;
}
