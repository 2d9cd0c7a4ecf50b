/* Opens a client: options -> servers (or parts of this process) -> engines -> connect, catalogs -> one graph ->
 * threads.
 *
 * Each server's catalog names its part; the order of the addresses has no meaning. Every part must be served exactly
 * once, and all servers must serve the same graph id.
 */
#include <sys/random.h>

#include "client/batch/batch.h"
#include "client/batch/edge_columns.h"
#include "client/batch/node_times.h"
#include "client/engine/engine.h"
#include "client/launched.h"
#include "client/link/away.h"
#include "client/link/catalog.h"
#include "client/link/link.h"
#include "client/metrics.h"
#include "client/queries/neighbours.h"
#include "client/rows/buffer.h"
#include "client/rows/gather_call.h"
#include "client/rows/rows_write.h"
#include "client/rows/tensor_handles.h"
#include "client/rows/tensors.h"
#include "client/standalone.h"
#include "client/state/client.h"
#include "client/tensors/leases.h"
#include "core/errors/log.h"
#include "core/errors/options.h"
#include "core/files/disk.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "core/system/limits.h"
#include "core/system/parallel.h"
#include "core/system/stdio.h"
#include "core/system/trace.h"

#define ENGINES_MAX     64
#define SPIN_US_MAX     1000000u
#define IDLE_MS_MAX     ((int64_t)INT32_MAX * 1000)
#define QUEUE_PAIRS_MAX 8u
#define ENGINE_FILES    11u /* that an engine opens besides its connections */

static gw_status parse_servers(struct gw_client *client, const struct gw_client_options *options)
{
	client->servers = gw_calloc(options->server_count, sizeof(*client->servers));
	if (!client->servers)
		return GW_NO_MEMORY;
	client->server_count = options->server_count;
	for (uint32_t i = 0; i < options->server_count; i++) {
		struct gw_remote *server = &client->servers[i];
		server->client = client;
		gw_status status = gw_address_parse(options->servers[i], &server->address);
		if (status == GW_OK)
			gw_address_text(&server->address, server->text);
		if (status == GW_OK && options->key_file)
			status = gw_key_read(options->key_file, server->key, &server->key_bytes);
		if (status != GW_OK)
			return status;
	}
	return GW_OK;
}

/* Whether the failure lasts, however long the client waits for the server. */
static bool is_lasting(const struct gw_link *link)
{
	return link->failure == GW_REFUSED || link->failure == GW_NO_MEMORY || link->failure == GW_PROTOCOL ||
	       link->failure == GW_NOT_FOUND;
}

/* Retries a server that does not answer yet until the deadline. */
static gw_status connect_all(struct gw_client *client)
{
	struct gw_engine *engine = &client->engines[0];
	uint64_t deadline = gw_deadline_ns(client->timeout_ms);
	for (uint32_t i = 0; i < client->server_count; i++)
		gw_link_open(&engine->links[i]);
	for (;;) {
		uint64_t now = gw_now_ns(), until = deadline;
		const struct gw_link *waiting = NULL;
		for (uint32_t i = 0; i < client->server_count; i++) {
			struct gw_link *link = &engine->links[i];
			if (link->state == GW_LINK_DOWN || (link->state == GW_LINK_WAITING && is_lasting(link)))
				return gw_fail_text(link->failure, link->reason);
			if (link->state == GW_LINK_WAITING && now >= link->retry_ns)
				gw_link_open(link);
			if (link->state == GW_LINK_WAITING && link->retry_ns < until)
				until = link->retry_ns;
			if (link->state == GW_LINK_OPEN)
				continue;
			if (now < deadline)
				gw_link_log_away(link, now, client->timeout_ms);
			waiting = link;
		}
		if (!waiting)
			return GW_OK;
		if (now >= deadline) {
			if (!waiting->failure)
				return gw_fail(GW_DEADLINE, "server %s:%u does not answer",
					       waiting->server->address.host, waiting->server->address.port);
			return gw_fail(waiting->failure, "%s; tried %u times", waiting->reason, waiting->attempts);
		}
		gw_engine_run_once(engine, until);
	}
}

/* The server whose lists of other parts are in mapped memory: every engine connects to it now, so that the first
 * batches need no other server. If that fails, the engine connects again when it needs the server. The engine of short
 * calls connects to all servers before it is used. */
static void connect_to_lists(struct gw_client *client)
{
	const struct gw_link *first = client->engines[0].lists_link;
	uint64_t deadline = gw_deadline_ns(client->timeout_ms);
	for (uint32_t i = 1; first && i < client->engine_count; i++) {
		struct gw_engine *engine = &client->engines[i];
		struct gw_link *link = &engine->links[first - client->engines[0].links];
		gw_link_open(link);
		while (link->state != GW_LINK_OPEN && link->state != GW_LINK_WAITING && link->state != GW_LINK_DOWN &&
		       gw_now_ns() < deadline)
			gw_engine_run_once(engine, deadline);
	}
}

/* Whether replicas, or lists of other parts, may save the client requests, which it then reports. */
static bool may_be_saved(const struct gw_client *client)
{
	bool may = client->engines[0].lists_link;
	for (uint32_t t = 0; t < client->tensor_count && !may; t++)
		may = client->tensors[t].rows.near;
	return may;
}

/* While the client opened, it needed all connections at once. From now on each is closed when it is idle for long. */
static void close_idle_links(struct gw_client *client, int64_t idle_ms)
{
	struct gw_engine *engine = &client->engines[0];
	if (idle_ms <= 0)
		return;
	client->idle_ns = (uint64_t)idle_ms * GW_NS_PER_MS;
	atomic_store(&engine->watches, true);
	for (uint32_t i = 0; i < client->server_count; i++)
		gw_link_tick_soon(&engine->links[i]);
}

/* Without a text: the first choice. */
static gw_status open_choose(const char *what, const char *text, const char *const *choices, int *out)
{
	*out = 0;
	gw_status status = text ? gw_parse_choice(text, choices, out) : GW_OK;
	return status == GW_OK ? status : gw_context(status, "%s", what);
}

static gw_status open_take_options(struct gw_client *client, const struct gw_client_options *options)
{
	static const char *const modes[] = {"auto", "reads", "requests", NULL};
	static const char *const orders[] = {"auto", "always", "never", NULL};
	int choice = 0;
	client->timeout_ms = options->timeout_ms ? options->timeout_ms : 30000;
	client->reconnect_ms = options->reconnect_ms ? options->reconnect_ms : 300000;
	client->dense_bytes_max = options->dense_bytes_max ? options->dense_bytes_max : 256ull << 20;
	client->tcp_driver = options->tcp_driver;
	client->insecure = options->insecure;
	client->memory = options->memory;
	if (!client->memory.acquire != !client->memory.release)
		return gw_fail(GW_INVALID, "memory has %s without %s: give both, or none",
			       client->memory.acquire ? "acquire" : "release",
			       client->memory.acquire ? "release" : "acquire");
	if (options->spin_us > SPIN_US_MAX)
		return gw_fail(GW_RANGE, "spin_us = %u: at most %u", options->spin_us, SPIN_US_MAX);
	client->spin_ns = options->spin_us * 1000ull;
	if (options->idle_ms > IDLE_MS_MAX)
		return gw_fail(GW_RANGE, "idle_ms = %lld: at most %lld", (long long)options->idle_ms,
			       (long long)IDLE_MS_MAX);
	if (options->queue_pairs > QUEUE_PAIRS_MAX)
		return gw_fail(GW_RANGE, "queue_pairs = %u: at most %u", options->queue_pairs, QUEUE_PAIRS_MAX);
	client->queue_pairs = options->queue_pairs;
	uint32_t processors = gw_processors();
	client->engine_count = processors < ENGINES_MAX ? processors : ENGINES_MAX;
	if (options->threads > ENGINES_MAX)
		return gw_fail(GW_RANGE, "threads = %u: at most %u", options->threads, ENGINES_MAX);
	if (options->threads)
		client->engine_count = options->threads;
	gw_status status = open_choose("neighbours", options->neighbours, modes, &choice);
	client->neighbours = (enum gw_neighbour_mode)choice;
	if (status == GW_OK)
		status = open_choose("order", options->order, orders, &choice);
	client->order = (enum gw_gather_order)choice;
	if (status == GW_OK)
		status = open_choose("transport", options->transport, gw_scheme_choices, &choice);
	if (status != GW_OK)
		return status;
	client->transport = gw_scheme_find(gw_scheme_choices[choice]);
	if (options->server_count > 0 && (options->on_disk_count || options->disk_cache))
		return gw_fail(GW_INVALID,
			       "on_disk and disk_cache are for a standalone client: with servers, give them "
			       "--on-disk and --disk-cache");
	if (options->disk_cache && !options->on_disk_count)
		return gw_fail(GW_INVALID, "disk_cache without on_disk: name what stays on disk");
	if (options->disk_cache && options->disk_cache < GW_DISK_CACHE_MIN)
		return gw_fail(GW_INVALID, "disk_cache of %llu bytes: it has at least 1 MiB",
			       (unsigned long long)options->disk_cache);
	if (options->on_disk_count && !options->on_disk)
		return gw_fail(GW_INVALID, "%u features in on_disk, and no names", options->on_disk_count);
	if (client->neighbours == GW_NEIGHBOURS_REQUESTS && options->server_count == 0 && !client->lists_only)
		return gw_fail(GW_INVALID,
			       "neighbours = \"requests\" needs servers: a standalone client has its lists in memory");
	if (options->server_count > GW_PARTS_MAX || (options->server_count && !options->servers))
		return gw_fail(GW_INVALID, "%u servers: at most %u, one for each part", options->server_count,
			       GW_PARTS_MAX);
	if (getrandom(client->uuid, sizeof(client->uuid), 0) != sizeof(client->uuid))
		return gw_fail(GW_IO, "the kernel gives no random bytes");
	return gw_client_choose_job(client, options->job);
}

/* An engine connects to a server when it first reads from the server. So a low limit would show in the middle of an
 * epoch. */
static void warn_of_few_files(const struct gw_client *client)
{
	char fix[GW_LIMIT_FIX_MAX];
	uint64_t needed = client->engine_count * (ENGINE_FILES + (uint64_t)client->server_count);
	uint64_t limit = gw_process_limit(GW_PROCESS_FILES);
	if (!client->standalone && needed > limit)
		gw_log(GW_LOG_WARN,
		       "%u servers and %u threads need %llu open files, and the limit of this process is %llu: "
		       "%s, or open the client with fewer threads",
		       client->server_count, client->engine_count, (unsigned long long)needed,
		       (unsigned long long)limit, gw_process_fix_own(GW_PROCESS_FILES, needed, fix));
}

static gw_status open_engines(struct gw_client *client)
{
	client->engines = gw_calloc(client->engine_count + 1, sizeof(*client->engines));
	client->unused = gw_calloc(client->engine_count + 1, sizeof(*client->unused));
	if (!client->engines || !client->unused)
		return GW_NO_MEMORY;
	gw_status status = GW_OK;
	for (uint32_t i = 0; i <= client->engine_count && status == GW_OK; i++)
		status = gw_engine_open(&client->engines[i], client, i);
	return status;
}

static gw_status open_steps(struct gw_client *client, const struct gw_client_options *options)
{
	gw_status status = open_take_options(client, options);
	if (status == GW_OK && options->part_config)
		status = gw_meta_read(options->part_config, &client->own_meta);
	if (status != GW_OK)
		return status;
	if (options->server_count > 0)
		status = parse_servers(client, options);
	else
		status = gw_standalone_open(client, options);
	if (status == GW_OK) {
		warn_of_few_files(client);
		status = open_engines(client);
	}
	client->tcp_driver = NULL; /* it points to the caller's memory; only the opening of engines reads it */
	if (status == GW_OK)
		status = connect_all(client);
	if (status == GW_OK)
		close_idle_links(client, options->idle_ms);
	if (status == GW_OK)
		status = gw_remotes_check(client);
	if (status == GW_OK)
		status = gw_info_build(client);
	if (status == GW_OK)
		status = gw_tensors_build(client);
	if (status == GW_OK)
		status = gw_tensor_handles_create(client->meta->num_parts, &client->handles);
	if (status == GW_OK)
		status = gw_row_lanes_create(client, &client->lanes);
	if (status == GW_OK)
		status = gw_tensor_leases_create(client, &client->leases);
	for (uint32_t i = 0; i <= client->engine_count && status == GW_OK; i++)
		gw_engine_map_parts(&client->engines[i]);
	if (status == GW_OK)
		connect_to_lists(client);
	for (uint32_t i = 0; i < client->engine_count && status == GW_OK; i++)
		status = gw_engine_start_thread(&client->engines[i]);
	/* Tensors of a standalone client belong only to this process and end with it. */
	if (status == GW_OK && !client->local_group && (client->shares_job || may_be_saved(client)))
		status = gw_tensor_leases_begin(client, client->shares_job, 0);
	return status;
}

/* Options that name neither a graph nor servers use the values of the launcher. */
static gw_status open_any(struct gw_client *client, const struct gw_client_options *options)
{
	if (options->part_config || options->server_count > 0)
		return open_steps(client, options);
	struct gw_client_options filled = *options;
	struct gw_launched launched;
	gw_status status = gw_launched_read(&launched);
	gw_launched_fill(&launched, &filled);
	status = status != GW_OK ? gw_context(status, "neither a part config nor a server is given, and")
				 : open_steps(client, &filled);
	gw_launched_free(&launched);
	return status;
}

static gw_status client_open(const struct gw_client_options *options, bool lists_only, struct gw_client **out)
{
	*out = NULL;
	struct gw_client *client = gw_calloc(1, sizeof(*client));
	if (!client)
		return GW_NO_MEMORY;
	gw_stdio_hold();
	gw_status status = gw_clock_attend();
	if (status != GW_OK) {
		gw_free(client);
		return status;
	}
	client->lists_only = lists_only;
	gw_client_note_process(client);
	gw_trace_open();
	pthread_mutex_init(&client->batches_lock, NULL);
	pthread_mutex_init(&client->lookups_lock, NULL);
	pthread_mutex_init(&client->short_lock, NULL);
	status = open_any(client, options);
	if (status != GW_OK) {
		gw_client_close(client);
		return status;
	}
	gw_client_metrics_begin(client);
	*out = client;
	return GW_OK;
}

gw_status gw_client_open(const struct gw_client_options *options, struct gw_client **out)
{
	return client_open(options, false, out);
}

gw_status gw_client_open_lists(const struct gw_client_options *options, struct gw_client **out)
{
	return client_open(options, true, out);
}

void gw_client_close(struct gw_client *client)
{
	struct gw_error_kept kept;
	/* In a forked child, the connections belong to the parent: the child leaks its copy of the client. */
	if (!client || gw_client_is_inherited(client))
		return;
	gw_error_keep(&kept);
	gw_client_metrics_end(client);
	gw_tensor_leases_destroy(client->leases);
	for (uint32_t i = 0; client->engines && i <= client->engine_count; i++)
		gw_engine_stop_thread(&client->engines[i]);
	gw_batches_free(client);
	gw_neighbours_free(client);
	gw_calls_free(client);
	gw_buffers_free(client);
	for (uint32_t i = 0; client->engines && i <= client->engine_count; i++) {
		if (client->engines[i].group)
			gw_engine_close(&client->engines[i]);
	}
	gw_free(client->engines);
	gw_free(client->unused);
	gw_tensors_free(client);
	gw_edge_columns_free(client);
	gw_node_times_free(client);
	gw_row_lanes_destroy(client->lanes);
	gw_tensor_handles_destroy(client->handles);
	gw_standalone_close(client);
	for (uint32_t i = 0; i < client->server_count; i++)
		gw_catalog_free(&client->servers[i].catalog);
	gw_free(client->parts);
	gw_free(client->servers);
	gw_info_free(client);
	gw_meta_destroy(client->own_meta);
	pthread_mutex_destroy(&client->batches_lock);
	pthread_mutex_destroy(&client->lookups_lock);
	pthread_mutex_destroy(&client->short_lock);
	gw_free(client->short_connect);
	gw_free(client);
	gw_clock_leave();
	gw_error_restore(&kept);
}

gw_status gw_part_config_check(const char *part_config)
{
	struct gw_graph_meta *meta;
	gw_status status = gw_meta_read(part_config, &meta);
	gw_meta_destroy(meta);
	return status;
}
