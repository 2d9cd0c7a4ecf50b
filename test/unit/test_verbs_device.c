/* Objects on an RDMA device, and what happens to them when the device reports a failure. The device is made up; its
 * driver has or lacks features of real drivers (test/support/verbs_card.h). */
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

#include "core/system/clock.h"
#include "test/support/verbs_card.h"

#define ENTRIES (VERBS_RING + VERBS_RECEIVES + VERBS_RECEIVES_SPARE) /* of a client's first queue pair */

/* --- Groups with queue pairs on it. --- */

#define QPS_MAX 200

struct side {
	struct verbs_deferred deferred;
	struct gw_poll_group *group;
	struct verbs_loop *loop;
	struct verbs_poller *port;
	struct verbs_qp *qps[QPS_MAX];
	uint32_t n;
};

static void deferred(struct verbs_deferred *deferred)
{
	(void)deferred;
}

static struct rdma_cm_id *bound_id(uint8_t port)
{
	struct rdma_cm_id *id;
	rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP);
	rdma_bind_addr(id, NULL);
	id->port_num = port;
	id->route.addr.src_addr.sa_family = AF_INET;
	return id;
}

static void side_begin(struct side *side)
{
	void *loop;
	memset(side, 0, sizeof(*side));
	side->deferred.run = deferred;
	assert_int_equal(gw_poll_group_create(NULL, &side->group), GW_OK);
	assert_int_equal(gw_poll_group_state(side->group, &gw_transport_verbs, &loop), GW_OK);
	side->loop = loop;
	struct rdma_cm_id *id = bound_id(1);
	assert_int_equal(gw_verbs_poller_get(side->loop, id, &side->port), GW_OK);
	rdma_destroy_id(id);
}

static gw_status side_add(struct side *side, struct ibv_pd *pd, uint8_t port)
{
	struct verbs_needs needs = {
		.work = VERBS_RING, .sges = VERBS_SGES_MAX, .receives = VERBS_RECEIVES + VERBS_RECEIVES_SPARE};
	struct rdma_cm_id *id = bound_id(port);
	assert_true(side->n < QPS_MAX);
	gw_status status = gw_verbs_qp_create(side->port, id, pd, &needs, &side->qps[side->n]);
	if (status != GW_OK) {
		rdma_destroy_id(id);
		return status;
	}
	side->qps[side->n++]->deferred = &side->deferred;
	return GW_OK;
}

static void side_fill(struct side *side, uint32_t n)
{
	while (side->n < n)
		assert_int_equal(side_add(side, side->port->device->pd, 1), GW_OK);
}

static void side_remove(struct side *side)
{
	gw_verbs_qp_destroy(side->qps[--side->n]);
}

static void side_end(struct side *side)
{
	while (side->n)
		side_remove(side);
	gw_verbs_undefer(side->loop, &side->deferred);
	gw_poll_group_destroy(side->group);
}

/* --- Completion queues. --- */

static void check_entries(const struct side *side)
{
	uint32_t used[VERBS_CQS_MAX] = {0};
	for (uint32_t i = 0; i < side->n; i++)
		for (uint32_t c = 0; c < side->port->cq_count; c++)
			if (side->qps[i]->id->qp->send_cq == side->port->cqs[c]->ibv)
				used[c] += ENTRIES;
	uint32_t sum = 0;
	for (uint32_t c = 0; c < side->port->cq_count; c++) {
		assert_int_equal(used[c], side->port->cqs[c]->used);
		assert_in_range(used[c], 0, side->port->cqs[c]->ibv->cqe);
		sum += used[c];
	}
	assert_int_equal(sum, side->n * ENTRIES);
}

static void completion_queues_grow(void **state)
{
	(void)state;
	static const int errors[] = {0, EOPNOTSUPP, ENOSYS, ENOMEM};
	for (size_t e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
		struct side side;
		card_begin(4);
		card.resize_error = errors[e];
		side_begin(&side);
		side_fill(&side, QPS_MAX);
		check_entries(&side);
		if (errors[e])
			assert_in_range(card.cqs, 2, 8); /* each twice as large as the one before */
		else
			assert_int_equal(card.cqs, 1);
		while (side.n > QPS_MAX / 2)
			side_remove(&side);
		int cqs = card.cqs;
		side_fill(&side, QPS_MAX);
		check_entries(&side);
		assert_int_equal(card.cqs, cqs);
		side_end(&side);
		card_end();
	}
}

static void a_device_without_entries_left(void **state)
{
	(void)state;
	for (int error = 0; error <= EOPNOTSUPP; error += EOPNOTSUPP) {
		struct side side;
		card_begin(1);
		card.attr.max_cqe = ENTRIES - 1;
		card.resize_error = error;
		side_begin(&side);
		assert_int_equal(side_add(&side, side.port->device->pd, 1), GW_LIMIT);
		assert_non_null(strstr(gw_last_error(), "made_up_0"));
		side_end(&side);
		card_end();
	}
}

static void interrupts_are_spread(void **state)
{
	(void)state;
	static const int vectors[] = {8, 3, 1, 0};
	for (size_t v = 0; v < sizeof(vectors) / sizeof(vectors[0]); v++) {
		struct side sides[16];
		int taken[8] = {0};
		card_begin(vectors[v]);
		for (int i = 0; i < 16; i++) {
			side_begin(&sides[i]);
			side_fill(&sides[i], 1);
			taken[card.vector]++;
		}
		for (int i = 0; i < vectors[v]; i++)
			assert_in_range(taken[i], 16 / vectors[v], 16 / vectors[v] + 1);
		for (int i = 0; i < 16; i++)
			side_end(&sides[i]);
		card_end();
	}
}

/* --- Doorbells. --- */

/* Each port has a thread domain, with a parent domain for each protection domain. They end with their users. */
static void thread_domains(void **state)
{
	(void)state;
	struct side sides[2];
	card_begin(4);
	for (int i = 0; i < 2; i++)
		side_begin(&sides[i]);
	struct ibv_pd *own = sides[0].port->device->pd, *other = ibv_alloc_pd(&card.verbs.context);
	for (int i = 0; i < 2; i++) {
		for (int q = 0; q < 6; q++) {
			struct ibv_pd *base = q % 2 ? other : own;
			assert_int_equal(side_add(&sides[i], base, 1), GW_OK);
			assert_ptr_equal(((struct card_pd *)card.qp_pd)->base, base);
		}
		assert_int_equal(card.parents, 2 * (i + 1));
		assert_int_equal(card.td_made, i + 1);
	}
	/* The listener's protection domain ends with its clients, though the ports stay. */
	for (int i = 0; i < 2; i++)
		while (sides[i].n)
			side_remove(&sides[i]);
	assert_int_equal(card.parents, 0);
	ibv_dealloc_pd(other);
	side_fill(&sides[0], 1);
	assert_int_equal(card.td_made, 2);
	for (int i = 0; i < 2; i++)
		side_end(&sides[i]);
	card_end();
}

static void a_device_without_thread_domains(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		struct side side;
		card_begin(4);
		card.td_error = kind == 0 ? EOPNOTSUPP : kind == 1 ? ENOENT : 0; /* ENOENT: mlx5, when all are in use */
		card.parent_error = kind == 2 ? EOPNOTSUPP : 0;
		if (kind == 3)
			card.verbs.alloc_td = NULL;
		side_begin(&side);
		side_fill(&side, 3);
		assert_ptr_equal(card.qp_pd, side.port->device->pd);
		side_end(&side);
		card_end();
	}
}

/* --- Asynchronous events. --- */

/* The device reports events, and every group polls. Returns whether the first group was woken. */
static bool say(struct side *sides, int n, struct ibv_async_event event)
{
	uint64_t one = 1;
	struct gw_completion completion;
	assert_true(card.event_count < EVENTS_MAX);
	card.events[card.event_count++] = event;
	assert_int_equal(write(card.verbs.context.async_fd, &one, sizeof(one)), sizeof(one));
	/* The last group reads the events, so the others must be notified. */
	gw_verbs_devices_look();
	bool woken = atomic_load(&sides[0].loop->troubled);
	for (int i = 0; i < n; i++)
		gw_poll_group_poll(sides[i].group, &completion, 1, 0);
	assert_int_equal(card.acknowledged, card.event_count);
	return woken;
}

static void failed_queue_pairs(void **state)
{
	(void)state;
	static const enum ibv_event_type types[] = {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
						    IBV_EVENT_PATH_MIG_ERR};
	struct side sides[2];
	card_begin(4);
	for (int i = 0; i < 2; i++) {
		side_begin(&sides[i]);
		side_fill(&sides[i], 5);
	}
	for (uint32_t t = 0; t < 4; t++) {
		struct verbs_qp *qp = sides[1].qps[t];
		assert_false(say(sides, 2, (struct ibv_async_event){{.qp = qp->id->qp}, types[t]}));
		assert_int_equal(qp->failure, IBV_WC_FATAL_ERR);
		assert_string_equal(gw_verbs_qp_reason(qp), ibv_event_type_str(types[t]));
		for (uint32_t i = 0; i < 5; i++) {
			assert_int_equal(sides[0].qps[i]->failure, IBV_WC_SUCCESS);
			assert_true(i <= t || sides[1].qps[i]->failure == IBV_WC_SUCCESS);
		}
	}
	/* Other code of this process makes queue pairs on the same device. */
	struct ibv_qp foreign = {.qp_num = 5};
	say(sides, 2, (struct ibv_async_event){{.qp = &foreign}, IBV_EVENT_QP_FATAL});
	assert_int_equal(sides[1].qps[4]->failure, IBV_WC_SUCCESS);
	for (int i = 0; i < 2; i++)
		side_end(&sides[i]);
	card_end();
}

/* A completion queue that overflowed ends its queue pairs and gets no new ones; its port continues with another. */
static void failed_completion_queues(void **state)
{
	(void)state;
	struct side side;
	card_begin(4);
	card.resize_error = EOPNOTSUPP;
	side_begin(&side);
	side_fill(&side, 8);
	assert_true(side.port->cq_count > 1);
	struct ibv_cq *cq = side.qps[0]->cq->ibv;
	assert_true(say(&side, 1, (struct ibv_async_event){{.cq = cq}, IBV_EVENT_CQ_ERR}));
	for (uint32_t i = 0; i < 8; i++) {
		bool lost = side.qps[i]->id->qp->send_cq == cq;
		assert_int_equal(side.qps[i]->failure, lost ? IBV_WC_FATAL_ERR : IBV_WC_SUCCESS);
	}
	side_fill(&side, 9);
	assert_ptr_not_equal(side.qps[8]->id->qp->send_cq, cq);
	/* The release does not wait for its open work. */
	side.qps[0]->head++;
	uint64_t begun = gw_now_ns();
	side_end(&side);
	assert_in_range(gw_now_ns() - begun, 0, 100 * GW_NS_PER_SECOND);
	card_end();
}

static void failed_devices(void **state)
{
	(void)state;
	struct side side;
	card_begin(4);
	side_begin(&side);
	side_fill(&side, 2);
	assert_false(atomic_load(&side.port->device->dead));
	assert_true(say(&side, 1, (struct ibv_async_event){.event_type = IBV_EVENT_DEVICE_FATAL}));
	assert_true(atomic_load(&side.port->device->dead));
	struct rdma_cm_id *id = bound_id(1);
	struct verbs_poller *port;
	assert_int_equal(gw_verbs_poller_get(side.loop, id, &port), GW_PEER_LOST);
	rdma_destroy_id(id);
	while (side.n)
		side_remove(&side);
	side_end(&side);
	card_end();
}

static void ports_that_go_down(void **state)
{
	(void)state;
	struct side side;
	card_begin(4);
	side_begin(&side);
	const struct verbs_port *ports = side.port->device->ports;
	assert_true(say(&side, 1, (struct ibv_async_event){{.port_num = 2}, IBV_EVENT_PORT_ERR}));
	assert_true(!atomic_load(&ports[0].down_ns) && atomic_load(&ports[1].down_ns));
	say(&side, 1, (struct ibv_async_event){{.port_num = 2}, IBV_EVENT_PORT_ACTIVE});
	assert_false(atomic_load(&ports[1].down_ns));
	/* Events without an effect are acknowledged too. */
	static const enum ibv_event_type others[] = {IBV_EVENT_SRQ_ERR, IBV_EVENT_WQ_FATAL, IBV_EVENT_GID_CHANGE,
						     IBV_EVENT_LID_CHANGE, IBV_EVENT_SM_CHANGE};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(say(&side, 1, (struct ibv_async_event){{.port_num = 1}, others[i]}));
	assert_false(atomic_load(&side.port->device->dead));
	side_end(&side);
	card_end();
}

/* --- The window of a port. --- */

static void shares_of_a_window(void **state)
{
	(void)state;
	static struct side sides[2];
	card_begin(4);
	for (int i = 0; i < 2; i++) {
		side_begin(&sides[i]);
		side_fill(&sides[i], 64);
	}
	const struct verbs_port *port = &sides[0].port->device->ports[0];
	assert_int_equal(port->window, 12500000); /* a millisecond of 100 Gb/s */
	uint64_t sum = 0;
	for (uint32_t q = 0; q < 128; q++) {
		struct verbs_qp *qp = sides[q % 2].qps[q / 2];
		/* A single queue pair may use a full window; the more there are, the smaller each share. */
		verbs_qp_acquire(qp, 1);
		uint64_t share = verbs_qp_share(qp)->bytes, all = share * (q + 1);
		assert_true(q || share == VERBS_WINDOW_BYTES);
		assert_true(all <= port->window && (share == VERBS_WINDOW_BYTES || all > port->window - q - 1));
		assert_in_range(verbs_qp_share(qp)->read_bytes, 4096, share / 4);
	}
	/* When the port is full, all shares are equally full and none has room; a reader that ends makes room for the
	 * others. */
	for (uint32_t q = 0; q < 128; q++) {
		struct verbs_qp *qp = sides[q % 2].qps[q / 2];
		while (verbs_qp_room(qp))
			verbs_qp_acquire(qp, verbs_qp_share(qp)->read_bytes);
		sum += qp->bytes_open;
	}
	assert_in_range(sum, port->window - 128, port->window + port->window / 4 + 128);
	for (uint32_t q = 0; q < 64; q++)
		verbs_qp_release(sides[1].qps[q], sides[1].qps[q]->bytes_open);
	assert_int_equal(verbs_qp_room(sides[0].qps[0]), 0); /* notified before a sleep, not at once */
	struct gw_completion completion;
	gw_poll_group_poll(sides[1].group, &completion, 1, 1);
	assert_true(verbs_qp_room(sides[0].qps[0]) > 0);
	/* Another port of the device has its own window. */
	assert_int_equal(side_add(&sides[0], sides[0].port->device->pd, 2), GW_OK);
	verbs_qp_acquire(sides[0].qps[64], 1);
	assert_int_equal(verbs_qp_share(sides[0].qps[64])->bytes, VERBS_WINDOW_BYTES);
	for (int i = 0; i < 2; i++)
		side_end(&sides[i]);
	card_end();
}

/* However many read, each may have something in flight; a port of unknown speed counts as fast. */
static void windows_have_limits(void **state)
{
	(void)state;
	struct verbs_port port = {.window = gw_verbs_port_window(0)};
	struct verbs_share share = {.port = &port};
	assert_int_equal(port.window, gw_verbs_port_window(12500000000));
	assert_in_range(gw_verbs_port_window(1), VERBS_WINDOW_BYTES, 4 << 20);
	assert_in_range(gw_verbs_port_window(UINT64_MAX), port.window, 256 << 20);
	gw_verbs_share_work_out(&share, 1000000);
	assert_in_range(share.bytes, 4096, 65536);
	assert_in_range(share.read_bytes, 4096, share.bytes);
	gw_verbs_share_work_out(&share, 0);
	assert_int_equal(share.bytes, VERBS_WINDOW_BYTES);
	assert_int_equal(share.read_bytes, VERBS_READ_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(completion_queues_grow),
		cmocka_unit_test(a_device_without_entries_left),
		cmocka_unit_test(interrupts_are_spread),
		cmocka_unit_test(thread_domains),
		cmocka_unit_test(a_device_without_thread_domains),
		cmocka_unit_test(failed_queue_pairs),
		cmocka_unit_test(failed_completion_queues),
		cmocka_unit_test(failed_devices),
		cmocka_unit_test(ports_that_go_down),
		cmocka_unit_test(shares_of_a_window),
		cmocka_unit_test(windows_have_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
