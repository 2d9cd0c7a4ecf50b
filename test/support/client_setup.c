/* See client_setup.h. */
#include "test/support/client_setup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/alloc_fault.h"

void setup_begin(struct setup *setup, uint64_t seed, uint32_t parts, const char *driver)
{
	gw_fixture_begin(&setup->fixture, seed, SETUP_SCALE, parts);
	gw_fixture_write(&setup->fixture);
	cluster_begin(&setup->cluster, setup->fixture.folder, parts, driver);
}

void setup_begin_open(struct setup *setup, uint64_t seed, uint32_t parts, uint64_t scale)
{
	gw_fixture_begin(&setup->fixture, seed, scale, parts);
	gw_fixture_write(&setup->fixture);
	cluster_begin_open(&setup->cluster, setup->fixture.folder, parts);
}

void setup_end(struct setup *setup)
{
	cluster_end(&setup->cluster);
	gw_fixture_end(&setup->fixture);
}

struct gw_client *open_client(const struct gw_client_options *options)
{
	struct gw_client *client;
	gw_status status = GW_DEADLINE;
	/* A short deadline is for what comes; to begin with, everybody has time. */
	for (int tries = 0; tries < 20 && status == GW_DEADLINE; tries++)
		status = gw_client_open(options, &client);
	if (status != GW_OK)
		fail_msg("%s", gw_last_error());
	return client;
}

const struct gw_tensor *node_tensor(struct gw_client *client, const char *type, const char *name)
{
	uint32_t ntype;
	const struct gw_tensor *tensor;
	assert_int_equal(gw_node_type(client, type, &ntype), GW_OK);
	assert_int_equal(gw_node_tensor(client, ntype, name, &tensor), GW_OK);
	return tensor;
}

void make_plan(struct gw_client *client, struct plan *plan, bool replace, bool wide)
{
	static const int32_t fanouts[] = {4, 3, 5, GW_ALL_NEIGHBOURS, 2, 2, GW_ALL_NEIGHBOURS, 3};
	const struct gw_tensor *weight;
	memset(plan, 0, sizeof(*plan));
	memcpy(plan->fanouts, fanouts, sizeof(fanouts));
	assert_int_equal(gw_edge_tensor(client, FIXTURE_CITES, "weight", &weight), GW_OK);
	plan->fetches[0] = (struct gw_fetch){.tensor = node_tensor(client, "paper", "feat"), .at = GW_AT_INPUTS};
	plan->fetches[1] = (struct gw_fetch){.tensor = node_tensor(client, "author", "q"), .at = GW_AT_INPUTS};
	plan->fetches[2] = (struct gw_fetch){.tensor = node_tensor(client, "paper", "label"), .at = GW_AT_SEEDS};
	plan->fetches[3] = (struct gw_fetch){.tensor = weight, .at = GW_AT_EDGES};
	plan->spec = (struct gw_sample_spec){.ntype = plan->fetches[0].tensor->type,
					     .hops = 2,
					     .fanouts = plan->fanouts,
					     .replace = replace,
					     .wide_indices = wide,
					     .fetch_count = 4,
					     .fetches = plan->fetches};
}

struct gw_loader *open_loader(struct gw_client *client, const struct plan *plan, struct gw_loader_state start)
{
	struct gw_loader_options options = {
		.spec = plan->spec, .batch_size = BATCH_SIZE, .shuffle = true, .seed = 7, .depth = 3, .start = start};
	struct gw_loader *loader;
	if (gw_loader_open(client, &options, &loader) != GW_OK)
		fail_msg("%s", gw_last_error());
	return loader;
}

/* What is used, how, and the folder of its graph. */
struct short_use {
	gw_status (*use)(struct gw_client *client);
	const char *folder;
};

static gw_status open_and_use(void *context)
{
	const struct short_use *how = context;
	struct gw_client_options options = {.part_config = how->folder, .threads = 1};
	struct gw_client *client;
	gw_status status = gw_client_open(&options, &client);
	if (status != GW_OK)
		return status;
	status = how->use(client);
	gw_client_close(client);
	return status;
}

uint64_t in_short_memory(uint64_t seed, uint64_t scale, uint32_t parts, gw_status (*use)(struct gw_client *client))
{
	struct gw_fixture fixture;
	gw_fixture_begin(&fixture, seed, scale, parts);
	gw_fixture_write(&fixture);
	struct short_use how = {.use = use, .folder = fixture.folder};
	uint64_t met = gw_fault_each(open_and_use, &how);
	gw_fixture_end(&fixture);
	return met;
}

void expect(gw_status got, gw_status wanted, const char *part_of_text)
{
	if (got != wanted || !strstr(gw_last_error(), part_of_text))
		fail_msg("wanted \"%s\" with \"%s\", got \"%s\": %s", gw_status_text(wanted), part_of_text,
			 gw_status_text(got), gw_last_error());
}

void expect_no_client(struct gw_client_options options, gw_status wanted, const char *part_of_text)
{
	struct gw_client *client;
	gw_status status = gw_client_open(&options, &client);
	for (; status == GW_DEADLINE && options.timeout_ms < 100000; options.timeout_ms *= 2)
		status = gw_client_open(&options, &client);
	expect(status, wanted, part_of_text);
	assert_null(client);
}

void watch_begin(struct watch *watch)
{
	*watch = (struct watch){.looked_ns = gw_now_ns()};
}

void watch_look(struct watch *watch)
{
	uint64_t now = gw_now_ns();
	if (now - watch->looked_ns > watch->worst_ns)
		watch->worst_ns = now - watch->looked_ns;
	watch->looked_ns = now;
}

int64_t patient_ms(int64_t ms)
{
	return getenv("GRAPHWIRE_GUEST") ? 10 * ms : ms;
}

uint32_t run_epoch(struct gw_client *client, const struct plan *plan, uint64_t epoch, uint64_t *digests)
{
	struct gw_loader *loader = open_loader(client, plan, (struct gw_loader_state){.epoch = epoch});
	uint32_t n = 0;
	for (;;) {
		struct gw_minibatch *batch;
		gw_status status = gw_loader_next(loader, &batch, -1);
		if (status == GW_END)
			break;
		if (status != GW_OK)
			fail_msg("batch %u: %s", n, gw_last_error());
		assert_true(n < EPOCH_MAX);
		digests[n++] = gw_minibatch_digest(batch);
		gw_minibatch_release(batch);
	}
	assert_int_equal(n, gw_loader_steps(loader));
	gw_loader_close(loader);
	return n;
}

void expect_transport(struct gw_client *client, const char *name)
{
	uint32_t parts = gw_client_graph(client)->num_parts;
	for (uint32_t p = 0; p < parts; p++)
		assert_string_equal(gw_part_transport(client, p), name);
	assert_null(gw_part_transport(client, parts));
}
