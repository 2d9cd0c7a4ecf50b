/* An upgrade: the search for a better way to a server than TCP, over which it has answered.
 *
 *   begin -> mapped memory: does the socket of its incarnation answer on this host?
 *         -> RDMA: connected? -> one read, by both ways -> the same bytes?
 *         -> gw_link_upgraded, with the endpoint to use instead; without one the link stays with TCP: `reason` says why
 *
 * RDMA that was lost, or could not be had, is not tried again before retry_ns; each time that it is lost again soon the
 * pause is twice as long. A link whose RDMA is gone goes on over TCP at once, and returns to RDMA while it is in use.
 */
#ifndef GW_CLIENT_UPGRADE_H
#define GW_CLIENT_UPGRADE_H

#include "client/job.h"

struct gw_link;

enum gw_upgrade_step { GW_UPGRADE_IDLE, GW_UPGRADE_MAPPING, GW_UPGRADE_CONNECTING, GW_UPGRADE_READING };

struct gw_upgrade {
	struct gw_event connected, landed;
	enum gw_upgrade_step step;
	struct gw_endpoint *endpoint; /* the one that may take TCP's place */
	uint32_t open;                /* completions on their way: a new upgrade waits for those of the last one */
	struct gw_read_set sets[2];   /* of the read: over TCP, by RDMA */
	uint8_t *bytes;               /* what they read, one behind the other */
	uint32_t byte_count;
	struct gw_buffer *buffer;
	bool rdma_waits;   /* RDMA is not tried now, but once the link is open */
	uint64_t retry_ns; /* when RDMA is tried again; GW_NO_DEADLINE: not on this connection */
	uint64_t hold_ns;  /* the last pause */
	uint64_t since_ns; /* when RDMA was taken */
	bool failed;
	char reason[GW_ERROR_TEXT_MAX];
};

void gw_upgrade_init(struct gw_upgrade *upgrade);

/* Starts the search, for a link whose server answers and is known; gw_link_upgraded tells the outcome, perhaps before
 * this returns. wait: the link waits for it, RDMA included; else it waits for mapped memory alone. */
void gw_upgrade_begin(struct gw_link *link, bool wait);

/* Tries RDMA again, for a link that is open over TCP, if it is time. */
void gw_upgrade_again(struct gw_link *link);

/* The link's RDMA connection was lost. */
void gw_upgrade_lost(struct gw_upgrade *upgrade, uint64_t now_ns);

/* Closes what the search has open; the link's own endpoint is closed already. Nothing is told. */
void gw_upgrade_stop(struct gw_upgrade *upgrade);

#endif
