/* Searches a table of tensors in the order of jobs and names: see table.h. All functions hold the table's lock. */
#include "tensors/table.h"

#include <string.h>

#include "tensors/table_private.h"

static int shard_order(const struct gw_shard *shard, const char *job, const char *name)
{
	int order = strcmp(shard->plan.job, job);
	return order ? order : strcmp(shard->plan.name, name);
}

static const struct gw_shard *shard_after(const struct gw_tensor_table *table, const char *job, const char *after_job,
					  const char *after_name)
{
	const struct gw_shard *first = NULL;
	for (const struct gw_shard *shard = table->shards; shard; shard = shard->next) {
		if (job && shard->plan.job[0] && strcmp(shard->plan.job, job) != 0)
			continue;
		if (after_job && shard_order(shard, after_job, after_name) <= 0)
			continue;
		if (!first || shard_order(shard, first->plan.job, first->plan.name) < 0)
			first = shard;
	}
	return first;
}

uint32_t gw_tensor_table_list(struct gw_tensor_table *table, const char *job, const char *after_job,
			      const char *after_name, struct gw_tensor_listed *out, uint32_t max)
{
	uint32_t n = 0;
	pthread_mutex_lock(&table->lock);
	while (n < max) {
		const struct gw_shard *shard = shard_after(table, job, after_job, after_name);
		if (!shard)
			break;
		out[n++] = (struct gw_tensor_listed){.plan = shard->plan,
						     .epoch = shard->epoch,
						     .leader = shard->leader,
						     .bytes = ((const struct gw_table_shard *)shard)->bytes};
		after_job = shard->plan.job;
		after_name = shard->plan.name;
	}
	pthread_mutex_unlock(&table->lock);
	return n;
}

void gw_tensor_table_each(struct gw_tensor_table *table,
			  void (*visit)(void *context, const struct gw_shard *shard, uint64_t bytes, bool ready),
			  void *context)
{
	pthread_mutex_lock(&table->lock);
	for (struct gw_shard *shard = table->shards; shard; shard = shard->next)
		visit(context, shard, gw_entry_of(shard)->bytes, gw_shard_state(shard) == GW_SHARD_READY);
	pthread_mutex_unlock(&table->lock);
}

uint64_t gw_tensor_table_bytes(struct gw_tensor_table *table)
{
	pthread_mutex_lock(&table->lock);
	uint64_t bytes = table->bytes;
	pthread_mutex_unlock(&table->lock);
	return bytes;
}

void gw_tensor_table_totals(struct gw_tensor_table *table, struct gw_tensor_totals *out)
{
	pthread_mutex_lock(&table->lock);
	*out = table->ended;
	for (const struct gw_shard *shard = table->shards; shard; shard = shard->next) {
		const struct gw_shard_counts *counts = &shard->counts;
		out->written += atomic_load_explicit(&counts->written, memory_order_relaxed);
		out->pushed += atomic_load_explicit(&counts->pushed, memory_order_relaxed);
		out->pulled += atomic_load_explicit(&counts->pulled, memory_order_relaxed);
		out->read += atomic_load_explicit(&counts->read, memory_order_relaxed);
		out->pulls += atomic_load_explicit(&counts->pulls, memory_order_relaxed);
		out->torn += atomic_load_explicit(&counts->torn, memory_order_relaxed);
	}
	pthread_mutex_unlock(&table->lock);
}
