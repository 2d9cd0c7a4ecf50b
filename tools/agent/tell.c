/* Sends events to the launcher in order, and starts to end all processes when the launcher no longer reads them.
 *
 *   event -> a queue -> standard output
 *
 * Two failures end the job: memory runs out, or the launcher stops reading.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/system/clock.h"
#include "tools/agent/agent.h"

#define OUTPUT_FLOOD (128u << 10) /* queued bytes; above this, lines of output are dropped */
#define GRACE_NS     (2 * GW_NS_PER_SECOND)

void gw_agent_process_signal(const struct gw_agent_process *p, int number)
{
	if (!p->ended && kill(-p->pid, number) != 0 && errno == ESRCH)
		kill(p->pid, number); /* it does not have its own session yet */
}

bool gw_agent_may_report_output(const struct gw_agent *agent)
{
	return agent->output_bytes - agent->output_sent < OUTPUT_FLOOD;
}

void gw_agent_send(struct gw_agent *agent)
{
	while (agent->output_sent < agent->output_bytes && !agent->hung_up) {
		ssize_t n = write(STDOUT_FILENO, agent->output + agent->output_sent,
				  agent->output_bytes - agent->output_sent);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			agent->hung_up = true;
			gw_agent_end(agent, NULL);
			break;
		}
		agent->output_sent += (size_t)n;
	}
	memmove(agent->output, agent->output + agent->output_sent, agent->output_bytes - agent->output_sent);
	agent->output_bytes -= agent->output_sent;
	agent->output_sent = 0;
}

void gw_agent_report(struct gw_agent *agent, json_t *event)
{
	char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;
	size_t bytes = text ? strlen(text) : 0;
	json_decref(event);
	agent->reported_ns = gw_now_ns();
	if (!text || agent->hung_up || agent->output_bytes + bytes + 1 > GW_AGENT_OUTPUT_MAX) {
		agent->hung_up = true; /* out of memory, or the launcher does not read */
		free(text);
		gw_agent_end(agent, NULL);
		return;
	}
	memcpy(agent->output + agent->output_bytes, text, bytes);
	agent->output[agent->output_bytes + bytes] = '\n';
	agent->output_bytes += bytes + 1;
	free(text);
	gw_agent_send(agent);
}

void gw_agent_end(struct gw_agent *agent, const char *why)
{
	if (agent->ending)
		return;
	agent->ending = true;
	agent->kill_ns = gw_now_ns() + GRACE_NS;
	agent->exit_status = why ? 1 : 0;
	for (struct gw_agent_process *p = agent->processes; p; p = p->next)
		gw_agent_process_signal(p, SIGTERM);
	if (why && !agent->hung_up)
		gw_agent_report(agent, json_pack("{ss ss}", "event", "ending", "text", why));
}
