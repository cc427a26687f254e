/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intrusive doubly linked lists.
 *
 * A struct gpc_list is a link inside an element, or the head of a list.  The head is part of the ring, so the head of
 * an empty list points at itself.  A list never allocates memory and never frees its elements.
 */
#ifndef GPC_BASE_LIST_H
#define GPC_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct gpc_list {
	struct gpc_list *next;
	struct gpc_list *prev;
};

/* The element of type `type` whose link `member` is *link. */
#define gpc_list_entry(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

#define gpc_list_each(at, list) \
	for (struct gpc_list *at = (list)->next; at != (list); at = at->next)

/* As gpc_list_each, but the body may remove `at` from the list. */
#define gpc_list_each_safe(at, list)                                                  \
	for (struct gpc_list *at = (list)->next, *at##_next = at->next; at != (list); \
		at = at##_next, at##_next = at->next)

#define GPC_LIST_INIT(list)                      \
	{                                        \
		.next = &(list), .prev = &(list) \
	}

static inline void gpc_list_init(struct gpc_list *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool gpc_list_is_empty(const struct gpc_list *list)
{
	return list->next == list;
}

static inline void gpc_list_append(struct gpc_list *list, struct gpc_list *link)
{
	link->prev = list->prev;
	link->next = list;
	list->prev->next = link;
	list->prev = link;
}

/* Removes `link` from its list.  The link is then an empty list, so a second removal changes nothing. */
static inline void gpc_list_remove(struct gpc_list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	gpc_list_init(link);
}

/* Moves all elements of `from` to the end of `list`; `from` is then empty. */
static inline void gpc_list_append_all(struct gpc_list *list, struct gpc_list *from)
{
	if (gpc_list_is_empty(from))
		return;
	from->next->prev = list->prev;
	list->prev->next = from->next;
	from->prev->next = list;
	list->prev = from->prev;
	gpc_list_init(from);
}

#endif
