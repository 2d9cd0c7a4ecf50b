/* The life of a server: read the JSON -> reserve the port -> find the key -> guard the part -> answer scrapers -> load
 * -> publish -> listen -> serve -> drain.
 *
 * Steps that can fail cheaply come first. So a taken port, or a part that is already served, is reported before hours
 * of loading. The port stays reserved while the part loads; clients that connect meanwhile are refused. Each thread
 * polls one group. The listeners assign connections to the groups in turn.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/errors/log.h"
#include "core/errors/units.h"
#include "core/graph/part_lists.h"
#include "core/graph/replicas.h"
#include "core/memory/alloc.h"
#include "core/memory/memory.h"
#include "core/system/clock.h"
#include "core/system/processors.h"
#include "core/system/thread.h"
#include "metrics/exporter.h"
#include "protocol/catalog.h"
#include "sampler/picks.h"
#include "server/footprint.h"
#include "server/handover.h"
#include "server/leftover_memory.h"
#include "server/lists.h"
#include "server/server.h"
#include "tensors/features.h"

#define POLL_NS         (100 * GW_NS_PER_MS)
#define DRAIN_STEP_NS   (2 * GW_NS_PER_MS)
#define LINGER_STEP_NS  (20 * GW_NS_PER_MS)
#define LINGER_NS       (2000 * GW_NS_PER_MS)
#define TENSOR_LEASE_MS 300000u

/* Finds the address for clients, in numbers: a host may know its own name as a loopback address (Debian writes
 * 127.0.1.1 into /etc/hosts), which no other host can reach. */
static gw_status name_address(struct gw_server *server)
{
	const char *host = server->options.listen.host;
	gw_status status = gw_port_bound(server->reservation, &server->bound);
	if (status == GW_OK && gw_address_is_loopback(&server->bound) &&
	    !gw_address_is_loopback(&server->options.listen))
		gw_log(GW_LOG_WARN,
		       "%s is %s on this host: clients on other hosts cannot connect; "
		       "correct the line of %s in /etc/hosts, or listen on an address of this host",
		       host, server->bound.host, host);
	return status;
}

/* The kernel closes the sockets of a killed process a little after the process ends. So a user who restarts a server at
 * once may find its port still taken. */
static gw_status reserve_port(struct gw_server *server)
{
	struct gw_address *address = &server->options.listen;
	uint64_t give_up = gw_now_ns() + LINGER_NS;
	gw_status status;
	while ((status = gw_port_reserve(address, &server->reservation)) == GW_BUSY && gw_now_ns() < give_up) {
		struct timespec step = {.tv_nsec = LINGER_STEP_NS};
		nanosleep(&step, NULL);
	}
	if (status == GW_OK)
		return name_address(server);
	if (status != GW_BUSY)
		return status;
	/* The kernel reports which process listens on a port, but not which process has reserved it. */
	char error[GW_ERROR_TEXT_MAX], holder[GW_ADDRESS_MAX + 64], text[GW_ADDRESS_MAX];
	snprintf(error, sizeof(error), "%s", gw_last_error());
	if (gw_server_find_holder(address->port, holder, sizeof(holder)))
		return gw_fail(GW_BUSY, "listen on %s: the port is taken by another server, %s; choose another",
			       gw_address_text(address, text), holder);
	return gw_fail_text(GW_BUSY, error);
}

/* Runs before the part is loaded, so that a missing key is reported early. */
static gw_status find_key(struct gw_server *server)
{
	if (server->options.insecure)
		return GW_OK;
	if (server->options.key_file)
		return gw_key_read(server->options.key_file, server->key, &server->key_bytes);
	if (gw_address_is_loopback(&server->options.listen))
		return GW_OK; /* leave_key makes the key after the load, so that an aborted load leaves no key behind */
	return gw_fail(GW_INVALID,
		       "address %s is not loopback: give --key-file FILE (the same on all clients and servers), "
		       "or --insecure to let every client read",
		       server->options.listen.host);
}

/* Writes the key to the runtime folder. The file's name contains the port, which this server owns. So an older file of
 * that name belongs to a server that has ended; it would mislead clients. */
static gw_status leave_key(struct gw_server *server)
{
	if (server->options.insecure || server->options.key_file) {
		if (!server->taker)
			gw_key_remove(server->options.listen.port);
		return GW_OK;
	}
	/* The key of the running server stays that server's until this one serves. */
	server->key_bytes = GW_KEY_BYTES;
	if (server->taker && gw_key_find(server->options.listen.port, server->key) == GW_OK)
		return GW_OK;
	gw_status status = gw_key_make(server->options.listen.port, server->key);
	server->has_key = status == GW_OK;
	return status;
}

/* --- Mutable features. --- */

static bool is_mutable(const struct gw_server *server, const char *key)
{
	const struct gw_server_options *options = &server->options;
	uint32_t i = 0;
	while (i < options->mutable_count && !gw_feature_is_meant(server->meta, key, options->mutable_features[i]))
		i++;
	return i < options->mutable_count;
}

static struct gw_disk_words on_disk_words(const struct gw_server_options *options)
{
	return (struct gw_disk_words){options->on_disk_features, options->on_disk_count};
}

static enum gw_array_apart array_apart(const void *context, const char *key)
{
	const struct gw_server *server = context;
	const struct gw_server_options *options = &server->options;
	const struct gw_disk_words words = on_disk_words(options);
	char feature[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 16];
	if (is_mutable(server, key))
		return GW_ARRAY_CHANGES;
	if (gw_name_ends_in(key, GW_REPLICA_TAIL)) { /* rows that change have no replicas */
		snprintf(feature, sizeof(feature), "%.*s", (int)(strlen(key) - strlen(GW_REPLICA_TAIL)), key);
		return is_mutable(server, feature) ? GW_ARRAY_LEFT_OUT : GW_ARRAY_HERE;
	}
	return gw_disk_words_mean(&words, server->meta, key) ? GW_ARRAY_ON_DISK : GW_ARRAY_HERE;
}

/* Runs before the part is loaded. */
static gw_status check_on_disk(const struct gw_server *server)
{
	const struct gw_server_options *options = &server->options;
	const struct gw_disk_words words = on_disk_words(options);
	const struct gw_part_meta *part = &server->meta->parts[options->part];
	gw_status status = gw_disk_words_check(&words, server->meta, options->part, "--on-disk");
	for (uint32_t a = 0; a < part->count && status == GW_OK; a++) {
		const char *key = part->arrays[a].key;
		if (is_mutable(server, key) && gw_disk_words_mean(&words, server->meta, key))
			status = gw_fail(GW_INVALID,
					 "\"%s\": --mutable and --on-disk exclude each other: leave out one", key);
	}
	if (status == GW_OK && options->disk_cache && !options->on_disk_count)
		status = gw_fail(GW_INVALID, "--disk-cache without --on-disk: name what stays on disk");
	const char *of_lists = gw_disk_words_of_lists(&words);
	if (status == GW_OK && options->lists == GW_SERVER_LISTS_ALL && of_lists)
		status =
			gw_fail(GW_INVALID, "--lists all and --on-disk %s exclude each other: leave out one", of_lists);
	return status;
}

/* Runs before the part is loaded: checks that each given name means features that can change. */
static gw_status check_mutable(const struct gw_server *server)
{
	const struct gw_part_meta *part = &server->meta->parts[server->options.part];
	struct gw_tensor_plan plan;
	for (uint32_t i = 0; i < server->options.mutable_count; i++) {
		const char *word = server->options.mutable_features[i];
		bool found = false;
		for (uint32_t a = 0; a < part->count; a++) {
			if (!gw_feature_is_meant(server->meta, part->arrays[a].key, word))
				continue;
			gw_status status = gw_feature_plan(server->meta, &part->arrays[a], &plan);
			if (status != GW_OK)
				return gw_context(status, "--mutable %.80s", word);
			found = true;
		}
		if (!found)
			return gw_fail(GW_NOT_FOUND,
				       "--mutable %.80s: %s has no such feature (graphwire inspect lists them)", word,
				       server->options.part_config);
	}
	return GW_OK;
}

static gw_status load_mutable(struct gw_server *server)
{
	const struct gw_part_meta *part = &server->meta->parts[server->options.part];
	gw_status status = GW_OK;
	for (uint32_t a = 0; a < part->count && status == GW_OK; a++) {
		if (is_mutable(server, part->arrays[a].key))
			status = gw_feature_load(server->tensors, &part->arrays[a]);
	}
	return status;
}

/* Mutable rows have trailers; rows on disk take no memory but the cache. */
static uint64_t loaded_bytes(const struct gw_server *server, const struct gw_array_meta *array)
{
	struct gw_row_format format;
	enum gw_array_apart apart = array_apart(server, array->key);
	if (apart == GW_ARRAY_ON_DISK || apart == GW_ARRAY_LEFT_OUT)
		return 0;
	uint64_t bytes = gw_array_meta_bytes(array), rows = array->ndim ? array->shape[0] : 0;
	if (rows && apart == GW_ARRAY_CHANGES)
		gw_row_store_measure(array->dtype, rows, gw_array_meta_row_bytes(array) / gw_dtype_bytes(array->dtype),
				     &format, &bytes);
	return (bytes + GW_ARENA_ALIGN - 1) / GW_ARENA_ALIGN * GW_ARENA_ALIGN;
}

static uint64_t disk_cache_bytes(const struct gw_server_options *options)
{
	if (!options->on_disk_count)
		return 0;
	return options->disk_cache ? options->disk_cache : GW_DISK_CACHE_DEFAULT;
}

/* Refuses to start if the arrays fit, but not the rest of the server: the kernel would end it when clients connect. */
static gw_status check_memory(const struct gw_server *server, uint64_t lists_bytes)
{
	const struct gw_part_meta *part = &server->meta->parts[server->options.part];
	struct gw_server_plan plan = {.threads = server->options.threads,
				      .connections = server->options.connections,
				      .node = server->options.numa >= 0 ? server->options.numa : -1,
				      .no_pool = server->options.huge == GW_HUGE_OFF};
	struct gw_server_room room, without_cache;
	char what[GW_ERROR_TEXT_MAX / 4], size[GW_UNIT_TEXT_MAX], lists[GW_UNIT_TEXT_MAX + 32] = "";
	plan.array_bytes = lists_bytes;
	for (uint32_t a = 0; a < part->count; a++)
		plan.array_bytes += loaded_bytes(server, &part->arrays[a]);
	const uint64_t cache = disk_cache_bytes(&server->options);
	plan.array_bytes += cache;
	if (gw_server_room_read("", &plan, &room))
		return GW_OK;
	if (lists_bytes)
		snprintf(lists, sizeof(lists), " (%s in lists of other parts)",
			 gw_text_bytes(size, (double)lists_bytes));
	snprintf(what, sizeof(what), "part %u with arrays %sof %s%s%s, %u thread%s and up to %u connections",
		 server->options.part, cache ? "and --disk-cache " : "", gw_text_bytes(size, (double)plan.array_bytes),
		 lists, plan.array_bytes <= room.pool ? ", in the pool of huge pages" : "", plan.threads,
		 plan.threads == 1 ? "" : "s", gw_server_connections(plan.connections));
	const char *remedy = lists_bytes ? "more parts, fewer --threads, fewer --connections or no --lists"
					 : "more parts, fewer --threads or fewer --connections";
	plan.array_bytes -= cache;
	if (cache && gw_server_room_read("", &plan, &without_cache))
		remedy = "a smaller --disk-cache";
	return gw_memory_suffices(&room.memory, room.wanted, what, remedy);
}

static gw_status server_open_disk(struct gw_server *server)
{
	const struct gw_disk_options options = {.cache_bytes = disk_cache_bytes(&server->options),
						.huge = server->options.huge == GW_HUGE_OFF ? GW_HUGE_OFF : GW_HUGE_TRY,
						.numa = server->options.numa};
	gw_status status = gw_disk_create(&options, &server->disk);
	return status == GW_OK ? gw_disk_rows_open(server->disk, server->part, &server->disk_rows) : status;
}

static gw_status server_load(struct gw_server *server)
{
	struct gw_part_options options = {
		.set_apart = array_apart,
		.apart_context = server,
		.arena = {.name = "graphwire-part",
			  .huge = server->options.huge,
			  .numa = server->options.numa,
			  .shareable = true},
	};
	options.room = gw_server_lists_bytes(server, &options);
	gw_status status = GW_OK;
	if (server->taker)
		status = gw_take_over_part(server, &options);
	else
		status = check_memory(server, options.room);
	if (status == GW_OK && !server->taker)
		status = gw_part_open(server->meta, server->options.part, &options, &server->part);
	if (status == GW_OK)
		status = gw_server_lists_open(server, &options);
	if (status == GW_OK && server->taker)
		status = gw_take_over_lists(server);
	for (int form = 0; status == GW_OK && form < GW_CATALOG_LISTS; form++)
		status = gw_catalog_print(server->part, 0, (enum gw_catalog_form)form, server->list_count > 0,
					  &server->catalogs[form]);
	if (status == GW_OK)
		status = gw_catalog_lists_print(server->lists, server->list_count, 0,
						&server->catalogs[GW_CATALOG_LISTS]);
	if (status == GW_OK && server->options.on_disk_count)
		status = server_open_disk(server);
	return status;
}

static gw_status open_tensors(struct gw_server *server)
{
	const struct gw_tensor_table_options options = {
		.meta = server->meta,
		.part = server->part,
		.service = server->service,
		.incarnation = server->incarnation,
		.bytes_max = server->options.tensor_memory,
		.lease_ms = server->options.tensor_lease_ms ? server->options.tensor_lease_ms : TENSOR_LEASE_MS,
		.huge = server->options.huge == GW_HUGE_OFF ? GW_HUGE_OFF : GW_HUGE_TRY,
		.numa = server->options.numa,
	};
	gw_status status = gw_tensor_table_create(&options, &server->tensors);
	return status == GW_OK ? gw_tensor_service_set(server->service, server->tensors) : status;
}

static void choose_prefetch(struct gw_server *server)
{
	struct gw_prefetch_trial trial;
	bool all = gw_prefetch_choose(server->service, server->options.prefetch, &trial) == GW_PREFETCH_ALL;
	const char *lines = all ? "all lines" : "the first line";
	if (trial.first_ns > 0)
		gw_log(GW_LOG_INFO,
		       "gathers over TCP prefetch %s of a row: %u bytes took %.0f ns with the first, %.0f ns with all",
		       lines, GW_PREFETCH_TRIAL_ROW, trial.first_ns, trial.all_ns);
	else
		gw_log(GW_LOG_INFO, "gathers over TCP prefetch %s of a row", lines);
}

/* Warns if threads that poll keep processors from others that need them. */
static void warn_of_spinning(const struct gw_server *server)
{
	uint32_t granted = gw_processors_granted(""), processors = gw_processors();
	if (!server->options.spin_us)
		return;
	if (granted != UINT32_MAX)
		gw_log(GW_LOG_WARN,
		       "--spin %u under a quota of %u processors: polling uses up the quota, "
		       "and then all threads stand still (graphwire doctor --spin %u)",
		       server->options.spin_us, granted, server->options.spin_us);
	else if (server->options.threads > processors)
		gw_log(GW_LOG_WARN,
		       "--spin %u: %u threads poll on %u processors, and keep each other waiting; give fewer --threads",
		       server->options.spin_us, server->options.threads, processors);
}

static gw_status server_publish(struct gw_server *server)
{
	struct gw_service_identity identity = {.graph_id = server->meta->graph_id,
					       .incarnation = server->incarnation,
					       .part = server->options.part,
					       .parts = server->meta->num_parts};
	const struct gw_arena *arena = gw_part_arena(server->part);
	uint32_t region;
	const struct gw_service_limits limits = {.connections = server->options.connections,
						 .unproven = server->options.unproven,
						 .idle_ms = server->options.idle_ms};
	gw_status status = gw_service_create(&identity, &limits, &server->service);
	if (status == GW_OK)
		status = gw_service_expose(server->service, gw_arena_base(arena), gw_arena_bytes(arena),
					   gw_arena_slice_bytes(arena), NULL, &region);
	if (status == GW_OK)
		status = gw_service_memory(server->service, gw_arena_base(arena), gw_arena_bytes(arena),
					   gw_arena_fd(arena));
	if (status == GW_OK)
		choose_prefetch(server);
	if (status == GW_OK)
		status = open_tensors(server);
	if (status == GW_OK && !server->taker)
		status = load_mutable(server);
	if (status == GW_OK)
		status = gw_server_answer(server);
	if (status == GW_OK)
		status = leave_key(server);
	if (status == GW_OK && server->key_bytes)
		status = gw_service_key_set(server->service, server->key, server->key_bytes);
	explicit_bzero(server->key, sizeof(server->key));
	return status;
}

/* Ensures that no other server serves this part on this host. The check needs the runtime folder. If the folder does
 * not exist, a server that needs no key from it starts without the check. */
static gw_status server_guard(struct gw_server *server)
{
	gw_status status = gw_server_guard(server);
	if (status == GW_OK || status == GW_BUSY || !(server->options.insecure || server->options.key_file))
		return status;
	gw_log(GW_LOG_WARN, "%s; starting without the check for another server of this part on this host",
	       gw_last_error());
	return GW_OK;
}

/* Until the threads have started, and wait at the gate. */
static gw_status take_over_steps(struct gw_server *server)
{
	gw_status status = gw_take_over_begin(server);
	if (status == GW_OK)
		status = find_key(server);
	if (status == GW_OK)
		status = server_load(server);
	if (status == GW_OK)
		status = server_publish(server);
	if (status == GW_OK)
		status = gw_take_over_state(server);
	if (status == GW_OK)
		status = gw_server_metrics_start(server);
	if (status == GW_OK)
		status = gw_server_listen(server);
	if (status == GW_OK)
		status = gw_server_start_threads(server);
	if (status == GW_OK)
		status = gw_take_over_finish(server);
	if (status != GW_OK)
		return status;
	server->has_key = !server->options.insecure && !server->options.key_file;
	if (!server->has_key)
		gw_key_remove(server->options.listen.port);
	atomic_store(&server->serving, true);
	gw_take_over_end(server, NULL);
	return GW_OK;
}

static gw_status start_steps(struct gw_server *server)
{
	gw_status status = gw_meta_read(server->options.part_config, &server->meta);
	if (status != GW_OK)
		return status;
	if (server->options.part >= server->meta->num_parts)
		return gw_fail(GW_RANGE, "%s: part %u does not exist; the %u parts are numbered from 0",
			       server->options.part_config, server->options.part, server->meta->num_parts);
	if (getrandom(&server->incarnation, sizeof(server->incarnation), 0) != sizeof(server->incarnation))
		return gw_fail(GW_IO, "the kernel gives no random bytes");
	warn_of_spinning(server);
	status = gw_replicas_check_origin(server->meta);
	if (status == GW_OK)
		status = check_mutable(server);
	if (status == GW_OK && !server->options.take_over)
		status = gw_server_lists_check(server);
	if (status == GW_OK)
		status = check_on_disk(server);
	if (status == GW_OK)
		status = gw_server_open_groups(server);
	if (server->options.take_over)
		return status == GW_OK ? take_over_steps(server) : status;
	if (status == GW_OK)
		status = reserve_port(server);
	if (status == GW_OK)
		status = find_key(server);
	if (status == GW_OK)
		status = server_guard(server);
	if (status == GW_OK)
		status = gw_server_metrics_start(server);
	if (status == GW_OK)
		status = server_load(server);
	if (status == GW_OK)
		status = server_publish(server);
	if (status == GW_OK)
		status = gw_server_listen(server);
	atomic_store(&server->serving, status == GW_OK);
	if (status == GW_OK)
		status = gw_server_start_threads(server);
	if (status == GW_OK)
		gw_handover_listen(server);
	return status;
}

gw_status gw_server_start(const struct gw_server_options *options, struct gw_server **out)
{
	*out = NULL;
	struct gw_server *server = gw_calloc(1, sizeof(*server));
	if (!server)
		return GW_NO_MEMORY;
	gw_status status = gw_clock_attend();
	if (status != GW_OK) {
		gw_free(server);
		return status;
	}
	server->options = *options;
	server->guard_fd = server->reservation = server->handover_fd = server->sockets[0] = server->sockets[1] = -1;
	pthread_mutex_init(&server->gate, NULL);
	server->started_ns = gw_monotonic_ns();
	status = start_steps(server);
	char holders[GW_ERROR_TEXT_MAX / 2];
	if (status == GW_NO_MEMORY && gw_leftover_memory_find("", holders, sizeof(holders)))
		gw_advise(status, holders);
	if (status != GW_OK) {
		gw_server_end(server, 0);
		return status;
	}
	*out = server;
	return GW_OK;
}

/* A successor that fails leaves the names of its sockets to the running server. */
static void leave_sockets(struct gw_server *server)
{
	struct gw_listener *listeners[] = {server->listener, server->local};
	for (int i = 0; i < 2; i++) {
		int socket = -1;
		if (server->taker && listeners[i] && gw_listener_yield(listeners[i], &socket) == GW_OK)
			close(socket);
		if (server->sockets[i] >= 0)
			close(server->sockets[i]);
	}
}

void gw_server_end(struct gw_server *server, uint32_t drain_ms)
{
	struct gw_error_kept kept;
	if (!server)
		return;
	gw_error_keep(&kept);
	leave_sockets(server);
	if (server->taker) {
		atomic_store(&server->stop, true); /* for threads that wait at the gate */
		gw_take_over_end(server, gw_last_error());
	}
	gw_handover_end(server);
	uint32_t threads = server->threads ? server->options.threads : 0;
	/* Remove the key before the port is released: the next server on this port writes a key file of the same
	 * name. */
	if (server->has_key)
		gw_key_remove(server->options.listen.port);
	if (server->listener && threads && server->threads[0].started && drain_ms)
		gw_server_drain(server, drain_ms);
	gw_exporter_stop(server->exporter);
	gw_server_stop_threads(server);
	if (server->reservation >= 0)
		close(server->reservation);
	for (uint32_t i = 0; i < threads; i++) {
		gw_poll_group_destroy(server->threads[i].group);
		gw_picks_free(&server->threads[i].picks);
		gw_vec_free(&server->threads[i].group_times);
	}
	gw_free(server->threads);
	gw_tensor_table_stop(server->tensors);
	if (server->service)
		gw_service_destroy(server->service);
	gw_tensor_table_destroy(server->tensors);
	for (int form = 0; form < GW_CATALOG_FORMS; form++)
		gw_free(server->catalogs[form]);
	gw_server_lists_close(server);
	gw_disk_rows_close(server->disk_rows);
	gw_disk_destroy(server->disk);
	gw_part_close(server->part);
	gw_server_unguard(server);
	explicit_bzero(server->key, sizeof(server->key));
	gw_meta_destroy(server->meta);
	pthread_mutex_destroy(&server->gate);
	gw_free(server);
	gw_clock_leave();
	gw_error_restore(&kept);
}
