/* The tensors of one part, at a server or in a standalone client. The rows of a tensor in this part are a shard.
 *
 *   make ─▶ WAITING ─▶ a thread fills it ─▶ READY ─▶ delete, or its job ends ─▶ the last user releases it
 *                                         └─▶ FAILED: the next request gets the error; the shard is removed
 *
 * Threads: any thread may make any call at any time, except create, stop and destroy. The calls that pulls and pushes
 * make never wait (find, unref, prepare once the state exists, scratch, note_reads). Other calls wait only for a lock
 * that is held briefly. Limits: memory (bytes_max), GW_TENSORS_MAX tensors, GW_TENSOR_JOBS_MAX jobs.
 */
#ifndef GW_TENSORS_TABLE_H
#define GW_TENSORS_TABLE_H

#include "core/graph/part.h"
#include "core/rows/store.h"
#include "tensors/plan.h"
#include "transport/service/service.h"

#define GW_TENSORS_MAX     4096
#define GW_TENSOR_JOBS_MAX 1024

struct gw_tensor_table_options {
	const struct gw_graph_meta *meta;
	const struct gw_part *part; /* original ids, and features to copy; must outlive the table */
	/* Publishes filled rows, so that clients can read them. The service must end after gw_tensor_table_stop and
	 * before gw_tensor_table_destroy. NULL: rows are not published. */
	struct gw_service *service;
	uint64_t incarnation;
	uint64_t bytes_max; /* of all rows and their state; 0: limited only by the machine */
	uint32_t lease_ms;  /* a job ends if no client renews its lease for this long; 0: jobs do not end */
	enum gw_huge_policy huge;
	int numa;
};

/* Operations on a shard's rows so far. */
struct gw_shard_counts {
	_Atomic uint64_t written, pushed, pulled; /* rows */
	/* rows that clients read without a request, as far as the clients have reported them */
	_Atomic uint64_t read;
	_Atomic uint64_t pulls; /* requests for rows */
	_Atomic uint64_t torn;  /* rows pulled because a read was torn */
};

struct gw_shard_users;

struct gw_shard {
	struct gw_shard *next; /* the table owns the fields from here to `users` */
	bool listed;
	struct gw_shard_users *users; /* reference count */
	/* Set before other threads see the shard. */
	struct gw_tensor_plan plan;
	struct gw_tensor_layout layout;
	uint64_t epoch;
	uint64_t leader; /* the shard epoch at part 0; 0: not known yet, the first client that names one sets it */
	/* Set once the shard is READY. */
	struct gw_row_store *store;
	struct gw_shard_counts counts;
};

struct gw_tensor_table;

gw_status gw_tensor_table_create(const struct gw_tensor_table_options *options, struct gw_tensor_table **out);
/* Ends the threads, after they have finished the shard that they are filling. Call it before the service ends, since
 * the threads publish to it. Waiting shards are not filled any more. No call may be open. NULL is allowed. */
void gw_tensor_table_stop(struct gw_tensor_table *table);
/* Frees all tensors of a table that was stopped and whose service has ended. NULL is allowed. */
void gw_tensor_table_destroy(struct gw_tensor_table *table);
const struct gw_tensor_table_options *gw_tensor_table_options(const struct gw_tensor_table *table);

/* Creates or finds the tensor that the call names. *state is its progress. *epochs, [state->epochs], stays valid while
 * the caller references the shard *out, which the caller must release. GW_EXISTS, GW_NO_SPACE, GW_NOT_FOUND
 * (call->open), GW_LIMIT. */
gw_status gw_tensor_table_make(struct gw_tensor_table *table, const struct gw_tensor_create_call *call,
			       struct gw_tensor_state *state, const uint64_t **epochs, struct gw_shard **out);

/* Creates a tensor that a server has from its start, before clients connect. At part 0 its leader is known; elsewhere
 * the first client that names a leader sets it. Fails as gw_tensor_table_make does. */
gw_status gw_tensor_table_expect(struct gw_tensor_table *table, const struct gw_tensor_plan *plan);

/* Stores which epochs ([parts] uint64, unaligned) belong to a tensor whose part 0 is in this table. Later calls get the
 * epochs of the first call. */
gw_status gw_tensor_table_complete(struct gw_tensor_table *table, uint64_t epoch, const void *epochs,
				   const uint64_t **kept, struct gw_shard **out);

/* Finds the filled shard of an epoch, for the caller to release. GW_NOT_FOUND: the shard does not exist any more. */
gw_status gw_tensor_table_find(struct gw_tensor_table *table, uint64_t epoch, struct gw_shard **out);
void gw_shard_unref(struct gw_tensor_table *table, struct gw_shard *shard);

/* Requests memory for an optimizer's state of the rows. The bytes of the state are counted once. A thread of the table
 * (the keeper) allocates the state; until then the call returns GW_AGAIN. GW_NO_SPACE, GW_NOT_FOUND (deleted meanwhile)
 * and the errors of gw_row_store_prepare. */
gw_status gw_shard_prepare(struct gw_tensor_table *table, struct gw_shard *shard, enum gw_optimizer_kind kind);

/* Scratch memory of a push, kept from one push to the next. Any thread may acquire scratch, and releases it when the
 * push ends. */
void gw_tensor_table_acquire_scratch(struct gw_tensor_table *table, struct gw_row_push_scratch *out);
void gw_tensor_table_release_scratch(struct gw_tensor_table *table, struct gw_row_push_scratch *scratch);

/* Deletes a tensor's shard. *count: the number of deleted shards, 0 or 1. job "": a kept tensor, which belongs to no
 * job (GW_KEPT). leader: as in struct gw_tensor_delete_call. GW_EXISTS. */
gw_status gw_tensor_table_delete(struct gw_tensor_table *table, const char *job, const char *name, uint64_t leader,
				 uint32_t *count);

/* Renews the lease of a job, so that its tensors stay. Returns after how many milliseconds the client must renew it
 * again; 0: never. A job without tensors here is not recorded, so any number of such jobs may exist. */
uint32_t gw_tensor_table_lease(struct gw_tensor_table *table, const char *name);

/* Deletes all tensors of a job and returns their number in *count. GW_INVALID: kept tensors belong to no job. */
gw_status gw_tensor_table_end_job(struct gw_tensor_table *table, const char *job, uint32_t *count);

/* Lists up to max shards after the given one, in the order of job and name. job NULL: of all jobs. after_job NULL: from
 * the first shard. */
uint32_t gw_tensor_table_list(struct gw_tensor_table *table, const char *job, const char *after_job,
			      const char *after_name, struct gw_tensor_listed *out, uint32_t max);

/* Records that a client has read this many rows of a shard without a request. A shard that does not exist any more is
 * not an error. */
void gw_tensor_table_note_reads(struct gw_tensor_table *table, uint64_t epoch, uint64_t rows);

/* For statistics: visits each listed shard, with the bytes that it uses. The table is locked meanwhile. */
void gw_tensor_table_each(struct gw_tensor_table *table,
			  void (*visit)(void *context, const struct gw_shard *shard, uint64_t bytes, bool ready),
			  void *context);
uint64_t gw_tensor_table_bytes(struct gw_tensor_table *table);

/* Operations on the rows of all tensors, of deleted ones too. */
struct gw_tensor_totals {
	uint64_t written, pushed, pulled, read, pulls, torn;
};
void gw_tensor_table_totals(struct gw_tensor_table *table, struct gw_tensor_totals *out);

#endif
