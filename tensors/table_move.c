/* Gives a table's tensors to another process, or takes them: see table_move.h. Giving happens under the table's lock,
 * and references each shard, so that none ends meanwhile. The filler and the keeper of the old server may go on: what
 * they make after that is not given. */
#include "tensors/table_move.h"

#include <stdio.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "tensors/table_private.h"

static gw_status shard_give(struct gw_shard *shard, uint32_t parts, struct gw_tensor_moved *out)
{
	const struct gw_table_shard *entry = gw_entry_of(shard);
	*out = (struct gw_tensor_moved){.plan = shard->plan,
					.epoch = shard->epoch,
					.leader = shard->leader,
					.restored = entry->restored,
					.ready = gw_shard_state(shard) == GW_SHARD_READY,
					.memory = {.rows_fd = -1, .state_fd = -1}};
	if (entry->epochs) {
		out->epochs = gw_calloc(parts, sizeof(uint64_t));
		if (!out->epochs)
			return GW_NO_MEMORY;
		memcpy(out->epochs, entry->epochs, parts * sizeof(uint64_t));
	}
	if (out->ready) {
		const struct gw_shard_counts *counts = &shard->counts;
		const _Atomic uint64_t *const all[] = {&counts->written, &counts->pushed, &counts->pulled,
						       &counts->read,    &counts->pulls,  &counts->torn};
		for (int i = 0; i < 6; i++)
			out->counts[i] = atomic_load_explicit(all[i], memory_order_relaxed);
		out->region = entry->region.id;
		out->generation = entry->region.generation;
		gw_row_store_memory(shard->store, &out->memory);
	}
	gw_shard_ref(shard);
	out->shard = shard;
	return GW_OK;
}

static gw_status table_give(struct gw_tensor_table *table, struct gw_tensor_moves *out)
{
	uint64_t now = gw_now_ns();
	out->shards = gw_calloc(table->shard_count + 1, sizeof(*out->shards));
	out->jobs = gw_calloc(table->job_count + 1, sizeof(*out->jobs));
	if (!out->shards || !out->jobs)
		return GW_NO_MEMORY;
	for (struct gw_shard *shard = table->shards; shard; shard = shard->next) {
		gw_status status = shard_give(shard, table->options.meta->num_parts, &out->shards[out->shard_count]);
		if (status != GW_OK)
			return status;
		out->shard_count++;
	}
	for (uint32_t i = 0; i < table->job_count; i++) {
		memcpy(out->jobs[i].name, table->jobs[i].name, sizeof(out->jobs[i].name));
		out->jobs[i].age_ms = (now - table->jobs[i].renewed_ns) / GW_NS_PER_MS;
		out->job_count++;
	}
	out->epochs = table->epochs;
	return GW_OK;
}

gw_status gw_tensor_table_give(struct gw_tensor_table *table, struct gw_tensor_moves *out)
{
	*out = (struct gw_tensor_moves){0};
	pthread_mutex_lock(&table->lock);
	gw_status status = table_give(table, out);
	pthread_mutex_unlock(&table->lock);
	if (status != GW_OK)
		gw_tensor_moves_free(table, out);
	return status;
}

void gw_tensor_moves_free(struct gw_tensor_table *table, struct gw_tensor_moves *moves)
{
	for (uint32_t i = 0; i < moves->shard_count; i++) {
		gw_free(moves->shards[i].epochs);
		gw_row_store_destroy(moves->shards[i].store);
		if (table)
			gw_shard_unref(table, moves->shards[i].shard);
	}
	gw_free(moves->shards);
	gw_free(moves->jobs);
	*moves = (struct gw_tensor_moves){0};
}

gw_status gw_tensor_moved_adopt(const struct gw_tensor_table_options *options, struct gw_tensor_moved *moved)
{
	struct gw_tensor_layout layout = {0};
	char name[GW_NAME_MAX + 16];
	const struct gw_tensor_plan *plan = &moved->plan;
	snprintf(name, sizeof(name), "tensor %s", plan->name);
	gw_status status = gw_tensor_plan_check(options->meta, plan);
	if (status == GW_OK)
		status = gw_tensor_layout_make(options->meta, plan, &layout);
	if (status == GW_OK) {
		struct gw_row_store_options store = {
			.name = name,
			.dtype = (gw_dtype)plan->dtype,
			.rows = gw_tensor_layout_count(&layout, gw_part_number(options->part)),
			.columns = layout.row_elements,
			.seed = gw_shard_seed(options->incarnation, moved->epoch),
			.huge = options->huge,
			.numa = options->numa,
		};
		status = gw_row_store_adopt(&store, &moved->memory, &moved->store);
		moved->memory.rows_fd = moved->memory.state_fd = -1;
	}
	gw_tensor_layout_free(&layout);
	return status == GW_OK ? GW_OK : gw_context(status, "tensor \"%s\"", plan->name);
}

/* A shard whose rows are there. The lock must be held. */
static gw_status table_take_ready(struct gw_tensor_table *table, struct gw_tensor_moved *moved, struct gw_shard **out)
{
	struct gw_table_shard *entry = gw_table_shard_new(table);
	if (!entry)
		return GW_NO_MEMORY;
	struct gw_shard *shard = &entry->shard;
	shard->plan = moved->plan;
	gw_status status = gw_tensor_layout_make(table->options.meta, &moved->plan, &shard->layout);
	if (status != GW_OK) {
		gw_table_shard_drop(table, entry);
		return status;
	}
	_Atomic uint64_t *const all[] = {&shard->counts.written, &shard->counts.pushed, &shard->counts.pulled,
					 &shard->counts.read,    &shard->counts.pulls,  &shard->counts.torn};
	for (int i = 0; i < 6; i++)
		atomic_store_explicit(all[i], moved->counts[i], memory_order_relaxed);
	enum gw_optimizer_kind kind;
	shard->store = moved->store;
	moved->store = NULL;
	entry->restored = moved->restored;
	entry->bytes = gw_row_store_rows(shard->store) * gw_row_store_format(shard->store)->stride;
	if (gw_row_store_trained(shard->store, &kind)) {
		entry->state_bytes = gw_row_store_state_bytes(kind, gw_row_store_rows(shard->store),
							      gw_row_store_columns(shard->store));
		entry->bytes += entry->state_bytes;
	}
	/* More than a smaller limit of this server allows, perhaps: then it creates no further tensors. */
	table->bytes += entry->bytes;
	shard->epoch = moved->epoch;
	shard->leader = moved->leader;
	gw_table_enter(table, entry);
	shard->leader = moved->leader; /* 0: not known yet */
	atomic_store_explicit(&entry->state, GW_SHARD_READY, memory_order_release);
	*out = shard;
	return GW_OK;
}

gw_status gw_tensor_table_take(struct gw_tensor_table *table, struct gw_tensor_moved *moved)
{
	struct gw_shard *shard = NULL;
	uint32_t slot = (uint32_t)(moved->epoch % GW_TABLE_SLOTS);
	const struct gw_tensor_create_call call = {
		.plan = moved->plan, .leader = moved->leader, .restored = moved->restored};
	pthread_mutex_lock(&table->lock);
	gw_status status = GW_OK;
	if (moved->epoch >> 32 != table->line || atomic_load(&table->slots[slot]) ||
	    gw_table_named(table, moved->plan.job, moved->plan.name) || table->shard_count == GW_TENSORS_MAX ||
	    (moved->plan.job[0] && table->job_count == GW_TENSOR_JOBS_MAX && !gw_table_job(table, moved->plan.job)))
		status = gw_fail(GW_EXISTS, "tensor \"%s\" of epoch %llx does not fit into the table", moved->plan.name,
				 (unsigned long long)moved->epoch);
	if (status == GW_OK)
		status = gw_table_start(table);
	if (status == GW_OK)
		status = moved->store ? table_take_ready(table, moved, &shard)
				      : gw_table_take_waiting(table, &call, moved->epoch, &shard);
	if (status == GW_OK) {
		gw_entry_of(shard)->epochs = moved->epochs;
		moved->epochs = NULL;
	}
	pthread_mutex_unlock(&table->lock);
	if (status == GW_OK && moved->ready && moved->generation)
		status = gw_shard_publish_as(table, gw_entry_of(shard), moved->region, moved->generation);
	return status == GW_OK ? GW_OK : gw_context(status, "tensor \"%s\"", moved->plan.name);
}

void gw_tensor_table_take_rest(struct gw_tensor_table *table, const struct gw_tensor_moves *moves)
{
	uint64_t now = gw_now_ns();
	pthread_mutex_lock(&table->lock);
	table->epochs = moves->epochs;
	for (uint32_t i = 0; i < moves->job_count; i++) {
		struct gw_tensor_job *job = gw_table_job(table, moves->jobs[i].name);
		uint64_t age = moves->jobs[i].age_ms * GW_NS_PER_MS;
		if (job)
			job->renewed_ns = age < now ? now - age : 0;
	}
	pthread_mutex_unlock(&table->lock);
}
