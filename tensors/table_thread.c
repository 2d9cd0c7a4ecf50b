/* The threads of a table of tensors. They do work that takes long, and work that a serving thread must not do itself.
 * Each thread does one task after another:
 *
 *   filler: a waiting tensor ─▶ filled (fill.c) ─▶ published, so that clients can read it ─▶ READY, or FAILED
 *   keeper: a push that needs an optimizer's state ─▶ allocated (table_state.c) ─▶ found by the next slice of the push
 *           memory that its last reader has released ─▶ released
 *           a job whose lease has ended ─▶ its tensors removed from the list, withdrawn, released
 *
 * There are two threads, since filling a large tensor takes minutes. Its creator waits that long, but a push waits only
 * within its operation's deadline. For the same reason the keeper handles state first. The threads start with the first
 * tensor. If a shard cannot be published, clients request its rows, and the log has a line. If a shard cannot be
 * filled, the next request for it gets the error.
 */
#include <string.h>

#include "core/errors/log.h"
#include "core/system/clock.h"
#include "core/system/thread.h"
#include "tensors/table_private.h"

/* Passes the shard to the keeper, which frees it: the thread of the last reader must not work for long. */
static void shard_released(void *context)
{
	struct gw_table_shard *entry = context;
	struct gw_tensor_table *table = entry->table;
	pthread_mutex_lock(&table->lock);
	entry->next_released = table->released;
	table->released = entry;
	pthread_cond_broadcast(&table->changed);
	pthread_mutex_unlock(&table->lock);
}

struct gw_shard *gw_table_take_released(struct gw_tensor_table *table)
{
	struct gw_table_shard *entry = table->released;
	if (entry)
		table->released = entry->next_released;
	return (struct gw_shard *)entry;
}

static struct gw_table_shard *table_take_waiting(const struct gw_tensor_table *table)
{
	struct gw_shard *oldest = NULL; /* new shards are added at the front */
	for (struct gw_shard *shard = table->shards; shard; shard = shard->next) {
		if (gw_shard_state(shard) == GW_SHARD_WAITING)
			oldest = shard;
	}
	if (oldest)
		gw_shard_ref(oldest);
	return (struct gw_table_shard *)oldest;
}

static gw_status shard_publish(struct gw_tensor_table *table, struct gw_table_shard *entry, uint32_t id,
			       uint32_t generation, struct gw_region *out)
{
	struct gw_row_store *store = entry->shard.store;
	const struct gw_row_format *format = gw_row_store_format(store);
	struct gw_arena *arena = gw_row_store_arena(store);
	struct gw_region_rows rows = {.format = *format, .seed = gw_row_store_seed(store)};
	struct gw_dynamic_region region = {.base = gw_arena_base(arena),
					   .bytes = gw_row_store_rows(store) * format->stride,
					   .slice_bytes = gw_arena_slice_bytes(arena),
					   .rows = &rows,
					   .fd = gw_arena_fd(arena),
					   .freed = shard_released,
					   .context = entry};
	*out = (struct gw_region){0};
	if (!table->options.service || region.bytes == 0)
		return GW_OK;
	gw_shard_ref(&entry->shard); /* for its readers */
	entry->table = table;
	gw_status status = generation ? gw_service_publish_as(table->options.service, &region, id, generation, out)
				      : gw_service_publish(table->options.service, &region, out);
	if (status == GW_OK)
		return GW_OK;
	out->generation = 0;
	gw_shard_unref(table, &entry->shard);
	return status;
}

gw_status gw_shard_publish_as(struct gw_tensor_table *table, struct gw_table_shard *entry, uint32_t id,
			      uint32_t generation)
{
	struct gw_region region;
	gw_status status = shard_publish(table, entry, id, generation, &region);
	pthread_mutex_lock(&table->lock);
	entry->region = region;
	pthread_mutex_unlock(&table->lock);
	return status;
}

static void table_fill(struct gw_tensor_table *table, struct gw_table_shard *entry)
{
	struct gw_region region = {0};
	gw_status status = gw_shard_fill(&table->options, entry);
	/* If publishing fails, clients request the rows. */
	if (status == GW_OK && shard_publish(table, entry, 0, 0, &region) != GW_OK)
		gw_log(GW_LOG_INFO, "tensor \"%s\" is read by requests: %s", entry->shard.plan.name, gw_last_error());
	pthread_mutex_lock(&table->lock);
	entry->region = region;
	bool deleted = !entry->shard.listed;
	struct gw_table_shard *source = entry->source;
	entry->source = NULL;
	entry->status = status;
	if (status != GW_OK)
		memcpy(entry->text, gw_last_error(), sizeof(entry->text));
	atomic_store_explicit(&entry->state, status == GW_OK ? GW_SHARD_READY : GW_SHARD_FAILED, memory_order_release);
	pthread_mutex_unlock(&table->lock);
	if (deleted)
		gw_shard_withdraw(table, &entry->shard);
	if (source)
		gw_shard_unref(table, &source->shard);
	gw_shard_unref(table, &entry->shard);
}

static void table_wait(struct gw_tensor_table *table)
{
	uint32_t lease_ms = table->options.lease_ms;
	if (!lease_ms) {
		pthread_cond_wait(&table->changed, &table->lock);
		return;
	}
	struct timespec end = gw_timespec(gw_monotonic_ns() + (lease_ms / 8 + 1) * GW_NS_PER_MS);
	pthread_cond_timedwait(&table->changed, &table->lock, &end);
}

static void *table_fill_all(void *argument)
{
	struct gw_tensor_table *table = argument;
	pthread_mutex_lock(&table->lock);
	while (!table->stop) {
		struct gw_table_shard *waiting = table_take_waiting(table);
		if (!waiting) {
			pthread_cond_wait(&table->changed, &table->lock);
			continue;
		}
		pthread_mutex_unlock(&table->lock);
		table_fill(table, waiting);
		pthread_mutex_lock(&table->lock);
	}
	pthread_mutex_unlock(&table->lock);
	return NULL;
}

static void *table_keep(void *argument)
{
	struct gw_tensor_table *table = argument;
	pthread_mutex_lock(&table->lock);
	while (!table->stop) {
		struct gw_table_shard *stateless = gw_table_take_stateless(table);
		struct gw_shard *released = stateless ? NULL : gw_table_take_released(table);
		struct gw_shard *ended = stateless || released ? NULL : gw_table_take_ended(table, gw_now_ns());
		if (!stateless && !released && !ended) {
			table_wait(table);
			continue;
		}
		pthread_mutex_unlock(&table->lock);
		if (stateless)
			gw_shard_make_state(table, stateless);
		if (ended)
			gw_log(GW_LOG_INFO, "tensor \"%s\" ends with its job %s", ended->plan.name, ended->plan.job);
		gw_shard_withdraw(table, ended);
		gw_shard_unref(table, ended);
		gw_shard_unref(table, released);
		pthread_mutex_lock(&table->lock);
	}
	pthread_mutex_unlock(&table->lock);
	return NULL;
}

static gw_status table_start_one(struct gw_tensor_table *table, struct gw_table_thread *thread, void *(*run)(void *))
{
	if (thread->started)
		return GW_OK;
	int error = gw_thread_start(&thread->id, run, table);
	if (error)
		return gw_thread_failed(error, "cannot start a thread of the table of tensors");
	thread->started = true;
	return GW_OK;
}

gw_status gw_table_start(struct gw_tensor_table *table)
{
	gw_status status = table_start_one(table, &table->keeper, table_keep);
	return status == GW_OK ? table_start_one(table, &table->filler, table_fill_all) : status;
}

void gw_tensor_table_stop(struct gw_tensor_table *table)
{
	if (!table)
		return;
	pthread_mutex_lock(&table->lock);
	table->stop = true;
	pthread_cond_broadcast(&table->changed);
	pthread_mutex_unlock(&table->lock);
	struct gw_table_thread *threads[] = {&table->filler, &table->keeper};
	for (int i = 0; i < 2; i++) {
		if (threads[i]->started)
			pthread_join(threads[i]->id, NULL);
		threads[i]->started = false;
	}
}
