/* Tensors that change: trainers create, read, overwrite and train rows in the memory of the servers (standalone: of
 * this process). Part of graphwire.h, whose rules for threads, errors and time hold here too.
 *
 *   gw_tensor_create (every trainer: the first creates, the others open) -> gw_gather, gw_update, gw_push ...
 *                     -> gw_flush -> gw_tensor_delete, or the job's end
 *
 * Names: only a job's own clients see its tensors (gw_client_options.job); all clients see kept tensors.
 * Lifetime: each open client of a job leases all tensors of the job, even those that it has not opened. After the last
 * client has closed, servers keep the tensors for a while (serve --tensor-lease, 300 s), so that a client may come
 * back.
 * Writes: one client's writes of one row take effect in the order of the calls. Every read that begins after a write
 * has returned, or after its ticket has ended with GW_OK, sees the write, in any client. No client ever sees a
 * half-written row. Each write is applied once, however often connections are lost meanwhile. A write that fails, or
 * whose client ends during it, may have changed some of its rows. Each row is then changed completely or not at all.
 * Loss: rows live in memory, so they are lost when their server ends. Calls that use the tensor then return
 * GW_NOT_FOUND, never zeros, and the error names the tensor. A reader of mapped memory gets the error once it has
 * learned of the server's end. Delete the tensor and create it again.
 */
#ifndef GRAPHWIRE_TENSORS_H
#define GRAPHWIRE_TENSORS_H

#include <stdbool.h>

#include <graphwire/rows.h>
#include <graphwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gw_client;
struct gw_tensor;
struct gw_ticket;

#define GW_TENSOR_NAME_MAX      127     /* bytes of a name */
#define GW_TENSOR_ROW_BYTES_MAX 4194304 /* bytes of one row */

/* The part that stores a row. */
enum gw_placement {
	GW_PLACE_NODES,   /* row i in the part that owns node i of a type */
	GW_PLACE_EDGES,   /* row i in the part that owns edge i of a type */
	GW_PLACE_EVEN,    /* equal shares of consecutive rows: part p begins at row p * ceil(rows / parts) */
	GW_PLACE_STRIPED, /* row i in part i % parts */
};

enum gw_lifetime {
	GW_OF_JOB, /* until the job is ended, or has had no client for the time of the servers' lease */
	GW_KEPT,   /* until it is deleted, or the servers end */
};

/* The tensor to create. Zero-initialize, then set the fields that differ from the default. */
struct gw_tensor_spec {
	const char *name; /* letters, digits and "._-:/+", at most GW_TENSOR_NAME_MAX */
	gw_dtype dtype;   /* float32, float16, bfloat16, float64, bool, integers */
	enum gw_placement placement;
	uint32_t type;               /* GW_PLACE_NODES, _EDGES: the node or edge type */
	uint32_t ndim;               /* 1 to GW_DIMS_MAX */
	uint64_t shape[GW_DIMS_MAX]; /* shape[0]: rows over all parts; 0: as many as the type has */
	enum gw_initial initial;
	double low, high; /* for the initial values */
	uint64_t seed; /* for random values, which depend only on seed, original id and column; the partition does not
			  matter. For edges without original ids see rows.h */
	const struct gw_tensor *from; /* GW_INITIAL_COPY: a feature or tensor of the same placement, dtype and shape */
	enum gw_lifetime lifetime;
};

/* Creates a tensor, or opens the tensor of this name. All trainers may call it at once, without a barrier: one creates,
 * the others wait until each row has its value. The wait may exceed the operation's deadline; the log reports the
 * progress. The client owns *out, which is valid until the client is closed; opening the tensor again returns the same
 * pointer. Errors:
 *   GW_EXISTS     another tensor has this name; the error names the difference
 *   GW_NO_SPACE   a server's memory for tensors (serve --tensor-memory) does not suffice
 *   GW_LIMIT      a row of more than GW_TENSOR_ROW_BYTES_MAX; a copy of a feature whose name and types have together
 *                 more than 245 bytes
 *   GW_INVALID    names the fault in the spec
 *   GW_NOT_FOUND  a server that had rows of the tensor has ended */
GW_API gw_status gw_tensor_create(struct gw_client *client, const struct gw_tensor_spec *spec,
				  const struct gw_tensor **out);

/* Opens a tensor that a client has created. GW_NOT_FOUND: no such tensor exists. */
GW_API gw_status gw_tensor_open(struct gw_client *client, const char *name, enum gw_lifetime lifetime,
				const struct gw_tensor **out);

/* Deletes a tensor and frees its memory. Calls in progress succeed or fail with GW_NOT_FOUND. Later calls fail with
 * GW_NOT_FOUND. Another client may still read mapped memory until it has learned of the deletion; its later calls fail.
 * Each server deletes the tensor once, after this client's writes, even if connections are lost. If another client has
 * since created a new tensor of this name, the new tensor stays. GW_NOT_FOUND: no tensor of this name exists. */
GW_API gw_status gw_tensor_delete(struct gw_client *client, const char *name, enum gw_lifetime lifetime);

/* Ends a job: deletes its tensors on all servers at once, instead of after the lease. job NULL: the client's own job. A
 * launcher that starts jobs on long-lived servers calls this after each job. Clients of the job that still run lose
 * their tensors, and may create others. Each server ends the job once, even if connections are lost. *count: how many
 * tensors the job had. */
GW_API gw_status gw_tensor_end_job(struct gw_client *client, const char *job, uint64_t *count);

/* A tensor in the servers' list. */
struct gw_tensor_entry {
	char name[GW_TENSOR_NAME_MAX + 1];
	enum gw_lifetime lifetime;
	gw_dtype dtype;
	enum gw_placement placement;
	uint32_t type; /* for GW_PLACE_NODES and GW_PLACE_EDGES */
	uint32_t ndim;
	uint64_t shape[GW_DIMS_MAX];
	uint64_t bytes; /* in the servers' memory, over all parts */
};

/* The tensors of this client's job and the kept tensors, by name. The caller owns *out and frees it with
 * gw_tensor_list_free. */
struct gw_tensor_list {
	uint32_t count;
	const struct gw_tensor_entry *entries; /* [count] */
};
GW_API gw_status gw_tensor_list(struct gw_client *client, struct gw_tensor_list **out);
GW_API void gw_tensor_list_free(struct gw_tensor_list *list); /* NULL is allowed */

/* Counts the elements of a tensor that are not zero, over all parts. The count reads rows at different moments. */
GW_API gw_status gw_tensor_count_nonzero(struct gw_client *client, const struct gw_tensor *tensor, uint64_t *out);

/* --- Writing. gw_gather reads these tensors as it reads features. --- */

/* Overwrites rows: tensor[ids[i]] = rows[i], n rows of row_bytes, contiguous. Ids may be in any order; if an id
 * repeats, its last row counts. Errors: those of gw_gather; GW_INVALID: the tensor is a feature, and the servers do not
 * serve it as rows that change (serve --mutable); GW_RANGE names the first id that is no row, and nothing is
 * written. */
GW_API gw_status gw_update(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
			   const void *rows);

/* Starts gw_update in the background. ids and rows belong to the library until gw_wait or gw_cancel has ended the
 * ticket. Any number of writes may be in progress. Each write's deadline begins when the writes before it are complete.
 * Until its ticket is ended, each write takes memory: 1.2 KiB, plus 40 bytes for each part and 12 bytes for each id. */
GW_API gw_status gw_update_start(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids,
				 uint64_t n, const void *rows, struct gw_ticket **ticket);

/* Waits until all writes that this client has begun are applied or have failed. The ticket of each write returns its
 * status. */
GW_API gw_status gw_flush(struct gw_client *client);

/* The number of rows in a part: *count rows, numbered from 0. This process reads and writes the rows of a near part
 * ("memory" or "shm" of gw_part_transport) without ids and without the network. GW_RANGE: the part does not exist. */
GW_API gw_status gw_tensor_part_rows(struct gw_client *client, const struct gw_tensor *tensor, uint32_t part,
				     uint64_t *count);

/* Reads or overwrites rows first to first + n - 1 of a part, contiguous. GW_RANGE: the part has fewer rows. */
GW_API gw_status gw_tensor_part_read(struct gw_client *client, const struct gw_tensor *tensor, uint32_t part,
				     uint64_t first, uint64_t n, void *out);
GW_API gw_status gw_tensor_part_write(struct gw_client *client, const struct gw_tensor *tensor, uint32_t part,
				      uint64_t first, uint64_t n, const void *rows);

/* --- Training. --- */

/* Trains rows: the optimizer (rows.h has the formulas) runs in the servers that store them. gradients: float32, n rows
 * with as many elements as the tensor's rows; the tensor's dtype must be floating-point.
 *
 * The first push fixes the tensor's kind of optimizer and allocates its state, which takes memory of its own. That push
 * and later writes of this tensor wait for the allocation, within their deadlines; other calls do not. A deadline that
 * expires does not stop the allocation, and a later push finds the state. Equal ids of one call change their row in one
 * step, whatever `combine` is. Errors: those of gw_update, and
 *   GW_INVALID   the optimizer's values are out of range
 *   GW_EXISTS    the tensor has state of another kind of optimizer
 *   GW_NO_SPACE  no memory for the state
 *   GW_LIMIT     with GW_COMBINE_EACH, one id has more than 9 MiB of gradients (except with GW_ADAGRAD_ROWS, which then
 *                adds them up and applies their sum) */
GW_API gw_status gw_push(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
			 const float *gradients, const struct gw_optimizer *optimizer);
/* Starts gw_push in the background, as gw_update_start does. ids and gradients belong to the library until gw_wait or
 * gw_cancel has ended the ticket. The call copies the optimizer. */
GW_API gw_status gw_push_start(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
			       const float *gradients, const struct gw_optimizer *optimizer, struct gw_ticket **ticket);

/* Reads or writes an array of the optimizer's state of rows: [n][columns], 4 bytes each. A write first allocates the
 * state, as a push does, but waits for it without a limit.
 *
 *   kind                        array      columns              dtype
 *   GW_ADAGRAD                  "sum"      as many as the row   float32
 *   GW_ADAGRAD_ROWS             "sum"      1                    float32
 *   GW_ADAM                     "step"     1                    uint32
 *   GW_ADAM                     "mean"     as many as the row   float32
 *   GW_ADAM                     "power"    as many as the row   float32
 *
 * Without state, reads give zeros, with which state begins. If an id repeats in a write, its last values count. The
 * calls are for tools and for saving: they take longer than gw_gather and gw_update. Errors: those of gw_update, and
 *   GW_INVALID   the kind has no such array
 *   GW_EXISTS    the tensor has state of another kind of optimizer
 *   GW_NO_SPACE  no memory for the state */
GW_API gw_status gw_tensor_state_read(struct gw_client *client, const struct gw_tensor *tensor,
				      enum gw_optimizer_kind kind, const char *array, const int64_t *ids, uint64_t n,
				      void *out);
GW_API gw_status gw_tensor_state_write(struct gw_client *client, const struct gw_tensor *tensor,
				       enum gw_optimizer_kind kind, const char *array, const int64_t *ids, uint64_t n,
				       const void *values);

#ifdef __cplusplus
}
#endif
#endif
