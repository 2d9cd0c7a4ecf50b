/* The reads driver: neighbours by reads alone; no handler of a server runs.
 *
 *   degree records ─▶ round ─▶ entries of columns ─▶ round ... ─▶ positions ─▶ neighbours ─▶ [out-lists] edge ids
 *
 * A degree record is two neighbouring rows of the type's offset table: one read returns the offsets of all edge types.
 * Records and entries of arrays that stay on disk are requested instead (entries.h). The offsets come from a peer and
 * are checked.
 */
#include <string.h>

#include "client/batch/hop_source.h"
#include "client/engine/engine.h"
#include "core/memory/alloc.h"

static void draw_begin(struct gw_hop_source *source);

/* --- Degree records. --- */

static void records_read(struct gw_link_op *link_op, gw_status status, const struct gw_completion *completion)
{
	(void)completion;
	struct gw_hop_share *share = link_op->owner;
	struct gw_fan_in *answers = share->answers;
	const struct gw_graph_meta *meta = answers->job->engine->client->meta;
	link_op->owner = NULL;
	share->reading = false;
	share->recorded = status == GW_OK;
	gw_fan_in_add(answers); /* the hop must not end, and the next hop not begin, while this loop runs */
	for (uint32_t e = 0; e < meta->num_etypes; e++) {
		struct gw_hop_source *source = &share->sources[(size_t)e * meta->num_parts + share->part];
		if (source->share != share || !source->awaiting)
			continue;
		source->awaiting = false;
		gw_status each = status != GW_OK ? status : answers->status;
		if (each == GW_OK)
			draw_begin(source);
		else
			gw_fan_in_end_one(source->answers, each);
	}
	gw_fan_in_leave(answers);
}

/* The read of records in a region. */
static gw_status gather_records(struct gw_hop_share *share, const struct gw_place *place, uint64_t step)
{
	struct gw_engine *engine = share->answers->job->engine;
	const uint64_t n = share->count;
	if (gw_vec_reserve(&share->offsets, n * 8) != GW_OK)
		return GW_NO_MEMORY;
	const uint64_t *rows = share->rows.data;
	uint64_t *offsets = share->offsets.data;
	for (uint64_t i = 0; i < n; i++)
		offsets[i] = place->offset + rows[i] * step;
	share->link_op.form = GW_LINK_GATHER;
	share->link_op.buffer = share->records.buffer;
	share->link_op.region = place->region;
	share->link_op.count = n;
	share->link_op.gather = (struct gw_gather){.remote = offsets,
						   .local = gw_recv_buffer_start(&share->records),
						   .row_bytes = (uint32_t)(2 * step),
						   .stride = (uint32_t)(2 * step)};
	gw_engine_post(engine, share->part, &share->link_op);
	return GW_OK;
}

static void pull_records(struct gw_hop_share *share, const struct gw_place *place, uint64_t step)
{
	share->pull.place = place;
	share->pull.rows = share->rows.data;
	share->pull.step = 1;
	share->pull.count = share->count;
	share->pull.out = share->records.data;
	share->pull.row_bytes = 2 * step;
	share->pull.reads = share->answers;
	gw_pull_start(&share->pull, gw_engine_link(share->answers->job->engine, share->part), &share->link_op);
}

static gw_status read_records(struct gw_hop_share *share)
{
	struct gw_engine *engine = share->answers->job->engine;
	const struct gw_node_places *places = &engine->client->node_places[share->direction][share->ntype];
	const struct gw_place *place = &places->indptr[share->part];
	const uint64_t step = (uint64_t)places->columns * place->element_bytes;
	gw_status status = gw_recv_buffer_reserve(&share->records, &engine->slab, share->count * 2 * step);
	if (status != GW_OK)
		return status;
	share->reading = true;
	share->link_op.job = share->answers->job;
	share->link_op.done = records_read;
	share->link_op.owner = share;
	if (!place->on_disk)
		status = gather_records(share, place, step);
	else
		pull_records(share, place, step);
	if (status != GW_OK) {
		share->reading = false;
		share->link_op.owner = NULL;
	}
	return status;
}

/* --- Neighbours, and the ids of out-edges. --- */

static void hop_read_take_ids(const struct gw_hop_source *source, const struct gw_place *place, uint64_t *ids)
{
	const uint8_t *received = source->neighbours.received.data;
	const uint64_t *at = source->neighbours.received_at.data;
	for (uint64_t i = 0; i < source->picks.edge_count; i++) {
		if (place->element_bytes == 4) {
			uint32_t id;
			memcpy(&id, received + at[i], 4);
			ids[i] = id;
		} else {
			memcpy(&ids[i], received + at[i], 8);
		}
	}
}

static const struct gw_list_places *hop_reads_places(const struct gw_hop_source *source)
{
	return &source->answers->job->engine->client->list_places[source->direction][source->etype];
}

static void eids_read(struct gw_link_op *link_op, gw_status status, const struct gw_completion *completion)
{
	(void)completion;
	struct gw_hop_source *source = link_op->owner;
	link_op->owner = NULL;
	if (status == GW_OK)
		hop_read_take_ids(source, &hop_reads_places(source)->eids[source->share->part],
				  source->picks.positions.data);
	gw_fan_in_end_one(source->answers, status);
}

static gw_status read_eids(struct gw_hop_source *source)
{
	const struct gw_place *place = &hop_reads_places(source)->eids[source->share->part];
	const struct gw_entry_list list = {
		.firsts = source->picks.positions.data, .width = place->element_bytes, .n = source->picks.edge_count};
	return gw_entries_read(&source->neighbours, source->answers, source->share->part, place, &list, eids_read,
			       source);
}

static void neighbours_read(struct gw_link_op *link_op, gw_status status, const struct gw_completion *completion)
{
	(void)completion;
	struct gw_hop_source *source = link_op->owner;
	link_op->owner = NULL;
	if (status == GW_OK)
		hop_read_take_ids(source, &hop_reads_places(source)->indices[source->share->part],
				  source->picks.neighbours.data);
	if (status == GW_OK && source->answers->status == GW_OK && source->direction == GW_OUT) {
		status = read_eids(source);
		if (status == GW_OK)
			return;
	}
	gw_fan_in_end_one(source->answers, status);
}

static gw_status hop_read_neighbours(struct gw_hop_source *source)
{
	const struct gw_place *place = &hop_reads_places(source)->indices[source->share->part];
	const struct gw_entry_list list = {
		.firsts = source->picks.positions.data, .width = place->element_bytes, .n = source->picks.edge_count};
	if (gw_vec_reserve(&source->picks.neighbours, list.n * 8) != GW_OK)
		return GW_NO_MEMORY;
	return gw_entries_read(&source->neighbours, source->answers, source->share->part, place, &list, neighbours_read,
			       source);
}

/* --- Rounds. --- */

static void draw_next(struct gw_hop_source *source);

static void columns_arrived(struct gw_hop_source *source)
{
	gw_status status = source->round_status != GW_OK ? source->round_status : source->answers->status;
	struct gw_picks_rounds *rounds = &source->rounds;
	if (status != GW_OK) {
		gw_fan_in_end_one(source->answers, source->round_status);
		return;
	}
	for (uint64_t i = 0; i < rounds->read_count; i++)
		rounds->got[i] = gw_entries_at(&source->column_entries[rounds->reads[i].column], i);
	draw_next(source);
}

static void column_ended(struct gw_hop_source *source, gw_status status)
{
	if (status != GW_OK && source->round_status == GW_OK)
		source->round_status = status;
	if (--source->columns_open == 0)
		columns_arrived(source);
}

static void column_read(struct gw_link_op *link_op, gw_status status, const struct gw_completion *completion)
{
	(void)completion;
	struct gw_hop_source *source = link_op->owner;
	link_op->owner = NULL;
	column_ended(source, status);
}

/* All columns at once. */
static gw_status read_columns(struct gw_hop_source *source)
{
	const struct gw_picks_rounds *rounds = &source->rounds;
	uint32_t needed = 0;
	if (!source->column_entries)
		source->column_entries = gw_calloc(GW_COLUMN_COUNT, sizeof(*source->column_entries));
	if (!source->column_entries)
		return GW_NO_MEMORY;
	for (uint64_t i = 0; i < rounds->read_count; i++)
		needed |= GW_COLUMN_BIT(rounds->reads[i].column);
	source->round_status = GW_OK;
	source->columns_open = 1;
	for (uint32_t c = 0; c < GW_COLUMN_COUNT; c++) {
		if (!(needed & GW_COLUMN_BIT(c)))
			continue;
		const struct gw_entry_list list = {.entries = rounds->reads,
						   .column = c,
						   .width = source->draw.forms[c].entry_bytes,
						   .n = rounds->read_count};
		const struct gw_place *places =
			c == GW_COLUMN_IDS ? hop_reads_places(source)->indices : source->columns->places[c];
		source->columns_open++;
		gw_status status = gw_entries_read(&source->column_entries[c], source->answers, source->share->part,
						   &places[source->share->part], &list, column_read, source);
		if (status != GW_OK)
			column_ended(source, status);
	}
	column_ended(source, GW_OK);
	return GW_OK;
}

/* The next round of the draw; after the last one, the neighbours. */
static void draw_next(struct gw_hop_source *source)
{
	gw_status status = gw_picks_rounds_next(&source->rounds);
	if (status == GW_AGAIN) {
		status = read_columns(source);
		if (status == GW_OK)
			return;
	} else if (status == GW_OK && source->picks.edge_count > 0) {
		status = hop_read_neighbours(source);
		if (status == GW_OK)
			return;
	}
	gw_fan_in_end_one(source->answers, status);
}

/* Checks both ends against the part's number of edges. */
static gw_status parse_records(struct gw_hop_source *source)
{
	const struct gw_hop_share *share = source->share;
	const struct gw_client *client = source->answers->job->engine->client;
	const struct gw_edge_type *type = &client->meta->etypes[source->etype];
	const struct gw_node_places *places = &client->node_places[source->direction][share->ntype];
	uint32_t column = source->direction == GW_IN ? type->column : type->out_column;
	uint8_t width = (uint8_t)places->indptr[share->part].element_bytes;
	uint64_t edges = hop_reads_places(source)->edges[share->part], n = share->count;
	if (gw_vec_reserve(&source->begins, n * 8) != GW_OK || gw_vec_reserve(&source->ends, n * 8) != GW_OK)
		return GW_NO_MEMORY;
	uint64_t *begins = source->begins.data, *ends = source->ends.data;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t record = i * 2 * places->columns;
		begins[i] = gw_load_id(share->records.data, width, record + column);
		ends[i] = gw_load_id(share->records.data, width, record + places->columns + column);
		if (begins[i] > ends[i] || ends[i] > edges)
			return gw_fail(
				GW_PROTOCOL, "part %u: offsets %llu and %llu of row %llu in a list of %llu edges",
				share->part, (unsigned long long)begins[i], (unsigned long long)ends[i],
				(unsigned long long)((const uint64_t *)share->rows.data)[i], (unsigned long long)edges);
	}
	return GW_OK;
}

static void draw_begin(struct gw_hop_source *source)
{
	const struct gw_hop_share *share = source->share;
	gw_status status = parse_records(source);
	source->draw.forms[GW_COLUMN_IDS].entry_bytes = hop_reads_places(source)->indices[share->part].element_bytes;
	if (status == GW_OK)
		status = gw_picks_rounds_begin(&source->rounds, &source->picks, &source->draw, share->vertices.data,
					       gw_hop_share_groups(share), source->begins.data, source->ends.data,
					       share->count);
	if (status == GW_OK)
		draw_next(source);
	else
		gw_fan_in_end_one(source->answers, status);
}

void gw_hop_read(struct gw_hop_source *source)
{
	struct gw_hop_share *share = source->share;
	if (share->recorded) {
		draw_begin(source);
		return;
	}
	source->awaiting = true;
	share->direction = source->direction;
	gw_status status = share->reading ? GW_OK : read_records(share);
	if (status != GW_OK) {
		source->awaiting = false;
		gw_fan_in_end_one(source->answers, status);
	}
}
