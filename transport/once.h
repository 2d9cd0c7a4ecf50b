/* Calls that must not be applied twice: what numbers them. */
#ifndef GW_TRANSPORT_ONCE_H
#define GW_TRANSPORT_ONCE_H

#include <stdint.h>

#define GW_WINDOW 64u /* numbered calls of one client that are open at once, at most */

/* The number of a call, over reconnects too: the server applies the call once, and answers a repeat as it answered the
 * first. */
struct gw_once {
	uint64_t sequence; /* the client's running number, from 1, of its calls to this server */
	uint64_t oldest;   /* of its calls, the first whose answer it has not got: at most GW_WINDOW - 1 before */
	uint64_t window;   /* gw_peer.window of the connection that the call was first posted on */
};

#endif
