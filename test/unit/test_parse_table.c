/* Tables of text compared with their source: delimiters, headers, quotes, comments, chunks, threads, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "test/support/alloc_fault.h"
#include "test/support/many.h"
#include "tools/import/table.h"

/* The caller frees the values. */
static gw_status read_pairs(const char *data, size_t bytes, struct gw_table_format format, unsigned threads,
			    uint64_t **values, uint64_t *rows)
{
	static const uint32_t numbers[] = {0, 1};
	struct gw_text text;
	struct gw_table table;
	*values = NULL;
	gw_status status = gw_text_borrow("input", data, bytes, &text);
	if (status != GW_OK)
		return status;
	gw_table_sniff(&text, numbers, 2, &format);
	status = gw_table_scan(&text, &format, threads, &table);
	if (status == GW_OK) {
		*rows = table.rows;
		*values = malloc((table.rows * 2 + 1) * sizeof(uint64_t));
		struct gw_table_column columns[2] = {
			{.index = 0, .kind = GW_COLUMN_ID, .what = "source id", .values = *values, .stride = 2},
			{.index = 1,
			 .kind = GW_COLUMN_ID,
			 .what = "destination id",
			 .values = *values + 1,
			 .stride = 2}};
		status = gw_table_read(&table, columns, 2, threads);
		gw_table_close(&table);
	}
	gw_text_close(&text);
	if (status != GW_OK) {
		free(*values);
		*values = NULL;
	}
	return status;
}

static struct gw_table_format plain(void)
{
	return (struct gw_table_format){.comments = "#%"};
}

static void expect_pairs(const char *text, const uint64_t *expected, uint64_t count)
{
	uint64_t *values = NULL, rows = 0;
	if (read_pairs(text, strlen(text), plain(), 2, &values, &rows) != GW_OK)
		fail_msg("\"%s\": %s", text, gw_last_error());
	assert_int_equal(rows, count);
	assert_memory_equal(values, expected, count * 16);
	free(values);
}

static void shapes_of_text(void **state)
{
	(void)state;
	static const uint64_t pairs[] = {1, 2, 3, 4};
	static const char *const texts[] = {
		"1\t2\n3\t4\n",
		"1,2\n3,4",
		"1 2\r\n3 4\r\n",
		"1;2\n3;4\n",
		"  1   2  \n\t3\t 4\n",
		"# comment, with commas\n%another\n1 2\n\n   \n#in between\n3 4\n\n",
		"\xef\xbb\xbfsrc,dst\n1,2\n3,4\n",
		"src,dst\r\n1,2\r\n3,4\r\n",
		"\"1\",\"2\"\n\"3\" , \"4\"\n",
		"1, 2 ,x,y\n3 ,4\n",
		"1\t2\textra\t\n3\t4\tz\t\n",
		"0001,002\n3,000000000000000000000004\n",
		"from,to,w\n1,2,0.5\n3,4,x\n",
		"1 2\r3 4\r",
		"1,2\r3,4",
		"1,2,9\r3,4,9",
		"src,dst\r1,2\r3,4\r",
		"1\t2\r3\t4\n",
		"1\t2\n3\t4\r",
		"\r\r\n1 2\n\r\n\r3 4\n\r",
		"# a comment\r1 2\r# 5 6\r3 4\r",
		"\"1\",\"2\"\r\"3\" , \"4\"\r",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		expect_pairs(texts[i], pairs, 2);
	expect_pairs("", NULL, 0);
	expect_pairs("\n\n# nothing\n", NULL, 0);
	expect_pairs("7 8", (uint64_t[]){7, 8}, 1);
}

static void expect_fault_of(const char *text, gw_status status, const char *a, const char *b)
{
	uint64_t *values, rows;
	for (unsigned threads = 1; threads <= 3; threads++) {
		assert_int_equal(read_pairs(text, strlen(text), plain(), threads, &values, &rows), status);
		if (!strstr(gw_last_error(), a) || !strstr(gw_last_error(), b))
			fail_msg("no \"%s\" and \"%s\" in \"%s\"", a, b, gw_last_error());
	}
}

static void expect_fault(const char *text, const char *a, const char *b)
{
	expect_fault_of(text, GW_FORMAT, a, b);
}

static void faults_name_the_line(void **state)
{
	(void)state;
	expect_fault("1 2\n3 x\n", "input, line 2, column 2", "\"x\" as destination id");
	expect_fault("1,2\n\n#c\n3\n", "input, line 4: 1 column", "destination id must be in column 2");
	expect_fault("a,b\n1,2\n,4\n", "line 3, column 1", "source id is empty");
	expect_fault("1,2\n-3,4\n", "line 2", "\"-3\"");
	expect_fault("1,2\n3.5,4\n", "line 2", "\"3.5\"");
	expect_fault_of("1,2\n3,9223372036854775807\n", GW_RANGE, "line 2, column 2: \"9223372036854775807\"",
			"too large: ids are below 2^63 - 1");
	expect_fault_of("1,2\n18446744073709551621,3\n", GW_RANGE, "line 2, column 1", "too large");
	expect_fault("1 2\r3 x\r", "input, line 2, column 2", "\"x\" as destination id");
	expect_fault("a,b\r\n1,2\r\r\n#c\r3\r\n", "input, line 5: 1 column", "must be in column 2");
	expect_fault("1,2\n\"3,4\n", "line 2, column 1", "quote");
	expect_fault("1,2\n\"3\"x,4\n", "line 2, column 1", "quote");
	expect_fault("1,2\n3\"1,4\n", "line 2, column 1", "quote");
	expect_fault("1 2\n3\n5 y\n", "line 2", "must be"); /* the first error, whatever the threads do */
	expect_fault("1 2\n\x01\x02 3\n", "line 2", "\"??\"");
}

static void many_rows(void **state)
{
	(void)state;
	static const char *const delimiters[] = {"\t", ",", " ", ";", ", ", "   "};
	const uint64_t count = 150000;
	char *text = malloc(count * 64);
	uint64_t *expected = malloc(count * 16);
	for (size_t d = 0; d < sizeof(delimiters) / sizeof(delimiters[0]); d += gw_many_step()) {
		size_t used = 0;
		for (uint64_t i = 0; i < count; i++) {
			struct gw_words words = gw_philox(d, i, 0);
			expected[2 * i] = words.word[0] >> (words.word[2] % 32);
			expected[2 * i + 1] = (uint64_t)words.word[1] << (words.word[2] % 31);
			if (words.word[3] % 50 == 0)
				used += (size_t)sprintf(text + used, "%s", words.word[3] % 100 ? "\n" : "# 1 2\n");
			used += (size_t)sprintf(text + used, "%llu%s%llu%s", (unsigned long long)expected[2 * i],
						delimiters[d], (unsigned long long)expected[2 * i + 1],
						words.word[3] % 7 == 0 ? "\r\n" : "\n");
		}
		for (unsigned threads = 1; threads <= 5; threads += 2) {
			uint64_t *values, rows;
			assert_int_equal(read_pairs(text, used, plain(), threads, &values, &rows), GW_OK);
			assert_int_equal(rows, count);
			assert_memory_equal(values, expected, count * 16);
			free(values);
		}
		/* An error in the last chunk is reported with its line number, which gw_table_line gives too. */
		text[used - 2] = 'x';
		uint64_t *values, rows;
		assert_int_equal(read_pairs(text, used, plain(), 2, &values, &rows), GW_FORMAT);
		uint64_t lines = 0;
		for (size_t i = 0; i < used; i++)
			lines += text[i] == '\n';
		char line[64];
		snprintf(line, sizeof(line), "line %llu,", (unsigned long long)lines);
		assert_non_null(strstr(gw_last_error(), line));
	}
	free(text);
	free(expected);
}

/* Line ends of every kind, and mixed, in tables of several chunks that are cut anywhere. The rows equal those with \n
 * alone, for any number of threads. Some tables have blank lines, which the fast count skips. */
static void line_ends(void **state)
{
	(void)state;
	static const char *const ends[][4] = {{"\r", "\r", "\r", "\r"},
					      {"\r\n", "\r\n", "\r\n", "\r\n"},
					      {"\n", "\r\n", "\r", "\n"},
					      {"\r", "\r\r", "\r\n\n", "\n\r"}};
	const uint64_t count = 300000;
	char *text = malloc(count * 32);
	uint64_t *expected = malloc(count * 16);
	for (size_t kind = 0; kind < 8; kind += gw_many_step()) {
		size_t used = 0;
		for (uint64_t i = 0; i < count; i++) {
			struct gw_words words = gw_philox(100 + kind, i, 0);
			expected[2 * i] = words.word[0] >> (words.word[2] % 32);
			expected[2 * i + 1] = words.word[1] >> (words.word[3] % 32);
			used += (size_t)sprintf(text + used, kind % 2 ? "%llu,%llu%s" : "%llu,%llu,x%s",
						(unsigned long long)expected[2 * i],
						(unsigned long long)expected[2 * i + 1],
						ends[kind / 2][words.word[3] / 64 % 4]);
		}
		assert_true(used > 3 << 20);
		for (unsigned threads = 1; threads <= 3; threads += 2) {
			uint64_t *values, rows;
			assert_int_equal(read_pairs(text, used, plain(), threads, &values, &rows), GW_OK);
			assert_int_equal(rows, count);
			assert_memory_equal(values, expected, count * 16);
			free(values);
		}
	}
	free(text);
	free(expected);
}

/* Tables of rows only, like most large files. Lines have ids of every length, some with more columns, and are counted
 * and read on the fast path. Then one line of many needs the slow path. */
static void plain_tables(void **state)
{
	(void)state;
	static const char *const odd[] = {"\n", "#7,8\n", " \n", "\r\n", "%\n"};
	const uint64_t count = 120000;
	char *text = malloc(count * 48);
	uint64_t *expected = malloc(count * 16), *values, rows;
	for (uint32_t variant = 0; variant < 8; variant += gw_many_step()) {
		size_t used = 0;
		uint64_t lines = 0;
		for (uint64_t i = 0; i < count; i++, lines++) {
			struct gw_words words = gw_philox(variant, i, 0);
			expected[2 * i] = ((uint64_t)words.word[0] << 31 | words.word[1]) >> (words.word[2] % 63);
			expected[2 * i + 1] = words.word[2] >> (words.word[3] % 32);
			if (variant < 5 && i == count * 2 / 3) {
				used += (size_t)sprintf(text + used, "%s", odd[variant]);
				lines++;
			}
			used += (size_t)sprintf(text + used, "%llu,%llu%s%s", (unsigned long long)expected[2 * i],
						(unsigned long long)expected[2 * i + 1],
						words.word[3] % 5 || i + 1 == count ? "" : ",0.5,x",
						words.word[3] % 7 || i + 1 == count ? "\n" : "\r\n");
		}
		used -= variant == 7;      /* the last line has no end */
		char *copy = malloc(used); /* sanitizers detect a read past the end */
		memcpy(copy, text, used);
		for (unsigned threads = 1; threads <= 2; threads++) {
			assert_int_equal(read_pairs(copy, used, plain(), threads, &values, &rows), GW_OK);
			assert_int_equal(rows, count);
			assert_memory_equal(values, expected, count * 16);
			free(values);
		}
		copy[used - 2 + (variant == 7)] = 'x';
		assert_int_equal(read_pairs(copy, used, plain(), 2, &values, &rows), GW_FORMAT);
		char line[64];
		snprintf(line, sizeof(line), "line %llu,", (unsigned long long)lines);
		if (!strstr(gw_last_error(), line))
			fail_msg("no \"%s\" in \"%s\"", line, gw_last_error());
		free(copy);
	}
	free(text);
	free(expected);
	/* A digit may begin a comment, if the options say so. */
	const char digits[] = "12,3\n72,4\n13,5\n";
	assert_int_equal(
		read_pairs(digits, strlen(digits), (struct gw_table_format){.comments = "7"}, 1, &values, &rows),
		GW_OK);
	assert_int_equal(rows, 2);
	assert_memory_equal(values, ((const uint64_t[]){12, 3, 13, 5}), 32);
	free(values);
}

static void columns_of_every_kind(void **state)
{
	(void)state;
	const char *data = "id,name,when,score,count\n"
			   "7,\"Smith, \"\"J\"\"\",12.345,0.1,-3\n"
			   "8,plain,-1.5,1e3,+4\n";
	struct gw_table_format format = {.header = GW_HEADER_YES};
	struct gw_text text;
	struct gw_table table;
	uint64_t ids[2], names[2];
	int64_t times[2], counts[2];
	double scores[2] = {0, 0};
	uint32_t index;
	assert_int_equal(gw_text_borrow("input", data, strlen(data), &text), GW_OK);
	gw_table_sniff(&text, NULL, 0, &format);
	assert_int_equal(gw_table_find(&text, &format, "score", &index), GW_OK);
	assert_int_equal(index, 3);
	assert_int_equal(gw_table_find(&text, &format, "5", &index), GW_OK);
	assert_int_equal(index, 4);
	assert_int_equal(gw_table_find(&text, &format, "nope", &index), GW_NOT_FOUND);
	assert_non_null(strstr(gw_last_error(), "id, name, when, score, count"));
	assert_int_equal(gw_table_find(&text, &format, "0", &index), GW_RANGE);
	assert_int_equal(gw_table_scan(&text, &format, 1, &table), GW_OK);
	struct gw_table_column columns[] = {
		{.index = 4, .kind = GW_COLUMN_INT, .what = "count", .values = counts},
		{.index = 0, .kind = GW_COLUMN_ID, .what = "id", .values = ids},
		{.index = 1, .kind = GW_COLUMN_TEXT, .what = "name", .values = names},
		{.index = 2, .kind = GW_COLUMN_FIXED, .digits = 2, .cut = true, .what = "time", .values = times},
		{.index = 3, .kind = GW_COLUMN_FLOAT, .what = "score", .values = scores},
	};
	assert_int_equal(gw_table_read(&table, columns, 5, 1), GW_OK);
	assert_int_equal(ids[0], 7);
	assert_int_equal(counts[0], -3);
	assert_int_equal(counts[1], 4);
	assert_int_equal(times[0], 1234);
	assert_int_equal(times[1], -150);
	assert_true(scores[0] == (double)0.1f && scores[1] == 1000);
	struct gw_text_span span = gw_text_span(data, names[0]);
	assert_true(span.escaped);
	assert_int_equal(span.bytes, strlen("Smith, \"\"J\"\""));
	assert_memory_equal(span.at, "Smith, \"\"J\"\"", span.bytes);
	assert_int_equal(gw_table_line(&table, 1), 3);
	columns[1].index = 4; /* one column, used twice */
	assert_int_equal(gw_table_read(&table, columns, 5, 1), GW_INVALID);
	gw_table_close(&table);
	gw_text_close(&text);
}

/* With tabs, quotes around a field are no part of it, and other quotes are. Without quotes, all of them are. Blanks
 * around a field never are. */
static void tabs_and_quotes(void **state)
{
	(void)state;
	static const char *const names[] = {"a b", "c\td", "#d", "\"\"e", "\"Al\" x", "5\"", "\"", " g "};
	const char *data = " a b \t\"c\td\" \n#d\t\"\"e\n\"Al\" x\t5\"\n\"\"\"\"\t\" g \"\n";
	struct gw_table_format format = {.header = GW_HEADER_NONE};
	struct gw_text text;
	struct gw_table table;
	uint64_t refs[8];
	assert_int_equal(gw_text_borrow("input", data, strlen(data), &text), GW_OK);
	gw_table_sniff(&text, NULL, 0, &format);
	assert_int_equal(format.delimiter, '\t');
	assert_int_equal(gw_table_scan(&text, &format, 1, &table), GW_OK);
	const struct gw_table_column columns[] = {
		{.index = 0, .kind = GW_COLUMN_TEXT, .what = "a", .values = refs, .stride = 2},
		{.index = 1, .kind = GW_COLUMN_TEXT, .what = "b", .values = refs + 1, .stride = 2}};
	assert_int_equal(gw_table_read(&table, columns, 2, 1), GW_OK);
	assert_int_equal(table.rows, 4);
	for (int i = 0; i < 8; i++) {
		struct gw_text_span span = gw_text_span(data, refs[i]);
		assert_int_equal(span.bytes - span.escaped, strlen(names[i]));
		assert_memory_equal(span.at, names[i], span.bytes - span.escaped);
	}
	table.format.quotes = GW_QUOTES_NONE;
	assert_int_equal(gw_table_read(&table, columns, 2, 1), GW_OK);
	assert_int_equal(gw_text_span(data, refs[1]).bytes, 2); /* "c, and d" is a third field */
	assert_int_equal(gw_text_span(data, refs[6]).bytes, 4);
	gw_table_close(&table);
	gw_text_close(&text);
}

/* What ids may be: no words for missing values, unless they are in quotes; no numbers with zeros in front. */
static void ids(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum gw_column_kind kind;
		bool good;
	} cases[] = {{"NULL", GW_COLUMN_TEXT, false},
		     {"\\N", GW_COLUMN_TEXT, false},
		     {"NA", GW_COLUMN_TEXT, false},
		     {"nan", GW_COLUMN_TEXT, false},
		     {"None", GW_COLUMN_TEXT, false},
		     {"<NA>", GW_COLUMN_TEXT, false},
		     {"\"NULL\"", GW_COLUMN_TEXT, true},
		     {"Na", GW_COLUMN_TEXT, true},
		     {"nana", GW_COLUMN_TEXT, true},
		     {"007", GW_COLUMN_TEXT, true},
		     {"007", GW_COLUMN_ID, false},
		     {"0", GW_COLUMN_ID, true},
		     {"10", GW_COLUMN_ID, true},
		     {"-7", GW_COLUMN_INT, true},
		     {"+7", GW_COLUMN_INT, false},
		     {"-0", GW_COLUMN_INT, false},
		     {"-07", GW_COLUMN_INT, false},
		     {"1.0", GW_COLUMN_ID, false},
		     {"\xef\xbb\xbf"
		      "7",
		      GW_COLUMN_TEXT, false},
		     {"00000001", GW_COLUMN_ID, false}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char data[128]; /* rows that the fast path reads have 32 bytes behind them */
		snprintf(data, sizeof(data), "5,5\n%s,1\n2222222222222222,3333333333333333\n", cases[i].text);
		struct gw_table_format format = {
			.header = GW_HEADER_NONE, .delimiter = ',', .quotes = GW_QUOTES_STRICT};
		struct gw_text text;
		struct gw_table table;
		uint64_t values[3];
		assert_int_equal(gw_text_borrow("input", data, strlen(data), &text), GW_OK);
		assert_int_equal(gw_table_scan(&text, &format, 1, &table), GW_OK);
		struct gw_table_column column = {.kind = cases[i].kind, .is_id = true, .what = "id", .values = values};
		gw_status status = gw_table_read(&table, &column, 1, 1);
		if ((status == GW_OK) != cases[i].good)
			fail_msg("%s: %s", cases[i].text, status == GW_OK ? "read" : gw_last_error());
		assert_true(cases[i].good || strstr(gw_last_error(), "line 2, column 1"));
		gw_table_close(&table);
		gw_text_close(&text);
	}
}

static void overlong_fields(void **state)
{
	(void)state;
	static char data[70100];
	struct gw_table_format format = {.delimiter = '\t', .header = GW_HEADER_NONE};
	struct gw_text text;
	struct gw_table table;
	uint64_t ref;
	for (size_t bytes = GW_TABLE_FIELD_MAX; bytes <= GW_TABLE_FIELD_MAX + 1; bytes++) {
		memset(data, 'n', bytes);
		data[bytes] = '\n';
		assert_int_equal(gw_text_borrow("input", data, bytes + 1, &text), GW_OK);
		assert_int_equal(gw_table_scan(&text, &format, 1, &table), GW_OK);
		struct gw_table_column column = {.kind = GW_COLUMN_TEXT, .what = "name", .values = &ref};
		assert_int_equal(gw_table_read(&table, &column, 1, 1), bytes <= GW_TABLE_FIELD_MAX ? GW_OK : GW_FORMAT);
		gw_table_close(&table);
		gw_text_close(&text);
	}
}

static gw_status read_some(void *context)
{
	uint64_t *values, rows;
	gw_status status = read_pairs(context, strlen(context), plain(), 1, &values, &rows);
	free(values);
	return status;
}

static void shortage(void **state)
{
	(void)state;
	char text[] = "a,b\n1,2\n3,4\n";
	assert_true(gw_fault_each(read_some, text) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes_of_text),  cmocka_unit_test(faults_name_the_line),
		cmocka_unit_test(many_rows),       cmocka_unit_test(line_ends),
		cmocka_unit_test(plain_tables),    cmocka_unit_test(columns_of_every_kind),
		cmocka_unit_test(tabs_and_quotes), cmocka_unit_test(ids),
		cmocka_unit_test(overlong_fields), cmocka_unit_test(shortage),
	};
	return cmocka_run_group_tests_name("parse_table", tests, NULL, NULL);
}
