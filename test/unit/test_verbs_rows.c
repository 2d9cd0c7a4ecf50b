/* Rows that change, read from a made-up device (test/support/verbs_card.h) which fetches their bytes in whatever pieces
 * and order, while a writer writes: what is accepted is whole, what stays torn is told, and a region that is withdrawn
 * ends its own reads and no others. */
#include <stdio.h>
#ifndef GRAPHWIRE_VERBS
int main(void)
{
	printf("1..0 # SKIP built without RDMA\n");
	return 0;
}
#else
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/alloc.h"
#include "core/base/rng.h"
#include "test/support/transport_bed.h"
#include "test/support/verbs_card.h"
#include "transport/reads.h"
#include "transport/verbs/endpoint.h"

#undef ibv_reg_mr

/* --- Reads: posted, and answered by the next look at the completion queue. --- */

#define WORKS_MAX 1024
#define QPS       2
#define ROWS_MAX  600
#define SLICES    64

static struct {
	struct {
		struct ibv_qp *qp;
		struct ibv_send_wr wr;
		struct ibv_sge sges[VERBS_SGES_MAX];
	} works[WORKS_MAX];
	uint32_t count, posted, refused;
	int reg_error;
	bool hold; /* nothing is answered */
	/* Between any two bytes: the writer's turn. */
	void (*between)(void);
	uint64_t seed;
} reads;

static const uint32_t rkey_first = 77; /* of slice 0 of a region; the next ones follow */

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *memory, size_t bytes, int access)
{
	errno = reads.reg_error;
	if (reads.reg_error)
		return NULL;
	struct ibv_mr *mr = calloc(1, sizeof(*mr));
	assert_int_equal(access, IBV_ACCESS_LOCAL_WRITE);
	*mr = (struct ibv_mr){.pd = pd, .addr = memory, .length = bytes, .lkey = 5};
	return mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	return 0;
}

static int card_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)bad;
	for (; wr; wr = wr->next) {
		assert_true(reads.count < WORKS_MAX);
		assert_in_range(wr->num_sge, 1, VERBS_SGES_MAX);
		reads.works[reads.count].qp = qp;
		reads.works[reads.count].wr = *wr;
		memcpy(reads.works[reads.count++].sges, wr->sg_list, (size_t)wr->num_sge * sizeof(struct ibv_sge));
		reads.posted++;
	}
	return 0;
}

/* The region that may be read: what lies elsewhere, or has another key, is a mistake of ours. */
static struct {
	uint8_t *base;
	uint64_t bytes;
	uint32_t shift;
} served;

static void fetch(const struct ibv_send_wr *wr, const struct ibv_sge *sges)
{
	const uint8_t *from = (const uint8_t *)(uintptr_t)wr->wr.rdma.remote_addr;
	uint64_t at = (uint64_t)(from - served.base);
	for (int i = 0; i < wr->num_sge; i++) {
		assert_in_range(at + sges[i].length, 1, served.bytes);
		assert_int_equal(wr->wr.rdma.rkey, rkey_first + (at >> served.shift));
		assert_int_equal(at >> served.shift, (at + sges[i].length - 1) >> served.shift);
		/* The pieces of an element in any order. */
		uint8_t *to = (uint8_t *)(uintptr_t)sges[i].addr;
		uint32_t piece = 1 + (uint32_t)gw_below(&reads.seed, 64), n = (sges[i].length + piece - 1) / piece;
		uint32_t first = (uint32_t)gw_below(&reads.seed, n);
		for (uint32_t p = 0; p < n; p++) {
			uint32_t begin = (first + p) % n * piece, left = sges[i].length - begin;
			memcpy(to + begin, served.base + at + begin, left < piece ? left : piece);
			if (reads.between)
				reads.between();
		}
		at += sges[i].length;
	}
}

static int card_answer(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int answered = 0;
	(void)cq;
	for (uint32_t i = 0; i < reads.count && answered < n && !reads.hold; i++) {
		fetch(&reads.works[i].wr, reads.works[i].sges);
		if (reads.works[i].wr.send_flags & IBV_SEND_SIGNALED)
			wc[answered++] = (struct ibv_wc){.wr_id = reads.works[i].wr.wr_id, .status = IBV_WC_SUCCESS};
		if (answered == n || i + 1 == reads.count) {
			memmove(reads.works, reads.works + i + 1, (reads.count - i - 1) * sizeof(reads.works[0]));
			reads.count -= i + 1;
			break;
		}
	}
	return answered;
}

/* --- An endpoint that is open, without a server. --- */

struct side {
	struct gw_poll_group *group;
	struct verbs_loop *loop;
	struct verbs_endpoint *endpoint;
	struct gw_buffer buffer;
	uint8_t *keys;
	struct gw_region region;
	struct gw_row_format format;
	uint8_t *memory; /* the region's, and what was written last */
	uint32_t rows;
};

static struct side *writing; /* whose rows `between` writes */

static void side_run(struct verbs_deferred *deferred)
{
	struct verbs_endpoint *endpoint =
		(struct verbs_endpoint *)(void *)((uint8_t *)deferred - offsetof(struct verbs_endpoint, deferred));
	gw_verbs_reads_pump(endpoint);
}

static void payload_make(uint8_t *to, uint32_t bytes, uint64_t value)
{
	for (uint32_t at = 0; at < bytes; at += 8) {
		uint64_t word = at ? gw_mix64(value + at) : value;
		memcpy(to + at, &word, bytes - at < 8 ? bytes - at : 8);
	}
}

static bool payload_is_whole(const uint8_t *payload, uint32_t bytes)
{
	uint8_t expected[8192];
	uint64_t value = 0;
	memcpy(&value, payload, bytes < 8 ? bytes : 8);
	payload_make(expected, bytes, value);
	return memcmp(payload, expected, bytes) == 0;
}

static void row_write(struct side *side, uint32_t row, uint64_t value)
{
	uint8_t payload[8192], *at = side->memory + (uint64_t)row * side->format.stride;
	payload_make(payload, side->format.payload_bytes, value);
	uint64_t sequence = gw_row_lock(&side->format, at);
	gw_row_publish(&side->format, side->region.rows.seed, row, at, sequence, payload);
}

static void side_connect(struct side *side, uint32_t sges)
{
	struct verbs_endpoint *endpoint = side->endpoint;
	card.attr.max_sge = card.attr.max_sge_rd = (int)sges;
	for (uint32_t i = 0; i < QPS; i++) {
		struct verbs_needs needs = {.work = VERBS_RING, .sges = VERBS_SGES_MAX};
		struct rdma_cm_id *id;
		rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP);
		rdma_bind_addr(id, NULL);
		id->port_num = 1;
		id->route.addr.src_addr.sa_family = AF_INET;
		assert_int_equal(gw_verbs_poller_get(side->loop, id, &endpoint->poller), GW_OK);
		assert_int_equal(gw_verbs_qp_create(endpoint->poller, id, endpoint->poller->device->pd, &needs,
						    &endpoint->conns[i].qp),
				 GW_OK);
		id->qp->context = &card.verbs.context;
		endpoint->conns[i].qp->deferred = &endpoint->deferred;
		endpoint->conns[i].qp->owner = endpoint;
		endpoint->conns[i].qp->read_done = gw_verbs_read_done;
	}
	endpoint->qp_count = QPS;
}

static void side_begin(struct side *side, uint32_t row_bytes, uint32_t rows, uint32_t shift, uint32_t sges)
{
	void *loop;
	memset(side, 0, sizeof(*side));
	memset(&reads, 0, sizeof(reads));
	card_begin(1);
	card.verbs.context.ops.post_send = card_post;
	card.verbs.context.ops.poll_cq = card_answer;
	assert_int_equal(gw_poll_group_create(NULL, &side->group), GW_OK);
	assert_int_equal(gw_poll_group_state(side->group, &gw_transport_verbs, &loop), GW_OK);
	side->loop = loop;
	struct verbs_endpoint *endpoint = side->endpoint = calloc(1, sizeof(*endpoint));
	endpoint->base = (struct gw_endpoint){.transport = &gw_transport_verbs, .group = side->group};
	endpoint->loop = loop;
	endpoint->phase = ENDPOINT_OPENED;
	endpoint->base.state = GW_ENDPOINT_OPEN;
	endpoint->deferred.run = side_run;
	endpoint->base.peer = (struct gw_peer){.regions = endpoint->regions, .region_count = 1};
	gw_verbs_reads_begin(endpoint);
	side_connect(side, sges);
	/* Rows of a region of several slices. */
	assert_int_equal(gw_row_format_init(row_bytes, &side->format), GW_OK);
	side->rows = rows;
	side->region = (struct gw_region){.bytes = (uint64_t)rows * side->format.stride,
					  .generation = 1,
					  .kind = GW_REGION_VERSIONED,
					  .rows = {side->format, 99}};
	side->memory = aligned_alloc(64, (side->region.bytes + 63) & ~63ull);
	served.base = side->memory;
	served.bytes = side->region.bytes;
	served.shift = shift;
	side->keys = malloc(4 * SLICES);
	for (uint32_t i = 0; i < SLICES; i++)
		memcpy(side->keys + 4 * i, &(uint32_t){rkey_first + i}, 4);
	assert_true(side->region.bytes >> shift < SLICES);
	endpoint->regions[0] = side->region;
	endpoint->places[0] = (struct verbs_place){(uintptr_t)side->memory, side->keys, shift};
	for (uint32_t i = 0; i < rows; i++) {
		uint8_t payload[8192];
		payload_make(payload, row_bytes, i);
		gw_row_make(&side->format, 99, i, side->memory + (uint64_t)i * side->format.stride, payload);
	}
}

/* A destination: large ones are registered, small ones go by way of the bounce buffer. */
static void side_land(struct side *side, uint64_t bytes)
{
	side->buffer = (struct gw_buffer){.base = calloc(1, bytes), .bytes = bytes, .group = side->group};
}

static void side_release(struct side *side)
{
	gw_transport_verbs.buffer_release(side->loop, &side->buffer);
	free(side->buffer.base);
}

static void side_end(struct side *side)
{
	struct verbs_endpoint *endpoint = side->endpoint;
	reads.hold = false;
	gw_verbs_conns_end(endpoint);
	gw_verbs_late_end(endpoint);
	gw_poll_group_destroy(side->group);
	free(endpoint);
	free(side->memory);
	free(side->keys);
	card_end();
}

/* Polls until a completion has come, or nothing is left to be answered. */
static size_t side_poll(struct side *side, struct gw_completion *completion)
{
	for (int turn = 0; turn < 100000; turn++) {
		gw_verbs_poller_poll(side->endpoint->poller);
		while (side->loop->deferred) {
			struct verbs_deferred *deferred = side->loop->deferred;
			gw_verbs_undefer(side->loop, deferred);
			deferred->run(deferred);
		}
		if (gw_completions_take(&side->loop->completions, completion, 1))
			return 1;
		if (!reads.count || reads.hold)
			return 0;
	}
	fail_msg("it goes on and on");
	return 0;
}

/* Gathers rows, in as many calls as there is room for. */
static struct gw_completion side_gather(struct side *side, const uint64_t *remote, size_t n, uint32_t apart)
{
	static struct gw_read_set set;
	struct gw_completion completion;
	size_t taken = 0;
	set = (struct gw_read_set){.cookie = side};
	for (;;) {
		struct gw_gather rest = {.remote = remote + taken,
					 .local = taken * apart,
					 .row_bytes = side->format.payload_bytes,
					 .stride = apart};
		if (taken < n || n == 0)
			taken += gw_verbs_gather(&side->endpoint->base, &set, &side->region, &side->buffer, &rest,
						 n - taken, true);
		if (side_poll(side, &completion))
			return completion;
		assert_true(taken < n);
	}
}

/* --- Nobody writes. --- */

static void rows_land_beside_their_trailers(void **state)
{
	static const uint32_t sizes[] = {3, 12, 16, 100, 1600, 8000};
	uint64_t seed = 1;
	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (uint32_t sges = 1; sges <= VERBS_SGES_MAX; sges += sges == 1 ? 1 : 6)
			for (int bounce = 0; bounce < 2; bounce++) {
				struct side side;
				uint32_t bytes = sizes[s], apart = bytes + 5, rows = bytes > 4000 ? 8 : 40;
				uint64_t remote[ROWS_MAX], n = bounce ? 60000 / apart : 66000 / apart + 1;
				n = n < ROWS_MAX ? n : ROWS_MAX;
				side_begin(&side, bytes, rows, 12, sges);
				side_land(&side, bounce ? n * apart : 70000 + n * apart);
				for (uint64_t i = 0; i < n; i++) /* runs of neighbours among them */
					remote[i] = (i % 5 ? (remote[i - 1] / side.format.stride + 1) % rows
							   : gw_below(&seed, rows)) *
						    side.format.stride;
				assert_int_equal(side_gather(&side, remote, n, apart).status, GW_OK);
				for (uint64_t i = 0; i < n; i++) {
					const uint8_t *row = side.buffer.base + i * apart;
					assert_memory_equal(row, side.memory + remote[i], bytes);
					for (uint32_t at = bytes; at < apart; at++)
						assert_int_equal(row[at], 0);
				}
				side_release(&side);
				side_end(&side);
			}
}

/* --- A writer between any two bytes. --- */

static uint64_t writer_seed, writer_one_in, writer_value;

static void write_now_and_then(void)
{
	if (gw_below(&writer_seed, writer_one_in) == 0)
		row_write(writing, (uint32_t)gw_below(&writer_seed, writing->rows), 1000 + writer_value++);
}

/* All rows of the completion are whole but for those that it tells; how many these are. */
static uint32_t check_rows(const struct side *side, const struct gw_completion *completion, uint64_t n, uint32_t apart)
{
	assert_int_equal(completion->status, completion->torn_count ? GW_AGAIN : GW_OK);
	for (uint32_t i = 0; i < completion->torn_count; i++)
		payload_make(side->buffer.base + completion->torn[i].local, side->format.payload_bytes, 0);
	for (uint64_t i = 0; i < n; i++)
		assert_true(payload_is_whole(side->buffer.base + i * apart, side->format.payload_bytes));
	return completion->torn_count;
}

static void none_is_torn(void **state)
{
	static const struct {
		uint32_t bytes, rows, one_in;
	} cases[] = {{40, 1, 40}, {40, 30, 10}, {1600, 4, 60}, {1600, 30, 400}, {5000, 2, 1500}};
	(void)state;
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct side side;
		uint64_t remote[64], torn = 0, seed = c;
		side_begin(&side, cases[c].bytes, cases[c].rows, 13, c % 2 ? 2 : 8);
		side_land(&side, c % 2 ? 64ull * cases[c].bytes : 70000 + 64ull * cases[c].bytes);
		writing = &side;
		writer_seed = c;
		writer_one_in = cases[c].one_in;
		reads.between = write_now_and_then;
		for (int round = 0; round < 30; round++) {
			for (int i = 0; i < 64; i++)
				remote[i] = gw_below(&seed, cases[c].rows) * side.format.stride;
			struct gw_completion completion = side_gather(&side, remote, 64, cases[c].bytes);
			torn += check_rows(&side, &completion, 64, cases[c].bytes);
		}
		/* A row that was torn once is not given up, and nothing is left of it. */
		assert_in_range(torn, 0, 30 * 64);
		reads.between = NULL;
		assert_int_equal(side_gather(&side, remote, 64, cases[c].bytes).status, GW_OK);
		side_release(&side);
		side_end(&side);
	}
}

/* Torn once: read again, and whole. */
static bool torn_once;

static void write_once(void)
{
	if (!torn_once)
		row_write(writing, 2, 4242);
	torn_once = true;
}

static void what_was_torn_is_read_again(void **state)
{
	struct side side;
	uint8_t expected[400];
	(void)state;
	side_begin(&side, 400, 4, 20, 8);
	side_land(&side, 100000);
	writing = &side;
	torn_once = false;
	reads.between = write_once;
	uint64_t remote = 2ull * side.format.stride;
	assert_int_equal(side_gather(&side, &remote, 1, 400).status, GW_OK);
	payload_make(expected, 400, 4242);
	assert_memory_equal(side.buffer.base, expected, 400);
	assert_int_equal(reads.posted, 2);
	side_release(&side);
	side_end(&side);
}

/* Rows that are being written all the time are told, those alone, each for each range that asked for it, after a
 * bounded number of reads. */
static void what_stays_torn_is_told(void **state)
{
	struct side side;
	uint64_t remote[ROWS_MAX], seed = 3;
	uint32_t held = 0;
	(void)state;
	side_begin(&side, 100, 30, 20, 8);
	side_land(&side, 100ull * ROWS_MAX + 70000);
	for (uint32_t i = 0; i < 30; i += 3)
		gw_row_lock(&side.format, side.memory + (uint64_t)i * side.format.stride);
	for (int i = 0; i < ROWS_MAX; i++) {
		uint64_t row = gw_below(&seed, 30);
		remote[i] = row * side.format.stride;
		held += row % 3 == 0;
	}
	struct gw_completion completion = side_gather(&side, remote, ROWS_MAX, 100);
	assert_int_equal(completion.status, GW_AGAIN);
	assert_int_equal(completion.torn_count, held);
	bool told[ROWS_MAX] = {0};
	for (uint32_t i = 0; i < held; i++) {
		uint64_t range = completion.torn[i].local / 100;
		assert_int_equal(completion.torn[i].local % 100, 0);
		assert_int_equal(completion.torn[i].remote, remote[range]);
		assert_int_equal(completion.torn[i].remote / side.format.stride % 3, 0);
		assert_false(told[range]);
		told[range] = true;
	}
	for (int i = 0; i < ROWS_MAX; i++)
		if (!told[i])
			assert_memory_equal(side.buffer.base + (size_t)i * 100, side.memory + remote[i], 100);
	assert_in_range(reads.posted, 0, ROWS_MAX + 20u * held);
	side_release(&side);
	side_end(&side);
}

/* A row of another generation's memory, or another row, has another hash. */
static void other_memory_is_no_row(void **state)
{
	struct side side;
	uint64_t remote = 0;
	(void)state;
	side_begin(&side, 64, 2, 20, 8);
	side_land(&side, 1000);
	memcpy(side.memory, side.memory + side.format.stride, side.format.stride);
	assert_int_equal(side_gather(&side, &remote, 1, 64).torn_count, 1);
	remote = side.format.stride;
	assert_int_equal(side_gather(&side, &remote, 1, 64).status, GW_OK);
	side.endpoint->regions[0].rows.seed++;
	assert_int_equal(side_gather(&side, &remote, 1, 64).torn_count, 1);
	side_release(&side);
	side_end(&side);
}

/* --- Words. --- */

static void words_need_a_device_that_promises(void **state)
{
	static const uint32_t sizes[] = {1, 2, 4, 8};
	(void)state;
	for (int i = 0; i < 4; i++)
		for (int whole = 0; whole < 2; whole++) {
			struct side side;
			uint64_t remote[30];
			side_begin(&side, sizes[i], 30, 12, 8);
			side_land(&side, 1000);
			for (uint32_t r = 0; r < 30; r++)
				remote[r] = (29 - r) * sizes[i];
			side.endpoint->whole_words = whole;
			struct gw_completion completion = side_gather(&side, remote, 30, sizes[i]);
			bool read = whole || sizes[i] == 1;
			assert_int_equal(completion.status, read ? GW_OK : GW_UNSUPPORTED);
			assert_int_equal(reads.posted > 0, read);
			for (uint32_t r = 0; r < 30 && read; r++)
				assert_memory_equal(side.buffer.base + r * sizes[i], side.memory + remote[r], sizes[i]);
			side_release(&side);
			side_end(&side);
		}
}

/* --- Regions that come late and go. --- */

struct late_place {
	struct verbs_place place;
	uint8_t keys[4 * SLICES];
};

/* The region of the side as one that came late: what a completed open leaves. */
static struct gw_late_entry *side_late(struct side *side, uint32_t id, uint32_t generation)
{
	struct gw_late_entry *entry, before;
	side->region.id = id;
	side->region.generation = generation;
	assert_int_equal(gw_late_add(&side->endpoint->base, &side->region, &entry, &before), GW_OK);
	assert_null(before.mapping);
	struct late_place *late = gw_malloc(sizeof(*late));
	memcpy(late->keys, side->keys, sizeof(late->keys));
	late->place = side->endpoint->places[0];
	late->place.keys = late->keys;
	entry->mapping = late;
	return entry;
}

static void post_one(struct side *side, struct gw_read_set *set, const struct gw_region *region, uint64_t *remote)
{
	struct gw_gather gather = {.remote = remote, .row_bytes = 40, .stride = 40};
	*set = (struct gw_read_set){.cookie = set};
	assert_int_equal(gw_verbs_gather(&side->endpoint->base, set, region, &side->buffer, &gather, 1, true), 1);
}

static void withdrawn_regions_end_their_reads_alone(void **state)
{
	struct side side;
	static struct gw_read_set gone, stays, after;
	struct gw_completion completion;
	uint64_t remote = 0;
	(void)state;
	side_begin(&side, 40, 10, 20, 8);
	side_land(&side, 1000);
	struct gw_region first = side.region;
	struct gw_late_entry *entry = side_late(&side, GW_REGIONS_MAX + 3, 9);
	reads.hold = true;
	post_one(&side, &gone, &side.region, &remote);
	post_one(&side, &stays, &first, &remote);
	assert_int_equal(reads.count, 2);
	assert_int_equal(entry->reads, 1);
	/* It is in flight: the keys stay until it has landed, and the set tells then. */
	gw_verbs_late_withdrawn(&side.endpoint->late_reader, side.region.id, side.region.generation);
	assert_false(entry->open);
	assert_int_equal(entry->reads, 1);
	assert_non_null(entry->mapping);
	assert_int_equal(side_poll(&side, &completion), 0);
	post_one(&side, &after, &side.region, &remote);
	assert_int_equal(reads.count, 2);
	reads.hold = false;
	bool told[3] = {0};
	for (int i = 0; i < 3; i++) {
		assert_int_equal(side_poll(&side, &completion), 1);
		int which = completion.cookie == &gone ? 0 : completion.cookie == &stays ? 1 : 2;
		assert_int_equal(completion.status, which == 1 ? GW_OK : GW_NOT_FOUND);
		assert_false(told[which]);
		told[which] = true;
	}
	assert_int_equal(entry->reads, 0);
	assert_null(entry->mapping);
	assert_int_equal(side.endpoint->phase, ENDPOINT_OPENED);
	side_release(&side);
	side_end(&side);
}

/* --- Memory. --- */

static void no_memory_for_trailers(void **state)
{
	struct side side;
	uint64_t remote = 0;
	(void)state;
	side_begin(&side, 40, 10, 20, 8);
	side_land(&side, 1000);
	for (int error = ENOMEM;; error = 0) {
		reads.reg_error = error;
		gw_status status = side_gather(&side, &remote, 1, 40).status;
		if (!error) {
			assert_int_equal(status, GW_OK);
			break;
		}
		assert_true(status == GW_LOCKED_MEMORY || status == GW_NO_MEMORY);
	}
	side_release(&side);
	side_end(&side);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_land_beside_their_trailers),
		cmocka_unit_test(none_is_torn),
		cmocka_unit_test(what_was_torn_is_read_again),
		cmocka_unit_test(what_stays_torn_is_told),
		cmocka_unit_test(other_memory_is_no_row),
		cmocka_unit_test(words_need_a_device_that_promises),
		cmocka_unit_test(withdrawn_regions_end_their_reads_alone),
		cmocka_unit_test(no_memory_for_trailers),
	};
	return cmocka_run_group_tests_name("verbs rows", tests, NULL, NULL);
}
#endif
