/* Fills a shard with its initial values. Random values depend on original ids, so they are the same for every partition
 * of the graph. For original ids that are text, the digest of the bytes is used. */
#include <stdio.h>
#include <string.h>

#include "core/numbers/digest.h"
#include "core/numbers/rng.h"
#include "tensors/table_private.h"

/* Data for the callbacks of the row store. At most one source of ids and one source of rows is set. */
struct fill_source {
	const struct gw_tensor_layout *layout;
	uint32_t part;
	const void *numbers;     /* original ids, */
	uint8_t number_bytes;    /* ... of this many bytes each */
	const uint64_t *offsets; /* original ids that are text */
	const uint8_t *bytes;
	const uint8_t *rows; /* to copy */
	struct gw_row_store *store;
	struct gw_arena *apart; /* memory of `rows`, if they were loaded only for this fill */
};

static uint64_t fill_original(const void *context, uint64_t row)
{
	const struct fill_source *source = context;
	if (source->numbers)
		return gw_load_id(source->numbers, source->number_bytes, row);
	if (source->offsets)
		return gw_digest(source->bytes + source->offsets[row], source->offsets[row + 1] - source->offsets[row]);
	return gw_tensor_layout_id(source->layout, source->part, row);
}

static gw_status fill_copy(const void *context, uint64_t row, void *payload)
{
	const struct fill_source *source = context;
	if (source->store)
		return gw_row_store_read(source->store, &row, 1, payload);
	memcpy(payload, source->rows + row * source->layout->row_bytes, source->layout->row_bytes);
	return GW_OK;
}

static const struct gw_array *fill_array(const struct gw_tensor_table_options *options,
					 const struct gw_tensor_plan *plan, const char *name)
{
	char key[GW_EDGE_FOLDER_MAX + 64];
	const struct gw_graph_meta *meta = options->meta;
	bool edges = plan->placement == GW_PLACE_EDGES;
	snprintf(key, sizeof(key), "%s/%s/%s", edges ? "edge" : "node",
		 edges ? meta->etypes[plan->type].folder : meta->ntypes[plan->type].name, name);
	return gw_part_array(options->part, key);
}

static void fill_find_ids(const struct gw_tensor_table_options *options, const struct gw_tensor_plan *plan,
			  struct fill_source *source)
{
	if (plan->placement > GW_PLACE_EDGES)
		return;
	const struct gw_array *numbers = fill_array(options, plan, "orig_id");
	const struct gw_array *offsets = fill_array(options, plan, "orig_id.offsets");
	const struct gw_array *bytes = fill_array(options, plan, "orig_id.bytes");
	if (numbers) {
		source->numbers = numbers->data;
		source->number_bytes = (uint8_t)numbers->row_bytes;
	} else if (offsets && bytes) {
		source->offsets = (const void *)offsets->data;
		source->bytes = bytes->data;
	}
}

/* The array of a mutable feature is not loaded, since the tensor's rows replace it. So the filler reads the array from
 * its file. */
static gw_status fill_load_apart(const struct gw_tensor_table_options *options, const struct gw_array *array,
				 struct fill_source *source)
{
	const struct gw_arena_options arena = {
		.name = "graphwire-feature", .huge = options->huge, .numa = options->numa};
	gw_status status = gw_part_load_apart(options->part, array, &arena, &source->apart);
	if (status == GW_OK && source->apart)
		source->rows = gw_arena_base(source->apart);
	return status;
}

static gw_status fill_find_rows(const struct gw_tensor_table_options *options, const struct gw_table_shard *entry,
				struct fill_source *source)
{
	const struct gw_tensor_plan *plan = &entry->shard.plan;
	if (entry->source) {
		source->store = entry->source->shard.store;
		return GW_OK;
	}
	const struct gw_array *array = gw_part_array(options->part, plan->source);
	uint64_t rows = gw_tensor_layout_count(&entry->shard.layout, source->part);
	if (!array || array->meta->dtype != (gw_dtype)plan->dtype || array->rows != rows ||
	    array->row_bytes != entry->shard.layout.row_bytes)
		return gw_fail(GW_NOT_FOUND, "tensor \"%s\": no array \"%s\" of its dtype and shape exists to copy",
			       plan->name, plan->source);
	source->rows = array->data;
	return array->apart ? fill_load_apart(options, array, source) : GW_OK;
}

uint64_t gw_shard_seed(uint64_t incarnation, uint64_t epoch)
{
	return gw_mix64(incarnation ^ epoch);
}

gw_status gw_shard_fill(const struct gw_tensor_table_options *options, struct gw_table_shard *entry)
{
	const struct gw_tensor_plan *plan = &entry->shard.plan;
	uint32_t part = gw_part_number(options->part);
	struct fill_source source = {.layout = &entry->shard.layout, .part = part};
	char name[GW_NAME_MAX + 16];
	snprintf(name, sizeof(name), "tensor %s", plan->name);
	struct gw_row_store_options store = {
		.name = name,
		.dtype = (gw_dtype)plan->dtype,
		.rows = gw_tensor_layout_count(&entry->shard.layout, part),
		.columns = entry->shard.layout.row_elements,
		.seed = gw_shard_seed(options->incarnation, entry->shard.epoch),
		.huge = options->huge,
		.numa = options->numa,
		.initial = {.how = (enum gw_initial)plan->initial,
			    .low = plan->low,
			    .high = plan->high,
			    .seed = plan->seed,
			    .original = fill_original,
			    .copy = fill_copy,
			    .context = &source},
		.filled = &entry->filled,
	};
	gw_status status = GW_OK;
	fill_find_ids(options, plan, &source);
	if (plan->initial == GW_INITIAL_COPY && entry->restored)
		store.initial.how = GW_INITIAL_ZERO;
	else if (plan->initial == GW_INITIAL_COPY)
		status = fill_find_rows(options, entry, &source);
	if (status == GW_OK)
		status = gw_row_store_create(&store, &entry->shard.store);
	gw_arena_destroy(source.apart);
	return status;
}
