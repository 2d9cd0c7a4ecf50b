/* `graphwire agent`: options -> guardian and worker (guard.c) -> the loop. */
#include <signal.h>
#include <stdio.h>

#include "core/errors/options.h"
#include "core/system/clock.h"
#include "tools/agent/agent.h"
#include "tools/tools.h"

static const struct gw_option table[] = {
	{"keep", NULL, "allow the launcher to release the servers, which then keep running", 0,
	 GW_OPTION_FLAG(struct gw_agent, keep)},
	{0},
};

int gw_tool_agent(int argc, char **argv)
{
	static const struct gw_options options = {
		.table = table,
		.argument_missing = "this command takes options only",
		.doc = "Start, watch and end the processes of one job on this host. deploy/launch.py runs it over ssh "
		       "and exchanges lines of JSON with it; it is not meant to be used by hand.\n\nExample:\n"
		       "  graphwire agent <<<'{\"op\":\"servers\"}'"
		       "\vEnds everything that it has started when its standard input ends or is silent for 30 s, "
		       "and on SIGTERM. Exit status: 0 ended by the launcher's request, 1 ended for another reason, "
		       "2 wrong usage.",
	};
	struct gw_agent agent = {
		.silence_ns = 30 * GW_NS_PER_SECOND,
		.log_bytes_max = 64ull << 20,
		.watch = {.fd = -1, .look_ns = GW_NO_DEADLINE},
	};
	gw_options_parse(&options, argc, argv, &agent);
	signal(SIGPIPE, SIG_IGN);
	gw_status status = gw_agent_guard(&agent);
	return status == GW_OK ? gw_agent_loop(&agent) : gw_exit_status(argv[0], status);
}
