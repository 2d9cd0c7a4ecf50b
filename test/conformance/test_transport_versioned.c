/* Versioned rows, one suite over every backend. While others write, a reader gets complete rows, old or new, or the
 * numbers of the torn ones. A range that is not one row is refused. A read after an acknowledged write returns the
 * write's values.
 *
 * A row's payload is a number and bytes that follow from it, so that a mix of two writes is noticed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "test/support/many.h"
#include "test/support/row_take.h"
#include "test/support/transport_bed.h"

#define HELD_MAX  64
#define BATCH_MAX 200
#define READS     80000 /* a million over all transports; 10,000 in a guest, where words are refused */

static void payload_make(uint8_t *to, uint32_t bytes, uint64_t value)
{
	for (uint32_t at = 0; at < bytes; at += 8) {
		uint64_t word = at ? gw_mix64(value + at) : value;
		memcpy(to + at, &word, bytes - at < 8 ? bytes - at : 8);
	}
}

static bool payload_is_whole(const uint8_t *payload, uint32_t bytes)
{
	uint64_t value = 0;
	memcpy(&value, payload, bytes < 8 ? bytes : 8);
	for (uint32_t at = 8; at < bytes; at += 8) {
		uint64_t word = gw_mix64(value + at);
		if (memcmp(payload + at, &word, bytes - at < 8 ? bytes - at : 8) != 0)
			return false;
	}
	return true;
}

static void rows_begin(struct one *one, void **state, uint32_t row_bytes, uint32_t row_count, uint64_t landing_bytes)
{
	struct bed_options options = {.row_bytes = row_bytes, .row_count = row_count};
	uint8_t *payload = malloc(row_bytes);
	assert_non_null(payload);
	gw_one_begin(one, state, &options, landing_bytes);
	one->region = one->endpoint->peer.regions[BED_ROWS];
	for (uint32_t i = 0; i < row_count; i++) {
		payload_make(payload, row_bytes, i);
		gw_bed_row_write(&one->bed, i, payload);
	}
	free(payload);
}

/* RDMA reads words of more than a byte only if the device reads them in one access, which no test device does. They are
 * refused by name. The bed has ended then. */
static bool words_are_refused(struct one *one)
{
	const struct gw_row_format *format = &one->region.rows.format;
	if (strcmp(one->bed.kind->scheme, "verbs") != 0 || format->versioned || format->payload_bytes == 1)
		return false;
	struct gw_span span = {0, 0, format->payload_bytes};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_readv(one->endpoint, &set, &one->region, one->buffer, &span, 1);
	assert_int_equal(gw_bed_wait(one->group, &set).status, GW_UNSUPPORTED);
	one->region = one->endpoint->peer.regions[0];
	gw_one_read_works(one);
	gw_one_end(one);
	return true;
}

static void regions_describe_their_rows(void **state)
{
	static const uint32_t sizes[] = {1, 2, 4, 8, 3, 12, 16, 100, 1600};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct one one;
		rows_begin(&one, state, sizes[i], 10, 64);
		struct gw_row_format format;
		assert_int_equal(gw_row_format_init(sizes[i], &format), GW_OK);
		assert_int_equal(one.region.kind, GW_REGION_VERSIONED);
		assert_int_equal(one.region.bytes, 10ull * format.stride);
		assert_int_equal(one.region.rows.format.payload_bytes, sizes[i]);
		assert_int_equal(one.region.rows.format.stride, format.stride);
		assert_int_equal(one.region.rows.format.versioned, format.versioned);
		assert_int_equal(one.region.rows.seed, BED_SEED);
		assert_null(gw_endpoint_map(one.endpoint, &one.region));
		gw_one_end(&one);
	}
}

/* In random order and with repeats. Bytes between rows must not change. */
static void read_rows(struct one *one, uint64_t *seed, uint32_t n, int form)
{
	uint32_t bytes = one->region.rows.format.payload_bytes, stride = one->region.rows.format.stride;
	uint32_t apart = form == 0 ? bytes : bytes + 5;
	uint64_t *remote = calloc(n, sizeof(*remote));
	uint32_t *rows = calloc(n, sizeof(*rows));
	struct gw_span *spans = calloc(n, sizeof(*spans));
	memset(one->landing, 0xaa, one->landing_bytes);
	memset(one->expected, 0xaa, one->landing_bytes);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t row = gw_below(seed, one->bed.row_count);
		remote[i] = row * stride;
		rows[i] = n - 1 - i;
		spans[i] = (struct gw_span){remote[i], 7 + (uint64_t)i * apart, bytes};
		payload_make(one->expected + 7 + (uint64_t)(form == 2 ? rows[i] : i) * apart, bytes, row);
	}
	struct gw_gather gather = {
		.remote = remote, .rows = form == 2 ? rows : NULL, .local = 7, .row_bytes = bytes, .stride = apart};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	if (form == 3)
		gw_bed_readv(one->endpoint, &set, &one->region, one->buffer, spans, n);
	else
		gw_bed_gather(one->endpoint, &set, &one->region, one->buffer, &gather, n);
	gw_one_wait_ok(one, &set);
	assert_memory_equal(one->landing, one->expected, one->landing_bytes);
	free(remote);
	free(rows);
	free(spans);
}

static void rows_land_without_trailers(void **state)
{
	static const struct {
		uint32_t bytes, rows, reads;
	} sizes[] = {{1, 250, 3000}, {2, 300, 3000},   {4, 300, 40000},  {8, 300, 3000},  {3, 100, 3000},
		     {16, 20, 300},  {100, 300, 9000}, {1600, 300, 900}, {70000, 20, 30}, {300000, 5, 9}};
	uint64_t seed = 1;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct one one;
		uint32_t reads = gw_many(sizes[i].reads);
		reads = reads ? reads : 1;
		rows_begin(&one, state, sizes[i].bytes, sizes[i].rows, 100 + (uint64_t)reads * (sizes[i].bytes + 5));
		if (words_are_refused(&one))
			continue;
		for (int form = 0; form < 4; form++)
			read_rows(&one, &seed, reads, form);
		gw_one_end(&one);
	}
}

static void expect_refused(struct one *one, uint64_t remote, uint32_t bytes, gw_status expected)
{
	struct gw_span spans[2] = {{0, 0, one->region.rows.format.payload_bytes}, {remote, 200, bytes}};
	uint64_t offsets[2] = {remote, remote};
	struct gw_gather gather = {.remote = offsets, .row_bytes = bytes, .stride = 200};
	struct gw_read_set by_span = {.cookie = &by_span}, by_row = {.cookie = &by_row};
	assert_int_equal(gw_endpoint_readv(one->endpoint, &by_span, &one->region, one->buffer, spans, 2, true), 2);
	gw_one_expect_failure(one, &by_span, expected);
	assert_int_equal(gw_endpoint_gather(one->endpoint, &by_row, &one->region, one->buffer, &gather, 2, true), 2);
	gw_one_expect_failure(one, &by_row, expected);
}

static void parts_of_rows_are_refused(void **state)
{
	struct one one;
	rows_begin(&one, state, 100, 10, 4096);
	uint32_t stride = one.region.rows.format.stride;
	expect_refused(&one, 0, 99, GW_INVALID);
	expect_refused(&one, 0, 101, GW_INVALID);
	expect_refused(&one, 0, stride, GW_INVALID); /* a trailer is not readable */
	expect_refused(&one, 1, 100, GW_INVALID);
	expect_refused(&one, stride - 100, 100, GW_INVALID);
	expect_refused(&one, stride + 16, 100, GW_INVALID);
	expect_refused(&one, 9ull * stride + 1, 100, GW_INVALID);
	expect_refused(&one, 10ull * stride, 100, GW_RANGE);
	expect_refused(&one, UINT64_MAX, 100, GW_RANGE);
	for (int i = 0; i < 4096; i++)
		assert_int_equal(one.landing[i], 0);
	/* An empty range is not a part of a row, and is allowed. */
	struct gw_span none = {1, 0, 0};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_readv(one.endpoint, &set, &one.region, one.buffer, &none, 1);
	gw_one_wait_ok(&one, &set);
	one.region = one.endpoint->peer.regions[0];
	gw_one_read_works(&one);
	gw_one_end(&one);
}

static void small_rows_are_read_one_by_one(void **state)
{
	static const uint32_t sizes[] = {1, 2, 4, 8};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct one one;
		rows_begin(&one, state, sizes[i], 20, 4096);
		if (words_are_refused(&one))
			continue;
		expect_refused(&one, 0, 2 * sizes[i], GW_INVALID);
		if (sizes[i] > 1)
			expect_refused(&one, 1, sizes[i], GW_INVALID);
		gw_one_end(&one);
	}
}

/* --- Torn rows. --- */

static int torn_compare(const void *a, const void *b)
{
	const struct gw_torn_row *left = a, *right = b;
	return left->local < right->local ? -1 : left->local > right->local;
}

/* Every third row is being written all the time. */
static void torn_rows_are_listed(void **state)
{
	struct one one;
	uint64_t remote[HELD_MAX], sequences[HELD_MAX], seed = 9;
	struct gw_span spans[HELD_MAX];
	static const uint32_t sizes[] = {100, 5000, 300000};
	for (size_t size = 0; size < 3; size++) {
		uint32_t bytes = sizes[size], n = size == 2 ? 6 : HELD_MAX;
		rows_begin(&one, state, bytes, n, (uint64_t)n * (bytes + 4));
		const struct gw_row_format *format = &one.region.rows.format;
		for (uint32_t i = 0; i < n; i += 3)
			sequences[i] = row_take(format, gw_bed_row(&one.bed, i));
		for (uint32_t i = 0; i < n; i++) {
			remote[i] = (uint64_t)i * format->stride;
			spans[i] = (struct gw_span){remote[i], (uint64_t)(n - 1 - i) * (bytes + 4), bytes};
		}
		for (int form = 0; form < 2; form++) {
			struct gw_gather gather = {.remote = remote,
						   .row_bytes = bytes,
						   .stride = bytes + 4 * (uint32_t)gw_below(&seed, 2)};
			struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
			if (form)
				gw_bed_readv(one.endpoint, &set, &one.region, one.buffer, spans, n);
			else
				gw_bed_gather(one.endpoint, &set, &one.region, one.buffer, &gather, n);
			struct gw_completion completion = gw_bed_wait(one.group, &set);
			assert_int_equal(completion.status, GW_AGAIN);
			assert_true(strlen(completion.text) > 0);
			assert_int_equal(completion.torn_count, (n + 2) / 3);
			struct gw_torn_row torn[HELD_MAX];
			memcpy(torn, completion.torn, completion.torn_count * sizeof(torn[0]));
			qsort(torn, completion.torn_count, sizeof(torn[0]), torn_compare);
			for (uint32_t i = 0, t = 0; i < n; i++) {
				uint32_t row = form ? n - 1 - i : i;
				uint64_t local = form ? spans[row].local : (uint64_t)row * gather.stride;
				if (row % 3 == 0) {
					assert_int_equal(torn[t].remote, remote[row]);
					assert_int_equal(torn[t++].local, local);
				} else {
					assert_true(payload_is_whole(one.landing + local, bytes));
				}
			}
		}
		for (uint32_t i = 0; i < n; i += 3)
			gw_row_unlock(format, gw_bed_row(&one.bed, i), sequences[i]);
		read_rows(&one, &seed, n / 2, 3); /* the failure leaves nothing behind */
		gw_one_end(&one);
	}
}

static void sets_of_both_kinds(void **state)
{
	struct one one;
	rows_begin(&one, state, 40, 4, 4096);
	uint64_t sequence = row_take(&one.region.rows.format, gw_bed_row(&one.bed, 2));
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	struct gw_span plain = {3, 1000, 333}, row = {2ull * one.region.rows.format.stride, 0, 40}, other = {0, 50, 40};
	const struct gw_region *regions = one.endpoint->peer.regions;
	assert_int_equal(gw_endpoint_readv(one.endpoint, &set, &one.region, one.buffer, &row, 1, false), 1);
	assert_int_equal(gw_endpoint_readv(one.endpoint, &set, &regions[0], one.buffer, &plain, 1, false), 1);
	assert_int_equal(gw_endpoint_readv(one.endpoint, &set, &one.region, one.buffer, &other, 1, true), 1);
	struct gw_completion completion = gw_bed_wait(one.group, &set);
	assert_int_equal(completion.status, GW_AGAIN);
	assert_int_equal(completion.torn_count, 1);
	assert_int_equal(completion.torn[0].remote, row.remote);
	assert_int_equal(completion.torn[0].local, 0);
	assert_memory_equal(one.landing + 1000, one.bed.memory + 3, 333);
	assert_true(payload_is_whole(one.landing + 50, 40));
	gw_row_unlock(&one.region.rows.format, gw_bed_row(&one.bed, 2), sequence);
	gw_one_end(&one);
}

/* --- Writers and readers. --- */

struct writer {
	struct bed *bed;
	_Atomic bool *stop;
	uint64_t seed;
	uint32_t rows; /* the writer writes to the first `rows` rows */
	_Atomic uint64_t written;
};

static void *write_rows(void *argument)
{
	struct writer *writer = argument;
	uint32_t bytes = writer->bed->row_format.format.payload_bytes;
	uint8_t *payload = malloc(bytes);
	while (payload && !atomic_load(writer->stop)) {
		payload_make(payload, bytes, gw_below(&writer->seed, UINT64_MAX));
		gw_bed_row_write(writer->bed, (uint32_t)gw_below(&writer->seed, writer->rows), payload);
		atomic_fetch_add(&writer->written, 1);
	}
	free(payload);
	return NULL;
}

/* Returns how many rows were listed as torn. */
static uint32_t read_batch(struct one *one, uint64_t *seed, uint32_t batch)
{
	uint32_t row_bytes = one->region.rows.format.payload_bytes;
	uint64_t remote[BATCH_MAX];
	for (uint32_t i = 0; i < batch; i++)
		remote[i] = gw_below(seed, one->bed.row_count) * one->region.rows.format.stride;
	struct gw_gather gather = {.remote = remote, .row_bytes = row_bytes, .stride = row_bytes};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_gather(one->endpoint, &set, &one->region, one->buffer, &gather, batch);
	struct gw_completion completion = gw_bed_wait(one->group, &set);
	assert_int_equal(completion.status, completion.torn_count ? GW_AGAIN : GW_OK);
	for (uint32_t i = 0; i < completion.torn_count; i++)
		payload_make(one->landing + completion.torn[i].local, row_bytes, 0);
	for (uint32_t i = 0; i < batch; i++)
		assert_true(payload_is_whole(one->landing + (uint64_t)i * row_bytes, row_bytes));
	return completion.torn_count;
}

/* Reads until `reads_wanted` rows were read and every writer has written. Long rows may be torn at every try, but not
 * after the writers have stopped. */
static void never_torn(void **state, uint32_t row_bytes, uint32_t row_count, uint32_t reads_wanted)
{
	struct one one;
	uint64_t seed = 3;
	uint32_t reads = 0, batch = row_bytes > 4096 ? 4 : BATCH_MAX;
	_Atomic bool stop = false;
	rows_begin(&one, state, row_bytes, row_count, (uint64_t)batch * row_bytes);
	if (words_are_refused(&one))
		return;
	struct writer writers[2] = {{&one.bed, &stop, 11, row_count, 0}, {&one.bed, &stop, 12, row_count, 0}};
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_rows, &writers[i]), 0);
	for (; reads < gw_many(reads_wanted) || !atomic_load(&writers[0].written) || !atomic_load(&writers[1].written);
	     reads += batch)
		read_batch(&one, &seed, batch);
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(read_batch(&one, &seed, batch), 0);
	gw_one_end(&one);
}

static void one_hot_row(void **state)
{
	never_torn(state, 400, 1, READS);
	never_torn(state, 8, 1, READS);
}

static void many_rows(void **state)
{
	never_torn(state, 1600, 1000, READS);
	never_torn(state, 60000, 3, 400);
	never_torn(state, 400000, 2, 40);
}

/* --- Order. --- */

static void a_write_that_was_acknowledged_is_seen(void **state)
{
	static const uint32_t sizes[] = {4, 8, 400};
	for (size_t size = 0; size < 3; size++) {
		struct one one;
		uint8_t call[4 + 400], payload[400];
		uint32_t bytes = sizes[size];
		uint64_t seed = 5;
		rows_begin(&one, state, bytes, 7, 4096);
		if (words_are_refused(&one))
			continue;
		for (uint32_t i = 0, n = gw_many(500); i < n; i++) {
			uint32_t row = (uint32_t)gw_below(&seed, 7);
			payload_make(payload, bytes, 1000 + i);
			memcpy(call, &row, 4);
			memcpy(call + 4, payload, bytes);
			assert_int_equal(gw_one_call(&one, BED_OP_WRITE, 0, call, 4 + bytes).status, GW_OK);
			struct gw_span span = {(uint64_t)row * one.region.rows.format.stride, 0, bytes};
			struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
			gw_bed_readv(one.endpoint, &set, &one.region, one.buffer, &span, 1);
			gw_one_wait_ok(&one, &set);
			assert_memory_equal(one.landing, payload, bytes);
		}
		gw_one_end(&one);
	}
}

/* --- Memory. --- */

/* Torn rows are listed while each allocation fails in its turn: the list is correct, or the set fails. */
static void lists_without_memory(void **state)
{
	struct one one;
	uint64_t remote[HELD_MAX], seed = 1;
	bool clean = false;
	rows_begin(&one, state, 100, HELD_MAX, HELD_MAX * 110);
	read_rows(&one, &seed, HELD_MAX, 0); /* the server has its buffers */
	for (uint32_t i = 0; i < HELD_MAX; i++) {
		row_take(&one.region.rows.format, gw_bed_row(&one.bed, i));
		remote[i] = (uint64_t)i * one.region.rows.format.stride;
	}
	struct gw_gather gather = {.remote = remote, .row_bytes = 100, .stride = 100};
	for (unsigned long at = 1; !clean; at++) {
		struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
		gw_bed_fault_begin(&one.bed, at);
		gw_bed_gather(one.endpoint, &set, &one.region, one.buffer, &gather, HELD_MAX);
		struct gw_completion completion = gw_bed_wait(one.group, &set);
		clean = !gw_bed_fault_end(&one.bed);
		assert_true(completion.status == GW_AGAIN || completion.status == GW_NO_MEMORY);
		assert_int_equal(completion.torn_count, completion.status == GW_AGAIN ? HELD_MAX : 0);
		assert_true(!clean || completion.status == GW_AGAIN);
	}
	one.region = one.endpoint->peer.regions[0];
	gw_one_read_works(&one);
	gw_one_end(&one);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(regions_describe_their_rows)},
		{BED_TEST(rows_land_without_trailers)},
		{BED_TEST(parts_of_rows_are_refused)},
		{BED_TEST(small_rows_are_read_one_by_one)},
		{BED_TEST(torn_rows_are_listed)},
		{BED_TEST(sets_of_both_kinds)},
		{BED_TEST(one_hot_row)},
		{BED_TEST(many_rows)},
		{BED_TEST(a_write_that_was_acknowledged_is_seen)},
		{BED_TEST(lists_without_memory)},
	};
	return gw_bed_run("transport_versioned", tests, sizeof(tests) / sizeof(tests[0]));
}
