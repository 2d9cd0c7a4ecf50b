/* Tables of tensors: see table.h. This file creates, completes and deletes tensors under the table's lock, which is
 * held only for short work, such as the search of a list. Filling and freeing take long: the table's threads do them
 * without the lock (table_thread.c). Pulls and pushes do not take the lock: see table_shards.c. */
#include "tensors/table.h"

#include <assert.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "tensors/table_private.h"

gw_status gw_tensor_table_create(const struct gw_tensor_table_options *options, struct gw_tensor_table **out)
{
	pthread_condattr_t monotonic;
	*out = NULL;
	struct gw_tensor_table *table = gw_calloc(1, sizeof(*table));
	if (!table)
		return GW_NO_MEMORY;
	table->options = *options;
	table->line = options->incarnation >> 32 | 1;
	pthread_mutex_init(&table->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&table->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	*out = table;
	return GW_OK;
}

void gw_tensor_table_destroy(struct gw_tensor_table *table)
{
	if (!table)
		return;
	assert(!table->filler.started && !table->keeper.started);
	/* The service has ended, and with it the last reader of each shard. */
	for (struct gw_shard *shard; (shard = gw_table_take_released(table));)
		gw_shard_unref(table, shard);
	while (table->shards) {
		struct gw_shard *shard = table->shards;
		gw_table_unlist(table, shard);
		gw_shard_unref(table, shard);
	}
	while (table->spare_users) {
		struct gw_shard_users *users = table->spare_users;
		table->spare_users = users->next_spare;
		gw_free(users);
	}
	for (uint32_t i = 0; i < GW_TENSOR_SCRATCHES_MAX; i++)
		gw_row_push_scratch_free(&table->scratches[i].scratch);
	pthread_cond_destroy(&table->changed);
	pthread_mutex_destroy(&table->lock);
	gw_free(table);
}

const struct gw_tensor_table_options *gw_tensor_table_options(const struct gw_tensor_table *table)
{
	return &table->options;
}

/* --- Creating. All of it runs with the lock held. --- */

/* The caller gets a reference to the source's shard. */
static gw_status table_find_source(const struct gw_tensor_table *table, const struct gw_tensor_plan *plan,
				   struct gw_table_shard **out)
{
	*out = NULL;
	if (plan->initial != GW_INITIAL_COPY || (plan->source[0] != '=' && plan->source[0] != '+'))
		return GW_OK;
	struct gw_shard *shard = gw_table_named(table, plan->source[0] == '=' ? plan->job : "", plan->source + 1);
	if (!shard || gw_shard_state(shard) != GW_SHARD_READY)
		return gw_fail(GW_NOT_FOUND, "tensor \"%s\": tensor \"%s\", which it copies, does not exist",
			       plan->name, plan->source + 1);
	struct gw_tensor_plan wanted = *plan;
	wanted.initial = shard->plan.initial;
	wanted.low = shard->plan.low;
	wanted.high = shard->plan.high;
	wanted.seed = shard->plan.seed;
	memcpy(wanted.source, shard->plan.source, sizeof(wanted.source));
	gw_status status = gw_tensor_plan_match(&shard->plan, &wanted);
	if (status != GW_OK)
		return gw_context(GW_INVALID, "tensor \"%s\" as a copy", plan->name);
	gw_shard_ref(shard);
	*out = gw_entry_of(shard);
	return GW_OK;
}

static gw_status table_check_room(struct gw_tensor_table *table, const struct gw_tensor_plan *plan)
{
	if (table->shard_count == GW_TENSORS_MAX)
		return gw_fail(GW_LIMIT, "tensor \"%s\": %d tensors exist already: delete some", plan->name,
			       GW_TENSORS_MAX);
	if (plan->job[0] && table->job_count == GW_TENSOR_JOBS_MAX && !gw_table_job(table, plan->job))
		return gw_fail(GW_LIMIT, "%d jobs have tensors here already: end one of them", GW_TENSOR_JOBS_MAX);
	return GW_OK;
}

/* epoch 0: a new one. */
static gw_status table_add(struct gw_tensor_table *table, const struct gw_tensor_create_call *call, uint64_t epoch,
			   struct gw_shard **out)
{
	const struct gw_graph_meta *meta = table->options.meta;
	uint32_t part = gw_part_number(table->options.part);
	const struct gw_tensor_plan *plan = &call->plan;
	struct gw_row_format format;
	uint64_t bytes = 0;
	gw_status status = table_check_room(table, plan);
	if (status == GW_OK)
		status = gw_tensor_plan_check(meta, plan);
	if (status == GW_OK)
		status = gw_table_start(table);
	if (status != GW_OK)
		return status;
	struct gw_table_shard *entry = gw_table_shard_new(table);
	if (!entry)
		return GW_NO_MEMORY;
	entry->shard.plan = *plan;
	status = gw_tensor_layout_make(meta, plan, &entry->shard.layout);
	if (status == GW_OK)
		status = gw_row_store_measure((gw_dtype)plan->dtype, gw_tensor_layout_count(&entry->shard.layout, part),
					      entry->shard.layout.row_elements, &format, &bytes);
	entry->restored = call->restored != 0;
	if (status == GW_OK && !entry->restored)
		status = table_find_source(table, plan, &entry->source);
	if (status == GW_OK)
		status = gw_table_take_bytes(table, plan->name, "its rows", bytes);
	if (status != GW_OK) {
		/* This does not release the last reference, since the source is still listed. A release of the last one
		 * would take the lock, which this thread holds. */
		if (entry->source)
			gw_shard_unref(table, &entry->source->shard);
		gw_table_shard_drop(table, entry);
		return status;
	}
	entry->bytes = bytes;
	entry->shard.leader = call->leader;
	entry->shard.epoch = epoch;
	gw_table_enter(table, entry);
	pthread_cond_broadcast(&table->changed);
	*out = &entry->shard;
	return GW_OK;
}

/* Whether a shard belongs to a deleted tensor: the call names a later tensor of this name, which part 0 has created. */
static bool is_left_over(const struct gw_shard *shard, const struct gw_tensor_create_call *call)
{
	return call->leader >> 32 == shard->leader >> 32 && call->leader > shard->leader;
}

static gw_status shard_check(const struct gw_tensor_table *table, struct gw_shard *shard,
			     const struct gw_tensor_create_call *call)
{
	gw_status status = call->open ? GW_OK : gw_tensor_plan_match(&shard->plan, &call->plan);
	if (status == GW_OK && !shard->leader)
		shard->leader = call->leader;
	if (status != GW_OK || !call->leader || call->leader == shard->leader)
		return status;
	if (call->leader >> 32 == shard->leader >> 32)
		return gw_fail(GW_NOT_FOUND, "tensor \"%s\" was deleted while it was created", shard->plan.name);
	return gw_fail(GW_NOT_FOUND,
		       "tensor \"%s\": part %u has rows of another tensor of this name, since a server ended: "
		       "delete it, and create it again",
		       shard->plan.name, gw_part_number(table->options.part));
}

/* *dropped: a shard that is not listed any more, which the caller must release. */
static gw_status table_make(struct gw_tensor_table *table, const struct gw_tensor_create_call *call,
			    struct gw_shard **dropped, struct gw_shard **out)
{
	struct gw_shard *shard = gw_table_named(table, call->plan.job, call->plan.name);
	if (shard && is_left_over(shard, call)) {
		gw_table_unlist(table, shard);
		*dropped = shard;
		shard = NULL;
	}
	if (!shard && call->open)
		return gw_fail(GW_NOT_FOUND, "tensor \"%s\" does not exist", call->plan.name);
	gw_table_job_renew(table, call->plan.job);
	gw_status status = shard ? shard_check(table, shard, call) : table_add(table, call, 0, &shard);
	if (status != GW_OK)
		return status;
	if (gw_shard_state(shard) == GW_SHARD_FAILED) {
		gw_table_unlist(table, shard);
		*dropped = shard;
		return gw_fail_text(gw_entry_of(shard)->status, gw_entry_of(shard)->text);
	}
	gw_shard_ref(shard);
	*out = shard;
	return GW_OK;
}

gw_status gw_tensor_table_make(struct gw_tensor_table *table, const struct gw_tensor_create_call *call,
			       struct gw_tensor_state *state, const uint64_t **epochs, struct gw_shard **out)
{
	struct gw_shard *dropped = NULL;
	*out = NULL;
	*epochs = NULL;
	pthread_mutex_lock(&table->lock);
	gw_status status = table_make(table, call, &dropped, out);
	if (*out) {
		const struct gw_table_shard *entry = gw_entry_of(*out);
		*epochs = entry->epochs;
		*state = (struct gw_tensor_state){
			.plan = entry->shard.plan,
			.epoch = entry->shard.epoch,
			.leader = entry->shard.leader,
			.ready = gw_shard_state(*out) == GW_SHARD_READY,
			.lease_ms = entry->shard.plan.job[0] ? gw_table_lease_ms(table) : 0,
			.epochs = entry->epochs ? table->options.meta->num_parts : 0,
			.region = entry->region.id,
			.generation = entry->region.generation,
			.restored = entry->restored,
			.filled = atomic_load_explicit(&((struct gw_table_shard *)(uintptr_t)entry)->filled,
						       memory_order_relaxed),
		};
	}
	pthread_mutex_unlock(&table->lock);
	gw_shard_withdraw(table, dropped);
	gw_shard_unref(table, dropped);
	return status;
}

gw_status gw_tensor_table_expect(struct gw_tensor_table *table, const struct gw_tensor_plan *plan)
{
	const struct gw_tensor_create_call call = {.plan = *plan};
	struct gw_shard *shard = NULL;
	pthread_mutex_lock(&table->lock);
	gw_status status = table_add(table, &call, 0, &shard);
	if (shard && gw_part_number(table->options.part) != 0)
		shard->leader = 0;
	pthread_mutex_unlock(&table->lock);
	return status;
}

gw_status gw_table_take_waiting(struct gw_tensor_table *table, const struct gw_tensor_create_call *call, uint64_t epoch,
				struct gw_shard **out)
{
	gw_status status = table_add(table, call, epoch, out);
	if (status == GW_OK)
		(*out)->leader = call->leader; /* 0: not known yet */
	return status;
}

gw_status gw_tensor_table_complete(struct gw_tensor_table *table, uint64_t epoch, const void *epochs,
				   const uint64_t **kept, struct gw_shard **out)
{
	uint32_t parts = table->options.meta->num_parts;
	uint64_t *copy = gw_calloc(parts, sizeof(*copy));
	gw_status status = GW_OK;
	*out = NULL;
	if (!copy)
		return GW_NO_MEMORY;
	memcpy(copy, epochs, parts * sizeof(*copy));
	pthread_mutex_lock(&table->lock);
	struct gw_shard *shard = gw_table_ref_epoch(table, epoch);
	if (!shard || shard->leader != epoch || copy[0] != epoch) {
		status = gw_fail(GW_NOT_FOUND, "the tensor was deleted while it was created");
	} else {
		if (!gw_entry_of(shard)->epochs) {
			gw_entry_of(shard)->epochs = copy;
			copy = NULL;
		}
		*kept = gw_entry_of(shard)->epochs;
		*out = shard;
		shard = NULL;
	}
	pthread_mutex_unlock(&table->lock);
	gw_shard_unref(table, shard);
	gw_free(copy);
	return status;
}

gw_status gw_tensor_table_delete(struct gw_tensor_table *table, const char *job, const char *name, uint64_t leader,
				 uint32_t *count)
{
	gw_status status = GW_OK;
	pthread_mutex_lock(&table->lock);
	struct gw_shard *shard = gw_table_named(table, job, name);
	if (shard && leader && shard->leader != leader)
		shard = NULL;
	if (shard && leader && gw_entry_of(shard)->epochs) {
		status = gw_fail(GW_EXISTS, "tensor \"%s\" is complete", name);
		shard = NULL;
	}
	if (shard)
		gw_table_unlist(table, shard);
	pthread_mutex_unlock(&table->lock);
	gw_shard_withdraw(table, shard);
	gw_shard_unref(table, shard);
	*count = shard != NULL;
	return status;
}
