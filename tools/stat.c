/* graphwire stat: shows what servers hold and what they have done.
 *
 *   addresses -> connect to all at once -> GW_OP_STATS -> one line of the table for each, in the order of the addresses
 *
 * A server that does not answer (away, another key, no answer in time) is reported in one line on stderr; the others
 * are still shown. Answers are checked, and printed without control characters. Status: 0 all answered, 1 some did not,
 * 2 wrong usage.
 */
#include "tools/tools.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client/launched.h"
#include "core/errors/options.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "protocol/ops.h"
#include "server/figures.h"
#include "transport/transport.h"

#define SERVERS_MAX      4096
#define COMPLETIONS      64
#define KEY_BYTES_MAX    1024
#define SHOWN_FIELDS_MAX 64

struct question {
	const char *text; /* the address as the user gave it */
	struct gw_endpoint *endpoint;
	bool connected, answered;
	json_t *stats; /* the server's answer; NULL: no answer, and error names the reason */
	char *error;
};

struct stat_command {
	struct question *questions;
	uint32_t count;
	const char *key_file;
	uint8_t key[KEY_BYTES_MAX];
	uint32_t key_bytes;
	uint64_t timeout_ms;
	bool insecure, json, ready;
	struct gw_launched launched; /* if a launcher named the servers; else the addresses are arguments */
};

static gw_status stat_take_server(void *input, char *text)
{
	struct stat_command *c = input;
	struct gw_address address;
	if (c->count == SERVERS_MAX)
		return gw_fail(GW_LIMIT, "more than %d servers", SERVERS_MAX);
	c->questions[c->count].text = text;
	return gw_address_parse(c->questions[c->count++].text, &address);
}

static const struct gw_option table[] = {
	{"key-file", "FILE", "the servers' key (on loopback: found automatically)", 0,
	 GW_OPTION_TEXT(struct stat_command, key_file)},
	{"insecure", NULL, "accept servers on loopback that have no key", 0,
	 GW_OPTION_FLAG(struct stat_command, insecure)},
	{"timeout", "MS", "how long to wait for answers (default 5000)", 0,
	 GW_OPTION_NUMBER(struct stat_command, timeout_ms, 1, 3600000)},
	{"json", NULL, "one JSON object for each server, each on one line", 0,
	 GW_OPTION_FLAG(struct stat_command, json)},
	{"ready", NULL, "print nothing; exit status 0 if all servers answer, 1 if one is still loading or away", 0,
	 GW_OPTION_FLAG(struct stat_command, ready)},
	{0},
};

static gw_status stat_check_command(void *input)
{
	struct stat_command *c = input;
	if (c->count > 0)
		return GW_OK;
	if (!gw_is_launched())
		return gw_fail(GW_INVALID, "no servers given: name them, such as 127.0.0.1:30050");
	gw_status status = gw_launched_read(&c->launched);
	for (uint32_t i = 0; status == GW_OK && i < c->launched.server_count; i++)
		status = stat_take_server(c, (char *)c->launched.servers[i]);
	if (!c->key_file && !c->insecure)
		c->key_file = c->launched.key_file;
	return status;
}

/* --- Requests. --- */

static void fail_question(struct question *question, const char *text)
{
	question->answered = true;
	if (!question->error)
		question->error = gw_strdup(text);
}

static void connect_to(struct stat_command *c, struct gw_poll_group *group, struct question *question,
		       uint64_t deadline_ns)
{
	struct gw_connect_options to = {.deadline_ns = deadline_ns, .key = c->key, .key_bytes = c->key_bytes};
	uint8_t found[GW_KEY_BYTES];
	gw_status status = gw_address_parse(question->text, &to.address);
	if (!c->key_file)
		to.key = NULL;
	if (status == GW_OK && !c->key_file)
		status = gw_key_choose(&to, c->insecure, found);
	(void)!getrandom(to.client_uuid, sizeof(to.client_uuid),
			 0); /* no request here is repeated, so any uuid will do */
	if (status == GW_OK)
		status = gw_endpoint_connect(group, &to, question, &question->endpoint);
	if (status != GW_OK)
		fail_question(question, gw_last_error());
}

static void take_stats(struct question *question, const struct gw_completion *completion)
{
	json_error_t error;
	question->answered = true;
	question->stats = json_loadb((const char *)completion->reply, completion->reply_bytes, 0, &error);
	if (!json_is_object(question->stats)) {
		json_decref(question->stats);
		question->stats = NULL;
		fail_question(question, "the server's answer is not a JSON object");
	}
}

/* True: this completion settles the question. */
static bool advance(struct question *question, const struct gw_completion *completion, uint64_t deadline_ns)
{
	if (question->answered)
		return false; /* the completion is from an endpoint that was closed */
	if (completion->status != GW_OK) {
		fail_question(question, completion->text);
	} else if (!question->connected) {
		question->connected = true;
		if (gw_endpoint_request(question->endpoint, GW_OP_STATS, 0, NULL, 0, deadline_ns, question))
			fail_question(question, gw_last_error());
	} else {
		take_stats(question, completion);
	}
	if (!question->answered)
		return false;
	gw_endpoint_close(question->endpoint);
	question->endpoint = NULL;
	return true;
}

static gw_status ask_all(struct stat_command *c)
{
	struct gw_poll_group *group;
	gw_status status = gw_poll_group_create(NULL, &group);
	if (status != GW_OK)
		return status;
	uint64_t deadline = gw_deadline_ns((int64_t)c->timeout_ms);
	uint32_t open = 0;
	for (uint32_t i = 0; i < c->count; i++) {
		connect_to(c, group, &c->questions[i], deadline);
		open += !c->questions[i].answered;
	}
	/* The transport reports a missed deadline. It gets one more second to do so. */
	uint64_t end = deadline + GW_NS_PER_SECOND;
	for (uint64_t now; open > 0 && (now = gw_now_ns()) < end;) {
		struct gw_completion completions[COMPLETIONS];
		size_t n = gw_poll_group_poll(group, completions, COMPLETIONS, end - now);
		for (size_t i = 0; i < n; i++)
			open -= advance(completions[i].cookie, &completions[i], deadline);
	}
	for (uint32_t i = 0; i < c->count; i++) {
		if (!c->questions[i].answered)
			fail_question(&c->questions[i], "no answer");
	}
	gw_poll_group_destroy(group);
	return GW_OK;
}

/* --- Output. --- */

static double stat_number_of(const json_t *stats, const char *name)
{
	return json_number_value(json_object_get(stats, name));
}

static const char *text_of(const json_t *stats, const char *name, char out[SHOWN_FIELDS_MAX])
{
	return gw_text_printable(out, SHOWN_FIELDS_MAX, json_string_value(json_object_get(stats, name)));
}

static void print_cell(const char *text, int width)
{
	printf(" %*s", width, text);
}

static void stat_print_row(const struct question *question)
{
	char text[GW_FIGURE_TEXT_MAX];
	printf("%-22s", question->text);
	for (const struct gw_figure *figure = gw_figures; figure->help; figure++)
		if (figure->where & GW_FIGURE_IN_STAT)
			print_cell(gw_figure_text(figure, question->stats, text), figure->width);
	putchar('\n');
}

static void print_heading(void)
{
	printf("%-22s", "server");
	for (const struct gw_figure *figure = gw_figures; figure->help; figure++)
		if (figure->where & GW_FIGURE_IN_STAT)
			print_cell(figure->column, figure->width);
	putchar('\n');
}

static void print_table(const struct stat_command *c)
{
	bool header = false;
	for (uint32_t i = 0; i < c->count; i++) {
		if (!c->questions[i].stats)
			continue;
		if (!header)
			print_heading();
		header = true;
		stat_print_row(&c->questions[i]);
	}
}

static void print_tensor(const struct question *question, const json_t *tensor)
{
	char name[SHOWN_FIELDS_MAX], job[SHOWN_FIELDS_MAX], dtype[SHOWN_FIELDS_MAX], shape[SHOWN_FIELDS_MAX] = "";
	char bytes[GW_UNIT_TEXT_MAX], written[GW_UNIT_TEXT_MAX], pushed[GW_UNIT_TEXT_MAX], pulled[GW_UNIT_TEXT_MAX];
	char read[GW_UNIT_TEXT_MAX];
	const json_t *dimensions = json_object_get(tensor, "shape");
	size_t used = 0;
	for (size_t i = 0; i < json_array_size(dimensions) && used < sizeof(shape); i++)
		used += (size_t)snprintf(shape + used, sizeof(shape) - used, "%s%.0f", i ? "x" : "",
					 json_number_value(json_array_get(dimensions, i)));
	const char *whose = json_object_get(tensor, "job") ? text_of(tensor, "job", job) : "-";
	printf("%-22s %-24s %-24s %-9s %-16s %10s %9s %9s %9s %9s %9.0f %9.0f\n", question->text,
	       text_of(tensor, "name", name), strcmp(whose, "-") == 0 ? "(kept)" : whose,
	       text_of(tensor, "dtype", dtype), shape, gw_text_bytes(bytes, stat_number_of(tensor, "bytes")),
	       gw_text_count(written, stat_number_of(tensor, "written")),
	       gw_text_count(pushed, stat_number_of(tensor, "pushed")),
	       gw_text_count(read, stat_number_of(tensor, "read")),
	       gw_text_count(pulled, stat_number_of(tensor, "pulled")), stat_number_of(tensor, "pulls"),
	       stat_number_of(tensor, "torn"));
}

/* Prints the tensors of all servers, if any. Each server counts rows and requests, except rows that clients
 * read by themselves: clients report those once a minute and when they close. */
static void print_tensors(const struct stat_command *c)
{
	bool header = false;
	for (uint32_t i = 0; i < c->count; i++) {
		const json_t *tensors = json_object_get(c->questions[i].stats, "tensors");
		for (size_t t = 0; t < json_array_size(tensors); t++) {
			if (!header)
				printf("\n%-22s %-24s %-24s %-9s %-16s %10s %9s %9s %9s %9s %9s %9s\n", "server",
				       "tensor", "job", "dtype", "shape", "memory", "written", "pushed", "read",
				       "pulled", "pulls", "torn");
			header = true;
			print_tensor(&c->questions[i], json_array_get(tensors, t));
		}
	}
}

/* {heading: text} */
static json_t *shown_by_cluster(const json_t *answer)
{
	json_t *shown = json_object();
	char text[GW_FIGURE_TEXT_MAX];
	for (const struct gw_figure *figure = gw_figures; figure->help; figure++)
		if (figure->where & GW_FIGURE_IN_CLUSTER)
			json_object_set_new(shown, figure->column, json_string(gw_figure_text(figure, answer, text)));
	return shown;
}

static void stat_print_json(const struct stat_command *c)
{
	for (uint32_t i = 0; i < c->count; i++) {
		const struct question *question = &c->questions[i];
		json_t *object = question->stats ? json_copy(question->stats) : json_object();
		json_object_set_new(object, "server", json_string(question->text));
		if (question->stats)
			json_object_set_new(object, "shown", shown_by_cluster(question->stats));
		if (question->error)
			json_object_set_new(object, "error", json_string(question->error));
		char *text = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII);
		puts(text ? text : "{}");
		free(text);
		json_decref(object);
	}
}

/* For probes, which run often: the exit status only. */
static int show_ready(const struct stat_command *c)
{
	for (uint32_t i = 0; i < c->count; i++) {
		if (!c->questions[i].stats)
			return 1;
	}
	return 0;
}

static int show(const struct stat_command *c, const char *program)
{
	int status = 0;
	if (c->ready)
		return show_ready(c);
	if (c->json) {
		stat_print_json(c);
	} else {
		print_table(c);
		print_tensors(c);
	}
	fflush(stdout);
	for (uint32_t i = 0; i < c->count; i++) {
		const struct question *question = &c->questions[i];
		if (question->stats)
			continue;
		const char *error = question->error ? question->error : "out of memory for the reason";
		if (strstr(error, question->text))
			fprintf(stderr, "%s: %s\n", program, error);
		else
			fprintf(stderr, "%s: %s: %s\n", program, question->text, error);
		status = 1;
	}
	return status;
}

int gw_tool_stat(int argc, char **argv)
{
	static const struct gw_options options = {
		.table = table,
		.argument = "ADDR:PORT...",
		.argument_to = GW_OPTION_CALL(stat_take_server),
		.check = stat_check_command,
		.doc = "Show what servers hold and what they have done.\n\nExamples:\n"
		       "  graphwire stat 127.0.0.1:30050\n"
		       "  graphwire stat --key-file job.key 10.0.0.1:30050 10.0.0.2:30050 --json\n"
		       "  graphwire stat      # a job's own servers, where deploy/launch.py started it\n"
		       "  graphwire stat --ready --timeout 1000 127.0.0.1:30050 && echo serving"
		       "\vExit status: 0 all answered, 1 some did not (one line on stderr for each), 2 bad options."};
	struct stat_command command = {.timeout_ms = 5000};
	int result = 1;
	command.questions = gw_calloc(SERVERS_MAX, sizeof(*command.questions));
	if (command.questions)
		gw_options_parse(&options, argc, argv, &command);
	gw_status status = command.questions ? GW_OK : GW_NO_MEMORY;
	if (command.ready)
		gw_log_set_level(GW_LOG_ERROR); /* no process reads the log of a probe, and the log would grow */
	if (status == GW_OK && command.key_file)
		status = gw_key_read(command.key_file, command.key, &command.key_bytes);
	if (status == GW_OK)
		status = ask_all(&command);
	explicit_bzero(command.key, sizeof(command.key));
	if (status != GW_OK)
		fprintf(stderr, "%s: %s\n", argv[0], gw_last_error());
	else
		result = show(&command, argv[0]);
	for (uint32_t i = 0; command.questions && i < command.count; i++) {
		json_decref(command.questions[i].stats);
		gw_free(command.questions[i].error);
	}
	gw_free(command.questions);
	gw_launched_free(&command.launched);
	return result;
}
