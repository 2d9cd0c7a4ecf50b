/* Resolves a host's own name on the host: its first address, which a server binds. Debian and Ubuntu map the name to
 * 127.0.1.1 in /etc/hosts, where other hosts of the job cannot reach the server. The lookup may take as long as the
 * host's resolver allows.
 */
#include "tools/agent/agent.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "transport/address.h"

static bool own_resolve(const char *name, char *out, size_t bytes)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list = NULL;
	bool found = getaddrinfo(name, "1", &hints, &list) == 0 &&
		     getnameinfo(list->ai_addr, list->ai_addrlen, out, (socklen_t)bytes, NULL, 0, NI_NUMERICHOST) == 0;
	if (list)
		freeaddrinfo(list);
	return found;
}

/* Identifies this machine and its network namespace: agents with the same value share their loopback. */
static void own_network(char *out, size_t bytes)
{
	char boot[GW_AGENT_BOOT_MAX];
	struct stat st = {0};
	gw_agent_boot(boot);
	stat("/proc/self/ns/net", &st);
	snprintf(out, bytes, "%s:%llu", boot, (unsigned long long)st.st_ino);
}

gw_status gw_agent_own(struct gw_agent *agent, const char *name)
{
	struct gw_address address = {.scheme = "tcp"};
	char network[GW_AGENT_BOOT_MAX + 32];
	if (!name)
		return gw_fail(GW_INVALID, "own needs an address");
	bool found = own_resolve(name, address.host, sizeof(address.host));
	own_network(network, sizeof(network));
	gw_agent_report(agent, json_pack("{ss ss sb ss}", "event", "own", "address", found ? address.host : "",
					 "loopback", found && gw_address_is_loopback(&address), "network", network));
	return GW_OK;
}
