/* The memory in which the rows of one fetch of a mini-batch land.
 *
 *   acquire of the caller (gw_client_options.memory) ─▶ memory ─▶ lent for this mini-batch alone
 *                                                    ─▶ NULL, or no such function: a receive buffer of the engine
 *
 * A receive buffer stays with the batch for the next mini-batch. Lent memory goes back when the caller has released the
 * mini-batch. A transport that registers memory registers lent memory for one gather (client/rows/gather.h), unless it
 * is a piece of a buffer of gw_buffer_alloc or gw_buffer_lend.
 */
#ifndef GW_CLIENT_ROWS_LANDED_H
#define GW_CLIENT_ROWS_LANDED_H

#include "client/state/client.h"
#include "client/state/recv_buffer.h"

/* A zero-initialized structure is empty. */
struct gw_landed {
	struct gw_recv_buffer own;
	void *lent;
	uint64_t lent_bytes;
};

/* Makes room for so many bytes, in the thread that runs the engine. Fails if the engine's memory runs out. Nothing may
 * be lent. */
gw_status gw_landed_reserve(struct gw_landed *landed, struct gw_engine *engine, uint64_t bytes);

/* Returns lent memory. Any thread may call it when nothing reads the memory any more, without a lock: it calls the
 * caller's function. */
void gw_landed_return(struct gw_landed *landed, const struct gw_client *client);

/* Returns lent memory, and frees the receive buffer, in the thread that runs the engine. */
void gw_landed_free(struct gw_landed *landed, const struct gw_client *client);

/* NULL: room for no bytes. */
static inline uint8_t *gw_landed_data(const struct gw_landed *landed)
{
	return landed->lent ? landed->lent : landed->own.data;
}

/* The registration of the memory, or NULL. */
static inline struct gw_buffer *gw_landed_buffer(const struct gw_landed *landed)
{
	return landed->lent ? NULL : landed->own.buffer;
}

#endif
