/* A made-up RDMA device and its connection manager, inside one process: what libibverbs and librdmacm would do, so that
 * all of transport/verbs runs under sanitizers, on machines without a device.
 *
 *   post ─▶ the queue pair's work ─▶ a thread that is the device takes works of any queue pair, in each one's order
 *        ─▶ READ: the key's memory, in pieces; SEND: the peer's next receive ─▶ completion queue ─▶ its channel
 *
 * What it is strict about: every byte of a read lies in a memory region that is there under this key; a message finds
 * a receive; no completion queue overflows; what is destroyed is not in use. A mistake of ours aborts.
 *
 * Linked into a program (test/CMakeLists.txt) its functions stand in place of the library's
 * (transport/verbs/library.c), and the program runs over "verbs" alone.
 */
#ifndef GW_TEST_FABRIC_H
#define GW_TEST_FABRIC_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdlib.h>

/* The device is taken away: its queue pairs fail, and who is bound to it is told. Nobody binds to it from then on. */
void fabric_remove(void);
/* Another one is there in its place. */
void fabric_return(void);
/* So many queue pairs that ask for a connection fail instead, as where an address leads nowhere. */
void fabric_fail_connects(unsigned count);
/* How many memory regions are there now, of those that others may read. */
unsigned fabric_readable(void);

/* --- Between its files. --- */

extern pthread_mutex_t fabric_lock; /* of everything */

/* The device as it is bound to; NULL: taken away. With the lock. */
struct ibv_context *fabric_context(void);

/* Whether a memory region of this key is there for these bytes, and allows such access; whether a domain has any. With
 * the lock. */
bool fabric_mr_holds(uint32_t key, uint64_t at, uint64_t bytes, int access);
bool fabric_mr_in(const struct ibv_pd *pd);
/* Copies in pieces, of which any may be the first. With the lock. */
void fabric_copy(uint8_t *to, const uint8_t *from, uint32_t bytes);

struct fabric_qp;
struct fabric_qp *fabric_qp_of(struct ibv_qp *qp);
void fabric_connect(struct fabric_qp *a, struct fabric_qp *b);
/* What is under way fails, and what is posted from now on. With the lock. */
void fabric_qp_fail(struct fabric_qp *qp);
struct ibv_qp *fabric_qp_create(struct ibv_context *context, struct ibv_pd *pd, const struct ibv_qp_init_attr *init);
void fabric_qp_destroy(struct ibv_qp *qp);

/* Tells everybody who is bound to the device. With the lock. */
void fabric_tell_removed(const struct ibv_context *context);

/* Aborts with a line that says what was done wrong. */
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
