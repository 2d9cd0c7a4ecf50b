/* Estimates a server's memory in advance: for a warning at its start, and for the doctor's advice. */
#ifndef GW_SERVER_FOOTPRINT_H
#define GW_SERVER_FOOTPRINT_H

#include <stdint.h>

#define GW_SERVER_CONNECTIONS_USUAL 128u /* the number that advice assumes if the user gave none */

/* The bytes that a control group charges for a server with array_bytes of arrays: the arena and its page tables, the
 * program, its threads, and the buffers of its connections, including the kernel's buffers. connections 0: the usual
 * number. Tensors that clients create are not included. */
uint64_t gw_server_footprint(uint64_t array_bytes, uint32_t threads, uint32_t connections);

#endif
