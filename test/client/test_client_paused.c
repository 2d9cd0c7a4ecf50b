/* Trainers that are stopped (SIGSTOP) for longer than an operation's deadline while their servers run. Operations in
 * flight succeed, pushes are applied once, and cancelled reads write nothing (test/support/paused.h). */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "test/support/many.h"
#include "test/support/paused.h"

#define LATE_MS   12000 /* if the machine is too busy for a deadline, a test begins again with twice that */
#define ROUNDS    2
#define PUSHED    1500 /* rows of a push: 384 KB, so that some frame is always in flight */
#define IN_FLIGHT 4

static struct trainer trainer;

/* --- Valid input. --- */

/* Lets other threads run. */
static bool goes_on(const struct trainer *self)
{
	paused_wait_ns(GW_NS_PER_MS);
	return !atomic_load(&paused_shared->finish) && !atomic_load(&self->told->failed);
}

static int64_t seed_of(uint64_t i, uint32_t at)
{
	return (int64_t)(gw_mix64(i * 64 + at) % SETUP_SCALE);
}

static gw_status sample(struct gw_client *client, const struct gw_sample_spec *spec, uint64_t i, uint64_t *digest)
{
	struct gw_minibatch *batch;
	int64_t seeds[10];
	for (uint32_t s = 0; s < 10; s++)
		seeds[s] = seed_of(i, s);
	gw_status status = gw_sample(client, spec, i, 1, seeds, 10, &batch);
	if (status != GW_OK)
		return status;
	*digest = gw_minibatch_digest(batch);
	gw_minibatch_release(batch);
	return GW_OK;
}

/* A client without servers computes them. */
static void expect_all(struct trainer *self)
{
	struct gw_client_options options = {.part_config = paused_fixture.folder, .threads = 1};
	struct gw_client *client = open_client(&options);
	struct plan plan;
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	int64_t ids[SETUP_SCALE];
	make_plan(client, &plan, false, false);
	for (int i = 0; i < SETUP_SCALE; i++)
		ids[i] = i;
	self->rows = calloc(SETUP_SCALE, feat->row_bytes);
	paused_well(self, gw_gather(client, feat, ids, SETUP_SCALE, self->rows) == GW_OK, "rows");
	for (uint64_t i = 0; i < SEEDS; i++)
		paused_well(self, sample(client, &plan.spec, i, &self->digests[i]) == GW_OK, "samples");
	self->batches = run_epoch(client, &plan, 1, self->epoch);
	gw_client_close(client);
}

/* --- Repeated calls. --- */

static void *gather_rows(void *argument)
{
	struct trainer *self = argument;
	uint64_t bytes = self->feat->row_bytes;
	uint8_t *rows = calloc(100, bytes);
	int64_t ids[100];
	for (uint64_t turn = 0; goes_on(self); turn++) {
		for (uint32_t i = 0; i < 100; i++)
			ids[i] = seed_of(turn, i);
		if (!paused_well(self, gw_gather(self->client, self->feat, ids, 100, rows) == GW_OK, "gather"))
			break;
		for (uint32_t i = 0; i < 100; i++)
			paused_well(self, memcmp(rows + i * bytes, self->rows + (uint64_t)ids[i] * bytes, bytes) == 0,
				    "other rows");
		atomic_fetch_add(&self->told->counts[GATHERS], 1);
	}
	free(rows);
	return NULL;
}

static void *sample_seeds(void *argument)
{
	struct trainer *self = argument;
	for (uint64_t turn = 0; goes_on(self); turn++) {
		uint64_t digest = 0;
		if (!paused_well(self, sample(self->client, &self->plan.spec, turn % SEEDS, &digest) == GW_OK,
				 "sample"))
			break;
		paused_well(self, digest == self->digests[turn % SEEDS], "another sample");
		atomic_fetch_add(&self->told->counts[SAMPLES], 1);
	}
	return NULL;
}

static void *load_epochs(void *argument)
{
	struct trainer *self = argument;
	while (goes_on(self)) {
		struct gw_loader *loader = open_loader(self->client, &self->plan, (struct gw_loader_state){.epoch = 1});
		for (uint32_t b = 0; b < self->batches && goes_on(self); b++) {
			struct gw_minibatch *batch;
			if (!paused_well(self, gw_loader_next(loader, &batch, -1) == GW_OK, "loader"))
				break;
			paused_well(self, gw_minibatch_digest(batch) == self->epoch[b], "another batch");
			gw_minibatch_release(batch);
			atomic_fetch_add(&self->told->counts[LOADERS], 1);
		}
		gw_loader_close(loader);
	}
	return NULL;
}

/* Several pushes at a time, each to other rows than the one before. */
static void *push_ones(void *argument)
{
	static float ones[PUSHED * COLUMNS];
	static int64_t ids[IN_FLIGHT][PUSHED];
	const struct gw_optimizer add = {.kind = GW_SGD, .rate = -1};
	struct trainer *self = argument;
	struct gw_ticket *tickets[IN_FLIGHT] = {NULL};
	for (uint32_t i = 0; i < PUSHED * COLUMNS; i++)
		ones[i] = 1;
	for (uint32_t turn = 0; goes_on(self); turn = (turn + 1) % IN_FLIGHT) {
		bool good = !tickets[turn] || gw_wait(tickets[turn], -1) == GW_OK;
		tickets[turn] = NULL;
		if (!paused_well(self, good, "push"))
			break;
		for (uint32_t i = 0; i < PUSHED; i++) {
			ids[turn][i] = (int64_t)((i * 2 + turn) % ROWS);
			self->pushed[ids[turn][i]]++;
		}
		if (!paused_well(self,
				 gw_push_start(self->client, self->sums, ids[turn], PUSHED, ones, &add,
					       &tickets[turn]) == GW_OK,
				 "push"))
			break;
		atomic_fetch_add(&self->told->counts[PUSHES], 1);
	}
	for (uint32_t turn = 0; turn < IN_FLIGHT; turn++)
		paused_well(self, !tickets[turn] || gw_wait(tickets[turn], -1) == GW_OK, "the last pushes");
	return NULL;
}

/* Cancels the gather in the middle: from then on nothing may write to its memory. */
static void *cancel_gathers(void *argument)
{
	struct trainer *self = argument;
	uint64_t bytes = SETUP_SCALE * self->feat->row_bytes;
	uint8_t *rows = calloc(1, bytes);
	int64_t ids[SETUP_SCALE];
	for (uint32_t i = 0; i < SETUP_SCALE; i++)
		ids[i] = seed_of(7, i);
	for (uint64_t turn = 0; goes_on(self); turn++) {
		struct gw_ticket *ticket;
		if (!paused_well(self,
				 gw_gather_start(self->client, self->feat, ids, SETUP_SCALE, rows, &ticket) == GW_OK,
				 "gather"))
			break;
		gw_status status = turn % 2 ? gw_wait(ticket, 0) : GW_AGAIN;
		if (status == GW_AGAIN)
			gw_cancel(ticket);
		memset(rows, MARK, bytes);
		paused_well(self, status == GW_OK || status == GW_AGAIN, "gather");
		sched_yield();
		paused_well(self, paused_is_marked(rows, bytes), "written after it was cancelled");
		atomic_fetch_add(&self->told->counts[CANCELS], 1);
	}
	free(rows);
	return NULL;
}

static void check_sums(struct trainer *self)
{
	float *rows = calloc(ROWS, COLUMNS * sizeof(*rows));
	int64_t *ids = calloc(ROWS, sizeof(*ids));
	for (int i = 0; i < ROWS; i++)
		ids[i] = i;
	paused_well(self, gw_gather(self->client, self->sums, ids, ROWS, rows) == GW_OK, "sums");
	for (int i = 0; i < ROWS * COLUMNS && !atomic_load(&self->told->failed); i++)
		paused_well(self, rows[i] == self->pushed[i / COLUMNS], "a push was applied twice, or not at all");
	free(ids);
	free(rows);
}

/* A trainer that runs all kinds of operations at once until the test ends it. */
static int train(uint32_t number)
{
	static const struct {
		const char *transport, *driver;
	} ways[TRAINERS_MAX] = {{"tcp", "epoll"}, {"shm", NULL}, {"tcp", "io_uring"}, {NULL, NULL}};
	static void *(*const work[KINDS])(void *) = {gather_rows, sample_seeds, load_epochs, push_ones, cancel_gathers};
	struct trainer *self = &trainer;
	pthread_t threads[KINDS];
	self->told = &paused_shared->told[number];
	expect_all(self);
	struct gw_client_options options = paused_options_of(self, ways[number].transport, ways[number].driver);
	gw_status status = gw_client_open(&options, &self->client);
	if (status == GW_UNSUPPORTED) {
		atomic_store(&self->told->step, 1); /* no io_uring here */
		return 0;
	}
	if (!paused_well(self, status == GW_OK, "client"))
		return 1;
	self->feat = node_tensor(self->client, "paper", "feat");
	make_plan(self->client, &self->plan, false, false);
	paused_well(self, paused_make_sums(self) == GW_OK, "tensor");
	for (int k = 0; k < KINDS; k++)
		pthread_create(&threads[k], NULL, work[k], self);
	for (int k = 0; k < KINDS; k++)
		pthread_join(threads[k], NULL);
	if (!atomic_load(&self->told->failed))
		check_sums(self);
	gw_client_close(self->client);
	cluster_end(&self->own);
	free(self->rows);
	return atomic_load(&self->told->failed);
}

static void wait_for_more(const struct told *told, uint32_t more)
{
	uint32_t begun[KINDS];
	uint64_t end = gw_monotonic_ns() + ENOUGH_NS;
	for (int k = 0; k < KINDS; k++)
		begun[k] = atomic_load(&told->counts[k]);
	for (int k = 0; k < KINDS;) {
		if (atomic_load(&told->failed) || atomic_load(&told->step))
			return;
		if (atomic_load(&told->counts[k]) - begun[k] >= more)
			k++;
		else
			paused_wait_ns(GW_NS_PER_MS);
		assert_true(gw_monotonic_ns() < end);
	}
}

/* Returns whether an operation missed its deadline, which may happen without the pauses too. */
static bool stop_trainers(void)
{
	uint32_t few = gw_many_step() == 1 ? TRAINERS_MAX : 2, count = cluster_is_rdma() ? 1 : few;
	pid_t servers = cluster_is_rdma() ? 0 : paused_begin_servers(0), trainers[TRAINERS_MAX];
	for (uint32_t t = 0; t < count; t++)
		trainers[t] = paused_start(train, t);
	for (int round = 0; round < ROUNDS; round++) {
		bool stopped[TRAINERS_MAX] = {false};
		for (uint32_t t = 0; t < count; t++)
			wait_for_more(&paused_shared->told[t], 3);
		for (uint32_t t = 0; t < count; t++) {
			stopped[t] = !atomic_load(&paused_shared->told[t].failed) &&
				     !atomic_load(&paused_shared->told[t].step);
			if (stopped[t])
				paused_stop(trainers[t]);
		}
		paused_for_long();
		for (uint32_t t = 0; t < count; t++)
			if (stopped[t])
				paused_go_on(trainers[t]);
	}
	for (uint32_t t = 0; t < count; t++)
		wait_for_more(&paused_shared->told[t], IN_FLIGHT + 1);
	atomic_store(&paused_shared->finish, true);
	bool late = false;
	for (uint32_t t = 0; t < count; t++) {
		if (paused_shared->told[t].late && paused_shared->timeout_ms < LATE_MS)
			late |= paused_end_of(trainers[t]) != 0;
		else
			paused_expect_well(trainers[t], t);
	}
	if (servers)
		paused_end_servers(servers, 0);
	return late;
}

static void stopped_trainers_go_on(void **state)
{
	for (int64_t timeout_ms = paused_shared->timeout_ms; stop_trainers();) {
		print_message("%lld ms were too few\n", (long long)timeout_ms);
		paused_forget(state);
		paused_shared->timeout_ms = timeout_ms *= 2;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAUSED_TEST(stopped_trainers_go_on),
	};
	return paused_run(tests, sizeof(tests) / sizeof(tests[0]));
}
