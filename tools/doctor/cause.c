/* Finds why a server is not reached, and what the user can do about it.
 *
 *   what the transport reported ─▶ key, version, name, limits of this process: the report is enough
 *                               ─▶ else a plain connect ─▶ refused, no route, forbidden, no answer
 *                                                       ─▶ open: send a line of HTTP, read the answer
 *
 * A running Graphwire server would have answered the hello already. A process that accepts the connection and answers
 * something else is another program. If no answer comes, the server is stopped or the network loses its answers. Every
 * step has a time limit. Nothing is sent except the line of HTTP.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/system/clock.h"
#include "tools/doctor/doctor.h"

#define CONNECT_MS 4000 /* the kernel spends three seconds looking for an absent neighbour */
#define SAID_MAX   40u

static const char question[] = "HEAD / HTTP/1.0\r\n\r\n";

/* The result of a plain connect. */
struct knock {
	int name_error; /* getaddrinfo's error */
	int error;      /* connect's errno; 0: the port is open */
	ssize_t bytes;  /* bytes of the answer; 0: the process closed the connection; -1: no answer came in time */
	char said[SAID_MAX + 1];
};

static bool knock_wait(int fd, short events, uint64_t end_ns)
{
	for (uint64_t now; (now = gw_now_ns()) < end_ns;) {
		struct pollfd watched = {.fd = fd, .events = events};
		int n = poll(&watched, 1, (int)((end_ns - now) / GW_NS_PER_MS) + 1);
		if (n > 0)
			return true;
		if (n < 0 && errno != EINTR)
			return false;
	}
	return false;
}

static int knock_connect(int fd, const struct addrinfo *at, uint64_t end_ns)
{
	int error = 0;
	socklen_t bytes = sizeof(error);
	if (connect(fd, at->ai_addr, at->ai_addrlen) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return errno;
	if (!knock_wait(fd, POLLOUT, end_ns))
		return ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 ? error : errno;
}

static void knock_ask(int fd, uint64_t end_ns, struct knock *out)
{
	(void)!send(fd, question, sizeof(question) - 1, MSG_NOSIGNAL);
	out->bytes = knock_wait(fd, POLLIN, end_ns) ? recv(fd, out->said, SAID_MAX, 0) : -1;
	if (out->bytes < 0 && errno == ECONNRESET)
		out->bytes = 0;
	out->said[out->bytes > 0 ? out->bytes : 0] = 0;
	out->said[strcspn(out->said, "\r\n")] = 0;
}

static void knock_at(const struct gw_address *address, uint64_t timeout_ms, struct knock *out)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	uint64_t end = gw_now_ns() + (timeout_ms < CONNECT_MS ? timeout_ms : CONNECT_MS) * GW_NS_PER_MS;
	struct addrinfo *list;
	char port[8];
	*out = (struct knock){.bytes = -1};
	snprintf(port, sizeof(port), "%u", address->port);
	out->name_error = getaddrinfo(address->host, port, &hints, &list);
	if (out->name_error)
		return;
	bool refused = false; /* one of the addresses refused: the host is up */
	out->error = EHOSTUNREACH;
	for (const struct addrinfo *at = list; at && out->error; at = at->ai_next) {
		int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		out->error = fd < 0 ? errno : knock_connect(fd, at, end);
		if (!out->error)
			knock_ask(fd, end, out);
		if (fd >= 0)
			close(fd);
		refused |= out->error == ECONNREFUSED;
	}
	if (out->error && refused)
		out->error = ECONNREFUSED;
	freeaddrinfo(list);
}

/* --- Findings. --- */

static void report_name(const struct gw_address *address, struct gw_doctor_finding *finding)
{
	gw_doctor_value(finding, ": its name is not known on this host");
	gw_doctor_fix(finding,
		      "getent hosts %.200s; add a line \"ADDRESS %.200s\" to /etc/hosts on this host, "
		      "or put the address into ip_config.txt",
		      address->host, address->host);
}

static void report_key(const char *server, bool given, struct gw_doctor_finding *finding)
{
	gw_doctor_value(finding, ": its key differs from the key given, or none was given");
	gw_doctor_fix(
		finding,
		"graphwire doctor --server %s --key-file FILE, with the server's key (sha256sum FILE prints the same "
		"on both hosts)%s",
		server, given ? "" : "; --insecure, if the server shall have no key");
}

static void report_forbidden(const struct gw_address *address, int error, struct gw_doctor_finding *finding)
{
	char text[128];
	gw_doctor_value(finding, ": this host forbids connections to it: %s", strerror_r(error, text, sizeof(text)));
	gw_doctor_fix(finding, "on this host: ip route get %.200s; sudo nft list ruleset", address->host);
}

static void report_closed(const struct gw_address *address, const char *server, struct gw_doctor_finding *finding)
{
	gw_doctor_value(finding, ": no process listens on its port");
	gw_doctor_fix(
		finding,
		"on its host: ss -ltn 'sport = :%u'; if it lists nothing: graphwire serve --part-config PARTS --part N "
		"--listen %s; if it lists 127.0.0.1 or 127.0.1.1: the same with an address that other hosts reach",
		address->port, server);
}

static void report_no_answer(const struct gw_address *address, struct gw_doctor_finding *finding)
{
	gw_doctor_value(finding, ": no packet comes back: a firewall drops the connection, or the host is down");
	gw_doctor_fix(finding,
		      "ping -c 3 %.200s; on its host: sudo nft list ruleset, and let TCP port %u pass (a pod: "
		      "its NetworkPolicy)",
		      address->host, address->port);
}

static void report_pending(const struct gw_address *address, const struct knock *knock,
			   struct gw_doctor_finding *finding)
{
	const char *what = strncmp(knock->said, "HTTP/", 5) == 0  ? "an HTTP server"
			   : strncmp(knock->said, "SSH-", 4) == 0 ? "an SSH server"
								  : "no Graphwire server";
	gw_doctor_value(finding, ": another program has the port, %s", what);
	if (knock->said[0])
		gw_doctor_value(finding, " (\"%s\")", knock->said);
	gw_doctor_fix(finding,
		      "on its host: sudo ss -ltnp 'sport = :%u' names it; give the server another port (--listen, "
		      "ip_config.txt)",
		      address->port);
}

static void report_mute(const struct gw_address *address, struct gw_doctor_finding *finding)
{
	gw_doctor_value(finding, ": a process accepts the connection and answers nothing: the server is stopped, "
				 "or the network loses its answers");
	gw_doctor_fix(finding,
		      "on its host: ps -C graphwire -o pid,stat,args (stat T: kill -CONT PID); tracepath %.200s",
		      address->host);
}

static void report_knock(const struct gw_address *address, const char *server, const struct knock *knock,
			 struct gw_doctor_finding *finding)
{
	if (knock->name_error) {
		report_name(address, finding);
		return;
	}
	switch (knock->error) {
	case 0:
		if (knock->bytes < 0)
			report_mute(address, finding);
		else
			report_pending(address, knock, finding);
		break;
	case ECONNREFUSED:
		report_closed(address, server, finding);
		break;
	case EHOSTUNREACH:
	case ENETUNREACH:
		gw_doctor_value(finding, ": no route leads to its host, or the host is down");
		gw_doctor_fix(finding, "ip route get %.200s; ping -c 3 %.200s", address->host, address->host);
		break;
	case ETIMEDOUT:
		report_no_answer(address, finding);
		break;
	default:
		report_forbidden(address, knock->error, finding);
	}
}

void gw_doctor_cause(const struct gw_doctor_peers *peers, const char *server, gw_status status, const char *reason,
		     struct gw_doctor_finding *finding)
{
	struct gw_address address;
	struct knock knock;
	if (gw_address_parse(server, &address))
		return;
	switch (status) {
	case GW_NOT_FOUND:
		report_name(&address, finding);
		break;
	case GW_REFUSED:
		if (!strstr(reason, "too many connections")) {
			report_key(server, peers->key != NULL, finding);
			break;
		}
		gw_doctor_value(finding, ": it has reached its limit of connections");
		gw_doctor_fix(finding, "end clients that are not needed, or start the server with more --connections");
		break;
	case GW_VERSION:
		gw_doctor_value(finding, ": it runs another version of Graphwire");
		gw_doctor_fix(
			finding,
			"graphwire --version, on this host and on its host: install the same (deploy/copy_files.py "
			"--with_program)");
		break;
	case GW_LIMIT:
	case GW_NO_MEMORY:
	case GW_UNSUPPORTED:
		gw_doctor_value(finding, ": this process may not open connections: %s", reason);
		break;
	default:
		knock_at(&address, peers->timeout_ms, &knock);
		report_knock(&address, server, &knock, finding);
	}
}

void gw_doctor_cause_large(const char *server, struct gw_doctor_finding *finding)
{
	struct gw_address address;
	if (gw_address_parse(server, &address))
		return;
	gw_doctor_value(finding, "; short answers arrive, long ones do not: the network drops packets above some size");
	gw_doctor_fix(finding,
		      "tracepath %.200s shows the size; sudo ip link set dev DEV mtu 1400 on both hosts, "
		      "or let ICMP \"fragmentation needed\" pass",
		      address.host);
}
