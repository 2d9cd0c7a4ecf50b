/* Reads a checkpoint from this client's disk into tensors. The graph may have other parts than when the checkpoint was
 * written.
 *
 *   checkpoint.json -> for each tensor: create or open -> for each part of the checkpoint, in pieces:
 *     read and verify -> ids -> gw_update -> state, if any, to the owners of the rows
 *
 * The ids in the checkpoint are used if the graph and its partition are the same, or if the rows belong to no nodes or
 * edges. Otherwise original ids map to the new ids. A pass puts the original ids of some millions of the graph's rows
 * into a map, and reads the complete checkpoint for them. So memory is bounded, and a graph of a few million rows needs
 * one pass.
 *
 * If the checkpoint is replaced meanwhile, its files are those of two checkpoints. The new one is then restored
 * instead.
 *
 * Fails if a file cannot be read or is damaged, if a server cannot be reached or returns an error, and if original ids
 * do not identify rows uniquely.
 */
#include <stdio.h>
#include <string.h>

#include "client/rows/rows_write.h"
#include "client/tensors/checkpoint.h"
#include "client/tensors/state_rows.h"
#include "core/memory/alloc.h"
#include "core/memory/idmap.h"
#include "core/memory/vec.h"
#include "protocol/ops.h"
#include "tensors/array_file.h"

#define RESTORE_IDS   (4u << 20) /* per pass: 100 MB of map */
#define RESTORE_BYTES (1u << 20) /* of rows and state, read at once */
#define RESTORE_TRIES 16         /* of a checkpoint that is replaced meanwhile */

struct restore {
	struct gw_client *client;
	const char *folder;
	const struct gw_checkpoint_index *index;
	uint32_t number; /* of the tensor */
	const struct gw_checkpoint_tensor *tensor;
	const struct gw_tensor_handle *handle;
	/* The optimizer of the checkpoint, or that of the existing tensor, whose state restarts at zero. */
	bool trained;
	enum gw_optimizer_kind kind;
	struct gw_optimizer_array state_arrays[GW_OPTIMIZER_ARRAYS_MAX];
	uint32_t state_count;
	uint64_t state_floats;
	/* By original ids: the map contains those of rows pass_first to pass_first + pass_count - 1 of the graph. */
	bool by_original;
	struct gw_original_ids originals;
	struct gw_hash_map map;
	uint64_t pass_first, pass_count, restored;
	/* A piece. */
	struct gw_array_in *arrays[GW_CHECKPOINT_ARRAYS];
	uint64_t room; /* rows */
	int64_t *ids;
	uint8_t *rows;
	float *state, *column;
	struct gw_vec request, reply;
};

/* --- The tensor. --- */

static gw_status restore_find_type(const struct restore *restore, struct gw_tensor_plan *plan)
{
	const struct gw_graph_meta *meta = restore->client->meta;
	for (plan->type = 0; plan->placement <= GW_PLACE_EDGES; plan->type++) {
		const char *name = gw_plan_type_name(meta, plan);
		if (!*name)
			return gw_fail(GW_NOT_FOUND, "the graph has no type \"%s\"", restore->tensor->type);
		if (strcmp(name, restore->tensor->type) == 0)
			return GW_OK;
	}
	return GW_OK;
}

/* Their initial values do not matter any more. */
static gw_status restore_check_opened(const struct gw_tensor_plan *have, const struct gw_tensor_plan *wanted)
{
	if (have->dtype != wanted->dtype || have->ndim != wanted->ndim || have->placement != wanted->placement ||
	    have->type != wanted->type || memcmp(have->shape, wanted->shape, sizeof(have->shape)) != 0)
		return gw_fail(GW_EXISTS, "the existing tensor has another dtype, shape or placement");
	return GW_OK;
}

static gw_status restore_open_tensor(struct restore *restore)
{
	const struct gw_tensor *opened = NULL;
	struct gw_tensor_plan plan = restore->tensor->plan;
	enum gw_lifetime lifetime = plan.job[0] ? GW_OF_JOB : GW_KEPT;
	if (plan.job[0])
		memcpy(plan.job, restore->client->job, sizeof(plan.job));
	gw_status status = restore_find_type(restore, &plan);
	if (status != GW_OK)
		return status;
	status = gw_tensor_open(restore->client, plan.name, lifetime, &opened);
	if (status == GW_NOT_FOUND)
		status = gw_tensor_create_planned(restore->client, &plan, true, &opened);
	if (status != GW_OK)
		return status;
	restore->handle = (const struct gw_tensor_handle *)opened;
	return restore_check_opened(&restore->handle->plan, &plan);
}

/* If the tensor had no state when the checkpoint was written, finds out whether it was trained since. */
static gw_status restore_look_for_state(struct restore *restore)
{
	restore->trained = restore->tensor->trained;
	restore->kind = restore->tensor->kind;
	gw_status status = GW_OK;
	for (uint32_t p = 0; p < restore->handle->layout.parts && !restore->trained && status == GW_OK; p++) {
		struct gw_tensor_saved saved = {0};
		status = gw_checkpoint_look(restore->client, restore->handle, p, &restore->reply, &saved);
		restore->trained = saved.state_floats > 0;
		restore->kind = (enum gw_optimizer_kind)saved.kind;
	}
	return status;
}

/* Finds out whether the checkpoint's ids are still valid, or else whether original ids can replace them. */
static gw_status restore_choose_path(struct restore *restore)
{
	const struct gw_tensor_plan *plan = &restore->handle->plan;
	bool alike = restore->index->graph_id == restore->client->graph_id, known = true;
	restore->by_original = plan->placement <= GW_PLACE_EDGES && !alike;
	if (!restore->by_original)
		return GW_OK;
	gw_status status = gw_original_ids_find(restore->client, plan, &restore->originals);
	if (status != GW_OK)
		return status;
	/* A graph in one part has the ids of its input, unless it has original ids. */
	for (uint32_t p = 0; p < restore->index->num_parts; p++)
		known = known && (restore->tensor->parts[p].there[GW_CHECKPOINT_IDS] ||
				  (restore->index->num_parts == 1 && plan->placement == GW_PLACE_NODES));
	bool here = restore->originals.tensor || restore->originals.text || restore->client->meta->num_parts == 1;
	if (!known || !here)
		return gw_fail(GW_UNSUPPORTED,
			       "the graph's partition is not the one that this was written with, "
			       "and \"%s\" has no original ids%s%s",
			       restore->tensor->type, here ? " in the checkpoint" : "",
			       plan->placement == GW_PLACE_EDGES ? " (edges with data have them)" : "");
	if (restore->originals.text != restore->tensor->text_ids)
		return gw_fail(GW_UNSUPPORTED, "original ids of \"%s\" are text in the %s, and numbers in the %s",
			       restore->tensor->type, restore->originals.text ? "graph" : "checkpoint",
			       restore->originals.text ? "checkpoint" : "graph");
	return GW_OK;
}

/* --- Pieces. --- */

static void restore_close_arrays(struct restore *restore)
{
	for (uint32_t a = 0; a < GW_CHECKPOINT_ARRAYS; a++) {
		gw_array_in_close(restore->arrays[a]);
		restore->arrays[a] = NULL;
	}
}

static gw_status restore_open_arrays(struct restore *restore, uint32_t part)
{
	char folder[GW_CHECKPOINT_PATH_MAX];
	const struct gw_checkpoint_part *described = &restore->tensor->parts[part];
	gw_status status = GW_OK;
	gw_checkpoint_part_folder(restore->number, part, folder);
	for (uint32_t a = 0; a < GW_CHECKPOINT_STATE + restore->state_count && status == GW_OK; a++) {
		struct gw_checkpoint_shape shape = gw_checkpoint_shape_of(restore->tensor, part, a);
		if (!described->there[a] || (a == GW_CHECKPOINT_IDS && !restore->by_original))
			continue;
		char *path = gw_format("%s/%s/%s", restore->folder, folder, shape.name);
		status = path ? gw_array_in_open(path, shape.dtype, shape.ndim, shape.shape, described->digests[a],
						 &restore->arrays[a])
			      : GW_NO_MEMORY;
		gw_free(path);
	}
	return status;
}

/* Zeros if the part had no state. */
static gw_status restore_read(struct restore *restore, uint64_t n)
{
	uint64_t at = 0;
	gw_status status = gw_array_in_read(restore->arrays[GW_CHECKPOINT_ROWS], restore->rows,
					    n * restore->handle->layout.row_bytes);
	for (uint32_t a = 0; a < restore->state_count && status == GW_OK; a++) {
		struct gw_array_in *array = restore->arrays[GW_CHECKPOINT_STATE + a];
		uint64_t columns = restore->state_arrays[a].columns;
		memset(restore->column, 0, n * columns * sizeof(float));
		if (array)
			status = gw_array_in_read(array, restore->column, n * columns * sizeof(float));
		for (uint64_t i = 0; i < n; i++)
			memcpy(restore->state + i * restore->state_floats + at, restore->column + i * columns,
			       columns * sizeof(float));
		at += columns;
	}
	return status;
}

/* Without inserting the id. */
static bool restore_find(const struct gw_hash_map *map, uint64_t original, uint32_t *number)
{
	uint64_t at = gw_hash_slot_of(map, original);
	while (map->slots[at].key != original && map->slots[at].key != GW_HASH_EMPTY)
		at = (at + 1) & map->mask;
	*number = map->slots[at].number;
	return map->slots[at].key != GW_HASH_EMPTY;
}

/* If original ids are used, keeps only the rows of this pass and moves them to the front. *kept: their number. */
static gw_status restore_name(struct restore *restore, const struct gw_checkpoint_part *part, uint64_t at, uint64_t n,
			      uint64_t *kept)
{
	uint64_t row_bytes = restore->handle->layout.row_bytes, floats = restore->state_floats;
	gw_status status = GW_OK;
	for (uint64_t i = 0; i < n; i++)
		restore->ids[i] = (int64_t)(part->first + (at + i) * part->step);
	*kept = n;
	if (!restore->by_original)
		return GW_OK;
	if (restore->arrays[GW_CHECKPOINT_IDS])
		status = gw_array_in_read(restore->arrays[GW_CHECKPOINT_IDS], restore->ids, n * sizeof(*restore->ids));
	*kept = 0;
	for (uint64_t i = 0; i < n && status == GW_OK; i++) {
		uint32_t number;
		if (!restore_find(&restore->map, (uint64_t)restore->ids[i], &number))
			continue;
		restore->ids[*kept] = (int64_t)(restore->pass_first + number);
		memmove(restore->rows + *kept * row_bytes, restore->rows + i * row_bytes, row_bytes);
		if (floats)
			memmove(restore->state + *kept * floats, restore->state + i * floats, floats * sizeof(float));
		++*kept;
	}
	return status;
}

/* --- State. --- */

/* In one request. */
static gw_status restore_send_state(struct restore *restore, uint32_t part, const uint32_t *which, uint32_t count,
				    uint64_t first, uint64_t floats)
{
	const struct gw_tensor_layout *layout = &restore->handle->layout;
	struct gw_tensor_restore_call call = {.rows = {.epoch = restore->handle->epochs[part], .count = count},
					      .kind = (uint32_t)restore->kind,
					      .first = first,
					      .floats = floats};
	size_t bytes = sizeof(call) + count * (8 + (size_t)floats * sizeof(float));
	gw_status status = gw_vec_reserve(&restore->request, bytes);
	if (status != GW_OK)
		return status;
	uint8_t *to = restore->request.data;
	memcpy(to, &call, sizeof(call));
	to += sizeof(call);
	for (uint32_t i = 0; i < count; i++, to += 8) {
		uint64_t row = gw_tensor_layout_row(layout, part, (uint64_t)restore->ids[which[i]]);
		memcpy(to, &row, 8);
	}
	for (uint32_t i = 0; i < count; i++, to += floats * sizeof(float))
		memcpy(to, restore->state + which[i] * restore->state_floats + first, floats * sizeof(float));
	return gw_numbered_call(restore->client, part, GW_OP_TENSOR_RESTORE, restore->request.data, (uint32_t)bytes,
				NULL);
}

/* A request carries as many rows as fit; a long row takes several requests. */
static gw_status restore_state(struct restore *restore, uint64_t n)
{
	const struct gw_tensor_layout *layout = &restore->handle->layout;
	uint64_t budget = GW_TENSOR_REQUEST_BYTES - sizeof(struct gw_tensor_restore_call) - 8;
	uint64_t columns = budget / sizeof(float), most = budget / (8 + restore->state_floats * sizeof(float));
	columns = columns < restore->state_floats ? columns : restore->state_floats;
	most = most ? most : 1;
	uint32_t *which = gw_malloc(n * sizeof(*which));
	gw_status status = which ? GW_OK : GW_NO_MEMORY;
	for (uint32_t part = 0; part < layout->parts && status == GW_OK; part++) {
		uint32_t count = 0;
		for (uint32_t i = 0; i < n && status == GW_OK; i++) {
			if (gw_tensor_layout_owner(layout, (uint64_t)restore->ids[i]) == part)
				which[count++] = i;
			if (count == 0 || (count < most && i + 1 < n))
				continue;
			for (uint64_t at = 0; at < restore->state_floats && status == GW_OK; at += columns) {
				uint64_t left = restore->state_floats - at;
				status = restore_send_state(restore, part, which, count, at,
							    left < columns ? left : columns);
			}
			count = 0;
		}
	}
	gw_free(which);
	return status;
}

/* --- Passes. --- */

static gw_status restore_part(struct restore *restore, uint32_t number)
{
	const struct gw_checkpoint_part *part = &restore->tensor->parts[number];
	gw_status status = restore_open_arrays(restore, number);
	for (uint64_t at = 0, n, kept; at < part->rows && status == GW_OK; at += n) {
		n = part->rows - at < restore->room ? part->rows - at : restore->room;
		status = restore_read(restore, n);
		if (status == GW_OK)
			status = restore_name(restore, part, at, n, &kept);
		if (status == GW_OK && kept)
			status = gw_update(restore->client, &restore->handle->base.tensor, restore->ids, kept,
					   restore->rows);
		if (status == GW_OK && kept && restore->state_floats)
			status = restore_state(restore, kept);
		restore->restored += status == GW_OK ? kept : 0;
	}
	restore_close_arrays(restore);
	return status;
}

static gw_status restore_parts(struct restore *restore)
{
	gw_status status = GW_OK;
	for (uint32_t p = 0; p < restore->index->num_parts && status == GW_OK; p++)
		status = restore_part(restore, p);
	return status;
}

static gw_status restore_fail_twice(const struct restore *restore, int64_t original)
{
	if (restore->originals.text)
		return gw_fail(GW_UNSUPPORTED, "original ids of \"%s\": two are the same text, or have the same digest",
			       restore->tensor->type);
	return gw_fail(GW_UNSUPPORTED, "several rows of \"%s\" have the original id %lld", restore->tensor->type,
		       (long long)original);
}

static gw_status restore_fill_map(struct restore *restore)
{
	int64_t *originals = gw_malloc(GW_CHECKPOINT_PIECE * sizeof(*originals));
	gw_hash_map_clear(&restore->map);
	gw_status status = originals ? gw_hash_map_reserve(&restore->map, restore->pass_count) : GW_NO_MEMORY;
	for (uint64_t at = 0, n; at < restore->pass_count && status == GW_OK; at += n) {
		n = restore->pass_count - at < GW_CHECKPOINT_PIECE ? restore->pass_count - at : GW_CHECKPOINT_PIECE;
		status = gw_original_ids_read(restore->client, &restore->originals, restore->pass_first + at, n,
					      originals);
		for (uint64_t i = 0; i < n && status == GW_OK; i++) {
			bool is_new = false;
			if ((uint64_t)originals[i] != GW_HASH_EMPTY)
				gw_hash_map_put(&restore->map, (uint64_t)originals[i], (uint32_t)(at + i), &is_new);
			if (!is_new)
				status = restore_fail_twice(restore, originals[i]);
		}
	}
	gw_free(originals);
	return status;
}

static gw_status restore_passes(struct restore *restore)
{
	uint64_t rows = restore->tensor->plan.shape[0];
	if (!restore->by_original)
		return restore_parts(restore);
	gw_status status = gw_hash_map_create(rows < RESTORE_IDS ? rows : RESTORE_IDS, &restore->map);
	for (restore->pass_first = 0; restore->pass_first < rows && status == GW_OK;
	     restore->pass_first += restore->pass_count) {
		uint64_t left = rows - restore->pass_first;
		restore->pass_count = left < RESTORE_IDS ? left : RESTORE_IDS;
		status = restore_fill_map(restore);
		if (status == GW_OK)
			status = restore_parts(restore);
	}
	return status;
}

static gw_status restore_make_room(struct restore *restore)
{
	uint64_t row_bytes = restore->handle->layout.row_bytes, widest = 1;
	if (restore->trained) {
		uint64_t elements = restore->handle->layout.row_elements;
		restore->state_count = gw_optimizer_arrays(restore->kind, elements, restore->state_arrays);
		restore->state_floats = gw_optimizer_state_floats(restore->kind, elements);
	}
	for (uint32_t a = 0; a < restore->state_count; a++)
		widest = restore->state_arrays[a].columns > widest ? restore->state_arrays[a].columns : widest;
	restore->room = RESTORE_BYTES / (row_bytes + restore->state_floats * sizeof(float)) + 1;
	restore->room = restore->room < GW_CHECKPOINT_PIECE ? restore->room : GW_CHECKPOINT_PIECE;
	restore->ids = gw_malloc(restore->room * sizeof(*restore->ids));
	restore->rows = gw_malloc(restore->room * row_bytes);
	restore->state = gw_malloc(restore->room * restore->state_floats * sizeof(float));
	restore->column = gw_malloc(restore->room * widest * sizeof(float));
	return restore->ids && restore->rows && restore->state && restore->column ? GW_OK : GW_NO_MEMORY;
}

static gw_status restore_tensor(struct gw_client *client, const char *folder, const struct gw_checkpoint_index *index,
				uint32_t number)
{
	struct restore restore = {.client = client,
				  .folder = folder,
				  .index = index,
				  .number = number,
				  .tensor = &index->tensors[number]};
	uint64_t rows = restore.tensor->plan.shape[0];
	gw_status status = restore_open_tensor(&restore);
	if (status == GW_OK)
		status = restore_choose_path(&restore);
	if (status == GW_OK)
		status = restore_look_for_state(&restore);
	if (status == GW_OK)
		status = restore_make_room(&restore);
	if (status == GW_OK && restore.state_floats)
		status = gw_tensor_state_make(client, restore.handle, restore.kind, &restore.reply);
	if (status == GW_OK)
		status = restore_passes(&restore);
	if (status == GW_OK && restore.restored != rows)
		status = gw_fail(GW_FORMAT, "it contains %llu of %llu rows", (unsigned long long)restore.restored,
				 (unsigned long long)rows);
	restore_close_arrays(&restore);
	gw_hash_map_destroy(&restore.map);
	gw_vec_free(&restore.request);
	gw_vec_free(&restore.reply);
	gw_free(restore.ids);
	gw_free(restore.rows);
	gw_free(restore.state);
	gw_free(restore.column);
	return status == GW_OK ? status : gw_context(status, "tensor \"%s\"", index->tensors[number].plan.name);
}

static const char *restore_name_at(const void *index, uint32_t i)
{
	return ((const struct gw_checkpoint_index *)index)->tensors[i].plan.name;
}

/* *save: the checkpoint's number. */
static gw_status restore_once(struct gw_client *client, const char *folder, const char *const *names,
			      uint32_t name_count, uint64_t *save)
{
	struct gw_checkpoint_index *index = NULL;
	gw_status status = gw_checkpoint_read(folder, &index);
	*save = status == GW_OK ? index->save : 0;
	if (status == GW_OK)
		status = gw_checkpoint_check_names(names, name_count, restore_name_at, index, index->count);
	for (uint32_t t = 0; status == GW_OK && t < index->count; t++) {
		if (gw_checkpoint_wants(names, name_count, index->tensors[t].plan.name))
			status = restore_tensor(client, folder, index, t);
	}
	gw_checkpoint_free(index);
	return status;
}

/* Whether the error may come from files of two checkpoints, because another one is in the folder now. */
static bool restore_was_replaced(gw_status status, const char *folder, uint64_t save)
{
	struct gw_error_kept kept;
	struct gw_checkpoint_index *index = NULL;
	if (status != GW_NOT_FOUND && status != GW_DIGEST && status != GW_FORMAT)
		return false;
	gw_error_keep(&kept);
	bool replaced = gw_checkpoint_read(folder, &index) == GW_OK && index->save != save;
	gw_checkpoint_free(index);
	gw_error_restore(&kept);
	return replaced;
}

gw_status gw_restore(struct gw_client *client, const char *folder, const char *const *names, uint32_t name_count)
{
	uint64_t save = 0;
	gw_status status = gw_client_check(client);
	for (uint32_t tries = 0; status == GW_OK; tries++) {
		status = restore_once(client, folder, names, name_count, &save);
		if (!restore_was_replaced(status, folder, save))
			break;
		status = tries < RESTORE_TRIES
				 ? GW_OK
				 : gw_fail(GW_BUSY,
					   "another program replaces this checkpoint faster than it can be read: "
					   "end that program, or restore a copy");
	}
	if (status == GW_OK)
		return GW_OK;
	return strstr(gw_last_error(), folder) ? gw_context(status, "restore")
					       : gw_context(status, "restore %s", folder);
}
