/* Keeping tensors: see table.h.
 *
 * One lock, held for a look into a list; what takes long (filling, freeing) happens outside of it, in the
 * table's threads (table_thread.c). A shard is freed by its last user: a call that is under way when its tensor is
 * deleted ends well. Clients that read its memory by themselves are such users, all together, from when it is published
 * until the transport says that the last has let go. Bytes count until then.
 */
#include "tensors/table.h"

#include <assert.h>
#include <string.h>

#include "core/errors/units.h"
#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/system/clock.h"
#include "tensors/table_private.h"

/* --- Holding and freeing; the table is locked where it says so. --- */

static void shard_free(struct gw_table_shard *entry)
{
	gw_row_store_destroy(entry->shard.store);
	gw_tensor_layout_free(&entry->shard.layout);
	gw_free(entry->births);
	gw_free(entry);
}

void gw_shard_leave(struct gw_tensor_table *table, struct gw_shard *shard)
{
	struct gw_error_kept kept;
	if (!shard)
		return;
	pthread_mutex_lock(&table->lock);
	bool last = --shard->refs == 0;
	pthread_mutex_unlock(&table->lock);
	if (!last)
		return;
	gw_error_keep(&kept);
	uint64_t bytes = gw_entry_of(shard)->bytes;
	struct gw_table_shard *source = gw_entry_of(shard)->source;
	shard_free(gw_entry_of(shard));
	pthread_mutex_lock(&table->lock);
	table->bytes -= bytes;
	pthread_mutex_unlock(&table->lock);
	if (source)
		gw_shard_leave(table, &source->shard);
	gw_error_restore(&kept);
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

static struct gw_shard *shard_named(const struct gw_tensor_table *table, const char *job, const char *name)
{
	struct gw_shard *shard = table->shards;
	while (shard && (strcmp(shard->plan.name, name) != 0 || strcmp(shard->plan.job, job) != 0))
		shard = shard->next;
	return shard;
}

static struct gw_shard *shard_born(const struct gw_tensor_table *table, uint64_t birth)
{
	struct gw_shard *shard = table->shards;
	while (shard && shard->birth != birth)
		shard = shard->next;
	return shard;
}

/* --- Jobs: those that have tensors here, and no others, so that names alone take no place. All of it locked. --- */

/* NULL: it has none. */
static struct gw_tensor_job *job_find(struct gw_tensor_table *table, const char *job)
{
	for (uint32_t i = 0; i < table->job_count; i++) {
		if (strcmp(table->jobs[i].name, job) == 0)
			return &table->jobs[i];
	}
	return NULL;
}

static void job_heard(struct gw_tensor_table *table, const char *name)
{
	struct gw_tensor_job *job = job_find(table, name);
	if (job)
		job->heard_ns = gw_now_ns();
}

/* The job has one shard more: there is room for it (table_check_room). */
static void job_enter(struct gw_tensor_table *table, const char *name)
{
	struct gw_tensor_job *job = job_find(table, name);
	if (!name[0])
		return;
	if (!job) {
		job = &table->jobs[table->job_count++];
		*job = (struct gw_tensor_job){0};
		memcpy(job->name, name, strlen(name) + 1);
	}
	job->shards++;
	job->heard_ns = gw_now_ns();
}

/* One shard less: with the last, the job is forgotten. */
static void job_leave(struct gw_tensor_table *table, const char *name)
{
	struct gw_tensor_job *job = job_find(table, name);
	if (job && --job->shards == 0)
		*job = table->jobs[--table->job_count];
}

/* Off the list, with the lock: the caller leaves it, without the lock. */
static void shard_unlist(struct gw_tensor_table *table, struct gw_shard *shard)
{
	GW_SLIST_REMOVE(table->shards, shard, next);
	shard->listed = false;
	table->shard_count--;
	job_leave(table, shard->plan.job);
}

uint32_t gw_tensor_table_hold(struct gw_tensor_table *table, const char *name)
{
	pthread_mutex_lock(&table->lock);
	job_heard(table, name);
	pthread_mutex_unlock(&table->lock);
	return gw_table_hold_ms(table);
}

/* A shard of the job, off the list, for the caller to withdraw and leave; NULL: it has none. */
static struct gw_shard *job_take(struct gw_tensor_table *table, const char *job)
{
	struct gw_shard *shard = table->shards;
	while (shard && strcmp(shard->plan.job, job) != 0)
		shard = shard->next;
	if (shard)
		shard_unlist(table, shard);
	return shard;
}

gw_status gw_tensor_table_end_job(struct gw_tensor_table *table, const char *job, uint32_t *count)
{
	*count = 0;
	if (!job[0])
		return gw_fail(GW_INVALID, "which job has ended? Tensors that are kept are no job's");
	for (;; (*count)++) {
		pthread_mutex_lock(&table->lock);
		struct gw_shard *shard = job_take(table, job);
		pthread_mutex_unlock(&table->lock);
		if (!shard)
			return GW_OK;
		gw_shard_withdraw(table, shard);
		gw_shard_leave(table, shard);
	}
}

struct gw_shard *gw_table_take_ended(struct gw_tensor_table *table, uint64_t now_ns)
{
	/* The last client may have been there for as long without a word. */
	uint64_t last_ns = ((uint64_t)table->options.lease_ms + gw_table_hold_ms(table)) * GW_NS_PER_MS;
	for (uint32_t i = 0; last_ns && i < table->job_count; i++) {
		const struct gw_tensor_job *job = &table->jobs[i];
		if (now_ns >= job->heard_ns + last_ns)
			return job_take(table, job->name);
	}
	return NULL;
}

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
	/* The service has ended, and with it the last reader of each. */
	for (struct gw_shard *shard; (shard = gw_table_take_released(table));)
		gw_shard_leave(table, shard);
	while (table->shards) {
		struct gw_shard *shard = table->shards;
		shard_unlist(table, shard);
		gw_shard_leave(table, shard);
	}
	while (table->scratch_count > 0)
		gw_row_push_scratch_free(&table->scratches[--table->scratch_count]);
	pthread_cond_destroy(&table->changed);
	pthread_mutex_destroy(&table->lock);
	gw_free(table);
}

const struct gw_tensor_table_options *gw_tensor_table_options(const struct gw_tensor_table *table)
{
	return &table->options;
}

/* --- Making. All of it with the lock. --- */

gw_status gw_table_take_bytes(struct gw_tensor_table *table, const char *name, const char *what, uint64_t bytes)
{
	char wanted[GW_UNIT_TEXT_MAX], left[GW_UNIT_TEXT_MAX], all[GW_UNIT_TEXT_MAX];
	uint64_t bytes_max = table->options.bytes_max;
	if (bytes_max && (bytes > bytes_max || table->bytes > bytes_max - bytes))
		return gw_fail(
			GW_NO_SPACE,
			"tensor \"%s\" needs %s for %s of part %u, and %s of %s for tensors are free there: give its "
			"server more (serve --tensor-memory)",
			name, gw_text_bytes(wanted, (double)bytes), what, gw_part_number(table->options.part),
			gw_text_bytes(left, (double)(bytes_max - table->bytes)), gw_text_bytes(all, (double)bytes_max));
	table->bytes += bytes;
	return GW_OK;
}

/* Whose rows a copy begins with: the tensor, held. */
static gw_status table_find_source(const struct gw_tensor_table *table, const struct gw_tensor_plan *plan,
				   struct gw_table_shard **out)
{
	*out = NULL;
	if (plan->initial != GW_INITIAL_COPY || (plan->source[0] != '=' && plan->source[0] != '+'))
		return GW_OK;
	struct gw_shard *shard = shard_named(table, plan->source[0] == '=' ? plan->job : "", plan->source + 1);
	if (!shard || gw_entry_of(shard)->state != GW_SHARD_READY)
		return gw_fail(GW_NOT_FOUND, "tensor \"%s\": there is no tensor \"%s\" to copy", plan->name,
			       plan->source + 1);
	struct gw_tensor_plan wanted = *plan;
	wanted.initial = shard->plan.initial;
	wanted.low = shard->plan.low;
	wanted.high = shard->plan.high;
	wanted.seed = shard->plan.seed;
	memcpy(wanted.source, shard->plan.source, sizeof(wanted.source));
	gw_status status = gw_tensor_plan_match(&shard->plan, &wanted);
	if (status != GW_OK)
		return gw_context(GW_INVALID, "tensor \"%s\" as a copy", plan->name);
	shard->refs++;
	*out = gw_entry_of(shard);
	return GW_OK;
}

static gw_status table_check_room(struct gw_tensor_table *table, const struct gw_tensor_plan *plan)
{
	if (table->shard_count == GW_TENSORS_MAX)
		return gw_fail(GW_LIMIT, "tensor \"%s\": there are %d tensors already: delete some", plan->name,
			       GW_TENSORS_MAX);
	if (plan->job[0] && table->job_count == GW_TENSOR_JOBS_MAX && !job_find(table, plan->job))
		return gw_fail(GW_LIMIT, "%d jobs have tensors here already: end one of them", GW_TENSOR_JOBS_MAX);
	return GW_OK;
}

static gw_status table_add(struct gw_tensor_table *table, const struct gw_tensor_create_call *call,
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
	struct gw_table_shard *entry = gw_calloc(1, sizeof(*entry));
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
		if (entry->source)
			entry->source->shard.refs--; /* others hold it: it is listed */
		shard_free(entry);
		return status;
	}
	entry->bytes = bytes;
	entry->shard.birth = table->line << 32 | ++table->births;
	entry->shard.leader = call->leader ? call->leader : entry->shard.birth;
	entry->shard.refs = 1;
	entry->shard.listed = true;
	entry->shard.next = table->shards;
	table->shards = &entry->shard;
	table->shard_count++;
	job_enter(table, plan->job);
	pthread_cond_broadcast(&table->changed);
	*out = &entry->shard;
	return GW_OK;
}

/* Whether a shard is what is left of a tensor that was deleted: part 0 has made a later one of this name since. */
static bool is_left_over(const struct gw_shard *shard, const struct gw_tensor_create_call *call)
{
	return call->leader >> 32 == shard->leader >> 32 && call->leader > shard->leader;
}

/* What is there of this name: whether it is what the call means. */
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
	return gw_fail(
		GW_NOT_FOUND,
		"tensor \"%s\": part %u has rows of another one of this name, since a server ended: delete it, and "
		"create it again",
		shard->plan.name, gw_part_number(table->options.part));
}

/* *dropped: a shard that is listed no more, for the caller to leave. */
static gw_status table_make(struct gw_tensor_table *table, const struct gw_tensor_create_call *call,
			    struct gw_shard **dropped, struct gw_shard **out)
{
	struct gw_shard *shard = shard_named(table, call->plan.job, call->plan.name);
	if (shard && is_left_over(shard, call)) {
		shard_unlist(table, shard);
		*dropped = shard;
		shard = NULL;
	}
	if (!shard && call->open)
		return gw_fail(GW_NOT_FOUND, "there is no tensor \"%s\"", call->plan.name);
	job_heard(table, call->plan.job);
	gw_status status = shard ? shard_check(table, shard, call) : table_add(table, call, &shard);
	if (status != GW_OK)
		return status;
	if (gw_entry_of(shard)->state == GW_SHARD_FAILED) {
		shard_unlist(table, shard);
		*dropped = shard;
		return gw_fail_text(gw_entry_of(shard)->status, gw_entry_of(shard)->text);
	}
	shard->refs++;
	*out = shard;
	return GW_OK;
}

gw_status gw_tensor_table_make(struct gw_tensor_table *table, const struct gw_tensor_create_call *call,
			       struct gw_tensor_state *state, const uint64_t **births, struct gw_shard **out)
{
	struct gw_shard *dropped = NULL;
	*out = NULL;
	*births = NULL;
	pthread_mutex_lock(&table->lock);
	gw_status status = table_make(table, call, &dropped, out);
	if (*out) {
		const struct gw_table_shard *entry = gw_entry_of(*out);
		*births = entry->births;
		*state = (struct gw_tensor_state){
			.plan = entry->shard.plan,
			.birth = entry->shard.birth,
			.leader = entry->shard.leader,
			.ready = entry->state == GW_SHARD_READY,
			.hold_ms = entry->shard.plan.job[0] ? gw_table_hold_ms(table) : 0,
			.births = entry->births ? table->options.meta->num_parts : 0,
			.region = entry->region.id,
			.generation = entry->region.generation,
			.restored = entry->restored,
			.filled = atomic_load_explicit(&((struct gw_table_shard *)(uintptr_t)entry)->filled,
						       memory_order_relaxed),
		};
	}
	pthread_mutex_unlock(&table->lock);
	gw_shard_withdraw(table, dropped);
	gw_shard_leave(table, dropped);
	return status;
}

gw_status gw_tensor_table_expect(struct gw_tensor_table *table, const struct gw_tensor_plan *plan)
{
	const struct gw_tensor_create_call call = {.plan = *plan};
	struct gw_shard *shard = NULL;
	pthread_mutex_lock(&table->lock);
	gw_status status = table_add(table, &call, &shard);
	if (shard && gw_part_number(table->options.part) != 0)
		shard->leader = 0;
	pthread_mutex_unlock(&table->lock);
	return status;
}

gw_status gw_tensor_table_complete(struct gw_tensor_table *table, uint64_t birth, const void *births,
				   const uint64_t **kept, struct gw_shard **out)
{
	uint32_t parts = table->options.meta->num_parts;
	uint64_t *copy = gw_calloc(parts, sizeof(*copy));
	gw_status status = GW_OK;
	*out = NULL;
	if (!copy)
		return GW_NO_MEMORY;
	memcpy(copy, births, parts * sizeof(*copy));
	pthread_mutex_lock(&table->lock);
	struct gw_shard *shard = shard_born(table, birth);
	if (!shard || shard->leader != birth || copy[0] != birth) {
		status = gw_fail(GW_NOT_FOUND, "the tensor was deleted while it was created");
	} else {
		if (!gw_entry_of(shard)->births) {
			gw_entry_of(shard)->births = copy;
			copy = NULL;
		}
		*kept = gw_entry_of(shard)->births;
		shard->refs++;
		*out = shard;
	}
	pthread_mutex_unlock(&table->lock);
	gw_free(copy);
	return status;
}

/* --- Using. --- */

gw_status gw_table_fail_gone(void)
{
	return gw_fail(GW_NOT_FOUND,
		       "the tensor is gone: it was deleted, its job has ended or was not heard of for too long (serve "
		       "--tensor-lease), or what kept its rows was started again: delete it, and create it again");
}

gw_status gw_tensor_table_find(struct gw_tensor_table *table, uint64_t birth, struct gw_shard **out)
{
	gw_status status = GW_OK;
	pthread_mutex_lock(&table->lock);
	struct gw_shard *shard = shard_born(table, birth);
	if (shard && gw_entry_of(shard)->state == GW_SHARD_READY)
		shard->refs++;
	else
		status = gw_table_fail_gone();
	pthread_mutex_unlock(&table->lock);
	*out = status == GW_OK ? shard : NULL;
	return status;
}

void gw_tensor_table_note_reads(struct gw_tensor_table *table, uint64_t birth, uint64_t rows)
{
	pthread_mutex_lock(&table->lock);
	struct gw_shard *shard = shard_born(table, birth);
	if (shard)
		atomic_fetch_add_explicit(&shard->counts.read, rows, memory_order_relaxed);
	pthread_mutex_unlock(&table->lock);
}

gw_status gw_tensor_table_delete(struct gw_tensor_table *table, const char *job, const char *name, uint64_t leader,
				 uint32_t *count)
{
	gw_status status = GW_OK;
	pthread_mutex_lock(&table->lock);
	struct gw_shard *shard = shard_named(table, job, name);
	if (shard && leader && shard->leader != leader)
		shard = NULL;
	if (shard && leader && gw_entry_of(shard)->births) {
		status = gw_fail(GW_EXISTS, "tensor \"%s\" is complete", name);
		shard = NULL;
	}
	if (shard)
		shard_unlist(table, shard);
	pthread_mutex_unlock(&table->lock);
	gw_shard_withdraw(table, shard);
	gw_shard_leave(table, shard);
	*count = shard != NULL;
	return status;
}
