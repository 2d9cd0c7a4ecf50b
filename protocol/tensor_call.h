/* The calls on tensors: create, complete, list, delete, pull, update, push, count, lease, end_job, reads, save,
 * restore. Little-endian, 8-byte aligned, structures as they are in memory.
 *
 * A tensor has a part (a shard) on every server, and each shard has an epoch: a number that is never reused. Its upper
 * half identifies the server process, and its lower half ascends. Part 0 leads:
 *
 *   CREATE at part 0 -> its epoch ("leader")
 *     -> CREATE at the others, with the leader, repeated until all rows have their values
 *     -> COMPLETE at part 0: the epochs of all parts, which part 0 keeps for clients that open the tensor later
 *
 * The epochs distinguish a tensor's rows from those of a later tensor of the same name, created after a server's end.
 * All later calls name the epoch. A server that has restarted, or has deleted the tensor, does not know the epoch.
 *
 *   CREATE:    struct gw_tensor_create_call -> struct gw_tensor_state, epochs [parts] if complete
 *   COMPLETE:  struct gw_tensor_complete_call, epochs [parts] -> epochs [parts]: those of the first client to complete
 *   LIST:      struct gw_tensor_list_call -> struct gw_tensor_listed [n], the tensors after a name, as many as fit
 *   DELETE:    struct gw_tensor_delete_call -> uint64: how many tensors were deleted
 *   PULL:      struct gw_tensor_rows_call, rows [count] uint64 -> rows' bytes [count]
 *   UPDATE:    struct gw_tensor_rows_call, rows [count] uint64, bytes [count] -> nothing. If a row repeats, its last
 *              value counts
 *   PUSH:      struct gw_tensor_push_call, uint64 [parameters], rows [count] uint64, float32 [count] if squares,
 *              float32 [count][row] -> nothing
 *   PUSH of no rows: asks the server to allocate the optimizer's state -> nothing: the state exists, so no push waits
 *              for it; or uint64 0: the state does not exist yet, ask again
 *   COUNT:     struct gw_tensor_range_call -> uint64: elements of these rows that are not zero
 *   LEASE:     char job[GW_JOB_NAME_MAX + 1] -> uint64: milliseconds after which the client must renew its lease; 0:
 *              never. Each client of a job sends LEASE when it opens, and for each renewal
 *   END_JOB:   char job[GW_JOB_NAME_MAX + 1] -> uint64: how many tensors the job had, which are deleted
 *   READS:     struct gw_tensor_read [n] -> nothing: how many rows a client has read one-sided. A client sends it now
 *              and then, and when it closes. The server's sum is an estimate, because a client sends the call again if
 *              the reply is lost
 *   SAVE:      struct gw_tensor_range_call -> struct gw_tensor_saved, float32 [count][state_floats], bytes [count].
 *              Each row and its optimizer's state are of one moment. If the reply is the head alone and state_floats
 *              is not 0, the state was allocated during the call or makes the reply too long: ask again
 *   RESTORE:   struct gw_tensor_restore_call, rows [count] uint64, float32 [count][floats] -> nothing. Sets some
 *              columns of the state, which the server allocates if necessary. UPDATE carries the rows themselves
 *
 * Rows are numbers within the part. Every length and number from a peer is checked before its use.
 */
#ifndef GW_PROTOCOL_TENSOR_CALL_H
#define GW_PROTOCOL_TENSOR_CALL_H

#include <graphwire/tensors.h>

#include "core/graph/meta.h"
#include "core/rows/optimizer.h"

#define GW_JOB_NAME_MAX         63
#define GW_TENSOR_SOURCE_MAX    255
#define GW_TENSOR_REQUEST_BYTES (640u << 10) /* of calls that carry rows, at most; a longer row is sent alone */
#define GW_TENSOR_PULL_BYTES    (512u << 10) /* of the reply to a PULL, at most; a longer row is sent alone */
#define GW_TENSOR_LIST_MAX      256u         /* in one reply */
#define GW_TENSOR_READS_MAX     64u          /* shards in one READS */
#define GW_TENSOR_READ_ROWS_MAX (1ull << 40) /* of one shard, in one READS */

/* A tensor's description: the same on all servers, which compare it when a client opens the tensor. */
struct gw_tensor_plan {
	char name[GW_TENSOR_NAME_MAX + 1];
	char job[GW_JOB_NAME_MAX + 1]; /* "": a kept tensor */
	/* GW_INITIAL_COPY: an array's key; "=" and the name of a job's tensor; or "+" and the name of a kept tensor */
	char source[GW_TENSOR_SOURCE_MAX + 1];
	uint64_t shape[GW_DIMS_MAX];
	uint64_t seed;
	double low, high;
	uint32_t dtype, ndim, placement, type, initial, padding;
};

struct gw_tensor_create_call {
	struct gw_tensor_plan plan;
	uint64_t leader;   /* the shard epoch at part 0; 0: this is part 0 */
	uint32_t open;     /* 1: creates nothing; only the name, job and leader count */
	uint32_t restored; /* 1: rows come from a checkpoint: a copy begins with zeros, without its source */
};

struct gw_tensor_state {
	struct gw_tensor_plan plan;
	uint64_t epoch, leader;
	uint64_t filled;             /* rows of this part that have their values so far, for a client that waits */
	uint32_t ready;              /* 1: all rows of this part have their values */
	uint32_t lease_ms;           /* milliseconds after which a client must renew its lease; 0: never */
	uint32_t epochs;             /* number of epochs that follow; 0 until the tensor is complete */
	uint32_t region, generation; /* where clients may read the rows one-sided; generation 0: nowhere */
	/* as in the call that created this part; a client that completes the tensor creates the other parts with this
	 * value */
	uint32_t restored;
};

struct gw_tensor_complete_call {
	uint64_t epoch; /* the epoch at part 0 */
	uint32_t parts, padding;
};

struct gw_tensor_list_call {
	char job[GW_JOB_NAME_MAX + 1];      /* the job whose tensors to list, in addition to kept ones */
	char after[GW_TENSOR_NAME_MAX + 1]; /* to list from the beginning: "" and kept = 1 */
	uint32_t after_kept, padding;
};

struct gw_tensor_listed {
	struct gw_tensor_plan plan;
	uint64_t epoch, leader, bytes;
};

/* How many rows of a shard a client has read one-sided since its last report. An estimate: see READS. */
struct gw_tensor_read {
	uint64_t epoch, rows;
};

struct gw_tensor_delete_call {
	char name[GW_TENSOR_NAME_MAX + 1];
	char job[GW_JOB_NAME_MAX + 1];
	uint64_t leader; /* 0: any tensor of this name; else the remains of a failed creation, unless another client has
			    completed it (GW_EXISTS) */
};

struct gw_tensor_rows_call {
	uint64_t epoch;
	uint32_t count;
	uint32_t torn; /* PULL: 1: the client has read the rows before, and every copy was torn */
};

struct gw_tensor_push_call {
	struct gw_tensor_rows_call rows; /* must be the first member */
	uint32_t kind, combine;
	/* 1: gradients for equal rows were added up, and the sums of their mean(g^2) precede the gradients */
	uint32_t squares;
	/* number of the optimizer's parameters that follow, in the order of its table (core/rows/optimizer.h) */
	uint32_t parameters;
};

/* A push in memory, and the bytes before its rows. */
struct gw_tensor_push {
	struct gw_tensor_rows_call rows;
	struct gw_optimizer optimizer;
	bool squares;
};
#define GW_TENSOR_PUSH_HEAD_MAX (sizeof(struct gw_tensor_push_call) + GW_OPTIMIZER_PARAMETERS_MAX * sizeof(uint64_t))
uint32_t gw_tensor_push_encode(const struct gw_tensor_push *push, uint8_t out[GW_TENSOR_PUSH_HEAD_MAX]);

/* Rows first to first + count - 1. */
struct gw_tensor_range_call {
	uint64_t epoch, first;
	uint32_t count, padding; /* SAVE: count 0 asks for the head only */
};

struct gw_tensor_saved {
	uint64_t state_floats;  /* of a row; 0: no optimizer has trained this part's rows, or its kind has no state */
	uint32_t kind, padding; /* kind of the optimizer, if state_floats is not 0 */
};

struct gw_tensor_restore_call {
	struct gw_tensor_rows_call rows; /* must be the first member */
	uint32_t kind, padding;
	uint64_t first, floats; /* columns of a row's state */
};

/* Parse calls from a peer, which may send any bytes. GW_PROTOCOL: lengths that do not fit, texts without an end or with
 * bytes after it, numbers out of range. Whether a plan fits the graph is not checked here. */
gw_status gw_tensor_create_parse(const void *bytes, size_t byte_count, struct gw_tensor_create_call *call);
gw_status gw_tensor_complete_parse(const void *bytes, size_t byte_count, struct gw_tensor_complete_call *call,
				   const uint8_t **epochs);
gw_status gw_tensor_list_parse(const void *bytes, size_t byte_count, struct gw_tensor_list_call *call);
gw_status gw_tensor_delete_parse(const void *bytes, size_t byte_count, struct gw_tensor_delete_call *call);
/* A call on rows: *rows and the *payload_bytes bytes at *payload point into the call's bytes. */
gw_status gw_tensor_rows_parse(const void *bytes, size_t byte_count, struct gw_tensor_rows_call *call,
			       const uint8_t **rows, const uint8_t **payload, size_t *payload_bytes);
gw_status gw_tensor_push_parse(const void *bytes, size_t byte_count, struct gw_tensor_push *push, const uint8_t **rows,
			       const uint8_t **payload, size_t *payload_bytes);
gw_status gw_tensor_range_parse(const void *bytes, size_t byte_count, struct gw_tensor_range_call *call);
gw_status gw_tensor_restore_parse(const void *bytes, size_t byte_count, struct gw_tensor_restore_call *call,
				  const uint8_t **rows, const uint8_t **payload);
/* Pair i of *count: gw_tensor_number(reads, 2 * i) is the shard epoch, and the next number is the rows. */
gw_status gw_tensor_reads_parse(const void *bytes, size_t byte_count, const uint8_t **reads, uint32_t *count);
gw_status gw_tensor_lease_parse(const void *bytes, size_t byte_count, char job[GW_JOB_NAME_MAX + 1]);

/* Parse replies in the same way. *epochs points into them: none, or one for each of `parts`. */
gw_status gw_tensor_state_parse(const void *bytes, size_t byte_count, uint32_t parts, struct gw_tensor_state *state,
				const uint8_t **epochs);
gw_status gw_tensor_listed_parse(const void *bytes, size_t byte_count, struct gw_tensor_listed *out, uint32_t *count);

/* *state and *rows point into the reply to a SAVE of `count` rows of row_bytes each; NULL: the reply is the head
 * only. */
gw_status gw_tensor_saved_parse(const void *bytes, size_t byte_count, uint32_t count, uint64_t row_bytes,
				struct gw_tensor_saved *saved, const uint8_t **state, const uint8_t **rows);

/* Whether a name is valid: letters, digits and "._-:/+", not empty, not too long. */
bool gw_tensor_name_valid(const char *name);
bool gw_job_name_valid(const char *job);

/* Number i of an array in a call. */
uint64_t gw_tensor_number(const uint8_t *numbers, uint64_t i);

#endif
