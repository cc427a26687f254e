/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unit's table is a program for a small machine with an address, a file and a line, which emits a row for each change.
 * A row holds from its address to that of the next.  All reads are bounded by the unit: a damaged table has no lines.
 */
#include "stack/linetab.h"

#include <fcntl.h>
#include <string.h>

#include "base/io.h"
#include "base/metamem.h"
#include "base/text.h"
#include "model/libraries.h"
#include "stack/elf_file.h"

#define MAX_FORMATS 8u /* kinds of data about a directory or a file */

/* Of the DWARF standard, 6.2 and 7.22. */
enum {
	LNS_COPY = 1,
	LNS_ADVANCE_PC,
	LNS_ADVANCE_LINE,
	LNS_SET_FILE,
	LNS_CONST_ADD_PC = 8,
	LNS_FIXED_ADVANCE_PC
};
enum {
	LNE_END_SEQUENCE = 1,
	LNE_SET_ADDRESS
};
enum {
	LNCT_PATH = 1,
	LNCT_DIRECTORY
};
enum {
	FORM_BLOCK = 0x09,
	FORM_DATA1 = 0x0b,
	FORM_DATA2 = 0x05,
	FORM_DATA4 = 0x06,
	FORM_DATA8 = 0x07,
	FORM_DATA16 = 0x1e,
	FORM_STRING = 0x08,
	FORM_STRP = 0x0e,
	FORM_UDATA = 0x0f,
	FORM_LINE_STRP = 0x1f
};

struct span {
	const uint8_t *at;
	const uint8_t *end;
	bool is_bad; /* something lay beyond the end */
};

struct unit {
	uint64_t offset;
	uint64_t low;
	uint64_t high;
};

struct gpc_linetab {
	size_t mapped;
	struct span lines;   /* .debug_line */
	struct span strings; /* .debug_line_str */
	bool is_fixed;       /* ET_EXEC: addresses are not relative to the base */
	uint32_t n_units;
	struct unit units[GPC_LINETAB_MAX_UNITS];
	uint8_t bytes[];
};

/* ---- reading ---- */

static uint64_t take(struct span *span, size_t size)
{
	uint64_t value = 0;

	if (span->is_bad || (size_t)(span->end - span->at) < size) {
		span->is_bad = true;
		return 0;
	}
	memcpy(&value, span->at, size);
	span->at += size;
	return value;
}

static void skip(struct span *span, uint64_t size)
{
	if (span->is_bad || (uint64_t)(span->end - span->at) < size)
		span->is_bad = true;
	else
		span->at += size;
}

/* LEB128; of a signed one the sign is in *ret_sign. */
static uint64_t take_leb(struct span *span, bool *ret_sign, unsigned *ret_bits)
{
	uint64_t value = 0;
	unsigned bits = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)take(span, 1);
		if (bits < 64)
			value |= (uint64_t)(byte & 0x7f) << bits;
		bits += 7;
	} while (byte & 0x80);
	*ret_sign = byte & 0x40;
	*ret_bits = bits;
	return value;
}

static uint64_t take_unsigned(struct span *span)
{
	bool sign;
	unsigned bits;

	return take_leb(span, &sign, &bits);
}

static int64_t take_signed(struct span *span)
{
	bool sign;
	unsigned bits;
	uint64_t value = take_leb(span, &sign, &bits);

	return (int64_t)(sign && bits < 64 ? value | ~UINT64_C(0) << bits : value);
}

static const char *take_string(struct span *span)
{
	const char *text = (const char *)span->at;
	const uint8_t *end = span->is_bad ? NULL : memchr(text, 0, (size_t)(span->end - span->at));

	if (!end) {
		span->is_bad = true;
		return "";
	}
	span->at = end + 1;
	return text;
}

static const char *string_at(const struct gpc_linetab *table, uint64_t offset)
{
	struct span strings = table->strings;

	skip(&strings, offset);
	return take_string(&strings);
}

/* ---- the header of a unit ---- */

struct header {
	struct span program;
	struct span names;      /* directories and files */
	const uint8_t *lengths; /* of the standard operations' arguments */
	unsigned version;
	uint8_t step; /* of addresses */
	int8_t line_base;
	uint8_t line_range;
	uint8_t first_special;
};

/* Reads the header at the start of `lines`, and moves on to the next unit.  False: there is none that we can read. */
static bool take_header(struct span *lines, struct header *ret_header)
{
	struct header *header = ret_header;
	uint64_t size = take(lines, 4);
	struct span unit = { lines->at, lines->end, lines->is_bad };
	uint64_t header_size;

	/* 0xffffffff begins 64-bit DWARF. */
	skip(lines, size);
	if (lines->is_bad || size >= UINT32_MAX)
		return false;
	unit.end = lines->at;
	*header = (struct header){ .version = (unsigned)take(&unit, 2) };
	if (header->version >= 5)
		skip(&unit, 2); /* sizes of addresses and segments */
	header_size = take(&unit, 4);
	header->program = unit;
	skip(&header->program, header_size);
	header->step = (uint8_t)take(&unit, 1);
	if (header->version >= 4)
		skip(&unit, 1); /* operations of an instruction */
	skip(&unit, 1);         /* is_stmt */
	header->line_base = (int8_t)take(&unit, 1);
	header->line_range = (uint8_t)take(&unit, 1);
	header->first_special = (uint8_t)take(&unit, 1);
	header->lengths = unit.at;
	skip(&unit, header->first_special ? header->first_special - 1u : 0);
	header->names = unit;
	if (unit.is_bad || header->program.is_bad || header->version < 2 || header->version > 5 ||
		header->line_range == 0 || header->first_special == 0)
		header->program = (struct span){ .is_bad = true };
	return true;
}

/* ---- the program of a unit ---- */

struct row {
	uint64_t address;
	uint64_t file;
	uint64_t line;
};

typedef bool (*row_fn)(void *arg, const struct row *row, bool is_end);

/* Calls `emit` with each row; is_end: the address is the first after a run of code.  Stops where it returns false. */
static void run(const struct header *header, row_fn emit, void *arg)
{
	const struct row start = { 0, 1, 1 };
	struct span code = header->program;
	struct row row = start;

	while (!code.is_bad && code.at < code.end) {
		uint8_t op = (uint8_t)take(&code, 1);
		uint64_t size;
		struct span rest;

		if (op >= header->first_special || op == LNS_CONST_ADD_PC) {
			unsigned by = (op == LNS_CONST_ADD_PC ? 255u : op) - header->first_special;

			row.address += (uint64_t)by / header->line_range * header->step;
			if (op == LNS_CONST_ADD_PC)
				continue;
			row.line += (uint64_t)(header->line_base + (int)(by % header->line_range));
			if (!emit(arg, &row, false))
				return;
		} else if (op == 0) {
			size = take_unsigned(&code);
			rest = code;
			skip(&code, size);
			op = code.is_bad || size == 0 ? 0 : (uint8_t)take(&rest, 1);
			if (op == LNE_SET_ADDRESS)
				row.address = take(&rest, size == 9 ? 8 : 4);
			if (op != LNE_END_SEQUENCE)
				continue;
			if (!emit(arg, &row, true))
				return;
			row = start;
		} else if (op == LNS_COPY) {
			if (!emit(arg, &row, false))
				return;
		} else if (op == LNS_ADVANCE_PC) {
			row.address += take_unsigned(&code) * header->step;
		} else if (op == LNS_ADVANCE_LINE) {
			row.line += (uint64_t)take_signed(&code);
		} else if (op == LNS_SET_FILE) {
			row.file = take_unsigned(&code);
		} else if (op == LNS_FIXED_ADVANCE_PC) {
			row.address += take(&code, 2);
		} else {
			for (unsigned n = header->lengths[op - 1]; n > 0; n--)
				(void)take_unsigned(&code);
		}
	}
}

/* ---- what a unit has ---- */

/* Code that the linker dropped has the address 0. */
static bool note_addresses(void *arg, const struct row *row, bool is_end)
{
	struct unit *unit = arg;

	(void)is_end;
	if (row->address && row->address < unit->low)
		unit->low = row->address;
	if (row->address > unit->high)
		unit->high = row->address;
	return true;
}

#define MAX_SKIPPED 4u

struct search {
	uint64_t address;
	uint64_t skipped[MAX_SKIPPED]; /* files of libraries, whose functions are inlined */
	unsigned n_skipped;
	struct row before; /* address 0: none in this run of code */
	struct row found;  /* line 0: none */
};

static bool look(void *arg, const struct row *row, bool is_end)
{
	struct search *search = arg;

	for (unsigned i = 0; i < search->n_skipped && !is_end; i++)
		if (row->file == search->skipped[i])
			return true;
	if (search->before.address && search->before.address <= search->address &&
		search->address < row->address) {
		search->found = search->before;
		return false;
	}
	search->before = is_end ? (struct row){ 0 } : *row;
	return true;
}

/* ---- the names of files ---- */

struct name {
	const char *text;
	uint64_t directory;
};

/* DWARF 5: the value of one form; its text, if it is one. */
static uint64_t take_form(
	const struct gpc_linetab *table, struct span *names, uint64_t form, const char **ret_text)
{
	static const uint8_t sizes[] = { [FORM_DATA1] = 1,
		[FORM_DATA2] = 2,
		[FORM_DATA4] = 4,
		[FORM_DATA8] = 8,
		[FORM_STRP] = 4 };

	if (form == FORM_UDATA)
		return take_unsigned(names);
	if (form == FORM_STRING)
		*ret_text = take_string(names);
	else if (form == FORM_LINE_STRP)
		*ret_text = string_at(table, take(names, 4));
	else if (form == FORM_DATA16)
		skip(names, 16);
	else if (form == FORM_BLOCK)
		skip(names, take_unsigned(names));
	else if (form < sizeof sizes && sizes[form])
		return take(names, sizes[form]);
	else
		names->is_bad = true;
	return 0;
}

/* DWARF 5: entry `wanted` of the next list (directories, then files); leaves `names` behind the list. */
static struct name take_entry(const struct gpc_linetab *table, struct span *names, uint64_t wanted)
{
	uint64_t formats[MAX_FORMATS][2];
	unsigned n_formats = (unsigned)take(names, 1);
	struct name found = { .text = NULL };
	uint64_t n;

	for (unsigned i = 0; i < n_formats; i++) {
		formats[i % MAX_FORMATS][0] = take_unsigned(names);
		formats[i % MAX_FORMATS][1] = take_unsigned(names);
	}
	n = take_unsigned(names);
	if (n_formats == 0 || n_formats > MAX_FORMATS)
		names->is_bad |= n > 0;
	for (uint64_t entry = 0; entry < n && !names->is_bad; entry++) {
		struct name name = { .text = NULL };

		for (unsigned i = 0; i < n_formats; i++) {
			const char *text = NULL;
			uint64_t value = take_form(table, names, formats[i][1], &text);

			if (formats[i][0] == LNCT_PATH)
				name.text = text;
			if (formats[i][0] == LNCT_DIRECTORY)
				name.directory = value;
		}
		if (entry == wanted)
			found = name;
	}
	return found;
}

/* Before DWARF 5: entry `wanted` (1, 2, ...) of the directories, or of the files; leaves `names` behind the list. */
static struct name take_old_entry(struct span *names, uint64_t wanted, bool is_file)
{
	struct name found = { .text = NULL };

	for (uint64_t entry = 1; !names->is_bad; entry++) {
		struct name name = { .text = take_string(names) };

		if (!*name.text)
			break;
		if (is_file) {
			name.directory = take_unsigned(names);
			(void)take_unsigned(names); /* time */
			(void)take_unsigned(names); /* size */
		}
		if (entry == wanted)
			found = name;
	}
	return found;
}

/* Writes the path of file `number`; with a relative one, as the compiler was given it. */
static bool write_path(const struct gpc_linetab *table, const struct header *header,
	uint64_t number, char *buf, size_t size)
{
	const bool is_new = header->version >= 5;
	struct span names = header->names;
	struct name file;
	struct name directory;

	if (is_new)
		(void)take_entry(table, &names, 0);
	else
		(void)take_old_entry(&names, 0, false);
	file = is_new ? take_entry(table, &names, number) : take_old_entry(&names, number, true);
	if (names.is_bad || !file.text || !*file.text)
		return false;
	/* Directory 0 is that of the compiler. */
	names = header->names;
	directory = is_new ? take_entry(table, &names, file.directory)
			   : take_old_entry(&names, file.directory, false);
	if (*file.text == '/' || file.directory == 0 || !directory.text)
		return gpc_format(buf, size, "%s", file.text) > 0;
	return gpc_format(buf, size, "%s/%s", directory.text, file.text) > 0;
}

/* The line of a unit, and the path of its file.  A call that was inlined from a library's header gets the line before it. */
static bool find_in(const struct gpc_linetab *table, const struct header *header,
	struct search *search, char *file, size_t size)
{
	for (;;) {
		search->before = search->found = (struct row){ 0 };
		run(header, look, search);
		if (!search->found.line || search->found.line > UINT32_MAX ||
			!write_path(table, header, search->found.file, file, size))
			return false;
		if (!gpc_library_holds_header(file))
			return true;
		if (search->n_skipped == MAX_SKIPPED)
			return false;
		search->skipped[search->n_skipped++] = search->found.file;
	}
}

bool gpc_linetab_find(const struct gpc_linetab *table, uint64_t base, uint64_t address,
	uint32_t *ret_line, char *file, size_t size)
{
	struct search search = { .address = address - (table->is_fixed ? 0 : base) };

	for (uint32_t i = 0; i < table->n_units; i++) {
		const struct unit *unit = &table->units[i];
		struct span lines = { table->lines.at + unit->offset, table->lines.end, false };
		struct header header;

		if (search.address < unit->low || search.address >= unit->high ||
			!take_header(&lines, &header))
			continue;
		search.n_skipped = 0;
		if (!find_in(table, &header, &search, file, size))
			continue;
		*ret_line = (uint32_t)search.found.line;
		return true;
	}
	return false;
}

/* ---- the file ---- */

static bool is_named(int fd, const Elf64_Shdr *names, const Elf64_Shdr *section, const char *name)
{
	char text[24] = "";
	size_t size = strlen(name) + 1;

	return gpc_elf_read(fd, text, size, names->sh_offset + section->sh_name) &&
	       memcmp(text, name, size) == 0;
}

/* False: there is no .debug_line that we can read.  Without .debug_line_str its section has the size 0. */
static bool find_sections(int fd, const Elf64_Ehdr *header, Elf64_Shdr *lines, Elf64_Shdr *strings)
{
	Elf64_Shdr names;
	Elf64_Shdr section;

	memset(lines, 0, sizeof *lines);
	memset(strings, 0, sizeof *strings);
	if (!gpc_elf_read_section(fd, header, header->e_shstrndx, &names))
		return false;
	for (uint32_t i = 0; gpc_elf_read_section(fd, header, i, &section); i++) {
		if (section.sh_type != SHT_PROGBITS || (section.sh_flags & SHF_COMPRESSED))
			continue;
		if (is_named(fd, &names, &section, ".debug_line"))
			*lines = section;
		else if (is_named(fd, &names, &section, ".debug_line_str"))
			*strings = section;
	}
	return lines->sh_size && lines->sh_size <= GPC_LINETAB_MAX_BYTES &&
	       strings->sh_size <= GPC_LINETAB_MAX_BYTES;
}

static void index_units(struct gpc_linetab *table)
{
	struct span lines = table->lines;
	struct header header;

	while (lines.at < lines.end && table->n_units < GPC_LINETAB_MAX_UNITS) {
		struct unit *unit = &table->units[table->n_units];

		*unit = (struct unit){ (uint64_t)(lines.at - table->lines.at), UINT64_MAX, 0 };
		if (!take_header(&lines, &header))
			return;
		run(&header, note_addresses, unit);
		table->n_units += unit->low < unit->high;
	}
}

static struct gpc_linetab *open_in(int fd)
{
	struct gpc_linetab *table;
	Elf64_Ehdr header;
	Elf64_Shdr lines;
	Elf64_Shdr strings;
	size_t size;

	if (!gpc_elf_read_header(fd, &header) || !find_sections(fd, &header, &lines, &strings))
		return NULL;
	size = sizeof *table + lines.sh_size + strings.sh_size;
	table = gpc_metamem_map(size);
	if (!table)
		return NULL;
	table->mapped = size;
	table->is_fixed = header.e_type == ET_EXEC;
	table->lines = (struct span){ table->bytes, table->bytes + lines.sh_size, false };
	table->strings =
		(struct span){ table->lines.end, table->lines.end + strings.sh_size, false };
	if (gpc_elf_read(fd, table->bytes, lines.sh_size, lines.sh_offset) &&
		gpc_elf_read(fd, table->bytes + lines.sh_size, strings.sh_size, strings.sh_offset))
		index_units(table);
	return table;
}

struct gpc_linetab *gpc_linetab_open(const char *path)
{
	int fd = gpc_io_open(path, O_RDONLY);
	struct gpc_linetab *table;

	if (fd < 0)
		return NULL;
	table = open_in(fd);
	gpc_io_drop(fd);
	return table;
}

void gpc_linetab_close(struct gpc_linetab *table)
{
	gpc_metamem_unmap(table, table ? table->mapped : 0);
}
