/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One list per kind of name: frames, stacks, ranges.  The first request for a name's number writes the name's element
 * into the list's text.
 */
#include "tools/gpumem-report/html/name_table.h"

#include <stdlib.h>
#include <string.h>

#include "format/memory.h"
#include "tools/gpumem-report/holders/call_sites.h"

/* Flags of a frame. */
enum {
	FLAG_PYTHON = 1,
	FLAG_LIBRARY = 2,
	/* No frame, but the name of what holds the memory: a context, a module, ... */
	FLAG_WHAT = 4,
};

/* The names of one kind, with their numbers, and the text that lists their elements. */
struct list {
	struct gpc_map numbers; /* of gpc_map_number */
	char *text;
	size_t size;
	FILE *out;
};

struct gpc_html_names {
	const struct gpc_report *report;
	struct list frames;
	struct list stacks;
	struct list tags;
	/* Caches of numbers: 1 + the number; 0: not in the cache yet. */
	unsigned *tag_numbers;   /* parallel to recording->tags */
	unsigned *stack_numbers; /* parallel to recording->stacks, of samples without `what` */
	struct gpc_export_numbers frame_numbers;
};

void gpc_html_put(void *self, const char *bytes, size_t n)
{
	const char *end = bytes + n;

	while (bytes < end) {
		const char *special = memchr(bytes, '<', (size_t)(end - bytes)) ?: end;

		fwrite_unlocked(bytes, 1, (size_t)(special - bytes), self);
		if (special < end)
			fputs("\\u003c", self);
		bytes = special + 1;
	}
}

static void put_text(FILE *out, const char *text)
{
	gpc_json_put_string(gpc_html_put, out, text);
}

static void list_init(struct list *list)
{
	list->out = gpc_checked(open_memstream(&list->text, &list->size));
}

static void list_fini(struct list *list)
{
	gpc_map_fini(&list->numbers);
	fclose(list->out);
	free(list->text);
}

/* Returns the number of the name.  If *ret_is_new, the caller writes the name's element to list->out. */
static unsigned number_of(struct list *list, const char *name, bool *ret_is_new)
{
	unsigned number = (unsigned)gpc_map_number(&list->numbers, name, ret_is_new);

	if (*ret_is_new && number)
		fputs(",\n", list->out);
	return number;
}

struct gpc_html_names *gpc_html_names_create(const struct gpc_report *report)
{
	struct gpc_html_names *names = gpc_new(1, sizeof *names);

	names->report = report;
	names->tag_numbers = gpc_new(report->recording->n_tags, sizeof *names->tag_numbers);
	names->stack_numbers = gpc_new(report->recording->n_stacks, sizeof *names->stack_numbers);
	list_init(&names->frames);
	list_init(&names->stacks);
	list_init(&names->tags);
	return names;
}

void gpc_html_names_destroy(struct gpc_html_names *names)
{
	list_fini(&names->frames);
	list_fini(&names->stacks);
	list_fini(&names->tags);
	free(names->tag_numbers);
	free(names->stack_numbers);
	gpc_export_numbers_fini(&names->frame_numbers);
	free(names);
}

static unsigned frame_number(
	struct gpc_html_names *names, const struct gpc_export_sample *sample, size_t i)
{
	GPC_TEXT(text, GPC_EXPORT_NAME_SIZE);
	const struct gpc_frame *frame = gpc_export_frame(names->report, sample, i);
	unsigned flags = FLAG_WHAT;
	unsigned number;

	if (!gpc_export_number(&names->frame_numbers, names->report, sample, i, &text, &number))
		return number;
	if (frame)
		flags = (frame->is_python ? FLAG_PYTHON : 0) |
			(frame->is_library ? FLAG_LIBRARY : 0);
	fputs(number ? ",\n[" : "[", names->frames.out);
	put_text(names->frames.out, text.buf);
	fprintf(names->frames.out, ",%u]", flags);
	return number;
}

/* Writes the call site and its callers, named as in call_sites.c, and the function that the site called. */
static void put_sites(struct gpc_html_names *names, const struct gpc_export_sample *sample)
{
	const struct gpc_stack_frames *stack =
		sample->stack ? gpc_frames_find(names->report->frames, sample->stack) : NULL;
	bool has_callers = stack && stack->site >= 0 && !sample->what;
	unsigned n = 1;
	GPC_TEXT(text, GPC_EXPORT_NAME_SIZE);

	if (sample->what)
		gpc_text_add(&text, "%s", sample->what);
	else
		gpc_frames_site(names->report->frames, sample->stack, &text);
	put_text(names->stacks.out, text.buf);
	for (size_t i = has_callers ? (size_t)stack->site + 1 : SIZE_MAX;
		has_callers && i < stack->n && n < GPC_SITES_MAX_DEPTH; i++) {
		if (stack->frames[i].is_library)
			continue;
		gpc_text_clear(&text);
		gpc_frame_add_caller(&stack->frames[stack->site], &stack->frames[i], &text);
		fputc(',', names->stacks.out);
		put_text(names->stacks.out, text.buf);
		n++;
	}
	gpc_text_clear(&text);
	if (has_callers)
		gpc_frames_via(stack, &text);
	fputs("],", names->stacks.out);
	put_text(names->stacks.out, text.buf);
	fprintf(names->stacks.out, ",%d,[", sample->what != NULL);
}

static unsigned find_stack(struct gpc_html_names *names, const struct gpc_export_sample *sample)
{
	size_t depth;
	char key[160];
	unsigned number;
	bool is_new;

	snprintf(key, sizeof key, "%u %s", sample->stack, sample->what ? sample->what : "");
	number = number_of(&names->stacks, key, &is_new);
	if (!is_new)
		return number;
	fputs("[[", names->stacks.out);
	put_sites(names, sample);
	depth = gpc_export_depth(names->report, sample);
	for (size_t i = 1; i < depth; i++)
		fprintf(names->stacks.out, "%s%u", i > 1 ? "," : "",
			frame_number(names, sample, i));
	fputs("]]", names->stacks.out);
	return number;
}

unsigned gpc_html_names_stack(struct gpc_html_names *names, const struct gpc_export_sample *sample)
{
	const struct gpc_recording *rec = names->report->recording;
	size_t row = gpc_record_number(rec->stacks, rec->n_stacks, sample->stack);
	bool is_known = !sample->what && row < rec->n_stacks;
	unsigned number;

	/* This is called for each block, so the number is cached. */
	if (is_known && names->stack_numbers[row])
		return names->stack_numbers[row] - 1;
	number = find_stack(names, sample);
	if (is_known)
		names->stack_numbers[row] = number + 1;
	return number;
}

unsigned gpc_html_names_tag(struct gpc_html_names *names, uint32_t tag)
{
	const struct gpc_recording *rec = names->report->recording;
	size_t row = gpc_record_number(rec->tags, rec->n_tags, tag);
	GPC_TEXT(text, GPC_LABEL_SIZE);
	unsigned number;
	bool is_new;

	/* This is called for each block, too, and the text of a range may be long. */
	if (row < rec->n_tags && names->tag_numbers[row])
		return names->tag_numbers[row] - 1;
	gpc_recording_add_tag(rec, tag, &text);
	number = number_of(&names->tags, text.buf, &is_new);
	if (is_new)
		put_text(names->tags.out, text.buf);
	if (row < rec->n_tags)
		names->tag_numbers[row] = number + 1;
	return number;
}

static void show_list(struct gpc_document *doc, struct list *list, const char *key)
{
	const struct gpc_section section = { key, .flags = GPC_FLAT };

	fflush(list->out);
	gpc_document_open(doc, &section);
	fwrite(list->text, 1, list->size, doc->self);
	gpc_document_close(doc);
}

void gpc_html_names_show(struct gpc_html_names *names, struct gpc_document *doc)
{
	show_list(doc, &names->frames, "frames");
	show_list(doc, &names->stacks, "stacks");
	show_list(doc, &names->tags, "tags");
}
