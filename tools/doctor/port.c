/* Ports of an RDMA device: whether they are up, how large packets may be, and at which addresses others reach them.
 *
 * A port's files are in /sys/class/infiniband/DEVICE/ports/N/. The kernel lists the port's network interface with its
 * addresses (GIDs). Over Ethernet the MTU follows the interface's.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "tools/doctor/doctor.h"

#define PORTS      "/sys/class/infiniband/%s/ports/%s"
#define GIDS_MAX   256u /* examined at most */
#define GIDS_SHOWN 8u
#define MTU_BEST   4096u
#define MTU_FITS   4200 /* MTU of the interface for packets of 4096 bytes */

struct port {
	const char *device, *number;
	bool ethernet;
	char interface[GW_DOCTOR_WORD_MAX]; /* "" if the kernel names none */
};

static void doctor_port_state(struct gw_doctor *doctor, const struct port *port, const char *layer)
{
	struct gw_doctor_finding *finding =
		gw_doctor_find(doctor, GW_DOCTOR_OK, "port %s/%s", port->device, port->number);
	char state[GW_DOCTOR_WORD_MAX], rate[GW_DOCTOR_WORD_MAX];
	if (!gw_doctor_word(doctor, state, PORTS "/state", port->device, port->number)) {
		gw_doctor_unread(finding, "its state");
		return;
	}
	gw_doctor_value(finding, "%s, %s", state, layer);
	if (gw_doctor_word(doctor, rate, PORTS "/rate", port->device, port->number))
		gw_doctor_value(finding, ", %s", rate);
	if (port->interface[0])
		gw_doctor_value(finding, ", interface %s", port->interface);
	if (strstr(state, "ACTIVE"))
		return;
	gw_doctor_raise(finding, GW_DOCTOR_WARNING);
	gw_doctor_costs(finding, "no reads pass over this port");
	if (port->ethernet)
		gw_doctor_fix(finding, "sudo ip link set dev %s up (and the cable)",
			      port->interface[0] ? port->interface : "NETDEV");
	else
		gw_doctor_fix(
			finding, "%s",
			strstr(state, "INIT")
				? "sudo apt install opensm && sudo systemctl enable --now opensm (one subnet manager "
				  "for the network)"
				: "check the cable: ibstat shows its physical state");
}

static void port_mtu(struct gw_doctor *doctor, const struct port *port)
{
	const struct gw_verbs_report *report = gw_doctor_report(doctor, port->device);
	unsigned long number = strtoul(port->number, NULL, 10);
	struct gw_doctor_finding *finding =
		gw_doctor_find(doctor, GW_DOCTOR_OK, "MTU %s/%s", port->device, port->number);
	int64_t interface_mtu;
	bool interface = port->interface[0] &&
			 gw_doctor_number(doctor, &interface_mtu, "/sys/class/net/%s/mtu", port->interface);
	if (!report || report->error || number < 1 || number > GW_VERBS_REPORT_PORTS_MAX ||
	    !report->ports[number - 1].known || !report->ports[number - 1].active_mtu) {
		gw_doctor_raise(finding, GW_DOCTOR_NOTE);
		gw_doctor_value(finding, "not known: libibverbs gave no report");
	} else {
		uint32_t active = report->ports[number - 1].active_mtu, most = report->ports[number - 1].max_mtu;
		gw_doctor_value(finding, "%u active, %u at most", active, most);
		gw_doctor_figure(finding, "active_mtu", active);
		gw_doctor_figure(finding, "max_mtu", most);
		if (active < MTU_BEST && active < most) {
			gw_doctor_raise(finding, GW_DOCTOR_NOTE);
			gw_doctor_costs(finding, "rows above %u bytes take more packets, each with its headers",
					active);
			if (port->ethernet)
				gw_doctor_fix(finding, "sudo ip link set dev %s mtu %d (and as much on the switches)",
					      port->interface[0] ? port->interface : "NETDEV", MTU_FITS);
		}
	}
	if (interface)
		gw_doctor_value(finding, "; %s: %lld", port->interface, (long long)interface_mtu);
}

/* --- Addresses. --- */

struct gids {
	uint32_t count, shown;
	bool version_2, routed; /* RoCE v2; a GID is not link-local, so rdma_cm can reach the port by IP address */
};

/* "0000:…:ffff:0a00:0301" as an address: 10.0.3.1. false: empty or malformed. */
static bool gid_text(const char *word, char text[INET6_ADDRSTRLEN], bool *routed)
{
	static const struct in6_addr none;
	struct in6_addr gid;
	if (inet_pton(AF_INET6, word, &gid) != 1 || memcmp(&gid, &none, sizeof(gid)) == 0)
		return false;
	*routed = !IN6_IS_ADDR_LINKLOCAL(&gid);
	if (IN6_IS_ADDR_V4MAPPED(&gid))
		return inet_ntop(AF_INET, &gid.s6_addr[12], text, INET6_ADDRSTRLEN) != NULL;
	return inet_ntop(AF_INET6, &gid, text, INET6_ADDRSTRLEN) != NULL;
}

static void look_at_gid(const struct gw_doctor *doctor, const struct port *port, uint32_t index,
			struct gw_doctor_finding *finding, struct gids *gids)
{
	char word[GW_DOCTOR_WORD_MAX], type[GW_DOCTOR_WORD_MAX], text[INET6_ADDRSTRLEN];
	bool routed;
	if (!gw_doctor_word(doctor, word, PORTS "/gids/%u", port->device, port->number, index) ||
	    !gid_text(word, text, &routed))
		return;
	if (!gw_doctor_word(doctor, type, PORTS "/gid_attrs/types/%u", port->device, port->number, index))
		strcpy(type, "type not known");
	bool version_2 = strcmp(type, "RoCE v2") == 0;
	gids->count++;
	gids->version_2 |= version_2;
	gids->routed |= routed && (version_2 || !port->ethernet);
	if (gids->shown == GIDS_SHOWN)
		return;
	gw_doctor_value(finding, "%s%u: %s (%s)", gids->shown++ ? ", " : "", index, text, type);
}

static void port_gids(struct gw_doctor *doctor, const struct port *port)
{
	struct gw_doctor_finding *finding =
		gw_doctor_find(doctor, GW_DOCTOR_OK, "GIDs %s/%s", port->device, port->number);
	const char *interface = port->interface[0] ? port->interface : "NETDEV";
	struct gids gids = {0};
	for (uint32_t i = 0; i < GIDS_MAX; i++)
		look_at_gid(doctor, port, i, finding, &gids);
	if (gids.count > gids.shown)
		gw_doctor_value(finding, ", and %u more", gids.count - gids.shown);
	if (!gids.count && !gw_doctor_exists(doctor, PORTS "/gids", port->device, port->number)) {
		gw_doctor_unread(finding, "its folder of GIDs");
	} else if (!gids.count || (port->ethernet && !gids.routed && gids.version_2)) {
		gw_doctor_raise(finding, GW_DOCTOR_WARNING);
		gw_doctor_value(finding, "%s", gids.count ? "" : "none");
		gw_doctor_costs(finding, "clients cannot connect over this port: its interface has no IP address");
		gw_doctor_fix(finding, "sudo ip addr add ADDRESS/24 dev %s", interface);
	} else if (port->ethernet && !gids.routed) {
		gw_doctor_raise(finding, GW_DOCTOR_WARNING);
		gw_doctor_costs(finding, "RoCE v1 crosses no router");
		gw_doctor_fix(finding,
			      "sudo ip addr add ADDRESS/24 dev %s (a device that supports RoCE v2 then uses it)",
			      interface);
	}
}

/* Finds the interface of the port's first address. Names with special characters are not used, because paths and
 * commands contain the name. */
static void find_interface(const struct gw_doctor *doctor, struct port *port)
{
	char *name = port->interface;
	for (uint32_t i = 0; i < GIDS_SHOWN; i++)
		if (gw_doctor_word(doctor, name, PORTS "/gid_attrs/ndevs/%u", port->device, port->number, i) &&
		    strlen(name) < IF_NAMESIZE && !strpbrk(name, "/ \t'\"$`;&|<>()"))
			return;
	name[0] = 0;
}

void gw_doctor_ports(struct gw_doctor *doctor, const char *device)
{
	struct gw_doctor_names ports;
	if (!gw_doctor_folder(doctor, "", &ports, "/sys/class/infiniband/%s/ports", device)) {
		gw_doctor_unread(gw_doctor_find(doctor, GW_DOCTOR_NOTE, "ports %s", device), "its folder of ports");
		return;
	}
	for (uint32_t i = 0; i < ports.count; i++) {
		struct port port = {.device = device, .number = ports.names[i]};
		char layer[GW_DOCTOR_WORD_MAX];
		if (!gw_doctor_word(doctor, layer, PORTS "/link_layer", device, port.number))
			strcpy(layer, "link layer not known");
		port.ethernet = strcmp(layer, "Ethernet") == 0;
		find_interface(doctor, &port);
		doctor_port_state(doctor, &port, layer);
		port_mtu(doctor, &port);
		port_gids(doctor, &port);
	}
}
