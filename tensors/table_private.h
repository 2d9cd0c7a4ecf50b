/* What the files of a table of tensors share: table.c, which keeps it; table_thread.c, whose threads (filler and
 * keeper) do what takes long; table_list.c, which looks through it; table_state.c, for optimizers; and fill.c, which
 * fills shards. */
#ifndef GW_TENSORS_TABLE_PRIVATE_H
#define GW_TENSORS_TABLE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tensors/table.h"

#define GW_TENSOR_SCRATCHES_MAX 16 /* that are kept */

enum gw_shard_state { GW_SHARD_WAITING, GW_SHARD_READY, GW_SHARD_FAILED };

/* An optimizer's state of a shard, for the keeper to make. */
enum gw_state_making { GW_STATE_NONE, GW_STATE_WANTED, GW_STATE_FAILED };

/* A shard as its table has it. */
struct gw_table_shard {
	struct gw_shard shard; /* first */
	enum gw_shard_state state;
	bool restored;           /* from a checkpoint: a copy of nothing */
	_Atomic uint64_t filled; /* rows, while it is */
	enum gw_state_making making;
	enum gw_optimizer_kind kind; /* that is wanted */
	gw_status status;            /* why it, or its state, failed */
	char text[GW_ERROR_TEXT_MAX];
	uint64_t bytes;                /* taken into account */
	uint64_t state_bytes;          /* of these, an optimizer's */
	uint64_t *births;              /* [num_parts], at part 0 once it is complete */
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

struct gw_table_thread {
	pthread_t id;
	bool started;
};

struct gw_tensor_table {
	struct gw_tensor_table_options options;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* there is something to do for a thread, or stop */
	struct gw_shard *shards;
	uint32_t shard_count, job_count;
	struct gw_table_shard *released; /* that no reader has any more: the keeper leaves them */
	uint64_t bytes;
	uint64_t line, births; /* the halves of births: of this process, and so many by now */
	struct gw_tensor_job jobs[GW_TENSOR_JOBS_MAX];
	struct gw_row_push_scratch scratches[GW_TENSOR_SCRATCHES_MAX];
	uint32_t scratch_count;
	bool stop;
	struct gw_table_thread filler, keeper;
};

static inline struct gw_table_shard *gw_entry_of(struct gw_shard *shard)
{
	return (struct gw_table_shard *)shard;
}

/* How often each client of a job is to be heard of. */
static inline uint32_t gw_table_hold_ms(const struct gw_tensor_table *table)
{
	return table->options.lease_ms / 4;
}

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
