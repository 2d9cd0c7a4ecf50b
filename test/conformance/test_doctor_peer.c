/* graphwire doctor's view of servers: its reads over every backend are the server's bytes, and end at their deadline; a
 * server that is away, strange, or not the one it was is told as what it is; other bytes are seen. */
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/alloc_fault.h"
#include "test/support/cluster.h"
#include "test/support/doctor_host.h"
#include "test/support/fake_peer.h"
#include "test/support/relay.h"
#include "test/support/transport_bed.h"
#include "transport/replay_cache.h"
#include "transport/service_private.h"

#define MEASURE_MS 80
#define BYTES      (256u << 10)
#define TIME_MAX   (100 * GW_NS_PER_SECOND) /* for what is bounded by seconds, on a machine that is busy or emulated */

/* --- One endpoint. --- */

static struct gw_doctor_reader *open_reader(const struct bed *bed, uint32_t row_bytes)
{
	struct gw_connect_options options = gw_bed_options(bed);
	struct gw_doctor_reader *reader;
	if (gw_doctor_reader_open(bed->kind->scheme, &options, row_bytes, MEASURE_MS, &reader))
		fail_msg("%s: %s", bed->kind->name, gw_last_error());
	return reader;
}

/* Every row of the sample is somewhere in the server's memory, the first and the last row of it among them; the same
 * each time. */
static void a_sample_is_the_servers_bytes(void **state)
{
	const struct bed_options options = {.bytes = BYTES};
	static uint8_t sample[GW_DOCTOR_SAMPLE_BYTES], again[GW_DOCTOR_SAMPLE_BYTES];
	struct bed bed;
	uint32_t used, bytes;
	gw_bed_begin(&bed, *state, &options);
	struct gw_doctor_reader *reader = open_reader(&bed, 512);
	assert_int_equal(gw_doctor_reader_sample(reader, sample, &used), GW_OK);
	assert_int_equal(used, GW_DOCTOR_SAMPLE_BYTES);
	assert_memory_equal(sample, bed.memory, 64);
	assert_memory_equal(sample + 64, bed.memory + BYTES - 64, 64);
	uint32_t different = 0;
	for (uint32_t at = 0; at < used; at += 64) {
		const uint8_t *found = memmem(bed.memory, BYTES, sample + at, 64);
		assert_non_null(found);
		different += at > 0 && memcmp(sample + at, sample + at - 64, 64) != 0;
	}
	assert_true(different > used / 64 / 2);
	assert_int_equal(gw_doctor_reader_sample(reader, again, &bytes), GW_OK);
	assert_int_equal(bytes, used);
	assert_memory_equal(sample, again, used);
	gw_doctor_reader_close(reader);
	gw_bed_end(&bed);
}

static void figures_make_sense(void **state)
{
	const struct bed_options options = {.bytes = BYTES};
	static const uint32_t rows[] = {1, 512, GW_DOCTOR_ROW_MAX};
	struct bed bed;
	gw_bed_begin(&bed, *state, &options);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gw_doctor_figures figures;
		struct gw_doctor_reader *reader = open_reader(&bed, rows[i]);
		if (gw_doctor_reader_measure(reader, &figures))
			fail_msg("%s", gw_last_error());
		assert_int_equal(figures.row_bytes, rows[i]);
		assert_true(figures.p50_us > 0 && figures.p99_us >= figures.p50_us);
		assert_true(figures.rows_per_second > 0 && isfinite(figures.rows_per_second));
		assert_true(fabs(figures.bytes_per_second / figures.rows_per_second - rows[i]) < 0.01 * rows[i]);
		assert_true(isnan(figures.range_cost_bytes) || figures.range_cost_bytes >= 0);
		gw_doctor_reader_close(reader);
	}
	gw_bed_end(&bed);
}

/* A region of a few bytes is read whole, and nothing past it. */
static void a_small_region_is_read_whole(void **state)
{
	const struct bed_options options = {.bytes = 1000};
	static uint8_t sample[GW_DOCTOR_SAMPLE_BYTES];
	struct gw_doctor_figures figures;
	struct bed bed;
	uint32_t used;
	gw_bed_begin(&bed, *state, &options);
	struct gw_doctor_reader *reader = open_reader(&bed, 4096);
	uint32_t bytes = (uint32_t)gw_doctor_reader_endpoint(reader)->peer.regions[0].bytes;
	assert_int_equal(bytes, 1000);
	assert_int_equal(gw_doctor_reader_sample(reader, sample, &used), GW_OK);
	assert_memory_equal(sample + 64, bed.memory + bytes - 64, 64);
	if (gw_doctor_reader_measure(reader, &figures))
		fail_msg("%s", gw_last_error());
	assert_int_equal(figures.row_bytes, bytes);
	assert_true(isnan(figures.range_cost_bytes));
	gw_doctor_reader_close(reader);
	gw_bed_end(&bed);
}

/* A server that stops halfway keeps nobody longer than the deadline; one-sided reads go on without it. */
static void a_silent_server_ends_at_the_deadline(void **state)
{
	const struct bed_kind *kind = *state;
	struct bed bed;
	struct gw_doctor_figures figures;
	gw_bed_begin(&bed, kind, NULL);
	struct gw_connect_options options = gw_bed_options(&bed);
	struct gw_doctor_reader *reader = NULL;
	bool goes_on = kind->one_sided || !kind->network;
	gw_status status = GW_DEADLINE;
	/* As long as it takes to open one, which is for the machine to say. */
	for (uint64_t s = goes_on ? 100 : 1; status == GW_DEADLINE && s <= 100; s *= 3) {
		options.deadline_ns = gw_now_ns() + s * GW_NS_PER_SECOND;
		status = gw_doctor_reader_open(kind->scheme, &options, 512, MEASURE_MS, &reader);
	}
	if (status != GW_OK)
		fail_msg("%s", gw_last_error());
	gw_bed_pause(&bed);
	uint64_t begun = gw_now_ns();
	status = gw_doctor_reader_measure(reader, &figures);
	assert_int_equal(status, goes_on ? GW_OK : GW_DEADLINE);
	assert_true(gw_now_ns() - begun < TIME_MAX);
	gw_bed_resume(&bed);
	gw_doctor_reader_close(reader);
	gw_bed_end(&bed);
}

static gw_status read_all(void *context)
{
	const struct bed *bed = context;
	static uint8_t sample[GW_DOCTOR_SAMPLE_BYTES];
	struct gw_connect_options options = gw_bed_options(bed);
	struct gw_doctor_reader *reader;
	uint32_t used;
	gw_status status = gw_doctor_reader_open(bed->kind->scheme, &options, 64, MEASURE_MS, &reader);
	if (status == GW_OK)
		status = gw_doctor_reader_sample(reader, sample, &used);
	gw_doctor_reader_close(reader);
	return status;
}

/* --- Servers, as the command asks them. --- */

struct asking {
	struct gw_doctor doctor;
	char server[GW_ADDRESS_MAX];
	const char *list[1];
	struct gw_doctor_peers peers;
};

static void ask(struct asking *asking, const char *host, uint16_t port)
{
	memset(asking, 0, sizeof(*asking));
	snprintf(asking->server, sizeof(asking->server), "%s:%u", host, port);
	asking->list[0] = asking->server;
	asking->doctor.root = "/nowhere";
	asking->doctor.section = "servers";
	asking->peers = (struct gw_doctor_peers){.servers = asking->list,
						 .count = 1,
						 .insecure = true,
						 .row_bytes = 64,
						 .measure_ms = MEASURE_MS,
						 .timeout_ms = getenv("GRAPHWIRE_GUEST") ? 60000 : 30000};
}

static const struct gw_doctor_finding *answer(const struct asking *asking, const char *scheme,
					      enum gw_doctor_status status, const char *value)
{
	char name[GW_ADDRESS_MAX + 16];
	snprintf(name, sizeof(name), "%s%s%s", asking->server, *scheme ? " " : "", scheme);
	const struct gw_doctor_finding *finding = doctor_find(&asking->doctor, name);
	if (finding->status != status)
		fail_msg("%s: status %d, not %d: %s", name, finding->status, status, finding->value);
	doctor_has(finding->value, value);
	return finding;
}

static const char *range_name(const struct asking *asking, const char *scheme)
{
	static char name[GW_ADDRESS_MAX + 16];
	snprintf(name, sizeof(name), "%s %s ranges", asking->server, scheme);
	return name;
}

/* Memory over shm beside a bed over TCP: two listeners that the doctor takes for one server. */
struct twin {
	struct bed bed;
	struct gw_arena *arena;
	struct gw_service *service;
	struct gw_listener *listener;
};

static const struct bed_kind tcp = {"tcp", NULL, "tcp", true, false};

static void twin_begin(struct twin *twin, uint64_t incarnation, uint64_t claimed)
{
	const struct bed_options options = {.bytes = BYTES, .incarnation = incarnation};
	const struct gw_arena_options memory = {.name = "twin", .numa = GW_NUMA_LOCAL, .shareable = true};
	const struct gw_service_identity identity = {.graph_id = 77, .incarnation = claimed, .part = 1, .parts = 3};
	struct gw_address address = {.scheme = "shm"};
	uint32_t id;
	cluster_use_own_runtime_folder();
	gw_bed_begin(&twin->bed, &tcp, &options);
	assert_int_equal(gw_arena_create(BYTES, &memory, &twin->arena), GW_OK);
	memcpy(gw_arena_base(twin->arena), twin->bed.memory, BYTES);
	assert_int_equal(gw_service_create(&identity, NULL, &twin->service), GW_OK);
	assert_int_equal(gw_service_memory(twin->service, gw_arena_base(twin->arena), gw_arena_bytes(twin->arena),
					   gw_arena_fd(twin->arena)),
			 GW_OK);
	assert_int_equal(gw_service_expose(twin->service, gw_arena_base(twin->arena), BYTES, 0, NULL, &id), GW_OK);
	snprintf(address.host, sizeof(address.host), "%016llx", (unsigned long long)incarnation);
	gw_bed_pause(&twin->bed);
	if (gw_listen(twin->bed.server_groups, 1, &address, twin->service, &twin->listener))
		fail_msg("%s", gw_last_error());
	gw_bed_resume(&twin->bed);
}

static void twin_end(struct twin *twin)
{
	gw_bed_pause(&twin->bed);
	gw_listener_stop(twin->listener, true);
	gw_listener_free(twin->listener);
	gw_bed_resume(&twin->bed);
	gw_bed_end(&twin->bed);
	gw_service_destroy(twin->service);
	gw_arena_destroy(twin->arena);
}

static void both_ways_read_the_same(void **state)
{
	(void)state;
	struct twin twin;
	struct asking asking;
	twin_begin(&twin, 4711, 4711);
	ask(&asking, "127.0.0.1", twin.bed.address.port);
	gw_doctor_ask(&asking.doctor, &asking.peers);
	answer(&asking, "tcp", GW_DOCTOR_OK, "a row of 64 B in ");
	answer(&asking, "shm", GW_DOCTOR_OK, "65536 bytes compared with tcp, the same");
	answer(&asking, "", GW_DOCTOR_OK, "clients here read over shm");
	doctor_has(doctor_find(&asking.doctor, range_name(&asking, "tcp"))->value, "64");
	assert_true(gw_doctor_worst(&asking.doctor) < GW_DOCTOR_PROBLEM);
	gw_doctor_free(&asking.doctor);
	/* They have no key; who expects one is told so. */
	ask(&asking, "127.0.0.1", twin.bed.address.port);
	asking.peers.insecure = false;
	gw_doctor_ask(&asking.doctor, &asking.peers);
	doctor_has(answer(&asking, "tcp", GW_DOCTOR_NOTE, "no key to prove")->fix, "--insecure");
	answer(&asking, "", GW_DOCTOR_PROBLEM, "no transport");
	gw_doctor_free(&asking.doctor);
	twin_end(&twin);
}

static void other_bytes_are_seen(void **state)
{
	(void)state;
	struct twin twin;
	struct asking asking;
	twin_begin(&twin, 4712, 4712);
	gw_arena_base(twin.arena)[BYTES - 1] ^= 1;
	ask(&asking, "127.0.0.1", twin.bed.address.port);
	gw_doctor_ask(&asking.doctor, &asking.peers);
	answer(&asking, "tcp", GW_DOCTOR_OK, "a row");
	doctor_has(answer(&asking, "shm", GW_DOCTOR_PROBLEM, "other bytes than over tcp")->costs, "wrong rows");
	gw_doctor_free(&asking.doctor);
	twin_end(&twin);
}

static void another_server_is_seen(void **state)
{
	(void)state;
	struct twin twin;
	struct asking asking;
	twin_begin(&twin, 4713, 9999);
	ask(&asking, "127.0.0.1", twin.bed.address.port);
	gw_doctor_ask(&asking.doctor, &asking.peers);
	answer(&asking, "shm", GW_DOCTOR_PROBLEM, "not the server that tcp reached");
	answer(&asking, "", GW_DOCTOR_OK, "clients here read over tcp");
	gw_doctor_free(&asking.doctor);
	twin_end(&twin);
}

/* A doctor comes again and again, as another client each time, and takes no server's places for clients. Of TCP alone:
 * where there is RDMA a connection that asks this server for it in vain ends without a word. */
static void no_server_remembers_it(void **state)
{
	(void)state;
	struct bed bed;
	struct asking asking;
	if (cluster_is_rdma())
		return;
	gw_bed_begin(&bed, &tcp, NULL);
	for (int i = 0; i < 3; i++) {
		ask(&asking, "127.0.0.1", bed.address.port);
		asking.peers.transport = "tcp";
		gw_doctor_ask(&asking.doctor, &asking.peers);
		answer(&asking, "tcp", GW_DOCTOR_OK, "a row");
		gw_doctor_free(&asking.doctor);
	}
	uint64_t end = gw_now_ns() + TIME_MAX;
	while (gw_replay_cache_clients(bed.service->replay_cache) > 0) {
		assert_true(gw_now_ns() < end);
		usleep(1000);
	}
	gw_bed_end(&bed);
}

static void a_key_is_needed(void **state)
{
	(void)state;
	const struct bed_options options = {.key = "a key of twenty bytes"};
	struct bed bed;
	struct asking asking;
	cluster_use_own_runtime_folder();
	gw_bed_begin(&bed, &tcp, &options);
	ask(&asking, "127.0.0.1", bed.address.port);
	asking.peers.key = (const uint8_t *)"another key, as long";
	asking.peers.key_bytes = 20;
	gw_doctor_ask(&asking.doctor, &asking.peers);
	doctor_has(answer(&asking, "tcp", GW_DOCTOR_NOTE, "key")->fix, "--key-file");
	answer(&asking, "shm", GW_DOCTOR_NOTE, "not tried");
	doctor_has(answer(&asking, "", GW_DOCTOR_PROBLEM, "reached by no transport: its key")->fix, "sha256sum");
	gw_doctor_free(&asking.doctor);
	ask(&asking, "127.0.0.1", bed.address.port);
	asking.peers.key = (const uint8_t *)options.key;
	asking.peers.key_bytes = (uint32_t)strlen(options.key);
	gw_doctor_ask(&asking.doctor, &asking.peers);
	answer(&asking, "tcp", GW_DOCTOR_OK, "a row");
	answer(&asking, "shm", GW_DOCTOR_NOTE, "no server of this user");
	gw_doctor_free(&asking.doctor);
	gw_bed_end(&bed);
}

/* What was asked for and is not there is a problem, though another way reaches the server. */
static void one_transport_is_asked_for(void **state)
{
	(void)state;
	struct bed bed;
	struct asking asking;
	cluster_use_own_runtime_folder();
	gw_bed_begin(&bed, &tcp, NULL);
	ask(&asking, "127.0.0.1", bed.address.port);
	asking.peers.transport = "shm";
	gw_doctor_ask(&asking.doctor, &asking.peers);
	answer(&asking, "tcp", GW_DOCTOR_OK, "a row");
	answer(&asking, "shm", GW_DOCTOR_PROBLEM, "not reached");
	gw_doctor_free(&asking.doctor);
	gw_bed_end(&bed);
}

static void nobody_and_strangers(void **state)
{
	(void)state;
	struct asking asking;
	struct bed bed;
	gw_bed_begin(&bed, &tcp, NULL);
	uint16_t port = bed.address.port;
	gw_bed_end(&bed);
	ask(&asking, "127.0.0.1", port);
	gw_doctor_ask(&asking.doctor, &asking.peers);
	answer(&asking, "tcp", GW_DOCTOR_NOTE, "not reached: ");
	doctor_has(answer(&asking, "", GW_DOCTOR_PROBLEM, "no transport: no process listens on its port")->fix,
		   "graphwire serve");
	gw_doctor_free(&asking.doctor);

	/* One that accepts and answers nothing. */
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(address);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
	ask(&asking, "127.0.0.1", ntohs(address.sin_port));
	asking.peers.timeout_ms = 300;
	uint64_t begun = gw_now_ns();
	gw_doctor_ask(&asking.doctor, &asking.peers);
	assert_true(gw_now_ns() - begun < TIME_MAX);
	answer(&asking, "tcp", GW_DOCTOR_NOTE, "not reached: ");
	doctor_has(answer(&asking, "", GW_DOCTOR_PROBLEM, "answers nothing")->fix, "kill -CONT");
	gw_doctor_free(&asking.doctor);
	close(fd);
}

/* Each cause has its own words and its own command, and only who is not there at all is to be started. */
static void expect_cause(const struct asking *asking, const char *cause, const char *fix)
{
	const struct gw_doctor_finding *finding = answer(asking, "", GW_DOCTOR_PROBLEM, cause);
	doctor_has(finding->fix, fix);
	if (strstr(finding->fix, "graphwire serve --part-config"))
		fail_msg("\"%s\" is no remedy for \"%s\"", finding->fix, finding->value);
}

/* A way on which the first bytes of every connection pass, and no long answer: as where large packets are dropped. */
static void a_way_that_loses_long_answers(void **state)
{
	(void)state;
	const struct bed_options options = {.bytes = BYTES};
	struct bed bed;
	struct relay relay;
	struct asking asking;
	gw_bed_begin(&bed, &tcp, &options);
	relay_begin(&relay, &bed.address);
	relay_hold_after(&relay, 1400);
	ask(&asking, "127.0.0.1", (uint16_t)strtoul(strrchr(relay.text, ':') + 1, NULL, 10));
	asking.peers.timeout_ms /= 20;
	gw_doctor_ask(&asking.doctor, &asking.peers);
	doctor_has(answer(&asking, "tcp", GW_DOCTOR_WARNING, "connected, but reads fail: ")->fix,
		   "tracepath 127.0.0.1");
	expect_cause(&asking, "short answers arrive, long ones do not", "mtu 1400");
	gw_doctor_free(&asking.doctor);
	/* The same way without the loss. */
	relay_pass(&relay);
	ask(&asking, "127.0.0.1", (uint16_t)strtoul(strrchr(relay.text, ':') + 1, NULL, 10));
	gw_doctor_ask(&asking.doctor, &asking.peers);
	answer(&asking, "", GW_DOCTOR_OK, "clients here read over");
	gw_doctor_free(&asking.doctor);
	relay_end(&relay);
	gw_bed_end(&bed);
}

struct stranger {
	int listener;
	uint32_t version; /* of a Graphwire server; 0: another program, that says this: */
	const char *says;
};

static void *be_strange(void *argument)
{
	const struct stranger *stranger = argument;
	for (int fd; (fd = gw_fake_accept(stranger->listener)) >= 0; close(fd)) {
		const struct wire_challenge challenge = {.magic = WIRE_MAGIC, .version = stranger->version};
		struct wire_header header;
		uint8_t body[256];
		if (!stranger->version)
			gw_fake_send(fd, stranger->says, strlen(stranger->says));
		else if (gw_fake_expect(fd, WIRE_HELLO, &header, body, sizeof(body)))
			gw_fake_frame(fd, WIRE_CHALLENGE, 0, &challenge, sizeof(challenge));
		gw_fake_closed(fd, 5000);
	}
	return NULL;
}

static void strangers_of_each_kind(void **state)
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
		struct stranger stranger = {.version = cases[i].version, .says = cases[i].says};
		struct asking asking;
		uint16_t port;
		pthread_t thread;
		stranger.listener = gw_fake_listen(&port);
		assert_int_equal(pthread_create(&thread, NULL, be_strange, &stranger), 0);
		ask(&asking, "127.0.0.1", port);
		/* Fewer bytes than a frame begins with: more might come. */
		if (cases[i].says && strlen(cases[i].says) < WIRE_HEADER_BYTES)
			asking.peers.timeout_ms /= 100;
		gw_doctor_ask(&asking.doctor, &asking.peers);
		expect_cause(&asking, cases[i].cause, cases[i].fix);
		for (const char *c = answer(&asking, "", GW_DOCTOR_PROBLEM, "")->value; *c; c++)
			assert_in_range(*c, 0x20, 0x7e);
		gw_doctor_free(&asking.doctor);
		shutdown(stranger.listener, SHUT_RDWR);
		pthread_join(thread, NULL);
		close(stranger.listener);
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
	ask(&asking, "127.0.0.1", bed.address.port);
	gw_doctor_ask(&asking.doctor, &asking.peers);
	expect_cause(&asking, "reached its limit of connections", "--connections");
	gw_doctor_free(&asking.doctor);
	gw_endpoint_close(endpoint);
	gw_poll_group_destroy(group);
	gw_bed_end(&bed);
}

struct liar {
	int listener;
	uint64_t region_bytes;
};

/* Says a good hello, and goes at the first read; so for the hello that RDMA begins with. */
static void *lie(void *argument)
{
	const struct liar *liar = argument;
	for (int fd; (fd = gw_fake_accept(liar->listener)) >= 0; close(fd)) {
		struct wire_header header;
		uint8_t body[16 << 10];
		if (gw_fake_welcome(fd, liar->region_bytes))
			(void)!gw_fake_expect(fd, WIRE_READV, &header, body, sizeof(body));
	}
	return NULL;
}

static void a_server_that_goes_at_the_first_read(void **state)
{
	(void)state;
	static const uint64_t sizes[] = {1, 4096, 1ull << 62, UINT64_MAX};
	cluster_use_own_runtime_folder();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct liar liar = {.region_bytes = sizes[i]};
		struct asking asking;
		uint16_t port;
		pthread_t thread;
		liar.listener = gw_fake_listen(&port);
		assert_int_equal(pthread_create(&thread, NULL, lie, &liar), 0);
		ask(&asking, "127.0.0.1", port);
		gw_doctor_ask(&asking.doctor, &asking.peers);
		shutdown(liar.listener, SHUT_RDWR);
		pthread_join(thread, NULL);
		close(liar.listener);
		if (sizes[i] <= 4096) /* others may be refused already */
			answer(&asking, "tcp", GW_DOCTOR_WARNING, "connected, but reads fail: ");
		answer(&asking, "", GW_DOCTOR_PROBLEM, "no transport");
		gw_doctor_free(&asking.doctor);
	}
}

/* Over RDMA, where this host has a device. */
static void rdma_is_reached_and_compared(void **state)
{
	(void)state;
	const struct bed_kind verbs = {"verbs", NULL, "verbs", true, true};
	struct bed bed;
	struct asking asking;
	if (!gw_bed_possible(&verbs))
		return; /* it has said why */
	gw_bed_begin(&bed, &verbs, NULL);
	ask(&asking, "127.0.0.1", bed.address.port);
	asking.doctor.root = "";
	asking.peers.transport = "verbs";
	gw_doctor_ask(&asking.doctor, &asking.peers);
	answer(&asking, "tcp", GW_DOCTOR_OK, "a row");
	answer(&asking, "verbs", GW_DOCTOR_OK, "65536 bytes compared with tcp, the same");
	answer(&asking, "", GW_DOCTOR_OK, "clients here read over verbs");
	doctor_has(doctor_find(&asking.doctor, range_name(&asking, "verbs"))->value, "310");
	gw_doctor_free(&asking.doctor);
	gw_bed_end(&bed);
}

static void servers_are_hosts_and_ports(void **state)
{
	(void)state;
	static const char *const good[] = {"localhost", "10.0.0.1:30050", "[::1]:7", "tcp:host:1", "verbs:host:1"};
	static const char *const bad[] = {"shm:name", "memory:name", "host:0", "host:x", "", "1234", "::1:80"};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(gw_doctor_server_check(good[i]), GW_OK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(gw_doctor_server_check(bad[i]), GW_INVALID);
}

/* Every allocation of the client's side fails in turn; the server of the bed is quiet meanwhile, or has its own. */
static void short_memory_is_an_error(void **state)
{
	(void)state;
	const struct bed_kind memory = {"memory", NULL, "memory", false, false};
	struct bed bed;
	gw_bed_begin(&bed, &memory, NULL);
	gw_bed_pause(&bed);
	/* A server remembers a client that has gone, for when it comes back: this one it has seen before. */
	assert_int_equal(read_all(&bed), GW_OK);
	assert_true(gw_fault_each(read_all, &bed) > 0);
	gw_bed_resume(&bed);
	gw_bed_end(&bed);
}

int main(void)
{
	const struct bed_test tests[] = {
		{BED_TEST(a_sample_is_the_servers_bytes)},
		{BED_TEST(figures_make_sense)},
		{BED_TEST(a_small_region_is_read_whole)},
		{BED_TEST(a_silent_server_ends_at_the_deadline)},
	};
	const struct CMUnitTest servers[] = {
		cmocka_unit_test(both_ways_read_the_same),
		cmocka_unit_test(other_bytes_are_seen),
		cmocka_unit_test(another_server_is_seen),
		cmocka_unit_test(no_server_remembers_it),
		cmocka_unit_test(a_key_is_needed),
		cmocka_unit_test(one_transport_is_asked_for),
		cmocka_unit_test(nobody_and_strangers),
		cmocka_unit_test(a_way_that_loses_long_answers),
		cmocka_unit_test(strangers_of_each_kind),
		cmocka_unit_test(a_server_that_is_full),
		cmocka_unit_test(a_server_that_goes_at_the_first_read),
		cmocka_unit_test(rdma_is_reached_and_compared),
		cmocka_unit_test(servers_are_hosts_and_ports),
		cmocka_unit_test(short_memory_is_an_error),
	};
	int failed = gw_bed_run("doctor", tests, sizeof(tests) / sizeof(tests[0]));
	return failed + cmocka_run_group_tests(servers, NULL, NULL);
}
