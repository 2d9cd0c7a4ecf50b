/* Additions to the public header for Python: memory for the result of a call, and a C function that ends the result.
 *
 *   held = ffi.gc(ffi.new("struct held_loader *"), lib.loader_end) -> held acquires a share of the client
 *        -> a call writes its result into held -> Python frees the last reference -> cffi calls loader_end
 *        -> the loader closes, and its share is released -> the release of the last share closes the client
 *
 * Why in C: a signal's exception (Ctrl-C) may arrive between any two lines of Python. In a finalizer written in Python
 * it is printed and dropped, and the rest of the finalizer does not run. Here no Python code runs, because cffi calls
 * the C function when the memory is freed.
 *
 * Why shares: Python frees the objects of a cycle in any order. So a loader has shares of the objects that it reads,
 * and C counts the shares.
 */
#ifndef PYTHON_OWNED_H
#define PYTHON_OWNED_H

#include "python/landing.h"
#include "python/numbering.h"

#include "python/log_queue.h"

/* --- Waiting. --- */

/* The tickets of the operations that one call has started. cancel_tickets ends the struct. */
struct tickets {
	size_t count;
	struct gw_ticket *each[];
};

/* Calls gw_wait, and sets *ticket to NULL when the operation has ended. Both happen in one call from Python, so that no
 * signal comes between them. */
gw_status wait_for(struct gw_ticket **ticket, int64_t timeout_ms);
/* Cancels the operations that have not ended. */
void cancel_tickets(struct tickets *tickets);

/* --- Shares. --- */

/* A reference-counted share of an object, which ends when its last share is released. Any thread may use it. */
struct share;

/* Sets *to to a new share of the object that `from` is a share of. *to must be NULL; if `from` is NULL, it stays so. */
void share_acquire(struct share *from, struct share **to);

struct held_client {
	struct gw_client *client;
	struct share *share;
};

/* landing: where rows of mini-batches land; NULL: in the library's memory. */
gw_status client_open(const struct gw_client_options *options, const struct held_landing *landing,
		      struct held_client *out);
void client_end(struct held_client *held);

/* A mini-batch, or the sampling that will write it: `ticket` is NULL, or the operation of gw_sample_start into
 * `minibatch`. minibatch_end cancels the operation first, so that the library never writes into freed memory. */
struct held_minibatch {
	struct gw_minibatch *minibatch;
	struct share *client;
	struct gw_ticket *ticket;
};

void minibatch_end(struct held_minibatch *held);

struct held_loader {
	struct gw_loader *loader;
	struct share *client, *memory;
};

void loader_end(struct held_loader *held);

struct held_lookahead {
	struct gw_lookahead *lookahead;
	struct share *client;
};

void lookahead_end(struct held_lookahead *held);

/* Owns copies of the arrays that a loader reads until it closes. */
struct held_memory {
	struct share *share;
};

/* Copies `count` bytes. The last share of the memory frees the copy. Returns NULL if memory runs out. */
void *memory_copy(struct held_memory *held, const void *bytes, size_t count);
void memory_end(struct held_memory *held);

/* Writes what each hop has added: nodes [num_ntypes][1 + hops], the seeds first, and edges [num_etypes][hops]. Returns
 * whether a seed repeats. */
bool hops_counts(const struct gw_minibatch *minibatch, uint32_t num_etypes, uint64_t *nodes, uint64_t *edges);

/* Writes the edges of each type, hop after hop, the seeds' hop first, as gw_minibatch.sampled has them. ends and ids:
 * [num_etypes] addresses of memory for a type's [2][edges] rows of sources and of destinations, and for its [edges]
 * ids, which a mini-batch without ids of edges leaves as they are. wide: the block's indices are int64. */
void hops_edges(const struct gw_minibatch *minibatch, uint32_t num_etypes, bool wide, int64_t *const *ends,
		int64_t *const *ids);

/* --- Objects without a share of a client. --- */

void edge_list_end(struct gw_edge_list **list);
void held_out_end(struct gw_held_out **held_out);
void triples_end(struct gw_triples **triples);
void triple_batch_end(struct gw_triple_batch **batch);

/* --- A folder that is removed when its process ends (graphwire/_base/scratch.py). --- */

/* Each field is a descriptor's number plus 1; 0: no descriptor. exec closes them. */
struct held_guard {
	int reads, writes; /* the ends of a pipe; the guard reads, and sees its end when no process has `writes` open */
	int folder;        /* locked while a process has it open */
};

/* Both return 0 or an errno. guard_lock returns EAGAIN if another process has locked the folder or swept it away. On
 * file systems that cannot lock folders, it returns 0 without a lock. */
int guard_pipe(struct held_guard *held);
int guard_lock(struct held_guard *held, const char *path);
void guard_reads_end(struct held_guard *held); /* closes `reads` only */
void guard_end(struct held_guard *held);       /* closes all three */

/* The version of this build, such as "0.1.0". */
const char *package_version(void);

/* --- For tests. --- */

/* The numbers of open clients and of shares in this process. */
struct live {
	uint64_t clients, shares;
};

struct live count_live(void);

#endif
