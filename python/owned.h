/* What Python adds to the public header: memory for what a call makes, and one function of C that ends it.
 *
 *   held = ffi.gc(ffi.new("struct held_loader *"), lib.loader_end) -> a share of the client -> the call writes into it
 *        -> the last reference goes -> loader_end: the loader ends, the share is given back, the last share ends the
 * client
 *
 * The exception of a signal (Ctrl-C) comes between two lines of Python. In a finalizer that is written in Python, it is
 * printed and dropped, and the rest of the finalizer does not run. No line of Python runs here: cffi calls a function
 * of this library when the memory goes. Objects that are garbage together end in any order: a loader holds what it
 * reads by shares, which are counted in C.
 */
#ifndef PYTHON_OWNED_H
#define PYTHON_OWNED_H

#include <graphwire/graphwire.h>

/* --- Waiting. --- */

/* Operations that one call has started. */
struct tickets {
	size_t count;
	struct gw_ticket *each[];
};

/* gw_wait, and forgets a ticket that has ended in the same breath. */
gw_status wait_for(struct gw_ticket **ticket, int64_t timeout_ms);
/* Cancels those that have not ended. */
void cancel_tickets(struct tickets *tickets);

/* --- Shares. --- */

struct share; /* of something that ends when the last of its shares is given back; from any thread */

/* *to, which is NULL, gets a share of what `from` is one of; NULL: of nothing. */
void share_take(struct share *from, struct share **to);

struct held_client {
	struct gw_client *client;
	struct share *share;
};

gw_status client_open(const struct gw_client_options *options, struct held_client *out);
void client_end(struct held_client *held);

struct held_minibatch {
	struct gw_minibatch *minibatch;
	struct share *client;
};

void minibatch_end(struct held_minibatch *held);

struct held_loader {
	struct gw_loader *loader;
	struct share *client, *memory;
};

void loader_end(struct held_loader *held);

/* Copies of arrays that a loader reads until it ends. */
struct held_memory {
	struct share *share;
};

/* A copy, which lives as long as the shares; NULL: out of memory. */
void *memory_copy(struct held_memory *held, const void *bytes, size_t count);
void memory_end(struct held_memory *held);

/* --- What has no share of a client. --- */

void edge_list_end(struct gw_edge_list **list);
void triples_end(struct gw_triples **triples);
void triple_batch_end(struct gw_triple_batch **batch);

/* --- A folder that goes with its process (graphwire/_scratch.py). --- */

/* Descriptors, each one more than its number, 0: none. They are closed by exec. */
struct held_guard {
	int reads, writes; /* the ends of a pipe: the guard reads, and sees the end when no process has `writes` */
	int folder;        /* locked, as long as a process has it */
};

/* Both return 0 or an errno. guard_lock: EAGAIN where another process has the folder, or has swept it away; on file
 * systems that lock no folders it is not locked. */
int guard_pipe(struct held_guard *held);
int guard_lock(struct held_guard *held, const char *path);
void guard_reads_end(struct held_guard *held); /* of `reads` alone */
void guard_end(struct held_guard *held);

/* --- For tests. --- */

/* Clients that are open in this process, and shares. */
struct live {
	uint64_t clients, shares;
};

struct live count_live(void);

#endif
