/* Tensors that change: rows that trainers create, read, overwrite and train, in the memory of the servers (standalone:
 * of this process). Part of graphwire.h, which says what holds of all calls: threads, errors, time.
 *
 *   gw_tensor_create (every trainer: the first creates, the others open) -> gw_gather, gw_update, gw_push ...
 *                     -> gw_flush -> gw_tensor_delete, or the job's end
 *
 * Names: a job's tensors are known to its own clients alone (gw_client_options.job); kept ones to all.
 * Lifetime: each client of a job, from its opening to its end, holds all tensors of the job, whether it has opened them
 * or not. Servers keep them for a while after the last (serve --tensor-lease, 300 s), so that one may come back.
 * Writes: of one client, writes of one row take effect in the order of their calls. A write that has returned, or whose
 * ticket has ended well, is seen by every read that begins afterwards, of any client. Nobody ever sees a row that is
 * half written. Each write is applied once, however often connections are lost meanwhile; one that fails, or whose
 * client ends in the midst of it, may have been applied to some of its rows, each of them whole.
 * Loss: rows live in memory. When a server ends, its rows are gone: who touches the tensor gets GW_NOT_FOUND with a
 * text that says so and names it, never zeros; a reader of mapped memory once it has heard of the end. Delete it and
 * create it again.
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

/* Where rows are. */
enum gw_placement {
	GW_PLACE_NODES,   /* row i with node i of a type: its owner has it */
	GW_PLACE_EDGES,   /* row i with edge i of a type */
	GW_PLACE_EVEN,    /* equal shares of neighbouring rows: part p has those from p * ceil(rows / parts) on */
	GW_PLACE_STRIPED, /* row i on part i % parts */
};

enum gw_lifetime {
	GW_OF_JOB, /* until the job is ended, or has had no client for as long as the servers say */
	GW_KEPT,   /* until it is deleted, or the servers end */
};

/* What to create. Zero-initialize, then set what differs. */
struct gw_tensor_spec {
	const char *name; /* letters, digits and "._-:/", at most GW_TENSOR_NAME_MAX */
	gw_dtype dtype;   /* float32, float16, bfloat16, float64, bool, integers */
	enum gw_placement placement;
	uint32_t type;               /* GW_PLACE_NODES, _EDGES: the node or edge type */
	uint32_t ndim;               /* 1 to GW_DIMS_MAX */
	uint64_t shape[GW_DIMS_MAX]; /* shape[0]: rows over all parts; 0: as many as the type has */
	enum gw_initial initial;
	double low, high; /* of the initial values */
	uint64_t seed;    /* of random ones: a function of seed, original id and column alone, so that they are the
			     same however the graph is partitioned; edges without original ids: see rows.h */
	const struct gw_tensor *from; /* GW_INITIAL_COPY: a feature or tensor of the same placement, dtype and shape */
	enum gw_lifetime lifetime;
};

/* Creates a tensor, or opens the one that has this name. Every trainer may call it at once, without a barrier: one
 * creates, the others wait until each row has its value. Waits for as long as that goes on, also beyond the operation's
 * deadline, and says in the log how far it is. *out is the client's, valid until that is closed; opened twice it is the
 * same. GW_EXISTS: there is another one of this name, and in what it differs; GW_NO_SPACE: a server's memory for
 * tensors (serve --tensor-memory) does not suffice; GW_LIMIT: a row of more than GW_TENSOR_ROW_BYTES_MAX; GW_INVALID
 * says what is wrong with the spec; GW_NOT_FOUND: a server that had rows of it has ended. */
GW_API gw_status gw_tensor_create(struct gw_client *client, const struct gw_tensor_spec *spec,
				  const struct gw_tensor **out);

/* Opens a tensor that somebody has created. GW_NOT_FOUND. */
GW_API gw_status gw_tensor_open(struct gw_client *client, const char *name, enum gw_lifetime lifetime,
				const struct gw_tensor **out);

/* Deletes a tensor and frees its memory. Calls that are under way end well, or with GW_NOT_FOUND, as do all later ones:
 * those of other clients once they have heard of it, which a read of mapped memory may precede. Each server does it
 * once, after this client's writes, as with writes over lost connections: one that others have created since stays.
 * GW_NOT_FOUND: there is none of this name. */
GW_API gw_status gw_tensor_delete(struct gw_client *client, const char *name, enum gw_lifetime lifetime);

/* Ends a job: deletes its tensors on all servers, so that they need not be waited for as long as servers hold them for
 * its clients to come back. job NULL: the client's own. Whatever starts jobs on servers that outlive them calls this
 * when one is over; a client of the job that is still there has lost its tensors, and may create others. Done once, as
 * gw_tensor_delete. *count: how many there were. */
GW_API gw_status gw_tensor_end_job(struct gw_client *client, const char *job, uint64_t *count);

/* A tensor as the servers know it. */
struct gw_tensor_entry {
	char name[GW_TENSOR_NAME_MAX + 1];
	enum gw_lifetime lifetime;
	gw_dtype dtype;
	enum gw_placement placement;
	uint32_t type; /* of GW_PLACE_NODES and _EDGES */
	uint32_t ndim;
	uint64_t shape[GW_DIMS_MAX];
	uint64_t bytes; /* of the servers' memory, over all parts */
};

/* The tensors of this client's job and the kept ones, by name. *out is the caller's, to be ended with
 * gw_tensor_list_free. */
struct gw_tensor_list {
	uint32_t count;
	const struct gw_tensor_entry *entries; /* [count] */
};
GW_API gw_status gw_tensor_list(struct gw_client *client, struct gw_tensor_list **out);
GW_API void gw_tensor_list_free(struct gw_tensor_list *list); /* NULL is allowed */

/* How many elements of a tensor are not zero, over all parts; neighbouring rows may be of different moments. */
GW_API gw_status gw_tensor_count_nonzero(struct gw_client *client, const struct gw_tensor *tensor, uint64_t *out);

/* --- Writing. gw_gather reads these tensors as it reads features. --- */

/* Overwrites rows: tensor[ids[i]] = rows[i], n rows of row_bytes, contiguous. Ids in any order; of equal ones the last
 * counts. GW_INVALID: a feature, which cannot be written unless it is served so (serve --mutable); GW_RANGE names the
 * first id that is no row, and nothing is written; else as gw_gather. */
GW_API gw_status gw_update(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
			   const void *rows);

/* The same in the background. ids and rows are the library's until gw_wait or gw_cancel has ended the ticket. Any
 * number may be under way: each has the operation's deadline from when those before it are written, and takes 1.2 KiB,
 * 40 bytes for each part and 12 for each id, until its ticket is ended. */
GW_API gw_status gw_update_start(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids,
				 uint64_t n, const void *rows, struct gw_ticket **ticket);

/* Waits until all writes that this client has begun are applied, or have failed: their tickets tell. */
GW_API gw_status gw_flush(struct gw_client *client);

/* The rows that a part has: *count of them, numbered from 0. With the part that is near (gw_part_transport) they are
 * read and written without ids and without the network. GW_RANGE: no such part. */
GW_API gw_status gw_tensor_part_rows(struct gw_client *client, const struct gw_tensor *tensor, uint32_t part,
				     uint64_t *count);

/* Reads or overwrites rows first to first + n of a part, contiguous. GW_RANGE: the part has fewer. */
GW_API gw_status gw_tensor_part_read(struct gw_client *client, const struct gw_tensor *tensor, uint32_t part,
				     uint64_t first, uint64_t n, void *out);
GW_API gw_status gw_tensor_part_write(struct gw_client *client, const struct gw_tensor *tensor, uint32_t part,
				      uint64_t first, uint64_t n, const void *rows);

/* --- Training. --- */

/* Trains rows: the optimizer (rows.h has the formulas) runs where they are. gradients: float32, [n] rows of as many
 * elements as the tensor's, whose dtype is a floating-point one. The first push decides the tensor's kind of optimizer,
 * whose state takes memory of its own, and waits within its deadline until that is made, as do later writes of the
 * tensor, and nothing else; one that passes does not stop this, and a later push finds the state. Equal ids of one call
 * change their row as one, whatever `combine` is. GW_INVALID: the optimizer makes no sense; GW_EXISTS: the tensor has
 * state of another kind; GW_NO_SPACE: no memory for its state; GW_LIMIT: equal ids with more than 9 MiB of gradients,
 * each of which is to be applied (GW_COMBINE_EACH; those of GW_ADAGRAD_ROWS are added up then, and applied as their
 * sum); else as gw_update. */
GW_API gw_status gw_push(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
			 const float *gradients, const struct gw_optimizer *optimizer);
/* The same in the background, as gw_update_start: ids and gradients are the library's until gw_wait or gw_cancel has
 * ended the ticket; the optimizer is copied. */
GW_API gw_status gw_push_start(struct gw_client *client, const struct gw_tensor *tensor, const int64_t *ids, uint64_t n,
			       const float *gradients, const struct gw_optimizer *optimizer, struct gw_ticket **ticket);

#ifdef __cplusplus
}
#endif
#endif
