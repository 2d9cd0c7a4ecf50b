/* How much memory a server takes, before it takes any: for a warning at its start, and for the doctor's advice. */
#ifndef GW_SERVER_FOOTPRINT_H
#define GW_SERVER_FOOTPRINT_H

#include <stdint.h>

#define GW_SERVER_CONNECTIONS_USUAL 128u /* that advice leaves room for, where nobody said how many */

/* Bytes that a control group is charged with for a server of so many bytes of arrays: the arena and its page tables,
 * the program, its threads, and the buffers of so many connections (0: the usual number), the kernel's among them.
 * Tensors that clients create come on top. */
uint64_t gw_server_footprint(uint64_t array_bytes, uint32_t threads, uint32_t connections);

#endif
