/* The client when memory is short, when many threads use it at once, and when operations are cancelled at any moment.
 *
 * Servers run in a separate process, started first, so that the allocations counted here are the client's. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "test/support/alloc_fault.h"
#include "test/support/client_setup.h"

#define PARTS   2
#define SCALE   120
#define THREADS 8

static struct {
	struct gw_fixture fixture;
	pid_t pid;
	int leash; /* closed: the servers end */
	char text[PARTS][GW_ADDRESS_MAX];
	const char *list[PARTS];
} servers;

static void serve(int addresses, int leash)
{
	struct cluster cluster;
	char byte;
	cluster_begin(&cluster, servers.fixture.folder, PARTS, NULL);
	(void)!write(addresses, cluster.text, sizeof(servers.text));
	(void)!read(leash, &byte, 1);
	cluster_end(&cluster);
	_exit(0);
}

static int servers_begin(void **state)
{
	(void)state;
	int addresses[2], leash[2];
	cluster_use_own_runtime_folder();
	gw_fixture_begin(&servers.fixture, 61, SCALE, PARTS);
	gw_fixture_write(&servers.fixture);
	if (pipe(addresses) != 0 || pipe(leash) != 0)
		return -1;
	servers.pid = fork();
	if (servers.pid == 0) {
		close(leash[1]);
		serve(addresses[1], leash[0]);
	}
	close(addresses[1]);
	close(leash[0]);
	servers.leash = leash[1];
	ssize_t n = read(addresses[0], servers.text, sizeof(servers.text));
	close(addresses[0]);
	for (int p = 0; p < PARTS; p++)
		servers.list[p] = servers.text[p];
	return n == sizeof(servers.text) ? 0 : -1;
}

static int servers_end(void **state)
{
	(void)state;
	close(servers.leash);
	waitpid(servers.pid, NULL, 0);
	gw_fixture_end(&servers.fixture);
	return 0;
}

static struct gw_client_options standalone(uint32_t threads)
{
	return (struct gw_client_options){.part_config = servers.fixture.folder, .threads = threads};
}

static struct gw_client_options remote(uint32_t threads, const char *neighbours)
{
	return (struct gw_client_options){
		.servers = servers.list, .server_count = PARTS, .threads = threads, .neighbours = neighbours};
}

/* --- Memory shortage. --- */

static gw_status find(struct gw_client *client, const struct gw_tensor **feat, const struct gw_tensor **label)
{
	gw_status status = gw_node_tensor(client, 0, "feat", feat);
	return status == GW_OK ? gw_node_tensor(client, 0, "label", label) : status;
}

static bool looks_ahead;

static gw_status use_loader(struct gw_client *client, const struct gw_sample_spec *spec)
{
	struct gw_loader_options options = {.spec = *spec,
					    .batch_size = 40,
					    .shuffle = true,
					    .depth = 2,
					    .lookahead = looks_ahead ? 2 : 0,
					    .cache_bytes = looks_ahead ? 500 : 0};
	struct gw_loader *loader;
	struct gw_minibatch *batch;
	struct gw_error_kept why;
	gw_status first = gw_loader_open(client, &options, &loader);
	if (first != GW_OK) {
		assert_null(loader);
		return first;
	}
	for (;;) {
		gw_status status = gw_loader_next(loader, &batch, -1);
		if (status == GW_END)
			break;
		/* A failed batch is reported, and the loader continues: with this batch if a server is at fault. */
		if (status != GW_OK && first == GW_OK) {
			assert_null(batch);
			first = status;
			gw_error_keep(&why);
		}
		gw_minibatch_release(batch);
	}
	if (first != GW_OK)
		gw_error_restore(&why);
	gw_loader_close(loader);
	return first;
}

static gw_status use(struct gw_client *client, bool load)
{
	const struct gw_tensor *feat, *label;
	int64_t ids[40], degrees[40];
	uint8_t rows[40 * 64];
	int32_t fanouts[2 * GW_FIXTURE_ETYPES] = {3, 3, 3, 3, 2, 2, GW_ALL_NEIGHBOURS, 2};
	for (int i = 0; i < 40; i++)
		ids[i] = i * 2 % 50;
	gw_status status = find(client, &feat, &label);
	if (status == GW_OK)
		status = gw_gather(client, feat, ids, 40, rows);
	if (status == GW_OK)
		status = gw_degrees(client, FIXTURE_CITES, ids, 40, degrees);
	if (status != GW_OK)
		return status;
	struct gw_fetch fetches[] = {{.tensor = feat, .at = GW_AT_INPUTS}, {.tensor = label, .at = GW_AT_SEEDS}};
	struct gw_sample_spec spec = {.hops = 2, .fanouts = fanouts, .fetch_count = 2, .fetches = fetches};
	struct gw_minibatch *batch;
	status = gw_sample(client, &spec, 1, 1, ids, 10, &batch);
	if (status != GW_OK) {
		assert_null(batch);
		return status;
	}
	gw_minibatch_release(batch);
	return load ? use_loader(client, &spec) : GW_OK;
}

static gw_status open_only(void *context)
{
	struct gw_client *client;
	gw_status status = gw_client_open(context, &client);
	assert_true((status == GW_OK) == (client != NULL));
	gw_client_close(client);
	return status;
}

static void opening_survives_any_shortage(void **state)
{
	(void)state;
	struct gw_client_options alone = standalone(2), far = remote(2, NULL);
	assert_true(gw_fault_each(open_only, &alone) > 50);
	assert_true(gw_fault_each(open_only, &far) > 50);
}

/* Memory becomes short at the first use, or soon after. When memory is back, the next operation succeeds. Loaders take
 * the most time, so only every fourth shortage opens one. */
static void use_in_need(const struct gw_client_options *options)
{
	struct gw_client *client = NULL;
	gw_fault_begin(GW_FAULT_NEVER);
	gw_client_close(open_client(options));
	unsigned long first = gw_fault_count(), refused = 0, runs = 0;
	assert_int_equal(gw_fault_end(), 0);
	bool hit = true;
	for (unsigned long n = first; hit; n += gw_fault_step(runs++)) {
		/* Begun and ended while the client has no running thread. */
		gw_fault_begin(n);
		gw_status again = GW_OK, status = gw_client_open(options, &client);
		if (status == GW_OK) {
			status = use(client, true);
			if (status == GW_OK && !gw_fault_hit())
				hit = false;
			/* The error is still the same after batches and loaders were closed. */
			if (status != GW_OK && (status != GW_NO_MEMORY || !strstr(gw_last_error(), "memory")))
				fail_msg("allocation %lu: %s: %s", n, gw_status_text(status), gw_last_error());
			again = use(client, runs % 4 == 0);
		}
		gw_client_close(client);
		assert_int_equal(gw_fault_end(), 0);
		if (hit && again != GW_OK)
			fail_msg("after allocation %lu failed: %s", n, gw_last_error());
		refused += status != GW_OK;
	}
	assert_true(refused > 20);
}

static void use_survives_any_shortage(void **state)
{
	(void)state;
	struct gw_client_options ways[] = {standalone(1), remote(1, "reads"), remote(2, "requests")};
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		use_in_need(&ways[i]);
}

/* A shortage in the thread that counts epochs fails no batch. */
static void look_ahead_survives_any_shortage(void **state)
{
	(void)state;
	struct gw_client_options far = remote(2, "requests");
	looks_ahead = true;
	use_in_need(&far);
	looks_ahead = false;
}

/* Opens, uses and closes a client while all allocations from the n-th on fail: no leak, no hang. */
static gw_status live(void *context)
{
	struct gw_client *client;
	gw_status status = gw_client_open(context, &client);
	if (status == GW_OK)
		status = use(client, true);
	gw_client_close(client);
	return status;
}

static void nothing_leaks_when_memory_stays_short(void **state)
{
	(void)state;
	/* Over TCP, a shortage in the whole process may look like a lost connection. */
	struct gw_client_options ways[] = {standalone(1), remote(1, "requests")};
	for (size_t i = 0; i < 2; i++) {
		ways[i].timeout_ms = 2000;
		ways[i].reconnect_ms = 20;
		bool hit = true;
		for (unsigned long n = 1; hit; n += 11) {
			gw_fault_begin_from(n);
			gw_status status = live(&ways[i]);
			hit = gw_fault_hit();
			assert_int_equal(gw_fault_end(), 0);
			if (!hit && status == GW_DEADLINE) { /* the machine is busy: again */
				hit = true;
				n -= 11;
			}
			assert_true(hit || status == GW_OK);
		}
	}
}

/* --- Many threads, few engines. --- */

struct crowd {
	struct gw_client *client;
	const struct plan *plan;
	uint64_t expected; /* digest of the batch of stream 1 */
	const uint8_t *rows;
	atomic_uint failures;
};

struct member {
	struct crowd *crowd;
	uint64_t number;
	pthread_t thread;
};

static void *gather_and_sample(void *argument)
{
	struct member *member = argument;
	struct crowd *crowd = member->crowd;
	const struct gw_tensor *feat = crowd->plan->fetches[0].tensor;
	int64_t ids[32], seeds[10];
	uint8_t out[32 * 64];
	for (int i = 0; i < 10; i++)
		seeds[i] = i;
	for (uint64_t round = 0; round < 40; round++) {
		for (uint64_t i = 0; i < 32; i++)
			ids[i] = (int64_t)(gw_mix64(round * 1000 + member->number * 100 + i) % feat->shape[0]);
		bool right = gw_gather(crowd->client, feat, ids, 32, out) == GW_OK;
		for (uint64_t i = 0; i < 32 && right; i++)
			right = memcmp(out + i * feat->row_bytes, crowd->rows + (uint64_t)ids[i] * feat->row_bytes,
				       feat->row_bytes) == 0;
		struct gw_minibatch *batch;
		if (gw_sample(crowd->client, &crowd->plan->spec, 1, 1, seeds, 10, &batch) != GW_OK)
			right = false;
		else
			right = right && gw_minibatch_digest(batch) == crowd->expected;
		gw_minibatch_release(batch);
		if (!right)
			atomic_fetch_add(&crowd->failures, 1);
	}
	return NULL;
}

/* Starts operations, and ends them at once, a moment later, or when they are done. */
static void *change_their_minds(void *argument)
{
	struct member *member = argument;
	struct crowd *crowd = member->crowd;
	const struct gw_tensor *feat = crowd->plan->fetches[0].tensor;
	uint64_t n = feat->shape[0];
	int64_t *ids = calloc(n, sizeof(*ids));
	uint8_t *out = calloc(n, feat->row_bytes);
	for (uint64_t i = 0; i < n; i++)
		ids[i] = (int64_t)i;
	for (uint64_t round = 0; round < 120; round++) {
		uint64_t dice = gw_mix64(round * 64 + member->number);
		struct gw_ticket *gather, *sample;
		struct gw_minibatch *batch = NULL;
		if (gw_gather_start(crowd->client, feat, ids, n, out, &gather) != GW_OK ||
		    gw_sample_start(crowd->client, &crowd->plan->spec, 1, dice, ids, 20, &batch, &sample) != GW_OK) {
			atomic_fetch_add(&crowd->failures, 1);
			break;
		}
		struct timespec pause = {.tv_nsec = (long)(dice >> 8 & 0x3ffff)};
		if (dice % 3)
			nanosleep(&pause, NULL);
		gw_cancel(gather);
		if (dice % 5 == 0) {
			gw_status status = gw_wait(sample, 0);
			if (status == GW_OK)
				gw_minibatch_release(batch);
			else if (status == GW_AGAIN)
				gw_cancel(sample);
			else
				atomic_fetch_add(&crowd->failures, 1);
		} else {
			gw_cancel(sample);
			if (batch)
				atomic_fetch_add(&crowd->failures, 1); /* cancelled: the batch must not be set */
		}
	}
	free(ids);
	free(out);
	return NULL;
}

static void crowd_in(const struct gw_client_options *options)
{
	struct crowd crowd = {.client = open_client(options)};
	struct plan plan;
	make_plan(crowd.client, &plan, false, false);
	crowd.plan = &plan;
	const struct gw_tensor *feat = plan.fetches[0].tensor;
	uint64_t n = feat->shape[0];
	int64_t *ids = calloc(n, sizeof(*ids));
	uint8_t *rows = calloc(n, feat->row_bytes);
	for (uint64_t i = 0; i < n; i++)
		ids[i] = (int64_t)i;
	struct gw_minibatch *batch;
	assert_int_equal(gw_gather(crowd.client, feat, ids, n, rows), GW_OK);
	assert_int_equal(gw_sample(crowd.client, &plan.spec, 1, 1, ids, 10, &batch), GW_OK);
	crowd.rows = rows;
	crowd.expected = gw_minibatch_digest(batch);
	gw_minibatch_release(batch);

	struct member members[THREADS];
	for (uint64_t i = 0; i < THREADS; i++) {
		members[i] = (struct member){.crowd = &crowd, .number = i};
		assert_int_equal(pthread_create(&members[i].thread, NULL,
						i % 2 ? change_their_minds : gather_and_sample, &members[i]),
				 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(members[i].thread, NULL);
	assert_int_equal(atomic_load(&crowd.failures), 0);
	free(ids);
	free(rows);
	gw_client_close(crowd.client);
}

static void many_threads_share_few_engines(void **state)
{
	(void)state;
	struct gw_client_options ways[] = {standalone(1), standalone(2), remote(1, "requests"), remote(2, "reads")};
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		crowd_in(&ways[i]);
}

/* --- Invalid specs and states. --- */

static struct gw_loader_state other_loaders_state(struct gw_client *client, const struct gw_loader_options *options)
{
	struct gw_loader_options other = *options;
	struct gw_loader_state state;
	struct gw_loader *loader;
	other.start = (struct gw_loader_state){0};
	other.seed++;
	assert_int_equal(gw_loader_open(client, &other, &loader), GW_OK);
	gw_loader_get_state(loader, &state);
	gw_loader_close(loader);
	return state;
}

static void invalid_arguments_are_refused_before_use(void **state)
{
	(void)state;
	struct gw_client_options options = standalone(1);
	struct gw_client *client = open_client(&options), *other = open_client(&options);
	struct plan plan;
	make_plan(client, &plan, false, false);
	struct gw_loader *loader;
	struct gw_minibatch *batch;
	int64_t seed = 0;
	uint64_t count;
	uint8_t row[64];
	struct gw_loader_options wrong = {.spec = plan.spec};
	wrong.spec.hops = 1u << 30;
	expect(gw_loader_open(client, &wrong, &loader), GW_RANGE, "hops");
	wrong.spec = plan.spec;
	wrong.spec.fanouts = NULL;
	expect(gw_loader_open(client, &wrong, &loader), GW_INVALID, "fanouts");
	expect(gw_sample(client, &wrong.spec, 1, 1, &seed, 1, &batch), GW_INVALID, "fanouts");
	wrong.spec = plan.spec;
	wrong.spec.fetch_count = 1000000;
	expect(gw_loader_open(client, &wrong, &loader), GW_LIMIT, "fetches");
	wrong.spec = plan.spec;
	wrong.spec.fetches = NULL;
	expect(gw_loader_open(client, &wrong, &loader), GW_INVALID, "fetches");
	wrong.spec = plan.spec;
	wrong.start.epoch = UINT64_MAX;
	expect(gw_loader_open(client, &wrong, &loader), GW_RANGE, "epoch");
	wrong.start = (struct gw_loader_state){.step = 1u << 30};
	expect(gw_loader_open(client, &wrong, &loader), GW_RANGE, "step");
	wrong.start = other_loaders_state(client, &wrong);
	expect(gw_loader_open(client, &wrong, &loader), GW_INVALID, "another");
	assert_null(loader);
	expect(gw_sample(client, &plan.spec, 1, 1, &seed, UINT64_MAX / 8, &batch), GW_LIMIT, "seeds");
	/* Tensors of another client, and pointers that are no tensors. */
	expect(gw_gather(other, plan.fetches[0].tensor, &seed, 1, row), GW_INVALID, "tensor");
	expect(gw_gather(client, NULL, &seed, 1, row), GW_INVALID, "tensor");
	expect(gw_sample(other, &plan.spec, 1, 1, &seed, 1, &batch), GW_INVALID, "fetch 0");
	expect(gw_tensor_count_nonzero(other, plan.fetches[0].tensor, &count), GW_INVALID, "does not belong");
	gw_client_close(other);
	/* A buffer that is not freed ends with its client. */
	assert_non_null(gw_buffer_alloc(client, 4096));
	gw_client_close(client);
	options.spin_us = UINT32_MAX;
	expect(gw_client_open(&options, &client), GW_RANGE, "spin_us");
	options.spin_us = 0;
	options.neighbours = "requests";
	expect(gw_client_open(&options, &client), GW_INVALID, "needs servers");
}

/* --- Forks. --- */

/* Calls of a child process on its parent's client. Returns the number of the first wrong one, or 0. */
static int use_inherited(struct gw_client *client, const struct plan *plan, struct gw_loader *loader,
			 struct gw_minibatch *held, struct gw_ticket *ticket)
{
	const struct gw_tensor *feat = plan->fetches[0].tensor;
	struct gw_loader_options options = {.spec = plan->spec};
	struct gw_loader *other;
	struct gw_minibatch *batch;
	struct gw_ticket *started;
	int64_t id = 0, degree;
	uint8_t row[64];
	const gw_status statuses[] = {gw_gather(client, feat, &id, 1, row),
				      gw_gather_start(client, feat, &id, 1, row, &started),
				      gw_degrees(client, FIXTURE_CITES, &id, 1, &degree),
				      gw_sample(client, &plan->spec, 1, 1, &id, 1, &batch),
				      gw_sample_start(client, &plan->spec, 1, 1, &id, 1, &batch, &started),
				      gw_wait(ticket, -1),
				      gw_loader_open(client, &options, &other),
				      gw_loader_next(loader, &batch, -1)};
	for (int i = 0; i < (int)(sizeof(statuses) / sizeof(statuses[0])); i++) {
		if (statuses[i] != GW_INVALID || !strstr(gw_last_error(), "fork"))
			return i + 1;
	}
	if (started || other || batch || gw_buffer_alloc(client, 4096))
		return 20;
	gw_cancel(ticket);
	gw_minibatch_release(held);
	gw_loader_close(loader);
	gw_client_close(client);
	return 0;
}

/* A child gets an error from its parent's client, does not hang, and changes nothing for the parent. */
static void a_forked_child_gets_an_error(void **state)
{
	(void)state;
	struct gw_client_options ways[] = {standalone(2), remote(2, NULL)};
	for (size_t i = 0; i < 2; i++) {
		struct gw_client *client = open_client(&ways[i]);
		struct plan plan;
		make_plan(client, &plan, false, false);
		struct gw_loader_options options = {.spec = plan.spec, .batch_size = 20};
		struct gw_loader *loader;
		struct gw_minibatch *held, *batch;
		struct gw_ticket *ticket;
		int64_t id = 0;
		uint8_t row[64];
		assert_int_equal(gw_loader_open(client, &options, &loader), GW_OK);
		assert_int_equal(gw_loader_next(loader, &held, -1), GW_OK);
		assert_int_equal(gw_gather_start(client, plan.fetches[0].tensor, &id, 1, row, &ticket), GW_OK);
		pid_t child = fork();
		if (child == 0) {
			alarm(60);
			_exit(use_inherited(client, &plan, loader, held, ticket));
		}
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		/* The parent's client still works. */
		assert_int_equal(gw_wait(ticket, -1), GW_OK);
		gw_minibatch_release(held);
		assert_int_equal(gw_loader_next(loader, &batch, -1), GW_OK);
		gw_minibatch_release(batch);
		gw_loader_close(loader);
		gw_client_close(client);
	}
}

/* --- Memory of a loader. --- */

static long blocks_after_loader(struct gw_client *client, const struct plan *plan, uint32_t depth)
{
	struct gw_loader_options options = {.spec = plan->spec, .batch_size = 20, .depth = depth};
	struct gw_loader *loader;
	struct gw_minibatch *batch;
	gw_fault_begin(GW_FAULT_NEVER);
	assert_int_equal(gw_loader_open(client, &options, &loader), GW_OK);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(gw_loader_next(loader, &batch, -1), GW_OK);
		gw_minibatch_release(batch);
	}
	gw_loader_close(loader);
	return gw_fault_end();
}

static void a_loader_gives_its_memory_back(void **state)
{
	(void)state;
	struct gw_client_options options = standalone(1);
	struct gw_client *client = open_client(&options);
	struct plan plan;
	make_plan(client, &plan, false, false);
	blocks_after_loader(client, &plan, 2); /* the client keeps what one batch needs for the next */
	assert_in_range(labs(blocks_after_loader(client, &plan, 64)), 0, 30); /* a batch has more */
	gw_client_close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opening_survives_any_shortage),
		cmocka_unit_test(use_survives_any_shortage),
		cmocka_unit_test(look_ahead_survives_any_shortage),
		cmocka_unit_test(nothing_leaks_when_memory_stays_short),
		cmocka_unit_test(many_threads_share_few_engines),
		cmocka_unit_test(invalid_arguments_are_refused_before_use),
		cmocka_unit_test(a_forked_child_gets_an_error),
		cmocka_unit_test(a_loader_gives_its_memory_back),
	};
	return cmocka_run_group_tests(tests, servers_begin, servers_end);
}
