/* Clients over a simulated device (fabric.h): clients of other versions, requests that stop halfway or exceed their
 * memory, server addresses that lead nowhere, and the descriptors that a forked child keeps open.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/errors/log.h"
#include "core/system/clock.h"
#include "test/fabric/fabric.h"
#include "test/support/client_setup.h"
#include "test/support/transport_bed.h"
#include "test/support/verbs_one.h"
#include "transport/service/service_backend.h"

static const char *awaited;
static atomic_uint heard; /* log lines that contain `awaited` */

static void hear(void *context, enum gw_log_level level, const char *line)
{
	(void)context;
	(void)level;
	if (awaited && strstr(line, awaited))
		atomic_fetch_add(&heard, 1);
}

static int listen_to_the_log(void **state)
{
	(void)state;
	gw_log_set_sink(hear, NULL);
	gw_log_set_level(GW_LOG_INFO);
	return 0;
}

/* --- Versions. --- */

/* The server answers in the newest version that both sides speak, and refuses others in one line that names the
 * versions of both. It creates no queue pair for them, and goes on serving others. */
static void clients_of_another_version(void **state)
{
	static const struct {
		uint32_t newest, oldest, answer; /* answer 0: refused */
	} cases[] = {{HANDSHAKE_OLDEST - 1, HANDSHAKE_OLDEST - 1, 0},
		     {HANDSHAKE_OLDEST, HANDSHAKE_OLDEST, HANDSHAKE_OLDEST},
		     {HANDSHAKE_VERSION, HANDSHAKE_OLDEST, HANDSHAKE_VERSION},
		     {HANDSHAKE_VERSION + 1, HANDSHAKE_VERSION, HANDSHAKE_VERSION},
		     {HANDSHAKE_VERSION + 2, HANDSHAKE_VERSION + 1, 0}};
	struct one one;
	struct gw_endpoint *asker;
	gw_one_begin(&one, state, NULL, 4096);
	struct gw_connect_options connect = gw_bed_options(&one.bed);
	snprintf(connect.address.scheme, sizeof(connect.address.scheme), "tcp");
	assert_int_equal(gw_bed_connect(one.group, &connect, &asker), GW_OK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct handshake_question question;
		char says[100];
		gw_handshake_ask(false, 2, &question);
		question.version = cases[i].newest;
		question.oldest = cases[i].oldest;
		uint32_t n = cases[i].newest < HANDSHAKE_RANGES_FIRST ? 16 : sizeof(question);
		assert_int_equal(gw_endpoint_request(asker, GW_OP_UPGRADE, NULL, &question, n, GW_NO_DEADLINE, &one),
				 GW_OK);
		struct gw_completion completion = gw_bed_wait(one.group, &one);
		assert_int_equal(completion.status, cases[i].answer ? GW_OK : GW_VERSION);
		if (cases[i].answer) {
			assert_memory_equal(completion.reply, &cases[i].answer, 4);
			continue;
		}
		snprintf(says, sizeof(says), "%u, this server versions %u to %u; install the same", cases[i].newest,
			 HANDSHAKE_OLDEST, HANDSHAKE_VERSION);
		assert_non_null(strstr(gw_last_error(), says));
	}
	gw_one_read_works(&one);
	gw_endpoint_close(asker);
	gw_one_end(&one);
}

/* The upgrade of a server of the oldest version, which knows no range: it refuses any other question, as that program
 * does, and hands its own to the real upgrade. */
static struct {
	const struct gw_service_upgrade *real;
	uint32_t refused, answered;
} old_server;

static gw_status old_ask(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	uint32_t version;
	memcpy(&version, call->bytes, 4);
	if (version != HANDSHAKE_OLDEST) {
		old_server.refused++;
		return gw_fail(GW_VERSION, "the client speaks version %u of the RDMA hello, this server version %u",
			       version, HANDSHAKE_OLDEST);
	}
	old_server.answered++;
	assert_int_equal(call->byte_count, 16);
	return old_server.real->ask(context, call, reply);
}

static gw_status old_keys(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	uint32_t version;
	memcpy(&version, call->bytes, 4);
	assert_int_equal(version, HANDSHAKE_OLDEST);
	return old_server.real->keys(context, call, reply);
}

/* A client meets a server of the oldest version: it asks again in that version, once, and reads. */
static void a_server_of_the_oldest_version(void **state)
{
	struct one one;
	struct gw_endpoint *endpoint;
	gw_one_begin(&one, state, NULL, 4096);
	struct gw_service *service = one.bed.service;
	old_server.real = atomic_load(&service->upgrade);
	struct gw_service_upgrade upgrade = *old_server.real;
	upgrade.ask = old_ask;
	upgrade.keys = old_keys;
	atomic_store(&service->upgrade, &upgrade);
	old_server.refused = old_server.answered = 0;
	struct gw_connect_options connect = gw_bed_options(&one.bed);
	assert_int_equal(gw_bed_connect(one.group, &connect, &endpoint), GW_OK);
	assert_int_equal(old_server.refused, 1);
	assert_int_equal(old_server.answered, 1);
	gw_endpoint_close(one.endpoint);
	one.endpoint = endpoint;
	gw_one_read_works(&one);
	atomic_store(&service->upgrade, old_server.real);
	gw_one_end(&one);
}

/* --- Requests in pieces. --- */

/* Begins a request of more pieces than the server has receives. Its pieces are sent only while the client is polled. */
static void begin_request(struct one *one, uint32_t bytes)
{
	uint8_t *request = calloc(1, bytes);
	assert_non_null(request);
	assert_int_equal(gw_endpoint_request(one->endpoint, BED_OP_ECHO, NULL, request, bytes, GW_NO_DEADLINE, one),
			 GW_OK);
	free(request);
}

static void set_idle_ms(struct one *one, uint32_t idle_ms)
{
	gw_bed_pause(&one->bed);
	one->bed.service->limits.idle_ms = idle_ms;
	gw_bed_resume(&one->bed);
}

static void silence_inside_a_request_ends_it(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 4096);
	set_idle_ms(&one, 50); /* only now: the connections needed more time than that */
	awaited = "silent inside a request";
	atomic_store(&heard, 0);
	begin_request(&one, 2 << 20);
	uint64_t end = gw_now_ns() + 60 * GW_NS_PER_SECOND;
	while (!atomic_load(&heard) && gw_now_ns() < end)
		usleep(1000);
	assert_int_equal(atomic_load(&heard), 1);
	assert_int_equal(gw_bed_wait(one.group, &one).status, GW_PEER_LOST);
	set_idle_ms(&one, 10000);
	verbs_connect_again(&one);
	gw_one_end(&one);
}

static void requests_count_from_their_first_piece(void **state)
{
	struct bed_options options = {.limits = {.bytes_per_client = 4u << 20}};
	struct one one;
	gw_one_begin(&one, state, &options, 4096);
	awaited = "above this server's memory for one client";
	atomic_store(&heard, 0);
	begin_request(&one, 1 << 20);
	assert_int_equal(gw_bed_wait(one.group, &one).status, GW_OK);
	begin_request(&one, 5 << 20);
	assert_int_equal(gw_bed_wait(one.group, &one).status, GW_PEER_LOST);
	assert_int_equal(atomic_load(&heard), 1);
	verbs_connect_again(&one);
	gw_one_end(&one);
}

/* --- Addresses. --- */

/* The queue pair of the first address fails before the server answers. The client then tries the second address, as
 * after any other failure of an address. */
static void a_queue_pair_that_fails_early_is_its_address(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 4096);
	struct verbs_listener *listener = (struct verbs_listener *)one.bed.listener;
	gw_bed_pause(&one.bed);
	listener->addresses[1] = listener->addresses[0];
	listener->address_count = 2;
	gw_bed_resume(&one.bed);
	fabric_fail_connects(1);
	verbs_connect_again(&one);
	assert_int_equal(verbs_inside(&one)->address_at, 1);
	/* After the last address the connect fails. */
	fabric_fail_connects(100);
	struct gw_connect_options connect = gw_bed_options(&one.bed);
	gw_endpoint_close(one.endpoint);
	assert_int_equal(gw_bed_connect(one.group, &connect, &one.endpoint), GW_PEER_LOST);
	fabric_fail_connects(0);
	verbs_connect_again(&one);
	gw_one_end(&one);
}

/* --- Forks. --- */

static int descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;
	if (!folder)
		return -1;
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static void a_child_keeps_no_descriptor_of_the_devices(void **state)
{
	(void)state;
	int before = descriptors(), status = 0;
	assert_int_equal(gw_verbs_begin(), GW_OK);
	assert_true(descriptors() > before);
	pid_t child = gw_bed_fork();
	if (child == 0)
		_exit(descriptors() == before ? 0 : 1);
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	gw_verbs_end();
	assert_int_equal(descriptors(), before);
}

/* --- Tokens that have expired. --- */

/* Many clients that start at once may wait for longer than their tokens live. Each gets a new token and tries again. */
static void an_expired_token_is_replaced(void **state)
{
	struct one one;
	struct gw_endpoint *endpoint;
	gw_one_begin(&one, state, NULL, 4096);
	struct gw_connect_options options = gw_bed_options(&one.bed);
	fabric_spoil_tokens(1000);
	assert_int_equal(gw_bed_connect(one.group, &options, &endpoint), GW_PEER_LOST);
	assert_non_null(strstr(gw_last_error(), "out of date"));
	unsigned an_attempt = 1000 - fabric_spoil_tokens(0); /* one request for each address of the server */
	assert_int_equal(gw_bed_connect(one.group, &options, &endpoint), GW_OK);
	gw_endpoint_close(endpoint);
	gw_one_end(&one);

	struct setup setup;
	setup_begin(&setup, 270, 2, NULL);
	struct gw_client_options client_options = {
		.servers = setup.cluster.list, .server_count = 2, .threads = 1, .transport = "verbs"};
	fabric_spoil_tokens(4 * an_attempt);
	gw_client_close(open_client(&client_options));
	assert_int_equal(fabric_spoil_tokens(0), 0);
	setup_end(&setup);
}

int main(void)
{
	void *state = (void *)(uintptr_t)verbs_kind();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(clients_of_another_version, state),
		cmocka_unit_test_prestate(a_server_of_the_oldest_version, state),
		cmocka_unit_test_prestate(silence_inside_a_request_ends_it, state),
		cmocka_unit_test_prestate(requests_count_from_their_first_piece, state),
		cmocka_unit_test_prestate(a_queue_pair_that_fails_early_is_its_address, state),
		cmocka_unit_test_prestate(an_expired_token_is_replaced, state),
		cmocka_unit_test(a_child_keeps_no_descriptor_of_the_devices),
	};
	if (!gw_bed_possible(verbs_kind()))
		return 0;
	return cmocka_run_group_tests_name("clients over a simulated device", tests, listen_to_the_log, NULL);
}
