/* graphwire top: a live view of the servers of a job.
 *
 *   look ──► wait for the interval ──► look ──► a view of both (top_view.h) ──► the screen, or one JSON object ──► wait
 * …
 *
 * The screen is cleared by two escape sequences that every terminal knows; a view that does not fit is cut. Without a
 * terminal, views follow one another. A server that does not answer has a line with the reason, and the others go on.
 * Status of --once: 0 all answered, 1 some did not. */
#include "tools/tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "tools/ask.h"
#include "tools/top_view.h"

#define LINE_MAX_BYTES 512
#define CELL_MAX       64

struct top_command {
	struct gw_ask ask; /* first */
	double interval_s;
	bool once, json;
	uint32_t rows, columns; /* of the terminal; 0: no limit */
	uint32_t printed;       /* lines of this view */
};

static const struct gw_option table[] = {
	GW_ASK_OPTIONS(struct top_command),
	{"interval", "SECONDS", "time between two looks (2)", 0,
	 GW_OPTION_REAL(struct top_command, interval_s, 0.1, 3600)},
	{"once", NULL, "print one view, after one interval, and end", 0, GW_OPTION_FLAG(struct top_command, once)},
	{"json", NULL, "each view as one JSON object on one line", 0, GW_OPTION_FLAG(struct top_command, json)},
	{0},
};

/* --- Lines. --- */

static void put_line(struct top_command *c, const char *line)
{
	if (c->rows && c->printed + 1 >= c->rows)
		return;
	c->printed++;
	if (c->columns)
		printf("%.*s\n", (int)c->columns, line);
	else
		printf("%s\n", line);
}

static const char *cell_text(const json_t *object, const char *name, char out[CELL_MAX])
{
	return gw_text_printable(out, CELL_MAX, json_string_value(json_object_get(object, name)));
}

/* A number in its unit; "-": unknown. */
static const char *cell(const json_t *object, const char *name, char *(*in_unit)(char *, double), char out[CELL_MAX])
{
	const json_t *value = json_object_get(object, name);
	if (!json_is_number(value))
		return "-";
	return in_unit(out, json_number_value(value));
}

static char *bytes_a_second(char *out, double bytes)
{
	gw_text_bytes(out, bytes);
	return strncat(out, "/s", CELL_MAX - strlen(out) - 1);
}

/* --- The tables. --- */

static void print_servers(struct top_command *c, const json_t *servers)
{
	char line[LINE_MAX_BYTES], a[CELL_MAX], b[CELL_MAX], d[CELL_MAX], e[CELL_MAX], f[CELL_MAX], g[CELL_MAX],
		h[CELL_MAX], k[CELL_MAX], l[CELL_MAX];
	snprintf(line, sizeof(line), "%-22s %5s %10s %10s %7s %5s %9s %9s %11s %9s %9s %7s", "server", "part", "up",
		 "memory", "clients", "open", "reads/s", "reqs/s", "sent", "p50", "p99", "errors");
	put_line(c, line);
	for (size_t i = 0; i < json_array_size(servers); i++) {
		const json_t *server = json_array_get(servers, i);
		if (json_object_get(server, "error")) {
			char error[GW_ERROR_TEXT_MAX / 2];
			gw_text_printable(error, sizeof(error), json_string_value(json_object_get(server, "error")));
			snprintf(line, sizeof(line), "%-22s does not answer: %s", cell_text(server, "server", a),
				 error);
			put_line(c, line);
			continue;
		}
		snprintf(
			line, sizeof(line), "%-22s %5.0f %10s %10s %7.0f %5.0f %9s %9s %11s %9s %9s %7s",
			cell_text(server, "server", a), json_number_value(json_object_get(server, "part")),
			cell(server, "uptime_s", gw_text_duration, b), cell(server, "bytes", gw_text_bytes, d),
			json_number_value(json_object_get(server, "connections")),
			json_number_value(json_object_get(server, "requests_open")),
			cell(server, "reads_per_s", gw_text_count, e), cell(server, "requests_per_s", gw_text_count, f),
			cell(server, "sent_bytes_per_s", bytes_a_second, g), cell(server, "p50_s", gw_text_duration, h),
			cell(server, "p99_s", gw_text_duration, k), cell(server, "errors_per_s", gw_text_count, l));
		put_line(c, line);
	}
}

static void print_ops(struct top_command *c, const json_t *servers)
{
	char line[LINE_MAX_BYTES], a[CELL_MAX], b[CELL_MAX], d[CELL_MAX], e[CELL_MAX], f[CELL_MAX], g[CELL_MAX],
		h[CELL_MAX];
	bool headed = false;
	for (size_t i = 0; i < json_array_size(servers); i++) {
		const json_t *server = json_array_get(servers, i), *ops = json_object_get(server, "ops");
		for (size_t o = 0; o < json_array_size(ops); o++) {
			const json_t *op = json_array_get(ops, o);
			if (json_number_value(json_object_get(op, "requests_per_s")) <= 0)
				continue;
			if (!headed) {
				put_line(c, "");
				snprintf(line, sizeof(line), "%-22s %-16s %9s %11s %9s %9s %9s", "server", "operation",
					 "a second", "sent", "p50", "p99", "slice p99");
				put_line(c, line);
			}
			headed = true;
			snprintf(line, sizeof(line), "%-22s %-16s %9s %11s %9s %9s %9s", cell_text(server, "server", a),
				 cell_text(op, "op", b), cell(op, "requests_per_s", gw_text_count, d),
				 cell(op, "sent_bytes_per_s", bytes_a_second, e),
				 cell(op, "p50_s", gw_text_duration, f), cell(op, "p99_s", gw_text_duration, g),
				 cell(op, "slice_p99_s", gw_text_duration, h));
			put_line(c, line);
		}
	}
}

/* The texts of a list, as far as they fit, with commas. */
static const char *joined(const json_t *list, char *out, size_t bytes)
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < json_array_size(list) && used < bytes; i++) {
		char text[CELL_MAX];
		gw_text_printable(text, sizeof(text), json_string_value(json_array_get(list, i)));
		used += (size_t)snprintf(out + used, bytes - used, "%s%s", i ? "," : "", text);
	}
	return out;
}

static const char *waits_text(const json_t *waits, char *out, size_t bytes)
{
	size_t used = 0;
	snprintf(out, bytes, "-");
	for (size_t i = 0; i < json_array_size(waits) && used < bytes; i++) {
		const json_t *wait = json_array_get(waits, i);
		char server[CELL_MAX], op[CELL_MAX], took[CELL_MAX];
		used += (size_t)snprintf(out + used, bytes - used, "%s%s of %s, %s", i ? "; " : "",
					 cell_text(wait, "op", op), cell_text(wait, "server", server),
					 cell(wait, "s", gw_text_duration, took));
	}
	return out;
}

static void print_clients(struct top_command *c, const json_t *clients)
{
	char line[LINE_MAX_BYTES], id[CELL_MAX], names[CELL_MAX], over[CELL_MAX], b[CELL_MAX], d[CELL_MAX], e[CELL_MAX],
		waits[LINE_MAX_BYTES / 2];
	if (!json_array_size(clients))
		return;
	put_line(c, "");
	snprintf(line, sizeof(line), "%-8s %-24s %-9s %9s %9s %11s  %s", "client", "from", "over", "reads/s", "reqs/s",
		 "read", "waits for");
	put_line(c, line);
	for (size_t i = 0; i < json_array_size(clients); i++) {
		const json_t *client = json_array_get(clients, i);
		snprintf(line, sizeof(line), "%-8.8s %-24.24s %-9.9s %9s %9s %11s  %s", cell_text(client, "client", id),
			 joined(json_object_get(client, "names"), names, sizeof(names)),
			 joined(json_object_get(client, "transports"), over, sizeof(over)),
			 cell(client, "reads_per_s", gw_text_count, b),
			 cell(client, "requests_per_s", gw_text_count, d),
			 cell(client, "read_bytes_per_s", bytes_a_second, e),
			 waits_text(json_object_get(client, "waits"), waits, sizeof(waits)));
		put_line(c, line);
	}
}

static void print_view(struct top_command *c, const json_t *view)
{
	char line[LINE_MAX_BYTES], clock[32] = "";
	const bool screen = !c->once && isatty(STDOUT_FILENO);
	const json_t *servers = json_object_get(view, "servers"), *clients = json_object_get(view, "clients");
	struct winsize size;
	time_t now = time(NULL);
	struct tm local;
	if (localtime_r(&now, &local))
		strftime(clock, sizeof(clock), "%H:%M:%S", &local);
	c->printed = c->rows = c->columns = 0;
	if (screen && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
		c->rows = size.ws_row;
		c->columns = size.ws_col;
	}
	if (screen)
		fputs("\x1b[H\x1b[2J", stdout);
	snprintf(line, sizeof(line), "%s  %zu servers, %zu clients, the last %.1f s", clock, json_array_size(servers),
		 json_array_size(clients), json_number_value(json_object_get(view, "interval_s")));
	put_line(c, line);
	put_line(c, "");
	print_servers(c, servers);
	print_clients(c, clients);
	print_ops(c, servers);
	if (!screen && !c->once)
		putchar('\n');
}

static void print_json(const json_t *view)
{
	char *text = json_dumps(view, JSON_COMPACT | JSON_ENSURE_ASCII);
	puts(text ? text : "{}");
	free(text);
}

/* --- Looks. --- */

static void top_sleep(double seconds)
{
	struct timespec left = gw_timespec((uint64_t)(seconds * 1e9));
	while (nanosleep(&left, &left) != 0)
		;
}

/* Keeps the answers of a look, instead of those of the look before. */
static void keep_answers(const struct gw_ask *ask, json_t **kept)
{
	for (uint32_t i = 0; i < ask->count; i++) {
		json_decref(kept[i]);
		kept[i] = json_incref(ask->questions[i].stats);
	}
}

static gw_status top_look(struct top_command *c, json_t **before, uint64_t *looked_ns)
{
	uint64_t last_ns = *looked_ns;
	gw_status status = gw_ask_all(&c->ask);
	if (status != GW_OK)
		return status;
	*looked_ns = gw_monotonic_ns();
	json_t *view = gw_top_view(&c->ask, before, (double)(*looked_ns - last_ns) / 1e9);
	if (!view)
		return gw_fail(GW_NO_MEMORY, "no memory for the view");
	if (c->json)
		print_json(view);
	else
		print_view(c, view);
	json_decref(view);
	if (fflush(stdout) != 0)
		return gw_fail(GW_IO, "standard output takes no more lines");
	keep_answers(&c->ask, before);
	return GW_OK;
}

static gw_status top_run(struct top_command *c)
{
	json_t **before = gw_calloc(c->ask.count, sizeof(*before));
	gw_status status = before ? gw_ask_all(&c->ask) : GW_NO_MEMORY;
	uint64_t looked_ns = gw_monotonic_ns();
	if (status == GW_OK)
		keep_answers(&c->ask, before);
	for (bool more = true; status == GW_OK && more; more = !c->once) {
		top_sleep(c->interval_s);
		status = top_look(c, before, &looked_ns);
	}
	for (uint32_t i = 0; before && i < c->ask.count; i++)
		json_decref(before[i]);
	gw_free(before);
	return status;
}

static bool all_answered(const struct gw_ask *ask)
{
	uint32_t answered = 0;
	for (uint32_t i = 0; i < ask->count; i++)
		answered += ask->questions[i].stats != NULL;
	return answered == ask->count;
}

int gw_tool_top(int argc, char **argv)
{
	static const struct gw_options options = {
		.table = table,
		.argument = "ADDR:PORT...",
		.argument_to = GW_OPTION_CALL(gw_ask_take_server),
		.check = gw_ask_check,
		.doc = "Show what servers and their clients do, again and again.\n\nExamples:\n"
		       "  graphwire top 127.0.0.1:30050\n"
		       "  graphwire top --key-file job.key 10.0.0.1:30050 10.0.0.2:30050\n"
		       "  graphwire top      # a job's own servers, where deploy/launch.py started it\n"
		       "  graphwire top --once --json --interval 1 127.0.0.1:30050"
		       "\vRates are those of the last interval. p50 and p99 are the times of requests from their arrival to "
		       "their reply, at most twice too large; a slice keeps a thread from other clients. Reads over mapped "
		       "memory and RDMA cost servers nothing, and servers do not see them. Ctrl-C ends it. "
		       "Exit status of --once: 0 all answered, 1 some did not; 2 bad options."};
	struct top_command command = {.ask = {.timeout_ms = 5000, .with_clients = true}, .interval_s = 2};
	gw_status status = gw_ask_begin(&command.ask);
	if (status == GW_OK)
		gw_options_parse(&options, argc, argv, &command);
	if (status == GW_OK)
		status = gw_ask_read_key(&command.ask);
	if (status == GW_OK)
		status = top_run(&command);
	if (status != GW_OK)
		fprintf(stderr, "%s: %s\n", argv[0], gw_last_error());
	const int result = status == GW_OK && all_answered(&command.ask) ? 0 : 1;
	gw_ask_end(&command.ask);
	return result;
}
