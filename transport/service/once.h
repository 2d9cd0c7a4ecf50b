/* The numbering of calls that the server must not apply twice. */
#ifndef GW_TRANSPORT_SERVICE_ONCE_H
#define GW_TRANSPORT_SERVICE_ONCE_H

#include <stdint.h>

#define GW_WINDOW 64u /* the most numbered calls of one client that are open at once */

/* The number of a call, which stays the same over reconnects. The server applies the call once. It answers a repeat
 * with the answer to the first. */
struct gw_once {
	uint64_t sequence; /* the client's counter of calls to this server, from 1 */
	uint64_t oldest;   /* the client's oldest call without an answer: at most GW_WINDOW - 1 before `sequence` */
	uint64_t window;   /* gw_peer.window of the connection on which the call was first posted */
};

#endif
