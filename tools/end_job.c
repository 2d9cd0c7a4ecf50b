/* graphwire end-job: the tensors of a job that is over, deleted on servers that go on.
 *
 *   a client of the job's -> gw_tensor_end_job -> a line that says how many there were
 *
 * Exit status 0, 1 with one line on stderr, 2 for usage.
 */
#include <stdio.h>

#include <graphwire/graphwire.h>

#include "core/base/options.h"
#include "tools/tools.h"

#define SERVERS_MAX 65536

struct end_job_command {
	struct gw_client_options client;
	const char *job;
	const char *servers[SERVERS_MAX];
};

static gw_status end_job_take_servers(void *input, char *text)
{
	struct end_job_command *c = input;
	c->client.servers = c->servers;
	return gw_split_list(text, SERVERS_MAX, c->servers, &c->client.server_count);
}

static gw_status end_job_run(struct end_job_command *c)
{
	struct gw_client *client;
	uint64_t count = 0;
	c->client.threads = 1;
	c->client.transport = "tcp";
	gw_status status = gw_client_open(&c->client, &client);
	if (status)
		return status;
	status = gw_tensor_end_job(client, c->job, &count);
	gw_client_close(client);
	if (!status)
		printf("job %s has ended: %llu tensor%s\n", c->job, (unsigned long long)count, count == 1 ? "" : "s");
	return status;
}

int gw_tool_end_job(int argc, char **argv)
{
#define C struct end_job_command
	static const struct gw_option table[] = {
		{"servers", "ADDR:PORT,...", "one server for each part (as launched)", 0,
		 GW_OPTION_CALL(end_job_take_servers)},
		{"key-file", "FILE", "the servers' key; on loopback it is found", 1,
		 GW_OPTION_TEXT(C, client.key_file)},
		{"insecure", NULL, "use servers on loopback that have no key, too", 1,
		 GW_OPTION_FLAG(C, client.insecure)},
		{"timeout", "MS", "the deadline of one request (30000)", 1,
		 GW_OPTION_NUMBER(C, client.timeout_ms, 1, INT32_MAX)},
		{0},
	};
	static const struct gw_options options = {
		.table = table,
		.argument = "JOB",
		.argument_to = GW_OPTION_TEXT(C, job),
		.argument_missing = "which job? graphwire end-job JOB",
		.doc = "Delete the tensors of a job that is over, on servers that go on. launch.py does it for its "
		       "jobs.\vServers do so by themselves when none of the job's clients was heard for as long as "
		       "serve --tensor-lease says.\n\nExamples:\n"
		       "  graphwire end-job --servers 10.0.0.1:30050,10.0.0.2:30050 \\\n"
		       "                    --key-file job.key 20261122-101500",
	};
#undef C
	static struct end_job_command command;
	command = (struct end_job_command){0};
	gw_options_parse(&options, argc, argv, &command);
	gw_status status = end_job_run(&command);
	if (status)
		fprintf(stderr, "%s: %s\n", argv[0], gw_last_error());
	return status ? 1 : 0;
}
