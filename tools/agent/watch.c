/* Watches a server that another agent started, a kept server, until it ends: its pidfd then becomes readable. Kernels
 * before 5.3 have no pidfd; there the agent looks at the server's record once a second. An agent watches one server and
 * reports one end. If a successor has taken the server's place (process_replace.c), the agent watches the successor.
 */
#include "tools/agent/agent.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/system/clock.h"
#include "core/system/syscalls.h"

#define LOOK_NS GW_NS_PER_SECOND

static bool watch_is_on_record(uint16_t port, pid_t pid)
{
	json_t *record = gw_agent_record_read(port);
	bool same = record && json_integer_value(json_object_get(record, "pid")) == pid;
	json_decref(record);
	return same;
}

/* The server that has taken the place of this one; 0: none has. */
static pid_t watch_successor(uint16_t port, pid_t pid)
{
	json_t *record = gw_agent_record_read(port);
	bool succeeds = record && json_integer_value(json_object_get(record, "before")) == pid;
	pid_t successor = succeeds ? (pid_t)json_integer_value(json_object_get(record, "pid")) : 0;
	json_decref(record);
	return successor;
}

gw_status gw_agent_watch(struct gw_agent *agent, uint16_t port, pid_t pid)
{
	struct gw_agent_watch *watch = &agent->watch;
	if (watch->pid > 0 || pid <= 0)
		return gw_fail(GW_INVALID, "watch takes one server, by its pid");
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0 && errno != ESRCH && !gw_syscall_missing(errno))
		return gw_fail_errno(GW_IO, errno, "the server of pid %d cannot be watched", (int)pid);
	*watch = (struct gw_agent_watch){.fd = fd, .pid = pid, .port = port, .look_ns = GW_NO_DEADLINE};
	/* From here on the pidfd signals the end. If the server is still on record, the pidfd belongs to the server and
	 * not to a later process with the same pid. */
	if (fd < 0 || !watch_is_on_record(port, pid))
		watch->look_ns = gw_now_ns();
	return GW_OK;
}

void gw_agent_watch_look(struct gw_agent *agent, bool ended)
{
	struct gw_agent_watch *watch = &agent->watch;
	if (watch->pid <= 0 || (!ended && gw_now_ns() < watch->look_ns))
		return;
	if (!ended && watch_is_on_record(watch->port, watch->pid)) {
		watch->look_ns = gw_now_ns() + LOOK_NS;
		return;
	}
	uint16_t port = watch->port;
	pid_t pid = watch->pid, successor = watch_successor(port, pid);
	if (watch->fd >= 0)
		close(watch->fd);
	*watch = (struct gw_agent_watch){.fd = -1, .pid = -1, .look_ns = GW_NO_DEADLINE};
	if (successor && gw_agent_watch(agent, port, successor) == GW_OK)
		gw_agent_report(agent, json_pack("{ss si si si}", "event", "succeeded", "port", (int)port, "pid",
						 (int)successor, "before", (int)pid));
	else
		gw_agent_report(agent, json_pack("{ss si si}", "event", "gone", "port", (int)port, "pid", (int)pid));
}
