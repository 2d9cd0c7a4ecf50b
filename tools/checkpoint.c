/* graphwire checkpoint, graphwire restore: write trainable tensors to this host's disk, and read them back.
 *
 *   a client of the job, or of the kept tensors -> gw_checkpoint, gw_restore -> one line with the result
 *
 * Both commands are one more client of the servers; trainers go on meanwhile. Exit status: 0, 1 with one line on
 * stderr, 2 for wrong usage.
 */
#include <stdio.h>
#include <stdlib.h>

#include "client/launched.h"
#include "client/tensors/checkpoint.h"
#include "core/system/clock.h"
#include "tools/client_options.h"
#include "tools/tools.h"

#define NAMES_MAX 4096

struct checkpoint_command {
	struct gw_tool_client client;
	struct gw_checkpoint_options checkpoint;
	const char *folder;
	const char *names[NAMES_MAX];
	uint32_t name_count;
};

static gw_status checkpoint_take_name(void *input, char *text)
{
	struct checkpoint_command *c = input;
	if (c->name_count == NAMES_MAX)
		return gw_fail(GW_LIMIT, "more than %d tensors", NAMES_MAX);
	c->names[c->name_count++] = text;
	return GW_OK;
}

static gw_status checkpoint_check(void *input)
{
	const struct checkpoint_command *c = input;
	if (c->client.options.server_count || gw_is_launched())
		return GW_OK;
	return gw_fail(GW_INVALID, "no servers given: name them with --servers");
}

#define C struct checkpoint_command
#define WHOSE_OPTIONS                                                                                                  \
	{"job", "NAME", "also the tensors of this job (default: GRAPHWIRE_JOB; without either, only kept tensors)", 0, \
	 GW_OPTION_TEXT(C, client.options.job)},                                                                       \
	{                                                                                                              \
		"tensor", "NAME", "only this tensor; may be repeated", 0, GW_OPTION_CALL(checkpoint_take_name)         \
	}

/* Requires a job's name for a job's tensors. Without the name, this client would be the only client of a new job, and
 * restored tensors would end with this command. */
static gw_status restore_check_job(const struct checkpoint_command *c)
{
	struct gw_checkpoint_index *index;
	const char *job = c->client.options.job ? c->client.options.job : getenv("GRAPHWIRE_JOB");
	gw_status status = job && *job ? GW_OK : gw_checkpoint_read(c->folder, &index);
	if (status != GW_OK || (job && *job))
		return status;
	for (uint32_t t = 0; t < index->count && status == GW_OK; t++) {
		const struct gw_tensor_plan *plan = &index->tensors[t].plan;
		if (plan->job[0] && gw_checkpoint_wants(c->checkpoint.names, c->name_count, plan->name))
			status = gw_fail(GW_INVALID, "%s: tensor \"%s\" belongs to a job: name the job with --job NAME",
					 c->folder, plan->name);
	}
	gw_checkpoint_free(index);
	return status;
}

static gw_status checkpoint_run(struct checkpoint_command *c, bool restore)
{
	struct gw_client *client;
	c->client.options.threads = 2;
	c->checkpoint.names = c->name_count ? c->names : NULL;
	c->checkpoint.name_count = c->name_count;
	uint64_t begun = gw_now_ns();
	gw_status status = restore ? restore_check_job(c) : GW_OK;
	if (status == GW_OK)
		status = gw_client_open(&c->client.options, &client);
	if (status != GW_OK)
		return status;
	status = restore ? gw_restore(client, c->folder, c->checkpoint.names, c->name_count)
			 : gw_checkpoint(client, c->folder, &c->checkpoint);
	gw_client_close(client);
	if (status != GW_OK)
		return status;
	char took[GW_UNIT_TEXT_MAX];
	gw_text_duration(took, (double)(gw_now_ns() - begun) / (double)GW_NS_PER_SECOND);
	printf("%s %s in %s\n", c->folder, restore ? "restored" : "written", took);
	return GW_OK;
}

static int checkpoint_main(const struct gw_options *options, int argc, char **argv, bool restore)
{
	static struct checkpoint_command command;
	command = (struct checkpoint_command){0};
	gw_options_parse(options, argc, argv, &command);
	gw_status status = checkpoint_run(&command, restore);
	return gw_exit_status(argv[0], status);
}

int gw_tool_checkpoint(int argc, char **argv)
{
	static const struct gw_option table[] = {
		WHOSE_OPTIONS,
		{"rate", "BYTES", "write at most so many bytes a second, to spare trainers (default: no limit)", 0,
		 GW_OPTION_NUMBER(C, checkpoint.bytes_per_second, 1, 1ull << 50)},
		{"replace", NULL, "replace an older checkpoint in FOLDER; other files in FOLDER stay", 0,
		 GW_OPTION_FLAG(C, checkpoint.replace)},
		{0},
	};
	static const struct gw_options options = {
		.table = table,
		GW_TOOL_CLIENT_COMMAND(C, client, "FOLDER", folder, "graphwire checkpoint FOLDER"),
		.doc = "Write tensors and their optimizer state to this host's disk, while trainers update them.\v"
		       "The folder appears only when it is complete. NumPy can read it: docs/FORMAT.md.\n\nExamples:\n"
		       "  graphwire checkpoint --servers 10.0.0.1:30050,10.0.0.2:30050 \\\n"
		       "                       --key-file job.key --job links step-1000\n"
		       "  graphwire checkpoint --servers 127.0.0.1:30050 --rate 100M last --replace",
		.check = checkpoint_check,
	};
	return checkpoint_main(&options, argc, argv, false);
}

int gw_tool_restore(int argc, char **argv)
{
	static const struct gw_option table[] = {WHOSE_OPTIONS, {0}};
	static const struct gw_options options = {
		.table = table,
		GW_TOOL_CLIENT_COMMAND(C, client, "FOLDER", folder, "graphwire restore FOLDER"),
		.doc = "Read a checkpoint back into servers of the same graph, in any number of parts. "
		       "Run it before trainers start.\vExamples:\n"
		       "  graphwire restore --servers 10.0.0.1:30050,10.0.0.2:30050 \\\n"
		       "                    --key-file job.key --job links step-1000\n"
		       "  graphwire restore --servers 127.0.0.1:30050 --tensor emb step-1000",
		.check = checkpoint_check,
	};
	return checkpoint_main(&options, argc, argv, true);
}
#undef C
