/* Finds nodes by their original ids.
 *
 *   original ids -> keys, in the caller's thread -> parts that have their entries (core/graph/id_index.h)
 *     -+-> index in memory or mapped: looked up at once
 *      +-> index on its server's disk: searched by requests for its entries (id_search.h)
 *      +-> else calls of bounded size, one after another for each part (protocol/id_call.h)
 *   all answered -> nodes in the order of the ids; missing and shared ids are named
 *
 * A call is one operation with one deadline. Every answer of a peer is checked: it must be a node, or a mark. Fails as
 * reads do; if the type has no index, or ids of another kind; and on ids that are missing or belong to several nodes.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/engine/engine.h"
#include "client/engine/fan_in.h"
#include "client/engine/ticket.h"
#include "client/queries/id_search.h"
#include "core/graph/book.h"
#include "core/memory/alloc.h"
#include "protocol/id_call.h"
#include "protocol/ops.h"

#define NAMED_MAX 3u  /* ids that an error names */
#define SHOWN_MAX 64u /* bytes of a text that an error shows */

struct ids_call;

/* The keys of one part. */
struct ids_share {
	struct ids_call *call;
	uint32_t part;
	uint64_t first, count, answered; /* of the call's sorted keys */
	struct gw_vec request;
	struct gw_link_op op;
	struct gw_id_search search;
};

struct ids_call {
	struct gw_ticket ticket; /* first: the job */
	uint32_t ntype;
	enum gw_id_form form;
	uint32_t words;
	struct gw_orig_ids ids;
	int64_t *out;
	uint64_t *missing;
	uint64_t *keys;           /* [ids][words], sorted by part */
	uint64_t *at;             /* [ids]: the place of each sorted key in the caller's order */
	uint64_t *nodes;          /* answers, in the order of the keys */
	struct ids_share *shares; /* [num_parts] */
	struct gw_fan_in answers;
};

static const struct gw_graph_meta *ids_meta(const struct ids_call *call)
{
	return call->ticket.client->meta;
}

/* --- Keys. --- */

/* False: no original id can be so large. */
static bool number_at(const struct gw_orig_ids *ids, uint64_t i, int64_t *out)
{
	switch (ids->dtype) {
	case GW_INT32:
		*out = ((const int32_t *)ids->numbers)[i];
		return true;
	case GW_UINT32:
		*out = ((const uint32_t *)ids->numbers)[i];
		return true;
	case GW_UINT64:
		*out = (int64_t)((const uint64_t *)ids->numbers)[i];
		return *out >= 0;
	default:
		*out = ((const int64_t *)ids->numbers)[i];
		return true;
	}
}

/* False: the graph cannot have this id. */
static inline bool ids_key(const struct ids_call *call, uint64_t i, uint64_t key[GW_ID_KEY_WORDS], uint32_t *part)
{
	const struct gw_graph_meta *meta = ids_meta(call);
	uint64_t count = meta->ntypes[call->ntype].count;
	int64_t number;
	if (call->form == GW_IDS_TEXTS) {
		const uint64_t *offsets = call->ids.offsets;
		gw_id_text_key(call->ids.bytes + offsets[i], offsets[i + 1] - offsets[i], key);
		*part = gw_id_key_owner(key[0], meta->num_parts);
		return true;
	}
	if (!number_at(&call->ids, i, &number))
		return false;
	if (call->form == GW_IDS_NUMBERS) {
		key[0] = gw_id_number_key(number);
		*part = gw_id_key_owner(key[0], meta->num_parts);
		return true;
	}
	if ((uint64_t)number >= count)
		return false;
	*part = gw_dense_owner((uint64_t)number, count, meta->num_parts);
	key[0] = (uint64_t)number - gw_dense_start(count, *part, meta->num_parts);
	return true;
}

/* unsorted: [ids][words + 1] of working memory. */
static void sort_keys_by_part(struct ids_call *call, uint64_t *unsorted)
{
	uint32_t words = call->words, parts = ids_meta(call)->num_parts, part;
	assert(parts > 0);
	for (uint64_t i = 0; i < call->ids.count; i++) {
		uint64_t *key = unsorted + i * (words + 1);
		bool possible = ids_key(call, i, key, &part);
		key[words] = possible ? part : UINT64_MAX;
		if (possible)
			call->shares[part].count++;
		else
			call->out[i] = -1;
	}
	for (uint32_t p = 0; p + 1 < parts; p++)
		call->shares[p + 1].first = call->shares[p].first + call->shares[p].count;
	for (uint32_t p = 0; p < parts; p++)
		call->shares[p].count = 0;
	for (uint64_t i = 0; i < call->ids.count; i++) {
		const uint64_t *key = unsorted + i * (words + 1);
		if (key[words] == UINT64_MAX)
			continue;
		struct ids_share *share = &call->shares[key[words]];
		uint64_t to = share->first + share->count++;
		call->at[to] = i;
		for (uint32_t k = 0; k < words; k++)
			call->keys[to * words + k] = key[k];
	}
}

/* --- Answers. --- */

static void ids_share_ask(struct ids_share *share);

static void ids_share_take(struct ids_share *share, uint64_t n)
{
	struct ids_call *call = share->call;
	uint64_t first = share->first + share->answered;
	for (uint64_t i = first; i < first + n; i++)
		call->out[call->at[i]] = (int64_t)call->nodes[i];
	share->answered += n;
}

static void ids_share_end(struct ids_share *share, gw_status status)
{
	gw_fan_in_end_one(&share->call->answers, status);
}

static void ids_replied(struct gw_link_op *op, gw_status status, const struct gw_completion *completion)
{
	struct ids_share *share = op->owner;
	struct ids_call *call = share->call;
	op->owner = NULL;
	if (status == GW_OK) {
		const struct gw_id_call *asked = share->request.data;
		status = gw_id_reply_parse(completion->reply, completion->reply_bytes, asked->count,
					   ids_meta(call)->ntypes[call->ntype].count,
					   call->nodes + share->first + share->answered);
		if (status == GW_OK)
			ids_share_take(share, asked->count);
		else
			gw_context(status, "part %u", share->part);
	}
	if (status != GW_OK || call->answers.status != GW_OK || share->answered == share->count)
		ids_share_end(share, status);
	else
		ids_share_ask(share);
}

static void ids_share_ask(struct ids_share *share)
{
	struct ids_call *call = share->call;
	uint64_t left = share->count - share->answered;
	uint32_t n = left < GW_ID_KEYS_MAX ? (uint32_t)left : GW_ID_KEYS_MAX;
	size_t key_bytes = call->words * sizeof(uint64_t), bytes = sizeof(struct gw_id_call) + n * key_bytes;
	if (gw_vec_reserve(&share->request, bytes) != GW_OK) {
		ids_share_end(share, GW_NO_MEMORY);
		return;
	}
	struct gw_id_call *request = share->request.data;
	*request = (struct gw_id_call){.ntype = call->ntype, .form = call->form, .count = n};
	memcpy(request + 1, call->keys + (share->first + share->answered) * call->words, n * key_bytes);
	share->op.form = GW_LINK_REQUEST;
	share->op.call = GW_OP_IDS;
	share->op.request = request;
	share->op.request_bytes = (uint32_t)bytes;
	share->op.job = call->answers.job;
	share->op.done = ids_replied;
	share->op.owner = share;
	gw_engine_post(call->ticket.job.engine, share->part, &share->op);
}

/* --- Indexes on disk. --- */

static void ids_share_search(struct ids_share *share);

static void ids_searched(void *owner, gw_status status)
{
	struct ids_share *share = owner;
	struct ids_call *call = share->call;
	if (status == GW_OK) {
		status = gw_id_answers_check(share->search.nodes, share->search.n,
					     ids_meta(call)->ntypes[call->ntype].count);
		if (status == GW_OK)
			ids_share_take(share, share->search.n);
		else
			gw_context(status, "part %u", share->part);
	}
	if (status != GW_OK || call->answers.status != GW_OK || share->answered == share->count)
		ids_share_end(share, status);
	else
		ids_share_search(share);
}

/* A bounded number of keys at a time: each may read a window of entries. */
static void ids_share_search(struct ids_share *share)
{
	struct ids_call *call = share->call;
	struct gw_id_search *search = &share->search;
	const uint64_t first = share->first + share->answered, left = share->count - share->answered;
	search->answers = &call->answers;
	search->part = share->part;
	search->ntype = call->ntype;
	search->keys = call->keys + first * call->words;
	search->n = left < GW_ID_KEYS_MAX ? left : GW_ID_KEYS_MAX;
	search->nodes = call->nodes + first;
	search->done = ids_searched;
	search->owner = share;
	gw_id_search_start(search);
}

/* --- Indexes that this process can address. --- */

/* The address of a part's array, or NULL. */
static const uint8_t *ids_address(const struct ids_share *share, const struct gw_place *place, uint32_t align)
{
	const struct gw_client *client = share->call->ticket.client;
	const uint8_t *base = NULL;
	if (place->on_disk)
		return NULL;
	if (client->standalone) { /* standalone */
		base = gw_arena_base(gw_part_arena(client->servers[share->part].local));
	} else {
		const struct gw_link *link = gw_engine_link(share->call->ticket.job.engine, share->part);
		if (link->state == GW_LINK_OPEN && link->mapped)
			base = gw_endpoint_map(link->endpoint, &link->endpoint->peer.regions[place->region]);
	}
	return base && ((uintptr_t)base + place->offset) % align == 0 ? base + place->offset : NULL;
}

/* False: this process cannot address the index. */
static bool ids_local_index(const struct ids_share *share, struct gw_id_index *out)
{
	const struct ids_call *call = share->call;
	const struct gw_client *client = call->ticket.client;
	const struct gw_id_places *places = &client->id_places[call->ntype];
	uint32_t p = share->part;
	if (!client->standalone && client->neighbours != GW_NEIGHBOURS_AUTO)
		return false;
	*out = (struct gw_id_index){
		.form = call->form, .rows = places->rows[p], .words = call->words, .parts = client->meta->num_parts};
	if (call->form == GW_IDS_DENSE) {
		out->node_bytes = (uint8_t)places->nodes[p].element_bytes;
		out->nodes = ids_address(share, &places->nodes[p], out->node_bytes);
		return out->nodes != NULL;
	}
	out->entries = (const uint64_t *)(const void *)ids_address(share, &places->entries[p], 8);
	out->bucket_bytes = (uint8_t)places->buckets[p].element_bytes;
	out->bucket_count = places->bucket_counts[p];
	out->buckets = ids_address(share, &places->buckets[p], out->bucket_bytes);
	return out->entries && out->buckets;
}

static void ids_share_start(struct ids_share *share)
{
	struct ids_call *call = share->call;
	struct gw_id_index index;
	if (gw_id_index_is_on_disk(call->ticket.client, share->part, call->ntype)) {
		ids_share_search(share);
		return;
	}
	if (!ids_local_index(share, &index)) {
		ids_share_ask(share);
		return;
	}
	uint64_t *nodes = call->nodes + share->first;
	gw_status status = gw_id_index_look_up(&index, call->keys + share->first * call->words, share->count, nodes);
	if (status == GW_OK)
		status = gw_id_answers_check(nodes, share->count, ids_meta(call)->ntypes[call->ntype].count);
	if (status == GW_OK)
		ids_share_take(share, share->count);
	else
		status = gw_context(GW_PROTOCOL, "part %u", share->part);
	ids_share_end(share, status);
}

/* --- The result. --- */

static void ids_show(const struct ids_call *call, uint64_t i, char *text, size_t room)
{
	const struct gw_orig_ids *ids = &call->ids;
	if (call->form != GW_IDS_TEXTS) {
		int64_t number;
		if (number_at(ids, i, &number))
			snprintf(text, room, "%" PRId64, number);
		else
			snprintf(text, room, "%" PRIu64, (uint64_t)number);
		return;
	}
	uint64_t bytes = ids->offsets[i + 1] - ids->offsets[i];
	size_t shown = bytes < SHOWN_MAX ? (size_t)bytes : SHOWN_MAX;
	while (shown > 0 && shown < bytes && ((unsigned char)ids->bytes[ids->offsets[i] + shown] & 0xc0) == 0x80)
		shown--; /* do not cut a character of UTF-8 */
	char copy[SHOWN_MAX + 1];
	for (size_t k = 0; k < shown; k++) {
		unsigned char c = (unsigned char)ids->bytes[ids->offsets[i] + k];
		copy[k] = c < 32 || c == 127 ? '?' : (char)c; /* an error is one line */
	}
	copy[shown] = '\0';
	snprintf(text, room, "\"%s%s\"", copy, bytes > SHOWN_MAX ? "..." : "");
}

static gw_status name_missing(const struct ids_call *call, uint64_t missing)
{
	char text[GW_ERROR_TEXT_MAX / 2];
	size_t used = 0;
	uint32_t named = 0;
	for (uint64_t i = 0; i < call->ids.count && named < NAMED_MAX && used + 2ull * SHOWN_MAX < sizeof(text); i++) {
		char shown[SHOWN_MAX + 16];
		if (call->out[i] != -1)
			continue;
		ids_show(call, i, shown, sizeof(shown));
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s (position %" PRIu64 ")",
					 named++ ? ", " : "", shown, i);
	}
	return gw_fail(GW_NOT_FOUND, "%" PRIu64 " of %" PRIu64 " original ids belong to no node of type %s: %s%s",
		       missing, call->ids.count, ids_meta(call)->ntypes[call->ntype].name, text,
		       named < missing ? ", ..." : "");
}

static gw_status check_found(struct ids_call *call)
{
	uint64_t missing = 0;
	for (uint64_t i = 0; i < call->ids.count; i++) {
		char shown[SHOWN_MAX + 16];
		if (call->out[i] >= 0)
			continue;
		if (call->out[i] == -1) {
			missing++;
			continue;
		}
		ids_show(call, i, shown, sizeof(shown));
		return gw_fail(GW_INVALID,
			       "the original id %s (position %" PRIu64
			       ") belongs to several nodes of type %s, of them %llu is the first: "
			       "the input has this id more than once",
			       shown, i, ids_meta(call)->ntypes[call->ntype].name,
			       (unsigned long long)((uint64_t)call->out[i] & ~GW_ID_SHARED));
	}
	if (call->missing)
		*call->missing = missing;
	else if (missing)
		return name_missing(call, missing);
	return GW_OK;
}

/* --- The job. --- */

static struct ids_call *ids_call_of(struct gw_fan_in *answers)
{
	return (struct ids_call *)((char *)answers - offsetof(struct ids_call, answers));
}

/* Runs in the engine, which owns the searches' receive buffers. */
static void ids_answered(struct gw_fan_in *answers, gw_status status)
{
	struct ids_call *call = ids_call_of(answers);
	struct gw_error_kept kept;
	gw_error_keep(&kept);
	for (uint32_t p = 0; p < ids_meta(call)->num_parts; p++)
		gw_id_search_free(&call->shares[p].search);
	gw_error_restore(&kept);
	if (status == GW_OK)
		status = check_found(call);
	gw_job_end(&call->ticket.job, status);
}

static void ids_cancel_requests(struct gw_fan_in *answers)
{
	struct ids_call *call = ids_call_of(answers);
	for (uint32_t p = 0; p < ids_meta(call)->num_parts; p++) {
		if (call->shares[p].op.owner && !call->shares[p].op.cancelled)
			gw_link_cancel(&call->shares[p].op);
		gw_id_search_cancel(&call->shares[p].search);
	}
}

static void ids_start(struct gw_job *job)
{
	struct ids_call *call = (struct ids_call *)job;
	gw_fan_in_begin(&call->answers, job, ids_cancel_requests, ids_answered);
	for (uint32_t p = 0; p < ids_meta(call)->num_parts && call->answers.status == GW_OK; p++) {
		if (call->shares[p].count == 0)
			continue;
		gw_fan_in_add(&call->answers);
		ids_share_start(&call->shares[p]);
	}
	gw_fan_in_end_one(&call->answers, GW_OK);
}

static void ids_cancel(struct gw_job *job)
{
	struct ids_call *call = (struct ids_call *)job;
	if (call->answers.open)
		gw_fan_in_cancel(&call->answers);
}

static void ids_share_free(struct ids_share *share)
{
	gw_vec_free(&share->request);
	gw_id_search_free(&share->search);
}

static void ids_free(struct ids_call *call)
{
	for (uint32_t p = 0; call->shares && p < ids_meta(call)->num_parts; p++)
		ids_share_free(&call->shares[p]);
	gw_free(call->shares);
	gw_free(call->keys);
	gw_free(call->at);
	gw_free(call->nodes);
	gw_free(call);
}

static void ids_finish(struct gw_ticket *ticket, gw_status status)
{
	(void)status;
	ids_free((struct ids_call *)ticket);
}

/* --- The call. --- */

static gw_status check_texts(const struct gw_orig_ids *ids)
{
	for (uint64_t i = 0; i < ids->count; i++) {
		if (ids->offsets[i + 1] < ids->offsets[i])
			return gw_fail(GW_INVALID, "the offsets of the texts descend at position %" PRIu64, i);
	}
	return GW_OK;
}

static gw_status ids_check(const struct gw_client *client, uint32_t ntype, const struct gw_orig_ids *ids)
{
	if (ntype >= client->meta->num_ntypes)
		return gw_fail(GW_RANGE, "node type %u of %u", ntype, client->meta->num_ntypes);
	const char *name = client->meta->ntypes[ntype].name;
	uint32_t form = client->id_places[ntype].form;
	bool texts = ids->offsets != NULL;
	if (ids->count > UINT32_MAX)
		return gw_fail(GW_LIMIT, "%" PRIu64 " ids in one call: at most 2^32 - 1", ids->count);
	if (form == GW_IDS_NONE)
		return gw_fail(
			GW_UNSUPPORTED,
			"node type %s has no index of original ids: an older version made the graph: make it again",
			name);
	if (ids->count && texts != (form == GW_IDS_TEXTS))
		return gw_fail(
			GW_INVALID,
			"the original ids of node type %s are %s, and the call has %s: \"7\" and 7 are different ids",
			name, texts ? "integers" : "texts", texts ? "texts" : "integers");
	bool integers =
		ids->dtype == GW_INT32 || ids->dtype == GW_INT64 || ids->dtype == GW_UINT32 || ids->dtype == GW_UINT64;
	if (ids->count && !texts && (!integers || !ids->numbers))
		return gw_fail(GW_INVALID, "original ids are int32, int64, uint32, uint64 or texts");
	return texts ? check_texts(ids) : GW_OK;
}

static gw_status ids_make(struct gw_client *client, uint32_t ntype, const struct gw_orig_ids *ids, int64_t *nodes,
			  uint64_t *missing, struct ids_call **out)
{
	uint32_t form = client->id_places[ntype].form, words = gw_id_key_words((enum gw_id_form)form);
	struct ids_call *call = gw_calloc(1, sizeof(*call));
	if (!call)
		return GW_NO_MEMORY;
	*call = (struct ids_call){
		.ticket = {.client = client, .finish = ids_finish, .job = {.start = ids_start, .cancel = ids_cancel}},
		.ntype = ntype,
		.form = (enum gw_id_form)form,
		.words = words,
		.ids = *ids,
		.out = nodes,
		.missing = missing};
	uint64_t *unsorted = gw_malloc(ids->count * (words + 1) * sizeof(*unsorted));
	call->keys = gw_malloc(ids->count * words * sizeof(*call->keys));
	call->at = gw_malloc(ids->count * sizeof(*call->at));
	call->nodes = gw_malloc(ids->count * sizeof(*call->nodes));
	call->shares = gw_calloc(client->meta->num_parts, sizeof(*call->shares));
	if (!unsorted || !call->keys || !call->at || !call->nodes || !call->shares) {
		gw_free(unsorted);
		ids_free(call);
		return GW_NO_MEMORY;
	}
	for (uint32_t p = 0; p < client->meta->num_parts; p++) {
		call->shares[p].call = call;
		call->shares[p].part = p;
	}
	sort_keys_by_part(call, unsorted);
	gw_free(unsorted);
	*out = call;
	return GW_OK;
}

static gw_status ids_submit(struct gw_client *client, uint32_t ntype, const struct gw_orig_ids *ids, int64_t *nodes,
			    uint64_t *missing, bool soon, struct gw_ticket **ticket)
{
	struct ids_call *call;
	*ticket = NULL;
	gw_status status = gw_client_check(client);
	if (status == GW_OK)
		status = ids_check(client, ntype, ids);
	if (status == GW_OK)
		status = ids_make(client, ntype, ids, nodes, missing, &call);
	if (status != GW_OK)
		return status;
	gw_engine_submit(gw_client_engine(client), &call->ticket.job, soon);
	*ticket = &call->ticket;
	return GW_OK;
}

gw_status gw_node_ids(struct gw_client *client, uint32_t ntype, const struct gw_orig_ids *ids, int64_t *nodes,
		      uint64_t *missing)
{
	struct gw_ticket *ticket;
	gw_status status = ids_submit(client, ntype, ids, nodes, missing, true, &ticket);
	return status == GW_OK ? gw_ticket_finish(ticket) : status;
}

gw_status gw_node_ids_start(struct gw_client *client, uint32_t ntype, const struct gw_orig_ids *ids, int64_t *nodes,
			    uint64_t *missing, struct gw_ticket **ticket)
{
	return ids_submit(client, ntype, ids, nodes, missing, false, ticket);
}
