/* The client and servers that send too much or wrong answers, programs that are not Graphwire servers, and servers
 * with another key. The client names each kind, accepts no answer that only its own side may give, and keeps its
 * memory bounded. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol/ops.h"
#include "test/support/line.h"
#include "transport/service/service_backend.h"
#include "transport/tcp/wire.h"

/* --- Large requests. --- */

/* The server's threads are idle, since the client has their answer. The thread sanitizer does not see that through a
 * socket. */
__attribute__((no_sanitize_thread)) static uint64_t picks_held(const struct gw_server *server)
{
	uint64_t most = 0;
	for (uint32_t i = 0; i < server->options.threads; i++) {
		uint64_t held = server->threads[i].picks.positions.capacity;
		most = held > most ? held : most;
	}
	return most;
}

/* A request for more picks than a reply can carry is answered in pieces, and each reply is made in slices. */
static void a_request_takes_no_more_memory_than_its_reply(void **state)
{
	(void)state;
	enum { FANOUT = 200000, SEEDS = 20 };
	struct line line;
	line_begin(&line, SETUP_SCALE, (struct gw_client_options){.timeout_ms = LONG_MS, .neighbours = "requests"});
	int32_t fanouts[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = FANOUT};
	struct gw_sample_spec spec = {.ntype = line.feat->type, .hops = 1, .fanouts = fanouts, .replace = true};
	struct gw_minibatch *batch;
	assert_int_equal(gw_sample(line.client, &spec, 1, 1, line.ids, SEEDS, &batch), GW_OK);
	assert_true(batch->edge_count >= 5ul * FANOUT);
	gw_minibatch_release(batch);
	uint64_t most = picks_held(line.setup.cluster.servers[0]);
	assert_true(most <= 1u << 20);
	line_end(&line);
}

/* --- Wrong answers. --- */

static _Atomic gw_status word; /* what the server answers to a sample request */

static gw_status answer_with_word(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	(void)context;
	(void)call;
	(void)reply;
	return gw_fail(atomic_load(&word), "so it says");
}

/* The server has received no request yet. The thread sanitizer does not see that through a socket. */
__attribute__((no_sanitize_thread)) static void answer_samples(struct gw_server *server, gw_handler handler)
{
	server->service->handlers[GW_OP_SAMPLE].call = handler;
}

/* Some statuses are for the client's own side only. If the client accepted them from a server, it would wait for a
 * ticket after its end, end an epoch early, or repeat a read until the reconnect budget expires. */
static void statuses_that_are_no_answers_are_not_believed(void **state)
{
	(void)state;
	/* A handler's GW_AGAIN is not an answer: it defers one. */
	static const gw_status words[] = {GW_END, GW_PEER_LOST, GW_CANCELLED};
	struct line line;
	line_begin(
		&line, SETUP_SCALE,
		(struct gw_client_options){.timeout_ms = LONG_MS, .reconnect_ms = LONG_MS, .neighbours = "requests"});
	struct plan plan;
	make_plan(line.client, &plan, false, false);
	answer_samples(line.setup.cluster.servers[0], answer_with_word);
	clock_begin();
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct gw_minibatch *batch;
		atomic_store(&word, words[i]);
		expect(gw_sample(line.client, &plan.spec, 1, 1, line.ids, 10, &batch), GW_PROTOCOL, "so it says");
		struct gw_loader *loader = open_loader(line.client, &plan, (struct gw_loader_state){0});
		expect(gw_loader_next(loader, &batch, -1), GW_PROTOCOL, "step 0");
		gw_loader_close(loader);
	}
	clock_check();
	line_works(&line);
	line_end(&line);
}

/* --- Slow. --- */

static gw_status answer_never(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	(void)context;
	(void)call;
	return gw_reply_work(reply, 1, NULL) ? GW_AGAIN : GW_NO_MEMORY;
}

/* *timely: this process was not delayed for so long that the server's signs of life may have come too late. True: one
 * connection served the whole operation. */
static bool sample_for_ever(struct line *line, const struct gw_sample_spec *spec, bool *timely)
{
	struct gw_minibatch *batch;
	struct gw_ticket *ticket;
	struct watch watch;
	gw_status status;
	uint64_t before = atomic_load(&line->relay.accepted);
	watch_begin(&watch);
	assert_int_equal(gw_sample_start(line->client, spec, 1, 1, line->ids, 10, &batch, &ticket), GW_OK);
	while ((status = gw_wait(ticket, 5)) == GW_AGAIN)
		watch_look(&watch);
	expect(status, GW_DEADLINE, "operation's deadline");
	bool one = atomic_load(&line->relay.accepted) == before;
	*timely = one || watch.worst_ns < SHORT_MS * 1000000ull;
	return one;
}

/* An operation that takes a living server too long ends at its deadline, without a new connection. */
static void a_server_at_work_is_not_lost(void **state)
{
	(void)state;
	struct line line;
	struct plan plan;
	bool one = false, timely = false;
	if (cluster_is_rdma()) /* a relay works only over TCP */
		skip();
	line_begin(&line, SETUP_SCALE,
		   (struct gw_client_options){.timeout_ms = 16 * SHORT_MS,
					      .reconnect_ms = LONG_MS,
					      .neighbours = "requests",
					      .transport = "tcp"});
	make_plan(line.client, &plan, false, false);
	answer_samples(line.setup.cluster.servers[0], answer_never);
	for (int tries = 0; tries < 20 && !timely; tries++)
		one = sample_for_ever(&line, &plan.spec, &timely);
	assert_true(one);
	line_end(&line);
}

/* --- Programs that are not Graphwire servers. --- */

struct program {
	int listen_fd;
	char text[64];
	const void *says; /* sent to each client that connects, after its first bytes */
	size_t bytes;
	pthread_t thread;
};

static void *answer_all(void *argument)
{
	struct program *program = argument;
	for (;;) {
		int fd = accept(program->listen_fd, NULL, NULL);
		char heard[4096];
		if (fd < 0)
			return NULL;
		if (recv(fd, heard, sizeof(heard), 0) > 0)
			(void)!send(fd, program->says, program->bytes, MSG_NOSIGNAL);
		shutdown(fd, SHUT_WR);
		while (recv(fd, heard, sizeof(heard), 0) > 0)
			;
		close(fd);
	}
}

static void open_to_program(const void *says, size_t bytes, int64_t timeout_ms, gw_status wanted, const char *text)
{
	struct program program = {.says = says, .bytes = bytes};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(at);
	program.listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(program.listen_fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(program.listen_fd, 16), 0);
	assert_int_equal(getsockname(program.listen_fd, (struct sockaddr *)&at, &length), 0);
	snprintf(program.text, sizeof(program.text), "127.0.0.1:%u", ntohs(at.sin_port));
	assert_int_equal(pthread_create(&program.thread, NULL, answer_all, &program), 0);
	const char *list[] = {program.text};
	struct gw_client_options options = {.servers = list, .server_count = 1, .timeout_ms = timeout_ms};
	clock_begin();
	expect_no_client(options, wanted, text);
	clock_check();
	shutdown(program.listen_fd, SHUT_RDWR);
	pthread_join(program.thread, NULL);
	close(program.listen_fd);
}

static void other_programs_are_named(void **state)
{
	(void)state;
	struct {
		struct wire_header header;
		struct wire_challenge challenge;
	} version = {.header = {.bytes = sizeof(struct wire_challenge), .type = WIRE_CHALLENGE},
		     .challenge = {.versions = {WIRE_MAGIC, 99, 99}}};
	open_to_program(&version, sizeof(version), LONG_MS, GW_VERSION, "99");
	version.challenge = (struct wire_challenge){.versions = {1, WIRE_VERSION, WIRE_OLDEST}};
	open_to_program(&version, sizeof(version), LONG_MS, GW_PROTOCOL, "127.0.0.1:");
	const char *http = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
	open_to_program(http, strlen(http), LONG_MS, GW_PROTOCOL, "127.0.0.1:");
	/* A program that closes without a byte may be a server that is about to end, so the client tries again. */
	open_to_program("", 0, SHORT_MS, GW_PEER_LOST, "Graphwire server");
}

static void write_key(const char *path, const char *key)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(key, file);
	fclose(file);
	assert_int_equal(chmod(path, 0600), 0);
}

static void the_key_admits_clients(void **state)
{
	(void)state;
	struct gw_fixture fixture;
	cluster_use_own_runtime_folder();
	gw_fixture_begin(&fixture, 53, SETUP_SCALE, 1);
	gw_fixture_write(&fixture);
	char right[128], wrong[128], address[GW_ADDRESS_MAX];
	snprintf(right, sizeof(right), "%s/right", fixture.root);
	snprintf(wrong, sizeof(wrong), "%s/wrong", fixture.root);
	write_key(right, "a key that all of a job know");
	write_key(wrong, "a key that no server has");
	struct gw_server_options serve = {.part_config = fixture.folder,
					  .threads = 1,
					  .huge = GW_HUGE_OFF,
					  .numa = GW_NUMA_LOCAL,
					  .key_file = right};
	assert_int_equal(gw_address_parse("127.0.0.1:0", &serve.listen), GW_OK);
	struct gw_server *server;
	assert_int_equal(gw_server_start(&serve, &server), GW_OK);
	const char *list[] = {gw_address_text(&server->listener->address, address)};
	uint16_t port = server->listener->address.port;
	struct gw_client_options options = {.servers = list, .server_count = 1, .timeout_ms = LONG_MS};
	struct gw_client *client;
	clock_begin();
	expect(gw_client_open(&options, &client), GW_REFUSED, "key");
	options.key_file = wrong;
	expect(gw_client_open(&options, &client), GW_REFUSED, "key");
	options.key_file = "/nonexistent";
	expect(gw_client_open(&options, &client), GW_NOT_FOUND, "/nonexistent");
	clock_check();
	options.key_file = right;
	gw_client_close(open_client(&options));
	gw_server_end(server, 0);

	/* A killed server has left a key. A server without a key on the same port is still found. */
	uint8_t key[GW_KEY_BYTES];
	assert_int_equal(gw_key_make(port, key), GW_OK);
	serve.listen.port = port;
	serve.key_file = NULL;
	serve.insecure = true;
	assert_int_equal(gw_server_start(&serve, &server), GW_OK);
	options.key_file = NULL;
	expect(gw_client_open(&options, &client), GW_REFUSED, "insecure");
	options.insecure = true;
	gw_client_close(open_client(&options));
	gw_server_end(server, 0);
	gw_fixture_end(&fixture);
}

/* The reconnect budget is short here. If it expires before the first contact with the server, gather again. */
static gw_status gather_one(struct gw_client *client)
{
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	int64_t id = 0;
	uint8_t row[64];
	gw_status status = GW_PEER_LOST;
	for (int tries = 0; tries < 100 && status == GW_PEER_LOST; tries++)
		status = gw_gather(client, feat, &id, 1, row);
	return status;
}

static void a_server_without_a_key_replaces_none_with_a_key(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 54, 1, NULL);
	struct cluster *cluster = &setup.cluster;
	for (int insecure = 0; insecure < 2; insecure++) {
		struct gw_client_options options = {.servers = cluster->list,
						    .server_count = 1,
						    .threads = 2,
						    .timeout_ms = LONG_MS,
						    .reconnect_ms = patient_ms(4 * SHORT_MS),
						    .insecure = insecure};
		struct gw_client *client = open_client(&options);
		struct gw_service_counters counters;
		assert_int_equal(gather_one(client), GW_OK);
		cluster_kill(cluster, 0);
		cluster->insecure = true;
		cluster_revive(cluster, 0);
		/* One engine has been connected to the server, the other one has not. */
		for (int i = 0; i < 2; i++)
			expect(gather_one(client), GW_REFUSED, "no key to prove");
		gw_service_counters(cluster->servers[0]->service, &counters);
		assert_int_equal(counters.reads + counters.requests, 0);
		cluster_kill(cluster, 0);
		cluster->insecure = false;
		cluster_revive(cluster, 0);
		for (int i = 0; i < 2; i++)
			assert_int_equal(gather_one(client), GW_OK);
		gw_client_close(client);
	}
	setup_end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_takes_no_more_memory_than_its_reply),
		cmocka_unit_test(statuses_that_are_no_answers_are_not_believed),
		cmocka_unit_test(a_server_at_work_is_not_lost),
		cmocka_unit_test(other_programs_are_named),
		cmocka_unit_test(the_key_admits_clients),
		cmocka_unit_test(a_server_without_a_key_replaces_none_with_a_key),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
