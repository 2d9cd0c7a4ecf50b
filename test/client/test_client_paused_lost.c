/* What a pause of trainers (SIGSTOP, test/support/paused.h) must not hide: servers that are lost, and tensors that
 * have ended meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/paused.h"

static struct trainer trainer;

/* Gathers until the client notices that a server is lost, and again when it is back. No earlier gather writes then. */
static int lose_a_server(uint32_t number)
{
	struct trainer *self = &trainer;
	gw_status status = GW_OK;
	self->told = &paused_shared->told[number];
	struct gw_client_options options = paused_options_of(self, "tcp", number == 0 ? "epoll" : "io_uring");
	status = gw_client_open(&options, &self->client);
	if (status == GW_UNSUPPORTED) {
		atomic_store(&self->told->step, 9);
		return 0;
	}
	if (!paused_well(self, status == GW_OK, "client"))
		return 1;
	self->feat = node_tensor(self->client, "paper", "feat");
	uint64_t bytes = SETUP_SCALE * self->feat->row_bytes;
	uint8_t *rows = calloc(1, bytes), *fresh = calloc(1, bytes);
	int64_t ids[SETUP_SCALE];
	for (uint32_t i = 0; i < SETUP_SCALE; i++)
		ids[i] = i;
	while ((status = gw_gather(self->client, self->feat, ids, SETUP_SCALE, rows)) == GW_OK)
		atomic_store(&self->told->step, 1);
	memset(rows, MARK, bytes);
	paused_well(self, status == GW_DEADLINE || status == GW_PEER_LOST, "a server that is stopped");
	atomic_store(&self->told->step, 2);
	paused_well(self, paused_wait_for(&paused_shared->again), "the server's return");
	uint64_t end = gw_monotonic_ns() + ENOUGH_NS;
	do
		status = gw_gather(self->client, self->feat, ids, SETUP_SCALE, fresh);
	while (status != GW_OK && gw_monotonic_ns() < end);
	paused_well(self, status == GW_OK, "gather");
	paused_well(self, paused_is_marked(rows, bytes), "written after its deadline");
	gw_client_close(self->client);
	free(fresh);
	free(rows);
	return atomic_load(&self->told->failed);
}

/* The servers are stopped together with the trainers, and stay stopped when these continue. */
static void lost_servers_are_found_out(void **state)
{
	(void)state;
	pid_t servers = paused_begin_servers(0), trainers[2];
	for (uint32_t t = 0; t < 2; t++)
		trainers[t] = paused_start(lose_a_server, t);
	for (uint32_t t = 0; t < 2; t++) {
		paused_wait_for_step(&paused_shared->told[t], 1);
		if (atomic_load(&paused_shared->told[t].step) == 1)
			paused_stop(trainers[t]);
	}
	paused_stop(servers);
	paused_for_long();
	for (uint32_t t = 0; t < 2; t++)
		paused_go_on(trainers[t]);
	for (uint32_t t = 0; t < 2; t++)
		paused_wait_for_step(&paused_shared->told[t], 2);
	paused_go_on(servers);
	atomic_store(&paused_shared->again, true);
	for (uint32_t t = 0; t < 2; t++)
		paused_expect_well(trainers[t], t);
	paused_end_servers(servers, 0);
}

/* As the only client of its job. */
static int keep_a_tensor(uint32_t number)
{
	static float ones[ROWS * COLUMNS], row[COLUMNS];
	static int64_t ids[ROWS];
	struct trainer *self = &trainer;
	self->told = &paused_shared->told[number];
	for (int p = 0; p < PARTS; p++)
		self->list[p] = paused_shared->servers[1].text[p];
	struct gw_client_options options = {.servers = self->list,
					    .server_count = PARTS,
					    .threads = 1,
					    .job = number % 2 ? "odd" : "even",
					    .transport = number % 2 ? "shm" : "tcp"};
	for (int i = 0; i < ROWS * COLUMNS; i++)
		ones[i] = 1;
	for (int i = 0; i < ROWS; i++)
		ids[i] = i;
	if (!paused_well(self, gw_client_open(&options, &self->client) == GW_OK && paused_make_sums(self) == GW_OK,
			 "tensor"))
		return 1;
	/* The second client of the job does not find the first one's tensor, and gets zeros. */
	gw_status status = number < 2 ? gw_update(self->client, self->sums, ids, ROWS, ones) : GW_OK;
	paused_well(self, status == GW_OK, "update");
	atomic_store(&self->told->step, 1);
	if (number >= 2) {
		paused_well(self, paused_wait_for(&paused_shared->finish), "the other's end");
	} else {
		for (int64_t i = 0; status == GW_OK; i = (i + 1) % ROWS) {
			status = gw_gather(self->client, self->sums, &ids[i], 1, row);
			for (int c = 0; status == GW_OK && c < COLUMNS; c++)
				paused_well(self, row[c] == 1, "another's rows");
		}
		paused_well(self, status == GW_NOT_FOUND && strstr(gw_last_error(), "gone"), "a tensor that has ended");
		paused_well(self,
			    gw_push(self->client, self->sums, ids, 1, ones, &(struct gw_optimizer){.kind = GW_SGD}) ==
				    GW_NOT_FOUND,
			    "a push to a tensor that has ended");
	}
	gw_client_close(self->client);
	return atomic_load(&self->told->failed);
}

/* While all clients of a job are stopped, their leases end. Other clients of the job create tensors with the same
 * name. A client that continues gets an error, and never reads the new rows. */
static void leases_end_meanwhile(void **state)
{
	(void)state;
	pid_t servers = paused_begin_servers(1), trainers[4];
	uint64_t end = gw_monotonic_ns() + ENOUGH_NS;
	for (uint32_t t = 0; t < 2; t++)
		trainers[t] = paused_start(keep_a_tensor, t);
	for (uint32_t t = 0; t < 2; t++) {
		paused_wait_for_step(&paused_shared->told[t], 1);
		paused_stop(trainers[t]);
	}
	while (atomic_load(&paused_shared->servers[1].tensors)) {
		paused_wait_ns(GW_NS_PER_MS);
		assert_true(gw_monotonic_ns() < end);
	}
	for (uint32_t t = 2; t < 4; t++)
		trainers[t] = paused_start(keep_a_tensor, t);
	for (uint32_t t = 2; t < 4; t++)
		paused_wait_for_step(&paused_shared->told[t], 1);
	for (uint32_t t = 0; t < 2; t++)
		paused_go_on(trainers[t]);
	for (uint32_t t = 0; t < 2; t++)
		paused_expect_well(trainers[t], t);
	atomic_store(&paused_shared->finish, true);
	for (uint32_t t = 2; t < 4; t++)
		paused_expect_well(trainers[t], t);
	paused_end_servers(servers, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAUSED_TEST(lost_servers_are_found_out),
		PAUSED_TEST(leases_end_meanwhile),
	};
	return paused_run(tests, sizeof(tests) / sizeof(tests[0]));
}
