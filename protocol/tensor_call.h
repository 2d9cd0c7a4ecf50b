/* The calls on tensors: create, complete, list, delete, pull, update, push, count, hold, end_job, reads, save,
 * restore.
 * Little-endian, 8-byte aligned, structures as they lie in memory.
 *
 * A tensor has a part on every server, and each part a birth: a number that no other one ever has, of which the upper
 * half is the server process's and the lower half ascends. Part 0 leads:
 *
 *   CREATE at part 0 -> its birth ("leader")
 *     -> CREATE at the others, with it -> again, until all rows have their values
 *     -> COMPLETE at part 0: the births of all parts, kept there for clients that open it later
 *
 * so that rows of one tensor and those of another of its name, created again after a server's end, are never taken for
 * one. All later calls name the birth: a server that ended, or deleted the tensor, knows it no more.
 *
 *   CREATE:    struct gw_tensor_create_call -> struct gw_tensor_state, births [parts] if complete
 *   COMPLETE:  struct gw_tensor_complete_call, births [parts] -> births [parts]: those of who was first
 *   LIST:      struct gw_tensor_list_call -> struct gw_tensor_listed [n], those after a name, as many as fit
 *   DELETE:    struct gw_tensor_delete_call -> uint64: how many there were
 *   PULL:      struct gw_tensor_rows_call, rows [count] uint64 -> rows' bytes [count]
 *   UPDATE:    struct gw_tensor_rows_call, rows [count] uint64, bytes [count] -> nothing. Of equal rows the last counts
 *   PUSH:      struct gw_tensor_push_call, uint64 [parameters], rows [count] uint64, float32 [count] if squares,
 *              float32 [count][row] -> nothing. Of no rows: whether the optimizer's state is there, which is made if it
 *              is not -> nothing: it is, and no push waits for it; uint64 0: not yet, to be asked again
 *   COUNT:     struct gw_tensor_range_call -> uint64: elements of these rows that are not zero
 *   HOLD:      char job[GW_JOB_NAME_MAX + 1] -> uint64: a client of the job is there, and is to say so again after so
 *              many milliseconds; 0: need not. Told by each client that belongs to a job, from its opening on
 *   END_JOB:   char job[GW_JOB_NAME_MAX + 1] -> uint64: how many tensors it had, which are deleted
 *   READS:     struct gw_tensor_read [n] -> nothing: what a client has read by itself. Told now and then, and when it
 *              closes. An estimate: a call whose reply is lost is told again
 *   SAVE:      struct gw_tensor_range_call -> struct gw_tensor_saved, float32 [count][state_floats], bytes [count].
 *              Each row and its optimizer's state are of one moment. The head alone, with state: state has come in the
 *              midst of it, or makes the reply too long: to be asked again
 *   RESTORE:   struct gw_tensor_restore_call, rows [count] uint64, float32 [count][floats] -> nothing: some columns of
 *              the state, which is made if there is none. The rows themselves come by UPDATE
 *
 * Rows are numbers within the part. Every length and number of a peer is checked before it is used.
 */
#ifndef GW_PROTOCOL_TENSOR_CALL_H
#define GW_PROTOCOL_TENSOR_CALL_H

#include <graphwire/tensors.h>

#include "core/graph/meta.h"
#include "core/rows/optimizer.h"

#define GW_JOB_NAME_MAX         63
#define GW_TENSOR_SOURCE_MAX    255
#define GW_TENSOR_REQUEST_BYTES (640u << 10) /* of the calls that carry rows, at most; a longer row goes alone */
#define GW_TENSOR_PULL_BYTES    (512u << 10) /* of the reply to a PULL, likewise */
#define GW_TENSOR_LIST_MAX      256u         /* of one reply */
#define GW_TENSOR_READS_MAX     64u          /* shards of one READS */
#define GW_TENSOR_READ_ROWS_MAX (1ull << 40) /* of one shard, in one READS */

/* What a tensor is: the same on all its servers, compared when it is opened. */
struct gw_tensor_plan {
	char name[GW_TENSOR_NAME_MAX + 1];
	char job[GW_JOB_NAME_MAX + 1]; /* "": it is kept */
	char source[GW_TENSOR_SOURCE_MAX +
		    1]; /* GW_INITIAL_COPY: an array's key; "=" and the name of a job's tensor, "+" of a kept one */
	uint64_t shape[GW_DIMS_MAX];
	uint64_t seed;
	double low, high;
	uint32_t dtype, ndim, placement, type, initial, padding;
};

struct gw_tensor_create_call {
	struct gw_tensor_plan plan;
	uint64_t leader; /* the birth at part 0; 0: this is part 0 */
	uint32_t open;   /* 1: only the name, job and leader count, and nothing is created */
	uint32_t
		restored; /* 1: its rows come from a checkpoint: a copy begins with zeros, and its source need not be */
};

struct gw_tensor_state {
	struct gw_tensor_plan plan;
	uint64_t epoch, leader;
	uint64_t filled;             /* rows of this part that have their values so far, for who waits */
	uint32_t ready;              /* 1: all rows of this part have their values */
	uint32_t hold_ms;            /* a client that holds it is to be heard of as often; 0: need not */
	uint32_t epochs;             /* that follow: none until it is complete */
	uint32_t region, generation; /* where clients may read the rows by themselves; generation 0: nowhere */
	uint32_t restored;           /* as it was created: whoever completes it creates the other parts likewise */
};

struct gw_tensor_complete_call {
	uint64_t epoch; /* at part 0 */
	uint32_t parts, padding;
};

struct gw_tensor_list_call {
	char job[GW_JOB_NAME_MAX + 1];      /* whose tensors, besides the kept ones */
	char after[GW_TENSOR_NAME_MAX + 1]; /* from the beginning: "" and kept = 1 */
	uint32_t after_kept, padding;
};

struct gw_tensor_listed {
	struct gw_tensor_plan plan;
	uint64_t epoch, leader, bytes;
};

/* Rows of a shard that a client read without its server seeing it, since it told last. An estimate: see READS. */
struct gw_tensor_read {
	uint64_t epoch, rows;
};

struct gw_tensor_delete_call {
	char name[GW_TENSOR_NAME_MAX + 1];
	char job[GW_JOB_NAME_MAX + 1];
	uint64_t leader; /* 0: whatever has this name; else what is left of a creation that failed, unless (GW_EXISTS)
			    another client has completed it */
};

struct gw_tensor_rows_call {
	uint64_t epoch;
	uint32_t count;
	uint32_t torn; /* PULL: 1: read before, and torn each time */
};

struct gw_tensor_push_call {
	struct gw_tensor_rows_call rows; /* first */
	uint32_t kind, combine;
	uint32_t squares;    /* 1: gradients for equal rows were added up, and the sums of their mean(g^2) come first */
	uint32_t parameters; /* of the optimizer, in the order of its table (core/rows/optimizer.h): they follow */
};

/* A push in memory, and the bytes that it begins with: those in front of its rows. */
struct gw_tensor_push {
	struct gw_tensor_rows_call rows;
	struct gw_optimizer optimizer;
	bool squares;
};
#define GW_TENSOR_PUSH_HEAD_MAX (sizeof(struct gw_tensor_push_call) + GW_OPTIMIZER_PARAMETERS_MAX * sizeof(uint64_t))
uint32_t gw_tensor_push_encode(const struct gw_tensor_push *push, uint8_t out[GW_TENSOR_PUSH_HEAD_MAX]);

/* Rows first to first + count. */
struct gw_tensor_range_call {
	uint64_t epoch, first;
	uint32_t count, padding; /* SAVE: 0: only the head is asked for */
};

struct gw_tensor_saved {
	uint64_t state_floats;  /* of a row; 0: no optimizer has trained this part's rows, or its kind has no state */
	uint32_t kind, padding; /* of the optimizer, where there is state */
};

struct gw_tensor_restore_call {
	struct gw_tensor_rows_call rows; /* first */
	uint32_t kind, padding;
	uint64_t first, floats; /* columns of a row's state */
};

/* Calls as they come from a peer, who may send anything. GW_PROTOCOL: lengths that do not fit, texts without an end, or
 * with something behind it, numbers that name nothing. Whether a plan makes sense for a graph is not looked at here. */
gw_status gw_tensor_create_parse(const void *bytes, size_t byte_count, struct gw_tensor_create_call *call);
gw_status gw_tensor_complete_parse(const void *bytes, size_t byte_count, struct gw_tensor_complete_call *call,
				   const uint8_t **epochs);
gw_status gw_tensor_list_parse(const void *bytes, size_t byte_count, struct gw_tensor_list_call *call);
gw_status gw_tensor_delete_parse(const void *bytes, size_t byte_count, struct gw_tensor_delete_call *call);
/* A call on rows: *rows and what follows them, *payload of *payload_bytes, point into the call's bytes. */
gw_status gw_tensor_rows_parse(const void *bytes, size_t byte_count, struct gw_tensor_rows_call *call,
			       const uint8_t **rows, const uint8_t **payload, size_t *payload_bytes);
gw_status gw_tensor_push_parse(const void *bytes, size_t byte_count, struct gw_tensor_push *push, const uint8_t **rows,
			       const uint8_t **payload, size_t *payload_bytes);
gw_status gw_tensor_range_parse(const void *bytes, size_t byte_count, struct gw_tensor_range_call *call);
gw_status gw_tensor_restore_parse(const void *bytes, size_t byte_count, struct gw_tensor_restore_call *call,
				  const uint8_t **rows, const uint8_t **payload);
/* Pair i of *count: gw_tensor_number(reads, 2 * i) is the birth, and the next the rows. */
gw_status gw_tensor_reads_parse(const void *bytes, size_t byte_count, const uint8_t **reads, uint32_t *count);
gw_status gw_tensor_lease_parse(const void *bytes, size_t byte_count, char job[GW_JOB_NAME_MAX + 1]);

/* Replies, likewise. *births points into them: none, or one for each of `parts`. */
gw_status gw_tensor_state_parse(const void *bytes, size_t byte_count, uint32_t parts, struct gw_tensor_state *state,
				const uint8_t **epochs);
gw_status gw_tensor_listed_parse(const void *bytes, size_t byte_count, struct gw_tensor_listed *out, uint32_t *count);

/* *state and *rows point into the reply to a SAVE of so many rows of so many bytes; NULL: it is the head alone. */
gw_status gw_tensor_saved_parse(const void *bytes, size_t byte_count, uint32_t count, uint64_t row_bytes,
				struct gw_tensor_saved *saved, const uint8_t **state, const uint8_t **rows);

/* Whether a name is one: letters, digits and "._-:/", not empty, not too long. */
bool gw_tensor_name_valid(const char *name);
bool gw_job_name_valid(const char *job);

/* Number i of an array in a call. */
uint64_t gw_tensor_number(const uint8_t *numbers, uint64_t i);

#endif
