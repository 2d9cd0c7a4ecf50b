/* The service: set up once, then read by every backend's threads. While the service is in use, only counters, dynamic
 * regions and the replay cache change. Fails on too many regions or operations, on slices that are not a power of two,
 * and if memory runs out. */
#include "transport/service/service.h"

#include <assert.h>
#include <string.h>

#include "core/errors/status.h"
#include "core/memory/alloc.h"
#include "core/numbers/rng.h"
#include "transport/service/replay_cache.h"
#include "transport/service/service_private.h"

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
	return value ? value : otherwise;
}

gw_status gw_service_create(const struct gw_service_identity *identity, const struct gw_service_limits *limits,
			    struct gw_service **out)
{
	static const struct gw_service_limits defaults;
	*out = NULL;
	struct gw_service *service = gw_calloc(1, sizeof(*service));
	if (!service)
		return GW_NO_MEMORY;
	gw_status status = gw_replay_cache_create(identity->incarnation, &service->replay_cache);
	if (status != GW_OK) {
		gw_free(service);
		return status;
	}
	pthread_mutex_init(&service->peers.lock, NULL);
	service->identity = *identity;
	gw_service_dynamic_begin(service);
	limits = limits ? limits : &defaults;
	service->limits.connections = or_default(limits->connections, 1024);
	service->limits.unproven = or_default(limits->unproven, 256);
	service->limits.reply_bytes = limits->reply_bytes ? limits->reply_bytes : 512u << 20;
	service->limits.requests_per_client = or_default(limits->requests_per_client, 64);
	service->limits.bytes_per_client = limits->bytes_per_client ? limits->bytes_per_client : 64u << 20;
	service->limits.idle_ms = or_default(limits->idle_ms, 10000);
	*out = service;
	return GW_OK;
}

void gw_service_destroy(struct gw_service *service)
{
	if (!service)
		return;
	assert(atomic_load(&service->counts.connections_open) == 0);
	gw_service_dynamic_end(service);
	gw_replay_cache_destroy(service->replay_cache);
	for (uint32_t i = 0; i < GW_SERVICE_THREADS; i++)
		gw_free(atomic_load(&service->threads[i]));
	pthread_mutex_destroy(&service->peers.lock);
	explicit_bzero(service->key, sizeof(service->key));
	gw_free(service);
}

gw_status gw_service_key_set(struct gw_service *service, const uint8_t *key, uint32_t key_bytes)
{
	if (key_bytes == 0 || key_bytes > sizeof(service->key))
		return gw_fail(GW_INVALID, "a key of %u bytes; a key has 1 to %zu bytes", key_bytes,
			       sizeof(service->key));
	memcpy(service->key, key, key_bytes);
	service->key_bytes = key_bytes;
	return GW_OK;
}

/* Readers load sequences and small rows as words, so the memory must be aligned for that. */
static gw_status rows_check(const uint8_t *base, uint64_t bytes, const struct gw_region_rows *rows)
{
	const struct gw_row_format *format = &rows->format;
	uint32_t align = format->versioned ? GW_ROW_ALIGN : format->payload_bytes;
	if (bytes % format->stride || (uintptr_t)base % align)
		return gw_fail(GW_INVALID,
			       "a region of %llu bytes at %p: rows must be %u bytes apart and aligned to %u bytes",
			       (unsigned long long)bytes, (const void *)base, format->stride, align);
	return GW_OK;
}

gw_status gw_service_region_check(const uint8_t *base, uint64_t bytes, uint64_t slice_bytes,
				  const struct gw_region_rows *rows)
{
	if (slice_bytes & (slice_bytes - 1))
		return gw_fail(GW_INVALID, "slices of %llu bytes: not a power of two", (unsigned long long)slice_bytes);
	if (bytes && (!base || (uintptr_t)base + bytes < (uintptr_t)base))
		return gw_fail(GW_INVALID, "a region of %llu bytes has no valid address range",
			       (unsigned long long)bytes);
	return rows ? rows_check(base, bytes, rows) : GW_OK;
}

gw_status gw_service_expose(struct gw_service *service, const uint8_t *base, uint64_t bytes, uint64_t slice_bytes,
			    const struct gw_region_rows *rows, uint32_t *region_id)
{
	uint32_t id = service->region_count;
	if (id == GW_REGIONS_MAX)
		return gw_fail(GW_LIMIT, "more than %d regions", GW_REGIONS_MAX);
	gw_status status = gw_service_region_check(base, bytes, slice_bytes, rows);
	if (status != GW_OK)
		return status;
	service->bases[id] =
		base ? base : (const uint8_t *)""; /* empty region: any address, so that offset 0 is valid */
	service->slice_bytes[id] = slice_bytes;
	service->regions[id] = (struct gw_region){
		.bytes = bytes,
		.id = id,
		.generation = (uint32_t)gw_mix64(service->identity.incarnation) | 1,
		.kind = rows ? GW_REGION_VERSIONED : GW_REGION_IMMUTABLE,
	};
	if (rows)
		service->regions[id].rows = *rows;
	service->region_count++;
	*region_id = id;
	return GW_OK;
}

gw_status gw_service_memory(struct gw_service *service, const uint8_t *base, uint64_t bytes, int fd)
{
	if (service->memory_count == GW_MEMORIES_MAX)
		return gw_fail(GW_LIMIT, "more than %d memfds", GW_MEMORIES_MAX);
	service->memories[service->memory_count++] = (struct gw_service_memory){base, bytes, fd};
	return GW_OK;
}

gw_status gw_service_handle(struct gw_service *service, uint16_t op, gw_handler handler, void *context)
{
	if (op >= GW_OPS_MAX)
		return gw_fail(GW_INVALID, "operation %u; the largest is %d", op, GW_OPS_MAX - 1);
	service->handlers[op].call = handler;
	service->handlers[op].context = context;
	return GW_OK;
}

static uint64_t service_look(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

struct gw_service_thread *gw_service_thread(struct gw_service *service, uint32_t thread)
{
	_Atomic(struct gw_service_thread *) *place = &service->threads[thread % GW_SERVICE_THREADS];
	struct gw_service_thread *found = atomic_load_explicit(place, memory_order_acquire);
	if (found)
		return found;
	struct gw_service_thread *made = gw_calloc(1, sizeof(*made));
	if (!made)
		return &service->others;
	if (atomic_compare_exchange_strong(place, &found, made))
		return made;
	gw_free(made);
	return found;
}

/* The counts of each thread, then those of all others; NULL: the thread has counted nothing. */
static const struct gw_service_thread *thread_counts(struct gw_service *service, uint32_t i)
{
	return i < GW_SERVICE_THREADS ? atomic_load_explicit(&service->threads[i], memory_order_acquire)
				      : &service->others;
}

static void sum_calls(struct gw_service *service, struct gw_service_calls into[GW_SERVICE_OPS][GW_SERVICE_SCHEMES])
{
	for (uint32_t i = 0; i <= GW_SERVICE_THREADS; i++) {
		const struct gw_service_thread *counts = thread_counts(service, i);
		for (uint32_t op = 0; counts && op < GW_SERVICE_OPS; op++) {
			for (uint32_t scheme = 0; scheme < GW_SERVICE_SCHEMES; scheme++) {
				into[op][scheme].requests += service_look(&counts->calls[op][scheme].requests);
				into[op][scheme].errors += service_look(&counts->calls[op][scheme].errors);
				into[op][scheme].received_bytes +=
					service_look(&counts->calls[op][scheme].received_bytes);
				into[op][scheme].sent_bytes += service_look(&counts->calls[op][scheme].sent_bytes);
			}
		}
	}
}

void gw_service_counters(struct gw_service *service, struct gw_service_counters *out)
{
	const struct gw_service_counts *counts = &service->counts;
	*out = (struct gw_service_counters){
		.connections_open = service_look(&counts->connections_open),
		.connections_total = service_look(&counts->connections_total),
		.refused = service_look(&counts->refused),
		.unproven = service_look(&counts->unproven),
		.dropped = service_look(&counts->dropped),
		.calls_open = service_look(&counts->calls_open),
		.deferred = service_look(&counts->deferred),
		.reply_bytes = service_look(&service->reply_bytes),
	};
	struct gw_service_calls calls[GW_SERVICE_OPS][GW_SERVICE_SCHEMES] = {0};
	sum_calls(service, calls);
	for (uint32_t op = 0; op < GW_SERVICE_OPS; op++) {
		for (uint32_t scheme = 0; scheme < GW_SERVICE_SCHEMES; scheme++) {
			/* the transports' own calls are no requests of the client's program */
			out->requests += op < GW_OPS_MAX ? calls[op][scheme].requests : 0;
			out->errors += calls[op][scheme].errors;
		}
	}
	struct gw_service_calls reads[GW_SERVICE_SCHEMES] = {0};
	gw_service_peers_sum(service, out, reads);
	for (uint32_t scheme = 0; scheme < GW_SERVICE_SCHEMES; scheme++)
		out->errors += reads[scheme].errors;
	out->replays = gw_replay_cache_replays(service->replay_cache);
}

void gw_service_totals(struct gw_service *service, struct gw_service_totals *out)
{
	struct gw_service_counters unused = {0};
	memset(out, 0, sizeof(*out));
	sum_calls(service, out->calls);
	gw_service_peers_sum(service, &unused, out->calls[GW_SERVICE_OP_READS]);
	for (uint32_t i = 0; i <= GW_SERVICE_THREADS; i++) {
		const struct gw_service_thread *counts = thread_counts(service, i);
		for (uint32_t op = 0; counts && op < GW_SERVICE_OPS; op++) {
			gw_latency_sum(&out->requests[op], &counts->requests[op]);
			gw_latency_sum(&out->slices[op], &counts->slices[op]);
		}
	}
}

gw_status gw_service_past(struct gw_service *service, struct gw_service_past *out)
{
	*out = (struct gw_service_past){.generation = service->dynamic.next_generation};
	return gw_replay_save(service->replay_cache, &out->calls, &out->calls_bytes);
}

gw_status gw_service_resume(struct gw_service *service, const struct gw_service_past *past)
{
	service->dynamic.next_generation = past->generation;
	return gw_replay_load(service->replay_cache, past->calls, past->calls_bytes);
}

gw_status gw_service_enter(struct gw_service *service)
{
	uint64_t open = atomic_fetch_add(&service->counts.connections_open, 1);
	if (open < service->limits.connections) {
		gw_count(&service->counts.connections_total, 1);
		return GW_OK;
	}
	atomic_fetch_sub(&service->counts.connections_open, 1);
	return gw_fail(GW_LIMIT,
		       "too many connections: the server's %u connections are in use; "
		       "close some, or raise its limit (--connections; " GW_FILES_HINT ")",
		       service->limits.connections);
}

void gw_service_disconnect(struct gw_service *service)
{
	atomic_fetch_sub(&service->counts.connections_open, 1);
}

void gw_service_left(struct gw_service *service, uint64_t connection, uint32_t thread)
{
	const struct gw_service_upgrade *upgrade = atomic_load(&service->upgrade);
	if (upgrade)
		upgrade->left(upgrade->context, connection, thread);
}

gw_status gw_service_apply(struct gw_service *service, const struct gw_call *call, struct gw_reply *reply)
{
	const struct gw_service_upgrade *upgrade = atomic_load(&service->upgrade);
	switch (call->op) { /* equal numbers would not compile */
	case GW_OP_UPGRADE:
	case GW_OP_KEYS:
		if (!upgrade)
			return gw_fail(GW_UNSUPPORTED, "this server offers no RDMA");
		return (call->op == GW_OP_UPGRADE ? upgrade->ask : upgrade->keys)(upgrade->context, call, reply);
	case GW_OP_GOODBYE:
		gw_replay_goodbye(service->replay_cache, call->client_uuid);
		return GW_OK;
	default:
		break;
	}
	if (call->op >= GW_OPS_MAX || !service->handlers[call->op].call)
		return gw_fail(GW_UNSUPPORTED, "this server has no operation %u", call->op);
	return service->handlers[call->op].call(service->handlers[call->op].context, call, reply);
}
