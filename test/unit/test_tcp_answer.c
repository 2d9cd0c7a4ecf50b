/* The answer to a read of mutable rows, gathered into a small buffer. Whatever room the buffer has, and however the
 * answer is cut, a torn row is listed once, and the other bytes equal the region's. Only a long range of memory that
 * stays and does not change is sent without a copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/must.h"
#include "transport/prefetch.h"
#include "transport/tcp/server/server_answer.h"

#define ROWS      3
#define ROW_BYTES 1000
#define TORN      1 /* the row that a writer has locked */

struct desk {
	struct gw_service *service;
	struct gw_region_rows rows;
	uint8_t *memory;
	uint8_t body[WIRE_READ_BYTES + 4 * ROWS];
};

static void desk_begin(struct desk *desk)
{
	const struct gw_service_identity identity = {.parts = 1, .incarnation = 5};
	uint8_t payload[ROW_BYTES];
	uint32_t region;
	*desk = (struct desk){.rows.seed = 3};
	must(gw_row_format_init(ROW_BYTES, &desk->rows.format));
	uint32_t stride = desk->rows.format.stride;
	desk->memory = aligned_alloc(64, (ROWS * (size_t)stride + 63) & ~(size_t)63);
	for (uint32_t i = 0; i < ROWS; i++) {
		memset(payload, (int)i + 1, ROW_BYTES);
		gw_row_make(&desk->rows.format, desk->rows.seed, i, desk->memory + i * stride, payload);
	}
	must(gw_service_create(&identity, NULL, &desk->service));
	must(gw_service_expose(desk->service, desk->memory, (uint64_t)ROWS * stride, 0, &desk->rows, &region));
	struct wire_read read = {.region = region,
				 .generation = desk->service->regions[region].generation,
				 .count = ROWS,
				 .length = ROW_BYTES,
				 .width = 4};
	memcpy(desk->body, &read, sizeof(read));
	for (uint32_t i = 0; i < ROWS; i++)
		memcpy(desk->body + WIRE_READ_BYTES + 4 * (size_t)i, &(uint32_t){i * stride}, 4);
}

static void desk_end(struct desk *desk)
{
	gw_service_destroy(desk->service);
	free(desk->memory);
}

/* The whole answer, through a buffer whose first `used` bytes are always occupied. */
static void answer_through(struct desk *desk, uint32_t out_bytes, uint32_t used)
{
	struct tcp_answer answer = {0};
	uint8_t *out = malloc(out_bytes), got[ROWS * ROW_BYTES], torn[WIRE_HEADER_BYTES + 4];
	uint32_t done = 0, out_end = used, torn_end = 0;
	bool all = false;
	must(gw_tcp_answer_begin(&answer, desk->service, WIRE_GATHER, desk->body, sizeof(desk->body)));
	while (!all) {
		uint32_t begun = out_end;
		all = gw_tcp_answer_gather(&answer, out, &out_end, out_bytes);
		assert_true(done + out_end - begun <= sizeof(got));
		memcpy(got + done, out + begun, out_end - begun);
		done += out_end - begun;
		/* A full buffer is emptied. A row that fits into the empty buffer waits for all of it. */
		out_end = begun == out_end && begun == used ? 0 : used;
	}
	assert_int_equal(done, ROWS * ROW_BYTES);
	for (uint32_t i = 0; i < ROWS * ROW_BYTES; i++)
		assert_true(i / ROW_BYTES == TORN || got[i] == i / ROW_BYTES + 1);
	assert_int_equal(answer.torn_count, 1);
	must(gw_tcp_answer_close(&answer, 1, torn, &torn_end, sizeof(torn)));
	assert_int_equal(torn_end, sizeof(torn));
	assert_int_equal(torn[WIRE_HEADER_BYTES], TORN);
	gw_tcp_answer_end(&answer);
	gw_service_peer_end(desk->service, &answer.peer);
	free(out);
}

static void a_torn_row_is_listed_once(void **state)
{
	(void)state;
	struct desk desk;
	uint64_t sequence;
	desk_begin(&desk);
	uint8_t *row = desk.memory + (size_t)TORN * desk.rows.format.stride;
	assert_true(gw_row_try_lock(&desk.rows.format, row, &sequence));
	/* Shorter than a row, as long as one, and longer; full at the beginning; full at a row's end. */
	for (uint32_t out_bytes = 1; out_bytes <= 2 * ROW_BYTES + 1; out_bytes += out_bytes < 20 ? 1 : 83) {
		answer_through(&desk, out_bytes, 0);
		answer_through(&desk, out_bytes, out_bytes / 2);
		answer_through(&desk, out_bytes, out_bytes);
	}
	answer_through(&desk, ROW_BYTES / 2, 0);
	answer_through(&desk, ROW_BYTES, 0);
	gw_row_unlock(&desk.rows.format, row, sequence);
	desk_end(&desk);
}

/* --- Ranges that are sent from the region. --- */

#define WIDE_BYTES (64u << 10)

/* Where the answer to a read of `count` ranges of `bytes` is sent from; NULL: from the output buffer. */
static const uint8_t *direct_of(struct gw_service *service, uint32_t region, uint32_t count, uint32_t bytes,
				uint32_t at)
{
	struct tcp_answer answer = {0};
	uint8_t body[WIRE_READ_BYTES + 4 * 2];
	const struct wire_read read = {.region = region,
				       .generation = service->regions[region].generation,
				       .count = count,
				       .length = bytes,
				       .width = 4};
	memcpy(body, &read, sizeof(read));
	for (uint32_t i = 0; i < count; i++)
		memcpy(body + WIRE_READ_BYTES + 4 * (size_t)i, &at, 4);
	must(gw_tcp_answer_begin(&answer, service, WIRE_GATHER, body, WIRE_READ_BYTES + 4 * count));
	const uint8_t *direct = gw_tcp_answer_direct(&answer);
	gw_tcp_answer_end(&answer);
	gw_service_peer_end(service, &answer.peer);
	return direct;
}

static void one_long_range_is_not_copied(void **state)
{
	(void)state;
	const struct gw_service_identity identity = {.parts = 1, .incarnation = 5};
	struct gw_region_rows rows = {.seed = 3};
	struct gw_service *service;
	uint32_t plain, versioned;
	must(gw_row_format_init(WIDE_BYTES, &rows.format));
	uint8_t *memory = calloc(1, 2 * WIDE_BYTES), *row = aligned_alloc(64, (rows.format.stride + 63) & ~63u);
	assert_true(memory && row);
	gw_row_make(&rows.format, rows.seed, 0, row, memory);
	must(gw_service_create(&identity, NULL, &service));
	must(gw_service_expose(service, memory, 2 * WIDE_BYTES, 0, NULL, &plain));
	must(gw_service_expose(service, row, rows.format.stride, 0, &rows, &versioned));
	assert_ptr_equal(direct_of(service, plain, 1, WIDE_BYTES, 100), memory + 100);
	assert_ptr_equal(direct_of(service, plain, 1, 2 * WIDE_BYTES, 0), memory);
	assert_null(direct_of(service, plain, 2, WIDE_BYTES, 100));
	assert_null(direct_of(service, plain, 1, 512, 100));
	/* A row that is written meanwhile must be recognized as torn. */
	assert_null(direct_of(service, versioned, 1, WIDE_BYTES, 0));
	gw_service_destroy(service);
	free(memory);
	free(row);
}

/* --- How rows are prefetched. --- */

#define LARGE_BYTES (64ull << 20) /* the smallest region that the trial uses */
#define LARGE_ROWS  300
#define LARGE_ROW   512u

static void rows_are_the_same(struct gw_service *service, const uint8_t *memory, uint64_t bytes)
{
	struct tcp_answer answer = {0};
	uint8_t body[WIRE_READ_BYTES + 8 * LARGE_ROWS], out[4000];
	uint32_t out_end = 0, done = 0;
	const struct wire_read read = {
		.generation = service->regions[0].generation, .count = LARGE_ROWS, .length = LARGE_ROW, .width = 8};
	memcpy(body, &read, sizeof(read));
	for (uint64_t i = 0; i < LARGE_ROWS; i++) {
		uint64_t at = i * (bytes - LARGE_ROW) / (LARGE_ROWS - 1);
		memcpy(body + WIRE_READ_BYTES + 8 * i, &at, 8);
	}
	must(gw_tcp_answer_begin(&answer, service, WIRE_GATHER, body, sizeof(body)));
	for (bool all = false; !all; done += out_end, out_end = 0) {
		all = gw_tcp_answer_gather(&answer, out, &out_end, sizeof(out));
		for (uint32_t i = 0; i < out_end; i++) {
			uint64_t row = (done + i) / LARGE_ROW, at = row * (bytes - LARGE_ROW) / (LARGE_ROWS - 1);
			assert_int_equal(out[i], memory[at + (done + i) % LARGE_ROW]);
		}
	}
	assert_int_equal(done, LARGE_ROWS * LARGE_ROW);
	gw_tcp_answer_end(&answer);
	gw_service_peer_end(service, &answer.peer);
}

static void the_choice_changes_no_bytes(void **state)
{
	(void)state;
	const struct gw_service_identity identity = {.parts = 1, .incarnation = 5};
	struct gw_prefetch_trial trial;
	struct gw_service *service;
	uint32_t region;
	uint8_t *memory = aligned_alloc(4096, LARGE_BYTES);
	assert_non_null(memory);
	for (uint64_t i = 0; i < LARGE_BYTES; i += 8)
		memcpy(memory + i, &(uint64_t){i * 0x9e3779b97f4a7c15}, 8);
	must(gw_service_create(&identity, NULL, &service));
	assert_int_equal(gw_prefetch_choose(service, GW_PREFETCH_AUTO, &trial),
			 GW_PREFETCH_FIRST); /* nothing to read */
	must(gw_service_expose(service, memory, LARGE_BYTES, 0, NULL, &region));
	assert_int_equal(gw_prefetch_choose(service, GW_PREFETCH_FIRST, &trial), GW_PREFETCH_FIRST);
	assert_true(trial.first_ns == 0 && trial.all_ns == 0);
	rows_are_the_same(service, memory, LARGE_BYTES);
	assert_int_equal(gw_prefetch_choose(service, GW_PREFETCH_ALL, NULL), GW_PREFETCH_ALL);
	rows_are_the_same(service, memory, LARGE_BYTES);
	enum gw_prefetch chosen = gw_prefetch_choose(service, GW_PREFETCH_AUTO, &trial);
	/* A process that was stopped for all of the trial's time has no figures. */
	if (trial.first_ns > 0)
		assert_int_equal(chosen, trial.all_ns < 0.97 * trial.first_ns ? GW_PREFETCH_ALL : GW_PREFETCH_FIRST);
	else
		assert_int_equal(chosen, GW_PREFETCH_FIRST);
	rows_are_the_same(service, memory, LARGE_BYTES);
	gw_service_destroy(service);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_torn_row_is_listed_once),
					   cmocka_unit_test(one_long_range_is_not_copied),
					   cmocka_unit_test(the_choice_changes_no_bytes)};
	return cmocka_run_group_tests_name("tcp answer", tests, NULL, NULL);
}
