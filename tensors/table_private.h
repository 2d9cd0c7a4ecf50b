/* What the files of a table of tensors share, each of which uses those under it only:
 *
 *   table.c         makes tensors, completes and deletes them
 *   table_thread.c  its threads (filler and keeper) do what takes long
 *   table_state.c   optimizers' state; fill.c: the rows of a new shard
 *   table_shards.c  the shards, looked up without a lock, their users and jobs; scratch.c, table_list.c
 */
#ifndef GW_TENSORS_TABLE_PRIVATE_H
#define GW_TENSORS_TABLE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tensors/table.h"

#define GW_TENSOR_SCRATCHES_MAX 16 /* that are kept */
#define GW_TABLE_SLOTS          (2ul * GW_TENSORS_MAX)

enum gw_shard_state { GW_SHARD_WAITING, GW_SHARD_READY, GW_SHARD_FAILED };

/* An optimizer's state of a shard, for the keeper to make. */
enum gw_state_making { GW_STATE_NONE, GW_STATE_WANTED, GW_STATE_FAILED };

/* The users of one shard, or of one shard after another: see table_shards.c. No two counts share a line of the cache.
 */
struct gw_shard_users {
	_Atomic uint32_t count; /* 0: of no shard */
	uint64_t epoch;
	struct gw_shard *shard;
	struct gw_shard_users *next_spare;
	uint8_t apart[96];
};

/* A shard as its table has it. */
struct gw_table_shard {
	struct gw_shard shard; /* first */
	_Atomic(enum gw_shard_state) state;
	bool restored;           /* from a checkpoint: a copy of nothing */
	_Atomic uint64_t filled; /* rows, while it is */
	enum gw_state_making making;
	enum gw_optimizer_kind kind; /* that is wanted */
	gw_status status;            /* why it, or its state, failed */
	char text[GW_ERROR_TEXT_MAX];
	uint64_t bytes;                /* taken into account */
	uint64_t state_bytes;          /* of these, an optimizer's */
	uint64_t *epochs;              /* [num_parts], at part 0 once it is complete */
	struct gw_region region;       /* generation 0: it is not published */
	struct gw_tensor_table *table; /* of `released` */
	struct gw_table_shard *next_released;
	struct gw_table_shard *source; /* whose rows it begins with; held until it is filled */
};

/* A job that has tensors here: one without is not noted. */
struct gw_tensor_job {
	char name[GW_JOB_NAME_MAX + 1];
	uint32_t shards; /* that are listed; more than 0 */
	uint64_t heard_ns;
};

enum gw_kept_state { GW_KEPT_NONE, GW_KEPT_MOVING, GW_KEPT_THERE };

/* Scratch that no push has at the moment: see scratch.c. */
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
	pthread_cond_t changed; /* there is something to do for a thread, or stop */
	struct gw_shard *shards;
	_Atomic(struct gw_shard_users *) slots[GW_TABLE_SLOTS]; /* of listed shards, by their births */
	struct gw_shard_users *spare_users;                     /* of no shard now */
	uint32_t shard_count, job_count;
	struct gw_table_shard *released; /* that no reader has any more: the keeper leaves them */
	uint64_t bytes;
	uint64_t line, epochs; /* the halves of births: of this process, and so many by now */
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

/* One user more, of a shard that the caller holds already, or that is listed, with the lock. */
static inline void gw_shard_hold(struct gw_shard *shard)
{
	atomic_fetch_add_explicit(&shard->users->count, 1, memory_order_relaxed);
}

/* How often each client of a job is to be heard of. */
static inline uint32_t gw_table_lease_ms(const struct gw_tensor_table *table)
{
	return table->options.lease_ms / 4;
}

/* An empty shard, with a count of users, for gw_table_enter or gw_table_shard_drop; NULL: no memory. Locked. */
struct gw_table_shard *gw_table_shard_new(struct gw_tensor_table *table);
void gw_table_shard_drop(struct gw_tensor_table *table, struct gw_table_shard *entry);
/* On the list, which is its one user, and with a birth, which is its leader unless there is one. Locked; the caller has
 * seen that there is room. */
void gw_table_enter(struct gw_tensor_table *table, struct gw_table_shard *entry);
/* Off the list: the caller leaves it, without the lock. Locked. */
void gw_table_unlist(struct gw_tensor_table *table, struct gw_shard *shard);
/* NULL: none is listed. Locked. */
struct gw_shard *gw_table_named(const struct gw_tensor_table *table, const char *job, const char *name);
/* The listed shard of a birth, held; NULL: none is. Locked or not. */
struct gw_shard *gw_table_hold_epoch(struct gw_tensor_table *table, uint64_t epoch);
/* NULL: the job has no tensors here. Locked. */
struct gw_tensor_job *gw_table_job(struct gw_tensor_table *table, const char *name);
/* A client of the job is there, if the job has tensors here. Locked. */
void gw_table_job_heard(struct gw_tensor_table *table, const char *name);

/* Nobody can open it any more. Not locked: the last reader may be gone already. NULL is allowed. */
void gw_shard_withdraw(struct gw_tensor_table *table, struct gw_shard *shard);

/* A shard of a job that has ended, off the list and held by the caller; NULL: there is none. Locked. */
struct gw_shard *gw_table_take_ended(struct gw_tensor_table *table, uint64_t now_ns);

/* A shard that its readers have let go, for the caller to leave; NULL: there is none. Locked. */
struct gw_shard *gw_table_take_released(struct gw_tensor_table *table);

/* Starts the threads, with the first tensor. Locked. */
gw_status gw_table_start(struct gw_tensor_table *table);

/* Makes a shard's rows, by the plan, with no lock: the filler. */
gw_status gw_shard_fill(const struct gw_tensor_table_options *options, struct gw_table_shard *entry);

/* Bytes of a tensor, taken into account. Locked. GW_NO_SPACE. */
gw_status gw_table_take_bytes(struct gw_tensor_table *table, const char *name, const char *what, uint64_t bytes);

/* GW_NOT_FOUND: a shard is not here any more. */
gw_status gw_table_fail_gone(void);

/* A shard whose state is wanted, held; NULL: there is none. Locked. */
struct gw_table_shard *gw_table_take_stateless(const struct gw_tensor_table *table);
/* Makes it, and leaves the shard: the keeper, with no lock. */
void gw_shard_make_state(struct gw_tensor_table *table, struct gw_table_shard *entry);

#endif
