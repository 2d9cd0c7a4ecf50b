#include "test/support/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <xxhash.h>

static void start(struct cluster *cluster, uint32_t part, const char *tcp_driver)
{
	struct gw_server_options options = {.part_config = cluster->part_config,
					    .part = part,
					    .listen = cluster->addresses[part],
					    .threads = 2,
					    .numa = GW_NUMA_LOCAL,
					    .huge = GW_HUGE_OFF,
					    .tcp_driver = tcp_driver};
	gw_status status = gw_server_start(&options, &cluster->servers[part]);
	if (status != GW_OK)
		fail_msg("server of part %u: %s", part, gw_last_error());
	cluster->addresses[part] = cluster->servers[part]->listener->address;
	cluster->list[part] = gw_address_text(&cluster->addresses[part], cluster->text[part]);
}

void cluster_begin(struct cluster *cluster, const char *part_config, uint32_t parts, const char *tcp_driver)
{
	memset(cluster, 0, sizeof(*cluster));
	cluster->part_config = part_config;
	cluster->parts = parts;
	for (uint32_t p = 0; p < parts; p++) {
		assert_int_equal(gw_address_parse("127.0.0.1:0", &cluster->addresses[p]), GW_OK);
		start(cluster, p, tcp_driver);
	}
}

void cluster_kill(struct cluster *cluster, uint32_t part)
{
	gw_server_end(cluster->servers[part], 0);
	cluster->servers[part] = NULL;
}

void cluster_revive(struct cluster *cluster, uint32_t part)
{
	start(cluster, part, NULL);
}

void cluster_end(struct cluster *cluster)
{
	for (uint32_t p = 0; p < cluster->parts; p++)
		gw_server_end(cluster->servers[p], 0);
}

static void add(XXH3_state_t *state, const void *data, size_t bytes)
{
	if (bytes)
		XXH3_64bits_update(state, data, bytes);
}

uint64_t cluster_digest(const struct gw_client *client, const struct gw_sample_spec *spec,
			const struct gw_minibatch *batch)
{
	const struct gw_graph_info *info = gw_client_graph(client);
	XXH3_state_t *state = XXH3_createState();
	assert_non_null(state);
	XXH3_64bits_reset(state);
	add(state, &batch->epoch, 8);
	add(state, &batch->step, 8);
	add(state, batch->seeds, batch->seed_count * 8);
	add(state, batch->seed_rows, batch->seed_count * 4);
	for (uint32_t h = 0; h < batch->hops; h++) {
		const struct gw_block *block = batch->blocks[h];
		add(state, block->dst_counts, info->num_ntypes * 8);
		add(state, block->src_counts, info->num_ntypes * 8);
		for (uint32_t i = 0; i < block->edges_count; i++) {
			const struct gw_block_edges *edges = &block->edges[i];
			add(state, &edges->etype, 4);
			add(state, edges->indptr, (edges->dst_count + 1) * 8);
			add(state, edges->indices, edges->edge_count * (spec->wide_indices ? 8 : 4));
			add(state, edges->edge_ids, edges->edge_count * 8);
		}
	}
	for (uint32_t t = 0; t < info->num_ntypes; t++)
		add(state, batch->nodes[t], batch->node_counts[t] * 8);
	for (uint32_t i = 0; i < batch->fetch_count; i++)
		add(state, batch->rows[i], batch->row_counts[i] * spec->fetches[i].tensor->row_bytes);
	uint64_t digest = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return digest;
}
