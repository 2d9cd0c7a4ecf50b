/* Landings: a payload that arrives in random cuts, in place or through a staging buffer, is where a plain loop puts
 * it, and no other byte of the destination changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/transport_bed.h"
#include "transport/tcp/client/dest.h"

#define AREA_BYTES (1u << 20)
#define RANGES_MAX 4096u
#define PIECES_MAX 9u

struct place {
	uint8_t area[AREA_BYTES], expected[AREA_BYTES], data[AREA_BYTES];
	uint32_t rows[RANGES_MAX];
	struct gw_span spans[RANGES_MAX];
	uint64_t seed;
};

static int set_up(void **state)
{
	struct place *place = malloc(sizeof(*place));
	assert_non_null(place);
	place->seed = 1;
	for (uint32_t i = 0; i < AREA_BYTES; i++)
		place->data[i] = (uint8_t)gw_below(&place->seed, 256);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

/* Acts as the kernel: writes m bytes to the pieces. */
static void receive(const struct iovec *iov, const uint8_t *data, uint64_t m)
{
	for (; m; iov++) {
		uint64_t part = m < iov->iov_len ? m : iov->iov_len;
		memcpy(iov->iov_base, data, part);
		data += part;
		m -= part;
	}
}

/* The payload arrives in random cuts; `expected` is the destination afterwards. */
static void arrive(struct place *place, struct tcp_dest dest, uint64_t bytes)
{
	uint64_t *seed = &place->seed, done = 0;
	uint64_t cut = 1 + gw_below(seed, gw_below(seed, 2) ? 50 : 100000);
	struct iovec iov[PIECES_MAX];
	assert_int_equal(dest.left, bytes);
	while (done < bytes) {
		uint64_t n = gw_below(seed, cut + 1);
		if (gw_below(seed, 2)) {
			size_t max = 1 + gw_below(seed, PIECES_MAX), pieces = gw_tcp_dest_pieces(&dest, iov, max);
			uint64_t held = 0;
			assert_in_range(pieces, 1, max);
			for (size_t i = 0; i < pieces; i++)
				held += iov[i].iov_len;
			assert_in_range(held, 1, bytes - done);
			n = n < held ? n : held;
			receive(iov, place->data + done, n);
			gw_tcp_dest_skip(&dest, n);
		} else {
			n = n < bytes - done ? n : bytes - done;
			gw_tcp_dest_copy(&dest, place->data + done, n);
		}
		done += n;
		assert_int_equal(dest.left, bytes - done);
	}
	assert_int_equal(gw_tcp_dest_pieces(&dest, iov, PIECES_MAX), 0);
	gw_tcp_dest_copy(&dest, place->data, 0);
	gw_tcp_dest_skip(&dest, 0);
	assert_memory_equal(place->area, place->expected, AREA_BYTES);
}

static void begin(struct place *place)
{
	memset(place->area, 0xaa, AREA_BYTES);
	memset(place->expected, 0xaa, AREA_BYTES);
}

static void shuffle(struct place *place, uint32_t n)
{
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = (uint32_t)gw_below(&place->seed, i), row = place->rows[j];
		place->rows[j] = place->rows[i - 1];
		place->rows[i - 1] = row;
	}
}

/* rows: 0: no rows; 1: consecutive rows; 2: scattered rows in any order. */
static void random_gather(struct place *place, uint32_t n, uint32_t row_bytes, int rows)
{
	uint64_t *seed = &place->seed;
	uint32_t gap = gw_below(seed, 2) ? (uint32_t)gw_below(seed, 20) : 0, first = (uint32_t)gw_below(seed, 4);
	struct gw_gather gather = {.rows = rows ? place->rows : NULL,
				   .local = gw_below(seed, 100),
				   .row_bytes = row_bytes,
				   .stride = row_bytes + gap};
	begin(place);
	for (uint32_t i = 0; i < n; i++)
		place->rows[i] = rows == 1 ? first + i : rows == 2 ? i + (i > n / 2) : i;
	if (rows == 2)
		shuffle(place, n);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t b = 0; b < row_bytes; b++) {
			uint64_t at = gather.local + (uint64_t)place->rows[i] * gather.stride + b;
			assert_true(at < AREA_BYTES);
			place->expected[at] = place->data[(uint64_t)i * row_bytes + b];
		}
	arrive(place, gw_tcp_dest_gather(place->area, &gather, n), (uint64_t)n * row_bytes);
}

static void gathers(void **state)
{
	static const uint32_t sizes[] = {0, 1, 4, 7, 8, 16, 100, 400, 2047, 2048, 5000, 60000};
	struct place *place = *state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (int round = 0; round < 18; round++) {
			uint32_t most = (AREA_BYTES - 100) / (sizes[s] + 20) - 4;
			most = most < RANGES_MAX ? most : RANGES_MAX;
			uint32_t n = round < 3 ? 1 : 1 + (uint32_t)gw_below(&place->seed, most);
			random_gather(place, n, sizes[s], round % 3);
		}
	random_gather(place, 0, 8, 0);
	random_gather(place, 0, 8, 1);
}

/* As many rows as are copied around the caches, at any alignment. */
static void many_long_rows(void **state)
{
	static const uint32_t sizes[] = {TCP_DEST_AROUND_ROW, 257, 300, 400, 512, 1000, TCP_DEST_DIRECT_SPAN - 1};
	struct place *place = *state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (int round = 0; round < 9; round++) {
			uint32_t least = (TCP_DEST_AROUND_BYTES + sizes[s] - 1) / sizes[s];
			uint32_t most = (AREA_BYTES - 100) / (sizes[s] + 20) - 4;
			const struct gw_gather gather = {.row_bytes = sizes[s], .stride = sizes[s] + 1};
			assert_true(gw_tcp_dest_gather(place->area, &gather, least).around);
			assert_false(gw_tcp_dest_gather(place->area, &gather, least - 1).around);
			random_gather(place, least + (uint32_t)gw_below(&place->seed, most - least + 1), sizes[s],
				      round % 3);
		}
}

/* Spans of random lengths, some empty, adjacent or apart, in order or not. */
static void random_spans(struct place *place, uint32_t n, uint32_t bytes_max, bool apart, bool shuffled)
{
	uint64_t *seed = &place->seed, local = gw_below(seed, 50), sum = 0;
	begin(place);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t bytes = gw_below(seed, 4) ? (uint32_t)gw_below(seed, bytes_max + 1) : 0;
		local += apart ? gw_below(seed, 30) : 0;
		place->spans[i] = (struct gw_span){.local = local, .bytes = bytes};
		local += bytes;
		sum += bytes;
	}
	assert_true(local <= AREA_BYTES);
	for (uint32_t i = shuffled ? n : 0; i > 1; i--) {
		uint32_t j = (uint32_t)gw_below(seed, i);
		struct gw_span span = place->spans[j];
		place->spans[j] = place->spans[i - 1];
		place->spans[i - 1] = span;
	}
	uint64_t come = 0;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t b = 0; b < place->spans[i].bytes; b++)
			place->expected[place->spans[i].local + b] = place->data[come++];
	arrive(place, gw_tcp_dest_spans(place->area, place->spans, n, sum), sum);
}

static void spans(void **state)
{
	static const uint32_t sizes[] = {0, 1, 30, 400, 1000, 5000, 100000};
	struct place *place = *state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (int round = 0; round < 24; round++) {
			uint32_t most = (AREA_BYTES - 100) / (sizes[s] + 30);
			most = most < RANGES_MAX ? most : RANGES_MAX;
			uint32_t n = round < 4 ? 1 : 1 + (uint32_t)gw_below(&place->seed, most);
			random_spans(place, n, sizes[s], round & 1, round & 2);
		}
	random_spans(place, 0, 1, false, false);
}

/* A contiguous payload is received in place with one call: the fast path exists. */
static void one_piece_where_possible(void **state)
{
	struct place *place = *state;
	struct iovec iov[2];
	uint32_t rows[] = {5, 6, 7};
	struct gw_gather gather = {.rows = rows, .local = 10, .row_bytes = 8, .stride = 8};
	struct tcp_dest packed = gw_tcp_dest_gather(place->area, &gather, 3);
	assert_true(packed.direct);
	assert_int_equal(gw_tcp_dest_pieces(&packed, iov, 2), 1);
	assert_ptr_equal(iov[0].iov_base, place->area + 10 + 40);
	assert_int_equal(iov[0].iov_len, 24);
	rows[1] = 9;
	assert_false(gw_tcp_dest_gather(place->area, &gather, 3).direct);
	gather.row_bytes = gather.stride = TCP_DEST_DIRECT_SPAN;
	assert_true(gw_tcp_dest_gather(place->area, &gather, 3).direct);
	const struct gw_span adjacent[] = {{0, 100, 4}, {900, 104, 0}, {50, 104, 6}};
	struct tcp_dest dest = gw_tcp_dest_spans(place->area, adjacent, 3, 10);
	assert_true(dest.direct);
	assert_int_equal(gw_tcp_dest_pieces(&dest, iov, 2), 1);
	assert_ptr_equal(iov[0].iov_base, place->area + 100);
	assert_int_equal(iov[0].iov_len, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gathers),
		cmocka_unit_test(many_long_rows),
		cmocka_unit_test(spans),
		cmocka_unit_test(one_piece_where_possible),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
