/* Tensors when memory is short. Each allocation from creation to deletion fails once: of a standalone client and its
 * table, and in the calling thread of a client with servers. The call fails with GW_NO_MEMORY or succeeds without the
 * memory; repeated, it succeeds; nothing leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/alloc_fault.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"

#define PARTS   2
#define ROWS    40
#define COLUMNS 3

static struct gw_fixture fixture;

struct life {
	struct gw_client *client;
	const struct gw_tensor *tensor, *copy;
	int64_t ids[ROWS];
	float rows[ROWS * COLUMNS], read[ROWS * COLUMNS];
};

static gw_status life_create(struct life *life)
{
	struct gw_tensor_spec spec = {.name = "life",
				      .dtype = GW_FLOAT32,
				      .placement = GW_PLACE_STRIPED,
				      .ndim = 2,
				      .shape = {ROWS, COLUMNS},
				      .initial = GW_INITIAL_CONSTANT,
				      .low = 2};
	return gw_tensor_create(life->client, &spec, &life->tensor);
}

static gw_status life_copy(struct life *life)
{
	struct gw_tensor_spec spec = {.name = "copy",
				      .dtype = GW_FLOAT32,
				      .placement = GW_PLACE_STRIPED,
				      .ndim = 2,
				      .shape = {ROWS, COLUMNS},
				      .initial = GW_INITIAL_COPY,
				      .from = life->tensor};
	return gw_tensor_create(life->client, &spec, &life->copy);
}

static gw_status life_update(struct life *life)
{
	return gw_update(life->client, life->tensor, life->ids, ROWS, life->rows);
}

static gw_status life_push(struct life *life)
{
	const struct gw_optimizer optimizer = {.kind = GW_ADAGRAD, .rate = 0.1f, .eps = 1e-10f};
	return gw_push(life->client, life->tensor, life->ids, ROWS, life->rows, &optimizer);
}

static gw_status life_read(struct life *life)
{
	return gw_gather(life->client, life->tensor, life->ids, ROWS, life->read);
}

static gw_status life_part(struct life *life)
{
	return gw_tensor_part_write(life->client, life->copy, 1, 2, 3, life->rows);
}

static gw_status life_flush(struct life *life)
{
	return gw_flush(life->client);
}

static gw_status life_count(struct life *life)
{
	uint64_t count = 0;
	gw_status status = gw_tensor_count_nonzero(life->client, life->copy, &count);
	assert_true(status != GW_OK || count == ROWS * COLUMNS);
	return status;
}

static gw_status life_list(struct life *life)
{
	struct gw_tensor_list *list;
	gw_status status = gw_tensor_list(life->client, &list);
	assert_true(status != GW_OK || list->count == 2);
	gw_tensor_list_free(list);
	return status;
}

static gw_status life_delete(struct life *life)
{
	gw_status status = gw_tensor_delete(life->client, "life", GW_OF_JOB);
	return status == GW_NOT_FOUND ? GW_OK : status; /* the failed call may have deleted it, in part or whole */
}

static struct life *life_begin(const struct gw_client_options *options)
{
	struct life *life = calloc(1, sizeof(*life));
	life->client = open_client(options);
	for (int i = 0; i < ROWS; i++)
		life->ids[i] = i;
	for (int i = 0; i < ROWS * COLUMNS; i++)
		life->rows[i] = (float)(i + 1);
	return life;
}

static void life_go(struct life *life, unsigned long n)
{
	static gw_status (*const steps[])(struct life *) = {life_create, life_copy,  life_update, life_push,
							    life_read,   life_part,  life_flush,  life_count,
							    life_list,   life_delete};
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		gw_status status = steps[i](life);
		if (status == GW_NO_MEMORY)
			status = steps[i](life);
		if (status != GW_OK)
			fail_msg("allocation %lu, step %zu: %s", n, i, gw_last_error());
	}
}

/* Counts the blocks that remain after everything was freed, compared with the beginning. */
static long live(unsigned long n, bool *hit)
{
	struct gw_client_options options = {.part_config = fixture.folder, .threads = 1};
	struct life *life = life_begin(&options);
	gw_fault_begin(n);
	life_go(life, n);
	*hit = gw_fault_hit();
	gw_client_close(life->client);
	free(life);
	return gw_fault_end();
}

static void every_allocation_may_fail(void **state)
{
	(void)state;
	bool hit;
	unsigned long n = 0;
	long all = live(GW_FAULT_NEVER, &hit);
	do {
		n += gw_fault_step(n);
		long left = live(n, &hit);
		if (left != all)
			fail_msg("allocation %lu: %ld blocks are left", n, left - all);
	} while (hit);
	assert_true(n > 50);
}

/* The shortage affects this client only: servers and their other clients do not notice. */
static void every_allocation_of_a_caller_may_fail(void **state)
{
	(void)state;
	static struct setup setup;
	bool hit = true;
	unsigned long n = 1;
	gw_fault_begin(GW_FAULT_NEVER);
	setup_begin(&setup, 233, PARTS, NULL);
	struct gw_client_options options = {
		.servers = setup.cluster.list, .server_count = PARTS, .threads = 1, .job = "faults"};
	for (; hit; n += cluster_is_rdma() ? 7 : gw_fault_step(n)) {
		uint64_t count;
		struct life *life = life_begin(&options);
		gw_fault_here(n);
		life_go(life, n);
		hit = gw_fault_here(GW_FAULT_NEVER);
		must(gw_tensor_end_job(life->client, NULL, &count));
		gw_client_close(life->client);
		free(life);
	}
	struct life *life = life_begin(&options);
	life_go(life, 0);
	gw_client_close(life->client);
	free(life);
	setup_end(&setup);
	gw_fault_end();
	assert_true(n > 30);
}

static int begin(void **state)
{
	(void)state;
	gw_fixture_begin(&fixture, 231, 60, PARTS);
	gw_fixture_write(&fixture);
	return 0;
}

static int end(void **state)
{
	(void)state;
	gw_fixture_end(&fixture);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail),
					   cmocka_unit_test(every_allocation_of_a_caller_may_fail)};
	return cmocka_run_group_tests(tests, begin, end);
}
