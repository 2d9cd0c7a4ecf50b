/* The reads driver: neighbours by reads alone; no handler of a server runs.
 *
 *   degree records ─▶ round ─▶ entries of columns ─▶ round ... ─▶ positions ─▶ neighbours ─▶ [out-lists] edge ids
 *
 * A degree record is two neighbouring rows of the type's offset table: one read returns the offsets of all edge types.
 * Picked positions that are close together are read as one span, including the gaps between them. A separate range
 * costs as much as reading some extra bytes; the transport defines how many. So the picks of a short list are usually
 * one read. The offsets come from a peer and are checked.
 */
#include <assert.h>
#include <string.h>

#include "client/batch/hop_source.h"
#include "client/engine/engine.h"
#include "core/memory/alloc.h"

#define SPAN_BYTES_MAX (1u << 20)

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

static gw_status read_records(struct gw_hop_share *share)
{
	struct gw_engine *engine = share->answers->job->engine;
	const struct gw_node_places *places = &engine->client->node_places[share->direction][share->ntype];
	const struct gw_place *place = &places->indptr[share->part];
	uint64_t step = (uint64_t)places->columns * place->element_bytes, n = share->count;
	if (gw_vec_reserve(&share->offsets, n * 8) != GW_OK)
		return GW_NO_MEMORY;
	gw_status status = gw_recv_buffer_reserve(&share->records, &engine->slab, n * 2 * step);
	if (status != GW_OK)
		return status;
	const uint64_t *rows = share->rows.data;
	uint64_t *offsets = share->offsets.data;
	for (uint64_t i = 0; i < n; i++)
		offsets[i] = place->offset + rows[i] * step;
	share->reading = true;
	share->link_op.form = GW_LINK_GATHER;
	share->link_op.buffer = share->records.buffer;
	share->link_op.region = place->region;
	share->link_op.count = n;
	share->link_op.gather = (struct gw_gather){.remote = offsets,
						   .local = gw_recv_buffer_start(&share->records),
						   .row_bytes = (uint32_t)(2 * step),
						   .stride = (uint32_t)(2 * step)};
	share->link_op.job = share->answers->job;
	share->link_op.done = records_read;
	share->link_op.owner = share;
	gw_engine_post(engine, share->part, &share->link_op);
	return GW_OK;
}

/* --- Entries in spans. --- */

/* What a read needs: entries [first[i], first[i] + count[i]) of an array, or one entry each. */
struct entry_list {
	const uint64_t *firsts;               /* of single entries; or NULL, and then: */
	const struct gw_column_read *entries; /* those of column `column` */
	enum gw_column column;
	uint32_t width; /* bytes of an entry */
	uint64_t n;
};

/* The spans of a read, while entries are added in any order. */
struct span_builder {
	struct gw_span *spans;
	uint64_t count, local, last_end; /* last_end: where the last span ends at the part */
	uint64_t gap_max;
};

/* Adds the entries in [remote, remote + bytes), and returns where they will be in the receive buffer. Entries that are
 * close to the last span extend it, including the gap. */
static inline __attribute__((always_inline)) uint64_t add_entries(struct span_builder *b, uint64_t remote,
								  uint64_t bytes)
{
	struct gw_span *last = &b->spans[b->count - 1];
	if (b->count && remote + bytes == b->last_end && bytes <= last->bytes)
		return b->local - bytes; /* drawn again, with replacement */
	if (b->count && remote >= b->last_end && remote - b->last_end <= b->gap_max &&
	    remote + bytes - last->remote <= SPAN_BYTES_MAX) {
		uint32_t more = (uint32_t)(remote + bytes - b->last_end);
		last->bytes += more;
		b->local += more;
	} else {
		for (uint64_t done = 0; done < bytes; done += SPAN_BYTES_MAX) {
			uint64_t piece = bytes - done < SPAN_BYTES_MAX ? bytes - done : SPAN_BYTES_MAX;
			b->spans[b->count++] = (struct gw_span){
				.remote = remote + done, .local = b->local + done, .bytes = (uint32_t)piece};
		}
		b->local += bytes;
	}
	b->last_end = remote + bytes;
	return b->local - bytes;
}

/* Converts single entries, each of `width` bytes: a constant for the compiler. */
static inline __attribute__((always_inline)) void add_singles(struct span_builder *builder, uint64_t offset,
							      const uint64_t *firsts, uint64_t n, uint32_t width,
							      uint64_t *at)
{
	struct span_builder b = *builder;
	for (uint64_t i = 0; i < n; i++)
		at[i] = add_entries(&b, offset + firsts[i] * width, width);
	*builder = b;
}

/* Notes where each entry will be in the receive buffer. Returns the bytes to receive. */
static uint64_t hop_reads_build_spans(struct gw_hop_entries *read, const struct gw_place *place,
				      const struct entry_list *list, uint64_t gap_max)
{
	uint64_t *at = read->received_at.data;
	struct span_builder b = {.spans = read->spans.data, .gap_max = gap_max};
	uint32_t width = list->width;
	if (list->firsts && width == 4) {
		add_singles(&b, place->offset, list->firsts, list->n, 4, at);
	} else if (list->firsts) {
		add_singles(&b, place->offset, list->firsts, list->n, width, at);
	} else {
		for (uint64_t i = 0; i < list->n; i++) {
			const struct gw_column_read *entries = &list->entries[i];
			if (entries->column == list->column)
				at[i] = add_entries(&b, place->offset + entries->first * width, entries->count * width);
		}
	}
	read->link_op.count = b.count;
	return b.local;
}

/* The largest gap that is cheaper to read than to skip; 0 for a link that is down. */
static uint64_t gap_of(const struct gw_link *link)
{
	return link->endpoint ? link->endpoint->transport->range_cost_bytes : 0;
}

static gw_status read_entries(struct gw_hop_source *source, struct gw_hop_entries *read, const struct gw_place *place,
			      const struct entry_list *list,
			      void (*done)(struct gw_link_op *op, gw_status status,
					   const struct gw_completion *completion))
{
	struct gw_engine *engine = source->answers->job->engine;
	uint32_t part = source->share->part;
	uint64_t span_count = list->n;
	assert(list->firsts || list->entries || !list->n);
	for (uint64_t i = 0; !list->firsts && i < list->n; i++)
		span_count += list->entries[i].count * list->width / SPAN_BYTES_MAX;
	if (gw_vec_reserve(&read->spans, span_count * sizeof(struct gw_span)) != GW_OK ||
	    gw_vec_reserve(&read->received_at, list->n * 8) != GW_OK)
		return GW_NO_MEMORY;
	uint64_t bytes = hop_reads_build_spans(read, place, list, gap_of(gw_engine_link(engine, part)));
	gw_status status = gw_recv_buffer_reserve(&read->received, &engine->slab, bytes);
	if (status != GW_OK)
		return status;
	struct gw_span *spans = read->spans.data;
	for (uint64_t i = 0, start = gw_recv_buffer_start(&read->received); i < read->link_op.count; i++)
		spans[i].local += start;
	read->link_op.form = GW_LINK_SPANS;
	read->link_op.buffer = read->received.buffer;
	read->link_op.region = place->region;
	read->link_op.spans = spans;
	read->link_op.job = source->answers->job;
	read->link_op.done = done;
	read->link_op.owner = source;
	gw_engine_post(engine, part, &read->link_op);
	return GW_OK;
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
	const struct entry_list list = {
		.firsts = source->picks.positions.data, .width = place->element_bytes, .n = source->picks.edge_count};
	return read_entries(source, &source->neighbours, place, &list, eids_read);
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
	const struct entry_list list = {
		.firsts = source->picks.positions.data, .width = place->element_bytes, .n = source->picks.edge_count};
	if (gw_vec_reserve(&source->picks.neighbours, list.n * 8) != GW_OK)
		return GW_NO_MEMORY;
	return read_entries(source, &source->neighbours, place, &list, neighbours_read);
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
	for (uint64_t i = 0; i < rounds->read_count; i++) {
		const struct gw_hop_entries *read = &source->column_entries[rounds->reads[i].column];
		rounds->got[i] = read->received.data + ((const uint64_t *)read->received_at.data)[i];
	}
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
		const struct entry_list list = {.entries = rounds->reads,
						.column = c,
						.width = source->draw.forms[c].entry_bytes,
						.n = rounds->read_count};
		const struct gw_place *places =
			c == GW_COLUMN_IDS ? hop_reads_places(source)->indices : source->columns->places[c];
		source->columns_open++;
		gw_status status = read_entries(source, &source->column_entries[c], &places[source->share->part], &list,
						column_read);
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
