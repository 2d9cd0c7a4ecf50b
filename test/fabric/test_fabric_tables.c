/* The tables of docs/SCALING.md, by their formulas (scaling.h): the page contains each of their lines.
 *
 *   test_fabric_tables print     prints them, as Markdown, for the page
 *
 * C trainers on each host, one server on each host, one card. A trainer maps the memory of the server on its own host.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/fabric/scaling.h"

#define TRAINERS        8     /* C */
#define CONTEXT_BYTES   375u  /* of a queue pair on a card: [2] */
#define QPS_A_SECOND    400.0 /* that a card creates: [7] */
#define CONNECTIONS_MAX 65536u
#define PATIENCE_S      30.0 /* timeout_ms */
#define ARRAYS          40   /* a */
/* Measured (docs/SCALING.md, "The catalog" and "Memory of a connection"). Before: protocol version 5. */
#define ARRAY_TEXT        75.0
#define ARRAY_TEXT_BEFORE 132.0  /* of each array of each part, from each server */
#define PARSE_NS          2000.0 /* of an array */
#define PARSE_NS_BEFORE   8600.0
#define TCP_IDLE          (3.0 * 1024)
#define TCP_IDLE_BEFORE   (302.0 * 1024)

static struct {
	char text[8192];
	size_t used;
} page;

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	page.used += (size_t)vsnprintf(page.text + page.used, sizeof(page.text) - page.used, format, arguments);
	va_end(arguments);
}

/* 1,234,567. */
static const char *number(uint64_t value)
{
	static char texts[8][32];
	static unsigned turn;
	char *text = texts[turn++ % 8], digits[24];
	int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
	char *at = text;
	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			*at++ = ',';
		*at++ = digits[i];
	}
	*at = '\0';
	return text;
}

/* A value with a unit, in two digits, or three from 100 on. */
static const char *amount(double value, const char *const *units, double step)
{
	static char texts[8][32];
	static unsigned turn;
	char *text = texts[turn++ % 8];
	while (value >= 0.9995 * step && units[1]) {
		value /= step;
		units++;
	}
	snprintf(text, sizeof(texts[0]), "%.*f %s", value < 9.95 ? 1 : 0, value, *units);
	return text;
}
static const char *bytes(double value)
{
	static const char *const units[] = {"B", "KB", "MB", "GB", "TB", NULL};
	return amount(value, units, 1000);
}
static const char *seconds(double value)
{
	static const char *const units[] = {"ms", "s", NULL};
	return amount(value * 1000, units, 1000);
}

static struct scaling job_of(uint64_t servers, uint64_t engines)
{
	return (struct scaling){
		.servers = servers, .trainers = servers * TRAINERS, .engines = engines, .remote = servers - 1};
}

static double start_seconds(const struct scaling *job)
{
	return (double)scaling_card_qps(job) / QPS_A_SECOND;
}
static double trainer_bytes(const struct scaling *job)
{
	return (double)(scaling_client_bytes() * job->remote * job->engines);
}
static double server_bytes(const struct scaling *job)
{
	return (double)scaling_server_bytes() * TRAINERS * (double)(job->remote * job->engines);
}

/* --- The tables. --- */

static void print_connections(void)
{
	static const uint64_t engines[] = {1, 2, 16, 64};
	for (uint64_t servers = 8; servers <= 512; servers *= 8)
		for (size_t e = 0; e < 4; e++) {
			struct scaling job = job_of(servers, engines[e]);
			uint64_t at_server = scaling_server_connections(&job);
			put("| %s | %s | %s | %s | %s | %s | %s |\n", number(servers), number(engines[e]),
			    number(at_server), at_server > CONNECTIONS_MAX ? "no" : "yes",
			    number(scaling_trainer_qps(&job)), number(scaling_server_qps(&job)),
			    number(scaling_card_qps(&job)));
		}
}

static void print_connection_memory(void)
{
	put("| `verbs_endpoint`, `verbs_client` | %s | %s |\n", number(sizeof(struct verbs_endpoint)),
	    number(sizeof(struct verbs_client)));
	put("| `verbs_qp` with its places | 2 · %s | %s, %s |\n", number(scaling_qp_bytes(VERBS_RING)),
	    number(scaling_qp_bytes(VERBS_SENDS)), number(scaling_qp_bytes(1)));
	put("| `tcp_client`, `tcp_server`: the control connection | %s | %s |\n", number(sizeof(struct tcp_client)),
	    number(sizeof(struct tcp_server)));
	put("| `gw_link` | %s | |\n", number(sizeof(struct gw_link)));
	put("| messages, pinned | %s | %s |\n", number(SCALING_MESSAGES), number(SCALING_MESSAGES));
	put("| send and receive queue, pinned | %s | %s |\n", number(SCALING_CLIENT_QUEUES),
	    number(SCALING_SERVER_QUEUES));
	put("| the driver's records of work requests | %s | %s |\n", number(SCALING_CLIENT_DRIVER),
	    number(SCALING_SERVER_DRIVER));
	put("| completion entries of 64 B, pinned | %s | %s |\n", number(SCALING_CLIENT_ENTRIES),
	    number(SCALING_SERVER_ENTRIES));
	put("| **sum** | **%s** | **%s** |\n", bytes((double)scaling_client_bytes()),
	    bytes((double)scaling_server_bytes()));
	put("| pinned of it | %s | %s |\n", bytes((double)scaling_client_pinned()),
	    bytes((double)scaling_server_pinned()));
	put("| buffers of the control connection, few of whose pages are touched | %s | |\n",
	    number((uint64_t)CLIENT_STAGING_BYTES + CLIENT_OUT_FIRST));
}

static void print_memory(void)
{
	static const uint64_t sizes[][2] = {{8, 1}, {8, 16}, {64, 1}, {64, 16}, {512, 1}, {512, 16}, {512, 64}};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct scaling job = job_of(sizes[i][0], sizes[i][1]);
		put("| %s | %s | %s | %s | %s | %s |\n", number(job.servers), number(job.engines),
		    bytes(trainer_bytes(&job)), bytes(TRAINERS * trainer_bytes(&job)), bytes(server_bytes(&job)),
		    bytes(CONTEXT_BYTES * (double)scaling_card_qps(&job)));
	}
}

static void print_start(void)
{
	for (uint64_t servers = 8; servers <= 512; servers *= 8) {
		put("| %s |", number(servers));
		for (uint64_t engines = 1; engines <= 16; engines *= engines == 2 ? 8 : 2) {
			struct scaling job = job_of(servers, engines);
			put(" %s |", seconds(start_seconds(&job)));
		}
		put("\n");
	}
}

/* What limits a job first, in the order of its life: it opens, then it reads. */
static const char *first_limit(const struct scaling *job, bool before)
{
	double arrays = (double)ARRAYS * (double)job->servers;
	double parse_s = (before ? PARSE_NS_BEFORE * (double)job->servers : PARSE_NS) * arrays / 1e9;
	if (parse_s > PATIENCE_S)
		return "the catalogs: opening ends before they are parsed";
	if (scaling_server_connections(job) > CONNECTIONS_MAX)
		return "a server's connections";
	if (start_seconds(job) > PATIENCE_S)
		return "the card: opening ends before all are connected";
	return scaling_card_qps(job) > 500 ? "none; small reads are slower, by the card's cache" : "none";
}

static void print_first(void)
{
	for (uint64_t servers = 8; servers <= 512; servers *= 8)
		for (uint64_t engines = 1; engines <= 2; engines++) {
			struct scaling job = job_of(servers, engines);
			double arrays = ARRAYS * (double)servers;
			put("| %s × %s | %s | %s, %s | %s, %s | %s | %s | %s | %s |\n", number(servers),
			    number(job.trainers), number(engines), bytes(ARRAY_TEXT_BEFORE * arrays * (double)servers),
			    bytes(ARRAY_TEXT * arrays), seconds(PARSE_NS_BEFORE * arrays * (double)servers / 1e9),
			    seconds(PARSE_NS * arrays / 1e9),
			    bytes(TCP_IDLE_BEFORE * (double)scaling_server_connections(&job)),
			    bytes(TCP_IDLE * (double)scaling_server_connections(&job)), first_limit(&job, true),
			    first_limit(&job, false));
		}
}

static void the_page_has_each_line(void **state)
{
	static char have[1 << 17];
	(void)state;
	FILE *file = fopen(SCALING_PAGE, "r");
	assert_non_null(file);
	size_t n = fread(have, 1, sizeof(have) - 1, file);
	fclose(file);
	have[n] = '\0';
	int lines = 0;
	for (char *line = page.text, *end; (end = strchr(line, '\n')); line = end + 1, lines++) {
		*end = '\0';
		if (!strstr(have, line))
			fail_msg("docs/SCALING.md lacks this line; test_fabric_tables print has all: %s", line);
	}
	assert_true(lines > 30);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_page_has_each_line)};
	print_connections();
	print_connection_memory();
	print_memory();
	print_start();
	print_first();
	if (argc > 1 && strcmp(argv[1], "print") == 0) {
		fputs(page.text, stdout);
		return 0;
	}
	return cmocka_run_group_tests_name("the tables of docs/SCALING.md", tests, NULL, NULL);
}
