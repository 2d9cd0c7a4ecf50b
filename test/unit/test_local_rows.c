/* Copies of rows in this process's reach, compared with a plain loop over random books, widths, steps and ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/rows/local_rows.h"
#include "core/numbers/rng.h"

#define PARTS_MAX 9u
#define ROWS_MAX  400u /* of a part */
#define IDS_MAX   300u
#define WIDTH_MAX 2100u /* more than is prefetched of one row */
#define CASES     3000u

static const uint32_t widths[] = {0, 1, 2, 3, 4, 5, 8, 12, 16, 17, 24, 32, 33, 64, 100, 128, 400, 512, WIDTH_MAX};

/* A book with random ranges, some of them empty, and for each part an allocation of exactly its rows: a sanitizer sees
 * a read past them. */
struct book {
	uint64_t starts[PARTS_MAX + 1];
	uint8_t *memory[PARTS_MAX];
	uintptr_t origins[PARTS_MAX];
	struct gw_local_rows local;
};

static uint64_t below(uint64_t *seed, uint64_t bound)
{
	return gw_mix64((*seed)++) % bound;
}

static void book_make(struct book *book, uint64_t *seed)
{
	uint64_t width = widths[below(seed, sizeof(widths) / sizeof(widths[0]))];
	uint64_t step = below(seed, 4) ? width : (width + 1) / 2; /* rows may overlap, as offsets do */
	uint32_t parts = 1 + (uint32_t)below(seed, PARTS_MAX);
	memset(book, 0, sizeof(*book));
	for (uint32_t p = 0; p < parts; p++) {
		uint64_t rows = below(seed, 3) ? below(seed, ROWS_MAX) : 0;
		uint64_t bytes = rows ? (rows - 1) * step + width : 0;
		book->starts[p + 1] = book->starts[p] + rows;
		book->memory[p] = malloc(bytes ? bytes : 1);
		assert_non_null(book->memory[p]);
		for (uint64_t i = 0; i < bytes; i++)
			book->memory[p][i] = (uint8_t)gw_mix64((*seed)++);
		book->origins[p] = (uintptr_t)book->memory[p] - book->starts[p] * step;
	}
	book->local = (struct gw_local_rows){
		.starts = book->starts, .parts = parts, .step = step, .row_bytes = width, .origins = book->origins};
}

static const uint8_t *row_of(const struct book *book, uint64_t id)
{
	uint32_t p = 0;
	while (id >= book->starts[p + 1])
		p++;
	return book->memory[p] + (id - book->starts[p]) * book->local.step;
}

/* Random ids, many of them equal; in one case of three, one id is not a row. Returns the position of that id, or n. */
static uint64_t ids_make(const struct book *book, uint64_t *seed, int64_t *ids, uint64_t n)
{
	uint64_t count = book->starts[book->local.parts];
	uint64_t some = below(seed, 2) && count > 10 ? 10 : count;
	for (uint64_t i = 0; i < n && count; i++)
		ids[i] = (int64_t)below(seed, some);
	if (!count)
		memset(ids, 0, n * sizeof(*ids));
	if (n == 0 || !count)
		return 0;
	if (below(seed, 3))
		return n;
	const int64_t bad[] = {(int64_t)count, -1, INT64_MIN, INT64_MAX};
	uint64_t at = below(seed, n);
	ids[at] = bad[below(seed, 4)];
	return at;
}

static void rows_are_those_of_a_plain_loop(void **state)
{
	(void)state;
	static int64_t ids[IDS_MAX];
	uint64_t seed = 1;
	for (uint32_t i = 0; i < CASES; i++) {
		struct book book;
		book_make(&book, &seed);
		uint64_t n = below(&seed, IDS_MAX), width = book.local.row_bytes;
		uint64_t good = ids_make(&book, &seed, ids, n);
		uint8_t *out = malloc(n * width + 1);
		assert_non_null(out);
		out[n * width] = 0xa5;
		assert_int_equal(gw_local_rows_copy(&book.local, ids, n, out), good);
		for (uint64_t j = 0; j < good; j++)
			if (width && memcmp(out + j * width, row_of(&book, (uint64_t)ids[j]), width) != 0)
				fail_msg("case %u: %u parts, row %llu of %llu B differs", i, book.local.parts,
					 (unsigned long long)j, (unsigned long long)width);
		assert_int_equal(out[n * width], 0xa5);
		free(out);
		for (uint32_t p = 0; p < book.local.parts; p++)
			free(book.memory[p]);
	}
}

static bool part_is_here(const struct book *book, uint64_t id)
{
	uint32_t p = 0;
	while (id >= book->starts[p + 1])
		p++;
	return book->local.origins[p] != 0;
}

/* Removes the origins of some parts, often of all except one. */
static void book_forget(struct book *book, uint64_t *seed)
{
	uint32_t kept = below(seed, 2) ? (uint32_t)below(seed, book->local.parts) : UINT32_MAX;
	for (uint32_t p = 0; p < book->local.parts; p++)
		if (kept == UINT32_MAX ? below(seed, 2) != 0 : p != kept)
			book->origins[p] = 0;
}

static void divided_rows_are_those_of_a_plain_loop(void **state)
{
	(void)state;
	static int64_t ids[IDS_MAX];
	static uint32_t here[IDS_MAX + 1], elsewhere[IDS_MAX + 1];
	uint64_t seed = 2;
	for (uint32_t i = 0; i < CASES; i++) {
		struct book book;
		book_make(&book, &seed);
		uint64_t n = below(&seed, IDS_MAX), width = book.local.row_bytes;
		uint64_t good = ids_make(&book, &seed, ids, n), half = good / 2;
		book_forget(&book, &seed);
		struct gw_divided_rows divided = {.here = here, .elsewhere = elsewhere};
		assert_int_equal(gw_local_rows_divide(&book.local, ids, 0, half, &divided), half);
		assert_int_equal(gw_local_rows_divide(&book.local, ids, half, n, &divided), good);
		uint64_t of_here = 0, of_others = 0;
		for (uint64_t j = 0; j < good; j++) {
			if (part_is_here(&book, (uint64_t)ids[j]))
				assert_int_equal(here[of_here++], j);
			else
				assert_int_equal(elsewhere[of_others++], j);
		}
		assert_int_equal(divided.here_count, of_here);
		assert_int_equal(divided.elsewhere_count, of_others);
		uint8_t *out = malloc(n * width + 1), untouched[WIDTH_MAX];
		assert_non_null(out);
		memset(out, 0xa5, n * width + 1);
		memset(untouched, 0xa5, sizeof(untouched));
		assert_int_equal(gw_local_rows_copy_listed(&book.local, ids, here, of_here, out), of_here);
		for (uint64_t j = 0; j < n && width; j++) {
			bool copied = j < good && part_is_here(&book, (uint64_t)ids[j]);
			const uint8_t *want = copied ? row_of(&book, (uint64_t)ids[j]) : untouched;
			if (memcmp(out + j * width, want, width) != 0)
				fail_msg("case %u: row %llu of %llu B differs", i, (unsigned long long)j,
					 (unsigned long long)width);
		}
		free(out);
		for (uint32_t p = 0; p < book.local.parts; p++)
			free(book.memory[p]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_those_of_a_plain_loop),
		cmocka_unit_test(divided_rows_are_those_of_a_plain_loop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
