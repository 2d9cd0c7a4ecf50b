/* Posts ops, and recovers from lost connections: see link.h for the states, and link_connect.h for how it connects. */
#include "client/link/link.h"

#include <string.h>

#include "client/link/away.h"
#include "client/link/link_trace.h"
#include "client/link/op_end.h"
#include "client/link/upgrade.h"
#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/system/clock.h"

static void read_completed(struct gw_event *event, const struct gw_completion *completion);
static void link_region_opened(struct gw_event *event, const struct gw_completion *completion);

gw_status gw_link_init(struct gw_link *link, struct gw_engine *engine, struct gw_remote *server)
{
	memset(link, 0, sizeof(*link));
	gw_link_connect_init(link);
	link->region_opened.fire = link_region_opened;
	link->engine = engine;
	link->server = server;
	link->tail = &link->head;
	link->expiry_ns = GW_NO_DEADLINE;
	link->scheme = GW_SCHEME_TCP;
	return gw_deadlines_join(&engine->timers, &link->timer);
}

static const struct gw_region *link_region(const struct gw_link *link, const struct gw_link_op *op)
{
	if (op->generation)
		return gw_endpoint_region(link->endpoint, op->region, op->generation);
	const struct gw_peer *peer = &link->endpoint->peer;
	return op->region < peer->region_count ? &peer->regions[op->region] : NULL;
}

static void link_region_opened(struct gw_event *event, const struct gw_completion *completion)
{
	struct gw_link *link = (struct gw_link *)((char *)event - offsetof(struct gw_link, region_opened));
	link->opens_region = false;
	/* callers check the region again; if this transport cannot read it, the check fails at once */
	(void)completion;
}

bool gw_link_can_read(struct gw_link *link, uint32_t region, uint32_t generation)
{
	if (link->state != GW_LINK_OPEN || !generation)
		return false;
	if (gw_endpoint_region(link->endpoint, region, generation))
		return true;
	if (!link->opens_region)
		link->opens_region =
			gw_endpoint_region_open(link->endpoint, region, generation, &link->region_opened) == GW_OK;
	return false;
}

/* GW_AGAIN: some of it is not posted yet. Any other failure ends the op. */
static gw_status link_post(struct gw_link *link, struct gw_link_op *op)
{
	if (!op->open) {
		op->set = (struct gw_read_set){.cookie = &op->event, .deadline_ns = op->deadline_ns};
		op->connection = link->connection;
	}
	if (op->form == GW_LINK_REQUEST) {
		if (op->once.sequence && !op->once.window)
			op->once.window = link->endpoint->peer.window;
		gw_status status = gw_endpoint_request(link->endpoint, op->call, &op->once, op->request,
						       op->request_bytes, op->deadline_ns, &op->event);
		op->open = status == GW_OK;
		return status;
	}

	const struct gw_region *region = link_region(link, op);
	/* The region was withdrawn. The transport still has reads of this op; it ends all of them. */
	if (!region && op->open && op->generation)
		region = &op->dynamic;
	if (!region)
		return gw_fail(op->generation ? GW_NOT_FOUND : GW_PROTOCOL, "it has no region %u any more", op->region);
	if (op->generation && region != &op->dynamic)
		op->dynamic = *region;
	uint64_t left = op->count - op->posted;
	size_t accepted;
	if (op->form == GW_LINK_GATHER) {
		struct gw_gather part = op->gather;
		part.remote += op->posted;
		if (part.rows)
			part.rows += op->posted;
		else
			part.local += op->posted * part.stride;
		accepted = gw_endpoint_gather(link->endpoint, &op->set, region, op->buffer, &part, left, true);
	} else {
		accepted = gw_endpoint_readv(link->endpoint, &op->set, region, op->buffer, op->spans + op->posted, left,
					     true);
	}
	/* If the transport accepted no read of the set, the set still belongs to the link, and the op is not open. */
	op->open = op->open || accepted > 0 || left == 0;
	op->posted += accepted;
	return accepted == left ? GW_OK : GW_AGAIN;
}

/* The op is not open. */
static void end_op(struct gw_link *link, struct gw_link_op *op, gw_status status, const char *text)
{
	if (op->queued)
		gw_link_dequeue(link, op);
	gw_fail_text(status, text);
	gw_link_op_end(link, op, status, NULL);
}

/* With this thread's error text, preceded by the server's name. */
static void link_fail_op(struct gw_link *link, struct gw_link_op *op, gw_status status)
{
	char text[GW_ERROR_TEXT_MAX];
	gw_link_name(link, gw_last_error(), text);
	end_op(link, op, status, text);
}

static void fail_deadline(struct gw_link *link, struct gw_link_op *op)
{
	gw_fail(GW_DEADLINE, "not done within the operation's deadline of %lld ms",
		(long long)link->engine->client->timeout_ms);
	link_fail_op(link, op, GW_DEADLINE);
}

static void link_pump(struct gw_link *link)
{
	while (link->head && link->state == GW_LINK_OPEN) {
		struct gw_link_op *op = link->head;
		if (op->open && op->connection != link->connection)
			return; /* the previous connection has not yet completed this op */
		gw_status status = link_post(link, op);
		if (status == GW_AGAIN)
			return;
		if (status == GW_OK)
			gw_link_dequeue(link, op);
		else
			link_fail_op(link, op, status);
	}
}

static void link_lose(struct gw_link *link, gw_status status, const char *reason)
{
	const struct gw_scheme *scheme = link->endpoint->transport->scheme;
	if (gw_trace_is_on())
		gw_link_trace_lost(link);
	if (scheme->rank > GW_RANK_FIRST && !scheme->local && !link->endpoint->moved)
		gw_upgrade_lost(&link->upgrade, scheme, gw_now_ns());
	gw_link_failed(link, status, link->endpoint->moved ? "the server has a successor" : reason);
}

/* The transport ends reads that are open. */
static void link_expire(struct gw_link *link, uint64_t now_ns)
{
	struct gw_link_op *op = link->head;
	link->expiry_ns = GW_NO_DEADLINE;
	while (op) {
		/* The deadline may have moved: another server of the operation may have been away. */
		if (!op->open)
			op->deadline_ns = gw_job_deadline(op->job, now_ns);
		if (op->open || now_ns < op->deadline_ns) {
			if (!op->open && op->deadline_ns < link->expiry_ns)
				link->expiry_ns = op->deadline_ns;
			op = op->next;
			continue;
		}
		fail_deadline(link, op);
		op = link->head; /* ending an op may remove others from the queue */
	}
}

/* Closes the connection if nothing has used it for long. Returns when to look again. */
static uint64_t close_idle(struct gw_link *link, uint64_t now_ns)
{
	const uint64_t idle_ns = link->engine->client->idle_ns;
	if (!idle_ns || link->state != GW_LINK_OPEN || link->mapped)
		return GW_NO_DEADLINE;
	if (link->ops_open || link->opens_region || link->upgrade.step != GW_UPGRADE_IDLE || link->upgrade.open)
		link->used_ns = now_ns;
	uint64_t due_ns = gw_later_ns(link->used_ns, idle_ns);
	if (now_ns < due_ns)
		return due_ns;
	gw_endpoint_goodbye(link->endpoint);
	gw_link_close(link);
	return GW_NO_DEADLINE;
}

/* Returns when the link's next timer is due. */
static uint64_t link_tick(struct gw_link *link, uint64_t now_ns)
{
	uint64_t log_ns = GW_NO_DEADLINE;
	/* The server of this mapped memory has ended while no read was open. Unmap the memory now: the kernel frees it
	 * with its last mapping, and the server may need it to restart. */
	if (link->mapped && link->endpoint->state == GW_ENDPOINT_LOST)
		link_lose(link, GW_PEER_LOST, "the connection was lost");
	if (!link->head)
		return close_idle(link, now_ns);
	if (link->state != GW_LINK_OPEN)
		log_ns = gw_link_log_away(link, now_ns, link->engine->client->reconnect_ms);
	if (link->state == GW_LINK_CONNECTING || link->state == GW_LINK_CHECKING || link->state == GW_LINK_UPGRADING)
		return log_ns;
	if (link->state == GW_LINK_OPEN) {
		link_pump(link);
		if (now_ns >= link->expiry_ns)
			link_expire(link, now_ns);
		uint64_t idle_ns = close_idle(link, now_ns);
		return link->head && link->expiry_ns < idle_ns ? link->expiry_ns : idle_ns;
	}
	if (link->state == GW_LINK_WAITING) {
		uint64_t end = gw_link_budget_end(link, link->away_ns);
		if (gw_link_give_up_if_overdue(link, now_ns))
			return GW_NO_DEADLINE;
		if (now_ns < link->retry_ns) {
			end = link->retry_ns < end ? link->retry_ns : end;
			return log_ns < end ? log_ns : end;
		}
	}
	gw_link_open(link);
	return log_ns;
}

static void links_wake(struct gw_engine *engine, uint64_t now_ns)
{
	struct gw_deadline *due;
	while ((due = gw_deadlines_take(&engine->timers, now_ns)))
		gw_link_tick_soon((struct gw_link *)((char *)due - offsetof(struct gw_link, timer)));
	uint64_t news = gw_poll_group_news(engine->group);
	if (news == engine->news_seen)
		return;
	engine->news_seen = news;
	for (struct gw_link *link = engine->listening; link; link = link->next_listening) {
		link->listens = false;
		gw_link_tick_soon(link);
	}
	engine->listening = NULL;
	for (struct gw_link *link = engine->mapped; link; link = link->next_mapped)
		if (link->endpoint->state == GW_ENDPOINT_LOST)
			gw_link_tick_soon(link);
}

uint64_t gw_links_tick(struct gw_engine *engine, uint64_t now_ns)
{
	links_wake(engine, now_ns);
	struct gw_link *link = engine->ticking, *next;
	engine->ticking = NULL;
	for (; link; link = next) {
		next = link->next_ticking;
		link->ticks = false;
		uint64_t timer_ns = link_tick(link, now_ns);
		if (timer_ns != GW_NO_DEADLINE)
			gw_deadlines_set(&engine->timers, &link->timer, timer_ns);
		if (!link->listens && link->head && link->state == GW_LINK_OPEN) {
			link->listens = true;
			link->next_listening = engine->listening;
			engine->listening = link;
		}
	}
	/* Links whose state changed meanwhile are looked at by the next run, which must not wait. */
	return engine->ticking ? now_ns : gw_deadlines_first(&engine->timers);
}

void gw_link_post(struct gw_link *link, struct gw_link_op *op)
{
	op->event.fire = read_completed;
	op->begun_ns = gw_now_ns();
	op->link = link;
	link->used_ns = op->begun_ns;
	link->ops_open++;
	op->posted = 0;
	op->lost_ns = 0;
	op->open = false;
	op->cancelled = false;
	op->away = false;
	op->traced = gw_trace_is_on() ? gw_link_trace_op(op) : 0;
	/* No op has waited until now. So this read gets a full budget and a short retry pause, however long the server
	 * was away before. */
	if (!link->head && link->away_ns) {
		link->away_ns = gw_now_ns();
		link->lasting_ns = 0;
		if (link->retry_ns > link->away_ns + GW_BACKOFF_MIN_NS)
			link->retry_ns = link->away_ns + GW_BACKOFF_MIN_NS;
	}
	gw_link_enqueue(link, op);
	if (link->state == GW_LINK_OPEN && link->upgrade.retry_ns != GW_NO_DEADLINE)
		gw_upgrade_again(link);
	if (link->state == GW_LINK_OPEN)
		link_pump(link);
	else if (link->state == GW_LINK_DOWN)
		gw_link_open(link);
	if (link->head)
		gw_link_tick_soon(link);
}

/* Whether the completion only reports a lost connection, and no error of the op. */
static bool is_loss(const struct gw_link_op *op, gw_status status)
{
	return status == GW_PEER_LOST || status == GW_STALE || (status == GW_CANCELLED && !op->cancelled);
}

/* The connection of this op was lost. The op waits for the next connection, unless its reconnect budget has ended. */
static void op_lost(struct gw_link *link, struct gw_link_op *op, const struct gw_completion *completion)
{
	uint64_t now = gw_now_ns();
	if (link->state == GW_LINK_OPEN && op->connection == link->connection &&
	    (link->endpoint->state == GW_ENDPOINT_LOST || completion->status == GW_STALE))
		link_lose(link, completion->status, completion->text);
	if (op->cancelled) {
		end_op(link, op, GW_CANCELLED, "cancelled");
		return;
	}
	if (link->state == GW_LINK_DOWN) { /* the link has given up meanwhile */
		end_op(link, op, link->failure, link->reason);
		return;
	}
	if (!op->lost_ns)
		op->lost_ns = now;
	if (now >= gw_link_budget_end(link, op->lost_ns)) {
		gw_fail(GW_PEER_LOST, "%s; lost repeatedly during the reconnect budget of %lld ms",
			*completion->text ? completion->text : gw_status_text(completion->status),
			(long long)link->engine->client->reconnect_ms);
		link_fail_op(link, op, GW_PEER_LOST);
		return;
	}
	op->posted = 0;
	if (!op->queued)
		gw_link_enqueue(link, op);
	gw_link_tick_soon(link);
}

static bool is_torn(const struct gw_link_op *op, gw_status status)
{
	return status == GW_AGAIN && op->form == GW_LINK_GATHER && op->generation;
}

/* Transports report these statuses for the state of a connection. If the server itself sends one over a live
 * connection, that is a protocol error. Otherwise the client would retry for ever, or a caller would take GW_END for
 * the end of an epoch. */
static bool is_invalid_answer(const struct gw_link *link, const struct gw_link_op *op, gw_status status)
{
	if (status == GW_AGAIN || status == GW_END)
		return !is_torn(op, status);
	return (status == GW_PEER_LOST || status == GW_CANCELLED) && !op->cancelled && link->state == GW_LINK_OPEN &&
	       op->connection == link->connection && link->endpoint->state == GW_ENDPOINT_OPEN;
}

static void read_completed(struct gw_event *event, const struct gw_completion *completion)
{
	struct gw_link_op *op = (struct gw_link_op *)event;
	struct gw_link *link = op->link;
	gw_status status = completion->status;
	op->open = false;
	if (is_invalid_answer(link, op, status)) {
		gw_fail(GW_PROTOCOL, "it answered \"%s\", which is not a valid reply: %s", gw_status_text(status),
			completion->text);
		link_fail_op(link, op, GW_PROTOCOL);
		return;
	}
	if (is_loss(op, status)) {
		op_lost(link, op, completion);
		return;
	}
	if (status == GW_DEADLINE) {
		fail_deadline(link, op);
		return;
	}
	if (status != GW_OK && !is_torn(op, status)) {
		gw_fail_text(status, *completion->text ? completion->text : gw_status_text(status));
		link_fail_op(link, op, status);
		return;
	}
	link->backoff_ns = 0;
	if (op->queued)
		gw_link_dequeue(link, op);
	gw_link_op_end(link, op, status, op->form == GW_LINK_REQUEST || status != GW_OK ? completion : NULL);
}

void gw_link_cancel(struct gw_link_op *op)
{
	struct gw_link *link = op->link;
	op->cancelled = true;
	if (!op->open) {
		end_op(link, op, GW_CANCELLED, "cancelled");
		return;
	}
	/* If the op is open on a closed connection, its completion arrives without a cancel. */
	if (!link->endpoint || op->connection != link->connection)
		return;
	if (op->form == GW_LINK_REQUEST)
		gw_endpoint_request_cancel(link->endpoint, &op->event);
	else
		gw_endpoint_cancel(link->endpoint, &op->set);
}
