/* The subgraph request: the edges between the destinations and the sources of each section.
 *
 *   reserve the reply and the set ─▶ each section: fill the set ─▶ each destination: walk its list ─▶ append the edges
 *                                        └─▶ the slice's work is used up: other clients are served, then the call
 *                                            continues
 *
 * The reply's bytes do not depend on where slices end. Sections, rows and sources come from a peer, so each is checked.
 * Fails on a malformed call, on a row that this part does not have, and if memory runs out.
 */
#include <string.h>

#include "protocol/subgraph_call.h"
#include "sampler/induced.h"
#include "server/disk_lists.h"
#include "server/server.h"

#define REPLY_BYTES_MAX (16u << 20) /* even if a client asks for more */
#define SLICE_WORK      16384u      /* about as many entries of lists are looked up in one slice */
#define LIST_WORK       16u         /* the cost of a list, in entries */
#define CHUNK           256u        /* edges written at once */

/* The state that is kept between slices. */
struct subgraph_work {
	bool begun, walking;
	uint32_t section, section_end; /* the next section; the first destination after the current one */
	uint32_t section_srcs;         /* the current section's first source */
	struct gw_subgraph_section current;
	uint32_t answered, edges;
	uint32_t last; /* the destination of the last edge */
	uint64_t room; /* bytes that the reply still has room for */
	struct gw_vec srcs;
	struct gw_source_set set;
	struct gw_induced list;
};

/* One slice of the call. */
struct subgraph_slice {
	struct gw_subgraph_call call;
	struct gw_subgraph_arrays arrays;
	const struct gw_adjacency *lists;
	enum gw_list_order order;
	struct gw_reply *reply;
	struct subgraph_work *work;
	uint64_t budget;
};

static void subgraph_work_end(void *memory)
{
	struct subgraph_work *work = memory;
	gw_vec_free(&work->srcs);
	gw_source_set_free(&work->set);
}

static void subgraph_spend(struct subgraph_slice *slice, uint64_t work)
{
	slice->budget -= work < slice->budget ? work : slice->budget;
}

static gw_status subgraph_begin(struct subgraph_slice *slice)
{
	const struct gw_subgraph_call *call = &slice->call;
	uint32_t bytes = call->reply_bytes_max < REPLY_BYTES_MAX ? call->reply_bytes_max : REPLY_BYTES_MAX;
	gw_status status = gw_subgraph_sections_check(call, &slice->arrays);
	if (status == GW_OK)
		status = gw_reply_reserve(slice->reply, bytes + (uint64_t)call->src_count * GW_SOURCE_SET_BYTES);
	if (status != GW_OK)
		return status;
	if (!gw_reply_extend(slice->reply, sizeof(struct gw_subgraph_reply)))
		return GW_NO_MEMORY;
	slice->work->room = bytes - sizeof(struct gw_subgraph_reply);
	slice->work->answered = slice->work->last = call->first;
	slice->work->begun = true;
	return GW_OK;
}

/* The section of the next destination. Skipped sections have all of their destinations before `first`. */
static gw_status section_begin(struct subgraph_slice *slice)
{
	struct subgraph_work *work = slice->work;
	while (work->section_end <= work->answered) {
		work->section_srcs += work->current.src_count;
		work->current = gw_subgraph_section(&slice->arrays, work->section++);
		work->section_end += work->current.dst_count;
		subgraph_spend(slice, 1);
	}
	if (gw_vec_reserve(&work->srcs, work->current.src_count * sizeof(uint64_t)) != GW_OK)
		return GW_NO_MEMORY;
	gw_status status = gw_subgraph_srcs(&slice->call, &slice->arrays, work->section_srcs, work->current.src_count,
					    work->srcs.data);
	subgraph_spend(slice, work->current.src_count);
	return status == GW_OK ? gw_source_set_fill(&work->set, work->srcs.data, work->current.src_count) : status;
}

/* As many edges of the list as the slice and the reply have room for. *full: the reply has no room for another edge,
 * and the list may have one. */
static gw_status write_list_edges(struct subgraph_slice *slice, bool *full)
{
	struct subgraph_work *work = slice->work;
	struct gw_subgraph_edge edge = {.dst = work->answered};
	uint8_t bytes[CHUNK * GW_SUBGRAPH_EDGE_MAX];
	uint32_t n = 0, used = 0;
	while (n < CHUNK && work->room - used >= GW_SUBGRAPH_EDGE_MAX &&
	       gw_induced_next(&work->list, &work->set, &slice->budget, &edge.position, &edge.src)) {
		used += gw_subgraph_edge_print(&edge, work->last, bytes + used);
		work->last = edge.dst;
		n++;
	}
	*full = work->room - used < GW_SUBGRAPH_EDGE_MAX && work->list.at < work->list.end;
	if (!n)
		return GW_OK;
	uint8_t *out = gw_reply_extend(slice->reply, used);
	if (!out)
		return GW_NO_MEMORY;
	memcpy(out, bytes, used);
	work->room -= used;
	work->edges += n;
	return GW_OK;
}

static gw_status answer_dst(struct subgraph_slice *slice, bool *full)
{
	struct subgraph_work *work = slice->work;
	gw_status status = GW_OK;
	if (!work->walking) {
		uint64_t from = work->answered == slice->call.first ? slice->call.from : 0;
		if (work->answered >= work->section_end)
			status = section_begin(slice);
		if (status == GW_OK)
			status = gw_induced_begin(&work->list, slice->lists, slice->order,
						  gw_subgraph_dst(&slice->arrays, work->answered), &work->set, from);
		work->walking = status == GW_OK;
		subgraph_spend(slice, LIST_WORK);
	}
	if (status == GW_OK)
		status = write_list_edges(slice, full);
	if (status == GW_OK && work->list.at == work->list.end) {
		work->walking = false;
		work->answered++;
	}
	return status;
}

gw_status gw_server_subgraph(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	const struct gw_server *server = context;
	struct subgraph_slice slice = {.reply = reply, .budget = SLICE_WORK};
	gw_status status = gw_subgraph_call_parse(call->bytes, call->byte_count, server->meta->num_etypes, &slice.call,
						  &slice.arrays);
	if (status != GW_OK)
		return status;
	slice.lists = gw_part_adjacency(server->part, slice.call.etype);
	slice.order = server->meta->etypes[slice.call.etype].order;
	status = gw_disk_lists_refuse(server->meta, slice.call.etype, slice.lists);
	if (status != GW_OK)
		return status;
	slice.work = gw_reply_work(reply, sizeof(*slice.work), subgraph_work_end);
	if (!slice.work)
		return GW_NO_MEMORY;
	if (!slice.work->begun)
		status = subgraph_begin(&slice);
	bool full = false;
	while (status == GW_OK && !full && slice.work->answered < slice.call.dst_count) {
		if (!slice.budget)
			return GW_AGAIN;
		status = answer_dst(&slice, &full);
	}
	if (status != GW_OK)
		return status;
	uint32_t bytes;
	const struct gw_subgraph_reply head = {.answered = slice.work->answered, .edge_count = slice.work->edges};
	memcpy(gw_reply_data(reply, &bytes), &head, sizeof(head));
	return GW_OK;
}
