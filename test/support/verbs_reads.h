/* An endpoint that reads from a made-up device (verbs_card.h): its reads are noted when they are posted and answered by
 * the next look at the completion queue, the pieces of each element in any order, with a turn for a writer between any
 * two. For one program's source alone, behind cmocka.h. */
#ifndef GW_TEST_VERBS_READS_H
#define GW_TEST_VERBS_READS_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/numbers/rng.h"
#include "test/support/transport_bed.h"
#include "test/support/verbs_card.h"
#include "transport/reads.h"
#include "transport/verbs/endpoint_private.h"

#undef ibv_reg_mr

/* --- Reads: posted, and answered by the next look at the completion queue. --- */

#define WORKS_MAX 1024
#define QPS       2
#define SLICES    64

static struct {
	struct {
		struct ibv_qp *qp;
		struct ibv_send_wr wr;
		struct ibv_sge sges[VERBS_SGES_MAX];
	} works[WORKS_MAX];
	uint32_t count, posted;
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
	gw_verbs_dynamic_end(endpoint);
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
			taken += gw_verbs_read(&side->endpoint->base, &set, &side->region, &side->buffer,
					       &(struct gw_reads){.gather = &rest, .n = n - taken}, true);
		if (side_poll(side, &completion))
			return completion;
		assert_true(taken < n);
	}
}

#endif
