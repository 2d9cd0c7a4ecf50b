/* Connecting, posting, losing and finding again: see link.h for the states. */
#include "client/link.h"

#include <string.h>

#include "client/away.h"
#include "client/client.h"
#include "client/local_lists.h"
#include "core/base/clock.h"
#include "core/base/list.h"
#include "core/base/log.h"
#include "protocol/ops.h"

#define CHECK_NS        (10000 * GW_NS_PER_MS) /* how long a server may take for its catalog */
#define PATIENCE_MIN_NS (1000 * GW_NS_PER_MS)
#define PATIENCE_MAX_NS (10000 * GW_NS_PER_MS)

static void link_connected(struct gw_event *event, const struct gw_completion *completion);
static void link_checked(struct gw_event *event, const struct gw_completion *completion);
static void read_completed(struct gw_event *event, const struct gw_completion *completion);

void gw_link_init(struct gw_link *link, struct gw_engine *engine, struct gw_remote *server)
{
	memset(link, 0, sizeof(*link));
	link->connected.fire = link_connected;
	link->checked.fire = link_checked;
	gw_upgrade_init(&link->upgrade);
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
	gw_upgrade_stop(&link->upgrade);
	link->mapped = false;
	gw_local_lists_free(link);
}

void gw_link_close(struct gw_link *link)
{
	endpoints_close(link);
	link->state = GW_LINK_DOWN;
}

void gw_link_dequeue(struct gw_link *link, struct gw_link_op *read)
{
	GW_QUEUE_REMOVE(link->head, link->tail, read, next);
	read->queued = false;
	if (read->away) {
		read->away = false;
		gw_job_resume(read->job, gw_now_ns());
	}
}

void gw_read_stop_clock(struct gw_link_op *read, uint64_t now_ns)
{
	if (read->away)
		return;
	read->away = true;
	read->deadline_ns = GW_NO_DEADLINE;
	gw_job_pause(read->job, now_ns);
}

/* The server of a queued read is there. */
static void start_clock(struct gw_link *link, struct gw_link_op *read, uint64_t now_ns)
{
	read->deadline_ns = gw_job_deadline(read->job, now_ns);
	if (read->away) {
		read->away = false;
		gw_job_resume(read->job, now_ns);
	}
	if (read->deadline_ns < link->expiry_ns)
		link->expiry_ns = read->deadline_ns;
}

static void link_enqueue(struct gw_link *link, struct gw_link_op *read)
{
	read->next = NULL;
	read->queued = true;
	*link->tail = read;
	link->tail = &read->next;
	if (link->state == GW_LINK_OPEN)
		start_clock(link, read, gw_now_ns());
	else
		gw_read_stop_clock(read, gw_now_ns());
}

/* The key to offer: the given file's; else what is found, looked up each time since a server that starts anew makes a
 * new one. A server that has proved a key once has one. */
static gw_status set_key(struct gw_link *link, struct gw_connect_options *options)
{
	struct gw_remote *server = link->server;
	if (server->key_bytes) {
		options->key = server->key;
		options->key_bytes = server->key_bytes;
		return GW_OK;
	}
	bool insecure = link->engine->client->insecure && !atomic_load(&server->proved);
	return gw_key_choose(options, insecure, link->key);
}

uint64_t gw_link_patience_ns(const struct gw_client *client)
{
	uint64_t third = (uint64_t)client->timeout_ms * GW_NS_PER_MS / 3;
	if (client->timeout_ms < 0 || third > PATIENCE_MAX_NS)
		return PATIENCE_MAX_NS;
	return third > PATIENCE_MIN_NS ? third : PATIENCE_MIN_NS;
}

gw_status gw_link_connect_options(struct gw_link *link, uint64_t deadline_ns, struct gw_connect_options *options)
{
	struct gw_client *client = link->engine->client;
	*options = (struct gw_connect_options){.address = link->server->address,
					       .graph_id = client->graph_id,
					       .deadline_ns = deadline_ns,
					       .liveness_ns = gw_link_patience_ns(client)};
	uint64_t end = gw_link_budget_end(link, link->away_ns);
	if (link->head && end < options->deadline_ns)
		options->deadline_ns = end;
	memcpy(options->client_uuid, client->uuid, sizeof(options->client_uuid));
	/* Each engine is a client of its own to the server: its requests are numbered apart. */
	options->client_uuid[15] ^= (uint8_t)link->engine->number;
	return set_key(link, options);
}

void gw_link_open(struct gw_link *link)
{
	if (link->state != GW_LINK_DOWN && link->state != GW_LINK_WAITING)
		return;
	if (!link->away_ns)
		link->away_ns = gw_now_ns();
	struct gw_connect_options options;
	link->state = GW_LINK_CONNECTING;
	link->attempts++;
	link->connection++;
	gw_status status = gw_link_connect_options(link, gw_deadline_ns(link->engine->client->timeout_ms), &options);
	if (status == GW_OK)
		status = gw_endpoint_connect(link->engine->group, &options, &link->connected, &link->endpoint);
	link->offered_key = status == GW_OK && options.key;
	if (status != GW_OK)
		gw_link_failed(link, status, gw_last_error());
}

static void link_ready(struct gw_link *link)
{
	gw_link_tell_back(link);
	link->state = GW_LINK_OPEN;
	link->ever_open = true;
	link->mapped = is_reached_by(link, "shm");
	link->one_sided = link->endpoint->transport->one_sided;
	if (is_reached_by(link, "verbs"))
		atomic_store(&link->engine->watches, true);
	link->incarnation = link->endpoint->peer.incarnation;
	link->failure = GW_OK;
	link->away_ns = link->unmended_ns = 0;
	link->attempts = 0;
	/* The backoff stays until the server has answered something: one that dies of every read is not hurried. */
	uint64_t now = gw_now_ns();
	for (struct gw_link_op *read = link->head; read; read = read->next)
		start_clock(link, read, now);
}

/* Notes how the server is reached, and says it, and why, when that is new. */
static void tell_way(struct gw_link *link)
{
	struct gw_remote *server = link->server;
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
		       link->upgrade.reason);
}

/* The server is connected, and known: is there a better way to it? */
static void link_upgrade(struct gw_link *link)
{
	enum gw_client_transport transport = link->engine->client->transport;
	if (transport == GW_REACH_TCP || strcmp(link->server->address.scheme, "tcp") != 0) {
		link->upgrade.retry_ns = GW_NO_DEADLINE;
		atomic_store(&link->server->way, link->endpoint->transport->name);
		link_ready(link);
		return;
	}
	link->state = GW_LINK_UPGRADING;
	/* Who opens a client hears which way it has found; reads that wait are not kept waiting for RDMA. */
	gw_upgrade_begin(link, !link->ever_open || transport == GW_REACH_VERBS);
}

void gw_link_upgraded(struct gw_link *link, struct gw_endpoint *better, gw_status status)
{
	enum gw_client_transport transport = link->engine->client->transport;
	bool was_open = link->state == GW_LINK_OPEN;
	if (!better && (transport == GW_REACH_SHM || transport == GW_REACH_VERBS)) {
		gw_link_failed(link, status, link->upgrade.reason);
		return;
	}
	if (better) {
		/* What is open is read again by the new way. */
		gw_endpoint_close(link->endpoint);
		link->endpoint = better;
		link->upgrade.retry_ns = GW_NO_DEADLINE;
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
		gw_link_failed(link, completion->status, completion->text);
		return;
	}
	struct gw_remote *server = link->server;
	uint64_t incarnation = link->endpoint->peer.incarnation;
	if (link->offered_key) /* and accepted the server's proof */
		atomic_store(&server->proved, true);
	if (server->known && (incarnation == server->incarnation || incarnation == link->incarnation)) {
		link_upgrade(link);
		return;
	}
	link->state = GW_LINK_CHECKING;
	uint64_t deadline = gw_now_ns() + CHECK_NS, end = gw_link_budget_end(link, link->away_ns);
	if (link->head && end < deadline)
		deadline = end;
	gw_status status = gw_endpoint_request(link->endpoint, GW_OP_CATALOG, 0, NULL, 0, deadline, &link->checked);
	if (status != GW_OK)
		gw_link_failed(link, status, gw_last_error());
}

static void link_checked(struct gw_event *event, const struct gw_completion *completion)
{
	struct gw_link *link = (struct gw_link *)((char *)event - offsetof(struct gw_link, checked));
	if (link->state != GW_LINK_CHECKING)
		return;
	if (completion->status != GW_OK) {
		gw_link_failed(link, completion->status, completion->text);
		return;
	}
	gw_status status = gw_remote_check(link->server, link->endpoint, completion->reply, completion->reply_bytes);
	if (status != GW_OK)
		gw_link_failed(link, status, gw_last_error());
	else
		link_upgrade(link);
}

static const struct gw_region *link_region(const struct gw_link *link, uint32_t region)
{
	const struct gw_peer *peer = &link->endpoint->peer;
	return region < peer->region_count ? &peer->regions[region] : NULL;
}

/* Posts as much of a read as there is room for. GW_AGAIN: not all of it yet. Another failure is the read's end. */
static gw_status link_post(struct gw_link *link, struct gw_link_op *read)
{
	if (!read->open) {
		read->set = (struct gw_read_set){.cookie = &read->event, .deadline_ns = read->deadline_ns};
		read->connection = link->connection;
	}
	if (read->form == GW_LINK_REQUEST) {
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
	if (read->form == GW_LINK_GATHER) {
		struct gw_gather part = read->gather;
		part.remote += read->posted;
		if (part.rows)
			part.rows += read->posted;
		else
			part.local += read->posted * part.stride;
		accepted = gw_endpoint_gather(link->endpoint, &read->set, region, read->buffer, &part, left, true);
	} else {
		accepted = gw_endpoint_readv(link->endpoint, &read->set, region, read->buffer,
					     read->spans + read->posted, left, true);
	}
	/* A group of which nothing was accepted is ours still. */
	read->open = read->open || accepted > 0 || left == 0;
	read->posted += accepted;
	return accepted == left ? GW_OK : GW_AGAIN;
}

/* Ends a read that is not open with this text. */
static void end_read(struct gw_link *link, struct gw_link_op *read, gw_status status, const char *text)
{
	if (read->queued)
		gw_link_dequeue(link, read);
	gw_fail_text(status, text);
	read->done(read, status, NULL);
}

/* The same with the error text of this thread, the server named in front of it. */
static void link_fail_read(struct gw_link *link, struct gw_link_op *read, gw_status status)
{
	char text[GW_ERROR_TEXT_MAX];
	gw_link_name(link, gw_last_error(), text);
	end_read(link, read, status, text);
}

static void fail_late(struct gw_link *link, struct gw_link_op *read)
{
	gw_fail(GW_DEADLINE, "not done within the operation's deadline of %lld ms",
		(long long)link->engine->client->timeout_ms);
	link_fail_read(link, read, GW_DEADLINE);
}

static void link_pump(struct gw_link *link)
{
	while (link->head && link->state == GW_LINK_OPEN) {
		struct gw_link_op *read = link->head;
		if (read->open && read->connection != link->connection)
			return; /* the connection before this one has not let go of it yet */
		gw_status status = link_post(link, read);
		if (status == GW_AGAIN)
			return;
		if (status == GW_OK)
			gw_link_dequeue(link, read);
		else
			link_fail_read(link, read, status);
	}
}

/* Ends reads that have waited for room until their deadline. Those that are open the transport ends. */
static void link_expire(struct gw_link *link, uint64_t now_ns)
{
	struct gw_link_op *read = link->head;
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
	if (!link->head)
		return GW_NO_DEADLINE;
	if (link->state != GW_LINK_OPEN)
		gw_link_tell_away(link, now_ns, link->engine->client->reconnect_ms);
	if (link->state == GW_LINK_CONNECTING || link->state == GW_LINK_CHECKING || link->state == GW_LINK_UPGRADING)
		return GW_NO_DEADLINE;
	if (link->state == GW_LINK_OPEN) {
		link_pump(link);
		if (now_ns >= link->expiry_ns)
			link_expire(link, now_ns);
		return link->head ? link->expiry_ns : GW_NO_DEADLINE;
	}
	if (link->state == GW_LINK_WAITING) {
		uint64_t end = gw_link_budget_end(link, link->away_ns);
		if (gw_link_overdue(link, now_ns))
			return GW_NO_DEADLINE;
		if (now_ns < link->retry_ns)
			return link->retry_ns < end ? link->retry_ns : end;
	}
	gw_link_open(link);
	return link->state == GW_LINK_WAITING ? link->retry_ns : GW_NO_DEADLINE;
}

void gw_link_post(struct gw_link *link, struct gw_link_op *read)
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
		if (link->retry_ns > link->away_ns + GW_BACKOFF_MIN_NS)
			link->retry_ns = link->away_ns + GW_BACKOFF_MIN_NS;
	}
	link_enqueue(link, read);
	if (link->state == GW_LINK_OPEN && link->upgrade.retry_ns != GW_NO_DEADLINE)
		gw_upgrade_again(link);
	if (link->state == GW_LINK_OPEN)
		link_pump(link);
	else if (link->state == GW_LINK_DOWN)
		gw_link_open(link);
}

/* A completion that only says that the connection is gone, not that the read is wrong. */
static bool is_loss(const struct gw_link_op *read, gw_status status)
{
	return status == GW_PEER_LOST || status == GW_STALE || (status == GW_CANCELLED && !read->cancelled);
}

static void link_lose(struct gw_link *link, gw_status status, const char *reason)
{
	if (is_reached_by(link, "verbs"))
		gw_upgrade_lost(&link->upgrade, gw_now_ns());
	gw_link_failed(link, status, reason);
}

/* A read whose connection was lost waits for the next one, unless that has gone on for too long. */
static void read_lost(struct gw_link *link, struct gw_link_op *read, const struct gw_completion *completion)
{
	uint64_t now = gw_now_ns();
	if (link->state == GW_LINK_OPEN && read->connection == link->connection &&
	    (link->endpoint->state == GW_ENDPOINT_LOST || completion->status == GW_STALE))
		link_lose(link, completion->status, completion->text);
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
	if (now >= gw_link_budget_end(link, read->lost_ns)) {
		gw_fail(GW_PEER_LOST, "%s; lost again and again for as long as the reconnect budget of %lld ms",
			*completion->text ? completion->text : gw_status_text(completion->status),
			(long long)link->engine->client->reconnect_ms);
		link_fail_read(link, read, GW_PEER_LOST);
		return;
	}
	read->posted = 0;
	if (!read->queued)
		link_enqueue(link, read);
}

/* Statuses that the transport gives when it has something to say about the connection. Of a connection that is there
 * they are the server's word, and no answer: believed, they would be asked again for ever, or look like the end of an
 * epoch. */
static bool is_no_answer(const struct gw_link *link, const struct gw_link_op *read, gw_status status)
{
	if (status == GW_AGAIN || status == GW_END)
		return true;
	return (status == GW_PEER_LOST || status == GW_CANCELLED) && !read->cancelled && link->state == GW_LINK_OPEN &&
	       read->connection == link->connection && link->endpoint->state == GW_ENDPOINT_OPEN;
}

static void read_completed(struct gw_event *event, const struct gw_completion *completion)
{
	struct gw_link_op *read = (struct gw_link_op *)event;
	struct gw_link *link = read->link;
	gw_status status = completion->status;
	read->open = false;
	if (is_no_answer(link, read, status)) {
		gw_fail(GW_PROTOCOL, "it answered \"%s\", which is no answer: %s", gw_status_text(status),
			completion->text);
		link_fail_read(link, read, GW_PROTOCOL);
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
		link_fail_read(link, read, status);
		return;
	}
	link->backoff_ns = 0;
	if (read->queued)
		gw_link_dequeue(link, read);
	read->done(read, GW_OK, read->form == GW_LINK_REQUEST ? completion : NULL);
}

void gw_link_cancel(struct gw_link_op *read)
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
	if (read->form == GW_LINK_REQUEST)
		gw_endpoint_request_cancel(link->endpoint, &read->event);
	else
		gw_endpoint_cancel(link->endpoint, &read->set);
}
