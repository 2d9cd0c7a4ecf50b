/* Checkpoints when memory is short. Each allocation fails once: writing and reading report it and leave no file, or
 * succeed without the memory. Allocations that open the client are not tested here. This is a separate program without
 * servers, because servers' threads would use the allocator that the test replaces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "test/support/alloc_fault.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"
#include "test/support/partition_run.h"
#include "test/support/scratch.h"

#define SHORT_RUNS 60ul

static struct gw_fixture fixture;
static char scratch[64], folder[128];

static gw_status short_of_memory(unsigned long *opened)
{
	struct gw_client_options options = {.part_config = fixture.folder, .threads = 1, .job = "short"};
	struct gw_tensor_spec spec = {.name = "edges",
				      .dtype = GW_FLOAT32,
				      .placement = GW_PLACE_EDGES,
				      .type = FIXTURE_WRITES,
				      .ndim = 2,
				      .shape = {0, 3}};
	static const float gradient[3] = {1, 2, 3};
	static const int64_t one_id = 1;
	static const struct gw_optimizer optimizer = {
		.kind = GW_ADAGRAD_ROWS, .combine = GW_COMBINE_EACH, .rate = 0.1f, .eps = 1e-10f};
	const struct gw_checkpoint_options replace = {.replace = true};
	const struct gw_tensor *tensor;
	struct gw_ticket *ticket;
	struct gw_client *client;
	gw_status status = gw_client_open(&options, &client);
	if (status != GW_OK)
		return status;
	status = gw_tensor_create(client, &spec, &tensor);
	*opened = gw_fault_count();
	if (status == GW_OK)
		status = gw_push(client, tensor, &one_id, 1, gradient, &optimizer);
	if (status == GW_OK)
		status = gw_checkpoint_start(client, folder, &replace, &ticket);
	if (status == GW_OK)
		status = gw_wait(ticket, -1);
	if (status == GW_OK)
		status = gw_restore(client, folder, NULL, 0);
	gw_client_close(client);
	return status;
}

static void allocations_fail_in_turn(void **state)
{
	(void)state;
	unsigned long opened = 0, all, hits = 0;
	gw_scratch_make_in_memory("checkpoint", scratch);
	snprintf(folder, sizeof(folder), "%s/short", scratch);
	partition_begin(&fixture, 4, 60);
	gw_fault_begin(GW_FAULT_NEVER);
	must(short_of_memory(&opened));
	all = gw_fault_count();
	assert_int_equal(gw_fault_end(), 0);
	unsigned long step = (all - opened) / SHORT_RUNS + 1;
	for (unsigned long n = opened + 1; n < all; n += step) {
		unsigned long ignored;
		gw_fault_begin(n);
		gw_status status = short_of_memory(&ignored);
		bool hit = gw_fault_hit();
		assert_int_equal(gw_fault_end(), 0);
		if (status != GW_OK && !(hit && status == GW_NO_MEMORY && gw_last_error()[0]))
			fail_msg("allocation %lu: %s: %s", n, gw_status_text(status), gw_last_error());
		hits += hit && status == GW_NO_MEMORY;
	}
	assert_true(hits > 0);
	must(short_of_memory(&opened));
	must(gw_remove_tree(scratch));
	gw_fixture_end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(allocations_fail_in_turn)};
	return cmocka_run_group_tests_name("checkpoint, short of memory", tests, NULL, NULL);
}
