/* The search for times by pieces beside counting: answers are exact, rounds are few, and shared levels are read once.
 * Keys that are not in order are noticed, or do no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "sampler/time_search.h"

#define ROWS_MAX  100000u
#define TIMES_MAX 40u

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return x < y ? -1 : x > y;
}

struct search {
	uint64_t rows;
	int64_t *keys;
	uint32_t time_count;
	int64_t times[TIMES_MAX];
	uint64_t answers[TIMES_MAX];
	uint64_t read; /* entries */
	uint32_t rounds;
};

/* False: the keys are not in order. */
static bool run_search(struct search *search, uint32_t most)
{
	struct gw_time_segment segments[TIMES_MAX], next[TIMES_MAX], out[GW_TIME_ENTRIES_MAX * GW_TIME_WHOLE + 1];
	uint32_t count = 1;
	segments[0] = gw_time_segment_begin(7, search->time_count, search->rows);
	search->read = search->rounds = 0;
	while (count > 0) {
		uint32_t made = 0;
		for (uint32_t s = 0; s < count; s++) {
			int64_t keys[GW_TIME_ENTRIES_MAX * GW_TIME_WHOLE];
			uint32_t n = gw_time_entries(&segments[s], most);
			for (uint32_t i = 0; i < n; i++) {
				uint64_t entry = gw_time_entry(&segments[s], n, i);
				assert_true(entry < search->rows);
				keys[i] = search->keys[entry];
			}
			search->read += n;
			uint32_t split = gw_time_split(&segments[s], search->times, keys, n, out);
			if (split == 0)
				return false;
			assert_true(split <= n + 1 && split <= segments[s].count);
			for (uint32_t i = 0; i < split; i++) {
				assert_int_equal(out[i].part, 7);
				assert_true(out[i].low <= out[i].high && out[i].high <= search->rows);
				if (out[i].low < out[i].high)
					next[made++] = out[i];
				for (uint32_t t = 0; out[i].low == out[i].high && t < out[i].count; t++)
					search->answers[out[i].first + t] = out[i].low;
			}
		}
		memcpy(segments, next, made * sizeof(*next));
		count = made;
		search->rounds++;
		assert_true(search->rounds < 64);
	}
	return true;
}

/* Keys of which many are equal, at the ends of all numbers too. */
static void make_search(struct search *search, uint64_t variant)
{
	uint64_t word = gw_mix64(variant + 5);
	search->rows = variant % 4 ? 1 + word % 200 : 1 + word % ROWS_MAX;
	search->time_count = 1 + (uint32_t)(word >> 32) % TIMES_MAX;
	uint64_t range = 1 + (word >> 40) % (4 * search->rows);
	for (uint64_t i = 0; i < search->rows; i++) {
		uint64_t key = gw_mix64(variant * ROWS_MAX + i);
		search->keys[i] = key % 97 == 0 ? INT64_MIN : key % 89 == 0 ? INT64_MAX : (int64_t)(key % range);
	}
	for (uint32_t t = 0; t < search->time_count; t++) {
		uint64_t key = gw_mix64(~variant * 50 + t);
		search->times[t] = key % 13 == 0   ? INT64_MIN
				   : key % 11 == 0 ? INT64_MAX
						   : (int64_t)(key % (range + 2)) - 1;
	}
	qsort(search->times, search->time_count, sizeof(*search->times), by_value);
}

static void answers_are_exact(void **state)
{
	(void)state;
	struct search search = {.keys = malloc(ROWS_MAX * sizeof(int64_t))};
	for (uint64_t variant = 0; variant < 300; variant++) {
		make_search(&search, variant);
		qsort(search.keys, search.rows, sizeof(*search.keys), by_value);
		for (uint32_t most = 1; most <= GW_TIME_ENTRIES_MAX; most += 7) {
			assert_true(run_search(&search, most));
			for (uint32_t t = 0; t < search.time_count; t++) {
				uint64_t n = 0;
				while (n < search.rows && search.keys[n] <= search.times[t])
					n++;
				assert_int_equal(search.answers[t], n);
			}
			if (most == GW_TIME_ENTRIES_MAX)
				assert_true(search.rounds <= 4);
		}
	}
	free(search.keys);
}

/* All of them want the same answer. */
static void times_share_what_is_read(void **state)
{
	(void)state;
	struct search search = {.rows = ROWS_MAX, .keys = malloc(ROWS_MAX * sizeof(int64_t)), .time_count = 1};
	for (int64_t i = 0; i < ROWS_MAX; i++)
		search.keys[i] = i;
	search.times[0] = 777;
	assert_true(run_search(&search, GW_TIME_ENTRIES_MAX));
	uint64_t alone = search.read;
	search.time_count = TIMES_MAX;
	for (uint32_t t = 0; t < TIMES_MAX; t++)
		search.times[t] = 777;
	assert_true(run_search(&search, GW_TIME_ENTRIES_MAX));
	assert_int_equal(search.read, alone);
	free(search.keys);
}

static void disorder_is_noticed_or_harmless(void **state)
{
	(void)state;
	struct search search = {.keys = malloc(ROWS_MAX * sizeof(int64_t))};
	uint32_t noticed = 0;
	for (uint64_t variant = 0; variant < 300; variant++) {
		make_search(&search, variant);
		noticed += !run_search(&search, 1 + (uint32_t)variant % GW_TIME_ENTRIES_MAX);
	}
	assert_true(noticed > 200);
	/* Descending keys have an answer only if no two of them are read. */
	search.rows = 1000;
	for (int64_t i = 0; i < 1000; i++)
		search.keys[i] = -i;
	assert_false(run_search(&search, 1));
	free(search.keys);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_exact),
		cmocka_unit_test(times_share_what_is_read),
		cmocka_unit_test(disorder_is_noticed_or_harmless),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
