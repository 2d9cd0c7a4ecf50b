/* A simulated RDMA device and its connection manager in one process, in place of libibverbs and librdmacm. With it, all
 * of transport/verbs runs under sanitizers, on machines without a device.
 *
 *   post ─▶ the queue pair's work ─▶ the device's thread takes work of any queue pair, in each queue pair's order
 *        ─▶ READ: the key's memory, in pieces; SEND: the peer's next receive ─▶ completion queue ─▶ its channel
 *
 * The device checks that every byte of a read lies in a memory region that exists under the read's key. It checks that
 * a message finds a receive, that no completion queue overflows, and that no object is destroyed while in use. A
 * mistake of Graphwire aborts the program.
 *
 * A program that links the device (test/CMakeLists.txt) uses its functions instead of the library's
 * (transport/verbs/library.c), and runs over "verbs" alone.
 */
#ifndef GW_TEST_FABRIC_H
#define GW_TEST_FABRIC_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdlib.h>

/* Removes the device: its queue pairs fail, and the ids that are bound to it get an event. From then on no id can bind
 * to it. */
void fabric_remove(void);
/* Adds another device in its place. */
void fabric_return(void);
/* The queue pairs of the next `count` connection requests fail, as if the address were unreachable. */
void fabric_fail_connects(unsigned count);
/* The next `count` connection requests carry a token that the server does not know, as if it had expired. Returns
 * how many of the previous count were not used. */
unsigned fabric_spoil_tokens(unsigned count);
/* The number of memory regions that peers may read at present. */
unsigned fabric_readable(void);
/* Reads that were posted since the program's start, and their bytes. */
struct fabric_reads {
	uint64_t reads, bytes;
};
struct fabric_reads fabric_reads(void);

/* What was done since the program's start, and what exists at present. */
#define FABRIC_TYPES 8u
struct fabric_counts {
	uint64_t qps_made, qps_open;
	uint64_t messages[FABRIC_TYPES]; /* by their first byte: enum verbs_message_type */
	uint64_t posts[FABRIC_TYPES];    /* calls that posted messages, by the first message's type */
	uint64_t message_bytes;
	uint64_t pinned_bytes; /* registered and not readable by peers: destinations and messages */
	uint64_t registrations;
};
struct fabric_counts fabric_counts(void);

/* --- Shared by the device's files. --- */

extern pthread_mutex_t fabric_lock; /* protects all state of the device */

/* The device's context; NULL: it was removed. The caller holds the lock. */
struct ibv_context *fabric_context(void);

/* Whether the key's memory region contains these bytes and allows this access; whether a protection domain has memory
 * regions. The caller holds the lock. */
bool fabric_mr_holds(uint32_t key, uint64_t at, uint64_t bytes, int access);
bool fabric_mr_in(const struct ibv_pd *pd);
uint64_t fabric_pinned(void);
uint64_t fabric_registrations(void); /* since the program's start */
/* Copies in pieces, starting with a random piece. The caller holds the lock. */
void fabric_copy(uint8_t *to, const uint8_t *from, uint32_t bytes);

struct fabric_qp;
struct fabric_qp *fabric_qp_of(struct ibv_qp *qp);
void fabric_connect(struct fabric_qp *a, struct fabric_qp *b);
/* Fails the work in flight and all work posted later. The caller holds the lock. */
void fabric_qp_fail(struct fabric_qp *qp);
struct ibv_qp *fabric_qp_create(struct ibv_context *context, struct ibv_pd *pd, const struct ibv_qp_init_attr *init);
void fabric_qp_destroy(struct ibv_qp *qp);

/* Sends a removal event to every id that is bound to the device. The caller holds the lock. */
void fabric_send_removed(const struct ibv_context *context);

/* Prints a line that names the mistake, and aborts. */
_Noreturn void fabric_end(const char *what);

static inline void fabric_must(bool good, const char *what)
{
	if (!good)
		fabric_end(what);
}

static inline void *fabric_calloc(size_t bytes)
{
	void *memory = calloc(1, bytes);
	fabric_must(memory != NULL, "out of memory");
	return memory;
}

#endif
