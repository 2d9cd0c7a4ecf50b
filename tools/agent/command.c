/* `graphwire agent`: options -> guardian and worker (guard.c) -> the loop. */
#include <signal.h>
#include <stdio.h>

#include "core/errors/options.h"
#include "core/system/clock.h"
#include "tools/agent/agent.h"
#include "tools/tools.h"

#define OPTIONS_MAX 256

struct agent_arguments {
	bool keep, cold;
	uint32_t replace;
	uint32_t option_count;
	const char *options[OPTIONS_MAX + 1];
};

static gw_status take_option(void *input, char *text)
{
	struct agent_arguments *arguments = input;
	if (arguments->option_count == OPTIONS_MAX)
		return gw_fail(GW_LIMIT, "more than %d words", OPTIONS_MAX);
	arguments->options[arguments->option_count++] = text;
	return GW_OK;
}

static gw_status check_agent(void *input)
{
	const struct agent_arguments *arguments = input;
	if (!arguments->replace && (arguments->option_count || arguments->cold))
		return gw_fail(GW_INVALID, "this command takes options only");
	return GW_OK;
}

static const struct gw_option table[] = {
	{"replace", "PORT", "replace the server on record at this port by a successor with the same options", 0,
	 GW_OPTION_NUMBER(struct agent_arguments, replace, 1, 65535)},
	{"cold", NULL, "with --replace: end the server first, and load the part again", 0,
	 GW_OPTION_FLAG(struct agent_arguments, cold)},
	{"keep", NULL, "allow the launcher to release the servers, which then keep running", 0,
	 GW_OPTION_FLAG(struct agent_arguments, keep)},
	{0},
};

int gw_tool_agent(int argc, char **argv)
{
	static const struct gw_options options = {
		.table = table,
		.argument = "-- OPTIONS of the successor",
		.argument_to = GW_OPTION_CALL(take_option),
		.check = check_agent,
		.doc = "Start, watch and end the processes of one job on this host. deploy/launch.py runs it over ssh "
		       "and exchanges lines of JSON with it; it is not meant to be used by hand.\n\nExample:\n"
		       "  graphwire agent <<<'{\"op\":\"servers\"}'"
		       "\vEnds everything that it has started when its standard input ends or is silent for 30 s, "
		       "and on SIGTERM. Exit status: 0 ended by the launcher's request, 1 ended for another reason, "
		       "2 wrong usage.",
	};
	struct agent_arguments arguments = {0};
	gw_options_parse(&options, argc, argv, &arguments);
	signal(SIGPIPE, SIG_IGN);
	if (arguments.replace)
		return gw_exit_status(argv[0],
				      gw_agent_replace((uint16_t)arguments.replace, arguments.cold, arguments.options));
	struct gw_agent agent = {
		.keep = arguments.keep,
		.control = -1,
		.replacement = {.asker = -1},
		.silence_ns = 30 * GW_NS_PER_SECOND,
		.log_bytes_max = 64ull << 20,
		.watch = {.fd = -1, .look_ns = GW_NO_DEADLINE},
	};
	gw_status status = gw_agent_guard(&agent);
	return status == GW_OK ? gw_agent_loop(&agent) : gw_exit_status(argv[0], status);
}
