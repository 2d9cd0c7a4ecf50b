/* graphwire doctor and programs that are not Graphwire servers, or servers that do not work: it names each kind, with
 * the remedy for it. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/support/cluster.h"
#include "test/support/doctor_ask.h"
#include "test/support/doctor_host.h"
#include "test/support/fake_peer.h"
#include "test/support/relay.h"
#include "test/support/transport_bed.h"

static const struct bed_kind tcp = {"tcp", NULL, "tcp", true, false, 0};

static void no_process_and_silent_process(void **state)
{
	(void)state;
	struct asking asking;
	struct bed bed;
	gw_bed_begin(&bed, &tcp, NULL);
	uint16_t port = bed.address.port;
	gw_bed_end(&bed);
	doctor_ask(&asking, "127.0.0.1", port);
	gw_doctor_ask(&asking.doctor, &asking.peers);
	doctor_answer(&asking, "tcp", GW_DOCTOR_NOTE, "not reached: ");
	doctor_has(doctor_answer(&asking, "", GW_DOCTOR_PROBLEM, "no transport: no process listens on its port")->fix,
		   "graphwire serve");
	gw_doctor_free(&asking.doctor);

	/* A process that accepts connections and sends nothing. */
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(address);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
	doctor_ask(&asking, "127.0.0.1", ntohs(address.sin_port));
	asking.peers.timeout_ms = 300;
	uint64_t begun = gw_now_ns();
	gw_doctor_ask(&asking.doctor, &asking.peers);
	assert_true(gw_now_ns() - begun < DOCTOR_TIME_MAX);
	doctor_answer(&asking, "tcp", GW_DOCTOR_NOTE, "not reached: ");
	doctor_has(doctor_answer(&asking, "", GW_DOCTOR_PROBLEM, "answers nothing")->fix, "kill -CONT");
	gw_doctor_free(&asking.doctor);
	close(fd);
}

/* The doctor advises to start a server only if no process listens. */
static void expect_cause(const struct asking *asking, const char *cause, const char *fix)
{
	const struct gw_doctor_finding *finding = doctor_answer(asking, "", GW_DOCTOR_PROBLEM, cause);
	doctor_has(finding->fix, fix);
	if (strstr(finding->fix, "graphwire serve --part-config"))
		fail_msg("\"%s\" is no remedy for \"%s\"", finding->fix, finding->value);
}

static void a_path_that_loses_long_answers(void **state)
{
	(void)state;
	const struct bed_options options = {.bytes = 256u << 10};
	struct bed bed;
	struct relay relay;
	struct asking asking;
	gw_bed_begin(&bed, &tcp, &options);
	relay_begin(&relay, &bed.address);
	relay_hold_after(&relay, 1400);
	doctor_ask(&asking, "127.0.0.1", (uint16_t)strtoul(strrchr(relay.text, ':') + 1, NULL, 10));
	asking.peers.timeout_ms /= 20;
	gw_doctor_ask(&asking.doctor, &asking.peers);
	doctor_has(doctor_answer(&asking, "tcp", GW_DOCTOR_WARNING, "connected, but reads fail: ")->fix,
		   "tracepath 127.0.0.1");
	expect_cause(&asking, "short answers arrive, long ones do not", "mtu 1400");
	gw_doctor_free(&asking.doctor);
	/* The same path without the loss. */
	relay_pass(&relay);
	doctor_ask(&asking, "127.0.0.1", (uint16_t)strtoul(strrchr(relay.text, ':') + 1, NULL, 10));
	gw_doctor_ask(&asking.doctor, &asking.peers);
	doctor_answer(&asking, "", GW_DOCTOR_OK, "clients here read over");
	gw_doctor_free(&asking.doctor);
	relay_end(&relay);
	gw_bed_end(&bed);
}

struct program {
	int listener;
	uint32_t version; /* of a Graphwire server; 0: another program, which sends: */
	const char *says;
	uint64_t region_bytes; /* of a liar */
};

static void *be_other_program(void *argument)
{
	const struct program *program = argument;
	for (int fd; (fd = gw_fake_accept(program->listener)) >= 0; close(fd)) {
		const struct wire_challenge challenge = {.versions = {WIRE_MAGIC, program->version, program->version}};
		struct wire_header header;
		uint8_t body[256];
		if (!program->version)
			gw_fake_send(fd, program->says, strlen(program->says));
		else if (gw_fake_expect(fd, WIRE_HELLO, &header, body, sizeof(body)))
			gw_fake_frame(fd, WIRE_CHALLENGE, 0, &challenge, sizeof(challenge));
		gw_fake_closed(fd, 5000);
	}
	return NULL;
}

/* RDMA begins with the same hello. */
static void *lie(void *argument)
{
	const struct program *liar = argument;
	for (int fd; (fd = gw_fake_accept(liar->listener)) >= 0; close(fd)) {
		struct wire_header header;
		uint8_t body[16 << 10];
		if (gw_fake_welcome(fd, liar->region_bytes))
			(void)!gw_fake_expect(fd, WIRE_READV, &header, body, sizeof(body));
	}
	return NULL;
}

/* Runs a program in a thread while the doctor asks it. */
static void meet(struct asking *asking, void *(*be)(void *), struct program *program)
{
	uint16_t port;
	pthread_t thread;
	program->listener = gw_fake_listen(&port);
	assert_int_equal(pthread_create(&thread, NULL, be, program), 0);
	doctor_ask(asking, "127.0.0.1", port);
	/* Fewer bytes than a frame header: the doctor waits for more. */
	if (program->says && strlen(program->says) < WIRE_HEADER_BYTES)
		asking->peers.timeout_ms /= 100;
	gw_doctor_ask(&asking->doctor, &asking->peers);
	shutdown(program->listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(program->listener);
}

static void programs_of_each_kind(void **state)
{
	(void)state;
	static const struct {
		uint32_t version;
		const char *says, *cause, *fix;
	} cases[] = {
		{WIRE_VERSION + 1, NULL, "another version", "graphwire --version"},
		{0, "HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n", "an HTTP server (\"HTTP/1.1 400 Bad Request\")",
		 "ss -ltnp"},
		{0, "SSH-2.0-x\r\n", "an SSH server (\"SSH-2.0-x\")", "--listen"},
		{0, "\001\002\003\033[2J", "another program", "--listen"},
		{0, "", "answers nothing", "tracepath"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct program program = {.version = cases[i].version, .says = cases[i].says};
		struct asking asking;
		meet(&asking, be_other_program, &program);
		expect_cause(&asking, cases[i].cause, cases[i].fix);
		for (const char *c = doctor_answer(&asking, "", GW_DOCTOR_PROBLEM, "")->value; *c; c++)
			assert_in_range(*c, 0x20, 0x7e);
		gw_doctor_free(&asking.doctor);
	}
}

static void a_server_that_is_full(void **state)
{
	(void)state;
	const struct bed_options options = {.limits = {.connections = 1}};
	struct bed bed;
	struct asking asking;
	struct gw_endpoint *endpoint;
	gw_bed_begin(&bed, &tcp, &options);
	struct gw_poll_group *group = gw_bed_group(&tcp);
	struct gw_connect_options to = gw_bed_options(&bed);
	assert_int_equal(gw_bed_connect(group, &to, &endpoint), GW_OK);
	doctor_ask(&asking, "127.0.0.1", bed.address.port);
	gw_doctor_ask(&asking.doctor, &asking.peers);
	expect_cause(&asking, "reached its limit of connections", "--connections");
	gw_doctor_free(&asking.doctor);
	gw_endpoint_close(endpoint);
	gw_poll_group_destroy(group);
	gw_bed_end(&bed);
}

static void a_server_that_closes_at_the_first_read(void **state)
{
	(void)state;
	static const uint64_t sizes[] = {1, 4096, 1ull << 62, UINT64_MAX};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct program liar = {.region_bytes = sizes[i]};
		struct asking asking;
		meet(&asking, lie, &liar);
		if (sizes[i] <= 4096) /* larger regions may be refused already */
			doctor_answer(&asking, "tcp", GW_DOCTOR_WARNING, "connected, but reads fail: ");
		doctor_answer(&asking, "", GW_DOCTOR_PROBLEM, "no transport");
		gw_doctor_free(&asking.doctor);
	}
}

/* Another server on this host may have left a key under the number of a port. */
static int use_own_folder(void **state)
{
	(void)state;
	cluster_use_own_runtime_folder();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_process_and_silent_process),
		cmocka_unit_test(a_path_that_loses_long_answers),
		cmocka_unit_test(programs_of_each_kind),
		cmocka_unit_test(a_server_that_is_full),
		cmocka_unit_test(a_server_that_closes_at_the_first_read),
	};
	return cmocka_run_group_tests(tests, use_own_folder, NULL);
}
