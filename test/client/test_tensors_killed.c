/* Servers that are killed while several threads write, train, read and create rows. Every call ends; calls on lost
 * rows fail with an error that says so; and no client reads a lost row as zeros. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/striped.h"

#define PARTS     2
#define PUSHES    8 /* of a thread, in flight */
#define TURNS     3 /* calls of each thread, before the kill and after it */
#define BEGINNING 1 /* of each element; writes and training keep elements away from zero */

/* A thread that repeats one call. */
struct worker {
	gw_status (*turn)(struct worker *worker);
	struct gw_client *client;
	const struct gw_tensor *written, *trained;
	const atomic_bool *stop; /* NULL: repeats until a call fails */
	pthread_t thread;
	_Atomic uint32_t turns;
	atomic_bool ended;
	int64_t ids[STRIPED_ROWS];
	float rows[STRIPED_ROWS * STRIPED_COLUMNS];
	gw_status status;
	char text[512];
};

static gw_status update_turn(struct worker *worker)
{
	for (int i = 0; i < STRIPED_ROWS * STRIPED_COLUMNS; i++)
		worker->rows[i] = 2;
	return gw_update(worker->client, worker->written, worker->ids, STRIPED_ROWS, worker->rows);
}

/* Waits for all of them, also if one fails. */
static gw_status push_turn(struct worker *worker)
{
	static const struct gw_optimizer grow = {.kind = GW_ADAGRAD, .rate = -0.1f, .eps = 1e-10f};
	struct gw_ticket *tickets[PUSHES] = {NULL};
	gw_status status = GW_OK;
	char text[sizeof(worker->text)] = "";
	for (int i = 0; i < STRIPED_ROWS * STRIPED_COLUMNS; i++)
		worker->rows[i] = 1;
	for (int i = 0; i < PUSHES && status == GW_OK; i++)
		status = gw_push_start(worker->client, worker->trained, worker->ids, STRIPED_ROWS, worker->rows, &grow,
				       &tickets[i]);
	for (int i = 0; i < PUSHES; i++) {
		gw_status ended = tickets[i] ? gw_wait(tickets[i], -1) : GW_OK;
		if (ended != GW_OK && status == GW_OK)
			snprintf(text, sizeof(text), "%s", gw_last_error());
		status = status == GW_OK ? ended : status;
	}
	return status == GW_OK ? status : gw_fail_text(status, text);
}

static gw_status read_rows(struct worker *worker, const struct gw_tensor *tensor)
{
	memset(worker->rows, 0, sizeof(worker->rows));
	gw_status status = gw_gather(worker->client, tensor, worker->ids, STRIPED_ROWS, worker->rows);
	for (int i = 0; i < STRIPED_ROWS * STRIPED_COLUMNS && status == GW_OK; i++)
		if (worker->rows[i] < BEGINNING)
			status = gw_fail(GW_DIGEST, "%g in row %d", (double)worker->rows[i], i / STRIPED_COLUMNS);
	return status;
}

static gw_status read_turn(struct worker *worker)
{
	gw_status status = read_rows(worker, worker->written);
	return status == GW_OK ? read_rows(worker, worker->trained) : status;
}

static struct gw_tensor_spec spec_of(const char *name)
{
	struct gw_tensor_spec spec = striped_spec(name);
	spec.initial = GW_INITIAL_CONSTANT;
	spec.low = BEGINNING;
	return spec;
}

/* Creates tensors one after another. A tensor that a kill hits is lost, and the next one works. */
static gw_status create_turn(struct worker *worker)
{
	char name[32];
	snprintf(name, sizeof(name), "made-%u", atomic_load(&worker->turns));
	const struct gw_tensor_spec spec = spec_of(name);
	const struct gw_tensor *tensor;
	gw_status status = gw_tensor_create(worker->client, &spec, &tensor);
	if (status == GW_OK)
		status = read_rows(worker, tensor);
	if (status == GW_OK)
		status = gw_tensor_delete(worker->client, name, GW_OF_JOB);
	return status == GW_NOT_FOUND ? GW_OK : status;
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	do {
		worker->status = worker->turn(worker);
		atomic_fetch_add(&worker->turns, 1);
	} while (worker->status == GW_OK && (!worker->stop || !atomic_load(worker->stop)));
	if (worker->status != GW_OK)
		snprintf(worker->text, sizeof(worker->text), "%s", gw_last_error());
	atomic_store(&worker->ended, true);
	return NULL;
}

/* Waits for that many more calls, or for a failure. */
static void await_calls(struct worker *worker)
{
	uint32_t from = atomic_load(&worker->turns);
	while (atomic_load(&worker->turns) < from + TURNS && !atomic_load(&worker->ended))
		striped_pause();
}

/* An idle client learns of the loss too. The name is unusable until the tensor is deleted; then it can be created
 * again. */
static void check_lost(struct gw_client *client, struct gw_client *other, const struct gw_tensor *tensor,
		       const struct gw_tensor_spec *spec, uint32_t part)
{
	const struct gw_tensor *again;
	float rows[STRIPED_ROWS * STRIPED_COLUMNS];
	striped_expect_gone(client, tensor, part); /* striped: the row of that part */
	expect(gw_tensor_create(client, spec, &again), GW_NOT_FOUND, "delete it");
	must(gw_tensor_delete(client, spec->name, GW_OF_JOB));
	again = striped_create(other, spec);
	striped_read(other, again, rows);
	for (int i = 0; i < STRIPED_ROWS * STRIPED_COLUMNS; i++)
		assert_true(rows[i] == BEGINNING);
	for (int64_t i = 0; i < PARTS; i++)
		striped_expect_gone(client, tensor, i);
}

static void kill_under(struct setup *setup, uint32_t part)
{
	enum { UPDATE, PUSH, READ, CREATE, WORKERS };
	static gw_status (*const turns[WORKERS])(struct worker *) = {update_turn, push_turn, read_turn, create_turn};
	static struct worker workers[WORKERS];
	float rows[STRIPED_ROWS * STRIPED_COLUMNS];
	char names[2][32];
	struct gw_tensor_spec specs[2];
	struct gw_client *clients[3];
	const struct gw_tensor *idle[2];
	atomic_bool stop = false;
	for (int i = 0; i < 3; i++)
		clients[i] = striped_client(&setup->cluster, "killed", 0);
	for (int t = 0; t < 2; t++) {
		snprintf(names[t], sizeof(names[t]), "%s-%u", t ? "trained" : "written", part);
		specs[t] = spec_of(names[t]);
		idle[t] = striped_create(clients[2], &specs[t]);
		striped_read(clients[2], idle[t], rows);
	}
	for (int i = 0; i < WORKERS; i++) {
		struct worker *worker = &workers[i];
		memset(worker, 0, sizeof(*worker));
		worker->turn = turns[i];
		worker->client = clients[i % 2]; /* one client writes and reads, the other trains and creates */
		worker->written = striped_create(worker->client, &specs[0]);
		worker->trained = striped_create(worker->client, &specs[1]);
		worker->stop = i == CREATE ? &stop : NULL;
		for (int id = 0; id < STRIPED_ROWS; id++)
			worker->ids[id] = id;
		assert_int_equal(pthread_create(&worker->thread, NULL, work, worker), 0);
	}
	for (int i = 0; i < WORKERS; i++)
		await_calls(&workers[i]);
	cluster_kill(&setup->cluster, part);
	cluster_revive(&setup->cluster, part);
	for (int i = 0; i < CREATE; i++)
		pthread_join(workers[i].thread, NULL);
	await_calls(&workers[CREATE]);
	atomic_store(&stop, true);
	pthread_join(workers[CREATE].thread, NULL);
	for (int i = 0; i < WORKERS; i++) {
		bool lost = workers[i].status == GW_NOT_FOUND && strstr(workers[i].text, "gone");
		if (i == CREATE ? workers[i].status != GW_OK : !lost)
			fail_msg("worker %d: %s: %s", i, gw_status_text(workers[i].status), workers[i].text);
	}
	for (int t = 0; t < 2; t++)
		check_lost(clients[2], clients[t], idle[t], &specs[t], part);
	for (int i = 0; i < 3; i++)
		gw_client_close(clients[i]);
}

static void kill_each(const char *offered)
{
	struct setup setup;
	cluster_offer(offered);
	setup_begin(&setup, 226, PARTS, NULL);
	cluster_offer(NULL);
	for (uint32_t part = 0; part < PARTS; part++)
		kill_under(&setup, part);
	setup_end(&setup);
}

static void rows_of_a_killed_server_are_lost(void **state)
{
	(void)state;
	kill_each(NULL);
}

static void rows_of_a_killed_server_are_lost_where_they_are_mapped(void **state)
{
	(void)state;
	if (!cluster_is_rdma())
		kill_each("shm");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_a_killed_server_are_lost),
		cmocka_unit_test(rows_of_a_killed_server_are_lost_where_they_are_mapped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
