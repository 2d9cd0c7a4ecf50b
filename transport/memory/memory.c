/* The in-process backend. A read is copied inside the call (transport/mapped.h). A request runs its handler inside the
 * call; a deferred request continues in polls, in order. Only completions wait for the next poll. Failures are reported
 * as in every backend: by the completion, with a text.
 */
#include "transport/memory/memory.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/system/clock.h"
#include "transport/dynamic_regions.h"
#include "transport/mapped.h"
#include "transport/service/replay_cache.h"

struct memory_endpoint {
	struct gw_endpoint base;
	struct memory_state *state;
	struct memory_endpoint *next, **previous;
	struct memory_link link;
	struct gw_read_set *sets; /* started, not complete */
	uint8_t client_uuid[16];
	struct gw_region regions[GW_REGIONS_MAX];
};

static gw_status memory_open(struct gw_poll_group *group, void **out)
{
	*out = NULL;
	struct memory_state *state = gw_calloc(1, sizeof(*state));
	if (!state)
		return GW_NO_MEMORY;
	state->group = group;
	gw_completions_begin(&state->completions);
	state->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (state->wake_fd < 0) {
		int error = errno;
		gw_free(state);
		return gw_fail_errno(GW_IO, error, "eventfd");
	}
	*out = state;
	return GW_OK;
}

/* Removes the oldest request and frees it. Its note (the completion) is posted already, or the request was
 * cancelled. */
static void request_drop(struct memory_endpoint *endpoint)
{
	struct memory_request *request = endpoint->link.requests;
	endpoint->link.requests = request->next;
	if (!request->next)
		endpoint->link.requests_end = &endpoint->link.requests;
	endpoint->state->request_count--;
	gw_task_end(&request->task);
	gw_free(request);
}

static void requests_fail(struct memory_endpoint *endpoint, gw_status status)
{
	while (endpoint->link.requests) {
		if (endpoint->link.requests->note)
			gw_completions_post(&endpoint->state->completions, endpoint->link.requests->note, status);
		request_drop(endpoint);
	}
}

static void memory_close(struct gw_endpoint *base)
{
	struct memory_endpoint *endpoint = (struct memory_endpoint *)base;
	while (endpoint->sets) {
		struct gw_read_set *set = endpoint->sets;
		gw_read_set_fail(set, gw_fail(GW_CANCELLED, "the endpoint was closed"));
		set->last_accepted = true;
		gw_read_set_settle(&endpoint->state->completions, set);
	}
	gw_memory_part(&endpoint->link);
	requests_fail(endpoint, gw_fail(GW_CANCELLED, "the endpoint was closed"));
	GW_LIST_REMOVE(endpoint);
	gw_dynamic_region_free(base);
	gw_free(endpoint);
}

static void memory_shut(void *opaque)
{
	struct memory_state *state = opaque;
	while (state->endpoints)
		memory_close(&state->endpoints->base);
	gw_completions_end(&state->completions);
	close(state->wake_fd);
	gw_free(state);
}

/* The hello: makes the same checks as a network backend. */
static gw_status memory_question(const struct gw_service *service, const struct gw_connect_options *options)
{
	const char *name = options->address.host;
	if (service->key_bytes && !options->key)
		return gw_fail(GW_REFUSED, "memory:%s: the server wants a key, and the client has none", name);
	if (options->must_prove && !options->key && !service->key_bytes)
		return gw_fail(GW_REFUSED, "memory:%s: the server has no key to prove", name);
	if (options->key && !service->key_bytes)
		return gw_fail(GW_REFUSED, "memory:%s: the client has a key, but the server has none to prove", name);
	if (options->key && (options->key_bytes != service->key_bytes ||
			     CRYPTO_memcmp(options->key, service->key, service->key_bytes) != 0))
		return gw_fail(GW_REFUSED, "memory:%s: the server has another key", name);
	if (options->graph_id && options->graph_id != service->identity.graph_id)
		return gw_fail(GW_WRONG_GRAPH, "memory:%s serves graph %016llx, not %016llx", name,
			       (unsigned long long)service->identity.graph_id, (unsigned long long)options->graph_id);
	return GW_OK;
}

static gw_status memory_greet(struct memory_endpoint *endpoint, const struct gw_connect_options *options)
{
	const char *name = options->address.host;
	gw_status status = gw_memory_join(name, &endpoint->link);
	if (status != GW_OK) /* a full service has refused, and counted the refusal */
		return status == GW_LIMIT ? GW_REFUSED : status;
	if (!gw_memory_enter(&endpoint->link)) {
		gw_memory_part(&endpoint->link);
		return gw_fail(GW_PEER_LOST, "memory:%s: the service has ended", name);
	}
	struct gw_service *service = endpoint->link.service;
	status = memory_question(service, options);
	if (status != GW_OK) {
		gw_count(&service->counts.refused, 1);
	} else {
		endpoint->link.client_uuid = endpoint->client_uuid;
		endpoint->link.window =
			gw_replay_join(service->replay_cache, endpoint->client_uuid, options->budget_ns);
		memcpy(endpoint->regions, service->regions, sizeof(endpoint->regions));
		endpoint->base.peer = (struct gw_peer){
			.graph_id = service->identity.graph_id,
			.incarnation = service->identity.incarnation,
			.window = endpoint->link.window,
			.part = service->identity.part,
			.parts = service->identity.parts,
			.regions = endpoint->regions,
			.region_count = service->region_count,
		};
	}
	gw_memory_disconnect(&endpoint->link);
	if (status != GW_OK)
		gw_memory_part(&endpoint->link);
	return status;
}

static gw_status memory_connect(void *opaque, const struct gw_connect_options *options, void *cookie,
				struct gw_endpoint **out)
{
	struct memory_state *state = opaque;
	struct gw_note *note;
	*out = NULL;
	gw_status status = gw_note_create(cookie, &note);
	if (status != GW_OK)
		return status;
	struct memory_endpoint *endpoint = gw_calloc(1, sizeof(*endpoint));
	if (!endpoint) {
		gw_note_destroy(note);
		return GW_NO_MEMORY;
	}
	endpoint->base = (struct gw_endpoint){.transport = &gw_transport_memory, .group = state->group};
	endpoint->state = state;
	memcpy(endpoint->client_uuid, options->client_uuid, 16);
	status = memory_greet(endpoint, options);
	endpoint->base.state = status != GW_OK ? GW_ENDPOINT_LOST : GW_ENDPOINT_OPEN;
	GW_LIST_INSERT(state->endpoints, endpoint);
	gw_completions_post(&state->completions, note, status);
	*out = &endpoint->base;
	return GW_OK;
}

static gw_status memory_buffer_register(void *state, struct gw_buffer *buffer)
{
	(void)state;
	(void)buffer;
	return GW_OK;
}

static void memory_buffer_release(void *state, struct gw_buffer *buffer)
{
	(void)state;
	(void)buffer;
}

static gw_status memory_enter(struct memory_endpoint *endpoint, uint64_t deadline_ns)
{
	if (deadline_ns != GW_NO_DEADLINE && deadline_ns && gw_now_ns() >= deadline_ns)
		return gw_fail(GW_DEADLINE, "the deadline had passed before memory was read");
	if (gw_memory_enter(&endpoint->link))
		return GW_OK;
	gw_memory_await_stop();
	endpoint->base.state = GW_ENDPOINT_LOST;
	endpoint->base.moved = gw_memory_moved(&endpoint->link);
	return gw_fail(GW_PEER_LOST, "the service of this process has ended");
}

/* False: the set has failed, and every read is accepted. */
static bool memory_begin(struct memory_endpoint *endpoint, struct gw_read_set *set, const struct gw_region *region)
{
	gw_read_set_start(&endpoint->sets, set);
	if (set->status)
		return false;
	gw_status status = memory_enter(endpoint, set->deadline_ns);
	if (status == GW_OK) {
		status = gw_check_region(&endpoint->base, region);
		if (status != GW_OK)
			gw_memory_disconnect(&endpoint->link);
	}
	if (status != GW_OK)
		gw_read_set_fail(set, status);
	return status == GW_OK;
}

/* Leaves the service after `ranges` ranges were copied, or fails the set with `status`. */
static void memory_leave(struct memory_endpoint *endpoint, struct gw_read_set *set, gw_status status, uint64_t ranges,
			 uint64_t bytes)
{
	if (status != GW_OK)
		gw_read_set_fail(set, status);
	else
		gw_count_read(&endpoint->link.peer, ranges, bytes);
	gw_memory_disconnect(&endpoint->link);
}

/* A read's region, while the endpoint is inside the service. */
struct memory_view {
	const struct gw_region *region;
	const uint8_t *base;
	struct gw_dynamic_region_place *place; /* of a dynamic region; NULL: a static region, or withdrawn */
};

static gw_status memory_view_begin(struct memory_endpoint *endpoint, const struct gw_region *region,
				   struct memory_view *view)
{
	struct gw_service *service = endpoint->link.service;
	if (region->id < GW_REGIONS_MAX) {
		*view = (struct memory_view){&endpoint->regions[region->id], service->bases[region->id], NULL};
		return GW_OK;
	}
	*view = (struct memory_view){.place = gw_dynamic_region_enter(service, region->id, region->generation)};
	if (!view->place)
		return GW_NOT_FOUND;
	view->region = &view->place->region;
	view->base = view->place->what.base;
	return GW_OK;
}

static void memory_view_end(struct memory_endpoint *endpoint, const struct memory_view *view)
{
	if (view->place)
		gw_dynamic_region_leave(endpoint->link.service, view->place);
}

static size_t memory_read(struct gw_endpoint *base, struct gw_read_set *set, const struct gw_region *region,
			  struct gw_buffer *buffer, const struct gw_reads *reads, bool last)
{
	struct memory_endpoint *endpoint = (struct memory_endpoint *)base;
	struct gw_completions *completions = &endpoint->state->completions;
	struct memory_view view;
	size_t taken = 0;
	uint64_t bytes = 0;
	if (set->done)
		return reads->n;
	if (!memory_begin(endpoint, set, region))
		return gw_mapped_end(base, completions, set, reads->n, reads->n, last);
	gw_status status = memory_view_begin(endpoint, region, &view);
	if (status == GW_OK)
		status = gw_mapped_read(view.region, view.base, buffer, set, reads, &taken, &bytes);
	memory_view_end(endpoint, &view);
	memory_leave(endpoint, set, status, taken, bytes);
	return gw_mapped_end(base, completions, set, reads->n, taken, last);
}

static gw_status memory_region_open(struct gw_endpoint *base, uint32_t id, uint32_t generation, void *cookie)
{
	struct memory_endpoint *endpoint = (struct memory_endpoint *)base;
	struct gw_note *note;
	gw_status status = gw_note_create(cookie, &note);
	if (status != GW_OK)
		return status;
	status = memory_enter(endpoint, GW_NO_DEADLINE);
	if (status == GW_OK) {
		struct gw_service *service = endpoint->link.service;
		struct gw_dynamic_region_place *place = gw_dynamic_region_enter(service, id, generation);
		struct gw_dynamic_region_entry *entry, before;
		status = place ? gw_dynamic_region_add(base, &place->region, &entry, &before) : GW_NOT_FOUND;
		if (place)
			gw_dynamic_region_leave(service, place);
		gw_memory_disconnect(&endpoint->link);
	}
	gw_completions_post(&endpoint->state->completions, note, status);
	return GW_OK;
}

/* Posts its note if the call has ended. GW_AGAIN: the call has more to do. */
static gw_status request_run(struct memory_endpoint *endpoint, struct gw_task *task, struct gw_note *note)
{
	gw_status status = gw_memory_run(&endpoint->link, task);
	if (status == GW_AGAIN || !note)
		return status;
	gw_task_leave(task);
	note->memory = task->reply.memory;
	note->reply = gw_reply_data(&task->reply, &note->reply_bytes);
	task->reply.memory = NULL; /* the note owns it now */
	gw_completions_post(&endpoint->state->completions, note, status);
	return GW_OK;
}

static gw_status request_keep(struct memory_endpoint *endpoint, const struct gw_call *call, struct memory_request **out)
{
	*out = gw_calloc(1, sizeof(**out) + call->byte_count);
	if (!*out)
		return GW_NO_MEMORY;
	if (call->byte_count)
		memcpy((*out)->bytes, call->bytes, call->byte_count);
	*endpoint->link.requests_end = *out;
	endpoint->link.requests_end = &(*out)->next;
	endpoint->state->request_count++;
	return GW_OK;
}

static gw_status memory_request(struct gw_endpoint *base, uint16_t op, const struct gw_once *once, const void *bytes,
				uint32_t n, uint64_t deadline_ns, void *cookie)
{
	struct memory_endpoint *endpoint = (struct memory_endpoint *)base;
	struct gw_completions *completions = &endpoint->state->completions;
	if (n > GW_REQUEST_BYTES_MAX)
		return gw_fail(GW_LIMIT, "a request of %u bytes; a request has at most %u", n, GW_REQUEST_BYTES_MAX);
	uint32_t open_max = 64;
	gw_status status = memory_enter(endpoint, deadline_ns);
	if (status == GW_OK)
		open_max = endpoint->link.service->limits.requests_per_client;
	struct gw_note *note = NULL;
	gw_status accepted = completions->note_count + endpoint->state->request_count >= open_max
				     ? gw_fail(GW_AGAIN, "%u requests wait for poll", open_max)
				     : gw_note_create(cookie, &note);
	if (accepted) {
		endpoint->state->room_wanted |= accepted == GW_AGAIN;
		if (status == GW_OK)
			gw_memory_disconnect(&endpoint->link);
		return accepted;
	}
	if (status != GW_OK) {
		gw_completions_post(completions, note, status);
		return GW_OK;
	}
	struct gw_service *service = endpoint->link.service;
	struct gw_call call = {.op = op,
			       .bytes = bytes,
			       .byte_count = n,
			       .thread = endpoint->link.thread,
			       .group = endpoint->state->group,
			       .client_uuid = endpoint->client_uuid,
			       .peer = &endpoint->link.peer};
	struct memory_request *request = NULL;
	struct gw_task task;
	gw_task_begin(&task, service, &call, once, 0, service->limits.bytes_per_client);
	/* Calls of one endpoint are answered in order. */
	status = endpoint->link.requests ? GW_AGAIN : request_run(endpoint, &task, note);
	if (status == GW_AGAIN) {
		status = request_keep(endpoint, &call, &request);
		if (status != GW_OK)
			gw_completions_post(completions, note, status);
	}
	if (request) {
		request->task = task;
		request->task.call.bytes = request->bytes;
		request->note = note;
		request->cookie = cookie;
		request->deadline_ns = deadline_ns;
	} else {
		gw_task_end(&task);
	}
	gw_memory_disconnect(&endpoint->link);
	return GW_OK;
}

static void request_run_slice(struct memory_endpoint *endpoint)
{
	struct memory_request *request = endpoint->link.requests;
	gw_status status = memory_enter(endpoint, request->note ? request->deadline_ns : GW_NO_DEADLINE);
	if (status == GW_DEADLINE) {
		gw_completions_post(&endpoint->state->completions, request->note, status);
		request->note = NULL;
		return;
	}
	if (status != GW_OK) {
		requests_fail(endpoint, status);
		return;
	}
	bool over = request_run(endpoint, &request->task, request->note) != GW_AGAIN;
	if (over)
		request_drop(endpoint);
	gw_memory_disconnect(&endpoint->link);
	if (over && !endpoint->link.requests)
		gw_memory_idle(&endpoint->link);
}

static void memory_cancel(struct gw_endpoint *base, struct gw_read_set *set)
{
	struct memory_endpoint *endpoint = (struct memory_endpoint *)base;
	if (set->done || !gw_read_set_private(set)->link)
		return;
	gw_read_set_fail(set, gw_fail(GW_CANCELLED, "cancelled"));
	set->last_accepted = true;
	gw_read_set_settle(&endpoint->state->completions, set);
}

static void memory_request_cancel(struct gw_endpoint *base, const void *cookie)
{
	struct memory_endpoint *endpoint = (struct memory_endpoint *)base;
	for (struct memory_request *request = endpoint->link.requests; request; request = request->next) {
		if (!request->note || request->cookie != cookie)
			continue;
		gw_completions_post(&endpoint->state->completions, request->note, gw_fail(GW_CANCELLED, "cancelled"));
		request->note = NULL; /* the handler still runs to its end */
		return;
	}
}

static const uint8_t *memory_map(struct gw_endpoint *base, const struct gw_region *region)
{
	struct memory_endpoint *endpoint = (struct memory_endpoint *)base;
	if (gw_check_region(base, region) || region->id >= GW_REGIONS_MAX ||
	    endpoint->regions[region->id].kind == GW_REGION_VERSIONED || !gw_memory_enter(&endpoint->link))
		return NULL;
	const uint8_t *mapped = endpoint->link.service->bases[region->id];
	gw_memory_disconnect(&endpoint->link);
	return mapped;
}

static void memory_drain_wakes(const struct memory_state *state)
{
	eventfd_t ignored;
	eventfd_read(state->wake_fd, &ignored);
}

/* True: a wake came. */
static bool memory_woken(const struct memory_state *state, uint64_t timeout_ns)
{
	struct pollfd fd = {.fd = state->wake_fd, .events = POLLIN};
	struct timespec time = gw_timespec(timeout_ns);
	if (ppoll(&fd, 1, timeout_ns > GW_NO_DEADLINE / 2 ? NULL : &time, NULL) <= 0)
		return false;
	memory_drain_wakes(state);
	return true;
}

/* How long the poll can sleep, at most until end_ns: until the first deferred request is to run again. */
static uint64_t memory_pause_ns(const struct memory_state *state, uint64_t end_ns)
{
	uint64_t pause_ns = GW_NO_DEADLINE, now_ns = gw_now_ns();
	for (const struct memory_endpoint *endpoint = state->endpoints; endpoint; endpoint = endpoint->next) {
		uint64_t waits_ns =
			endpoint->link.requests ? gw_task_pause_ns(&endpoint->link.requests->task) : pause_ns;
		pause_ns = waits_ns < pause_ns ? waits_ns : pause_ns;
	}
	uint64_t left_ns = end_ns > now_ns ? end_ns - now_ns : 0;
	return pause_ns < left_ns ? pause_ns : left_ns;
}

static size_t memory_poll(void *opaque, struct gw_completion *completions, size_t max, uint64_t timeout_ns)
{
	struct memory_state *state = opaque;
	uint64_t end = state->request_count && timeout_ns ? gw_later_ns(gw_now_ns(), timeout_ns) : 0;
	for (;;) {
		for (struct memory_endpoint *endpoint = state->endpoints; endpoint && state->request_count;
		     endpoint = endpoint->next)
			if (endpoint->link.requests)
				request_run_slice(endpoint);
		size_t n = gw_completions_take(&state->completions, completions, max);
		if (n && state->room_wanted) {
			state->room_wanted = false;
			gw_poll_group_room(state->group);
		}
		if (n || timeout_ns == 0)
			return n;
		if (gw_poll_group_room_take(state->group))
			return 0;
		if (!state->request_count) {
			memory_woken(state, timeout_ns);
			return 0;
		}
		if (memory_woken(state, memory_pause_ns(state, end)) || gw_now_ns() >= end)
			return 0;
	}
}

static bool memory_busy(void *opaque)
{
	const struct memory_state *state = opaque;
	return !gw_completions_empty(&state->completions) || state->request_count;
}

static int memory_wait_fd(void *opaque, uint64_t *until_ns)
{
	(void)until_ns; /* this backend has no timers */
	const struct memory_state *state = opaque;
	if (memory_busy(opaque))
		return -1;
	/* Polls without a wait leave earlier wakes in the descriptor. The group sees later ones in its own. */
	memory_drain_wakes(state);
	return state->wake_fd;
}

static void memory_wake(void *opaque)
{
	eventfd_write(((struct memory_state *)opaque)->wake_fd, 1);
}

const struct gw_transport gw_transport_memory = {
	.scheme = &gw_schemes[GW_SCHEME_MEMORY],
	.number = GW_SCHEME_MEMORY,
	.one_sided = true,
	.range_cost_bytes = 64,
	.open = memory_open,
	.shut = memory_shut,
	.connect = memory_connect,
	.close = memory_close,
	.buffer_register = memory_buffer_register,
	.buffer_release = memory_buffer_release,
	.read = memory_read,
	.request = memory_request,
	.cancel = memory_cancel,
	.request_cancel = memory_request_cancel,
	.region_open = memory_region_open,
	.map = memory_map,
	.poll = memory_poll,
	.busy = memory_busy,
	.wait_fd = memory_wait_fd,
	.wake = memory_wake,
	.listen = gw_memory_listen,
	.listener_stop = gw_memory_listener_stop,
	.listener_drain = gw_memory_listener_drain,
	.listener_free = gw_memory_listener_free,
};
