/* Connecting, posting, losing and finding again: see link.h for the states. */
#include "client/link.h"

#include <stdio.h>
#include <string.h>

#include "client/client.h"
#include "client/lists.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/rng.h"
#include "protocol/ops.h"

#define BACKOFF_MIN_NS (20 * GW_NS_PER_MS)
#define BACKOFF_MAX_NS (2000 * GW_NS_PER_MS)
#define CHECK_NS       (10000 * GW_NS_PER_MS) /* how long a server may take for its catalog */

static void link_connected(struct gw_event *event, const struct gw_completion *completion);
static void link_checked(struct gw_event *event, const struct gw_completion *completion);
static void read_completed(struct gw_event *event, const struct gw_completion *completion);

void gw_link_init(struct gw_link *link, struct gw_engine *engine, struct gw_server *server)
{
	memset(link, 0, sizeof(*link));
	link->connected.fire = link_connected;
	link->checked.fire = link_checked;
	gw_join_init(&link->join);
	link->engine = engine;
	link->server = server;
	link->tail = &link->head;
	link->expiry_ns = GW_NO_DEADLINE;
}

static bool is_reached_by(const struct gw_link *link, const char *transport)
{
	return strcmp(link->endpoint->transport->name, transport) == 0;
}

static void endpoints_close(struct gw_link *link)
{
	gw_endpoint_close(link->endpoint);
	link->endpoint = NULL;
	gw_join_stop(&link->join);
	link->mapped = false;
	gw_lists_free(link);
}

void gw_link_close(struct gw_link *link)
{
	endpoints_close(link);
	link->state = GW_LINK_DOWN;
}

static void dequeue(struct gw_link *link, struct gw_read *read)
{
	struct gw_read **at = &link->head;
	while (*at != read)
		at = &(*at)->next;
	*at = read->next;
	if (!*at)
		link->tail = at;
	read->queued = false;
	if (read->away) {
		read->away = false;
		gw_job_resume(read->job, gw_now_ns());
	}
}

/* The server of a queued read is away: its operation's time stands still. */
static void stop_clock(struct gw_read *read, uint64_t now_ns)
{
	if (read->away)
		return;
	read->away = true;
	read->deadline_ns = GW_NO_DEADLINE;
	gw_job_pause(read->job, now_ns);
}

/* The server of a queued read is there. */
static void start_clock(struct gw_link *link, struct gw_read *read, uint64_t now_ns)
{
	read->deadline_ns = gw_job_deadline(read->job, now_ns);
	if (read->away) {
		read->away = false;
		gw_job_resume(read->job, now_ns);
	}
	if (read->deadline_ns < link->expiry_ns)
		link->expiry_ns = read->deadline_ns;
}

static void enqueue(struct gw_link *link, struct gw_read *read)
{
	read->next = NULL;
	read->queued = true;
	*link->tail = read;
	link->tail = &read->next;
	if (link->state == GW_LINK_OPEN)
		start_clock(link, read, gw_now_ns());
	else
		stop_clock(read, gw_now_ns());
}

/* Fails every read that waits: the budget is used up, or trying again makes no sense. One that a closed connection has
 * not let go of yet fails when its completion comes. */
static void fail_queue(struct gw_link *link)
{
	while (link->head && link->state == GW_LINK_DOWN) {
		struct gw_read *read = link->head;
		dequeue(link, read);
		if (read->open)
			continue;
		gw_fail_text(link->failure, link->reason);
		read->done(read, link->failure, NULL);
	}
}

/* "server host:port: reason"; a transport's own text may begin with the address already. */
static void name_server(const struct gw_link *link, const char *reason, char text[GW_ERROR_TEXT_MAX])
{
	char address[GW_ADDRESS_MAX];
	gw_address_text(&link->server->address, address);
	if (strncmp(reason, address, strlen(address)) == 0)
		snprintf(text, GW_ERROR_TEXT_MAX, "server %s", reason);
	else
		snprintf(text, GW_ERROR_TEXT_MAX, "server %s: %s", address, reason);
}

/* Notes why the link is not open, and when to try again. */
static void link_lost(struct gw_link *link, gw_status status, const char *reason)
{
	uint64_t now = gw_now_ns();
	if (link->state == GW_LINK_OPEN && is_reached_by(link, "verbs"))
		gw_join_lost(&link->join, now);
	/* The reason may be the endpoint's. */
	name_server(link, reason && *reason ? reason : gw_status_text(status), link->reason);
	endpoints_close(link);
	if (!link->away_ns)
		link->away_ns = now;
	link->failure = status;
	link->state = GW_LINK_WAITING;
	for (struct gw_read *read = link->head; read; read = read->next)
		stop_clock(read, now);
	link->backoff_ns = link->backoff_ns ? link->backoff_ns * 2 : BACKOFF_MIN_NS;
	if (link->backoff_ns > BACKOFF_MAX_NS)
		link->backoff_ns = BACKOFF_MAX_NS;
	/* Not all clients of a server that was lost at the same moment come back at the same moment. */
	link->retry_ns = now + link->backoff_ns - gw_mix64(now ^ (uintptr_t)link) % (link->backoff_ns / 2);
	gw_log(GW_LOG_INFO, "%s; trying again in %llu ms", link->reason,
	       (unsigned long long)((link->retry_ns - now) / GW_NS_PER_MS));
}

/* Gives up: the reads that wait fail, and the next one starts afresh. */
static void link_give_up(struct gw_link *link)
{
	endpoints_close(link);
	link->state = GW_LINK_DOWN;
	link->away_ns = 0;
	link->backoff_ns = 0;
	fail_queue(link);
}

/* Another graph or version does not become right by waiting. */
static bool is_final(gw_status status)
{
	return status == GW_WRONG_GRAPH || status == GW_VERSION || status == GW_UNSUPPORTED || status == GW_INVALID;
}

/* When the reconnect budget of those who wait is used up. */
static uint64_t budget_end(const struct gw_link *link, uint64_t since_ns)
{
	int64_t budget_ms = link->engine->client->reconnect_ms;
	if (budget_ms < 0 || (uint64_t)budget_ms > (GW_NO_DEADLINE - since_ns) / GW_NS_PER_MS)
		return GW_NO_DEADLINE;
	return since_ns + (uint64_t)budget_ms * GW_NS_PER_MS;
}

static void link_failed(struct gw_link *link, gw_status status, const char *reason)
{
	link_lost(link, status, reason);
	if (is_final(status))
		link_give_up(link);
}

/* The key to offer: the given file's; else, on loopback, what the server left in the runtime folder, looked up each
 * time since a server that starts anew makes a new one. */
static void set_key(struct gw_link *link, struct gw_connect_options *options)
{
	const struct gw_server *server = link->server;
	if (server->key_bytes) {
		options->key = server->key;
		options->key_bytes = server->key_bytes;
	} else if (strcmp(server->address.scheme, "memory") != 0 && gw_address_is_loopback(&server->address) &&
		   gw_key_find(server->address.port, link->key) == GW_OK) {
		options->key = link->key;
		options->key_bytes = GW_KEY_BYTES;
	}
}

struct gw_connect_options gw_link_connect_options(struct gw_link *link, uint64_t deadline_ns)
{
	struct gw_client *client = link->engine->client;
	struct gw_connect_options options = {
		.address = link->server->address, .graph_id = client->graph_id, .deadline_ns = deadline_ns};
	uint64_t end = budget_end(link, link->away_ns);
	if (link->head && end < options.deadline_ns)
		options.deadline_ns = end;
	set_key(link, &options);
	memcpy(options.client_uuid, client->uuid, sizeof(options.client_uuid));
	/* Each engine is a client of its own to the server: its requests are numbered apart. */
	options.client_uuid[15] ^= (uint8_t)link->engine->number;
	return options;
}

void gw_link_open(struct gw_link *link)
{
	if (link->state != GW_LINK_DOWN && link->state != GW_LINK_WAITING)
		return;
	if (!link->away_ns)
		link->away_ns = gw_now_ns();
	struct gw_connect_options options =
		gw_link_connect_options(link, gw_deadline_ns(link->engine->client->timeout_ms));
	link->state = GW_LINK_CONNECTING;
	link->attempts++;
	link->connection++;
	gw_status status = gw_endpoint_connect(link->engine->group, &options, &link->connected, &link->endpoint);
	if (status != GW_OK)
		link_failed(link, status, gw_last_error());
}

static void link_ready(struct gw_link *link)
{
	if (link->failure)
		gw_log(GW_LOG_INFO, "server of part %u is back after %llu ms", link->server->part,
		       (unsigned long long)((gw_now_ns() - link->away_ns) / GW_NS_PER_MS));
	link->state = GW_LINK_OPEN;
	link->ever_open = true;
	link->mapped = is_reached_by(link, "shm");
	link->one_sided = link->endpoint->transport->one_sided;
	if (is_reached_by(link, "verbs"))
		atomic_store(&link->engine->watches, true);
	link->incarnation = link->endpoint->peer.incarnation;
	link->failure = GW_OK;
	link->away_ns = 0;
	link->attempts = 0;
	/* The backoff stays until the server has answered something: one that dies of every read is not hurried. */
	uint64_t now = gw_now_ns();
	for (struct gw_read *read = link->head; read; read = read->next)
		start_clock(link, read, now);
}

/* Notes how the server is reached, and says it, and why, when that is new. */
static void tell_way(struct gw_link *link)
{
	struct gw_server *server = link->server;
	char address[GW_ADDRESS_MAX];
	const char *way = link->endpoint->transport->name;
	if (atomic_exchange(&server->way, way) == way)
		return;
	gw_address_text(&server->address, address);
	if (is_reached_by(link, "shm"))
		gw_log(GW_LOG_INFO, "part %u is mapped from the memory of %s, which is on this host", server->part,
		       address);
	else if (is_reached_by(link, "verbs"))
		gw_log(GW_LOG_INFO, "part %u is read by RDMA from %s", server->part, address);
	else
		gw_log(GW_LOG_INFO, "part %u is read over %s from %s: %s", server->part, way, address,
		       link->join.reason);
}

/* The server is connected, and known: is there a better way to it? */
static void link_join(struct gw_link *link)
{
	enum gw_client_transport transport = link->engine->client->transport;
	if (transport == GW_REACH_TCP || strcmp(link->server->address.scheme, "tcp") != 0) {
		link->join.retry_ns = GW_NO_DEADLINE;
		atomic_store(&link->server->way, link->endpoint->transport->name);
		link_ready(link);
		return;
	}
	link->state = GW_LINK_JOINING;
	/* Who opens a client hears which way it has found; reads that wait are not kept waiting for RDMA. */
	gw_join_begin(link, !link->ever_open || transport == GW_REACH_VERBS);
}

void gw_link_joined(struct gw_link *link, struct gw_endpoint *better, gw_status status)
{
	enum gw_client_transport transport = link->engine->client->transport;
	bool was_open = link->state == GW_LINK_OPEN;
	if (!better && (transport == GW_REACH_SHM || transport == GW_REACH_VERBS)) {
		link_failed(link, status, link->join.reason);
		return;
	}
	if (better) {
		/* What is open is read again by the new way. */
		gw_endpoint_close(link->endpoint);
		link->endpoint = better;
		link->join.retry_ns = GW_NO_DEADLINE;
		if (was_open)
			link->connection++;
	}
	if (better || !was_open) {
		tell_way(link);
		link_ready(link);
	}
}

static void link_connected(struct gw_event *event, const struct gw_completion *completion)
{
	struct gw_link *link = (struct gw_link *)event;
	if (link->state != GW_LINK_CONNECTING)
		return; /* an older attempt's */
	if (completion->status != GW_OK) {
		link_failed(link, completion->status, completion->text);
		return;
	}
	struct gw_server *server = link->server;
	uint64_t incarnation = link->endpoint->peer.incarnation;
	if (server->known && (incarnation == server->incarnation || incarnation == link->incarnation)) {
		link_join(link);
		return;
	}
	link->state = GW_LINK_CHECKING;
	uint64_t deadline = gw_now_ns() + CHECK_NS, end = budget_end(link, link->away_ns);
	if (link->head && end < deadline)
		deadline = end;
	gw_status status = gw_endpoint_request(link->endpoint, GW_OP_CATALOG, 0, NULL, 0, deadline, &link->checked);
	if (status != GW_OK)
		link_failed(link, status, gw_last_error());
}

static void link_checked(struct gw_event *event, const struct gw_completion *completion)
{
	struct gw_link *link = (struct gw_link *)((char *)event - offsetof(struct gw_link, checked));
	if (link->state != GW_LINK_CHECKING)
		return;
	if (completion->status != GW_OK) {
		link_failed(link, completion->status, completion->text);
		return;
	}
	gw_status status = gw_server_check(link->server, link->endpoint, completion->reply, completion->reply_bytes);
	if (status != GW_OK)
		link_failed(link, status, gw_last_error());
	else
		link_join(link);
}

static const struct gw_region *link_region(const struct gw_link *link, uint32_t region)
{
	const struct gw_peer *peer = &link->endpoint->peer;
	return region < peer->region_count ? &peer->regions[region] : NULL;
}

/* Posts as much of a read as there is room for. GW_AGAIN: not all of it yet. Another failure is the read's end. */
static gw_status post(struct gw_link *link, struct gw_read *read)
{
	if (!read->open) {
		read->group = (struct gw_group){.cookie = &read->event, .deadline_ns = read->deadline_ns};
		read->connection = link->connection;
	}
	if (read->form == GW_READ_REQUEST) {
		gw_status status = gw_endpoint_request(link->endpoint, read->op, 0, read->request, read->request_bytes,
						       read->deadline_ns, &read->event);
		read->open = status == GW_OK;
		return status;
	}

	const struct gw_region *region = link_region(link, read->region);
	if (!region)
		return gw_fail(GW_PROTOCOL, "it has no region %u any more", read->region);
	uint64_t left = read->count - read->posted;
	size_t accepted;
	if (read->form == GW_READ_GATHER) {
		struct gw_gather part = read->gather;
		part.remote += read->posted;
		if (part.rows)
			part.rows += read->posted;
		else
			part.local += read->posted * part.stride;
		accepted = gw_endpoint_gather(link->endpoint, &read->group, region, read->buffer, &part, left, true);
	} else {
		accepted = gw_endpoint_readv(link->endpoint, &read->group, region, read->buffer,
					     read->spans + read->posted, left, true);
	}
	/* A group of which nothing was accepted is ours still. */
	read->open = read->open || accepted > 0 || left == 0;
	read->posted += accepted;
	return accepted == left ? GW_OK : GW_AGAIN;
}

/* Ends a read that is not open with this text. */
static void end_read(struct gw_link *link, struct gw_read *read, gw_status status, const char *text)
{
	if (read->queued)
		dequeue(link, read);
	gw_fail_text(status, text);
	read->done(read, status, NULL);
}

/* The same with the error text of this thread, the server named in front of it. */
static void fail_read(struct gw_link *link, struct gw_read *read, gw_status status)
{
	char text[GW_ERROR_TEXT_MAX];
	name_server(link, gw_last_error(), text);
	end_read(link, read, status, text);
}

static void fail_late(struct gw_link *link, struct gw_read *read)
{
	gw_fail(GW_DEADLINE, "not done within the operation's deadline of %lld ms",
		(long long)link->engine->client->timeout_ms);
	fail_read(link, read, GW_DEADLINE);
}

static void link_pump(struct gw_link *link)
{
	while (link->head && link->state == GW_LINK_OPEN) {
		struct gw_read *read = link->head;
		if (read->open && read->connection != link->connection)
			return; /* the connection before this one has not let go of it yet */
		gw_status status = post(link, read);
		if (status == GW_AGAIN)
			return;
		if (status == GW_OK)
			dequeue(link, read);
		else
			fail_read(link, read, status);
	}
}

/* Ends reads that have waited for room until their deadline. Those that are open the transport ends. */
static void expire(struct gw_link *link, uint64_t now_ns)
{
	struct gw_read *read = link->head;
	link->expiry_ns = GW_NO_DEADLINE;
	while (read) {
		/* Another server of its operation may have been away meanwhile. */
		if (!read->open)
			read->deadline_ns = gw_job_deadline(read->job, now_ns);
		if (read->open || now_ns < read->deadline_ns) {
			if (!read->open && read->deadline_ns < link->expiry_ns)
				link->expiry_ns = read->deadline_ns;
			read = read->next;
			continue;
		}
		fail_late(link, read);
		read = link->head; /* others may have gone with it */
	}
}

uint64_t gw_link_tick(struct gw_link *link, uint64_t now_ns)
{
	if (!link->head || link->state == GW_LINK_CONNECTING || link->state == GW_LINK_CHECKING ||
	    link->state == GW_LINK_JOINING)
		return GW_NO_DEADLINE;
	if (link->state == GW_LINK_OPEN) {
		link_pump(link);
		if (now_ns >= link->expiry_ns)
			expire(link, now_ns);
		return link->head ? link->expiry_ns : GW_NO_DEADLINE;
	}
	if (link->state == GW_LINK_WAITING) {
		uint64_t end = budget_end(link, link->away_ns);
		if (now_ns >= end) {
			size_t used = strlen(link->reason);
			snprintf(link->reason + used, sizeof(link->reason) - used,
				 "; not back within the reconnect budget of %lld ms",
				 (long long)link->engine->client->reconnect_ms);
			if (link->failure == GW_DEADLINE) /* of a connect, not of the operation */
				link->failure = GW_PEER_LOST;
			link_give_up(link);
			return GW_NO_DEADLINE;
		}
		if (now_ns < link->retry_ns)
			return link->retry_ns < end ? link->retry_ns : end;
	}
	gw_link_open(link);
	return link->state == GW_LINK_WAITING ? link->retry_ns : GW_NO_DEADLINE;
}

void gw_link_post(struct gw_link *link, struct gw_read *read)
{
	read->event.fire = read_completed;
	read->link = link;
	read->posted = 0;
	read->lost_ns = 0;
	read->open = false;
	read->cancelled = false;
	read->away = false;
	/* Nobody waited: what the link has been away until now, and how rarely it was tried, is not on this read's
	 * account. */
	if (!link->head && link->away_ns) {
		link->away_ns = gw_now_ns();
		if (link->retry_ns > link->away_ns + BACKOFF_MIN_NS)
			link->retry_ns = link->away_ns + BACKOFF_MIN_NS;
	}
	enqueue(link, read);
	if (link->state == GW_LINK_OPEN && link->join.retry_ns != GW_NO_DEADLINE)
		gw_join_again(link);
	if (link->state == GW_LINK_OPEN)
		link_pump(link);
	else if (link->state == GW_LINK_DOWN)
		gw_link_open(link);
}

/* A completion that only says that the connection is gone, not that the read is wrong. */
static bool is_loss(const struct gw_read *read, gw_status status)
{
	return status == GW_PEER_LOST || status == GW_STALE || (status == GW_CANCELLED && !read->cancelled);
}

/* A read whose connection was lost waits for the next one, unless that has gone on for too long. */
static void read_lost(struct gw_link *link, struct gw_read *read, const struct gw_completion *completion)
{
	uint64_t now = gw_now_ns();
	if (link->state == GW_LINK_OPEN && read->connection == link->connection &&
	    (link->endpoint->state == GW_ENDPOINT_LOST || completion->status == GW_STALE))
		link_lost(link, completion->status, completion->text);
	if (read->cancelled) {
		end_read(link, read, GW_CANCELLED, "cancelled");
		return;
	}
	if (link->state == GW_LINK_DOWN) { /* given up meanwhile */
		end_read(link, read, link->failure, link->reason);
		return;
	}
	if (!read->lost_ns)
		read->lost_ns = now;
	if (now >= budget_end(link, read->lost_ns)) {
		gw_fail(GW_PEER_LOST, "%s; lost again and again for as long as the reconnect budget of %lld ms",
			*completion->text ? completion->text : gw_status_text(completion->status),
			(long long)link->engine->client->reconnect_ms);
		fail_read(link, read, GW_PEER_LOST);
		return;
	}
	read->posted = 0;
	if (!read->queued)
		enqueue(link, read);
}

/* Statuses that the transport gives when it has something to say about the connection. Of a connection that is there
 * they are the server's word, and no answer: believed, they would be asked again for ever, or look like the end of an
 * epoch. */
static bool is_no_answer(const struct gw_link *link, const struct gw_read *read, gw_status status)
{
	if (status == GW_AGAIN || status == GW_END)
		return true;
	return (status == GW_PEER_LOST || status == GW_CANCELLED) && !read->cancelled && link->state == GW_LINK_OPEN &&
	       read->connection == link->connection && link->endpoint->state == GW_ENDPOINT_OPEN;
}

static void read_completed(struct gw_event *event, const struct gw_completion *completion)
{
	struct gw_read *read = (struct gw_read *)event;
	struct gw_link *link = read->link;
	gw_status status = completion->status;
	read->open = false;
	if (is_no_answer(link, read, status)) {
		gw_fail(GW_PROTOCOL, "it answered \"%s\", which is no answer: %s", gw_status_text(status),
			completion->text);
		fail_read(link, read, GW_PROTOCOL);
		return;
	}
	if (is_loss(read, status)) {
		read_lost(link, read, completion);
		return;
	}
	if (status == GW_DEADLINE) {
		fail_late(link, read);
		return;
	}
	if (status != GW_OK) {
		gw_fail_text(status, *completion->text ? completion->text : gw_status_text(status));
		fail_read(link, read, status);
		return;
	}
	link->backoff_ns = 0;
	if (read->queued)
		dequeue(link, read);
	read->done(read, GW_OK, read->form == GW_READ_REQUEST ? completion : NULL);
}

void gw_link_cancel(struct gw_read *read)
{
	struct gw_link *link = read->link;
	read->cancelled = true;
	if (!read->open) {
		end_read(link, read, GW_CANCELLED, "cancelled");
		return;
	}
	/* If it is open on a connection that is closed already, its completion is on the way. */
	if (!link->endpoint || read->connection != link->connection)
		return;
	if (read->form == GW_READ_REQUEST)
		gw_endpoint_request_cancel(link->endpoint, &read->event);
	else
		gw_endpoint_cancel(link->endpoint, &read->group);
}
