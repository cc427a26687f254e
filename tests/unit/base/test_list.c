/* SPDX-License-Identifier: Apache-2.0 */
#include "base/list.h"
#include "unit.h"

struct item {
	int value;
	struct gpc_list link;
};

static void assert_values(struct gpc_list *list, const char *expected)
{
	char text[32] = "";
	char back[32] = "";
	size_t n = 0;

	gpc_list_each (at, list)
		text[n++] = (char)('0' + gpc_list_entry(at, struct item, link)->value);
	assert_string_equal(text, expected);
	for (struct gpc_list *at = list->prev; at != list; at = at->prev)
		back[--n] = (char)('0' + gpc_list_entry(at, struct item, link)->value);
	assert_string_equal(back, expected);
}

TEST(elements_stay_in_order)
{
	struct item items[4] = { { .value = 0 }, { .value = 1 }, { .value = 2 }, { .value = 3 } };
	struct gpc_list list;
	struct gpc_list other;

	gpc_list_init(&list);
	gpc_list_init(&other);
	assert_true(gpc_list_is_empty(&list));
	for (int i = 0; i < 3; i++)
		gpc_list_append(&list, &items[i].link);
	assert_values(&list, "012");
	gpc_list_remove(&items[1].link);
	gpc_list_remove(&items[1].link); /* does no harm */
	assert_values(&list, "02");
	gpc_list_append(&other, &items[3].link);
	gpc_list_append_all(&other, &list);
	assert_values(&other, "302");
	assert_true(gpc_list_is_empty(&list));
	gpc_list_append_all(&other, &list);
	assert_values(&other, "302");
	gpc_list_append_all(&list, &other);
	assert_values(&list, "302");
}

TEST(the_body_may_remove_what_it_looks_at)
{
	struct item items[3] = { { .value = 0 }, { .value = 1 }, { .value = 2 } };
	struct gpc_list list;

	gpc_list_init(&list);
	for (int i = 0; i < 3; i++)
		gpc_list_append(&list, &items[i].link);
	gpc_list_each_safe (at, &list) {
		if (gpc_list_entry(at, struct item, link)->value != 1)
			gpc_list_remove(at);
	}
	assert_values(&list, "1");
}
