/* graphwire bench latency: one row, asked for and waited for, again and again, against a bare ping-pong of the same
 * bytes on the wire, or a bare RDMA read. Sleeping: both sides block in the kernel, like the ping-pong. Spinning: they
 * look first, which is what a latency-bound user sets. The row is checked in every round. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bare_rows.h"
#include "bench/bare_verbs.h"
#include "bench/bench.h"
#include "bench/row_bed.h"
#include "core/base/alloc.h"
#include "core/base/clock.h"

#define ROUNDS_MAX 1000000u
/* On the wire: a header of 16 bytes, the read's 32, an offset of 4; an answer's header of 16. */
#define QUESTION_BYTES 52u
#define ANSWER_HEADER  16u

struct arguments {
	struct gw_bench bench;
	uint64_t rounds, row_bytes, spin_us;
	const char *transport;
	/* while it runs */
	struct gw_arena *table;
	struct gw_row_bed bed;
	struct gw_row_client client;
	struct gw_buffer *buffer;
	uint8_t *landing;
	struct gw_bare_verbs *bare; /* NULL: over TCP */
	bool sleeping;
	double *microseconds; /* of one repeat */
	struct gw_bench_series p99, bare_p99;
	uint64_t next;
};

static const char *const transports[] = {"epoll", "io_uring", "verbs", NULL};

static const struct gw_option table[] = {
	{"rounds", "N", "round trips of one measurement (5k)", 0,
	 GW_OPTION_NUMBER(struct arguments, rounds, 10, ROUNDS_MAX)},
	{"row", "BYTES", "bytes of a row (400)", 0, GW_OPTION_NUMBER(struct arguments, row_bytes, 1, 64 << 10)},
	{"spin", "US", "how long the spinning case looks before it sleeps (100)", 0,
	 GW_OPTION_NUMBER(struct arguments, spin_us, 1, 1000000)},
	{"transport", "NAME", "epoll, io_uring or verbs only", 0,
	 GW_OPTION_CHOICE(struct arguments, transport, transports)},
	{0},
};

/* The median of the rounds; the 99th percentile goes to the series. */
static double summarize(struct arguments *a, struct gw_bench_series *p99)
{
	gw_bench_series_add(p99, gw_bench_quantile(a->microseconds, a->rounds, 0.99));
	return gw_bench_quantile(a->microseconds, a->rounds, 0.5);
}

static gw_status measure_bare(void *context, double *figure)
{
	struct arguments *a = context;
	int error = a->bare ? gw_bare_verbs_one(a->bare, (uint32_t)a->row_bytes, (uint32_t)a->rounds, a->sleeping,
						a->microseconds)
			    : gw_bare_ping_pong(QUESTION_BYTES, ANSWER_HEADER + (uint32_t)a->row_bytes,
						(uint32_t)a->rounds, a->microseconds);
	if (error)
		return gw_fail_errno(GW_IO, error, "%s", a->bare ? "the bare read" : "the bare ping-pong");
	*figure = summarize(a, &a->bare_p99);
	return GW_OK;
}

static gw_status one_row(struct arguments *a, double *microseconds)
{
	uint64_t offset = gw_bare_mix(a->next++) % (gw_arena_bytes(a->table) / a->row_bytes) * a->row_bytes;
	struct gw_span span = {offset, 0, (uint32_t)a->row_bytes};
	struct gw_completion completion;
	uint64_t begun = gw_now_ns();
	struct gw_group group = {.cookie = &group, .deadline_ns = begun + 60 * GW_NS_PER_SECOND};
	if (gw_endpoint_readv(a->client.endpoint, &group, &a->client.endpoint->peer.regions[0], a->buffer, &span, 1,
			      true) != 1)
		return gw_fail(GW_AGAIN, "no room for one row");
	while (!gw_poll_group_poll(a->client.group, &completion, 1, GW_NS_PER_SECOND))
		;
	*microseconds = (double)(gw_now_ns() - begun) * 1e-3;
	if (completion.status)
		return gw_fail_text(completion.status, completion.text);
	if (memcmp(a->landing, gw_arena_base(a->table) + offset, a->row_bytes) != 0)
		return gw_fail(GW_DIGEST, "the row at %llu is wrong", (unsigned long long)offset);
	return GW_OK;
}

static gw_status measure_rows(void *context, double *figure)
{
	struct arguments *a = context;
	gw_status status = GW_OK;
	for (uint64_t i = 0; i < a->rounds && !status; i++)
		status = one_row(a, &a->microseconds[i]);
	*figure = status ? 0 : summarize(a, &a->p99);
	return status;
}

/* driver: TCP's, or NULL: verbs. */
static gw_status run_case(struct arguments *a, const char *driver, uint64_t spin_ns)
{
	struct gw_bench_series ceilings = {0}, values = {0};
	const char *scheme = driver ? "tcp" : "verbs", *slash = driver ? "/" : "", *name = driver ? driver : "";
	const struct gw_poll_group_options options = {.tcp_driver = driver, .spin_ns = spin_ns};
	gw_status status = gw_row_bed_begin(&a->bed, a->table, gw_arena_bytes(a->table), scheme, &options, 1);
	if (status == GW_UNSUPPORTED) {
		fprintf(a->bench.table, "%s%s%s: not measured: %s\n", scheme, slash, name, gw_last_error());
		return GW_OK;
	}
	if (status)
		return status;
	a->sleeping = spin_ns == 0;
	int error = driver ? 0
			   : gw_bare_verbs_open(gw_arena_base(a->table), gw_arena_bytes(a->table), a->landing,
						a->row_bytes, 1, &a->bare);
	if (error) {
		gw_row_bed_end(&a->bed);
		return gw_fail_errno(GW_IO, error, "the bare read");
	}
	a->p99.count = a->bare_p99.count = 0;
	status = gw_row_client_open(&a->bed, &a->client);
	if (!status)
		status = gw_buffer_register(a->client.group, a->landing, a->row_bytes, &a->buffer);
	if (!status)
		status = gw_bench_alternate(&a->bench, measure_bare, measure_rows, a, &ceilings, &values);
	gw_row_client_close(&a->client); /* and its buffer */
	a->buffer = NULL;
	gw_row_bed_end(&a->bed);
	gw_bare_verbs_close(a->bare);
	a->bare = NULL;
	if (status)
		return status;
	char title[96], note[96];
	double p99 = gw_bench_series_median(&a->p99), bare_p99 = gw_bench_series_median(&a->bare_p99);
	snprintf(note, sizeof(note), "99 of 100 rows within %.4g us; the %s within %.4g us", p99,
		 driver ? "ping-pong's rounds" : "bare reads", bare_p99);
	snprintf(title, sizeof(title), "%s%s%s, 1 x %llu B, %s", scheme, slash, name, (unsigned long long)a->row_bytes,
		 spin_ns ? "spinning" : "sleeping");
	struct gw_bench_result result = {
		.title = title,
		.unit = "us",
		.values = &values,
		.ceilings = &ceilings,
		.lower_is_better = true,
		.verified = true,
		.fields = {{"p50_us", gw_bench_series_median(&values), NULL},
			   {"p99_us", p99, NULL},
			   {"ceiling_p99_us", bare_p99, NULL}},
		.note = note,
	};
	gw_bench_report(&a->bench, &result);
	return GW_OK;
}

static gw_status run(struct arguments *a)
{
	static const char *const drivers[] = {"epoll", "io_uring", NULL};
	gw_bare_pin(0);
	gw_status status = gw_bench_open(&a->bench);
	a->landing = gw_malloc(a->row_bytes);
	a->microseconds = gw_calloc(a->rounds, sizeof(double));
	if (!status && (!a->landing || !a->microseconds))
		status = GW_NO_MEMORY;
	if (!status)
		status = gw_row_table_make(64u << 20, &a->table);
	for (int i = 0; i < 3 && !status; i++) {
		if (a->transport && strcmp(a->transport, drivers[i] ? drivers[i] : "verbs") != 0)
			continue;
		status = run_case(a, drivers[i], 0);
		if (!status)
			status = run_case(a, drivers[i], 1000 * a->spin_us);
	}
	gw_arena_destroy(a->table);
	gw_free(a->landing);
	gw_free(a->microseconds);
	gw_status closed = gw_bench_close(&a->bench);
	return status ? status : closed;
}

int gw_bench_latency(int argc, char **argv)
{
	static const struct gw_options options = {
		.table = table,
		.common = gw_bench_options,
		.common_offset = offsetof(struct arguments, bench),
		.doc = "Measures the time of one row over TCP beside a bare ping-pong of the same sizes, and over RDMA "
		       "beside a bare read.\v"
		       "Examples:\n  graphwire bench latency\n  graphwire bench latency --row 4096 --json -"};
	struct arguments *a = gw_calloc(1, sizeof(*a));
	if (!a)
		return 1;
	*a = (struct arguments){.bench = {.name = "latency"}, .rounds = 5000, .row_bytes = 400, .spin_us = 100};
	gw_options_parse(&options, argc, argv, a);
	gw_status status = run(a);
	if (status)
		fprintf(stderr, "graphwire bench latency: %s\n", gw_last_error());
	gw_free(a);
	return status ? 1 : 0;
}
