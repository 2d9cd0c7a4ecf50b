/* graphwire bench connections: the memory that a server uses for each connection over TCP.
 *
 *   a server in a child process -> N connections, and a gather over each -> PSS of the child, before and after
 *
 * The floor of the same run is a server whose connections have read nothing: a server that keeps no buffers for idle
 * connections needs little more once they have read. Rows are compared with the table.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/row_bed.h"
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "core/system/clock.h"

#define CONNECTIONS_MAX 1024u /* a service's default limit */
#define TABLE_BYTES     (64ull << 20)
#define ROWS_MAX        100000u
#define SPARE_FILES     64u

struct connections_arguments {
	struct gw_bench bench;
	uint64_t count, rows, row_bytes;
	/* in use while the benchmark runs */
	const char *driver;
	struct gw_poll_group *group;
	struct gw_buffer *buffer;
	uint8_t *landing;
	uint64_t *remote;
	struct gw_endpoint *endpoints[CONNECTIONS_MAX];
};

#define A struct connections_arguments
static const struct gw_option table[] = {
	{"connections", "N", "connections (1,024)", 0, GW_OPTION_NUMBER(A, count, 1, CONNECTIONS_MAX)},
	{"rows", "N", "rows that each connection gathers (4,000)", 0, GW_OPTION_NUMBER(A, rows, 1, ROWS_MAX)},
	{"row", "BYTES", "bytes of a row (256)", 0, GW_OPTION_NUMBER(A, row_bytes, 8, 64 << 10)},
	{0},
};
#undef A

/* ---- the server ---- */

struct served {
	pid_t pid;
	int port_from, end_to; /* ends of pipes; the child serves until end_to is closed */
	uint16_t port;
};

/* In the child. */
static void connections_serve(const char *driver, int port_to, int end_from)
{
	static struct gw_row_bed bed;
	const struct gw_poll_group_options options = {.tcp_driver = driver};
	struct gw_arena *arena;
	uint16_t port = 0;
	char end;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	gw_status status = gw_row_table_make(TABLE_BYTES, &arena);
	if (status == GW_OK)
		status = gw_row_bed_begin(&bed, arena, TABLE_BYTES, NULL, "tcp", &options, 1);
	if (status == GW_OK)
		port = bed.listener->address.port;
	if (write(port_to, &port, sizeof(port)) == (ssize_t)sizeof(port))
		(void)!read(end_from, &end, 1);
	_exit(0);
}

static gw_status served_begin(struct served *served, const char *driver)
{
	int port[2], end[2];
	if (pipe(port) != 0 || pipe(end) != 0)
		return gw_fail_errno(GW_IO, errno, "pipe");
	served->pid = fork();
	if (served->pid == 0) {
		close(end[1]);
		connections_serve(driver, port[1], end[0]);
	}
	close(port[1]);
	close(end[0]);
	served->port_from = port[0];
	served->end_to = end[1];
	if (served->pid < 0)
		return gw_fail_errno(GW_IO, errno, "fork");
	if (read(served->port_from, &served->port, sizeof(served->port)) != (ssize_t)sizeof(served->port) ||
	    !served->port)
		return gw_fail(GW_IO, "the server in the child process did not start");
	return GW_OK;
}

static void served_end(struct served *served)
{
	close(served->port_from);
	close(served->end_to);
	if (served->pid > 0)
		waitpid(served->pid, NULL, 0);
}

static gw_status served_pss(const struct served *served, double *bytes)
{
	char path[64], line[256];
	unsigned long long kib = 0;
	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)served->pid);
	FILE *file = fopen(path, "r");
	if (!file)
		return gw_fail_errno(GW_IO, errno, "%s", path);
	while (!kib && fgets(line, sizeof(line), file))
		if (sscanf(line, "Pss: %llu", &kib) != 1)
			kib = 0;
	fclose(file);
	*bytes = (double)kib * 1024;
	return kib ? GW_OK : gw_fail(GW_IO, "%s has no Pss", path);
}

/* ---- the clients ---- */

static gw_status connections_await(const struct connections_arguments *a, const void *cookie)
{
	struct gw_completion completion = {0};
	while (gw_poll_group_poll(a->group, &completion, 1, GW_NS_PER_SECOND) == 0)
		;
	if (completion.cookie != cookie)
		return gw_fail(GW_PROTOCOL, "a completion of another call");
	return completion.status ? gw_fail_text(completion.status, completion.text) : GW_OK;
}

static gw_status connections_open(struct connections_arguments *a, const struct served *served)
{
	struct gw_connect_options connect = {.address = {.scheme = "tcp", .host = "127.0.0.1", .port = served->port},
					     .graph_id = 1,
					     .deadline_ns = gw_now_ns() + 60 * GW_NS_PER_SECOND};
	gw_status status = GW_OK;
	for (uint64_t i = 0; i < a->count && status == GW_OK; i++) {
		status = gw_endpoint_connect(a->group, &connect, &a->endpoints[i], &a->endpoints[i]);
		if (status == GW_OK)
			status = connections_await(a, &a->endpoints[i]);
	}
	return status;
}

static gw_status connections_check(const struct connections_arguments *a)
{
	for (uint64_t i = 0; i < a->rows; i++) {
		uint64_t got, at = a->remote[i];
		memcpy(&got, a->landing + i * a->row_bytes, sizeof(got));
		if (got != gw_mix64(at / 8))
			return gw_fail(GW_DIGEST, "row %llu differs from the table", (unsigned long long)i);
	}
	return GW_OK;
}

static gw_status connections_gather(struct connections_arguments *a)
{
	const struct gw_gather gather = {
		.remote = a->remote, .row_bytes = (uint32_t)a->row_bytes, .stride = (uint32_t)a->row_bytes};
	gw_status status = GW_OK;
	for (uint64_t i = 0; i < a->count && status == GW_OK; i++) {
		struct gw_endpoint *endpoint = a->endpoints[i];
		struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
		for (uint64_t row = 0; row < a->rows; row++)
			a->remote[row] = gw_mix64(i << 32 | row) % ((TABLE_BYTES - a->row_bytes) / 8) * 8;
		memset(a->landing, 0, a->rows * a->row_bytes);
		if (gw_endpoint_gather(endpoint, &set, &endpoint->peer.regions[0], a->buffer, &gather, a->rows, true) !=
		    a->rows)
			return gw_fail(GW_LIMIT, "an endpoint takes fewer than %llu rows at once",
				       (unsigned long long)a->rows);
		status = connections_await(a, &set);
		if (status == GW_OK)
			status = connections_check(a);
	}
	return status;
}

/* KiB of the server for each connection. */
static gw_status connections_measure(struct connections_arguments *a, bool gathers, double *figure)
{
	struct served served = {.pid = -1};
	const struct gw_poll_group_options options = {.tcp_driver = "epoll"};
	double before = 0, after = 0;
	uint64_t bytes = a->rows * a->row_bytes;
	gw_status status = served_begin(&served, a->driver);
	if (status == GW_OK)
		status = gw_poll_group_create(&options, &a->group);
	if (status == GW_OK)
		status = gw_buffer_register(a->group, a->landing, bytes, &a->buffer);
	if (status == GW_OK)
		status = served_pss(&served, &before);
	if (status == GW_OK)
		status = connections_open(a, &served);
	if (status == GW_OK && gathers)
		status = connections_gather(a);
	if (status == GW_OK)
		status = served_pss(&served, &after);
	for (uint64_t i = 0; i < a->count; i++) {
		gw_endpoint_close(a->endpoints[i]);
		a->endpoints[i] = NULL;
	}
	gw_buffer_release(a->buffer);
	gw_poll_group_destroy(a->group);
	a->buffer = NULL;
	a->group = NULL;
	served_end(&served);
	*figure = (after - before) / 1024 / (double)a->count;
	return status;
}

static gw_status measure_used(void *context, double *figure)
{
	return connections_measure(context, true, figure);
}

static gw_status measure_unused(void *context, double *figure)
{
	return connections_measure(context, false, figure);
}

/* ---- the benchmark ---- */

static gw_status connections_case(struct connections_arguments *a, const char *driver)
{
	static struct gw_bench_series floors, values;
	char title[96], note[160];
	floors.count = values.count = 0;
	a->driver = driver;
	gw_status status = gw_bench_alternate(&a->bench, measure_unused, measure_used, a, &floors, &values);
	if (status != GW_OK)
		return status;
	double value = gw_bench_series_median(&values);
	snprintf(title, sizeof(title), "%llu connections, %llu rows of %llu B each, %s", (unsigned long long)a->count,
		 (unsigned long long)a->rows, (unsigned long long)a->row_bytes, driver);
	snprintf(note, sizeof(note), "%.1f MB in all; the ceiling is a connection that has read nothing",
		 value * 1024 * (double)a->count / 1e6);
	const struct gw_bench_result result = {
		.title = title,
		.unit = "KiB",
		.values = &values,
		.ceilings = &floors,
		.lower_is_better = true,
		.verified = true,
		.note = note,
		.fields = {{"connections", (double)a->count, NULL}, {"tcp_driver", 0, driver}},
	};
	gw_bench_report(&a->bench, &result);
	return GW_OK;
}

static gw_status connections_run(struct connections_arguments *a)
{
	struct rlimit files;
	gw_status status = gw_bench_open(&a->bench);
	if (status != GW_OK)
		return status;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	a->landing = gw_malloc(a->rows * a->row_bytes);
	a->remote = gw_calloc(a->rows, sizeof(*a->remote));
	if (!a->landing || !a->remote)
		status = GW_NO_MEMORY;
	if (status == GW_OK && files.rlim_cur < a->count + SPARE_FILES)
		gw_bench_missing(&a->bench, "connections", "too few open files are allowed (ulimit -n)");
	else if (status == GW_OK)
		status = connections_case(a, "epoll");
	if (status == GW_OK && files.rlim_cur >= a->count + SPARE_FILES) {
		status = connections_case(a, "io_uring");
		if (status == GW_UNSUPPORTED || status == GW_IO) {
			gw_bench_missing(&a->bench, "connections over io_uring", gw_last_error());
			status = GW_OK;
		}
	}
	gw_free(a->remote);
	gw_free(a->landing);
	gw_status closed = gw_bench_close(&a->bench);
	return status != GW_OK ? status : closed;
}

int gw_bench_connections(int argc, char **argv)
{
	static const struct gw_options options = {
		.table = table,
		.common = gw_bench_options,
		.common_offset = offsetof(struct connections_arguments, bench),
		.doc = "Measures the memory that a server uses for each connection over TCP that has gathered rows, "
		       "against a connection that has read nothing.\vExamples:\n  graphwire bench connections\n"
		       "  graphwire bench connections --connections 256 --json -"};
	static struct connections_arguments a;
	a = (struct connections_arguments){
		.bench = {.name = "connections"}, .count = CONNECTIONS_MAX, .rows = 4000, .row_bytes = 256};
	gw_options_parse(&options, argc, argv, &a);
	gw_status status = connections_run(&a);
	return gw_exit_status("graphwire bench connections", status);
}
