/* Writes a checkpoint: the client requests rows with their state from the servers, and writes them to its own disk.
 *
 *   list, choose -> a temporary folder -> for each tensor, for each part: head -> arrays begun ->
 *     SAVE, with further requests open while one is written -> arrays ended -> checkpoint.json -> synced and renamed
 *
 * Memory: eight replies, their columns, and two chunks of 4 MiB for each array of a part. If a part is trained for the
 * first time while it is being written, the part is written again with its state. Fails if a server cannot be reached,
 * if a server returns an error, or if a file cannot be written. It then removes the temporary folder.
 */
#include "client/tensors/checkpoint.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "client/engine/cancel_scope.h"
#include "client/engine/remote_call.h"
#include "core/files/staging.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "protocol/ops.h"
#include "tensors/array_file.h"

#define SAVE_SLOTS        8u  /* open requests */
#define SAVE_PAUSE_MAX    1e9 /* seconds: limits a pause to a time that the clock can represent */
#define SAVE_PAUSE_MIN_NS (20 * GW_NS_PER_MS)

/* One SAVE request. Several slots are used in rotation. */
struct save_slot {
	struct gw_remote_call call;
	struct gw_tensor_range_call request;
	bool open;
};

struct save {
	struct gw_client *client;
	struct gw_staging *staging;
	struct gw_checkpoint_index *index;
	uint64_t bytes_per_second, begun_ns, bytes;
	struct save_slot slots[SAVE_SLOTS];
	struct gw_write_behind *writer;
	struct gw_vec column, reply;
	/* The part that is being written. */
	uint32_t tensor, part;
	const struct gw_tensor_handle *handle;
	uint64_t state_floats;
	struct gw_array_out *arrays[GW_CHECKPOINT_ARRAYS];
};

/* --- Arrays of a part. --- */

static void save_drop_arrays(struct save *save)
{
	for (uint32_t a = 0; a < GW_CHECKPOINT_ARRAYS; a++) {
		gw_array_out_drop(save->arrays[a]);
		save->arrays[a] = NULL;
	}
}

static gw_status save_begin_array(struct save *save, uint32_t array)
{
	char folder[GW_CHECKPOINT_PATH_MAX];
	struct gw_checkpoint_shape shape =
		gw_checkpoint_shape_of(&save->index->tensors[save->tensor], save->part, array);
	gw_checkpoint_part_folder(save->tensor, save->part, folder);
	char *path = gw_format("%s/%s/%s", gw_staging_path(save->staging), folder, shape.name);
	gw_status status = path ? gw_array_out_begin(save->writer, path, shape.dtype, shape.ndim, shape.shape,
						     &save->arrays[array])
				: GW_NO_MEMORY;
	gw_free(path);
	return status;
}

static gw_status save_end_arrays(struct save *save)
{
	struct gw_checkpoint_part *part = &save->index->tensors[save->tensor].parts[save->part];
	gw_status status = GW_OK;
	for (uint32_t a = 0; a < GW_CHECKPOINT_ARRAYS && status == GW_OK; a++) {
		part->there[a] = save->arrays[a] != NULL;
		if (!part->there[a])
			continue;
		status = gw_array_out_end(save->arrays[a], &part->digests[a]);
		save->arrays[a] = NULL;
	}
	return status;
}

/* --- Rows from a server. --- */

static void slot_free(struct save_slot *slot)
{
	gw_free(slot->call.memory);
	slot->call.memory = NULL;
}

static void slot_ask(struct save *save, struct save_slot *slot, uint64_t first, uint32_t count)
{
	slot_free(slot);
	slot->request = (struct gw_tensor_range_call){
		.epoch = save->handle->epochs[save->part], .first = first, .count = count};
	gw_remote_call_begin(&slot->call, gw_client_engine(save->client), save->part, GW_OP_TENSOR_SAVE, &slot->request,
			     sizeof(slot->request), NULL, false);
	slot->open = true;
}

static gw_status slot_take(struct save *save, struct save_slot *slot, struct gw_tensor_saved *saved,
			   const uint8_t **state, const uint8_t **rows)
{
	slot->open = false;
	gw_status status = gw_remote_call_end(&slot->call);
	if (status == GW_OK)
		status = gw_tensor_saved_parse(slot->call.kept, slot->call.reply_bytes, slot->request.count,
					       save->handle->layout.row_bytes, saved, state, rows);
	return status;
}

static void slot_drop(struct save_slot *slot)
{
	if (slot->open)
		gw_cancel(&slot->call.ticket);
	slot->open = false;
	slot_free(slot);
}

/* The state is stored row by row. Each of its arrays goes to a file of its own. */
static gw_status save_append_state(struct save *save, const uint8_t *state, uint32_t count)
{
	struct gw_optimizer_array arrays[GW_OPTIMIZER_ARRAYS_MAX];
	const struct gw_checkpoint_tensor *tensor = &save->index->tensors[save->tensor];
	uint32_t n = gw_optimizer_arrays(tensor->kind, save->handle->layout.row_elements, arrays);
	uint64_t at = 0;
	gw_status status = GW_OK;
	for (uint32_t a = 0; a < n && status == GW_OK; a++) {
		size_t bytes = (size_t)arrays[a].columns * sizeof(float);
		status = gw_vec_reserve(&save->column, count * bytes);
		for (uint32_t i = 0; i < count && status == GW_OK; i++)
			memcpy((uint8_t *)save->column.data + i * bytes,
			       state + (i * save->state_floats + at) * sizeof(float), bytes);
		if (status == GW_OK)
			status = gw_array_out_append(save->arrays[GW_CHECKPOINT_STATE + a], save->column.data,
						     count * bytes);
		at += arrays[a].columns;
	}
	return status;
}

/* Sleeps until the rate limit allows as many bytes as were written so far. Skips short sleeps: each sleep lets caches
 * go cold, and wakes three threads at its end. GW_CANCELLED. */
static gw_status save_keep_rate(struct save *save, uint64_t bytes)
{
	save->bytes += bytes;
	if (save->bytes_per_second == 0)
		return gw_cancel_scope_pause(0);
	double seconds = (double)save->bytes / (double)save->bytes_per_second;
	uint64_t until_ns = save->begun_ns + (uint64_t)(fmin(seconds, SAVE_PAUSE_MAX) * 1e9);
	return gw_cancel_scope_pause(until_ns < gw_now_ns() + SAVE_PAUSE_MIN_NS ? 0 : until_ns);
}

/* The first part with state defines the tensor's optimizer. */
static gw_status save_look(struct save *save)
{
	struct gw_checkpoint_tensor *tensor = &save->index->tensors[save->tensor];
	struct gw_tensor_saved saved;
	gw_status status = gw_checkpoint_look(save->client, save->handle, save->part, &save->reply, &saved);
	if (status != GW_OK)
		return status;
	save->state_floats = saved.state_floats;
	if (saved.state_floats == 0)
		return GW_OK;
	enum gw_optimizer_kind kind = (enum gw_optimizer_kind)saved.kind;
	if (saved.state_floats != gw_optimizer_state_floats(kind, save->handle->layout.row_elements) ||
	    (tensor->trained && tensor->kind != kind))
		return gw_fail(GW_PROTOCOL, "part %u: its state does not match its optimizer (%s)", save->part,
			       gw_optimizer_name(kind));
	tensor->trained = true;
	tensor->kind = kind;
	return GW_OK;
}

static gw_status save_begin_arrays(struct save *save)
{
	const struct gw_checkpoint_tensor *tensor = &save->index->tensors[save->tensor];
	struct gw_optimizer_array arrays[GW_OPTIMIZER_ARRAYS_MAX];
	uint32_t n = save->state_floats ? gw_optimizer_arrays(tensor->kind, 1, arrays) : 0;
	gw_status status = save_begin_array(save, GW_CHECKPOINT_ROWS);
	for (uint32_t a = 0; a < n && status == GW_OK; a++)
		status = save_begin_array(save, GW_CHECKPOINT_STATE + a);
	return status;
}

/* Saves all rows of the part, with several requests open. With a rate limit only two are open, so that the servers have
 * time for other clients. GW_AGAIN: the part has got its state meanwhile. */
static gw_status save_rows(struct save *save)
{
	uint64_t all = save->index->tensors[save->tensor].parts[save->part].rows, asked = 0, done = 0;
	uint64_t row_bytes = save->handle->layout.row_bytes + save->state_floats * sizeof(float);
	uint64_t step = GW_TENSOR_PULL_BYTES / row_bytes;
	step = step < 1 ? 1 : step > GW_CHECKPOINT_PIECE ? GW_CHECKPOINT_PIECE : step;
	uint32_t slots = save->bytes_per_second ? 2 : SAVE_SLOTS;
	gw_status status = GW_OK;
	for (uint32_t round = 0; done < all && status == GW_OK; round++) {
		for (uint32_t i = 0; i < slots && asked < all; i++) {
			struct save_slot *slot = &save->slots[(round + i) % slots];
			uint32_t count = (uint32_t)(all - asked < step ? all - asked : step);
			if (slot->open)
				continue;
			slot_ask(save, slot, asked, count);
			asked += count;
		}
		struct save_slot *slot = &save->slots[round % slots];
		struct gw_tensor_saved saved;
		const uint8_t *state, *rows;
		uint32_t count = slot->request.count;
		status = slot_take(save, slot, &saved, &state, &rows);
		if (status == GW_OK && saved.state_floats != save->state_floats)
			status = save->state_floats == 0
					 ? GW_AGAIN
					 : gw_fail(GW_PROTOCOL, "part %u: the shape of its state has changed",
						   save->part);
		if (status == GW_OK && !rows)
			status = gw_fail(GW_PROTOCOL, "part %u: the reply has no rows, though their state is known",
					 save->part);
		if (status == GW_OK)
			status = gw_array_out_append(save->arrays[GW_CHECKPOINT_ROWS], rows,
						     count * save->handle->layout.row_bytes);
		if (status == GW_OK && save->state_floats)
			status = save_append_state(save, state, count);
		done += count;
		if (status == GW_OK)
			status = save_keep_rate(save, count * row_bytes);
	}
	for (uint32_t i = 0; i < slots; i++)
		slot_drop(&save->slots[i]);
	return status;
}

static gw_status save_ids(struct save *save, const struct gw_original_ids *ids)
{
	const struct gw_checkpoint_part *part = &save->index->tensors[save->tensor].parts[save->part];
	int64_t *numbers = gw_malloc(GW_CHECKPOINT_PIECE * sizeof(*numbers));
	gw_status status = numbers ? save_begin_array(save, GW_CHECKPOINT_IDS) : GW_NO_MEMORY;
	for (uint64_t at = 0, n; at < part->rows && status == GW_OK; at += n) {
		n = part->rows - at < GW_CHECKPOINT_PIECE ? part->rows - at : GW_CHECKPOINT_PIECE;
		status = gw_original_ids_read(save->client, ids, part->first + at, n, numbers);
		if (status == GW_OK)
			status = gw_array_out_append(save->arrays[GW_CHECKPOINT_IDS], numbers, n * sizeof(*numbers));
	}
	gw_free(numbers);
	return status;
}

static gw_status save_part(struct save *save, const struct gw_original_ids *ids)
{
	char folder[GW_CHECKPOINT_PATH_MAX];
	gw_checkpoint_part_folder(save->tensor, save->part, folder);
	gw_status status = gw_staging_mkdir(save->staging, folder);
	if (status != GW_OK)
		return status;
	do { /* at most twice: state is never removed */
		save_drop_arrays(save);
		status = save_look(save);
		if (status == GW_OK)
			status = save_begin_arrays(save);
		if (status == GW_OK)
			status = save_rows(save);
	} while (status == GW_AGAIN);
	if (status == GW_OK && (ids->tensor || ids->text))
		status = save_ids(save, ids);
	return status == GW_OK ? save_end_arrays(save) : status;
}

static gw_status save_tensor(struct save *save, uint32_t number, const struct gw_tensor_entry *entry)
{
	const struct gw_tensor *opened = NULL;
	struct gw_original_ids ids;
	struct gw_checkpoint_tensor *tensor = &save->index->tensors[number];
	gw_status status = gw_tensor_open(save->client, entry->name, entry->lifetime, &opened);
	if (status != GW_OK)
		return status;
	save->tensor = number;
	save->handle = (const struct gw_tensor_handle *)opened;
	tensor->plan = save->handle->plan;
	snprintf(tensor->type, sizeof(tensor->type), "%s", gw_plan_type_name(save->client->meta, &tensor->plan));
	const struct gw_tensor_layout *layout = &save->handle->layout;
	for (uint32_t p = 0; p < layout->parts; p++) {
		tensor->parts[p].rows = gw_tensor_layout_count(layout, p);
		tensor->parts[p].first = tensor->parts[p].rows ? gw_tensor_layout_id(layout, p, 0) : 0;
		tensor->parts[p].step = layout->striped ? layout->parts : 1;
	}
	status = gw_original_ids_find(save->client, &tensor->plan, &ids);
	tensor->text_ids = ids.text;
	for (save->part = 0; save->part < layout->parts && status == GW_OK; save->part++)
		status = save_part(save, &ids);
	return status == GW_OK ? status : gw_context(status, "tensor \"%s\"", entry->name);
}

/* --- The complete checkpoint. --- */

static gw_status save_all(struct save *save, const struct gw_tensor_list *list, const char *const *names,
			  uint32_t count)
{
	uint32_t chosen = 0;
	for (uint32_t i = 0; i < list->count; i++)
		chosen += gw_checkpoint_wants(names, count, list->entries[i].name);
	gw_status status = gw_checkpoint_make(save->client->meta->num_parts, chosen, &save->index);
	if (status != GW_OK)
		return status;
	if (getrandom(&save->index->save, sizeof(save->index->save), 0) != sizeof(save->index->save))
		return gw_fail_errno(GW_IO, errno, "no random number for the checkpoint");
	save->index->graph_id = save->client->graph_id;
	snprintf(save->index->graph_name, sizeof(save->index->graph_name), "%s", save->client->meta->graph_name);
	for (uint32_t i = 0, number = 0; i < list->count && status == GW_OK; i++) {
		if (gw_checkpoint_wants(names, count, list->entries[i].name))
			status = save_tensor(save, number++, &list->entries[i]);
	}
	return status == GW_OK ? gw_checkpoint_write(save->index, gw_staging_path(save->staging)) : status;
}

static const char *save_name_at(const void *list, uint32_t i)
{
	return ((const struct gw_tensor_list *)list)->entries[i].name;
}

/* `replace` may delete only a checkpoint, that is, the files that its JSON names. */
static gw_status save_check_folder(const char *folder, bool replace, struct gw_owned **owned)
{
	*owned = NULL;
	if (!replace || access(folder, F_OK) != 0)
		return GW_OK;
	struct gw_checkpoint_index *old;
	gw_status status = gw_checkpoint_read(folder, &old);
	gw_checkpoint_free(old);
	if (status == GW_OK)
		status = gw_checkpoint_owned(folder, owned);
	if (status == GW_NOT_FOUND || status == GW_FORMAT || status == GW_DIGEST || status == GW_VERSION)
		return gw_context(GW_EXISTS, "it exists and is not a checkpoint that can be replaced: remove it");
	return status;
}

gw_status gw_checkpoint_save(struct gw_client *client, const char *folder, const struct gw_checkpoint_options *options)
{
	struct gw_tensor_list *list = NULL;
	struct gw_owned *owned = NULL;
	struct save save = {.client = client, .bytes_per_second = options->bytes_per_second, .begun_ns = gw_now_ns()};
	gw_status status = gw_tensor_list(client, &list);
	if (status == GW_OK && list->count == 0)
		status = gw_fail(GW_NOT_FOUND, "job \"%s\" has no tensors, and no kept tensors exist", client->job);
	if (status == GW_OK)
		status =
			gw_checkpoint_check_names(options->names, options->name_count, save_name_at, list, list->count);
	if (status == GW_OK)
		status = save_check_folder(folder, options->replace, &owned);
	if (status == GW_OK)
		status = gw_staging_begin(folder, options->replace, &save.staging);
	if (status == GW_OK)
		gw_staging_keep_others(save.staging, owned);
	else
		gw_owned_destroy(owned);
	if (status == GW_OK)
		status = gw_write_behind_create(&save.writer);
	if (status == GW_OK)
		status = save_all(&save, list, options->names, options->name_count);
	save_drop_arrays(&save);
	gw_write_behind_destroy(save.writer);
	if (status == GW_OK)
		status = gw_staging_commit(save.staging);
	else
		gw_staging_abort(save.staging);
	gw_vec_free(&save.reply);
	gw_vec_free(&save.column);
	gw_checkpoint_free(save.index);
	gw_tensor_list_free(list);
	if (status == GW_OK)
		return GW_OK;
	return strstr(gw_last_error(), folder) ? gw_context(status, "checkpoint")
					       : gw_context(status, "checkpoint %s", folder);
}
