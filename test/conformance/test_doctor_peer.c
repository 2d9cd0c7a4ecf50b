/* How graphwire doctor checks servers. Its reads over every backend return the server's bytes and end at their
 * deadline. It notices different bytes and a replaced server. (Other programs: test_doctor_bad_servers.c.) */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/support/alloc_fault.h"
#include "test/support/cluster.h"
#include "test/support/doctor_ask.h"
#include "test/support/doctor_host.h"
#include "test/support/transport_bed.h"
#include "transport/service/replay_cache.h"
#include "transport/service/service_backend.h"

#define BYTES (256u << 10)

/* --- One endpoint. --- */

static struct gw_doctor_reader *open_reader(const struct bed *bed, uint32_t row_bytes)
{
	struct gw_connect_options options = gw_bed_options(bed);
	struct gw_doctor_reader *reader;
	if (gw_doctor_reader_open(bed->kind->scheme, &options, row_bytes, DOCTOR_MEASURE_MS, &reader))
		fail_msg("%s: %s", bed->kind->name, gw_last_error());
	return reader;
}

static void a_sample_is_the_servers_bytes_and_repeats(void **state)
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

/* A region of a few bytes is read completely, and nothing after it. */
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

/* A stopped server delays a client no longer than the deadline; one-sided reads continue without it. */
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
	/* Opening an endpoint may take as long as the machine needs. */
	for (uint64_t s = goes_on ? 100 : 1; status == GW_DEADLINE && s <= 100; s *= 3) {
		options.deadline_ns = gw_now_ns() + s * GW_NS_PER_SECOND;
		status = gw_doctor_reader_open(kind->scheme, &options, 512, DOCTOR_MEASURE_MS, &reader);
	}
	if (status != GW_OK)
		fail_msg("%s", gw_last_error());
	gw_bed_pause(&bed);
	uint64_t begun = gw_now_ns();
	status = gw_doctor_reader_measure(reader, &figures);
	assert_int_equal(status, goes_on ? GW_OK : GW_DEADLINE);
	assert_true(gw_now_ns() - begun < DOCTOR_TIME_MAX);
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
	gw_status status = gw_doctor_reader_open(bed->kind->scheme, &options, 64, DOCTOR_MEASURE_MS, &reader);
	if (status == GW_OK)
		status = gw_doctor_reader_sample(reader, sample, &used);
	gw_doctor_reader_close(reader);
	return status;
}

/* --- Servers, as the command checks them. --- */

static const char *range_name(const struct asking *asking, const char *scheme)
{
	static char name[GW_ADDRESS_MAX + 16];
	snprintf(name, sizeof(name), "%s %s ranges", asking->server, scheme);
	return name;
}

/* Memory over shm, and a bed over TCP: two listeners that the doctor regards as one server. */
struct twin {
	struct bed bed;
	struct gw_arena *arena;
	struct gw_service *service;
	struct gw_listener *listener;
};

static const struct bed_kind tcp = {"tcp", NULL, "tcp", true, false, 0};

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
	doctor_ask(&asking, "127.0.0.1", twin.bed.address.port);
	gw_doctor_ask(&asking.doctor, &asking.peers);
	doctor_answer(&asking, "tcp", GW_DOCTOR_OK, "a row of 64 B in ");
	doctor_answer(&asking, "shm", GW_DOCTOR_OK, "65536 bytes compared with tcp, the same");
	doctor_answer(&asking, "", GW_DOCTOR_OK, "clients here read over shm");
	doctor_has(doctor_find(&asking.doctor, range_name(&asking, "tcp"))->value, "64");
	assert_true(gw_doctor_worst(&asking.doctor) < GW_DOCTOR_PROBLEM);
	gw_doctor_free(&asking.doctor);
	/* Servers without a key; a client that requires a key gets an error that says so. */
	doctor_ask(&asking, "127.0.0.1", twin.bed.address.port);
	asking.peers.insecure = false;
	gw_doctor_ask(&asking.doctor, &asking.peers);
	doctor_has(doctor_answer(&asking, "tcp", GW_DOCTOR_NOTE, "no key to prove")->fix, "--insecure");
	doctor_answer(&asking, "", GW_DOCTOR_PROBLEM, "no transport");
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
	doctor_ask(&asking, "127.0.0.1", twin.bed.address.port);
	gw_doctor_ask(&asking.doctor, &asking.peers);
	doctor_answer(&asking, "tcp", GW_DOCTOR_OK, "a row");
	doctor_has(doctor_answer(&asking, "shm", GW_DOCTOR_PROBLEM, "other bytes than over tcp")->costs, "wrong rows");
	gw_doctor_free(&asking.doctor);
	twin_end(&twin);
}

static void another_server_is_seen(void **state)
{
	(void)state;
	struct twin twin;
	struct asking asking;
	twin_begin(&twin, 4713, 9999);
	doctor_ask(&asking, "127.0.0.1", twin.bed.address.port);
	gw_doctor_ask(&asking.doctor, &asking.peers);
	doctor_answer(&asking, "shm", GW_DOCTOR_PROBLEM, "not the server that tcp reached");
	doctor_answer(&asking, "", GW_DOCTOR_OK, "clients here read over tcp");
	gw_doctor_free(&asking.doctor);
	twin_end(&twin);
}

/* The doctor connects repeatedly, each time as another client, and uses up none of the server's places for clients. TCP
 * alone: with RDMA, a connection that asks this server for RDMA in vain ends without an error text. */
static void no_server_remembers_it(void **state)
{
	(void)state;
	struct bed bed;
	struct asking asking;
	if (cluster_is_rdma())
		return;
	gw_bed_begin(&bed, &tcp, NULL);
	for (int i = 0; i < 3; i++) {
		doctor_ask(&asking, "127.0.0.1", bed.address.port);
		asking.peers.transport = "tcp";
		gw_doctor_ask(&asking.doctor, &asking.peers);
		doctor_answer(&asking, "tcp", GW_DOCTOR_OK, "a row");
		gw_doctor_free(&asking.doctor);
	}
	uint64_t end = gw_now_ns() + DOCTOR_TIME_MAX;
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
	doctor_ask(&asking, "127.0.0.1", bed.address.port);
	asking.peers.key = (const uint8_t *)"another key, as long";
	asking.peers.key_bytes = 20;
	gw_doctor_ask(&asking.doctor, &asking.peers);
	doctor_has(doctor_answer(&asking, "tcp", GW_DOCTOR_NOTE, "key")->fix, "--key-file");
	doctor_answer(&asking, "shm", GW_DOCTOR_NOTE, "not tried");
	doctor_has(doctor_answer(&asking, "", GW_DOCTOR_PROBLEM, "reached by no transport: its key")->fix, "sha256sum");
	gw_doctor_free(&asking.doctor);
	doctor_ask(&asking, "127.0.0.1", bed.address.port);
	asking.peers.key = (const uint8_t *)options.key;
	asking.peers.key_bytes = (uint32_t)strlen(options.key);
	gw_doctor_ask(&asking.doctor, &asking.peers);
	doctor_answer(&asking, "tcp", GW_DOCTOR_OK, "a row");
	doctor_answer(&asking, "shm", GW_DOCTOR_NOTE, "no server of this user");
	gw_doctor_free(&asking.doctor);
	gw_bed_end(&bed);
}

/* A requested transport that is missing is a problem, even if another transport reaches the server. */
static void one_transport_is_asked_for(void **state)
{
	(void)state;
	struct bed bed;
	struct asking asking;
	cluster_use_own_runtime_folder();
	gw_bed_begin(&bed, &tcp, NULL);
	doctor_ask(&asking, "127.0.0.1", bed.address.port);
	asking.peers.transport = "shm";
	gw_doctor_ask(&asking.doctor, &asking.peers);
	doctor_answer(&asking, "tcp", GW_DOCTOR_OK, "a row");
	doctor_answer(&asking, "shm", GW_DOCTOR_PROBLEM, "not reached");
	gw_doctor_free(&asking.doctor);
	gw_bed_end(&bed);
}

/* Over RDMA, where this host has a device. */
static void rdma_is_reached_and_compared(void **state)
{
	(void)state;
	const struct bed_kind verbs = {"verbs", NULL, "verbs", true, true, 0};
	struct bed bed;
	struct asking asking;
	if (!gw_bed_possible(&verbs))
		return; /* the reason was printed */
	gw_bed_begin(&bed, &verbs, NULL);
	doctor_ask(&asking, "127.0.0.1", bed.address.port);
	asking.doctor.root = "";
	asking.peers.transport = "verbs";
	gw_doctor_ask(&asking.doctor, &asking.peers);
	doctor_answer(&asking, "tcp", GW_DOCTOR_OK, "a row");
	doctor_answer(&asking, "verbs", GW_DOCTOR_OK, "65536 bytes compared with tcp, the same");
	doctor_answer(&asking, "", GW_DOCTOR_OK, "clients here read over verbs");
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

/* The bed's server is idle, or is another process. */
static void short_memory_is_an_error(void **state)
{
	(void)state;
	const struct bed_kind memory = {"memory", NULL, "memory", false, false, 0};
	struct bed bed;
	gw_bed_begin(&bed, &memory, NULL);
	gw_bed_pause(&bed);
	/* A server remembers clients that have left. It has seen this client before. */
	assert_int_equal(read_all(&bed), GW_OK);
	assert_true(gw_fault_each(read_all, &bed) > 0);
	gw_bed_resume(&bed);
	gw_bed_end(&bed);
}

int main(void)
{
	const struct bed_test tests[] = {
		{BED_TEST(a_sample_is_the_servers_bytes_and_repeats)},
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
		cmocka_unit_test(rdma_is_reached_and_compared),
		cmocka_unit_test(servers_are_hosts_and_ports),
		cmocka_unit_test(short_memory_is_an_error),
	};
	int failed = gw_bed_run("doctor", tests, sizeof(tests) / sizeof(tests[0]));
	return failed + cmocka_run_group_tests(servers, NULL, NULL);
}
