/* docs/SCALING.md's formulas against counts: servers and clients of the real library in one process, over the made-up
 * device (fabric.h). Connections, queue pairs, messages, reads and their bytes equal the formulas exactly; memory is
 * within 5 %.
 *
 *   test_fabric_scale                 small systems
 *   test_fabric_scale 64 64 1         64 servers, 64 clients, 1 thread of each client that reads
 *
 * A loop watches the process's descriptor of devices, an epoll descriptor. The kernel allows 500 such watchers, and
 * 1000 of a descriptor that is not epoll's. Here each loop watches an eventfd instead, on which no event ever comes.
 *
 * All clients reach all servers over RDMA. In a graph of three parts or more, the second part has no vertices.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/engine/engine.h"
#include "core/system/clock.h"
#include "test/fabric/fabric.h"
#include "test/fabric/scaling.h"
#include "test/support/client_setup.h"
#include "test/support/held.h"
#include "test/support/must.h"

#define CLIENTS_MAX 64
#define HOPS        2
#define PAPERS      20 /* of each part */
#define WITHIN      0.05
#define WARM        2 /* clients before those whose memory is counted: tables and buffers of servers have grown */

static struct scaling asked;

int __wrap_gw_verbs_devices_fd(void);
int __wrap_gw_verbs_devices_fd(void)
{
	static _Atomic int fd = -1;
	int made = -1, unmade = -1;
	if (atomic_load(&fd) < 0) {
		made = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (!atomic_compare_exchange_strong(&fd, &unmade, made))
			close(made);
	}
	return atomic_load(&fd);
}

struct scale_bed {
	struct scaling job;
	struct setup setup;
	struct gw_client *clients[CLIENTS_MAX];
	uint64_t papers, owners; /* owners: parts with vertices */
	int64_t *ids;
	long held_by_one; /* bytes of a client, with the share of its servers */
};

/* --- Counts. --- */

struct totals {
	uint64_t connections_open, accepts, requests, reads, read_bytes;
	struct fabric_counts device;
};

static void totals_read(const struct scale_bed *bed, struct totals *out)
{
	struct fabric_reads reads = fabric_reads();
	*out = (struct totals){.reads = reads.reads, .read_bytes = reads.bytes, .device = fabric_counts()};
	for (uint64_t p = 0; p < bed->job.servers; p++) {
		struct gw_service_counters counters;
		gw_service_counters(bed->setup.cluster.servers[p]->service, &counters);
		out->connections_open += counters.connections_open;
		out->accepts += counters.connections_total;
		out->requests += counters.requests;
	}
}

/* A server notices the end of a connection a little later. */
static void await_connections(const struct scale_bed *bed, uint64_t count)
{
	struct totals now;
	uint64_t end = gw_now_ns() + 100 * GW_NS_PER_SECOND;
	for (totals_read(bed, &now); now.connections_open != count && gw_now_ns() < end; totals_read(bed, &now))
		usleep(1000);
	assert_int_equal(now.connections_open, count);
}

static void expect_count(const char *what, uint64_t counted, uint64_t formula)
{
	print_message("  %-52s %12llu counted, %12llu by the formula\n", what, (unsigned long long)counted,
		      (unsigned long long)formula);
	assert_int_equal(counted, formula);
}

/* --- A system. --- */

static void scale_begin(struct scale_bed *bed, const struct scaling *job)
{
	memset(bed, 0, sizeof(*bed));
	bed->job = *job;
	uint32_t parts = (uint32_t)job->servers;
	gw_fixture_begin(&bed->setup.fixture, 91, PAPERS * job->servers, parts);
	gw_fixture_write(&bed->setup.fixture);
	cluster_begin(&bed->setup.cluster, bed->setup.fixture.folder, parts, "epoll");
	bed->papers = bed->setup.fixture.schema->ntypes[0].count;
	bed->owners = job->servers < 3 ? job->servers : job->servers - 1;
	bed->ids = calloc(bed->papers, sizeof(*bed->ids));
	assert_non_null(bed->ids);
	for (uint64_t i = 0; i < bed->papers; i++)
		bed->ids[i] = (int64_t)i;
}

static void scale_end(struct scale_bed *bed)
{
	for (uint64_t c = 0; c < bed->job.trainers; c++)
		gw_client_close(bed->clients[c]);
	await_connections(bed, 0);
	setup_end(&bed->setup);
	assert_int_equal(fabric_counts().qps_open, 0);
	assert_int_equal(fabric_counts().pinned_bytes, 0);
	free(bed->ids);
}

static void sample(const struct scale_bed *bed, struct gw_client *client, const struct gw_sample_spec *spec)
{
	struct gw_minibatch *batch;
	must(gw_sample(client, spec, 5, 6, bed->ids, bed->papers, &batch));
	gw_minibatch_release(batch);
}

/* Two hops along one edge type from all papers: each part with vertices gets a request in each hop. */
static void scale_sample(const struct scale_bed *bed, struct gw_client *client)
{
	static const int32_t fanouts[HOPS * GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = 2,
								  [GW_FIXTURE_ETYPES + FIXTURE_CITES] = 2};
	sample(bed, client, &(struct gw_sample_spec){.hops = HOPS, .fanouts = fanouts});
}

static void settle(struct gw_client *client)
{
	for (uint32_t e = 0; e < client->engine_count; e++) {
		struct gw_engine *engine = &client->engines[e];
		uint32_t unowned = 0;
		while (!atomic_compare_exchange_weak(&engine->owner, &unowned, 1))
			unowned = 0;
		for (int turn = 0; turn < 4; turn++)
			gw_engine_run_once(engine, gw_now_ns());
		assert_null(engine->ticking); /* a run looks at no idle link */
		atomic_store(&engine->owner, 0);
	}
}

/* A thread of a client connects when it is first used, so each client is used as often as it has threads. */
static void scale_open(struct scale_bed *bed)
{
	/* As users name servers: a link connects over TCP, then looks for RDMA. */
	static const char *servers[CLUSTER_PARTS_MAX];
	for (uint64_t p = 0; p < bed->job.servers; p++)
		servers[p] = strchr(bed->setup.cluster.list[p], ':') + 1;
	const struct gw_client_options options = {.servers = servers,
						  .server_count = (uint32_t)bed->job.servers,
						  .threads = (uint32_t)bed->job.engines,
						  .transport = "verbs",
						  .neighbours = "requests",
						  .timeout_ms = 600000};
	long first = 0;
	for (uint64_t c = 0; c < bed->job.trainers; c++) {
		bed->clients[c] = open_client(&options);
		for (uint64_t e = 0; e < bed->job.engines && bed->job.engines > 1; e++)
			scale_sample(bed, bed->clients[c]);
		await_connections(bed, (c + 1) * bed->job.engines * bed->job.servers);
		settle(bed->clients[c]);
		first = c >= WARM ? first : gw_held_bytes();
	}
	bed->held_by_one = (gw_held_bytes() - first) / (long)(bed->job.trainers - WARM);
}

static void check_opening(struct scale_bed *bed)
{
	const struct scaling *job = &bed->job;
	struct totals before, after;
	totals_read(bed, &before);
	scale_open(bed);
	totals_read(bed, &after);
	/* More than one thread: each client has sampled before, once in each thread. */
	uint64_t batches = job->engines > 1 ? job->engines : 0;
	uint64_t sampled = batches * scaling_batch_requests(job, HOPS, 1) * bed->owners;
	print_message("%llu servers, %llu clients, %llu threads\n", (unsigned long long)job->servers,
		      (unsigned long long)job->trainers, (unsigned long long)job->engines);
	expect_count("connections", after.connections_open, scaling_server_connections(job) * job->servers);
	expect_count("connections accepted while opening", after.accepts - before.accepts,
		     scaling_server_accepts(job) * job->servers);
	expect_count("queue pairs", after.device.qps_open, scaling_all_qps(job));
	expect_count("queue pairs created", after.device.qps_made - before.device.qps_made, scaling_all_qps(job));
	expect_count("requests while opening", after.requests - before.requests,
		     scaling_opening_requests(job) * job->servers + sampled);
	expect_count("reads while opening", after.reads - before.reads, scaling_opening_reads(job));
	expect_count("messages while opening",
		     after.device.messages[VERBS_REQUEST] - before.device.messages[VERBS_REQUEST], sampled);
	if (job->engines == 1) /* mini-batches pin memory as well */
		expect_count("bytes of pinned messages", after.device.pinned_bytes,
			     2 * SCALING_MESSAGES * scaling_opening_reads(job));
}

static void check_batches(struct scale_bed *bed)
{
	const struct scaling *job = &bed->job;
	struct totals before, after;
	totals_read(bed, &before);
	for (uint64_t c = 0; c < job->trainers; c++)
		scale_sample(bed, bed->clients[c]);
	totals_read(bed, &after);
	const uint64_t *old = before.device.messages, *new = after.device.messages;
	uint64_t requests = scaling_batch_requests(job, HOPS, 1) * bed->owners;
	expect_count("sample requests of a mini-batch of each client", after.requests - before.requests, requests);
	expect_count("messages of requests", new[VERBS_REQUEST] - old[VERBS_REQUEST], requests);
	expect_count("calls that post them", after.device.posts[VERBS_REQUEST] - before.device.posts[VERBS_REQUEST],
		     scaling_batch_posts(job, HOPS, 1) * bed->owners);
	expect_count("messages of replies", new[VERBS_REPLY] - old[VERBS_REPLY], requests);
	expect_count("messages of errors and credits",
		     new[VERBS_ERROR] - old[VERBS_ERROR] + new[VERBS_CREDIT] - old[VERBS_CREDIT], 0);
	expect_count("reads of a mini-batch by requests", after.reads - before.reads, 0);
}

/* One hop along both edge types that end at papers: the two requests to a part leave together. */
static void check_types(struct scale_bed *bed)
{
	static const int32_t fanouts[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = 2, [FIXTURE_WRITES] = 2};
	const struct scaling *job = &bed->job;
	struct totals before, after;
	totals_read(bed, &before);
	for (uint64_t c = 0; c < job->trainers; c++)
		sample(bed, bed->clients[c], &(struct gw_sample_spec){.hops = 1, .fanouts = fanouts});
	totals_read(bed, &after);
	const struct fabric_counts *old = &before.device, *new = &after.device;
	expect_count("messages of requests, two edge types",
		     new->messages[VERBS_REQUEST] - old->messages[VERBS_REQUEST],
		     scaling_batch_requests(job, 1, 2) * bed->owners);
	expect_count("calls that post them", new->posts[VERBS_REQUEST] - old->posts[VERBS_REQUEST],
		     scaling_batch_posts(job, 1, 2) * bed->owners);
	expect_count("messages of replies", new->messages[VERBS_REPLY] - old->messages[VERBS_REPLY],
		     scaling_batch_requests(job, 1, 2) * bed->owners);
	uint64_t posts = new->posts[VERBS_REPLY] - old->posts[VERBS_REPLY];
	assert_in_range(posts, scaling_batch_posts(job, 1, 2) * bed->owners,
			new->messages[VERBS_REPLY] - old->messages[VERBS_REPLY]);
}

/* One hop of as many mini-batches as a list has messages, which a client's thread begins in one run. */
static void check_flight(struct scale_bed *bed)
{
	static const int32_t fanouts[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = 2};
	const struct gw_sample_spec spec = {.hops = 1, .fanouts = fanouts};
	const struct scaling *job = &bed->job;
	struct gw_minibatch *batches[VERBS_SENDS];
	struct gw_ticket *tickets[VERBS_SENDS];
	struct totals before, after;
	totals_read(bed, &before);
	for (uint64_t c = 0; c < job->trainers; c++) {
		struct gw_engine *engine = &bed->clients[c]->engines[0];
		uint32_t unowned = 0;
		while (!atomic_compare_exchange_weak(&engine->owner, &unowned, 1))
			unowned = 0;
		for (uint32_t i = 0; i < VERBS_SENDS; i++)
			must(gw_sample_start(bed->clients[c], &spec, 5, i, bed->ids, bed->papers, &batches[i],
					     &tickets[i]));
		atomic_store(&engine->owner, 0);
		for (uint32_t i = 0; i < VERBS_SENDS; i++) {
			must(gw_wait(tickets[i], -1));
			gw_minibatch_release(batches[i]);
		}
	}
	totals_read(bed, &after);
	const struct fabric_counts *old = &before.device, *new = &after.device;
	expect_count("messages of requests, four batches", new->messages[VERBS_REQUEST] - old->messages[VERBS_REQUEST],
		     scaling_batch_requests(job, 1, VERBS_SENDS) * bed->owners);
	expect_count("calls that post them", new->posts[VERBS_REQUEST] - old->posts[VERBS_REQUEST],
		     scaling_batch_posts(job, 1, VERBS_SENDS) * bed->owners);
}

/* Every second row: no two are adjacent, so that each is a read. */
static void check_gathers(struct scale_bed *bed)
{
	const struct scaling *job = &bed->job;
	struct totals before, after;
	uint64_t n = bed->papers / 2;
	int64_t *ids = calloc(n ? n : 1, sizeof(*ids));
	assert_non_null(ids);
	for (uint64_t i = 0; i < n; i++)
		ids[i] = (int64_t)(2 * i);
	totals_read(bed, &before);
	uint64_t row_bytes = 0;
	for (uint64_t c = 0; c < job->trainers; c++) {
		const struct gw_tensor *feat = node_tensor(bed->clients[c], "paper", "feat");
		uint8_t *rows = malloc(n * feat->row_bytes);
		assert_non_null(rows);
		must(gw_gather(bed->clients[c], feat, ids, n, rows));
		row_bytes = feat->row_bytes;
		free(rows);
	}
	totals_read(bed, &after);
	expect_count("reads of a gather of each client", after.reads - before.reads, job->trainers * n);
	expect_count("bytes of these reads", after.read_bytes - before.read_bytes, job->trainers * n * row_bytes);
	expect_count("requests of a gather", after.requests - before.requests, 0);
	free(ids);
}

/* What one more server adds to a client, and to the server: the difference of two systems. */
static void check_memory(const struct scale_bed *bed, long held_with_one_server)
{
	double counted = (double)(bed->held_by_one - held_with_one_server) / (double)(bed->job.servers - 1);
	uint64_t formula = bed->job.engines * (scaling_client_allocated() + scaling_server_allocated()) +
			   scaling_remote_bytes(bed->clients[0]->servers[0].catalog.count);
	print_message("  %-52s %12.0f counted, %12llu by the formula\n", "bytes allocated for a server, on both sides",
		      counted, (unsigned long long)formula);
	assert_true(counted > (1 - WITHIN) * (double)formula && counted < (1 + WITHIN) * (double)formula);
}

static void check_system(const struct scaling *job)
{
	struct scaling least = {.servers = 1, .trainers = 6, .engines = job->engines, .remote = 1};
	static struct scale_bed bed;
	scale_begin(&bed, &least);
	check_opening(&bed);
	long held = bed.held_by_one;
	scale_end(&bed);
	scale_begin(&bed, job);
	check_opening(&bed);
	check_memory(&bed, held);
	check_batches(&bed);
	check_types(&bed);
	if (job->engines == 1)
		check_flight(&bed);
	check_gathers(&bed);
	scale_end(&bed);
}

static void counts_equal_the_formulas(void **state)
{
	(void)state;
	static const struct scaling systems[] = {{5, 6, 1, 5}, {2, 4, 3, 2}};
	if (asked.servers) {
		check_system(&asked);
		return;
	}
	for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++)
		check_system(&systems[i]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(counts_equal_the_formulas)};
	if (argc == 4) {
		asked.servers = asked.remote = strtoull(argv[1], NULL, 10);
		asked.trainers = strtoull(argv[2], NULL, 10);
		asked.engines = strtoull(argv[3], NULL, 10);
		if (asked.servers < 2 || asked.servers > CLUSTER_PARTS_MAX || asked.trainers <= WARM ||
		    asked.trainers > CLIENTS_MAX || !asked.engines)
			return 2;
	}
	cluster_limit_threads(1);
	gw_held_begin(); /* before any other thread runs */
	return cmocka_run_group_tests_name("the formulas of docs/SCALING.md", tests, NULL, NULL);
}
