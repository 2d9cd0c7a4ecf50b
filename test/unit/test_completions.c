/* The queue of completions: each is delivered once, with its text. Sets and notes alternate, however few are taken at
 * a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "transport/completions.h"

#define EACH 5

static void fill(struct gw_completions *completions, struct gw_read_set sets[EACH], int cookies[EACH])
{
	static struct gw_read_set *open;
	for (int i = 0; i < EACH; i++) {
		struct gw_note *note;
		sets[i] = (struct gw_read_set){.cookie = &sets[i], .last_accepted = true};
		gw_read_set_start(&open, &sets[i]);
		if (i % 2)
			gw_read_set_fail(&sets[i], gw_fail(GW_RANGE, "group %d", i));
		gw_read_set_settle(completions, &sets[i]);
		gw_read_set_settle(completions, &sets[i]); /* twice is once */
		assert_int_equal(gw_note_create(&cookies[i], &note), GW_OK);
		gw_completions_post(completions, note, i % 2 ? gw_fail(GW_LIMIT, "note %d", i) : GW_OK);
	}
	assert_null(open);
}

static void kinds_alternate(void **state)
{
	(void)state;
	for (size_t max = 1; max < 2 * EACH + 2; max++) {
		struct gw_completions completions;
		struct gw_read_set sets[EACH];
		int cookies[EACH];
		size_t seen = 0, group_count = 0, note_count = 0;
		gw_completions_begin(&completions);
		fill(&completions, sets, cookies);
		for (size_t n; seen < 2 * EACH; seen += n) {
			struct gw_completion taken[2 * EACH + 2];
			n = gw_completions_take(&completions, taken, max);
			assert_in_range(n, 1, max);
			for (size_t i = 0; i < n; i++) {
				bool is_note = taken[i].cookie == &cookies[note_count];
				size_t which = is_note ? note_count++ : group_count++;
				char text[16] = "note 0";
				memcpy(text, is_note ? "note " : "group ", is_note ? 5 : 6);
				text[is_note ? 5 : 6] = (char)('0' + which);
				text[is_note ? 6 : 7] = 0;
				if (!is_note)
					assert_ptr_equal(taken[i].cookie, &sets[which]);
				gw_status failed = is_note ? GW_LIMIT : GW_RANGE;
				assert_int_equal(taken[i].status, which % 2 ? failed : GW_OK);
				assert_string_equal(taken[i].text, which % 2 ? text : "");
				/* No kind is more than two ahead of the other. */
				assert_in_range(group_count + 1 - note_count, 0, 2);
			}
		}
		assert_int_equal(group_count, EACH);
		assert_int_equal(note_count, EACH);
		assert_true(gw_completions_empty(&completions));
		assert_int_equal(gw_completions_take(&completions, NULL, 0), 0);
		gw_completions_end(&completions);
	}
}

static void ends_with_some_left(void **state)
{
	(void)state;
	struct gw_completions completions;
	struct gw_read_set sets[EACH];
	int cookies[EACH];
	struct gw_completion taken[3];
	gw_completions_begin(&completions);
	fill(&completions, sets, cookies);
	assert_int_equal(gw_completions_take(&completions, taken, 3), 3);
	gw_completions_end(&completions);
	assert_true(gw_completions_empty(&completions));
	gw_completions_end(&completions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(kinds_alternate), cmocka_unit_test(ends_with_some_left)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
