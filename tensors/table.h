/* The tensors of one part: what a server, or a standalone client's part, has of each. A tensor's rows here are a shard.
 *
 *   make ─▶ WAITING ─▶ the table's filler fills it ─▶ READY ─▶ delete, or the end of its job ─▶ the last user leaves
 *                                                 └─▶ FAILED: the next who asks is told, and it is gone
 *
 * Threads: any thread may make any call but create, stop and destroy, at once with others. Those of pulls and pushes
 * wait for nothing (find, leave, prepare once the state is there, scratch, note_reads); others wait for a short lock.
 * Limits: memory (bytes_max), GW_TENSORS_MAX tensors, GW_TENSOR_JOBS_MAX jobs.
 */
#ifndef GW_TENSORS_TABLE_H
#define GW_TENSORS_TABLE_H

#include "core/graph/part.h"
#include "core/rows/store.h"
#include "tensors/plan.h"
#include "transport/service.h"

#define GW_TENSORS_MAX     4096
#define GW_TENSOR_JOBS_MAX 1024

struct gw_tensor_table_options {
	const struct gw_graph_meta *meta;
	const struct gw_part *part; /* original ids, and features to copy; outlives the table */
	/* Where filled rows are published, to be read; ends between the table's stop and its end. NULL: nowhere. */
	struct gw_service *service;
	uint64_t incarnation;
	uint64_t bytes_max; /* of all rows and their state; 0: no limit but the machine's */
	uint32_t lease_ms;  /* a job without a client for so long has ended; 0: none ends */
	enum gw_huge_policy huge;
	int numa;
};

/* What has been done with a shard's rows. */
struct gw_shard_counts {
	_Atomic uint64_t written, pushed, pulled; /* rows */
	_Atomic uint64_t read;                    /* rows that clients read by themselves, as far as they have told */
	_Atomic uint64_t pulls;                   /* requests for rows */
	_Atomic uint64_t torn;                    /* rows pulled because a read did not get them whole */
};

struct gw_shard_users;

struct gw_shard {
	struct gw_shard *next; /* the table's from here on to `users` */
	bool listed;
	struct gw_shard_users *users; /* counted */
	/* Set before others see it. */
	struct gw_tensor_plan plan;
	struct gw_tensor_layout layout;
	uint64_t epoch;
	uint64_t leader; /* 0: the first that a client names */
	/* Set once it is READY. */
	struct gw_row_store *store;
	struct gw_shard_counts counts;
};

struct gw_tensor_table;

gw_status gw_tensor_table_create(const struct gw_tensor_table_options *options, struct gw_tensor_table **out);
/* Ends its threads, when one has filled what it is filling: before the service ends, which they publish to.
 * What waits is not filled any more. No call may be under way. NULL is allowed. */
void gw_tensor_table_stop(struct gw_tensor_table *table);
/* Frees all tensors of a table that was stopped and whose service has ended. NULL is allowed. */
void gw_tensor_table_destroy(struct gw_tensor_table *table);
const struct gw_tensor_table_options *gw_tensor_table_options(const struct gw_tensor_table *table);

/* Creates or finds what the call names: *state is how far it is, and *births, [state->births], stay as they are as long
 * as the shard is held: *out is the caller's to leave. GW_EXISTS, GW_NO_SPACE, GW_NOT_FOUND (call->open), GW_LIMIT. */
gw_status gw_tensor_table_make(struct gw_tensor_table *table, const struct gw_tensor_create_call *call,
			       struct gw_tensor_state *state, const uint64_t **epochs, struct gw_shard **out);

/* Makes what a server has from its start, before clients come: its leader, unless that is here, is the first that a
 * client names. Errors as of gw_tensor_table_make. */
gw_status gw_tensor_table_expect(struct gw_tensor_table *table, const struct gw_tensor_plan *plan);

/* Notes which births ([parts] uint64, wherever they lie) belong to a tensor whose part 0 is here; who comes later gets
 * those of the first. */
gw_status gw_tensor_table_complete(struct gw_tensor_table *table, uint64_t epoch, const void *epochs,
				   const uint64_t **kept, struct gw_shard **out);

/* The shard of a birth, filled. GW_NOT_FOUND: it is not here any more. It is the caller's to leave. */
gw_status gw_tensor_table_find(struct gw_tensor_table *table, uint64_t epoch, struct gw_shard **out);
void gw_shard_unref(struct gw_tensor_table *table, struct gw_shard *shard);

/* Room for an optimizer's state beside the rows: taken into account once, and made by the table's keeper: GW_AGAIN
 * until it has. GW_NO_SPACE, GW_NOT_FOUND (deleted meanwhile) and the errors of gw_row_store_prepare. */
gw_status gw_shard_prepare(struct gw_tensor_table *table, struct gw_shard *shard, enum gw_optimizer_kind kind);

/* What a push works with, kept from one to the next: any thread takes one, and gives it back when it is done. */
void gw_tensor_table_acquire_scratch(struct gw_tensor_table *table, struct gw_row_push_scratch *out);
void gw_tensor_table_release_scratch(struct gw_tensor_table *table, struct gw_row_push_scratch *scratch);

/* *count: how many it deleted: 0 or 1. job "": a kept one. leader: as in struct gw_tensor_delete_call. GW_EXISTS. */
gw_status gw_tensor_table_delete(struct gw_tensor_table *table, const char *job, const char *name, uint64_t leader,
				 uint32_t *count);

/* A client of the job `name` is there: what the job has here stays. Returns after how many milliseconds it is to be
 * heard again; 0: it need not. A job that has nothing here is not noted, so that any number of them may be there. */
uint32_t gw_tensor_table_lease(struct gw_tensor_table *table, const char *name);

/* Deletes all that a job has; *count of them. GW_INVALID: kept ones are no job's. */
gw_status gw_tensor_table_end_job(struct gw_tensor_table *table, const char *job, uint32_t *count);

/* Up to max shards after one, in the order of job and name; job NULL: of all jobs. after_job NULL: from the first. */
uint32_t gw_tensor_table_list(struct gw_tensor_table *table, const char *job, const char *after_job,
			      const char *after_name, struct gw_tensor_listed *out, uint32_t max);

/* A client tells that it has read so many rows of a shard by itself. One that is gone is no error. */
void gw_tensor_table_note_reads(struct gw_tensor_table *table, uint64_t epoch, uint64_t rows);

/* For statistics: each shard that is listed, with the bytes that it takes; the table is locked meanwhile. */
void gw_tensor_table_each(struct gw_tensor_table *table,
			  void (*visit)(void *context, const struct gw_shard *shard, uint64_t bytes, bool ready),
			  void *context);
uint64_t gw_tensor_table_bytes(struct gw_tensor_table *table);

#endif
