/* The optimizer's state of a shard's rows. It takes as much memory as the rows, or more, so the table's keeper
 * allocates it (table_thread.c).
 *
 *   the first push ─▶ its bytes are counted ─▶ WANTED ─▶ the keeper allocates it ─▶ later pushes find it
 *                                                    └─▶ FAILED: one request gets the error; the next one retries
 */
#include <stdio.h>
#include <string.h>

#include "tensors/table_private.h"

/* Requests an optimizer's state from the keeper, or returns the result of that request. GW_AGAIN: the state is not
 * allocated yet. GW_NOT_FOUND: the tensor was deleted; the keeper allocates nothing for deleted tensors. The lock must
 * be held. */
static gw_status shard_ask_state(struct gw_tensor_table *table, struct gw_table_shard *entry,
				 enum gw_optimizer_kind kind, uint64_t bytes)
{
	if (!entry->shard.listed)
		return gw_table_fail_gone();
	if (entry->making == GW_STATE_WANTED)
		return GW_AGAIN;
	if (entry->making == GW_STATE_FAILED) {
		entry->making = GW_STATE_NONE; /* the next request retries */
		return gw_fail_text(entry->status, entry->text);
	}
	char what[48];
	snprintf(what, sizeof(what), "the state of %s for its rows", gw_optimizer_name(kind));
	gw_status status = gw_table_take_bytes(table, entry->shard.plan.name, what, bytes);
	if (status != GW_OK)
		return status;
	entry->state_bytes = bytes;
	entry->bytes += bytes;
	entry->kind = kind;
	entry->making = GW_STATE_WANTED;
	pthread_cond_broadcast(&table->changed);
	return GW_AGAIN;
}

gw_status gw_shard_prepare(struct gw_tensor_table *table, struct gw_shard *shard, enum gw_optimizer_kind kind)
{
	enum gw_optimizer_kind have;
	uint64_t bytes =
		gw_row_store_state_bytes(kind, gw_row_store_rows(shard->store), gw_row_store_columns(shard->store));
	/* Both cases are fast: the state needs no memory, or the rows already have state. */
	if (bytes == 0 || gw_row_store_trained(shard->store, &have))
		return gw_row_store_prepare(shard->store, kind);
	gw_status status = gw_row_store_trainable(shard->store);
	if (status != GW_OK)
		return status;
	pthread_mutex_lock(&table->lock);
	/* The keeper may have allocated the state since the check above. */
	status = gw_row_store_trained(shard->store, &have) ? GW_OK
							   : shard_ask_state(table, gw_entry_of(shard), kind, bytes);
	pthread_mutex_unlock(&table->lock);
	return status == GW_OK ? gw_row_store_prepare(shard->store, kind) : status;
}

struct gw_table_shard *gw_table_take_stateless(const struct gw_tensor_table *table)
{
	struct gw_shard *shard = table->shards;
	while (shard && gw_entry_of(shard)->making != GW_STATE_WANTED)
		shard = shard->next;
	if (shard)
		gw_shard_ref(shard);
	return (struct gw_table_shard *)shard;
}

void gw_shard_make_state(struct gw_tensor_table *table, struct gw_table_shard *entry)
{
	gw_status status = gw_row_store_prepare(entry->shard.store, entry->kind);
	pthread_mutex_lock(&table->lock);
	entry->making = GW_STATE_NONE;
	if (status != GW_OK) {
		entry->making = GW_STATE_FAILED;
		gw_context(status, "tensor \"%s\": no memory for the state of %s, which its first push creates",
			   entry->shard.plan.name, gw_optimizer_name(entry->kind));
		entry->status = status;
		memcpy(entry->text, gw_last_error(), sizeof(entry->text));
		table->bytes -= entry->state_bytes;
		entry->bytes -= entry->state_bytes;
		entry->state_bytes = 0;
	}
	pthread_mutex_unlock(&table->lock);
	gw_shard_unref(table, &entry->shard);
}
