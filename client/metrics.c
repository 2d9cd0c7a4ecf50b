/* The exporter of a process with clients: GRAPHWIRE_METRICS=[ADDR:]PORT.
 *
 *   the first client opens ──► the exporter starts ──► a scrape: the figures of each open client ──► the last one
 * closes
 *
 * Several trainers of a host take ports one after another: a port above 0 plus the trainer's local rank. A port that is
 * taken, such as by the process that forked this one, is a warning: metrics are no reason to stop a training. A forked
 * child has neither the thread nor its sockets. */
#include "client/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/errors/log.h"
#include "core/files/disk.h"
#include "core/memory/alloc.h"
#include "core/system/fork.h"
#include "metrics/exporter.h"

#define CLIENTS_MAX 16 /* that a scrape shows; more are unusual in one process */

struct client_values {
	const char *version, *id, *graph, *rank;
	uint64_t copied_bytes, replica_rows, replica_bytes, ahead_bytes, cached_bytes, kept_rows, kept_bytes, held_hops,
		open;
	struct gw_latency batch_waits;
	struct gw_disk_counts disk;
};

#define AT(field) offsetof(struct client_values, field)
static const struct gw_figure client_figures[] = {
	{"version", "the version of Graphwire", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(version), NULL, 0, 0,
	 "graphwire_client", "version"},
	{"id", "the id that servers show for the client", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(id), NULL, 0, 0,
	 "graphwire_client", "id"},
	{"graph", "the graph's name", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(graph), NULL, 0, 0, "graphwire_client",
	 "graph"},
	{"rank", "the trainer's rank", GW_FIGURE_NUMBER, GW_FIGURE_TEXT, AT(rank), NULL, 0, 0, "graphwire_client",
	 "rank"},
	{"batch_wait", "time that the trainer waited for a mini-batch", GW_FIGURE_SECONDS, GW_FIGURE_HISTOGRAM,
	 AT(batch_waits), NULL, 0, 0, "graphwire_client_batch_wait_seconds", NULL},
	{"copied_bytes", "bytes of rows that were copied from parts in the trainer's memory, mapped or its own",
	 GW_FIGURE_BYTES, GW_FIGURE_COUNTER, AT(copied_bytes), NULL, 0, 0, "graphwire_client_copied_bytes", NULL},
	{"replica_rows", "rows of remote parts that were copied from replicas in mapped parts", GW_FIGURE_COUNT,
	 GW_FIGURE_COUNTER, AT(replica_rows), NULL, 0, 0, "graphwire_client_replica_rows", NULL},
	{"replica_bytes", "bytes of these rows, which no server had to send", GW_FIGURE_BYTES, GW_FIGURE_COUNTER,
	 AT(replica_bytes), NULL, 0, 0, "graphwire_client_replica_bytes", NULL},
	{"held_hops", "hops that drew from lists of other parts in memory of the trainer's host", GW_FIGURE_COUNT,
	 GW_FIGURE_COUNTER, AT(held_hops), NULL, 0, 0, "graphwire_client_held_hops", NULL},
	{"ahead_bytes", "bytes of rows that loaders copied from earlier batches instead of fetching them",
	 GW_FIGURE_BYTES, GW_FIGURE_COUNTER, AT(ahead_bytes), NULL, 0, 0, "graphwire_client_ahead_bytes", NULL},
	{"cached_bytes", "bytes of rows that loaders copied from the rows that they keep for an epoch", GW_FIGURE_BYTES,
	 GW_FIGURE_COUNTER, AT(cached_bytes), NULL, 0, 0, "graphwire_client_cached_bytes", NULL},
	{"kept_rows", "rows that loaders fetched to keep them for an epoch", GW_FIGURE_COUNT, GW_FIGURE_COUNTER,
	 AT(kept_rows), NULL, 0, 0, "graphwire_client_kept_rows", NULL},
	{"kept_bytes", "bytes of these rows", GW_FIGURE_BYTES, GW_FIGURE_COUNTER, AT(kept_bytes), NULL, 0, 0,
	 "graphwire_client_kept_bytes", NULL},
	{"disk_reads", "reads of files whose rows a standalone client leaves on disk", GW_FIGURE_COUNT,
	 GW_FIGURE_COUNTER, AT(disk.reads), NULL, 0, 0, "graphwire_client_disk_reads", NULL},
	{"disk_read_bytes", "bytes that these reads got", GW_FIGURE_BYTES, GW_FIGURE_COUNTER, AT(disk.bytes), NULL, 0,
	 0, "graphwire_client_disk_read_bytes", NULL},
	{"disk_hits", "blocks of these files that were in the cache when rows needed them", GW_FIGURE_COUNT,
	 GW_FIGURE_COUNTER, AT(disk.hits), NULL, 0, 0, "graphwire_client_disk_hits", NULL},
	{"disk_misses", "blocks that were not, and were read", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(disk.misses),
	 NULL, 0, 0, "graphwire_client_disk_misses", NULL},
	{"disk_errors", "blocks that could not be read", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(disk.errors), NULL, 0,
	 0, "graphwire_client_disk_errors", NULL},
	{0},
};
#undef AT

#define AT(field) offsetof(struct gw_link_sums, field)
static const struct gw_figure link_figures[] = {
	{"reads", "reads of a part", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(stats.reads), NULL, 0, 0,
	 "graphwire_client_reads", NULL},
	{"read_bytes", "bytes of these reads", GW_FIGURE_BYTES, GW_FIGURE_COUNTER, AT(stats.read_bytes), NULL, 0, 0,
	 "graphwire_client_read_bytes", NULL},
	{"requests", "requests to a part's server", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(stats.requests), NULL, 0, 0,
	 "graphwire_client_requests", NULL},
	{"sent_bytes", "bytes of these requests", GW_FIGURE_BYTES, GW_FIGURE_COUNTER, AT(stats.sent_bytes), NULL, 0, 0,
	 "graphwire_client_sent_bytes", NULL},
	{"received_bytes", "bytes of their replies", GW_FIGURE_BYTES, GW_FIGURE_COUNTER, AT(stats.received_bytes), NULL,
	 0, 0, "graphwire_client_received_bytes", NULL},
	{"errors", "reads and requests that failed", GW_FIGURE_COUNT, GW_FIGURE_COUNTER, AT(stats.errors), NULL, 0, 0,
	 "graphwire_client_errors", NULL},
	{"wait", "time from a read's or request's begin to its end", GW_FIGURE_SECONDS, GW_FIGURE_HISTOGRAM, AT(waits),
	 NULL, 0, 0, "graphwire_client_operation_seconds", NULL},
	{0},
};
#undef AT

/* The exporter, and the clients that it shows. */
static struct {
	pthread_mutex_t lock;
	struct gw_exporter *exporter;
	struct gw_client *clients[CLIENTS_MAX];
	uint64_t numbers[CLIENTS_MAX]; /* the clients in the order of their opening, from 1 */
	uint64_t last_number;
	uint32_t open; /* clients, those that are not shown too */
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void leave_to_parent(void)
{
	gw_exporter_forget(process.exporter);
	process.exporter = NULL;
	memset(process.clients, 0, sizeof(process.clients));
	process.open = 0;
}

static struct gw_fork_guard metrics_guard = {.lock = &process.lock, .in_child = leave_to_parent};

/* The variable in which torchrun, srun or mpirun writes the number of a trainer; NULL: none. local: on its host. */
static const char *rank_of_launcher(bool local)
{
	static const char *const names[2][4] = {
		{"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"},
		{"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"}};
	for (int i = 0; i < 4; i++) {
		const char *value = getenv(names[local][i]);
		if (value && *value && value[strspn(value, "0123456789")] == '\0' && strlen(value) < 6)
			return value;
	}
	return NULL;
}

/* --- A scrape. --- */

static const char *client_waits_for(void *context)
{
	(void)context;
	return NULL;
}

static void expose_clients(struct gw_exposition *out)
{
	struct client_values values[CLIENTS_MAX];
	struct gw_client_stats stats[CLIENTS_MAX] = {0};
	char labels[CLIENTS_MAX][32];
	const char *at[CLIENTS_MAX];
	uint32_t count = 0;
	const char *rank = rank_of_launcher(false);
	for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
		const struct gw_client *client = process.clients[i];
		if (!client)
			continue;
		values[count] = (struct client_values){.version = GRAPHWIRE_VERSION,
						       .id = stats[count].id,
						       .graph = client->meta->graph_name,
						       .rank = rank ? rank : ""};
		gw_client_sum(client, &stats[count], &values[count].batch_waits);
		values[count].copied_bytes = stats[count].copied_bytes;
		values[count].replica_rows = stats[count].replica_rows;
		values[count].replica_bytes = stats[count].replica_bytes;
		values[count].held_hops = stats[count].held_hops;
		values[count].ahead_bytes = stats[count].ahead_bytes;
		values[count].cached_bytes = stats[count].cached_bytes;
		values[count].kept_rows = stats[count].kept_rows;
		values[count].kept_bytes = stats[count].kept_bytes;
		if (client->disk)
			gw_disk_counts(client->disk, &values[count].disk);
		snprintf(labels[count], sizeof(labels[count]), "client=\"%" PRIu64 "\"", process.numbers[i]);
		at[count] = labels[count];
		count++;
	}
	gw_exposition_figures(out, client_figures, values, sizeof(*values), at, count);
}

static void expose_links(struct gw_exposition *out)
{
	struct gw_vec sums = {0}, labels = {0}, pointers = {0};
	uint32_t count = 0;
	for (uint32_t i = 0; i < CLIENTS_MAX && out->status == GW_OK; i++) {
		const struct gw_client *client = process.clients[i];
		for (uint32_t part = 0; client && part < client->meta->num_parts && out->status == GW_OK; part++) {
			out->status = gw_vec_reserve(&sums, (count + (size_t)GW_SCHEMES) * sizeof(struct gw_link_sums));
			if (out->status == GW_OK)
				out->status = gw_vec_reserve(&labels,
							     (count + (size_t)GW_SCHEMES) * GW_EXPOSITION_LABELS_MAX);
			if (out->status != GW_OK)
				break;
			struct gw_link_sums *rows = (struct gw_link_sums *)sums.data + count;
			const uint32_t found = gw_client_sum_part(client, part, rows);
			for (uint32_t r = 0; r < found; r++, count++) {
				char *text = (char *)labels.data + (size_t)count * GW_EXPOSITION_LABELS_MAX;
				snprintf(text, GW_EXPOSITION_LABELS_MAX, "client=\"%" PRIu64 "\",part=\"%u\"",
					 process.numbers[i], part);
				gw_exposition_label(text, "server", rows[r].stats.server);
				gw_exposition_label(text, "transport", rows[r].stats.transport);
			}
		}
	}
	if (out->status == GW_OK)
		out->status = gw_vec_reserve(&pointers, (count + 1) * sizeof(char *));
	for (uint32_t i = 0; i < count && out->status == GW_OK; i++)
		((const char **)pointers.data)[i] = (const char *)labels.data + (size_t)i * GW_EXPOSITION_LABELS_MAX;
	if (out->status == GW_OK)
		gw_exposition_figures(out, link_figures, sums.data, sizeof(struct gw_link_sums), pointers.data, count);
	gw_vec_free(&sums);
	gw_vec_free(&labels);
	gw_vec_free(&pointers);
}

static void client_expose(void *context, struct gw_exposition *out)
{
	(void)context;
	pthread_mutex_lock(&process.lock);
	expose_clients(out);
	expose_links(out);
	pthread_mutex_unlock(&process.lock);
}

/* --- Beginning and end. --- */

static gw_status metrics_start(const char *wanted, struct gw_address *address)
{
	static const struct gw_exporter_source source = {.expose = client_expose, .waits_for = client_waits_for};
	gw_status status = gw_exporter_address(wanted, address);
	if (status != GW_OK)
		return status;
	const char *rank = rank_of_launcher(true);
	const unsigned long port = address->port + (address->port && rank ? strtoul(rank, NULL, 10) : 0);
	if (port > UINT16_MAX)
		return gw_fail(GW_RANGE, "port %u and the local rank %s: the largest port is %u", address->port, rank,
			       UINT16_MAX);
	address->port = (uint16_t)port;
	return gw_exporter_start(address, &source, &process.exporter);
}

void gw_client_metrics_begin(struct gw_client *client)
{
	const char *wanted = getenv("GRAPHWIRE_METRICS");
	char text[GW_ADDRESS_MAX];
	struct gw_address address;
	if (!wanted || !*wanted)
		return;
	gw_fork_guard(&metrics_guard);
	pthread_mutex_lock(&process.lock);
	client->scraped = true;
	for (uint32_t i = 0, done = 0; i < CLIENTS_MAX && !done; i++) {
		done = !process.clients[i];
		if (!done)
			continue;
		process.clients[i] = client;
		process.numbers[i] = ++process.last_number;
	}
	bool first = process.open++ == 0;
	gw_status status = first ? metrics_start(wanted, &address) : GW_OK;
	pthread_mutex_unlock(&process.lock);
	if (status != GW_OK)
		gw_log(GW_LOG_WARN, "no metrics of this process: GRAPHWIRE_METRICS: %s", gw_last_error());
	else if (first)
		gw_log(GW_LOG_INFO, "metrics at http://%s/metrics", gw_address_text(&address, text));
}

void gw_client_metrics_end(struct gw_client *client)
{
	struct gw_exporter *ended = NULL;
	if (!client->scraped)
		return;
	client->scraped = false;
	pthread_mutex_lock(&process.lock);
	for (uint32_t i = 0; i < CLIENTS_MAX; i++)
		if (process.clients[i] == client)
			process.clients[i] = NULL;
	if (--process.open == 0) {
		ended = process.exporter;
		process.exporter = NULL;
	}
	pthread_mutex_unlock(&process.lock);
	gw_exporter_stop(ended); /* its thread may wait for the lock */
}
