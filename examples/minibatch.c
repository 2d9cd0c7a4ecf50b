/* Samples mini-batches in C: one epoch over a partitioned graph, from servers or from its folder.
 *
 *   minibatch FOLDER [HOST:PORT ...]
 *   minibatch                           as deploy/launch.py starts it
 *
 *   cc minibatch.c -I<checkout>/include -L<checkout>/build/release -lgraphwire -o minibatch
 *   LD_LIBRARY_PATH=<checkout>/build/release ./minibatch parts/ 127.0.0.1:30050 127.0.0.1:30051
 */
#include <graphwire/graphwire.h>
#include <stdio.h>
#include <stdlib.h>

enum { HOPS = 2, FANOUT = 10, BATCH = 1000 };

static void check(gw_status status)
{
	if (status == GW_OK)
		return;
	fprintf(stderr, "minibatch: %s\n", gw_last_error());
	exit(1);
}

int main(int argc, char **argv)
{
	/* Without servers, the client reads the parts from the folder; nothing else changes. Without arguments, it
	 * opens the graph that the launcher has set in the environment. */
	struct gw_client_options options = {0};
	if (argc > 1) {
		options.part_config = argv[1];
		options.servers = (const char *const *)(argv + 2);
		options.server_count = (uint32_t)(argc - 2);
	}
	struct gw_client *client = NULL;
	check(gw_client_open(&options, &client));

	/* Ten neighbours for every edge type, two hops; features of all nodes, if the seeds' type has "feat". */
	const struct gw_graph_info *graph = gw_client_graph(client);
	int32_t *fanouts = malloc(sizeof *fanouts * HOPS * graph->num_etypes);
	if (!fanouts)
		return 1;
	for (uint32_t i = 0; i < HOPS * graph->num_etypes; i++)
		fanouts[i] = FANOUT;
	struct gw_fetch features = {.at = GW_AT_INPUTS};
	gw_status found = gw_node_tensor(client, 0, "feat", &features.tensor);

	struct gw_loader_options epoch = {
		.spec = {.ntype = 0,
			 .hops = HOPS,
			 .fanouts = fanouts,
			 .fetch_count = found == GW_OK,
			 .fetches = &features},
		.batch_size = BATCH,
		.shuffle = true,
		.seed = 42,
		.last = GW_LAST_SHORT,
	};
	struct gw_loader *loader = NULL;
	check(gw_loader_open(client, &epoch, &loader));

	uint64_t batches = 0, edges = 0;
	for (gw_status status;; batches++) {
		struct gw_minibatch *batch = NULL;
		status = gw_loader_next(loader, &batch, -1);
		if (status == GW_END)
			break;
		check(status);
		edges += batch->edge_count; /* a trainer would use batch->blocks and batch->rows[0] here */
		gw_minibatch_release(batch);
	}
	printf("%llu mini-batches, %llu sampled edges\n", (unsigned long long)batches, (unsigned long long)edges);

	gw_loader_close(loader);
	gw_client_close(client);
	free(fanouts);
	return 0;
}
