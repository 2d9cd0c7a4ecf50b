/* Which processors a server's threads run on. They share their host with trainers: a thread that is kept on one
 * processor waits for whatever else runs there, while others are idle. So a thread belongs to a NUMA node, whose
 * scheduler finds it a processor, unless somebody asks for more or for less. */
#ifndef GW_SERVER_PLACEMENT_H
#define GW_SERVER_PLACEMENT_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

enum gw_server_pin {
	GW_SERVER_PIN_NODE, /* each thread to a node, in turn; to the one node where memory lies if it lies on one */
	GW_SERVER_PIN_CORE, /* each to a processor of its own, as far as there are enough */
	GW_SERVER_PIN_OFF,
};

/* The processors, of those allowed, for the thread of this number; servers of several parts on one host count on, so
 * that they begin at different ones. numa: as in gw_arena_options, of the memory that is served. false: all of them.
 * root: "" for this machine; the folder of a copy of /sys in tests. */
bool gw_server_place(const char *root, enum gw_server_pin pin, int numa, uint32_t number, const cpu_set_t *allowed,
		     cpu_set_t *out);

#endif
