/* graphwire end-job: deletes the tensors of a finished job on servers that keep running.
 *
 *   a client of the job -> gw_tensor_end_job -> one line with the number of tensors
 *
 * Exit status: 0, 1 with one line on stderr, 2 for wrong usage.
 */
#include <stdio.h>

#include "tools/client_options.h"
#include "tools/tools.h"

struct end_job_command {
	struct gw_tool_client client;
	const char *job;
};

static gw_status end_job_run(struct end_job_command *c)
{
	struct gw_client *client;
	uint64_t count = 0;
	c->client.options.threads = 1;
	c->client.options.transport = "tcp";
	gw_status status = gw_client_open(&c->client.options, &client);
	if (status != GW_OK)
		return status;
	status = gw_tensor_end_job(client, c->job, &count);
	gw_client_close(client);
	if (status == GW_OK)
		printf("job %s has ended: %llu tensor%s\n", c->job, (unsigned long long)count, count == 1 ? "" : "s");
	return status;
}

int gw_tool_end_job(int argc, char **argv)
{
#define C struct end_job_command
	static const struct gw_option table[] = {{0}};
	static const struct gw_options options = {
		.table = table,
		GW_TOOL_CLIENT_COMMAND(C, client, "JOB", job, "graphwire end-job JOB"),
		.doc = "Delete the tensors of a finished job on servers that keep running. "
		       "launch.py does this for its jobs.\vA server deletes them by itself when it has heard no client "
		       "of the job for the time of serve --tensor-lease.\n\nExamples:\n"
		       "  graphwire end-job --servers 10.0.0.1:30050,10.0.0.2:30050 \\\n"
		       "                    --key-file job.key 20261122-101500",
	};
#undef C
	static struct end_job_command command;
	command = (struct end_job_command){0};
	gw_options_parse(&options, argc, argv, &command);
	gw_status status = end_job_run(&command);
	return gw_exit_status(argv[0], status);
}
