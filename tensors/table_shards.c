/* The shards of a table: added, found, referenced and freed; and the jobs that own the tensors.
 *
 *   enter ─▶ the list, for names, and the slot of its epoch, for pulls and pushes ─▶ unlist ─▶ last unref: freed
 *
 * The last user frees a shard, so that an open call on a deleted tensor ends without error. The list is one user. All
 * clients that read the shard's memory together are another user: from publishing the shard until the transport reports
 * that the last reader has released it. The bytes count until then.
 *
 * Pulls and pushes take no lock: gw_table_ref_epoch and gw_shard_unref are a load and one atomic addition each. A shard
 * that a slot names may be freed at any moment. The shard's count of users is therefore outside the shard, in a struct
 * gw_shard_users, which lives as long as the table and counts for one shard after another. The following rules keep a
 * found shard valid:
 *
 *   - The count is set to 1 with release order after `epoch` and `shard` are written. The slot is stored after that,
 *     with release order. A finder that loads the slot (acquire) sees an initialized count.
 *   - A finder adds 1 unless the count is 0. A count of 0 stays until the next shard sets it. Only the thread that
 *     took the count to 0 frees the shard; afterwards it makes the count available again, under the lock.
 *   - The addition (acquire) reads the 1, or a later addition to it or subtraction from it. All of these form one
 *     release sequence, so the finder sees the `epoch` and `shard` that were set with that 1. They do not change
 *     before the finder releases the shard.
 *   - A slow finder may have counted itself as a user of a later shard. No two shards have the same epoch: the finder
 *     sees another epoch than its own, releases the shard, and returns NULL.
 *   - A user leaves by a subtraction with release and acquire order, so the actions of all users precede the free.
 *   - READY is stored with release order once `store` is written, and a finder loads it with acquire order.
 *
 * A thread that has the lock and a listed shard may add to its count directly: the list's own 1 cannot disappear.
 */
#include <string.h>

#include "core/errors/units.h"
#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/system/clock.h"
#include "tensors/table_private.h"

/* --- Users. --- */

/* Call it without the lock: freeing the rows of a large shard takes long. */
static void shard_free(struct gw_table_shard *entry)
{
	gw_row_store_destroy(entry->shard.store);
	gw_tensor_layout_free(&entry->shard.layout);
	gw_free(entry->epochs);
	gw_free(entry);
}

/* The lock must be held. The count is 0, and its shard is freed. */
static void shard_spare_users(struct gw_tensor_table *table, struct gw_shard_users *users)
{
	users->shard = NULL;
	users->next_spare = table->spare_users;
	table->spare_users = users;
}

static struct gw_shard_users *shard_take_users(struct gw_tensor_table *table)
{
	struct gw_shard_users *users = table->spare_users;
	if (!users)
		return gw_calloc(1, sizeof(*users));
	table->spare_users = users->next_spare;
	return users;
}

struct gw_table_shard *gw_table_shard_new(struct gw_tensor_table *table)
{
	struct gw_table_shard *entry = gw_calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	entry->shard.users = shard_take_users(table);
	if (entry->shard.users)
		return entry;
	gw_free(entry);
	return NULL;
}

void gw_table_shard_drop(struct gw_tensor_table *table, struct gw_table_shard *entry)
{
	shard_spare_users(table, entry->shard.users);
	shard_free(entry);
}

/* The lock must be held. Moves the shard's counts to those of the ended ones, so that the sum of all never falls. */
static void shard_count_ended(struct gw_tensor_table *table, struct gw_shard *shard)
{
	struct gw_shard_counts *counts = &shard->counts;
	table->ended.written += atomic_exchange_explicit(&counts->written, 0, memory_order_relaxed);
	table->ended.pushed += atomic_exchange_explicit(&counts->pushed, 0, memory_order_relaxed);
	table->ended.pulled += atomic_exchange_explicit(&counts->pulled, 0, memory_order_relaxed);
	table->ended.read += atomic_exchange_explicit(&counts->read, 0, memory_order_relaxed);
	table->ended.pulls += atomic_exchange_explicit(&counts->pulls, 0, memory_order_relaxed);
	table->ended.torn += atomic_exchange_explicit(&counts->torn, 0, memory_order_relaxed);
}

void gw_shard_unref(struct gw_tensor_table *table, struct gw_shard *shard)
{
	struct gw_error_kept kept;
	if (!shard)
		return;
	struct gw_shard_users *users = shard->users;
	if (atomic_fetch_sub_explicit(&users->count, 1, memory_order_acq_rel) > 1)
		return;
	gw_error_keep(&kept);
	uint64_t bytes = gw_entry_of(shard)->bytes;
	struct gw_table_shard *source = gw_entry_of(shard)->source;
	pthread_mutex_lock(&table->lock);
	shard_count_ended(table, shard); /* requests that ended after the shard was unlisted */
	pthread_mutex_unlock(&table->lock);
	shard_free(gw_entry_of(shard));
	pthread_mutex_lock(&table->lock);
	table->bytes -= bytes;
	shard_spare_users(table, users);
	pthread_mutex_unlock(&table->lock);
	if (source)
		gw_shard_unref(table, &source->shard);
	gw_error_restore(&kept);
}

struct gw_shard *gw_table_ref_epoch(struct gw_tensor_table *table, uint64_t epoch)
{
	struct gw_shard_users *users =
		atomic_load_explicit(&table->slots[epoch % GW_TABLE_SLOTS], memory_order_acquire);
	if (!users)
		return NULL;
	uint32_t count = atomic_load_explicit(&users->count, memory_order_relaxed);
	do {
		if (count == 0)
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(&users->count, &count, count + 1, memory_order_acquire,
							memory_order_relaxed));
	if (users->epoch == epoch)
		return users->shard;
	gw_shard_unref(table, users->shard);
	return NULL;
}

void gw_shard_withdraw(struct gw_tensor_table *table, struct gw_shard *shard)
{
	if (!shard)
		return;
	pthread_mutex_lock(&table->lock);
	struct gw_region region = gw_entry_of(shard)->region;
	pthread_mutex_unlock(&table->lock);
	if (region.generation)
		gw_service_withdraw(table->options.service, &region);
}

/* --- Jobs that have tensors here. Others are not recorded, so names alone use no memory. All functions need the lock.
 * --- */

struct gw_tensor_job *gw_table_job(struct gw_tensor_table *table, const char *name)
{
	for (uint32_t i = 0; i < table->job_count; i++) {
		if (strcmp(table->jobs[i].name, name) == 0)
			return &table->jobs[i];
	}
	return NULL;
}

void gw_table_job_renew(struct gw_tensor_table *table, const char *name)
{
	struct gw_tensor_job *job = gw_table_job(table, name);
	if (job)
		job->renewed_ns = gw_now_ns();
}

/* The caller has checked that there is room. */
static void job_add_shard(struct gw_tensor_table *table, const char *name)
{
	struct gw_tensor_job *job = gw_table_job(table, name);
	if (!name[0])
		return;
	if (!job) {
		job = &table->jobs[table->job_count++];
		*job = (struct gw_tensor_job){0};
		memcpy(job->name, name, strlen(name) + 1);
	}
	job->shards++;
	job->renewed_ns = gw_now_ns();
}

/* With its last shard, the job is removed. */
static void job_drop_shard(struct gw_tensor_table *table, const char *name)
{
	struct gw_tensor_job *job = gw_table_job(table, name);
	if (job && --job->shards == 0)
		*job = table->jobs[--table->job_count];
}

/* --- The list, and the slots. --- */

/* Skips numbers whose slot is used. A table lists at most half as many shards as it has slots. So a new shard takes
 * fewer than two numbers on average, even if few shards are deleted. */
static uint64_t shard_next_epoch(struct gw_tensor_table *table)
{
	uint64_t epoch;
	do
		epoch = table->line << 32 | ++table->epochs;
	while (atomic_load_explicit(&table->slots[epoch % GW_TABLE_SLOTS], memory_order_relaxed));
	return epoch;
}

void gw_table_enter(struct gw_tensor_table *table, struct gw_table_shard *entry)
{
	struct gw_shard *shard = &entry->shard;
	struct gw_shard_users *users = shard->users;
	if (!shard->epoch)
		shard->epoch = shard_next_epoch(table);
	if (!shard->leader)
		shard->leader = shard->epoch;
	shard->listed = true;
	shard->next = table->shards;
	table->shards = shard;
	table->shard_count++;
	job_add_shard(table, shard->plan.job);
	users->epoch = shard->epoch;
	users->shard = shard;
	atomic_store_explicit(&users->count, 1, memory_order_release);
	atomic_store_explicit(&table->slots[shard->epoch % GW_TABLE_SLOTS], users, memory_order_release);
}

void gw_table_unlist(struct gw_tensor_table *table, struct gw_shard *shard)
{
	atomic_store_explicit(&table->slots[shard->epoch % GW_TABLE_SLOTS], NULL, memory_order_relaxed);
	GW_SLIST_REMOVE(table->shards, shard, next);
	shard->listed = false;
	shard_count_ended(table, shard);
	table->shard_count--;
	job_drop_shard(table, shard->plan.job);
}

struct gw_shard *gw_table_named(const struct gw_tensor_table *table, const char *job, const char *name)
{
	struct gw_shard *shard = table->shards;
	while (shard && (strcmp(shard->plan.name, name) != 0 || strcmp(shard->plan.job, job) != 0))
		shard = shard->next;
	return shard;
}

gw_status gw_table_take_bytes(struct gw_tensor_table *table, const char *name, const char *what, uint64_t bytes)
{
	char wanted[GW_UNIT_TEXT_MAX], left[GW_UNIT_TEXT_MAX], all[GW_UNIT_TEXT_MAX];
	uint64_t bytes_max = table->options.bytes_max;
	if (bytes_max && (bytes > bytes_max || table->bytes > bytes_max - bytes))
		return gw_fail(GW_NO_SPACE,
			       "tensor \"%s\" needs %s for %s of part %u, and %s of %s for tensors are free: "
			       "give its server more (serve --tensor-memory)",
			       name, gw_text_bytes(wanted, (double)bytes), what, gw_part_number(table->options.part),
			       gw_text_bytes(left, (double)(bytes_max - table->bytes)),
			       gw_text_bytes(all, (double)bytes_max));
	table->bytes += bytes;
	return GW_OK;
}

/* --- The life of a job. --- */

uint32_t gw_tensor_table_lease(struct gw_tensor_table *table, const char *name)
{
	pthread_mutex_lock(&table->lock);
	gw_table_job_renew(table, name);
	pthread_mutex_unlock(&table->lock);
	return gw_table_lease_ms(table);
}

/* NULL: the job has none. The caller withdraws and releases the shard. The lock must be held. */
static struct gw_shard *job_take(struct gw_tensor_table *table, const char *job)
{
	struct gw_shard *shard = table->shards;
	while (shard && strcmp(shard->plan.job, job) != 0)
		shard = shard->next;
	if (shard)
		gw_table_unlist(table, shard);
	return shard;
}

gw_status gw_tensor_table_end_job(struct gw_tensor_table *table, const char *job, uint32_t *count)
{
	*count = 0;
	if (!job[0])
		return gw_fail(GW_INVALID, "no job is named: kept tensors belong to no job");
	for (;; (*count)++) {
		pthread_mutex_lock(&table->lock);
		struct gw_shard *shard = job_take(table, job);
		pthread_mutex_unlock(&table->lock);
		if (!shard)
			return GW_OK;
		gw_shard_withdraw(table, shard);
		gw_shard_unref(table, shard);
	}
}

struct gw_shard *gw_table_take_ended(struct gw_tensor_table *table, uint64_t now_ns)
{
	/* A client may have lived for one more interval after its last renewal, so add one interval to the lease. */
	uint64_t last_ns = ((uint64_t)table->options.lease_ms + gw_table_lease_ms(table)) * GW_NS_PER_MS;
	for (uint32_t i = 0; last_ns && i < table->job_count; i++) {
		const struct gw_tensor_job *job = &table->jobs[i];
		if (now_ns >= job->renewed_ns + last_ns)
			return job_take(table, job->name);
	}
	return NULL;
}

/* --- Lookups of pulls, pushes and reads. --- */

gw_status gw_table_fail_gone(void)
{
	return gw_fail(GW_NOT_FOUND,
		       "the tensor is gone: it was deleted, its job has ended or did not renew its lease (serve "
		       "--tensor-lease), or its server was restarted: delete it, and create it again");
}

gw_status gw_tensor_table_find(struct gw_tensor_table *table, uint64_t epoch, struct gw_shard **out)
{
	*out = gw_table_ref_epoch(table, epoch);
	if (*out && gw_shard_state(*out) == GW_SHARD_READY)
		return GW_OK;
	gw_shard_unref(table, *out);
	*out = NULL;
	return gw_table_fail_gone();
}

void gw_tensor_table_note_reads(struct gw_tensor_table *table, uint64_t epoch, uint64_t rows)
{
	struct gw_shard *shard = gw_table_ref_epoch(table, epoch);
	if (shard)
		atomic_fetch_add_explicit(&shard->counts.read, rows, memory_order_relaxed);
	gw_shard_unref(table, shard);
}
