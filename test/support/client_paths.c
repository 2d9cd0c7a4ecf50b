/* See client_paths.h. */
#include "test/support/client_paths.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

const int32_t all_fanouts[2 * GW_FIXTURE_ETYPES] = {4, 3, 5, 2, 2, 2, GW_ALL_NEIGHBOURS, 3};

void paths_begin(struct ways *ways, uint64_t seed, uint32_t parts, const char *offer, const char *driver)
{
	cluster_offer(offer);
	setup_begin(&ways->setup, seed, parts, driver);
	const char *folder = ways->setup.fixture.folder;
	const char *const *list = ways->setup.cluster.list;
	const struct gw_client_options options[] = {
		{.part_config = folder, .threads = 1},
		{.part_config = folder, .threads = 3, .neighbours = "reads", .dense_bytes_max = 1},
		{.servers = list, .server_count = parts, .threads = 4, .tcp_driver = driver},
		{.servers = list, .server_count = parts, .threads = 1, .neighbours = "reads"},
	};
	ways->count = 4;
	for (uint32_t i = 0; i < ways->count; i++)
		ways->clients[i] = open_client(&options[i]);
}

void paths_end(struct ways *ways)
{
	for (uint32_t i = 0; i < ways->count; i++)
		gw_client_close(ways->clients[i]);
	setup_end(&ways->setup);
	cluster_offer(NULL);
}

void paths_of_parts(uint64_t seed, void (*body)(const struct ways *ways))
{
	for (uint32_t parts = 1; parts <= 3; parts += 2) {
		struct ways ways;
		paths_begin(&ways, seed, parts, NULL, NULL);
		body(&ways);
		paths_end(&ways);
	}
}

struct gw_loader *paths_loader(struct gw_client *client, const struct gw_loader_options *options)
{
	struct gw_loader *loader;
	if (gw_loader_open(client, options, &loader) != GW_OK)
		fail_msg("%s", gw_last_error());
	return loader;
}

uint32_t paths_run_loader(struct gw_client *client, struct gw_loader_options options, struct gw_loader_state start,
			  uint64_t *digests)
{
	options.start = start;
	struct gw_loader *loader = paths_loader(client, &options);
	struct gw_minibatch *batch;
	gw_status status;
	uint32_t n = 0;
	while ((status = gw_loader_next(loader, &batch, -1)) == GW_OK) {
		digests[n++] = gw_minibatch_digest(batch);
		gw_minibatch_release(batch);
	}
	if (status != GW_END)
		fail_msg("batch %u: %s", n, gw_last_error());
	gw_loader_close(loader);
	return n;
}
