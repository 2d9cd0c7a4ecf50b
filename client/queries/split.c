/* Splits ids over ranks: see include/graphwire/split.h.
 *
 *   mask, ids, type -> ids, grouped by the part that owns them (book)
 *                   -> each part's ids to its own ranks, in rank order, up to an even share
 *                   -> the parts' remaining ids, part after part, to the ranks that have too few
 *
 * Fails on ids that do not exist, on contradicting options, if a mask cannot be read, and if memory runs out.
 */
#include <string.h>

#include "client/rows/tensors.h"
#include "client/state/client.h"
#include "core/graph/book.h"
#include "core/memory/alloc.h"
#include "core/numbers/dtype.h"

#define MASK_PIECE (1u << 20) /* rows of a mask read at once */

/* The ids to split, and their partition book. */
struct split_work {
	const struct gw_client *client;
	const struct gw_split_options *options;
	const uint64_t *starts;
	uint64_t count; /* ids of the type */
	struct gw_vec ids, sorted;
	uint64_t n;
	uint64_t *part_starts; /* [num_parts + 1]: of sorted */
	uint64_t *taken;       /* [num_parts]: how many ids of each part its own ranks take */
};

/* The share of a rank: ids of its own part, and remaining ids of other parts. */
struct split_share {
	uint32_t part;
	uint64_t own_first, own_count, rest_first, rest_count;
};

static gw_status check_mask_tensor(const struct split_work *work)
{
	const struct gw_split_options *options = work->options;
	const struct gw_tensor *tensor = options->mask_tensor;
	gw_status status = gw_tensor_check(work->client, tensor);
	if (status != GW_OK)
		return status;
	if (tensor->ndim != 1)
		return gw_fail(GW_INVALID, "mask \"%s\" has %u dimensions: a mask is one flag for each id",
			       tensor->name, tensor->ndim);
	if (tensor->dtype != GW_BOOL && tensor->dtype != GW_UINT8 && tensor->dtype != GW_INT8)
		return gw_fail(GW_INVALID, "mask \"%s\" is %s: a mask is bool, uint8 or int8", tensor->name,
			       gw_dtype_name(tensor->dtype));
	if (tensor->of_edges != options->of_edges || tensor->type != options->type || tensor->shape[0] != work->count)
		return gw_fail(GW_INVALID, "\"%s\" is not a mask of this type: one flag for each of its %llu ids",
			       tensor->name, (unsigned long long)work->count);
	return GW_OK;
}

static gw_status split_check(struct split_work *work)
{
	const struct gw_split_options *options = work->options;
	const struct gw_graph_meta *meta = work->client->meta;
	uint32_t types = options->of_edges ? meta->num_etypes : meta->num_ntypes;
	uint32_t world = options->world ? options->world : 1;
	if (options->type >= types)
		return gw_fail(GW_RANGE, "%s type %u of %u", options->of_edges ? "edge" : "node", options->type, types);
	work->starts = options->of_edges ? meta->etypes[options->type].starts : meta->ntypes[options->type].starts;
	work->count = work->starts[meta->num_parts];
	if ((options->mask != NULL) + (options->mask_tensor != NULL) + (options->ids != NULL) > 1)
		return gw_fail(GW_INVALID, "give at most one of mask, mask_tensor and ids");
	if (options->mask && options->mask_count != work->count)
		return gw_fail(GW_INVALID, "a mask of %llu for %llu ids", (unsigned long long)options->mask_count,
			       (unsigned long long)work->count);
	if (options->rank >= world)
		return gw_fail(GW_RANGE, "rank %u of a world of %u", options->rank, world);
	for (uint32_t r = 0; options->rank_parts && r < world; r++) {
		if (options->rank_parts[r] >= meta->num_parts)
			return gw_fail(GW_RANGE, "rank %u is at part %u of %u", r, options->rank_parts[r],
				       meta->num_parts);
	}
	return options->mask_tensor ? check_mask_tensor(work) : GW_OK;
}

static gw_status split_add(struct split_work *work, uint64_t first, const uint8_t *mask, uint64_t n)
{
	int64_t *ids = work->ids.data;
	for (uint64_t i = 0; i < n; i++) {
		if (mask && mask[i] > 1)
			return gw_fail(GW_INVALID, "row %llu is %u: a mask has 0 and 1 only",
				       (unsigned long long)(first + i), mask[i]);
		if (!mask || mask[i])
			ids[work->n++] = (int64_t)(first + i);
	}
	return GW_OK;
}

/* The rows of a piece are consecutive, so they are read as ranges. */
static gw_status read_mask(struct split_work *work, struct gw_client *client)
{
	uint8_t *mask = gw_malloc(MASK_PIECE);
	int64_t *ids = gw_malloc(MASK_PIECE * sizeof(*ids));
	gw_status status = mask && ids ? GW_OK : GW_NO_MEMORY;
	for (uint64_t first = 0; first < work->count && status == GW_OK; first += MASK_PIECE) {
		uint64_t n = work->count - first < MASK_PIECE ? work->count - first : MASK_PIECE;
		for (uint64_t i = 0; i < n; i++)
			ids[i] = (int64_t)(first + i);
		status = gw_gather(client, work->options->mask_tensor, ids, n, mask);
		if (status == GW_OK)
			status = gw_vec_reserve(&work->ids, (work->n + n) * 8);
		if (status == GW_OK)
			status = split_add(work, first, mask, n);
	}
	gw_free(mask);
	gw_free(ids);
	return status == GW_OK ? GW_OK : gw_context(status, "mask \"%s\"", work->options->mask_tensor->name);
}

static gw_status split_collect(struct split_work *work, struct gw_client *client)
{
	const struct gw_split_options *options = work->options;
	if (options->mask_tensor)
		return read_mask(work, client);
	uint64_t n = options->ids ? options->id_count : work->count;
	gw_status status = gw_vec_reserve(&work->ids, n * 8);
	if (status != GW_OK)
		return status;
	if (!options->ids)
		return split_add(work, 0, (const uint8_t *)options->mask, n);
	for (uint64_t i = 0; i < n; i++) {
		if ((uint64_t)options->ids[i] >= work->count)
			return gw_fail_id("id", options->ids[i], i, work->count);
		((int64_t *)work->ids.data)[work->n++] = options->ids[i];
	}
	return GW_OK;
}

/* The ids of one owner keep their order. */
static gw_status sort_by_owner(struct split_work *work)
{
	uint32_t parts = work->client->meta->num_parts;
	work->part_starts = gw_calloc((size_t)parts + 1, sizeof(uint64_t));
	work->taken = gw_calloc(parts, sizeof(uint64_t));
	if (!work->part_starts || !work->taken || gw_vec_reserve(&work->sorted, work->n * 8) != GW_OK)
		return GW_NO_MEMORY;
	const int64_t *ids = work->ids.data;
	int64_t *sorted = work->sorted.data;
	for (uint64_t i = 0; i < work->n; i++)
		work->part_starts[gw_book_owner(work->starts, parts, (uint64_t)ids[i]) + 1]++;
	for (uint32_t p = 0; p < parts; p++) {
		work->part_starts[p + 1] += work->part_starts[p];
		work->taken[p] = work->part_starts[p];
	}
	for (uint64_t i = 0; i < work->n; i++)
		sorted[work->taken[gw_book_owner(work->starts, parts, (uint64_t)ids[i])]++] = ids[i];
	memset(work->taken, 0, parts * sizeof(uint64_t));
	return GW_OK;
}

/* Computes the shares of all ranks, as each rank does, and returns this rank's share. */
static struct split_share find_share(struct split_work *work)
{
	const struct gw_split_options *options = work->options;
	uint32_t parts = work->client->meta->num_parts, world = options->world ? options->world : 1;
	struct split_share share = {0};
	uint64_t lacking = 0; /* ids that the ranks before could not take from their own parts */
	for (uint32_t r = 0; r < world; r++) {
		uint32_t part = options->rank_parts ? options->rank_parts[r] : (uint32_t)((uint64_t)r * parts / world);
		uint64_t wanted = work->n / world + (r < work->n % world);
		uint64_t left = work->part_starts[part + 1] - work->part_starts[part] - work->taken[part];
		uint64_t own = wanted < left ? wanted : left;
		if (r == options->rank)
			share = (struct split_share){.part = part,
						     .own_first = work->part_starts[part] + work->taken[part],
						     .own_count = own,
						     .rest_first = lacking,
						     .rest_count = wanted - own};
		work->taken[part] += own;
		lacking += wanted - own;
	}
	return share;
}

static void copy_rest(const struct split_work *work, uint64_t first, uint64_t n, int64_t *out)
{
	const int64_t *sorted = work->sorted.data;
	for (uint32_t p = 0; n > 0 && p < work->client->meta->num_parts; p++) {
		uint64_t begin = work->part_starts[p] + work->taken[p], left = work->part_starts[p + 1] - begin;
		if (first >= left) {
			first -= left;
			continue;
		}
		uint64_t piece = left - first < n ? left - first : n;
		memcpy(out, sorted + begin + first, piece * 8);
		out += piece;
		n -= piece;
		first = 0;
	}
}

static gw_status split_divide(struct split_work *work, struct gw_rank_ids **out)
{
	gw_status status = sort_by_owner(work);
	if (status != GW_OK)
		return status;
	struct split_share share = find_share(work);
	uint64_t count = share.own_count + share.rest_count;
	struct gw_rank_ids *split = gw_calloc(1, sizeof(*split));
	int64_t *ids = gw_calloc(count + 1, sizeof(*ids));
	if (!split || !ids) {
		gw_free(split);
		gw_free(ids);
		return GW_NO_MEMORY;
	}
	if (share.own_count)
		memcpy(ids, (const int64_t *)work->sorted.data + share.own_first, share.own_count * 8);
	copy_rest(work, share.rest_first, share.rest_count, ids + share.own_count);
	*split = (struct gw_rank_ids){.count = count, .own_count = share.own_count, .ids = ids};
	*out = split;
	return GW_OK;
}

gw_status gw_split_ids(struct gw_client *client, const struct gw_split_options *options, struct gw_rank_ids **out)
{
	*out = NULL;
	struct split_work work = {.client = client, .options = options};
	gw_status status = gw_client_check(client);
	if (status == GW_OK)
		status = split_check(&work);
	if (status == GW_OK)
		status = split_collect(&work, client);
	if (status == GW_OK)
		status = split_divide(&work, out);
	gw_vec_free(&work.ids);
	gw_vec_free(&work.sorted);
	gw_free(work.part_starts);
	gw_free(work.taken);
	return status;
}

void gw_rank_ids_free(struct gw_rank_ids *split)
{
	if (!split)
		return;
	gw_free((void *)(uintptr_t)split->ids);
	gw_free(split);
}
