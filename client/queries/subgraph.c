/* The edges among nodes, of one edge type.
 *
 *   nodes -> sections of each owner (subgraph_sections.h) -+-> lists in memory or mapped: walked at once
 *                                                          |   (sampler/induced.h)
 *                                                          +-> lists on the owner's disk: read section after section
 *                                                          |   (client/batch/list_search.h)
 *                                                          +-> else requests of as many sections as fit, one after
 *                                                              another for each owner (protocol/subgraph_call.h)
 *   edges, without those that are held out -> all answered -> sorted (subgraph_found.h) -> gw_edge_list
 *
 * Fails as reads do, with GW_PROTOCOL if a server's reply is impossible, and if memory runs out.
 */
#include <string.h>

#include <graphwire/edges.h>

#include "client/batch/held_out.h"
#include "client/batch/list_search.h"
#include "client/batch/local_lists.h"
#include "client/engine/engine.h"
#include "client/engine/fan_in.h"
#include "client/engine/ticket.h"
#include "client/link/link.h"
#include "client/queries/subgraph_found.h"
#include "client/queries/subgraph_sections.h"
#include "core/memory/alloc.h"
#include "protocol/ops.h"
#include "protocol/subgraph_call.h"
#include "sampler/induced.h"

/* Room for a reply, in bytes, and for each destination; after a reply that was full, twice as much. */
#define REPLY_MIN  (256u << 10)
#define REPLY_EACH 32u
#define REPLY_MAX  (16u << 20)

/* A section of a request. */
struct section {
	struct gw_subgraph_piece piece;
	uint32_t at; /* the request's number of its first destination */
};

/* What one owner is asked about. */
struct subgraph_share {
	struct subgraph_call *call;
	uint32_t part;
	struct gw_subgraph_cursor cursor;
	struct gw_vec sections; /* struct section: of the request under way */
	struct gw_vec request;  /* struct gw_subgraph_call and its arrays */
	struct gw_link_op op;
	/* Of lists on disk. */
	struct gw_list_search search;
	struct gw_subgraph_piece piece;
	struct gw_vec rows; /* uint64_t: of the piece's destinations */
};

struct subgraph_call {
	struct gw_ticket ticket; /* first: the job */
	struct gw_subgraph_spec spec;
	struct gw_held_out *held_out;
	struct gw_edge_list **out, *list;
	struct gw_subgraph_places places;
	struct gw_subgraph_found found;
	struct gw_source_set set;
	struct subgraph_share *shares; /* [num_parts] */
	struct gw_fan_in answers;
};

static void subgraph_ask(struct subgraph_share *share);
static void subgraph_send(struct subgraph_share *share);

static const struct gw_graph_meta *subgraph_meta(const struct subgraph_call *call)
{
	return call->ticket.client->meta;
}

static const struct gw_edge_type *subgraph_type(const struct subgraph_call *call)
{
	return &subgraph_meta(call)->etypes[call->spec.etype];
}

/* The owner's row of a destination's id. */
static uint64_t row_of(const struct subgraph_share *share, uint32_t dst_row)
{
	const struct subgraph_call *call = share->call;
	return (uint64_t)call->spec.dst.ids[dst_row] -
	       subgraph_meta(call)->ntypes[subgraph_type(call)->dst].starts[share->part];
}

static gw_status found_add(struct subgraph_share *share, uint32_t dst_row, uint32_t src_row, uint64_t position)
{
	struct subgraph_call *call = share->call;
	uint64_t id = subgraph_type(call)->starts[share->part] + position;
	const struct gw_exclude *held = call->held_out ? &call->held_out->edges : NULL;
	if (gw_exclude_concerns(held, call->spec.etype) &&
	    gw_exclude_has(held, call->spec.etype, id, (uint64_t)call->spec.src.ids[src_row],
			   (uint64_t)call->spec.dst.ids[dst_row]))
		return GW_OK;
	return gw_subgraph_found_add(&call->found, dst_row, src_row, id);
}

static void subgraph_share_end(struct subgraph_share *share, gw_status status)
{
	gw_fan_in_end_one(&share->call->answers, status);
}

/* --- Lists that this process can address. --- */

static const struct gw_adjacency *subgraph_lists(const struct subgraph_share *share)
{
	const struct gw_client *client = share->call->ticket.client;
	uint32_t etype = share->call->spec.etype;
	return client->standalone ? gw_own_lists(client, share->part, GW_IN, etype)
				  : gw_local_lists(share->call->ticket.job.engine, share->part, GW_IN, etype);
}

static gw_status walk_section(struct subgraph_share *share, const struct gw_adjacency *lists,
			      const struct gw_subgraph_piece *piece)
{
	struct subgraph_call *call = share->call;
	gw_status status = gw_source_set_fill(&call->set, call->places.srcs + piece->src, piece->src_count);
	for (uint64_t i = piece->dst; status == GW_OK && i < piece->dst + piece->dst_count; i++) {
		uint32_t dst_row = call->places.dst_rows[i], place;
		uint64_t budget = UINT64_MAX, position;
		struct gw_induced list;
		status = gw_induced_begin(&list, lists, subgraph_type(call)->order, row_of(share, dst_row), &call->set,
					  0);
		while (status == GW_OK && gw_induced_next(&list, &call->set, &budget, &position, &place))
			status = found_add(share, dst_row, call->places.src_rows[piece->src + place], position);
	}
	return status;
}

static gw_status subgraph_walk(struct subgraph_share *share, const struct gw_adjacency *lists)
{
	struct gw_subgraph_piece piece;
	gw_status status = GW_OK;
	while (status == GW_OK && gw_subgraph_next(&share->cursor, &share->call->places, GW_SUBGRAPH_DSTS_MAX,
						   GW_SUBGRAPH_SRCS_MAX, &piece))
		status = walk_section(share, lists, &piece);
	return status == GW_OK ? GW_OK : gw_context(status, "part %u", share->part);
}

/* --- Lists on disk. --- */

static void search_section(struct subgraph_share *share);

static gw_status section_found(void *owner, uint64_t question, uint64_t row, uint64_t position, uint64_t src)
{
	struct subgraph_share *share = owner;
	const struct gw_subgraph_places *places = &share->call->places;
	const uint64_t *srcs = places->srcs + share->piece.src;
	uint64_t low = 0, high = share->piece.src_count;
	(void)row;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (srcs[middle] < src)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == share->piece.src_count || srcs[low] != src)
		return GW_OK;
	return found_add(share, places->dst_rows[share->piece.dst + question], places->src_rows[share->piece.src + low],
			 position);
}

static void section_searched(void *owner, gw_status status)
{
	struct subgraph_share *share = owner;
	if (status != GW_OK || share->call->answers.status != GW_OK)
		subgraph_share_end(share, status);
	else
		search_section(share);
}

/* Searches the next section, or ends the share. */
static void search_section(struct subgraph_share *share)
{
	const struct gw_subgraph_places *places = &share->call->places;
	if (!gw_subgraph_next(&share->cursor, places, GW_SUBGRAPH_DSTS_MAX, GW_SUBGRAPH_SRCS_MAX, &share->piece)) {
		subgraph_share_end(share, GW_OK);
		return;
	}
	if (gw_vec_reserve(&share->rows, share->piece.dst_count * sizeof(uint64_t)) != GW_OK) {
		subgraph_share_end(share, GW_NO_MEMORY);
		return;
	}
	uint64_t *rows = share->rows.data;
	for (uint32_t i = 0; i < share->piece.dst_count; i++)
		rows[i] = row_of(share, places->dst_rows[share->piece.dst + i]);
	share->search.answers = &share->call->answers;
	share->search.part = share->part;
	share->search.etype = share->call->spec.etype;
	share->search.found = section_found;
	share->search.done = section_searched;
	share->search.owner = share;
	gw_list_search_edges(&share->search, rows, NULL, share->piece.dst_count);
}

/* --- Requests. --- */

static const struct section *section_at(const struct subgraph_share *share, uint32_t number)
{
	return (const struct section *)share->sections.data + number;
}

static gw_status take_edge(void *context, uint32_t number, const struct gw_subgraph_edge *edge)
{
	struct subgraph_share *share = context;
	const struct gw_subgraph_places *places = &share->call->places;
	const struct section *section = section_at(share, number);
	return found_add(share, places->dst_rows[section->piece.dst + (edge->dst - section->at)],
			 places->src_rows[section->piece.src + edge->src], edge->position);
}

static void fill_request(struct subgraph_share *share, const struct gw_subgraph_call *head)
{
	const struct gw_subgraph_places *places = &share->call->places;
	size_t bytes = gw_subgraph_call_bytes(head);
	uint8_t *at = share->request.data;
	struct gw_subgraph_arrays arrays;
	memset(at, 0, bytes);
	memcpy(at, head, sizeof(*head));
	gw_subgraph_call_arrays(head, at, &arrays);
	struct gw_subgraph_section *counts = (void *)(at + (arrays.sections - at));
	uint32_t *rows = (void *)(at + (arrays.dsts - at));
	uint8_t *srcs = at + (arrays.srcs - at);
	for (uint32_t i = 0; i < head->section_count; i++) {
		const struct gw_subgraph_piece *piece = &section_at(share, i)->piece;
		counts[i] = (struct gw_subgraph_section){piece->dst_count, piece->src_count};
		for (uint32_t j = 0; j < piece->dst_count; j++)
			*rows++ = (uint32_t)row_of(share, places->dst_rows[piece->dst + j]);
		for (uint32_t j = 0; j < piece->src_count; j++, srcs += head->id_bytes)
			memcpy(srcs, &places->srcs[piece->src + j], head->id_bytes);
	}
}

/* The head's counts, and the sections. */
static gw_status take_sections(struct subgraph_share *share, struct gw_subgraph_call *head)
{
	struct section section;
	while (head->section_count < GW_SUBGRAPH_SECTIONS_MAX &&
	       gw_subgraph_next(&share->cursor, &share->call->places, GW_SUBGRAPH_DSTS_MAX - head->dst_count,
				GW_SUBGRAPH_SRCS_MAX - head->src_count, &section.piece)) {
		section.at = head->dst_count;
		if (gw_vec_reserve(&share->sections, (head->section_count + 1) * sizeof(section)) != GW_OK)
			return GW_NO_MEMORY;
		((struct section *)share->sections.data)[head->section_count++] = section;
		head->dst_count += section.piece.dst_count;
		head->src_count += section.piece.src_count;
	}
	return GW_OK;
}

static uint32_t reply_room(uint64_t bytes)
{
	return bytes < REPLY_MAX ? (uint32_t)bytes : REPLY_MAX;
}

/* Asks about the next sections, or ends the share. */
static void subgraph_ask(struct subgraph_share *share)
{
	const struct subgraph_call *call = share->call;
	uint64_t sources = subgraph_meta(call)->ntypes[subgraph_type(call)->src].count;
	struct gw_subgraph_call head = {.etype = call->spec.etype, .id_bytes = sources > UINT32_MAX ? 8 : 4};
	gw_status status = take_sections(share, &head);
	if (status == GW_OK && head.section_count)
		status = gw_vec_reserve(&share->request, gw_subgraph_call_bytes(&head));
	if (status != GW_OK || !head.section_count) {
		subgraph_share_end(share, status);
		return;
	}
	head.reply_bytes_max = reply_room(REPLY_MIN + (uint64_t)head.dst_count * REPLY_EACH);
	fill_request(share, &head);
	subgraph_send(share);
}

static gw_status take_subgraph_reply(struct subgraph_share *share, const struct gw_completion *completion)
{
	const struct gw_edge_type *type = subgraph_type(share->call);
	struct gw_subgraph_call *head = share->request.data;
	struct gw_subgraph_arrays arrays;
	struct gw_subgraph_reply reply;
	uint64_t edges = type->starts[share->part + 1] - type->starts[share->part], next = 0;
	gw_subgraph_call_arrays(head, head, &arrays);
	gw_status status = gw_subgraph_reply_parse(completion->reply, completion->reply_bytes, head, &arrays, edges,
						   take_edge, share, &reply, &next);
	if (status != GW_OK)
		return gw_context(status, "part %u", share->part);
	head->first = reply.answered;
	head->from = next;
	head->reply_bytes_max = reply_room(2ull * head->reply_bytes_max);
	return GW_OK;
}

static void subgraph_replied(struct gw_link_op *op, gw_status status, const struct gw_completion *completion)
{
	struct subgraph_share *share = op->owner;
	const struct gw_subgraph_call *head = share->request.data;
	op->owner = NULL;
	if (status == GW_OK)
		status = take_subgraph_reply(share, completion);
	if (status != GW_OK || share->call->answers.status != GW_OK)
		subgraph_share_end(share, status);
	else if (head->first < head->dst_count)
		subgraph_send(share);
	else
		subgraph_ask(share);
}

static void subgraph_send(struct subgraph_share *share)
{
	share->op.form = GW_LINK_REQUEST;
	share->op.call = GW_OP_SUBGRAPH;
	share->op.request = share->request.data;
	share->op.request_bytes = (uint32_t)gw_subgraph_call_bytes(share->request.data);
	share->op.job = share->call->answers.job;
	share->op.done = subgraph_replied;
	share->op.owner = share;
	gw_engine_post(share->call->ticket.job.engine, share->part, &share->op);
}

static void subgraph_share_start(struct subgraph_share *share)
{
	const struct gw_adjacency *lists = subgraph_lists(share);
	share->cursor = gw_subgraph_cursor(&share->call->places, share->part);
	if (lists)
		subgraph_share_end(share, subgraph_walk(share, lists));
	else if (gw_lists_are_on_disk(share->call->ticket.client, share->part, GW_IN, share->call->spec.etype))
		search_section(share);
	else
		subgraph_ask(share);
}

/* --- The job. --- */

static struct subgraph_call *subgraph_of(struct gw_fan_in *answers)
{
	return (struct subgraph_call *)((char *)answers - offsetof(struct subgraph_call, answers));
}

static void subgraph_done(struct gw_fan_in *answers, gw_status status)
{
	struct subgraph_call *call = subgraph_of(answers);
	if (status == GW_OK)
		status = gw_subgraph_found_list(&call->found, call->spec.dst.count, &call->list);
	gw_job_end(&call->ticket.job, status);
}

static void subgraph_cancel_requests(struct gw_fan_in *answers)
{
	struct subgraph_call *call = subgraph_of(answers);
	for (uint32_t p = 0; p < subgraph_meta(call)->num_parts; p++) {
		if (call->shares[p].op.owner && !call->shares[p].op.cancelled)
			gw_link_cancel(&call->shares[p].op);
		gw_list_search_cancel(&call->shares[p].search);
	}
}

static void subgraph_start(struct gw_job *job)
{
	struct subgraph_call *call = (struct subgraph_call *)job;
	gw_fan_in_begin(&call->answers, job, subgraph_cancel_requests, subgraph_done);
	gw_status status = gw_subgraph_places_set(&call->places, subgraph_meta(call), call->spec.etype, &call->spec.src,
						  &call->spec.dst);
	const uint64_t *starts = call->places.dst_starts;
	for (uint32_t p = 0; status == GW_OK && p < subgraph_meta(call)->num_parts && call->answers.status == GW_OK;
	     p++) {
		if (starts[p] == starts[p + 1])
			continue;
		gw_fan_in_add(&call->answers);
		subgraph_share_start(&call->shares[p]);
	}
	gw_fan_in_end_one(&call->answers, status);
}

static void subgraph_cancel(struct gw_job *job)
{
	struct subgraph_call *call = (struct subgraph_call *)job;
	if (call->answers.open)
		gw_fan_in_cancel(&call->answers);
}

static void subgraph_finish(struct gw_ticket *ticket, gw_status status)
{
	struct subgraph_call *call = (struct subgraph_call *)ticket;
	if (status == GW_OK)
		*call->out = call->list;
	else
		gw_edge_list_free(call->list);
	for (uint32_t p = 0; p < subgraph_meta(call)->num_parts; p++) {
		gw_vec_free(&call->shares[p].sections);
		gw_vec_free(&call->shares[p].request);
		gw_vec_free(&call->shares[p].rows);
		gw_list_search_free(&call->shares[p].search);
	}
	gw_free(call->shares);
	gw_subgraph_places_free(&call->places);
	gw_subgraph_found_free(&call->found);
	gw_source_set_free(&call->set);
	gw_held_out_close(call->held_out);
	gw_free(call);
}

/* --- The call. --- */

static gw_status check_subgraph_spec(const struct gw_client *client, const struct gw_subgraph_spec *spec)
{
	if (spec->etype >= client->meta->num_etypes)
		return gw_fail(GW_RANGE, "edge type %u of %u", spec->etype, client->meta->num_etypes);
	if (spec->src.count > UINT32_MAX || spec->dst.count > UINT32_MAX)
		return gw_fail(GW_LIMIT, "%llu sources and %llu destinations in one call: at most 2^32 - 1",
			       (unsigned long long)spec->src.count, (unsigned long long)spec->dst.count);
	if (!spec->src.groups != !spec->dst.groups)
		return gw_fail(GW_INVALID, "only the %s have groups: give groups to both lists, or to none",
			       spec->src.groups ? "sources" : "destinations");
	return gw_held_out_check(client, spec->held_out);
}

/* soon: the caller waits for it at once. */
static gw_status subgraph_submit(struct gw_client *client, const struct gw_subgraph_spec *spec, bool soon,
				 struct gw_edge_list **out, struct gw_ticket **ticket)
{
	*out = NULL;
	*ticket = NULL;
	gw_status status = gw_client_check(client);
	if (status == GW_OK)
		status = check_subgraph_spec(client, spec);
	if (status != GW_OK)
		return status;
	uint32_t parts = client->meta->num_parts;
	struct subgraph_call *call = gw_calloc(1, sizeof(*call));
	struct subgraph_share *shares = gw_calloc(parts, sizeof(*shares));
	if (!call || !shares) {
		gw_free(call);
		gw_free(shares);
		return GW_NO_MEMORY;
	}
	*call = (struct subgraph_call){.ticket = {.client = client,
						  .finish = subgraph_finish,
						  .job = {.start = subgraph_start, .cancel = subgraph_cancel}},
				       .spec = *spec,
				       .held_out = gw_held_out_share(spec->held_out),
				       .out = out,
				       .shares = shares};
	for (uint32_t p = 0; p < parts; p++)
		shares[p] = (struct subgraph_share){.call = call, .part = p};
	gw_engine_submit(gw_client_engine(client), &call->ticket.job, soon);
	*ticket = &call->ticket;
	return GW_OK;
}

gw_status gw_subgraph(struct gw_client *client, const struct gw_subgraph_spec *spec, struct gw_edge_list **out)
{
	struct gw_ticket *ticket;
	gw_status status = subgraph_submit(client, spec, true, out, &ticket);
	return status == GW_OK ? gw_ticket_finish(ticket) : status;
}

gw_status gw_subgraph_start(struct gw_client *client, const struct gw_subgraph_spec *spec, struct gw_edge_list **out,
			    struct gw_ticket **ticket)
{
	return subgraph_submit(client, spec, false, out, ticket);
}
