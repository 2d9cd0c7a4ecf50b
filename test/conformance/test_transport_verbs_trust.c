/* What the two sides of an RDMA connection can do to each other: keys that allow reads only, tokens that are valid once
 * and for a limited time, keys that the server's device refuses, and messages without meaning. */
#include <stdio.h>
#ifndef GRAPHWIRE_VERBS
int main(void)
{
	printf("1..0 # SKIP built without RDMA\n");
	return 0;
}
#else
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "test/support/verbs_one.h"

/* --- Keys and tokens. --- */

static void keys_only_read(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 65536);
	gw_one_read_works(&one);
	struct verbs_endpoint *endpoint = verbs_inside(&one);
	struct verbs_qp *qp = endpoint->conns[0].qp;
	uint8_t *before = malloc(one.bed.bytes);
	memcpy(before, one.bed.memory, one.bed.bytes);
	uint32_t key;
	memcpy(&key, endpoint->places[0].keys, 4);
	struct verbs_pages pages;
	assert_int_equal(gw_verbs_pages_create(endpoint->poller->device->pd, 4096, &pages), GW_OK);
	struct ibv_sge sge = {.addr = (uintptr_t)pages.base, .length = 64, .lkey = pages.mr->lkey};
	verbs_qp_push(qp)->work = VERBS_PROBE;
	struct ibv_send_wr wr = {.wr_id = verbs_wr_id(qp),
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = endpoint->places[0].base, .rkey = key}};
	gw_verbs_qp_post(qp, &wr, 1);
	verbs_wait_for_loss(&one);
	assert_memory_equal(one.bed.memory, before, one.bed.bytes);
	gw_verbs_pages_destroy(&pages);
	free(before);
	verbs_connect_again(&one);
	gw_one_end(&one);
}

static void tokens_are_needed_and_used_once(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 4096);
	struct verbs_endpoint *endpoint = verbs_inside(&one);
	struct handshake_address address;
	memcpy(&address, endpoint->answer.addresses, sizeof(address));
	for (int kind = 0; kind < 4; kind++) {
		struct rdma_cm_id *id;
		struct sockaddr_in to = {.sin_family = AF_INET,
					 .sin_port = htons((uint16_t)endpoint->answer.answer.port)};
		memcpy(&to.sin_addr, address.bytes, 4);
		assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
		assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000), 0);
		assert_int_equal(rdma_resolve_route(id, 2000), 0);
		struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_RC,
			.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
		assert_int_equal(rdma_create_qp(id, NULL, &init), 0);
		struct handshake_token token = {.magic = HANDSHAKE_MAGIC, .version = HANDSHAKE_VERSION, .number = 0};
		if (kind > 1) /* the real token, but used; and for a queue pair that was not granted */
			memcpy(token.token, endpoint->answer.answer.token, sizeof(token.token));
		token.number = kind == 3 ? 7 : 0;
		struct rdma_conn_param param = {.private_data = kind ? &token : NULL,
						.private_data_len = kind ? sizeof(token) : 0,
						.initiator_depth = 1};
		assert_int_equal(rdma_connect(id, &param), -1);
		rdma_destroy_ep(id);
	}
	gw_one_read_works(&one);
	assert_int_equal(gw_one_call(&one, BED_OP_ECHO, 0, "abc", 3).status, GW_OK);
	gw_one_end(&one);
}

static uint32_t count_peers(struct one *one)
{
	uint32_t count = 0;
	gw_bed_pause(&one->bed);
	const struct verbs_listener *listener = (struct verbs_listener *)one->bed.listener;
	for (const struct verbs_client *peer = listener->cm_listeners[0].clients; peer; peer = peer->next)
		count++;
	gw_bed_resume(&one->bed);
	return count;
}

/* A client that asks for many tokens has only the latest one, and none if it was not used in time. */
static void tokens_that_are_not_used(void **state)
{
	struct bed_options options = {.limits = {.idle_ms = 1000}};
	struct handshake_question question;
	struct handshake_answer answer, before = {0};
	gw_handshake_ask(false, 2, &question);
	struct one one;
	struct gw_endpoint *asker;
	gw_one_begin(&one, state, &options, 4096);
	struct gw_connect_options connect = gw_bed_options(&one.bed);
	snprintf(connect.address.scheme, sizeof(connect.address.scheme), "tcp");
	assert_int_equal(gw_bed_connect(one.group, &connect, &asker), GW_OK);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(gw_endpoint_request(asker, GW_OP_UPGRADE, 0, &question, sizeof(question), 0, &one),
				 GW_OK);
		struct gw_completion completion = gw_bed_wait(one.group, &one);
		assert_int_equal(completion.status, GW_OK);
		memcpy(&answer, completion.reply, sizeof(answer));
		assert_memory_not_equal(answer.token, before.token, sizeof(answer.token));
		before = answer;
	}
	assert_int_equal(count_peers(&one), 2);
	for (int i = 0; i < 600 && count_peers(&one) > 1; i++)
		gw_one_nothing_more(&one, 100);
	assert_int_equal(count_peers(&one), 1);
	assert_int_equal(asker->state, GW_ENDPOINT_OPEN);
	gw_one_read_works(&one);
	gw_endpoint_close(asker);
	gw_one_end(&one);
}

/* A link-local address is meaningful only with one of the client's interfaces, which the server cannot name. */
static void link_local_addresses(void **state)
{
	struct gw_address address = {.scheme = "verbs", .host = "fe80::1%lo"};
	struct gw_service_identity identity = {.graph_id = 1, .incarnation = 2};
	struct gw_poll_group *group = gw_bed_group(*state);
	struct gw_listener *listener;
	struct gw_service *service;
	assert_int_equal(gw_service_create(&identity, NULL, &service), GW_OK);
	assert_int_equal(gw_listen(&group, 1, &address, service, &listener), GW_UNSUPPORTED);
	assert_non_null(strstr(gw_last_error(), "link-local"));
	assert_null(listener);
	gw_poll_group_destroy(group);
	gw_service_destroy(service);
}

/* --- Refused keys. --- */

/* Makes the device refuse the keys of the first slice, or accept them again. */
static void refuse_key(struct one *one, bool refuse)
{
	struct verbs_listener *listener = (struct verbs_listener *)one->bed.listener;
	struct verbs_rail *rail = &listener->rails[0];
	if (refuse)
		ibv_dereg_mr(rail->mrs[0]);
	rail->mrs[0] = refuse ? NULL : ibv_reg_mr(rail->pd, one->bed.memory, 64 << 10, IBV_ACCESS_REMOTE_READ);
	assert_true(refuse == !rail->mrs[0]);
}

/* The server's device refuses a key. The hello shows whether the server has reloaded or the reason is unknown. */
static void refused_keys(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 1 << 20);
	for (int again = 0; again < 2; again++) {
		gw_bed_pause(&one.bed);
		if (again)
			one.bed.service->regions[0].generation += 2;
		refuse_key(&one, true);
		gw_bed_resume(&one.bed);
		struct gw_span span = {0, 0, 1 << 20};
		struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
		gw_bed_readv(one.endpoint, &set, &one.region, one.buffer, &span, 1);
		gw_one_expect_failure(&one, &set, again ? GW_STALE : GW_PEER_LOST);
		gw_bed_pause(&one.bed);
		refuse_key(&one, false);
		gw_bed_resume(&one.bed);
		verbs_connect_again(&one);
	}
	gw_one_end(&one);
}

/* The failure of the last queue pair counts more than the server's later close of the others. */
static void a_refusal_on_the_last_queue_pair(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 1 << 20);
	gw_bed_pause(&one.bed);
	one.bed.service->regions[0].generation += 2;
	refuse_key(&one, true);
	gw_bed_resume(&one.bed);
	struct gw_span span = {0, 0, 4096};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	verbs_inside(&one)->turn = verbs_inside(&one)->qp_count - 1;
	gw_bed_readv(one.endpoint, &set, &one.region, one.buffer, &span, 1);
	/* Waits until the server has closed all queue pairs, if its device reports the failure: GW_STALE in either
	 * order. */
	for (int i = 0; i < 50 && count_peers(&one) > 0; i++)
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	gw_one_expect_failure(&one, &set, GW_STALE);
	gw_bed_pause(&one.bed);
	refuse_key(&one, false);
	gw_bed_resume(&one.bed);
	verbs_connect_again(&one);
	gw_one_end(&one);
}

/* The outcome of a request whose deadline is long before the deadline of the read with the refused key. *in_time: no
 * thread was delayed for so long that both deadlines were checked together. */
static gw_status request_in_doubt(struct one *one, bool *in_time)
{
	int request;
	gw_bed_pause(&one->bed); /* no answer to the hello that would show the reason */
	refuse_key(one, true);
	uint64_t deadline = gw_now_ns() + 500 * GW_NS_PER_MS;
	struct gw_span span = {0, 0, 4096};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_request(one->endpoint, BED_OP_ECHO, 0, "x", 1, deadline, &request), GW_OK);
	gw_bed_readv(one->endpoint, &set, &one->region, one->buffer, &span, 1);
	gw_status status = gw_bed_wait(one->group, &request).status;
	*in_time = gw_now_ns() < deadline + GW_NS_PER_SECOND;
	gw_one_expect_failure(one, &set, GW_PEER_LOST);
	refuse_key(one, false);
	gw_bed_resume(&one->bed);
	verbs_connect_again(one);
	return status;
}

static void deadlines_in_doubt(void **state)
{
	struct one one;
	gw_status status = GW_OK;
	bool in_time = false;
	gw_one_begin(&one, state, NULL, 1 << 20);
	for (int tries = 0; tries < 20 && !in_time; tries++)
		status = request_in_doubt(&one, &in_time);
	assert_int_equal(status, GW_DEADLINE);
	gw_one_end(&one);
}

/* --- Messages. --- */

/* Messages that no valid client sends end their connection, and no other. */
static void malformed_messages(void **state)
{
	static const struct verbs_message lies[][2] = {
		{{.type = VERBS_CREDIT}}, /* grants nothing */
		{{.type = VERBS_CREDIT, .credits = 3}},
		{{.type = VERBS_REQUEST, .credits = 4}}, /* more credits than exist */
		{{.type = 0}},
		{{.type = VERBS_CREDIT + 1}},
		{{.type = VERBS_REPLY}},
		{{.type = VERBS_REQUEST, .status = GW_LIMIT}},
		{{.type = VERBS_REQUEST, .bytes = 8, .total = 4}},
		{{.type = VERBS_REQUEST, .total = 8}},
		{{.type = VERBS_REQUEST, .bytes = 8, .total = GW_REQUEST_BYTES_MAX + 1}},
		{{.type = VERBS_REQUEST, .bytes = 8, .total = 16, .tag = 1},
		 {.type = VERBS_REQUEST, .bytes = 8, .total = 16, .tag = 2}},
		{{.type = VERBS_REQUEST, .bytes = 8, .total = 12, .tag = 1},
		 {.type = VERBS_REQUEST, .bytes = 8, .total = 12, .tag = 1}},
	};
	struct one one;
	gw_one_begin(&one, state, NULL, 4096);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct verbs_stream *stream = &verbs_inside(&one)->stream;
		for (int call = 0; call < 3; call++) /* each call leaves a credit to grant */
			assert_int_equal(gw_one_call(&one, BED_OP_ECHO, 0, "abc", 3).status, GW_OK);
		for (int n = 0; n < 2 && (n == 0 || lies[i][n].type); n++) {
			stream->grant = lies[i][n].credits;
			assert_int_equal(gw_verbs_stream_send(stream, &lies[i][n], "12345678"), GW_OK);
			gw_verbs_stream_flush(stream);
		}
		verbs_wait_for_loss(&one);
		verbs_connect_again(&one);
	}
	gw_one_end(&one);
}

int main(void)
{
	const struct bed_kind *kind = verbs_kind();
	if (!gw_bed_possible(kind))
		return 0;
	void *state = (void *)(uintptr_t)kind;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(keys_only_read, state),
		cmocka_unit_test_prestate(tokens_are_needed_and_used_once, state),
		cmocka_unit_test_prestate(tokens_that_are_not_used, state),
		cmocka_unit_test_prestate(link_local_addresses, state),
		cmocka_unit_test_prestate(refused_keys, state),
		cmocka_unit_test_prestate(a_refusal_on_the_last_queue_pair, state),
		cmocka_unit_test_prestate(deadlines_in_doubt, state),
		cmocka_unit_test_prestate(malformed_messages, state),
	};
	return cmocka_run_group_tests_name("transport verbs trust", tests, NULL, NULL);
}
#endif
