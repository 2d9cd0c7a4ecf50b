/* graphwire stat: shows what servers hold and what they have done.
 *
 *   addresses -> an answer of each server (ask.h) -> one line of the table for each, in the order of the addresses
 *
 * A server that does not answer (away, another key, no answer in time) is reported in one line on stderr; the others
 * are still shown. Answers are checked, and printed without control characters. Status: 0 all answered, 1 some did not,
 * 2 wrong usage.
 */
#include "tools/tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/errors/log.h"
#include "server/figures.h"
#include "tools/ask.h"

#define SHOWN_FIELDS_MAX 64

struct stat_command {
	struct gw_ask ask; /* first */
	bool json, ready;
};

static const struct gw_option table[] = {
	GW_ASK_OPTIONS(struct stat_command),
	{"json", NULL, "one JSON object for each server, each on one line", 0,
	 GW_OPTION_FLAG(struct stat_command, json)},
	{"ready", NULL, "print nothing; exit status 0 if all servers answer, 1 if one is still loading or away", 0,
	 GW_OPTION_FLAG(struct stat_command, ready)},
	{0},
};

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

static void stat_print_row(const struct gw_question *question)
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
	for (uint32_t i = 0; i < c->ask.count; i++) {
		if (!c->ask.questions[i].stats)
			continue;
		if (!header)
			print_heading();
		header = true;
		stat_print_row(&c->ask.questions[i]);
	}
}

static void print_tensor(const struct gw_question *question, const json_t *tensor)
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
	for (uint32_t i = 0; i < c->ask.count; i++) {
		const json_t *tensors = json_object_get(c->ask.questions[i].stats, "tensors");
		for (size_t t = 0; t < json_array_size(tensors); t++) {
			if (!header)
				printf("\n%-22s %-24s %-24s %-9s %-16s %10s %9s %9s %9s %9s %9s %9s\n", "server",
				       "tensor", "job", "dtype", "shape", "memory", "written", "pushed", "read",
				       "pulled", "pulls", "torn");
			header = true;
			print_tensor(&c->ask.questions[i], json_array_get(tensors, t));
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
	for (uint32_t i = 0; i < c->ask.count; i++) {
		const struct gw_question *question = &c->ask.questions[i];
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
	for (uint32_t i = 0; i < c->ask.count; i++) {
		if (!c->ask.questions[i].stats)
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
	for (uint32_t i = 0; i < c->ask.count; i++) {
		const struct gw_question *question = &c->ask.questions[i];
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
		.argument_to = GW_OPTION_CALL(gw_ask_take_server),
		.check = gw_ask_check,
		.doc = "Show what servers hold and what they have done.\n\nExamples:\n"
		       "  graphwire stat 127.0.0.1:30050\n"
		       "  graphwire stat --key-file job.key 10.0.0.1:30050 10.0.0.2:30050 --json\n"
		       "  graphwire stat      # a job's own servers, where deploy/launch.py started it\n"
		       "  graphwire stat --ready --timeout 1000 127.0.0.1:30050 && echo serving"
		       "\vExit status: 0 all answered, 1 some did not (one line on stderr for each), 2 bad options."};
	struct stat_command command = {.ask = {.timeout_ms = 5000}};
	int result = 1;
	gw_status status = gw_ask_begin(&command.ask);
	if (status == GW_OK)
		gw_options_parse(&options, argc, argv, &command);
	if (command.ready)
		gw_log_set_level(GW_LOG_ERROR); /* no process reads the log of a probe, and the log would grow */
	if (status == GW_OK)
		status = gw_ask_read_key(&command.ask);
	if (status == GW_OK)
		status = gw_ask_all(&command.ask);
	if (status != GW_OK)
		fprintf(stderr, "%s: %s\n", argv[0], gw_last_error());
	else
		result = show(&command, argv[0]);
	gw_ask_end(&command.ask);
	return result;
}
