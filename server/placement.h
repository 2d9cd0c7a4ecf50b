/* Chooses the processors that a server's threads run on. Servers share their host with trainers. If a thread is bound
 * to one processor, it waits while other work runs there, even if other processors are idle. So by default a thread is
 * bound to a NUMA node, and the node's scheduler finds a processor. The user may ask for a tighter binding or for
 * none. */
#ifndef GW_SERVER_PLACEMENT_H
#define GW_SERVER_PLACEMENT_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

enum gw_server_pin {
	GW_SERVER_PIN_NODE, /* each thread to a node, in turn; if the memory is on one node, to that node */
	GW_SERVER_PIN_CORE, /* each to a separate processor, while processors are left */
	GW_SERVER_PIN_OFF,
};

/* Chooses from the allowed processors for thread `number`. Servers of several parts on one host continue the numbering,
 * so that they begin at different processors. numa: the placement of the served memory, as in gw_arena_options. Returns
 * false if the thread may use all allowed processors. root: "" for this machine; in tests a folder with a copy of
 * /sys. */
bool gw_server_place(const char *root, enum gw_server_pin pin, int numa, uint32_t number, const cpu_set_t *allowed,
		     cpu_set_t *out);

#endif
