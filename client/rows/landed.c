/* Where the rows of a fetch land: see landed.h. */
#include "client/rows/landed.h"

gw_status gw_landed_reserve(struct gw_landed *landed, struct gw_engine *engine, uint64_t bytes)
{
	const struct gw_landing_memory *memory = &engine->client->memory;
	if (memory->acquire && bytes > 0)
		landed->lent = memory->acquire(memory->context, bytes);
	if (!landed->lent)
		return gw_recv_buffer_reserve(&landed->own, &engine->slab, bytes);
	landed->lent_bytes = bytes;
	gw_recv_buffer_free(&landed->own);
	return GW_OK;
}

void gw_landed_return(struct gw_landed *landed, const struct gw_client *client)
{
	void *lent = landed->lent;
	if (!lent)
		return;
	landed->lent = NULL; /* before the call: the memory is the caller's again */
	client->memory.release(client->memory.context, lent, landed->lent_bytes);
}

void gw_landed_free(struct gw_landed *landed, const struct gw_client *client)
{
	gw_landed_return(landed, client);
	gw_recv_buffer_free(&landed->own);
}
