/* What process.c and process_replace.c call of each other: a server and its successor are processes alike. */
#ifndef GW_TOOLS_AGENT_PROCESS_PRIVATE_H
#define GW_TOOLS_AGENT_PROCESS_PRIVATE_H

#include "tools/agent/agent.h"

/* Starts a process with these words in the place of a server: its name, environment and ready line. The end of the
 * process is not reported while it is `quiet`. after: it begins when the server has ended. */
gw_status gw_agent_process_succeed(struct gw_agent *agent, struct gw_agent_process *server, const json_t *words,
				   bool after, struct gw_agent_process **out);

/* process_replace.c: makes the socket for requests to replace a server. */
gw_status gw_agent_control_open(struct gw_agent *agent);
/* A server that is being replaced, or its successor, has written a line. */
void gw_agent_replace_read(struct gw_agent_process *process, const char *line);

#endif
