/* Chooses processors: allowed processors -> the nodes that have some of them -> the processors of one node, or one
 * processor. If the kernel does not describe its nodes, threads run on all allowed processors. */
#include "server/placement.h"

#include "core/memory/memory.h"
#include "core/system/sysfile.h"

#define LIST_BYTES 4096

/* False: the node has no allowed processor. */
static bool take_node(const char *root, uint32_t node, const cpu_set_t *allowed, cpu_set_t *out)
{
	char text[LIST_BYTES];
	bool here[CPU_SETSIZE];
	CPU_ZERO(out);
	if (!gw_sysfile_read(text, sizeof(text), "%s/sys/devices/system/node/node%u/cpulist", root, node) ||
	    !gw_sysfile_list(text, here, CPU_SETSIZE))
		return false;
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (here[cpu] && CPU_ISSET(cpu, allowed))
			CPU_SET(cpu, out);
	return CPU_COUNT(out) > 0;
}

static bool place_in_node(const char *root, int numa, uint32_t number, const cpu_set_t *allowed, cpu_set_t *out)
{
	char text[LIST_BYTES];
	bool online[GW_NUMA_NODES_MAX];
	uint16_t nodes[GW_NUMA_NODES_MAX];
	uint32_t count = 0;
	if (numa >= 0 && take_node(root, (uint32_t)numa, allowed, out))
		return !CPU_EQUAL(out, allowed);
	if (!gw_sysfile_read(text, sizeof(text), "%s/sys/devices/system/node/online", root) ||
	    !gw_sysfile_list(text, online, GW_NUMA_NODES_MAX))
		return false;
	for (uint32_t node = 0; node < GW_NUMA_NODES_MAX; node++)
		if (online[node] && take_node(root, node, allowed, out))
			nodes[count++] = (uint16_t)node;
	return count > 1 && take_node(root, nodes[number % count], allowed, out);
}

static bool place_on_core(uint32_t number, const cpu_set_t *allowed, cpu_set_t *out)
{
	uint32_t count = (uint32_t)CPU_COUNT(allowed);
	CPU_ZERO(out);
	if (count == 0)
		return false;
	uint32_t wanted = number % count;
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, allowed) && wanted-- == 0) {
			CPU_SET(cpu, out);
			break;
		}
	}
	return true;
}

bool gw_server_place(const char *root, enum gw_server_pin pin, int numa, uint32_t number, const cpu_set_t *allowed,
		     cpu_set_t *out)
{
	switch (pin) {
	case GW_SERVER_PIN_NODE:
		return place_in_node(root, numa, number, allowed, out);
	case GW_SERVER_PIN_CORE:
		return place_on_core(number, allowed, out);
	case GW_SERVER_PIN_OFF:
		break;
	}
	return false;
}
