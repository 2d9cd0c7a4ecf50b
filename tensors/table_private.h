/* Declarations that the files of a table of tensors share. Each file uses only those below it:
 *
 *   table_move.c    gives tensors to another process, and takes them
 *   table.c         creates, completes and deletes tensors
 *   table_thread.c  its threads (filler and keeper) do long work
 *   table_state.c   optimizers' state; fill.c: the rows of a new shard
 *   table_shards.c  the shards, found without a lock, their users and jobs; scratch.c, table_list.c
 */
#ifndef GW_TENSORS_TABLE_PRIVATE_H
#define GW_TENSORS_TABLE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tensors/table.h"

#define GW_TENSOR_SCRATCHES_MAX 16 /* places that keep scratch */
#define GW_TABLE_SLOTS          (2ul * GW_TENSORS_MAX)

enum gw_shard_state { GW_SHARD_WAITING, GW_SHARD_READY, GW_SHARD_FAILED };

/* Progress of an optimizer's state, which the keeper allocates. */
enum gw_state_making { GW_STATE_NONE, GW_STATE_WANTED, GW_STATE_FAILED };

/* Counts the users of one shard; later it is reused for other shards: see table_shards.c. No two counts share a cache
 * line. */
struct gw_shard_users {
	_Atomic uint32_t count; /* 0: it counts for no shard */
	uint64_t epoch;
	struct gw_shard *shard;
	struct gw_shard_users *next_spare;
	uint8_t apart[96];
};

/* A shard with the table's private fields. */
struct gw_table_shard {
	struct gw_shard shard; /* first */
	_Atomic(enum gw_shard_state) state;
	bool restored;           /* from a checkpoint: its source is not copied */
	_Atomic uint64_t filled; /* number of rows filled so far */
	enum gw_state_making making;
	enum gw_optimizer_kind kind; /* the requested optimizer */
	gw_status status;            /* why filling the rows, or allocating the state, failed */
	char text[GW_ERROR_TEXT_MAX];
	uint64_t bytes;                /* counted in the table's bytes */
	uint64_t state_bytes;          /* the part of `bytes` for an optimizer's state */
	uint64_t *epochs;              /* [num_parts], at part 0 once the tensor is complete */
	struct gw_region region;       /* generation 0: not published */
	struct gw_tensor_table *table; /* for the `released` list */
	struct gw_table_shard *next_released;
	/* the shard that its rows are copied from; referenced until this shard is filled */
	struct gw_table_shard *source;
};

/* A job that has tensors here. Jobs without tensors are not recorded. */
struct gw_tensor_job {
	char name[GW_JOB_NAME_MAX + 1];
	uint32_t shards; /* number of listed shards; more than 0 */
	uint64_t renewed_ns;
};

enum gw_kept_state { GW_KEPT_NONE, GW_KEPT_MOVING, GW_KEPT_THERE };

/* Scratch that no push uses at the moment: see scratch.c. */
struct gw_kept_scratch {
	_Atomic(enum gw_kept_state) state;
	struct gw_row_push_scratch scratch;
};

struct gw_table_thread {
	pthread_t id;
	bool started;
};

struct gw_tensor_table {
	struct gw_tensor_table_options options;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* signals work for a thread, or stop */
	struct gw_shard *shards;
	_Atomic(struct gw_shard_users *) slots[GW_TABLE_SLOTS]; /* of listed shards, by epoch */
	struct gw_shard_users *spare_users;                     /* belong to no shard at the moment */
	uint32_t shard_count, job_count;
	struct gw_table_shard *released; /* shards without readers: the keeper releases them */
	uint64_t bytes;
	struct gw_tensor_totals ended; /* operations on shards that are not listed any more */
	uint64_t line, epochs;         /* the halves of an epoch: from the incarnation; a counter */
	struct gw_tensor_job jobs[GW_TENSOR_JOBS_MAX];
	struct gw_kept_scratch scratches[GW_TENSOR_SCRATCHES_MAX];
	bool stop;
	struct gw_table_thread filler, keeper;
};

static inline struct gw_table_shard *gw_entry_of(struct gw_shard *shard)
{
	return (struct gw_table_shard *)shard;
}

static inline enum gw_shard_state gw_shard_state(struct gw_shard *shard)
{
	return atomic_load_explicit(&gw_entry_of(shard)->state, memory_order_acquire);
}

/* Adds a user to a shard. The caller already references the shard, or the shard is listed and the caller has the
 * lock. */
static inline void gw_shard_ref(struct gw_shard *shard)
{
	atomic_fetch_add_explicit(&shard->users->count, 1, memory_order_relaxed);
}

/* How often each client of a job must renew its lease. */
static inline uint32_t gw_table_lease_ms(const struct gw_tensor_table *table)
{
	return table->options.lease_ms / 4;
}

/* Creates an empty shard with a count of users, for gw_table_enter or gw_table_shard_drop. NULL: memory ran out. The
 * lock must be held. */
struct gw_table_shard *gw_table_shard_new(struct gw_tensor_table *table);
void gw_table_shard_drop(struct gw_tensor_table *table, struct gw_table_shard *entry);
/* Adds a shard to the list, which is then the shard's only user. Sets the shard's epoch, unless it has one. If the
 * shard has no leader, the epoch also becomes its leader. The lock must be held; the caller has checked that there is
 * room. */
void gw_table_enter(struct gw_tensor_table *table, struct gw_table_shard *entry);
/* Removes a shard from the list. The lock must be held. The caller releases the shard afterwards, without the lock. */
void gw_table_unlist(struct gw_tensor_table *table, struct gw_shard *shard);
/* NULL: no listed shard has this name. The lock must be held. */
struct gw_shard *gw_table_named(const struct gw_tensor_table *table, const char *job, const char *name);
/* References the listed shard of an epoch; NULL: none has this epoch. With or without the lock. */
struct gw_shard *gw_table_ref_epoch(struct gw_tensor_table *table, uint64_t epoch);
/* NULL: the job has no tensors here. The lock must be held. */
struct gw_tensor_job *gw_table_job(struct gw_tensor_table *table, const char *name);
/* Renews the lease of a job, if the job has tensors here. The lock must be held. */
void gw_table_job_renew(struct gw_tensor_table *table, const char *name);

/* Withdraws the region, so that no client can open it any more. Call it without the lock: the last reader may already
 * have ended. NULL is allowed. */
void gw_shard_withdraw(struct gw_tensor_table *table, struct gw_shard *shard);

/* Removes a shard of an ended job from the list and passes its reference to the caller; NULL: none exists. The lock
 * must be held. */
struct gw_shard *gw_table_take_ended(struct gw_tensor_table *table, uint64_t now_ns);

/* Returns a shard that its readers have released, for the caller to release; NULL: none exists. The lock must be
 * held. */
struct gw_shard *gw_table_take_released(struct gw_tensor_table *table);

/* Publishes the rows with the region and generation that clients know. GW_EXISTS, GW_NO_MEMORY. */
gw_status gw_shard_publish_as(struct gw_tensor_table *table, struct gw_table_shard *entry, uint32_t id,
			      uint32_t generation);

/* The seed of the hashes of a shard's rows. */
uint64_t gw_shard_seed(uint64_t incarnation, uint64_t epoch);

/* Lists a shard of another process's table, with its epoch, that the filler is to fill. The lock must be held. */
gw_status gw_table_take_waiting(struct gw_tensor_table *table, const struct gw_tensor_create_call *call, uint64_t epoch,
				struct gw_shard **out);

/* Starts the table's threads when the first tensor is created. The lock must be held. */
gw_status gw_table_start(struct gw_tensor_table *table);

/* Creates a shard's rows by its plan. The filler calls it without the lock. */
gw_status gw_shard_fill(const struct gw_tensor_table_options *options, struct gw_table_shard *entry);

/* Adds bytes of a tensor to the table's count, if the limit allows. The lock must be held. GW_NO_SPACE. */
gw_status gw_table_take_bytes(struct gw_tensor_table *table, const char *name, const char *what, uint64_t bytes);

/* Fails with GW_NOT_FOUND: a shard does not exist any more. */
gw_status gw_table_fail_gone(void);

/* References a shard that needs state; NULL: none exists. The lock must be held. */
struct gw_table_shard *gw_table_take_stateless(const struct gw_tensor_table *table);
/* Allocates the state and releases the shard. The keeper calls it without the lock. */
void gw_shard_make_state(struct gw_tensor_table *table, struct gw_table_shard *entry);

#endif
