/* The mini-batches of a part's trainers, as trainers on the part's host sample them over a network.
 *
 *   a loader without fanouts -> seeds and stream of each batch -> the same batch, by requests -> its nodes of other
 * parts
 *
 * The client has all lists in this process, and asks for them by requests, which the servers' own code answers. So the
 * client's figures have the bytes that travel between hosts: those of requests to other parts, and of their replies. A
 * loader samples batches ahead. It has no fanouts, so that only the batches that are counted ask for lists. */
#include <string.h>

#include "client/metrics.h"
#include "client/standalone.h"
#include "core/files/disk.h"
#include "core/files/load_job.h"
#include "core/graph/book.h"
#include "core/memory/alloc.h"
#include "protocol/ops.h"
#include "sampler/picks.h"
#include "server/server.h"
#include "tools/means/means.h"

#define RING 8u /* batches in progress */

/* Answers requests for the lists of one part, in the threads of the client's engines. */
struct lists_server {
	pthread_mutex_t lock;
	struct gw_server server;
	struct gw_server_thread thread;
};

/* The file of one array of one part: rows, entries of lists, or degree records, which overlap. */
struct disk_file {
	const uint8_t *data;
	struct gw_disk_layout layout;
	uint32_t *touched; /* [blocks]: the last batch that touches the block */
};

struct gw_means_client {
	const struct gw_means_graph *graph;
	struct gw_client *client;
	struct lists_server *servers; /* [num_parts] */
	struct disk_file *rows;       /* [num_parts][fetch_count] */
	struct disk_file *lists;      /* [num_parts][num_etypes]: neighbours */
	struct disk_file *offsets;    /* [num_parts][num_ntypes]: of the lists of a destination type */
	uint32_t touching;            /* batches so far */
};

/* --- The client. --- */

static gw_status answer_lists(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct lists_server *lists = context;
	struct gw_call alone = *call;
	alone.thread = 0;
	pthread_mutex_lock(&lists->lock);
	gw_status status = gw_server_sample(&lists->server, &alone, reply);
	pthread_mutex_unlock(&lists->lock);
	return status;
}

static gw_status serve_lists(struct gw_means_client *client)
{
	const struct gw_graph_meta *meta = client->graph->hot.meta;
	gw_status status = GW_OK;
	client->servers = gw_calloc(meta->num_parts, sizeof(*client->servers));
	if (!client->servers)
		return GW_NO_MEMORY;
	for (uint32_t p = 0; p < meta->num_parts; p++)
		pthread_mutex_init(&client->servers[p].lock, NULL);
	for (uint32_t p = 0; p < meta->num_parts && status == GW_OK; p++) {
		struct lists_server *lists = &client->servers[p];
		lists->server.meta = client->client->own_meta;
		lists->server.part = client->client->servers[p].local;
		lists->server.threads = &lists->thread;
		status = gw_service_handle(client->client->servers[p].service, GW_OP_SAMPLE, answer_lists, lists);
	}
	return status;
}

static uint64_t first_block(const struct disk_file *file)
{
	return (uintptr_t)file->data / GW_LOAD_BLOCK;
}

/* The parts are mapped, so that the addresses of their files' blocks are multiples of a block. */
static gw_status open_file(const void *data, uint64_t rows, struct gw_disk_layout layout, struct disk_file *file)
{
	const uint64_t end = ((uintptr_t)data + rows * layout.step) / GW_LOAD_BLOCK + 1;
	*file = (struct disk_file){.data = data, .layout = layout};
	file->touched = gw_calloc(rows ? end - first_block(file) : 1, sizeof(*file->touched));
	return file->touched ? GW_OK : GW_NO_MEMORY;
}

/* Rows that do not overlap. */
static struct gw_disk_layout row_layout(uint64_t row_bytes)
{
	return (struct gw_disk_layout){row_bytes, row_bytes};
}

static gw_status open_lists(struct gw_means_client *client, uint32_t part, uint32_t etype)
{
	const struct gw_graph_meta *meta = client->graph->hot.meta;
	const struct gw_adjacency *lists = gw_part_adjacency(client->graph->hot.parts[part], etype);
	const uint64_t step = (uint64_t)lists->columns * lists->indptr_bytes;
	struct disk_file *offsets = &client->offsets[(size_t)part * meta->num_ntypes + meta->etypes[etype].dst];
	gw_status status = open_file(lists->indices, lists->edges, row_layout(lists->index_bytes),
				     &client->lists[(size_t)part * meta->num_etypes + etype]);
	if (status == GW_OK && !offsets->touched)
		status = open_file(lists->indptr, lists->rows + 1, (struct gw_disk_layout){2 * step, step}, offsets);
	return status;
}

static gw_status open_files(struct gw_means_client *client)
{
	const struct gw_means_graph *graph = client->graph;
	const uint32_t parts = graph->hot.meta->num_parts, etypes = graph->hot.meta->num_etypes;
	gw_status status = GW_OK;
	client->rows = gw_calloc((size_t)parts * graph->fetch_count, sizeof(*client->rows));
	client->lists = gw_calloc((size_t)parts * etypes + 1, sizeof(*client->lists));
	client->offsets = gw_calloc((size_t)parts * graph->hot.meta->num_ntypes, sizeof(*client->offsets));
	if (!client->rows || !client->lists || !client->offsets)
		return GW_NO_MEMORY;
	for (uint32_t i = 0; i < parts * graph->fetch_count && status == GW_OK; i++) {
		const struct gw_array *array = gw_part_array(graph->hot.parts[i / graph->fetch_count],
							     graph->fetches[i % graph->fetch_count].array->key);
		status = open_file(array->data, array->rows, row_layout(array->row_bytes), &client->rows[i]);
	}
	for (uint32_t i = 0; i < parts * etypes && status == GW_OK; i++)
		status = open_lists(client, i / etypes, i % etypes);
	return status;
}

gw_status gw_means_client_open(const struct gw_means_graph *graph, struct gw_means_client **out)
{
	struct gw_means_client *client = gw_calloc(1, sizeof(*client));
	*out = client;
	if (!client)
		return GW_NO_MEMORY;
	client->graph = graph;
	gw_status status = gw_hot_client_open(&graph->hot, "requests", &client->client);
	if (status == GW_OK)
		status = serve_lists(client);
	return status == GW_OK ? open_files(client) : status;
}

void gw_means_client_close(struct gw_means_client *client)
{
	if (!client)
		return;
	gw_client_close(client->client);
	const struct gw_means_graph *graph = client->graph;
	for (uint32_t p = 0; client->servers && p < graph->hot.meta->num_parts; p++) {
		gw_picks_free(&client->servers[p].thread.picks);
		gw_vec_free(&client->servers[p].thread.group_times);
		pthread_mutex_destroy(&client->servers[p].lock);
	}
	for (uint32_t i = 0; client->rows && i < graph->hot.meta->num_parts * graph->fetch_count; i++)
		gw_free(client->rows[i].touched);
	for (uint32_t i = 0; client->lists && i < graph->hot.meta->num_parts * graph->hot.meta->num_etypes; i++)
		gw_free(client->lists[i].touched);
	for (uint32_t i = 0; client->offsets && i < graph->hot.meta->num_parts * graph->hot.meta->num_ntypes; i++)
		gw_free(client->offsets[i].touched);
	gw_free(client->servers);
	gw_free(client->rows);
	gw_free(client->lists);
	gw_free(client->offsets);
	gw_free(client);
}

/* --- What a batch needs. --- */

/* The blocks of a row that the batch has not touched before. */
static uint64_t touch_row(struct disk_file *file, uint64_t row, uint32_t batch)
{
	const uint64_t begin = (uintptr_t)file->data + row * file->layout.step, first = first_block(file);
	uint64_t count = 0;
	for (uint64_t b = begin / GW_LOAD_BLOCK; b * GW_LOAD_BLOCK < begin + file->layout.row_bytes; b++) {
		count += file->touched[b - first] != batch;
		file->touched[b - first] = batch;
	}
	return count;
}

static uint64_t touch_rows(struct gw_means_client *client, uint32_t fetch, const struct gw_minibatch *batch)
{
	const struct gw_means_graph *graph = client->graph;
	const uint32_t t = graph->fetches[fetch].ntype, parts = graph->hot.meta->num_parts;
	const uint64_t *starts = graph->hot.meta->ntypes[t].starts;
	uint64_t count = 0;
	for (uint64_t i = 0; i < batch->node_counts[t]; i++) {
		const uint64_t id = (uint64_t)batch->nodes[t][i];
		const uint32_t owner = gw_book_owner(starts, parts, id);
		count += touch_row(&client->rows[(size_t)owner * graph->fetch_count + fetch], id - starts[owner],
				   client->touching);
	}
	return count;
}

/* The entries that uniform draws read. */
static uint64_t touch_lists(struct gw_means_client *client, const struct gw_minibatch *batch)
{
	const struct gw_graph_meta *meta = client->graph->hot.meta;
	uint64_t count = 0;
	for (uint32_t h = 0; h < batch->hops; h++) {
		for (uint32_t i = 0; i < batch->blocks[h]->edges_count; i++) {
			const struct gw_block_edges *edges = &batch->blocks[h]->edges[i];
			const uint64_t *starts = meta->etypes[edges->etype].starts;
			for (uint64_t k = 0; k < edges->edge_count; k++) {
				const uint64_t id = (uint64_t)edges->edge_ids[k];
				const uint32_t owner = gw_book_owner(starts, meta->num_parts, id);
				count += touch_row(&client->lists[(size_t)owner * meta->num_etypes + edges->etype],
						   id - starts[owner], client->touching);
			}
		}
	}
	return count;
}

/* The degree records of the nodes whose lists are drawn from. */
static uint64_t touch_offsets(struct gw_means_client *client, const struct gw_minibatch *batch)
{
	const struct gw_graph_meta *meta = client->graph->hot.meta;
	uint64_t count = 0;
	for (uint32_t h = 0; h < batch->hops; h++) {
		for (uint32_t i = 0; i < batch->blocks[h]->edges_count; i++) {
			const struct gw_block_edges *edges = &batch->blocks[h]->edges[i];
			const uint32_t t = meta->etypes[edges->etype].dst;
			const uint64_t *starts = meta->ntypes[t].starts;
			for (uint64_t k = edges->dst_first; k < edges->dst_first + edges->dst_count; k++) {
				const uint64_t id = (uint64_t)batch->nodes[t][k];
				const uint32_t owner = gw_book_owner(starts, meta->num_parts, id);
				count += touch_row(&client->offsets[(size_t)owner * meta->num_ntypes + t],
						   id - starts[owner], client->touching);
			}
		}
	}
	return count;
}

static gw_status keep_nodes(const struct gw_means_graph *graph, uint32_t ntype, const struct gw_minibatch *batch,
			    struct gw_means_batches *out)
{
	const uint64_t *starts = graph->hot.meta->ntypes[ntype].starts;
	uint64_t used;
	gw_means_ids(out, ntype, &used);
	if (gw_vec_reserve(&out->ids[ntype], (used + batch->node_counts[ntype]) * sizeof(int64_t)) != GW_OK ||
	    gw_vec_reserve(&out->ends[ntype], (out->count + 1) * sizeof(uint64_t)) != GW_OK)
		return GW_NO_MEMORY;
	int64_t *ids = out->ids[ntype].data;
	for (uint64_t i = 0; i < batch->node_counts[ntype]; i++) {
		const uint64_t id = (uint64_t)batch->nodes[ntype][i];
		if (id < starts[out->part] || id >= starts[out->part + 1])
			ids[used++] = (int64_t)id;
	}
	((uint64_t *)out->ends[ntype].data)[out->count] = used;
	return GW_OK;
}

static gw_status keep_batch(struct gw_means_client *client, const struct gw_minibatch *batch,
			    struct gw_means_batches *out)
{
	const struct gw_means_graph *graph = client->graph;
	gw_status status = GW_OK;
	for (uint32_t t = 0; t < batch->num_ntypes && status == GW_OK; t++)
		status = graph->cost[t] ? keep_nodes(graph, t, batch, out) : GW_OK;
	if (status != GW_OK)
		return status;
	client->touching++;
	for (uint32_t f = 0; f < graph->fetch_count; f++)
		out->disk_blocks += touch_rows(client, f, batch);
	out->list_blocks += touch_lists(client, batch);
	out->offset_blocks += touch_offsets(client, batch);
	out->count++;
	return GW_OK;
}

/* --- The batches of a part. --- */

struct ring {
	struct gw_minibatch *batches[RING];
	struct gw_ticket *tickets[RING];
	uint64_t begun, taken;
};

/* GW_END: the epoch is over. */
static gw_status begin_next(struct gw_means_client *client, struct gw_loader *loader, uint64_t seed, struct ring *ring)
{
	const struct gw_hot_graph *hot = &client->graph->hot;
	const struct gw_sample_spec spec = {.ntype = hot->ntype, .hops = hot->hops, .fanouts = hot->fanouts};
	const uint32_t slot = (uint32_t)(ring->begun % RING);
	struct gw_minibatch *seeds;
	gw_status status = gw_loader_next(loader, &seeds, -1);
	if (status != GW_OK)
		return status;
	ring->batches[slot] = NULL;
	status = gw_sample_start(client->client, &spec, seed, seeds->stream, seeds->seeds, seeds->seed_count,
				 &ring->batches[slot], &ring->tickets[slot]);
	ring->begun += status == GW_OK;
	gw_minibatch_release(seeds);
	return status;
}

static gw_status take_next(struct gw_means_client *client, struct ring *ring, struct gw_means_batches *out)
{
	const uint32_t slot = (uint32_t)(ring->taken++ % RING);
	gw_status status = gw_wait(ring->tickets[slot], -1);
	if (status == GW_OK)
		status = keep_batch(client, ring->batches[slot], out);
	gw_minibatch_release(ring->batches[slot]);
	return status;
}

static gw_status sample_batches(struct gw_means_client *client, struct gw_loader *loader, uint64_t steps, uint64_t seed,
				struct gw_means_batches *out)
{
	struct ring ring = {0};
	gw_status status = GW_OK;
	const uint64_t all = gw_loader_steps(loader), most = steps && steps < all ? steps : all;
	while (ring.taken < most && status == GW_OK) {
		while (ring.begun < most && ring.begun < ring.taken + RING && status == GW_OK)
			status = begin_next(client, loader, seed, &ring);
		if (status == GW_OK)
			status = take_next(client, &ring, out);
	}
	struct gw_error_kept kept;
	gw_error_keep(&kept);
	for (; ring.taken < ring.begun; ring.taken++) {
		if (gw_wait(ring.tickets[ring.taken % RING], -1) == GW_OK)
			gw_minibatch_release(ring.batches[ring.taken % RING]);
	}
	gw_error_restore(&kept);
	return status;
}

static uint64_t sampled_bytes(const struct gw_client *client, uint32_t own)
{
	struct gw_link_sums sums[GW_SCHEMES];
	uint64_t bytes = 0;
	for (uint32_t p = 0; p < client->meta->num_parts; p++) {
		const uint32_t rows = p == own ? 0 : gw_client_sum_part(client, p, sums);
		for (uint32_t i = 0; i < rows; i++)
			bytes += sums[i].stats.sent_bytes + sums[i].stats.received_bytes;
	}
	return bytes;
}

gw_status gw_means_batches_run(struct gw_means_client *client, uint32_t part, uint64_t steps, uint64_t seed,
			       struct gw_means_batches *out)
{
	const struct gw_graph_meta *meta = client->graph->hot.meta;
	struct gw_loader *loader = NULL;
	if (!out->ids)
		out->ids = gw_calloc(meta->num_ntypes, sizeof(*out->ids));
	if (!out->ends)
		out->ends = gw_calloc(meta->num_ntypes, sizeof(*out->ends));
	if (!out->ids || !out->ends)
		return GW_NO_MEMORY;
	out->part = part;
	out->count = out->sampled = out->disk_blocks = out->list_blocks = out->offset_blocks = 0;
	if (client->graph->hot.seeds[part] == 0)
		return GW_OK;
	int32_t *none = gw_calloc(meta->num_etypes + 1ull, sizeof(*none));
	gw_status status = none ? gw_hot_loader_open(&client->graph->hot, client->client, part, 1, none, seed, &loader)
				: GW_NO_MEMORY;
	const uint64_t before = sampled_bytes(client->client, part);
	if (status == GW_OK)
		status = sample_batches(client, loader, steps, seed, out);
	out->sampled = sampled_bytes(client->client, part) - before;
	gw_loader_close(loader);
	gw_free(none);
	return status;
}

void gw_means_batches_free(const struct gw_means_graph *graph, struct gw_means_batches *batches)
{
	for (uint32_t t = 0; t < graph->hot.meta->num_ntypes; t++) {
		if (batches->ids)
			gw_vec_free(&batches->ids[t]);
		if (batches->ends)
			gw_vec_free(&batches->ends[t]);
	}
	gw_free(batches->ids);
	gw_free(batches->ends);
}
