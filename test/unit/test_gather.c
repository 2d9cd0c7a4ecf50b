/* The gather step over servers that are away: with any number of parts it is cancelled once, and with little stack. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/engine/engine.h"
#include "client/rows/gather.h"

#define PARTS       10000u
#define STACK_BYTES (128u << 10)

struct bed {
	struct gw_graph_meta meta;
	struct gw_client client;
	struct gw_engine engine;
	struct gw_job job;
	struct gw_gather_op op;
	struct gw_rows rows;
	struct gw_buffer buffer;
	uint64_t starts[PARTS + 1];
	int64_t ids[PARTS];
	uint8_t landing[PARTS * 8];
	uint32_t done;
	gw_status status;
};

static void note_done(struct gw_gather_op *op, gw_status status)
{
	struct bed *bed = op->owner;
	bed->done++;
	bed->status = status;
}

/* One row of each part; every link waits for its server. */
static void begin(struct bed *bed)
{
	bed->meta.num_parts = PARTS;
	bed->client.meta = &bed->meta;
	bed->client.server_count = PARTS;
	bed->rows.places = calloc(PARTS, sizeof(*bed->rows.places));
	bed->client.servers = calloc(PARTS, sizeof(*bed->client.servers));
	assert_true(bed->rows.places && bed->client.servers);
	assert_int_equal(gw_engine_open(&bed->engine, &bed->client, 0), GW_OK);
	for (uint32_t p = 0; p < PARTS; p++) {
		bed->engine.links[p].state = GW_LINK_WAITING;
		bed->client.servers[p].part = p;
		bed->starts[p + 1] = p + 1;
		bed->ids[p] = p;
	}
	gw_engine_map_parts(&bed->engine);
	bed->rows.starts = bed->starts;
	bed->rows.step = bed->rows.row_bytes = 8;
	bed->buffer = (struct gw_buffer){.base = bed->landing, .bytes = sizeof(bed->landing)};
	bed->job.engine = &bed->engine;
	bed->job.deadline_ns = UINT64_MAX;
	assert_int_equal(gw_gather_op_init(&bed->op, &bed->engine), GW_OK);
	bed->op.done = note_done;
	bed->op.owner = bed;
	const struct gw_landing to = {.buffer = &bed->buffer, .rows = bed->landing};
	gw_gather_op_start(&bed->op, &bed->job, &bed->rows, bed->ids, PARTS, &to, true);
	assert_int_equal(bed->done, 0);
}

static void end(struct bed *bed)
{
	gw_gather_op_free(&bed->op);
	gw_engine_close(&bed->engine);
	free(bed->client.servers);
	free(bed->rows.places);
	free(bed);
}

static void *cancel(void *argument)
{
	gw_gather_op_cancel(&((struct bed *)argument)->op);
	return NULL;
}

static void *fail_one(void *argument)
{
	struct bed *bed = argument;
	uint64_t number = bed->op.link_op_count / 2;
	while (!bed->op.link_ops[number].owner) /* this piece of the list has no id of that part */
		number++;
	gw_link_cancel(&bed->op.link_ops[number]);
	return NULL;
}

static void run_in_little_stack(void *(*body)(void *), void *argument)
{
	pthread_attr_t attributes;
	pthread_t thread;
	assert_int_equal(pthread_attr_init(&attributes), 0);
	assert_int_equal(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
	assert_int_equal(pthread_create(&thread, &attributes, body, argument), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
}

static void ends_once_and_flat(void *(*body)(void *))
{
	struct bed *bed = calloc(1, sizeof(*bed));
	assert_non_null(bed);
	begin(bed);
	run_in_little_stack(body, bed);
	assert_int_equal(bed->done, 1);
	assert_int_equal(bed->status, GW_CANCELLED);
	assert_string_equal(bed->op.reads.text, "cancelled");
	for (uint32_t p = 0; p < PARTS; p++)
		assert_null(bed->engine.links[p].head);
	assert_int_equal(bed->job.waits_away, 0);
	end(bed);
}

static void cancelled_at_many_parts(void **state)
{
	(void)state;
	ends_once_and_flat(cancel);
}

static void one_failure_cancels_the_other_parts(void **state)
{
	(void)state;
	ends_once_and_flat(fail_one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cancelled_at_many_parts),
		cmocka_unit_test(one_failure_cancels_the_other_parts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
