/* Splits nodes by owner, requests their neighbours from each owner, and merges the answers: see hop.h. hop_reads.c and
 * hop_request.c implement the modes. */
#include "client/batch/hop.h"

#include <stddef.h>
#include <string.h>

#include "client/batch/hop_source.h"
#include "client/batch/local_lists.h"
#include "client/engine/engine.h"
#include "core/graph/book.h"
#include "core/memory/alloc.h"
#include "sampler/picks.h"

static uint32_t parts_of(const struct gw_hop *hop)
{
	return hop->engine->client->meta->num_parts;
}

static struct gw_hop_share *hop_share_of(const struct gw_hop *hop, uint32_t ntype, uint32_t part)
{
	return &hop->shares[(size_t)ntype * parts_of(hop) + part];
}

/* The node type whose lists the edge type has in the hop's direction. */
static uint32_t hop_ntype(const struct gw_hop *hop, uint32_t etype)
{
	const struct gw_edge_type *type = &hop->engine->client->meta->etypes[etype];
	return hop->direction == GW_IN ? type->dst : type->src;
}

/* In-edges are numbered by position, so a part's edge ids begin at its start. Out-edges come with their ids. */
static uint64_t edge_start_of(const struct gw_hop *hop, const struct gw_edge_type *type, uint32_t part)
{
	return hop->direction == GW_IN ? type->starts[part] : 0;
}

static struct gw_hop_source *source_of(const struct gw_hop *hop, uint32_t etype, uint32_t part)
{
	return &hop->sources[(size_t)etype * parts_of(hop) + part];
}

gw_status gw_hop_init(struct gw_hop *hop, struct gw_engine *engine)
{
	memset(hop, 0, sizeof(*hop));
	hop->engine = engine;
	const struct gw_graph_meta *meta = engine->client->meta;
	hop->shares = gw_calloc((size_t)meta->num_ntypes * meta->num_parts, sizeof(*hop->shares));
	hop->sources = gw_calloc((size_t)meta->num_etypes * meta->num_parts, sizeof(*hop->sources));
	hop->owners = gw_calloc(meta->num_ntypes, sizeof(*hop->owners));
	hop->is_split = gw_calloc(meta->num_ntypes, sizeof(*hop->is_split));
	if (!hop->shares || !hop->sources || !hop->owners || !hop->is_split) {
		gw_hop_free(hop);
		return GW_NO_MEMORY;
	}
	for (uint32_t p = 0; p < meta->num_parts; p++) {
		for (uint32_t t = 0; t < meta->num_ntypes; t++)
			*hop_share_of(hop, t, p) = (struct gw_hop_share){
				.answers = &hop->answers, .sources = hop->sources, .ntype = t, .part = p};
		for (uint32_t e = 0; e < meta->num_etypes; e++) {
			struct gw_hop_source *source = source_of(hop, e, p);
			source->answers = &hop->answers;
			source->etype = e;
		}
	}
	return GW_OK;
}

static void hop_share_free(struct gw_hop_share *share)
{
	gw_vec_free(&share->rows);
	gw_vec_free(&share->vertices);
	gw_vec_free(&share->groups);
	gw_vec_free(&share->offsets);
	gw_vec_free(&share->pull.request);
	gw_recv_buffer_free(&share->records);
}

static void hop_source_free(struct gw_hop_source *source)
{
	gw_picks_free(&source->picks);
	gw_vec_free(&source->call);
	gw_vec_free(&source->call_rows);
	gw_vec_free(&source->group_runs);
	gw_vec_free(&source->begins);
	gw_vec_free(&source->ends);
	gw_picks_rounds_free(&source->rounds);
	gw_entries_free(&source->neighbours);
	for (uint32_t c = 0; source->column_entries && c < GW_COLUMN_COUNT; c++)
		gw_entries_free(&source->column_entries[c]);
	gw_free(source->column_entries);
}

void gw_hop_free(struct gw_hop *hop)
{
	const struct gw_graph_meta *meta = hop->engine->client->meta;
	for (size_t i = 0; hop->shares && i < (size_t)meta->num_ntypes * meta->num_parts; i++)
		hop_share_free(&hop->shares[i]);
	for (size_t i = 0; hop->sources && i < (size_t)meta->num_etypes * meta->num_parts; i++)
		hop_source_free(&hop->sources[i]);
	for (uint32_t t = 0; hop->owners && t < meta->num_ntypes; t++)
		gw_vec_free(&hop->owners[t]);
	gw_vec_free(&hop->counts);
	gw_vec_free(&hop->edges);
	gw_vec_free(&hop->neighbours);
	gw_free(hop->shares);
	gw_free(hop->sources);
	gw_free(hop->owners);
	gw_free(hop->is_split);
}

static gw_status share_begin(struct gw_hop_share *share, bool grouped)
{
	if (gw_vec_reserve(&share->rows, share->count * 8) != GW_OK ||
	    gw_vec_reserve(&share->vertices, share->count * 8) != GW_OK ||
	    (grouped && gw_vec_reserve(&share->groups, share->count * 4) != GW_OK))
		return GW_NO_MEMORY;
	share->grouped = grouped;
	share->recorded = false;
	share->reading = false;
	return GW_OK;
}

/* The only part owns all nodes: the lists are copies. */
static gw_status share_all(struct gw_hop_share *share, uint64_t start, const struct gw_frontier *frontier)
{
	const uint64_t *nodes = frontier->nodes, n = share->count = frontier->n;
	if (share_begin(share, frontier->groups != NULL) != GW_OK)
		return GW_NO_MEMORY;
	uint64_t *rows = share->rows.data;
	for (uint64_t i = 0; i < n; i++)
		rows[i] = nodes[i] - start;
	if (n > 0)
		memcpy(share->vertices.data, nodes, n * 8);
	if (n > 0 && frontier->groups)
		memcpy(share->groups.data, frontier->groups, n * 4);
	return GW_OK;
}

static gw_status hop_split(struct gw_hop *hop, uint32_t ntype, const struct gw_frontier *frontier)
{
	const uint64_t *nodes = frontier->nodes, n = frontier->n;
	const uint64_t *starts = hop->engine->client->meta->ntypes[ntype].starts;
	const uint32_t parts = parts_of(hop);
	if (gw_vec_reserve(&hop->owners[ntype], n * 4) != GW_OK)
		return GW_NO_MEMORY;
	uint32_t *owners = hop->owners[ntype].data;
	struct gw_hop_share *shares = hop_share_of(hop, ntype, 0);
	if (parts == 1) {
		if (n > 0)
			memset(owners, 0, n * 4);
		return share_all(shares, starts[0], frontier);
	}
	for (uint32_t p = 0; p < parts; p++)
		shares[p].count = 0;
	for (uint64_t i = 0; i < n; i++) {
		owners[i] = gw_book_owner(starts, parts, nodes[i]);
		shares[owners[i]].count++;
	}
	for (uint32_t p = 0; p < parts; p++) {
		if (share_begin(&shares[p], frontier->groups != NULL) != GW_OK)
			return GW_NO_MEMORY;
		shares[p].count = 0;
	}
	for (uint64_t i = 0; i < n; i++) {
		const uint32_t owner = owners[i];
		struct gw_hop_share *share = &shares[owner];
		const uint64_t at = share->count++;
		((uint64_t *)share->rows.data)[at] = nodes[i] - starts[owner];
		((uint64_t *)share->vertices.data)[at] = nodes[i];
		if (frontier->groups)
			((uint32_t *)share->groups.data)[at] = frontier->groups[i];
	}
	return GW_OK;
}

/* False: it has to ask the owner. */
static bool hop_local(struct gw_engine *engine, const struct gw_hop_source *source, struct gw_picks_memory *memory,
		      struct gw_columns *columns)
{
	uint32_t part = source->share->part;
	*memory = (struct gw_picks_memory){.adjacency = gw_local_lists(engine, part, source->direction, source->etype),
					   .columns = columns};
	return memory->adjacency && gw_local_columns(engine, part, source->columns, columns);
}

/* The owner does not draw from arrays on its disk: the rounds ask it for their entries. */
static bool hop_needs_disk(const struct gw_client *client, const struct gw_hop_source *source)
{
	uint32_t part = source->share->part;
	bool on_disk = gw_lists_are_on_disk(client, part, source->direction, source->etype);
	for (uint32_t c = 0; source->columns && !on_disk && c < GW_COLUMN_COUNT; c++)
		on_disk = source->columns->places[c] && source->columns->places[c][part].on_disk;
	return on_disk;
}

/* A request contains 32-bit row numbers, so rows with larger numbers need reads. */
static enum gw_hop_mode choose_mode(struct gw_engine *engine, const struct gw_hop_source *source)
{
	const struct gw_client *client = engine->client;
	uint32_t part = source->share->part;
	const uint64_t *starts = client->meta->ntypes[source->share->ntype].starts;
	struct gw_picks_memory memory;
	struct gw_columns columns;
	if (hop_local(engine, source, &memory, &columns))
		return client->standalone ? GW_HOP_MEMORY : GW_HOP_MAPPED;
	if (starts[part + 1] - starts[part] > UINT32_MAX || hop_needs_disk(client, source))
		return GW_HOP_READS;
	if (client->neighbours != GW_NEIGHBOURS_AUTO)
		return client->neighbours == GW_NEIGHBOURS_READS ? GW_HOP_READS : GW_HOP_REQUEST;
	if (source->columns && source->columns->by_request)
		return GW_HOP_REQUEST;
	return gw_engine_link(engine, part)->one_sided ? GW_HOP_READS : GW_HOP_REQUEST;
}

/* Replaces the positions of out-edges by their ids. */
static gw_status hop_pick(struct gw_engine *engine, struct gw_hop_source *source, const uint64_t *vertices,
			  const uint32_t *groups, uint64_t n)
{
	struct gw_picks_memory memory;
	struct gw_columns columns;
	if (!hop_local(engine, source, &memory, &columns))
		return gw_fail(GW_PEER_LOST, "part %u is not in memory any more", source->share->part);
	source->draw.forms[GW_COLUMN_IDS].entry_bytes = memory.adjacency->index_bytes;
	gw_status status = gw_picks_from_memory(&source->picks, &memory, &source->draw, vertices, groups, n);
	uint64_t *positions = source->picks.positions.data;
	for (uint64_t i = 0; status == GW_OK && memory.adjacency->eid && i < source->picks.edge_count; i++)
		positions[i] = memory.adjacency->eid[positions[i]];
	return status;
}

static gw_status pick_at_once(struct gw_engine *engine, struct gw_hop_source *source)
{
	const struct gw_hop_share *share = source->share;
	gw_status status = hop_pick(engine, source, share->vertices.data, gw_hop_share_groups(share), share->count);
	return status == GW_OK ? GW_OK : gw_context(status, "mapped part %u", share->part);
}

/* --- Merging. --- */

/* The next picks of a source: received by a request or by reads, or picked from memory for this run. */
struct hop_cursor {
	const struct gw_picks *picks;
	uint64_t dst, edge;
};

/* edges: NULL if the caller does not read them. */
static void take_one(struct hop_cursor *cursor, uint64_t edge_start, uint32_t *count, uint64_t *edges,
		     uint64_t *neighbours)
{
	*count = ((const uint32_t *)cursor->picks->counts.data)[cursor->dst++];
	const uint64_t *positions = cursor->picks->positions.data, *from = cursor->picks->neighbours.data;
	for (uint32_t j = 0; j < *count; j++) {
		if (edges)
			edges[j] = edge_start + positions[cursor->edge + j];
		neighbours[j] = from[cursor->edge + j];
	}
	cursor->edge += *count;
}

static gw_status pick_in_memory(struct gw_hop *hop, uint32_t etype, const uint32_t *owners,
				const struct gw_frontier *next)
{
	for (uint32_t p = 0; p < parts_of(hop); p++) {
		struct gw_hop_source *source = source_of(hop, etype, p);
		if (source->mode != GW_HOP_MEMORY || source->share->count == 0)
			continue;
		uint64_t own[GW_HOP_RUN], count = 0;
		uint32_t own_groups[GW_HOP_RUN];
		for (uint64_t i = 0; i < next->n; i++) {
			if (owners[i] != p)
				continue;
			own_groups[count] = next->groups ? next->groups[i] : 0;
			own[count++] = next->nodes[i];
		}
		source->taken_dst = 0;
		source->taken_edges = 0;
		source->picks.edge_count = 0;
		if (count == 0)
			continue;
		gw_status status = hop_pick(hop->engine, source, own, next->groups ? own_groups : NULL, count);
		if (status != GW_OK)
			return status;
	}
	return GW_OK;
}

static bool one_owner(const uint32_t *owners, uint64_t n)
{
	uint64_t i = 1;
	while (i < n && owners[i] == owners[0])
		i++;
	return i >= n;
}

/* One owner has all nodes of the run: returns the owner's picks in place, without a copy. */
static void take_run(struct gw_hop_source *source, uint64_t start, uint64_t n, struct gw_hop_edges *edges)
{
	const uint64_t *positions = source->draw.no_edge_ids ? NULL : source->picks.positions.data;
	*edges = (struct gw_hop_edges){.counts = (const uint32_t *)source->picks.counts.data + source->taken_dst,
				       .positions = positions ? positions + source->taken_edges : NULL,
				       .neighbours =
					       (const uint64_t *)source->picks.neighbours.data + source->taken_edges,
				       .start = start};
	for (uint64_t i = 0; i < n; i++)
		edges->count += edges->counts[i];
	source->taken_dst += n;
	source->taken_edges += edges->count;
}

gw_status gw_hop_take(struct gw_hop *hop, uint32_t etype, const struct gw_frontier *next, struct gw_hop_edges *edges)
{
	const struct gw_edge_type *type = &hop->engine->client->meta->etypes[etype];
	const uint32_t *owners = (const uint32_t *)hop->owners[hop_ntype(hop, etype)].data + next->first;
	uint64_t n = next->n;
	gw_status status = pick_in_memory(hop, etype, owners, next);
	if (status != GW_OK)
		return status;
	if (n > 0 && one_owner(owners, n)) {
		take_run(source_of(hop, etype, owners[0]), edge_start_of(hop, type, owners[0]), n, edges);
		return GW_OK;
	}
	uint64_t edge_bound = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct gw_hop_source *source = source_of(hop, etype, owners[i]);
		edge_bound += ((const uint32_t *)source->picks.counts.data)[source->taken_dst + source->seen_dst++];
	}
	for (uint64_t i = 0; i < n; i++)
		source_of(hop, etype, owners[i])->seen_dst = 0;
	const bool no_ids = n && source_of(hop, etype, owners[0])->draw.no_edge_ids;
	if (gw_vec_reserve(&hop->counts, n * 4) != GW_OK ||
	    (!no_ids && gw_vec_reserve(&hop->edges, edge_bound * 8) != GW_OK) ||
	    gw_vec_reserve(&hop->neighbours, edge_bound * 8) != GW_OK)
		return GW_NO_MEMORY;

	uint64_t at = 0, *ids = no_ids ? NULL : hop->edges.data;
	for (uint64_t i = 0; i < n; i++) {
		struct gw_hop_source *source = source_of(hop, etype, owners[i]);
		struct hop_cursor cursor = {&source->picks, source->taken_dst, source->taken_edges};
		uint32_t *count = (uint32_t *)hop->counts.data + i;
		take_one(&cursor, edge_start_of(hop, type, owners[i]), count, ids ? ids + at : NULL,
			 (uint64_t *)hop->neighbours.data + at);
		source->taken_dst = cursor.dst;
		source->taken_edges = cursor.edge;
		at += *count;
	}
	*edges = (struct gw_hop_edges){at, hop->counts.data, ids, hop->neighbours.data, 0};
	return GW_OK;
}

/* --- The course of a hop. --- */

static struct gw_hop *hop_of(struct gw_fan_in *answers)
{
	return (struct gw_hop *)((char *)answers - offsetof(struct gw_hop, answers));
}

static void hop_answered(struct gw_fan_in *answers, gw_status status)
{
	struct gw_hop *hop = hop_of(answers);
	hop->done(hop, status);
}

static void hop_source_cancel(struct gw_hop_source *source)
{
	if (source->link_op.owner)
		gw_link_cancel(&source->link_op);
	gw_entries_cancel(&source->neighbours);
	for (uint32_t c = 0; source->column_entries && c < GW_COLUMN_COUNT; c++)
		gw_entries_cancel(&source->column_entries[c]);
}

static void hop_cancel_link_ops(struct gw_fan_in *answers)
{
	struct gw_hop *hop = hop_of(answers);
	const struct gw_graph_meta *meta = hop->engine->client->meta;
	for (size_t i = 0; i < (size_t)meta->num_ntypes * meta->num_parts; i++) {
		if (hop->shares[i].link_op.owner)
			gw_link_cancel(&hop->shares[i].link_op);
	}
	for (size_t i = 0; i < (size_t)meta->num_etypes * meta->num_parts; i++) {
		hop_source_cancel(&hop->sources[i]);
	}
}

void gw_hop_cancel(struct gw_hop *hop)
{
	gw_fan_in_cancel(&hop->answers);
}

void gw_hop_begin(struct gw_hop *hop, enum gw_direction direction)
{
	const struct gw_graph_meta *meta = hop->engine->client->meta;
	hop->direction = direction;
	memset(hop->is_split, 0, meta->num_ntypes * sizeof(*hop->is_split));
	for (size_t i = 0; i < (size_t)meta->num_etypes * meta->num_parts; i++) {
		struct gw_hop_source *source = &hop->sources[i];
		source->active = false;
		source->direction = direction;
		source->share = hop_share_of(hop, hop_ntype(hop, source->etype), (uint32_t)(i % meta->num_parts));
		source->taken_dst = 0;
		source->taken_edges = 0;
		source->picks.dst_count = 0;
		source->picks.edge_count = 0;
	}
}

gw_status gw_hop_want(struct gw_hop *hop, uint32_t etype, const struct gw_draw *draw,
		      const struct gw_edge_columns *columns, const struct gw_frontier *frontier)
{
	uint32_t ntype = hop_ntype(hop, etype);
	gw_status status = gw_draw_check_use(draw);
	if (status != GW_OK)
		return status;
	for (uint32_t p = 0; p < parts_of(hop); p++) {
		struct gw_hop_source *source = source_of(hop, etype, p);
		source->active = true;
		source->draw = *draw;
		source->columns = columns;
	}
	if (hop->is_split[ntype])
		return GW_OK;
	hop->is_split[ntype] = true;
	return hop_split(hop, ntype, frontier);
}

void gw_hop_start(struct gw_hop *hop, struct gw_job *job)
{
	const struct gw_graph_meta *meta = hop->engine->client->meta;
	gw_fan_in_begin(&hop->answers, job, hop_cancel_link_ops, hop_answered);
	gw_status status = GW_OK;
	bool held = false;
	for (uint32_t e = 0; e < meta->num_etypes && status == GW_OK; e++) {
		for (uint32_t p = 0; p < meta->num_parts && status == GW_OK && hop->answers.status == GW_OK; p++) {
			struct gw_hop_source *source = source_of(hop, e, p);
			if (!source->active || source->share->count == 0)
				continue;
			source->mode = choose_mode(hop->engine, source);
			if (source->mode == GW_HOP_MAPPED) {
				held = held || gw_local_lists_are_held(hop->engine, p);
				status = pick_at_once(hop->engine, source);
			}
			if (source->mode == GW_HOP_MEMORY || source->mode == GW_HOP_MAPPED)
				continue;
			gw_fan_in_add(&hop->answers);
			if (source->mode == GW_HOP_READS)
				gw_hop_read(source);
			else
				gw_hop_request(source);
		}
	}
	if (held)
		gw_link_count(&hop->engine->lists_link->counts.held_hops, 1);
	gw_fan_in_end_one(&hop->answers, status);
}
