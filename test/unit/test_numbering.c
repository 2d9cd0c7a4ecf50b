/* Numbers by first appearance compared with a plain search, for text and integers, with any columns, threads and
 * memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"
#include "tools/import/numbering.h"
#include "tools/import/table.h"

#define ROWS   70000u /* more than two pieces */
#define LIMITS 4u

/* The least memory makes the most runs. */
static const uint64_t limits[LIMITS] = {0, 1, 200u << 10, 4u << 20};

static struct gw_spill spill; /* without files, unless a test opens it */

static struct gw_numbering_memory limited(uint64_t bytes)
{
	return (struct gw_numbering_memory){.spill = &spill, .bytes = bytes};
}

struct input {
	uint64_t single[ROWS / 10], first[ROWS], second[ROWS];
	uint64_t single_in[ROWS / 10], first_in[ROWS], second_in[ROWS];
	char *text[2];
	struct gw_numbering_column columns[2];
};

static uint64_t draw(uint64_t i, uint64_t salt)
{
	struct gw_words words = gw_philox(salt, i, 0);
	/* A few hubs, many rare values; values far apart. */
	return words.word[0] % 4 == 0 ? words.word[1] % 5 : (uint64_t)(words.word[1] % 30000) * 0x1000000001ull;
}

static struct input *make_input(bool text)
{
	struct input *in = calloc(1, sizeof(*in));
	for (int t = 0; t < 2 && text; t++)
		in->text[t] = malloc(ROWS * 64ull);
	size_t used[2] = {0, 0};
	for (uint64_t i = 0; i < ROWS / 10; i++)
		in->single_in[i] = draw(i, 1);
	for (uint64_t i = 0; i < ROWS; i++) {
		in->first_in[i] = draw(i, 2);
		in->second_in[i] = draw(i, 3);
	}
	struct {
		uint64_t *values, *out, count;
		int text;
	} parts[] = {{in->single_in, in->single, ROWS / 10, 0},
		     {in->first_in, in->first, ROWS, 1},
		     {in->second_in, in->second, ROWS, 1}};
	for (int p = 0; p < 3; p++) {
		for (uint64_t i = 0; i < parts[p].count; i++) {
			parts[p].out[i] = parts[p].values[i];
			if (!text)
				continue;
			char *at = in->text[parts[p].text] + used[parts[p].text];
			int bytes = sprintf(at, "node-%llu", (unsigned long long)parts[p].values[i]);
			parts[p].out[i] = gw_text_ref(used[parts[p].text], (uint64_t)bytes, false);
			used[parts[p].text] += (size_t)bytes;
		}
	}
	in->columns[0] = (struct gw_numbering_column){.first = in->single, .rows = ROWS / 10, .text = in->text[0]};
	in->columns[1] = (struct gw_numbering_column){
		.first = in->first, .second = in->second, .rows = ROWS, .text = in->text[1]};
	return in;
}

static void free_input(struct input *in)
{
	free(in->text[0]);
	free(in->text[1]);
	free(in);
}

/* Walks the values in the documented order, and numbers them with a table of all 30005 possible values. */
static void check(const struct input *in, const struct gw_numbering *numbering, bool text)
{
	int64_t *known = malloc(40000 * sizeof(*known));
	for (int i = 0; i < 40000; i++)
		known[i] = -1;
	uint64_t next = 0;
	for (uint64_t p = 0; p < ROWS / 10 + 2 * ROWS; p++) {
		uint64_t pair = p - ROWS / 10;
		uint64_t value = p < ROWS / 10 ? in->single_in[p]
				 : pair % 2    ? in->second_in[pair / 2]
					       : in->first_in[pair / 2];
		uint64_t got = p < ROWS / 10 ? in->single[p] : pair % 2 ? in->second[pair / 2] : in->first[pair / 2];
		int64_t *place = &known[value < 5 ? value : 5 + value / 0x1000000001ull];
		if (*place < 0) {
			*place = (int64_t)next++;
			assert_int_equal(numbering->columns[*place], p < ROWS / 10 ? 0 : 1);
			if (!text)
				assert_int_equal(numbering->values[*place], value);
		}
		assert_int_equal(got, *place);
	}
	assert_int_equal(numbering->count, next);
	free(known);
}

static void number_and_check(bool text, unsigned threads, uint64_t limit)
{
	struct input *in = make_input(text);
	struct gw_numbering numbering;
	const struct gw_numbering_memory memory = limited(limit);
	assert_int_equal(gw_numbering_create(in->columns, 2, threads, &memory, &numbering), GW_OK);
	assert_int_equal(numbering.runs > 1, limit > 0);
	check(in, &numbering, text);
	gw_numbering_free(&numbering);
	free_input(in);
}

static void first_appearance(void **state)
{
	(void)state;
	for (unsigned l = 0; l < LIMITS; l++) {
		for (unsigned threads = 1; threads <= 7; threads += 3) {
			number_and_check(false, threads, limits[l]);
			number_and_check(true, threads, limits[l]);
		}
	}
}

/* All blocks are files. */
static void files(void **state)
{
	(void)state;
	assert_int_equal(gw_spill_open(&spill, "/tmp/graph", 0), GW_OK);
	number_and_check(true, 2, 1);
	assert_true(spill.file_bytes > ROWS * 6);
	gw_spill_close(&spill);
}

/* A value in most positions makes a run that is longer than the others. */
static void one_value_in_most_positions(void **state)
{
	(void)state;
	static uint64_t values[ROWS], found[ROWS];
	for (uint64_t i = 0; i < ROWS; i++)
		found[i] = values[i] = i % 10 ? 7 : i;
	struct gw_numbering_column column = {.first = found, .rows = ROWS};
	struct gw_numbering numbering;
	const struct gw_numbering_memory memory = limited(1);
	assert_int_equal(gw_numbering_create(&column, 1, 3, &memory, &numbering), GW_OK);
	assert_int_equal(numbering.count, ROWS / 10 + 1);
	for (uint64_t i = 0; i < ROWS; i++)
		assert_int_equal(numbering.values[found[i]], values[i]);
	gw_numbering_free(&numbering);
}

static void strings_are_the_names(void **state)
{
	(void)state;
	struct input *in = make_input(true);
	struct gw_numbering numbering;
	uint64_t *offsets;
	char *bytes, expected[64];
	const struct gw_numbering_memory memory = limited(1);
	assert_int_equal(gw_numbering_create(in->columns, 2, 2, &memory, &numbering), GW_OK);
	assert_int_equal(gw_numbering_strings(&numbering, in->columns, 2, &spill, &offsets, &bytes), GW_OK);
	for (uint64_t i = 0; i < ROWS; i++) {
		uint64_t number = in->second[i];
		int length = sprintf(expected, "node-%llu", (unsigned long long)in->second_in[i]);
		assert_int_equal(offsets[number + 1] - offsets[number], length);
		assert_memory_equal(bytes + offsets[number], expected, (size_t)length);
	}
	gw_spill_give(offsets);
	gw_spill_give(bytes);
	gw_numbering_free(&numbering);
	free_input(in);
}

static void doubled_quotes(void **state)
{
	(void)state;
	const char *text = "say \"\"hi\"\"\"\"plain";
	uint64_t values[] = {gw_text_ref(0, 10, true), gw_text_ref(10, 7, true), gw_text_ref(0, 10, true)};
	struct gw_numbering_column column = {.first = values, .rows = 3, .text = text};
	struct gw_numbering numbering;
	uint64_t *offsets;
	char *bytes;
	const struct gw_numbering_memory memory = limited(0);
	assert_int_equal(gw_numbering_create(&column, 1, 1, &memory, &numbering), GW_OK);
	assert_int_equal(numbering.count, 2);
	assert_int_equal(values[2], 0);
	assert_int_equal(gw_numbering_strings(&numbering, &column, 1, &spill, &offsets, &bytes), GW_OK);
	assert_int_equal(offsets[1], 8);
	assert_int_equal(offsets[2], 14);
	assert_memory_equal(bytes, "say \"hi\"\"plain", 14);
	gw_spill_give(offsets);
	gw_spill_give(bytes);
	gw_numbering_free(&numbering);
}

static void nothing(void **state)
{
	(void)state;
	struct gw_numbering_column column = {0};
	struct gw_numbering numbering;
	const struct gw_numbering_memory memory = limited(1);
	assert_int_equal(gw_numbering_create(&column, 1, 4, &memory, &numbering), GW_OK);
	assert_int_equal(numbering.count, 0);
	gw_numbering_free(&numbering);
}

static gw_status number_few(void *context)
{
	const struct gw_numbering_memory memory = limited(*(const uint64_t *)context);
	const char *text = "abcabd";
	uint64_t values[] = {gw_text_ref(0, 1, false), gw_text_ref(1, 1, false), gw_text_ref(3, 1, false),
			     gw_text_ref(5, 1, false)};
	struct gw_numbering_column column = {.first = values, .rows = 4, .text = text};
	struct gw_numbering numbering;
	uint64_t *offsets;
	char *bytes;
	gw_status status = gw_numbering_create(&column, 1, 2, &memory, &numbering);
	if (status != GW_OK)
		return status;
	status = gw_numbering_strings(&numbering, &column, 2, &spill, &offsets, &bytes);
	if (status == GW_OK) {
		gw_spill_give(offsets);
		gw_spill_give(bytes);
	}
	gw_numbering_free(&numbering);
	return status;
}

static void shortage(void **state)
{
	(void)state;
	uint64_t limit = 1;
	assert_true(gw_fault_each(number_few, &limit) > 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_appearance),
		cmocka_unit_test(strings_are_the_names),
		cmocka_unit_test(doubled_quotes),
		cmocka_unit_test(nothing),
		cmocka_unit_test(shortage),
		cmocka_unit_test(files),
		cmocka_unit_test(one_value_in_most_positions),
	};
	return cmocka_run_group_tests_name("numbering", tests, NULL, NULL);
}
