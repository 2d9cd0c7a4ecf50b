/* Calls about complete tensors: deleting, listing, counting. Also reads and writes the rows of one part without ids. */
#include <stdlib.h>
#include <string.h>

#include "client/engine/remote_call.h"
#include "client/rows/rows_write.h"
#include "client/rows/tensor_handles.h"
#include "client/rows/tensors.h"
#include "core/memory/alloc.h"
#include "protocol/ops.h"
#include "tensors/table.h"

#define PART_PIECE  65536u      /* rows whose ids are built at once */
#define COUNT_BYTES (16u << 20) /* bytes of rows that one request counts; a longer row has a request of its own */

/* --- Deleting. --- */

gw_status gw_tensor_delete(struct gw_client *client, const char *name, enum gw_lifetime lifetime)
{
	struct gw_tensor_delete_call call = {0};
	uint64_t found = 0;
	gw_status status = gw_client_check(client);
	if (status != GW_OK)
		return status;
	if (!name || !gw_tensor_name_valid(name))
		return gw_fail(GW_INVALID, "a tensor's name \"%.64s\": letters, digits and \"._-:/+\", at most %d",
			       name ? name : "", GW_TENSOR_NAME_MAX);
	memcpy(call.name, name, strlen(name) + 1);
	if (lifetime == GW_OF_JOB)
		memcpy(call.job, client->job, sizeof(call.job));
	gw_tensor_handles_delete(client, call.job, name);
	/* Delete at part 0 last: while part 0 has the tensor, no client can create a new tensor of this name from the
	 * remaining parts. */
	for (uint32_t p = client->meta->num_parts; p-- > 0 && status == GW_OK;) {
		uint64_t deleted = 0;
		status = gw_numbered_call(client, p, GW_OP_TENSOR_DELETE, &call, sizeof(call), &deleted);
		found += deleted;
	}
	if (status == GW_OK && found == 0)
		status = gw_fail(GW_NOT_FOUND, "tensor \"%s\" does not exist", name);
	return status;
}

gw_status gw_tensor_end_job(struct gw_client *client, const char *job, uint64_t *count)
{
	char name[GW_JOB_NAME_MAX + 1] = {0};
	*count = 0;
	gw_status status = gw_client_check(client);
	if (status != GW_OK)
		return status;
	job = job ? job : client->job;
	if (!gw_job_name_valid(job))
		return gw_fail(GW_INVALID, "job \"%.80s\": letters, digits and \"._-:/+\", at most %d", job,
			       GW_JOB_NAME_MAX);
	memcpy(name, job, strlen(job) + 1);
	gw_tensor_handles_delete(client, name, NULL);
	/* A failure of one part does not stop the requests to the others. */
	struct gw_error_kept kept;
	for (uint32_t p = client->meta->num_parts; p-- > 0;) {
		uint64_t found = 0;
		gw_status one = gw_numbered_call(client, p, GW_OP_TENSOR_END_JOB, name, sizeof(name), &found);
		*count = found > *count ? found : *count;
		if (one != GW_OK && status == GW_OK) {
			status = one;
			gw_error_keep(&kept);
		}
	}
	if (status != GW_OK)
		gw_error_restore(&kept);
	return status;
}

/* --- Listing. --- */

struct listing {
	struct gw_tensor_list list; /* first */
	struct gw_tensor_entry *entries;
	size_t room;
};

static gw_status listing_add(struct listing *listing, const struct gw_tensor_listed *listed)
{
	const struct gw_tensor_plan *plan = &listed->plan;
	enum gw_lifetime lifetime = plan->job[0] ? GW_OF_JOB : GW_KEPT;
	for (uint32_t i = 0; i < listing->list.count; i++) {
		struct gw_tensor_entry *entry = &listing->entries[i];
		if (entry->lifetime == lifetime && strcmp(entry->name, plan->name) == 0) {
			entry->bytes += listed->bytes;
			return GW_OK;
		}
	}
	if (listing->list.count == listing->room) {
		size_t room = listing->room ? 2 * listing->room : 16;
		struct gw_tensor_entry *entries = gw_realloc(listing->entries, room, sizeof(*entries));
		if (!entries)
			return GW_NO_MEMORY;
		listing->entries = entries;
		listing->room = room;
	}
	struct gw_tensor_entry *entry = &listing->entries[listing->list.count++];
	*entry = (struct gw_tensor_entry){.lifetime = lifetime,
					  .dtype = (gw_dtype)plan->dtype,
					  .placement = (enum gw_placement)plan->placement,
					  .type = plan->type,
					  .ndim = plan->ndim,
					  .bytes = listed->bytes};
	memcpy(entry->name, plan->name, sizeof(entry->name));
	memcpy(entry->shape, plan->shape, sizeof(entry->shape));
	return GW_OK;
}

/* Checks that a part continues its list in order: first kept tensors by name, then the job's tensors by name, each
 * once. The check ensures that no server can send an endless list. */
static gw_status listing_check(const struct gw_tensor_list_call *call, const struct gw_tensor_plan *plan, uint32_t part)
{
	bool kept = plan->job[0] == 0;
	bool own = kept || strcmp(plan->job, call->job) == 0;
	bool after = kept == (call->after_kept != 0) ? strcmp(plan->name, call->after) > 0 : !kept;
	return own && after
		       ? GW_OK
		       : gw_fail(GW_PROTOCOL, "part %u lists tensor \"%s\" where it has no place", part, plan->name);
}

static gw_status listing_read(struct gw_client *client, uint32_t part, struct listing *listing, struct gw_vec *reply,
			      struct gw_tensor_listed *page)
{
	struct gw_tensor_list_call call = {.after_kept = 1};
	uint32_t count = 0, all = 0;
	memcpy(call.job, client->job, sizeof(call.job));
	do {
		size_t bytes = 0;
		gw_status status = gw_remote_call(client, part, GW_OP_TENSOR_LIST, &call, sizeof(call), reply, &bytes);
		if (status == GW_OK)
			status = gw_tensor_listed_parse(reply->data, bytes, page, &count);
		for (uint32_t i = 0; i < count && status == GW_OK; i++) {
			status = listing_check(&call, &page[i].plan, part);
			if (status == GW_OK)
				status = listing_add(listing, &page[i]);
			memcpy(call.after, page[i].plan.name, sizeof(call.after));
			call.after_kept = page[i].plan.job[0] == 0;
		}
		if (status == GW_OK && (all += count) > GW_TENSORS_MAX)
			status = gw_fail(GW_PROTOCOL, "part %u lists more than %d tensors", part, GW_TENSORS_MAX);
		if (status != GW_OK)
			return status;
	} while (count == GW_TENSOR_LIST_MAX);
	return GW_OK;
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct gw_tensor_entry *)a)->name, ((const struct gw_tensor_entry *)b)->name);
}

gw_status gw_tensor_list(struct gw_client *client, struct gw_tensor_list **out)
{
	struct gw_vec reply = {0};
	*out = NULL;
	gw_status status = gw_client_check(client);
	if (status != GW_OK)
		return status;
	struct listing *listing = gw_calloc(1, sizeof(*listing));
	struct gw_tensor_listed *page = gw_calloc(GW_TENSOR_LIST_MAX, sizeof(*page));
	if (!listing || !page)
		status = GW_NO_MEMORY;
	for (uint32_t p = 0; p < client->meta->num_parts && status == GW_OK; p++)
		status = listing_read(client, p, listing, &reply, page);
	gw_free(page);
	gw_vec_free(&reply);
	if (status != GW_OK) {
		gw_tensor_list_free(listing ? &listing->list : NULL);
		return status;
	}
	if (listing->list.count > 1)
		qsort(listing->entries, listing->list.count, sizeof(*listing->entries), compare_entries);
	listing->list.entries = listing->entries;
	*out = &listing->list;
	return GW_OK;
}

void gw_tensor_list_free(struct gw_tensor_list *list)
{
	struct listing *listing = (struct listing *)list;
	if (!listing)
		return;
	gw_free(listing->entries);
	gw_free(listing);
}

/* --- Counting. --- */

static gw_status writable_check(struct gw_client *client, const struct gw_tensor *tensor)
{
	gw_status status = gw_client_check(client);
	if (status == GW_OK)
		status = gw_tensor_check(client, tensor);
	if (status == GW_OK && !tensor->writable)
		status = gw_fail(GW_INVALID, "\"%s\" is a feature: gw_gather reads it", tensor->name);
	return status;
}

/* A part's rows are counted range by range, so that each request ends soon. All parts count at the same time. */
struct count {
	struct gw_remote_call call;
	struct gw_tensor_range_call range;
	struct gw_vec reply;
	bool open;
};

static gw_status count_take(struct count *count, uint64_t *out)
{
	count->open = false;
	gw_status status = gw_remote_call_end(&count->call);
	if (status == GW_OK && count->call.reply_bytes != 8)
		status = gw_fail(GW_PROTOCOL, "a count in %zu bytes", count->call.reply_bytes);
	if (status == GW_OK)
		*out += gw_tensor_number(count->reply.data, 0);
	return status;
}

/* As far as they exist. Waits for all requests that were begun. */
static gw_status count_range(struct gw_client *client, const struct gw_tensor_handle *handle, struct count *counts,
			     uint64_t first, uint64_t n, uint64_t *out)
{
	struct gw_error_kept kept;
	gw_status status = GW_OK;
	for (uint32_t p = 0; p < client->meta->num_parts; p++) {
		struct count *count = &counts[p];
		uint64_t rows = gw_tensor_layout_count(&handle->layout, p);
		if (first > 0 && first >= rows)
			continue;
		count->range = (struct gw_tensor_range_call){.epoch = handle->epochs[p],
							     .first = first,
							     .count = (uint32_t)(rows - first < n ? rows - first : n)};
		gw_remote_call_begin(&count->call, gw_client_engine(client), p, GW_OP_TENSOR_COUNT, &count->range,
				     sizeof(count->range), &count->reply, true);
		count->open = true;
	}
	for (uint32_t p = 0; p < client->meta->num_parts; p++) {
		gw_status one = counts[p].open ? count_take(&counts[p], out) : GW_OK;
		if (one == GW_OK || status != GW_OK)
			continue;
		status = one;
		gw_error_keep(&kept);
	}
	if (status != GW_OK)
		gw_error_restore(&kept);
	return status;
}

gw_status gw_tensor_count_nonzero(struct gw_client *client, const struct gw_tensor *tensor, uint64_t *out)
{
	const struct gw_tensor_handle *handle = (const struct gw_tensor_handle *)tensor;
	uint64_t found = 0, most = 0;
	*out = 0;
	gw_status status = writable_check(client, tensor);
	if (status != GW_OK)
		return status;
	uint32_t parts = client->meta->num_parts;
	struct count *counts = gw_calloc(parts, sizeof(*counts));
	if (!counts)
		return GW_NO_MEMORY;
	for (uint32_t p = 0; p < parts; p++) {
		uint64_t rows = gw_tensor_layout_count(&handle->layout, p);
		most = rows > most ? rows : most;
	}
	uint64_t first = 0, n = COUNT_BYTES / tensor->row_bytes + 1;
	do {
		status = count_range(client, handle, counts, first, n, &found);
		first += n;
	} while (status == GW_OK && first < most);
	for (uint32_t p = 0; p < parts; p++)
		gw_vec_free(&counts[p].reply);
	gw_free(counts);
	*out = status == GW_OK ? found : 0;
	return gw_tensor_name_gone(status, tensor->name);
}

/* --- Rows of a part. --- */

gw_status gw_tensor_part_rows(struct gw_client *client, const struct gw_tensor *tensor, uint32_t part, uint64_t *count)
{
	gw_status status = writable_check(client, tensor);
	if (status != GW_OK)
		return status;
	if (part >= client->meta->num_parts)
		return gw_fail(GW_RANGE, "part %u: the graph has parts 0 to %u", part, client->meta->num_parts - 1);
	*count = gw_tensor_layout_count(&((const struct gw_tensor_handle *)tensor)->layout, part);
	return GW_OK;
}

static gw_status part_check(struct gw_client *client, const struct gw_tensor *tensor, uint32_t part, uint64_t first,
			    uint64_t n)
{
	uint64_t count = 0;
	gw_status status = gw_tensor_part_rows(client, tensor, part, &count);
	if (status == GW_OK && (first > count || n > count - first))
		status = gw_fail(GW_RANGE, "\"%s\": rows %llu to %llu of part %u, which has %llu", tensor->name,
				 (unsigned long long)first, (unsigned long long)(first + n), part,
				 (unsigned long long)count);
	return status;
}

/* Moves rows piece by piece, with their ids. in: the buffer to read into; if NULL, writes the rows of `from`. */
static gw_status part_move(struct gw_client *client, const struct gw_tensor *tensor, uint32_t part, uint64_t first,
			   uint64_t n, uint8_t *in, const uint8_t *from)
{
	const struct gw_tensor_layout *layout = &((const struct gw_tensor_handle *)tensor)->layout;
	uint64_t room = n < PART_PIECE ? n : PART_PIECE;
	int64_t *ids = gw_calloc(room ? room : 1, sizeof(*ids));
	gw_status status = ids ? GW_OK : GW_NO_MEMORY;
	for (uint64_t at = 0, count; at < n && status == GW_OK; at += count) {
		count = n - at < room ? n - at : room;
		for (uint64_t i = 0; i < count; i++)
			ids[i] = (int64_t)gw_tensor_layout_id(layout, part, first + at + i);
		if (in)
			status = gw_gather(client, tensor, ids, count, in + at * tensor->row_bytes);
		else
			status = gw_update(client, tensor, ids, count, from + at * tensor->row_bytes);
	}
	gw_free(ids);
	return status;
}

gw_status gw_tensor_part_read(struct gw_client *client, const struct gw_tensor *tensor, uint32_t part, uint64_t first,
			      uint64_t n, void *out)
{
	gw_status status = part_check(client, tensor, part, first, n);
	return status == GW_OK ? part_move(client, tensor, part, first, n, out, NULL) : status;
}

gw_status gw_tensor_part_write(struct gw_client *client, const struct gw_tensor *tensor, uint32_t part, uint64_t first,
			       uint64_t n, const void *rows)
{
	gw_status status = part_check(client, tensor, part, first, n);
	return status == GW_OK ? part_move(client, tensor, part, first, n, NULL, rows) : status;
}
