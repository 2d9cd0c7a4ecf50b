/* Shared code of benchmarks: medians, alternation, JSON lines; and one benchmark, small, from end to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <math.h>

#include <jansson.h>

#include "bench/rounds.h"
#include "core/files/staging.h"
#include "core/numbers/rng.h"
#include "test/support/scratch.h"

static void test_median_and_spread(void **state)
{
	(void)state;
	static struct gw_bench_series series;
	series.count = 0;
	assert_true(gw_bench_series_median(&series) == 0);
	static const double values[] = {5, 1, 9, 3};
	static const double medians[] = {5, 3, 5, 4};
	for (int i = 0; i < 4; i++) {
		gw_bench_series_add(&series, values[i]);
		assert_true(gw_bench_series_median(&series) == medians[i]);
	}
	assert_true(gw_bench_series_spread(&series) == 2);
	assert_true(series.values[0] == 5); /* the order of the repeats is kept */
}

struct turns {
	char log[64];
	unsigned count;
	unsigned fail_at;
};

static gw_status take_turn(struct turns *turns, char who, double *figure)
{
	turns->log[turns->count++] = who;
	*figure = turns->count;
	return turns->count == turns->fail_at ? gw_fail(GW_IO, "turn %u", turns->count) : GW_OK;
}

static gw_status turn_ceiling(void *context, double *figure)
{
	return take_turn(context, 'c', figure);
}

static gw_status turn_value(void *context, double *figure)
{
	return take_turn(context, 'v', figure);
}

static void test_turns(void **state)
{
	(void)state;
	static struct gw_bench_series ceilings, values;
	const struct gw_bench bench = {.name = "test", .repeats = 5};
	struct turns turns = {0};
	assert_int_equal(gw_bench_alternate(&bench, turn_ceiling, turn_value, &turns, &ceilings, &values), GW_OK);
	assert_string_equal(turns.log, "cvvccvvccv");
	assert_int_equal(ceilings.count, 5);
	assert_int_equal(values.count, 5);
	ceilings.count = values.count = 0;
	turns = (struct turns){0};
	assert_int_equal(gw_bench_alternate(&bench, NULL, turn_value, &turns, &ceilings, &values), GW_OK);
	assert_string_equal(turns.log, "vvvvv");
	turns = (struct turns){.fail_at = 3};
	assert_int_equal(gw_bench_alternate(&bench, turn_ceiling, turn_value, &turns, &ceilings, &values), GW_IO);
	assert_int_equal(turns.count, 3);
}

/* --- Rounds. --- */

static gw_status count_rounds(struct turns *turns, char who, uint32_t rounds, double *microseconds, double each)
{
	double unused;
	for (uint32_t i = 0; i < rounds; i++)
		microseconds[i] = each;
	return take_turn(turns, who, &unused);
}

static gw_status ceiling_rounds(void *context, uint32_t rounds, double *microseconds)
{
	return count_rounds(context, 'c', rounds, microseconds, 4);
}

static gw_status value_rounds(void *context, uint32_t rounds, double *microseconds)
{
	return count_rounds(context, 'v', rounds, microseconds, rounds == 50 ? 40 : 5);
}

/* A repeat alternates between slices; its figure is the median of all its rounds. */
static void test_rounds(void **state)
{
	(void)state;
	static struct gw_rounds rounds;
	const struct gw_bench bench = {.name = "test", .repeats = 5};
	struct turns turns = {0};
	assert_int_equal(gw_rounds_run(&rounds, &bench, 250, ceiling_rounds, value_rounds, &turns), GW_OK);
	assert_string_equal(turns.log, "cvvccvcvvccvcvvccvcvvccvcvvccv");
	assert_int_equal(rounds.value.p50.count, 5);
	assert_true(gw_bench_series_median(&rounds.value.p50) == 5);
	assert_true(gw_bench_series_median(&rounds.value.p99) == 40);
	assert_true(gw_bench_series_median(&rounds.ceiling.p50) == 4);
	assert_int_equal(rounds.value.slice_count, 15);
	assert_int_equal(rounds.ceiling.slice_count, 15);
	gw_rounds_free(&rounds);
	turns = (struct turns){.fail_at = 4};
	assert_int_equal(gw_rounds_run(&rounds, &bench, 250, ceiling_rounds, value_rounds, &turns), GW_IO);
	assert_int_equal(turns.count, 4);
	gw_rounds_free(&rounds);
}

/* Bell-shaped: each value is the sum of four draws. */
static size_t add_bell(double *values, size_t count, size_t n, double time, double width)
{
	static uint64_t draws;
	for (size_t i = 0; i < n; i++) {
		double sum = 0;
		for (int j = 0; j < 4; j++)
			sum += (double)(gw_mix64(++draws) >> 11) / (double)(1ull << 53) - 0.5;
		values[count++] = time * (1 + width * sum);
	}
	return count;
}

static void test_modes(void **state)
{
	(void)state;
	double values[400];
	/* A single mode of wake-up times, narrow or wide, with a few outliers. */
	assert_false(gw_rounds_find_modes(values, add_bell(values, 0, 300, 7, 0.05)).two);
	assert_false(gw_rounds_find_modes(values, add_bell(values, 0, 300, 7, 0.4)).two);
	size_t count = add_bell(values, 0, 300, 7, 0.1);
	assert_false(gw_rounds_find_modes(values, add_bell(values, count, 10, 500, 0.5)).two);
	for (size_t i = 0; i < 300; i++)
		values[i] = 7 + (double)i / 30; /* flat from 7 to 17 */
	assert_false(gw_rounds_find_modes(values, 300).two);
	/* Two modes and their shares, also with outliers. */
	count = add_bell(values, 0, 200, 7, 0.1);
	count = add_bell(values, count, 100, 19, 0.1);
	count = add_bell(values, count, 5, 900, 0.1);
	struct gw_rounds_modes modes = gw_rounds_find_modes(values, count);
	assert_true(modes.two);
	assert_true(fabs(modes.low_us - 7) < 0.5 && fabs(modes.high_us - 19) < 1);
	assert_true(fabs(modes.high_share - 0.33) < 0.05);
	/* Two modes close together, a rare one, and too few values to separate modes. */
	count = add_bell(values, 0, 200, 7, 0.02);
	assert_false(gw_rounds_find_modes(values, add_bell(values, count, 100, 8.5, 0.02)).two);
	count = add_bell(values, 0, 290, 7, 0.05);
	assert_false(gw_rounds_find_modes(values, add_bell(values, count, 30, 19, 0.05)).two);
	count = add_bell(values, 0, 6, 7, 0.05);
	assert_false(gw_rounds_find_modes(values, add_bell(values, count, 6, 19, 0.05)).two);
}

static json_t *read_line(const char *path)
{
	json_error_t error;
	json_t *object = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (!object)
		fail_msg("%s: %s", path, error.text);
	return object;
}

static void test_report(void **state)
{
	(void)state;
	char path[] = "/tmp/gw-test-bench-XXXXXX";
	close(mkstemp(path));
	struct gw_bench bench = {.name = "test", .json_path = path};
	assert_int_equal(gw_bench_open(&bench), GW_OK);
	bench.table = fopen("/dev/null", "w");
	static struct gw_bench_series values, ceilings;
	values.count = ceilings.count = 0;
	for (int i = 1; i <= 5; i++) {
		gw_bench_series_add(&values, i);
		gw_bench_series_add(&ceilings, 2 * i);
	}
	const struct gw_bench_result result = {
		.title = "a \"case\" \\ \n",
		.unit = "GB/s",
		.values = &values,
		.ceilings = &ceilings,
		.verified = true,
		.fields = {{"p50_us", .number = 1.5}, {"never", .number = INFINITY}, {"driver", .text = "pread"}}};
	gw_bench_report(&bench, &result);
	fclose(bench.table);
	assert_int_equal(gw_bench_close(&bench), GW_OK);
	json_t *object = read_line(path);
	assert_string_equal(json_string_value(json_object_get(object, "bench")), "test");
	assert_string_equal(json_string_value(json_object_get(object, "case")), result.title);
	assert_true(json_number_value(json_object_get(object, "value")) == 3);
	assert_true(json_number_value(json_object_get(object, "ceiling")) == 6);
	assert_true(json_number_value(json_object_get(object, "ratio")) == 0.5);
	assert_true(json_is_true(json_object_get(object, "verified")));
	assert_true(json_number_value(json_object_get(object, "p50_us")) == 1.5);
	assert_true(json_is_null(json_object_get(object, "never")));
	assert_string_equal(json_string_value(json_object_get(object, "driver")), "pread");
	json_decref(object);
	unlink(path);
}

static void test_json_nowhere(void **state)
{
	(void)state;
	struct gw_bench bench = {.name = "test", .json_path = "/no/such/folder/x.json"};
	assert_int_equal(gw_bench_open(&bench), GW_IO);
	bench.json_path = "/dev/full";
	assert_int_equal(gw_bench_open(&bench), GW_OK);
	fputs("{}\n", bench.json);
	assert_int_equal(gw_bench_close(&bench), GW_NO_SPACE);
}

static void test_json_of_several(void **state)
{
	(void)state;
	char path[] = "/tmp/gw-test-bench-XXXXXX", text[64] = "";
	close(mkstemp(path));
	struct gw_bench bench = {.name = "test", .json_path = path};
	for (int i = 0; i < 4; i++) {
		assert_int_equal(gw_bench_open(&bench), GW_OK);
		fprintf(bench.json, "%d\n", i);
		assert_int_equal(gw_bench_close(&bench), GW_OK);
		if (i == 1)
			gw_bench_json_continue();
	}
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fread(text, 1, sizeof(text) - 1, file), 6);
	assert_string_equal(text, "1\n2\n3\n");
	fclose(file);
	unlink(path);
}

static void test_load_from_end_to_end(void **state)
{
	(void)state;
	char folder[] = "/var/tmp/gw-test-bench-XXXXXX", json[64];
	gw_scratch_make(folder);
	snprintf(json, sizeof(json), "%s/load.json", folder);
	char *arguments[] = {"load", "--folder",  folder, "--size", "9Mi", "--files",
			     "2",    "--repeats", "5",    "--json", json,  NULL};
	int status = gw_bench_load(11, arguments);
	if (status != 0) { /* a machine without io_uring or O_DIRECT cannot measure a ceiling, and reports that */
		assert_int_equal(status, 1);
		assert_non_null(strstr(gw_last_error(), "io_uring"));
	} else {
		json_t *object = read_line(json);
		assert_true(json_number_value(json_object_get(object, "ratio")) > 0);
		assert_true(json_is_true(json_object_get(object, "verified")));
		assert_int_equal(json_integer_value(json_object_get(object, "repeats")), 5);
		json_decref(object);
		assert_int_equal(unlink(json), 0);
	}
	assert_int_equal(rmdir(folder), 0); /* the input was removed */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_median_and_spread),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_rounds),
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_report),
		cmocka_unit_test(test_json_nowhere),
		cmocka_unit_test(test_load_from_end_to_end),
		cmocka_unit_test(test_json_of_several), /* affects the rest of the process */
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
