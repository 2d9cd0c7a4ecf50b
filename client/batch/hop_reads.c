/* Neighbours by reads alone: no handler of a server runs: degree records -> positions -> neighbours.
 *
 * A degree record is two neighbouring rows of the type's offset table: one read returns the offsets of all edge types.
 * Picked positions that are close together are read as one span, including the gaps between them. A separate range
 * costs as much as reading some extra bytes; the transport defines how many. So the picks of a short list are usually
 * one read. The offsets come from a peer and are checked.
 */
#include <string.h>

#include "client/batch/hop_source.h"
#include "client/engine/engine.h"
#include "core/memory/alloc.h"
#include "sampler/picks.h"

#define SPAN_BYTES_MAX (1u << 20)

static gw_status read_neighbours(struct gw_hop_source *source);

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
			each = read_neighbours(source);
		if (each != GW_OK || source->picks.edge_count == 0)
			gw_fan_in_end_one(source->answers, each);
	}
	gw_fan_in_leave(answers);
}

static gw_status read_records(struct gw_hop_share *share)
{
	struct gw_engine *engine = share->answers->job->engine;
	const struct gw_node_places *places = &engine->client->node_places[share->ntype];
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

/* --- Neighbours. --- */

static void neighbours_read(struct gw_link_op *link_op, gw_status status, const struct gw_completion *completion)
{
	(void)completion;
	struct gw_hop_source *source = link_op->owner;
	link_op->owner = NULL;
	if (status == GW_OK) {
		const struct gw_client *client = source->answers->job->engine->client;
		uint32_t id_bytes = client->indices[source->etype][source->share->part].element_bytes;
		const uint8_t *received = source->received.data;
		const uint64_t *at = source->received_at.data;
		uint64_t *neighbours = source->picks.neighbours.data;
		for (uint64_t i = 0; i < source->picks.edge_count; i++) {
			if (id_bytes == 4) {
				uint32_t id;
				memcpy(&id, received + at[i], 4);
				neighbours[i] = id;
			} else {
				memcpy(&neighbours[i], received + at[i], 8);
			}
		}
	}
	gw_fan_in_end_one(source->answers, status);
}

/* Reads [begin, end) of each list from the records, and checks both against the part's number of edges. */
static gw_status parse_records(struct gw_hop_source *source)
{
	const struct gw_hop_share *share = source->share;
	const struct gw_client *client = source->answers->job->engine->client;
	const struct gw_edge_type *type = &client->meta->etypes[source->etype];
	const struct gw_node_places *places = &client->node_places[share->ntype];
	uint8_t width = (uint8_t)places->indptr[share->part].element_bytes;
	uint64_t edges = type->starts[share->part + 1] - type->starts[share->part], n = share->count;
	if (gw_vec_reserve(&source->begins, n * 8) != GW_OK || gw_vec_reserve(&source->ends, n * 8) != GW_OK)
		return GW_NO_MEMORY;
	uint64_t *begins = source->begins.data, *ends = source->ends.data;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t record = i * 2 * places->columns;
		begins[i] = gw_load_id(share->records.data, width, record + type->column);
		ends[i] = gw_load_id(share->records.data, width, record + places->columns + type->column);
		if (begins[i] > ends[i] || ends[i] > edges)
			return gw_fail(
				GW_PROTOCOL, "part %u: offsets %llu and %llu of row %llu in a list of %llu edges",
				share->part, (unsigned long long)begins[i], (unsigned long long)ends[i],
				(unsigned long long)((const uint64_t *)share->rows.data)[i], (unsigned long long)edges);
	}
	return GW_OK;
}

/* Converts positions to spans, and stores where each pick will be in the receive buffer. Returns the number of bytes to
 * receive. */
static uint64_t hop_reads_build_spans(struct gw_hop_source *source, const struct gw_place *place, uint64_t gap_max,
				      uint64_t *span_count)
{
	const uint64_t *positions = source->picks.positions.data;
	uint64_t *at = source->received_at.data, local = 0, count = 0;
	struct gw_span *spans = source->spans.data;
	uint32_t width = place->element_bytes;
	for (uint64_t i = 0; i < source->picks.edge_count; i++) {
		uint64_t remote = place->offset + positions[i] * width;
		struct gw_span *last = count ? &spans[count - 1] : NULL;
		uint64_t last_end = last ? last->remote + last->bytes : 0;
		bool repeated = last && remote + width == last_end; /* drawn again, with replacement */
		if (last && !repeated && remote >= last_end && remote - last_end <= gap_max &&
		    remote + width - last->remote <= SPAN_BYTES_MAX) {
			uint32_t more = (uint32_t)(remote + width - last_end);
			last->bytes += more;
			local += more;
		} else if (!repeated) {
			spans[count++] = (struct gw_span){.remote = remote, .local = local, .bytes = width};
			local += width;
		}
		at[i] = local - width;
	}
	*span_count = count;
	return local;
}

/* The largest gap that is cheaper to read than to skip; 0 for a link that is down. */
static uint64_t gap_of(const struct gw_link *link)
{
	return link->endpoint ? link->endpoint->transport->range_cost_bytes : 0;
}

static gw_status read_neighbours(struct gw_hop_source *source)
{
	struct gw_hop_share *share = source->share;
	struct gw_engine *engine = source->answers->job->engine;
	gw_status status = parse_records(source);
	if (status == GW_OK)
		status = gw_picks_from_records(&source->picks, &source->rule, share->vertices.data, source->begins.data,
					       source->ends.data, share->count);
	uint64_t edges = source->picks.edge_count;
	if (status != GW_OK || edges == 0)
		return status;
	const struct gw_place *place = &engine->client->indices[source->etype][share->part];
	uint64_t gap_max = gap_of(gw_engine_link(engine, share->part));
	if (gw_vec_reserve(&source->spans, edges * sizeof(struct gw_span)) != GW_OK ||
	    gw_vec_reserve(&source->received_at, edges * 8) != GW_OK ||
	    gw_vec_reserve(&source->picks.neighbours, edges * 8) != GW_OK)
		return GW_NO_MEMORY;
	uint64_t received_bytes = hop_reads_build_spans(source, place, gap_max, &source->link_op.count);
	status = gw_recv_buffer_reserve(&source->received, &engine->slab, received_bytes);
	if (status != GW_OK)
		return status;
	struct gw_span *spans = source->spans.data;
	for (uint64_t i = 0, start = gw_recv_buffer_start(&source->received); i < source->link_op.count; i++)
		spans[i].local += start;
	source->link_op.form = GW_LINK_SPANS;
	source->link_op.buffer = source->received.buffer;
	source->link_op.region = place->region;
	source->link_op.spans = source->spans.data;
	source->link_op.job = source->answers->job;
	source->link_op.done = neighbours_read;
	source->link_op.owner = source;
	gw_engine_post(engine, share->part, &source->link_op);
	return GW_OK;
}

void gw_hop_read(struct gw_hop_source *source)
{
	struct gw_hop_share *share = source->share;
	gw_status status = GW_OK;
	if (share->recorded) {
		status = read_neighbours(source);
		if (status != GW_OK || source->picks.edge_count == 0)
			gw_fan_in_end_one(source->answers, status);
		return;
	}
	source->awaiting = true;
	if (!share->reading)
		status = read_records(share);
	if (status != GW_OK) {
		source->awaiting = false;
		gw_fan_in_end_one(source->answers, status);
	}
}
