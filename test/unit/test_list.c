/* Intrusive lists compared with an array of members, while items are inserted and removed in any order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/memory/list.h"
#include "core/numbers/rng.h"

#define ITEMS 7u
#define STEPS 20000u

struct item {
	struct item *next, **previous;
	struct item *link;
	bool in;
	uint32_t joined; /* the step */
};

static void check_order(const struct item *items, const struct item *const *found, uint32_t count, bool newest_first)
{
	uint32_t in = 0;
	for (uint32_t i = 0; i < ITEMS; i++)
		in += items[i].in;
	assert_int_equal(count, in);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(found[i]->in);
		if (i > 0 && newest_first)
			assert_true(found[i - 1]->joined > found[i]->joined);
		else if (i > 0)
			assert_true(found[i - 1]->joined < found[i]->joined);
	}
}

static struct item *any(struct item *items, uint32_t step)
{
	return &items[gw_mix64(step) % ITEMS];
}

static void test_list(void **state)
{
	(void)state;
	struct item items[ITEMS] = {0}, *head = NULL;
	for (uint32_t step = 1; step <= STEPS; step++) {
		struct item *item = any(items, step);
		item->in = !item->in;
		item->joined = step;
		if (item->in)
			GW_LIST_INSERT(head, item);
		else
			GW_LIST_REMOVE(item);
		const struct item *found[ITEMS + 1];
		uint32_t count = 0;
		struct item **link = &head;
		for (; *link && count <= ITEMS; link = &(*link)->next) {
			assert_ptr_equal((*link)->previous, link);
			found[count++] = *link;
		}
		check_order(items, found, count, true);
	}
}

static void test_slist(void **state)
{
	(void)state;
	struct item items[ITEMS] = {0}, *head = NULL;
	for (uint32_t step = 1; step <= STEPS; step++) {
		struct item *item = any(items, step);
		item->in = !item->in;
		item->joined = step;
		if (item->in) {
			item->link = head;
			head = item;
		} else {
			GW_SLIST_REMOVE(head, item, link);
		}
		const struct item *found[ITEMS + 1];
		uint32_t count = 0;
		for (const struct item *at = head; at && count <= ITEMS; at = at->link)
			found[count++] = at;
		check_order(items, found, count, true);
	}
}

static void test_queue(void **state)
{
	(void)state;
	struct item items[ITEMS] = {0}, *head = NULL, **end = &head;
	for (uint32_t step = 1; step <= STEPS; step++) {
		struct item *item = any(items, step);
		item->in = !item->in;
		item->joined = step;
		if (item->in) {
			item->link = NULL;
			*end = item;
			end = &item->link;
		} else {
			GW_QUEUE_REMOVE(head, end, item, link);
		}
		const struct item *found[ITEMS + 1];
		uint32_t count = 0;
		struct item **link = &head;
		for (; *link && count <= ITEMS; link = &(*link)->link)
			found[count++] = *link;
		assert_ptr_equal(end, link);
		check_order(items, found, count, false);
	}
}

/* Arguments of the macros may have side effects, and a macro is one statement. */
static void test_arguments(void **state)
{
	(void)state;
	struct item items[3] = {0}, *heads[2] = {NULL, NULL};
	uint32_t i = 0, h = 0;
	while (i < 3)
		GW_LIST_INSERT(heads[0], &items[i++]);
	assert_ptr_equal(heads[0], &items[2]);
	GW_LIST_INSERT(heads[++h], items + 0);
	assert_int_equal(h, 1);
	assert_ptr_equal(heads[1], &items[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_slist),
		cmocka_unit_test(test_queue),
		cmocka_unit_test(test_arguments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
