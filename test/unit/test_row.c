/* Rows that change while they are read: their layout, their hash compared with xxhash's own library, and no reader
 * accepts a torn row, in single steps and with threads. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>
#include <xxhash.h>

#include "core/numbers/rng.h"
#include "core/numbers/row.h"
#include "test/support/row_take.h"

#define SEED   0x1234567890abcdefull
#define NUMBER 77u

static struct gw_row_format format_of(uint64_t bytes)
{
	struct gw_row_format format;
	assert_int_equal(gw_row_format_init(bytes, &format), GW_OK);
	return format;
}

static uint8_t *row_alloc(const struct gw_row_format *format)
{
	uint8_t *row = aligned_alloc(64, (format->stride + 63u) & ~63u);
	assert_non_null(row);
	return row;
}

static void fill(uint8_t *payload, uint32_t bytes, uint64_t key)
{
	for (uint32_t i = 0; i < bytes; i++)
		payload[i] = (uint8_t)gw_philox(key, i, 0).word[0];
}

static void formats(void **state)
{
	(void)state;
	static const struct {
		uint32_t bytes, stride;
		bool versioned;
	} expected[] = {{1, 1, false},
			{2, 2, false},
			{3, 32, true},
			{4, 4, false},
			{5, 32, true},
			{8, 8, false},
			{12, 32, true},
			{16, 32, true},
			{17, 48, true},
			{400, 416, true},
			{1600, 1616, true},
			{1601, 1632, true},
			{4u << 20, (4u << 20) + 16, true}};
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		struct gw_row_format format = format_of(expected[i].bytes);
		assert_int_equal(format.payload_bytes, expected[i].bytes);
		assert_int_equal(format.stride, expected[i].stride);
		assert_int_equal(format.versioned, expected[i].versioned);
	}
	struct gw_row_format format;
	assert_int_equal(gw_row_format_init(0, &format), GW_INVALID);
	assert_int_equal(gw_row_format_init(GW_ROW_PAYLOAD_MAX + 1, &format), GW_LIMIT);
	assert_int_equal(gw_row_format_init(UINT64_MAX, &format), GW_LIMIT);
}

/* row.h documents the layout of a row; other readers rely on it. */
static void layout_and_hash(void **state)
{
	(void)state;
	static const uint32_t sizes[] = {3, 12, 16, 17, 100, 240, 241, 1600, 70000};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct gw_row_format format = format_of(sizes[i]);
		uint8_t *row = row_alloc(&format), *payload = malloc(sizes[i]);
		fill(payload, sizes[i], i);
		memset(row, 0xee, format.stride);
		gw_row_make(&format, SEED, NUMBER, row, payload);
		assert_memory_equal(row, payload, sizes[i]);
		for (uint32_t at = sizes[i]; at < format.stride - 16; at++)
			assert_int_equal(row[at], 0);
		uint64_t words[2];
		memcpy(words, row + format.stride - 16, 16);
		assert_int_equal(words[0], 2);
		uint64_t seed = gw_mix64(gw_mix64(SEED + NUMBER) + 2);
		assert_true(words[1] == XXH3_64bits_withSeed(payload, sizes[i], seed));
		free(payload);
		free(row);
	}
}

static void every_flipped_bit_is_found(void **state)
{
	(void)state;
	static const uint32_t sizes[] = {3, 24, 300};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct gw_row_format format = format_of(sizes[i]);
		uint8_t *row = row_alloc(&format), payload[300];
		struct gw_row_trailer trailer;
		gw_row_make(&format, SEED, NUMBER, row, NULL);
		assert_true(gw_row_copy_with_trailer(&format, row, payload, &trailer));
		assert_true(gw_row_verify(&format, SEED, NUMBER, payload, &trailer));
		assert_false(gw_row_verify(&format, SEED + 1, NUMBER, payload, &trailer));
		assert_false(gw_row_verify(&format, SEED, NUMBER + 1, payload, &trailer));
		for (uint32_t bit = 0; bit < 8 * sizes[i]; bit++) {
			payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
			assert_false(gw_row_verify(&format, SEED, NUMBER, payload, &trailer));
			payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
		for (uint32_t bit = 0; bit < 64; bit++) {
			struct gw_row_trailer other = {trailer.sequence ^ 1ull << bit, trailer.hash};
			assert_false(gw_row_verify(&format, SEED, NUMBER, payload, &other));
			other = (struct gw_row_trailer){trailer.sequence, trailer.hash ^ 1ull << bit};
			assert_false(gw_row_verify(&format, SEED, NUMBER, payload, &other));
		}
		free(row);
	}
}

/* Any prefix of a write has reached a reader over the network, with the trailer of before or after. */
static void every_cut_is_found(void **state)
{
	(void)state;
	struct gw_row_format format = format_of(120);
	uint8_t *row = row_alloc(&format), old[120], new[120], mixed[120];
	struct gw_row_trailer before, after;
	fill(old, 120, 1);
	fill(new, 120, 2);
	gw_row_make(&format, SEED, NUMBER, row, old);
	assert_true(gw_row_copy_with_trailer(&format, row, mixed, &before));
	gw_row_publish(&format, SEED, NUMBER, row, row_take(&format, row), new);
	assert_true(gw_row_copy_with_trailer(&format, row, mixed, &after));
	assert_memory_equal(mixed, new, 120);
	assert_int_equal(after.sequence, before.sequence + 2);
	for (uint32_t cut = 0; cut <= 120; cut++) {
		memcpy(mixed, new, cut);
		memcpy(mixed + cut, old + cut, 120 - cut);
		assert_int_equal(gw_row_verify(&format, SEED, NUMBER, mixed, &before), cut == 0);
		assert_int_equal(gw_row_verify(&format, SEED, NUMBER, mixed, &after), cut == 120);
		struct gw_row_trailer torn = {before.sequence, after.hash};
		assert_false(gw_row_verify(&format, SEED, NUMBER, mixed, &torn));
		torn = (struct gw_row_trailer){after.sequence, before.hash};
		assert_false(gw_row_verify(&format, SEED, NUMBER, mixed, &torn));
	}
	free(row);
}

static void one_holder_at_a_time(void **state)
{
	(void)state;
	struct gw_row_format format = format_of(40);
	uint8_t *row = row_alloc(&format), seen[40], payload[40];
	struct gw_row_trailer trailer;
	uint64_t sequence, other;
	fill(payload, 40, 3);
	gw_row_make(&format, SEED, NUMBER, row, NULL);
	assert_true(gw_row_try_lock(&format, row, &sequence));
	assert_int_equal(sequence, GW_ROW_FIRST);
	assert_false(gw_row_try_lock(&format, row, &other));
	assert_false(gw_row_copy(&format, row, seen));
	assert_false(gw_row_copy_with_trailer(&format, row, seen, &trailer));
	memcpy(&trailer, row + 48, 16); /* as a device would read it now */
	assert_false(gw_row_verify(&format, SEED, NUMBER, row, &trailer));
	gw_row_unlock(&format, row, sequence);
	assert_true(gw_row_copy(&format, row, seen));
	assert_true(gw_row_try_lock(&format, row, &sequence));
	assert_int_equal(sequence, GW_ROW_FIRST);
	gw_row_publish(&format, SEED, NUMBER, row, sequence, payload);
	assert_true(gw_row_copy_with_trailer(&format, row, seen, &trailer));
	assert_memory_equal(seen, payload, 40);
	assert_int_equal(trailer.sequence, GW_ROW_FIRST + 2);
	assert_true(gw_row_verify(&format, SEED, NUMBER, seen, &trailer));
	free(row);
}

static void words_have_no_trailer(void **state)
{
	(void)state;
	static const uint32_t sizes[] = {1, 2, 4, 8};
	for (size_t i = 0; i < 4; i++) {
		struct gw_row_format format = format_of(sizes[i]);
		uint8_t rows[3 * 8] __attribute__((aligned(8))), expected[3 * 8], payload[8], seen[8];
		memset(rows, 0xaa, sizeof(rows));
		memset(expected, 0xaa, sizeof(expected));
		fill(payload, 8, 4 + i);
		gw_row_make(&format, SEED, 1, rows + format.stride, NULL);
		assert_true(gw_row_copy(&format, rows + format.stride, seen));
		for (uint32_t at = 0; at < sizes[i]; at++)
			assert_int_equal(seen[at], 0);
		gw_row_store(&format, rows + format.stride, payload);
		assert_true(gw_row_copy(&format, rows + format.stride, seen));
		assert_memory_equal(seen, payload, sizes[i]);
		memcpy(expected + format.stride, payload, sizes[i]);
		assert_memory_equal(rows, expected, sizeof(rows)); /* the neighbouring rows are unchanged */
	}
}

/* A write in the middle of a copy, deterministically: the second half of the row is not readable at first, so the
 * reader faults there; the signal handler writes the row and makes it readable. */
#define HALF_BYTES 65536u

static struct {
	struct gw_row_format format;
	uint8_t *row, *payload;
	volatile sig_atomic_t writes;
} midst;

static void write_in_the_midst(int signal_number)
{
	(void)signal_number;
	if (midst.writes++ > 0)
		abort();
	mprotect(midst.row + HALF_BYTES, HALF_BYTES, PROT_READ | PROT_WRITE);
	gw_row_publish(&midst.format, SEED, NUMBER, midst.row, row_take(&midst.format, midst.row), midst.payload);
}

static void a_write_in_the_midst_of_a_copy(void **state)
{
	(void)state;
	/* The trailer and a few bytes of payload before it are in a third part, which is always readable. */
	midst.format = format_of(2 * HALF_BYTES + 512);
	midst.row = mmap(NULL, 3ul * HALF_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(midst.row, MAP_FAILED);
	uint32_t bytes = midst.format.payload_bytes;
	midst.payload = malloc(bytes);
	uint8_t *seen = malloc(bytes);
	fill(midst.payload, 512, 9);
	memset(midst.payload + 512, 0x55, bytes - 512);
	struct sigaction action = {.sa_handler = write_in_the_midst}, before;
	sigaction(SIGSEGV, &action, &before);
	for (int way = 0; way < 2; way++) {
		struct gw_row_trailer trailer;
		gw_row_make(&midst.format, SEED, NUMBER, midst.row, NULL);
		mprotect(midst.row + HALF_BYTES, HALF_BYTES, PROT_NONE);
		midst.writes = 0;
		bool whole = way == 0 ? gw_row_copy(&midst.format, midst.row, seen)
				      : gw_row_copy_with_trailer(&midst.format, midst.row, seen, &trailer);
		assert_int_equal(midst.writes, 1);
		assert_false(whole);
		assert_true(gw_row_copy(&midst.format, midst.row, seen));
		assert_memory_equal(seen, midst.payload, bytes);
	}
	sigaction(SIGSEGV, &before, NULL);
	munmap(midst.row, 3ul * HALF_BYTES);
	free(midst.payload);
	free(seen);
}

/* Writers increment a counter under the row's lock, in every 8 bytes of the payload. Readers see complete counters
 * that never decrease. The final count equals all writes, so no two writers had the lock at once. */
#define WRITERS 2
#define READERS 2

struct contest {
	struct gw_row_format format;
	uint8_t *row;
	uint32_t writes; /* per writer; every 16th only reads */
	atomic_uint writers_left, whole, bad, go;
};

static void contest_begin(struct contest *contest)
{
	atomic_fetch_add(&contest->go, 1);
	while (atomic_load(&contest->go) < WRITERS + READERS)
		sched_yield();
}

static void *write_rows(void *context)
{
	struct contest *contest = context;
	uint32_t bytes = contest->format.payload_bytes;
	uint8_t *payload = malloc(bytes);
	contest_begin(contest);
	for (uint32_t i = 0; i < contest->writes; i++) {
		uint64_t sequence = row_take(&contest->format, contest->row), count;
		memcpy(&count, contest->row, 8);
		count++;
		for (uint32_t at = 0; at < bytes; at += 8)
			memcpy(payload + at, &count, 8);
		if (i % 16 == 0)
			gw_row_unlock(&contest->format, contest->row, sequence); /* a look, no write */
		else
			gw_row_publish(&contest->format, SEED, NUMBER, contest->row, sequence, payload);
	}
	atomic_fetch_sub(&contest->writers_left, 1);
	free(payload);
	return NULL;
}

static void *read_rows(void *context)
{
	struct contest *contest = context;
	uint32_t bytes = contest->format.payload_bytes, whole = 0;
	uint8_t *payload = malloc(bytes);
	uint64_t last = 0;
	contest_begin(contest);
	unsigned left = WRITERS;
	for (uint32_t turn = 0; left > 0; turn++) { /* the last round begins after the last write: complete */
		left = atomic_load(&contest->writers_left);
		struct gw_row_trailer trailer;
		if (turn % 2 ? !gw_row_copy(&contest->format, contest->row, payload)
			     : !gw_row_copy_with_trailer(&contest->format, contest->row, payload, &trailer))
			continue;
		whole++;
		uint64_t count;
		memcpy(&count, payload, 8);
		bool bad = count < last;
		for (uint32_t at = 8; at < bytes; at += 8)
			bad |= memcmp(payload, payload + at, 8) != 0;
		if (turn % 2 == 0)
			bad |= !gw_row_verify(&contest->format, SEED, NUMBER, payload, &trailer);
		last = count;
		if (bad)
			atomic_fetch_add(&contest->bad, 1);
	}
	atomic_fetch_add(&contest->whole, whole);
	free(payload);
	return NULL;
}

static void readers_and_writers(void **state)
{
	(void)state;
	static const struct {
		uint32_t bytes, writes;
	} cases[] = {{24, 16000}, {1600, 4000}, {40000, 160}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t writes = cases[i].writes;
		struct contest contest = {
			.format = format_of(cases[i].bytes), .writes = writes, .writers_left = WRITERS};
		contest.row = row_alloc(&contest.format);
		gw_row_make(&contest.format, SEED, NUMBER, contest.row, NULL);
		pthread_t threads[WRITERS + READERS];
		for (unsigned t = 0; t < WRITERS + READERS; t++)
			assert_int_equal(
				pthread_create(&threads[t], NULL, t < WRITERS ? write_rows : read_rows, &contest), 0);
		for (unsigned t = 0; t < WRITERS + READERS; t++)
			pthread_join(threads[t], NULL);
		assert_int_equal(contest.bad, 0);
		assert_true(contest.whole >= READERS);
		uint64_t count;
		memcpy(&count, contest.row, 8);
		assert_int_equal(count, WRITERS * (writes - writes / 16));
		free(contest.row);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(formats),
		cmocka_unit_test(layout_and_hash),
		cmocka_unit_test(every_flipped_bit_is_found),
		cmocka_unit_test(every_cut_is_found),
		cmocka_unit_test(one_holder_at_a_time),
		cmocka_unit_test(words_have_no_trailer),
		cmocka_unit_test(a_write_in_the_midst_of_a_copy),
		cmocka_unit_test(readers_and_writers),
	};
	return cmocka_run_group_tests_name("row", tests, NULL, NULL);
}
