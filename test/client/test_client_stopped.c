/* Servers that are stopped (SIGSTOP) while a client maps their memory: what reads alone can do succeeds, with the bytes
 * of a client without servers (test/support/paused.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/paused.h"

#define COUNT   20
#define STREAMS 5

static const int32_t one_hop[GW_FIXTURE_ETYPES] = {2, 2, 2, 2};
static struct trainer trainer;

/* Negatives that exist at the times of their edges, and a hop by time. */
static gw_status sample_by_time(struct gw_client *client, uint64_t stream, uint64_t *digest)
{
	const struct gw_edge_seeds edges = {.etype = FIXTURE_CITES,
					    .negatives = GW_NEGATIVES_DST,
					    .negatives_each = 3,
					    .no_true_edges = true,
					    .exist_time = "born",
					    .exist_end = "gone"};
	const struct gw_edge_rule rules[GW_FIXTURE_ETYPES] = {[FIXTURE_CITES] = {.time = "year"}};
	const struct gw_sample_spec spec = {.hops = 1, .fanouts = one_hop, .edges = &edges, .rules = rules};
	int64_t ids[COUNT], times[COUNT];
	for (int64_t i = 0; i < COUNT; i++) {
		ids[i] = 11 * i + (int64_t)stream;
		times[i] = i % 5 ? i : 1000;
	}
	const struct gw_seeds seeds = {.type = FIXTURE_CITES, .count = COUNT, .ids = ids, .times = times};
	struct gw_minibatch *batch;
	gw_status status = gw_sample_lists(client, &spec, 3, stream, &seeds, 1, &batch);
	if (status != GW_OK)
		return status;
	*digest = gw_minibatch_digest(batch);
	gw_minibatch_release(batch);
	return GW_OK;
}

static int sample_while_they_are_stopped(uint32_t number)
{
	struct trainer *self = &trainer;
	uint64_t expected[STREAMS], digest = 0;
	self->told = &paused_shared->told[number];
	const struct gw_client_options alone = {.part_config = paused_fixture.folder, .threads = 1};
	struct gw_client *oracle = open_client(&alone);
	for (uint64_t s = 0; s < STREAMS; s++)
		paused_well(self, sample_by_time(oracle, s, &expected[s]) == GW_OK, "without servers");
	gw_client_close(oracle);
	struct gw_client_options options = paused_options_of(self, "shm", NULL);
	options.threads = 1; /* each has connections of its own, which begin with its first batch */
	if (!paused_well(self, gw_client_open(&options, &self->client) == GW_OK, "client") ||
	    !paused_well(self, sample_by_time(self->client, 0, &digest) == GW_OK && digest == expected[0], "before"))
		return 1;
	atomic_store(&self->told->step, 1);
	paused_well(self, paused_wait_for(&paused_shared->again), "the servers' stop");
	for (uint64_t s = 1; s < STREAMS; s++) {
		paused_well(self, sample_by_time(self->client, s, &digest) == GW_OK, "meanwhile");
		paused_well(self, digest == expected[s], "another batch");
	}
	atomic_store(&self->told->step, 2);
	gw_client_close(self->client);
	return atomic_load(&self->told->failed);
}

static void mapped_memory_is_enough_to_sample_by_time(void **state)
{
	(void)state;
	if (cluster_is_rdma())
		skip(); /* its servers are in this process */
	pid_t servers = paused_begin_servers(0), client = paused_start(sample_while_they_are_stopped, 0);
	paused_wait_for_step(&paused_shared->told[0], 1);
	paused_stop(servers);
	atomic_store(&paused_shared->again, true);
	paused_wait_for_step(&paused_shared->told[0], 2);
	paused_go_on(servers);
	paused_expect_well(client, 0);
	paused_end_servers(servers, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {PAUSED_TEST(mapped_memory_is_enough_to_sample_by_time)};
	gw_fixture_give_times(true);
	return paused_run(tests, 1);
}
