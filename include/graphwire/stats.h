/* What a client has done: batches, waits, and the operations that it sent to each server. graphwire.h includes this
 * header; its rules hold here too. */
#ifndef GRAPHWIRE_STATS_H
#define GRAPHWIRE_STATS_H

#include <graphwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gw_client;

/* Sums since the client was opened. */
struct gw_client_stats {
	char id[31];           /* 30 hexadecimal digits that servers show for this client (graphwire top) */
	uint64_t batches;      /* mini-batches that gw_loader_next returned */
	double batch_wait_s;   /* seconds that callers of gw_loader_next waited for them */
	uint64_t copied_bytes; /* bytes of rows that this process copied from parts in its memory: mapped or its own */
	/* Rows among these that a part out of its memory owns, copied from the replicas of a mapped part (graphwire
	 * replicate): how many, and the bytes that no server had to send. */
	uint64_t replica_rows, replica_bytes;
	/* Bytes of rows that loaders did not fetch again: they copied them from the rows of earlier batches
	 * (gw_loader_options.lookahead). */
	uint64_t ahead_bytes;
	/* The same, copied from the rows that they keep for an epoch (cache_bytes); and seconds that counting the
	 * epochs took. */
	uint64_t cached_bytes;
	double cache_count_s;
	uint64_t kept_rows, kept_bytes; /* rows that they fetched in order to keep them, and the bytes of these */
	/* hops that drew from lists of other parts in memory of this host (graphwire serve --lists all), and asked no
	 * other server */
	uint64_t held_hops;
};

/* The operations with the server of one part, over one transport. */
struct gw_link_stats {
	uint32_t part;
	const char *server;    /* "10.0.0.1:30050"; "": this process has opened the part. The client owns it */
	const char *transport; /* "tcp", "shm", "verbs"; "memory": inside this process; "": none was used yet. Static */
	uint64_t reads;        /* lists of rows or ranges that were read */
	uint64_t read_bytes;
	uint64_t requests;
	uint64_t sent_bytes;     /* of the requests */
	uint64_t received_bytes; /* of their replies */
	uint64_t errors;         /* reads and requests that failed; cancelled ones did not */
	double wait_s; /* sum over all of them: from when each was posted until it ended. Several at a time add up */
};

/* Reads what the client has done. Fills *out, and up to `max` rows of `links`: one for each part and transport that was
 * used, in the order of the parts; a part that was not used has one row. Returns the number of rows, which may be more
 * than `max`. Any thread may call it, while others work; it takes no lock that they need. */
GW_API uint32_t gw_client_get_stats(const struct gw_client *client, struct gw_client_stats *out,
				    struct gw_link_stats *links, uint32_t max);

#ifdef __cplusplus
}
#endif
#endif
