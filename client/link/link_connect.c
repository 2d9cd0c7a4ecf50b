/* See link_connect.h. Each step ends with the next one, or with gw_link_failed(). */
#include "client/link/link_connect.h"

#include "client/link/away.h"
#include "client/link/catalog.h"
#include "client/link/held_lists.h"
#include "client/link/link_trace.h"
#include "client/link/upgrade.h"
#include "core/errors/log.h"
#include "core/memory/alloc.h"
#include "core/memory/list.h"
#include "core/system/clock.h"
#include "protocol/ops.h"

#define CHECK_NS (10000 * GW_NS_PER_MS) /* how long a server may take to send its catalog */

static const struct gw_scheme *link_scheme(const struct gw_link *link)
{
	return link->endpoint->transport->scheme;
}

/* Another mapped server's lists serve as well. */
static void held_lists_drop(struct gw_link *link)
{
	struct gw_engine *engine = link->engine;
	if (!link->held)
		return;
	gw_held_lists_free(link->held);
	link->held = NULL;
	engine->lists_link = NULL;
	for (uint32_t i = 0; i < engine->client->server_count; i++) {
		if (engine->links[i].held && engine->links[i].state == GW_LINK_OPEN)
			engine->lists_link = &engine->links[i];
	}
}

static void endpoints_close(struct gw_link *link)
{
	held_lists_drop(link);
	gw_endpoint_close(link->endpoint);
	link->endpoint = NULL;
	gw_upgrade_stop(&link->upgrade);
	if (link->mapped)
		GW_SLIST_REMOVE(link->engine->mapped, link, next_mapped);
	if (link->ordered)
		link->engine->ordered_links--;
	link->mapped = link->ordered = false;
	for (uint32_t direction = 0; direction < 2; direction++) {
		gw_free(link->lists[direction]);
		link->lists[direction] = NULL;
	}
}

void gw_link_close(struct gw_link *link)
{
	endpoints_close(link);
	gw_link_set_state(link, GW_LINK_DOWN);
}

void gw_link_failed(struct gw_link *link, gw_status status, const char *reason)
{
	if (link->traced)
		gw_link_trace_connected(link, false);
	gw_link_note_failure(link, status, reason);
	link->moved = link->endpoint && link->endpoint->moved;
	gw_link_close(link);
	gw_link_wait_or_give_up(link, status);
}

void gw_link_open(struct gw_link *link)
{
	if (link->state != GW_LINK_DOWN && link->state != GW_LINK_WAITING)
		return;
	if (!link->away_ns)
		link->away_ns = gw_now_ns();
	struct gw_connect_options options;
	gw_link_set_state(link, GW_LINK_CONNECTING);
	link->attempts++;
	link->connection++;
	link->traced = gw_trace_is_on() ? gw_link_trace_connect(link) : 0;
	gw_status status = gw_link_connect_options(link, gw_deadline_ns(link->engine->client->timeout_ms), &options);
	if (status == GW_OK)
		status = gw_endpoint_connect(link->engine->group, &options, &link->connected, &link->endpoint);
	link->offered_key = status == GW_OK && options.key;
	if (status != GW_OK)
		gw_link_failed(link, status, gw_last_error());
}

static void link_ready(struct gw_link *link)
{
	if (link->traced)
		gw_link_trace_connected(link, true);
	gw_link_log_recovered(link);
	gw_link_set_state(link, GW_LINK_OPEN);
	link->ever_open = true;
	if (!link->mapped && link_scheme(link)->mapped) {
		link->next_mapped = link->engine->mapped;
		link->engine->mapped = link;
		link->mapped = true;
	}
	if (!link->ordered && link->endpoint->transport->order_pays) {
		link->engine->ordered_links++;
		link->ordered = true;
	}
	gw_link_tick_soon(link);
	link->one_sided = link->endpoint->transport->one_sided;
	link->scheme = link->endpoint->transport->number;
	if (link_scheme(link)->needs_watch || link->engine->client->idle_ns)
		atomic_store(&link->engine->watches, true);
	if (link->held)
		link->engine->lists_link = link;
	link->incarnation = link->endpoint->peer.incarnation;
	link->failure = GW_OK;
	link->away_ns = link->lasting_ns = 0;
	link->attempts = 0;
	/* The backoff stays until the server has answered a request. Otherwise the link would reconnect without a pause
	 * to a server that each read crashes. */
	uint64_t now = link->used_ns = gw_now_ns();
	for (struct gw_link_op *op = link->head; op; op = op->next)
		gw_link_op_start_clock(link, op, now);
}

/* If the transport has changed, logs it and the reason. */
static void report_transport(struct gw_link *link)
{
	struct gw_remote *server = link->server;
	char address[GW_ADDRESS_MAX];
	const struct gw_scheme *scheme = link_scheme(link);
	if (atomic_exchange(&server->transport, scheme->name) == scheme->name)
		return;
	gw_address_text(&server->address, address);
	if (scheme->mapped)
		gw_log(GW_LOG_INFO, "part %u is mapped from the memory of %s, which is on this host", server->part,
		       address);
	else if (scheme->rank > GW_RANK_FIRST)
		gw_log(GW_LOG_INFO, "part %u is read by %s from %s", server->part, scheme->title, address);
	else
		gw_log(GW_LOG_INFO, "part %u is read over %s from %s: %s", server->part, scheme->name, address,
		       link->upgrade.reason);
}

/* The transport is chosen. If the server's memory is mapped and has lists of other parts, asks where they are. */
static void link_arrive(struct gw_link *link)
{
	uint8_t form = GW_CATALOG_LISTS | (atomic_load(&link->server->wants_disk) ? GW_CATALOG_KNOWS_DISK : 0);
	if (!link_scheme(link)->mapped || !link->holds_lists) {
		link_ready(link);
		return;
	}
	gw_link_set_state(link, GW_LINK_CHECKING);
	gw_status status = gw_endpoint_request(link->endpoint, GW_OP_CATALOG, 0, &form, sizeof(form),
					       gw_now_ns() + CHECK_NS, &link->listed);
	if (status != GW_OK)
		gw_link_failed(link, status, gw_last_error());
}

static void link_listed(struct gw_event *event, const struct gw_completion *completion)
{
	struct gw_link *link = (struct gw_link *)((char *)event - offsetof(struct gw_link, listed));
	if (link->state != GW_LINK_CHECKING)
		return;
	gw_status status = completion->status;
	if (status == GW_INVALID) { /* a successor of an older version, which knows no such request */
		link_ready(link);
		return;
	}
	if (status != GW_OK)
		gw_fail_text(status, completion->text);
	else
		status = gw_held_lists_parse(link->endpoint, completion->reply, completion->reply_bytes, &link->held);
	if (status != GW_OK)
		gw_link_failed(link, status, gw_last_error());
	else
		link_ready(link);
}

/* The server is connected, and its catalog is known. Looks for a better transport. */
static void link_upgrade(struct gw_link *link)
{
	const struct gw_scheme *asked = link->engine->client->transport, *scheme = link_scheme(link);
	if (scheme == asked || scheme->rank != GW_RANK_FIRST) {
		link->upgrade.retry_ns = GW_NO_DEADLINE;
		atomic_store(&link->server->transport, scheme->name);
		link_arrive(link);
		return;
	}
	gw_link_set_state(link, GW_LINK_UPGRADING);
	/* The first search waits for every transport, since the client is still opening. Later searches do not make ops
	 * wait for RDMA. */
	gw_upgrade_begin(link, !link->ever_open);
}

static void link_upgraded(struct gw_link *link, struct gw_endpoint *better, gw_status status)
{
	bool was_open = link->state == GW_LINK_OPEN;
	if (!better && link->engine->client->transport) {
		gw_link_failed(link, status, link->upgrade.reason);
		return;
	}
	if (better) {
		/* Open reads are posted again over the new transport. */
		gw_endpoint_close(link->endpoint);
		link->endpoint = better;
		link->upgrade.retry_ns = GW_NO_DEADLINE;
		if (was_open)
			link->connection++;
	}
	if (better || !was_open) {
		report_transport(link);
		link_arrive(link);
	}
}

/* Asks for the server's catalog. */
static void link_check(struct gw_link *link)
{
	struct gw_remote *server = link->server;
	gw_link_set_state(link, GW_LINK_CHECKING);
	uint64_t deadline = gw_now_ns() + CHECK_NS, end = gw_link_budget_end(link, link->away_ns);
	if (link->head && end < deadline)
		deadline = end;
	uint8_t form = gw_remote_sends_book(server) ? GW_CATALOG_WITH_BOOK : GW_CATALOG_OWN;
	form |= atomic_load(&server->wants_disk) ? GW_CATALOG_KNOWS_DISK : 0;
	gw_status status =
		gw_endpoint_request(link->endpoint, GW_OP_CATALOG, 0, &form, sizeof(form), deadline, &link->checked);
	if (status != GW_OK)
		gw_link_failed(link, status, gw_last_error());
}

static void link_connected(struct gw_event *event, const struct gw_completion *completion)
{
	struct gw_link *link = (struct gw_link *)event;
	if (link->state != GW_LINK_CONNECTING)
		return; /* belongs to an older attempt */
	if (completion->status != GW_OK) {
		gw_link_failed(link, completion->status, completion->text);
		return;
	}
	struct gw_remote *server = link->server;
	uint64_t incarnation = link->endpoint->peer.incarnation;
	if (link->offered_key) /* the connect succeeded, so the server has proved its key */
		atomic_store(&server->proved, true);
	if (server->known && (incarnation == server->incarnation || incarnation == link->incarnation)) {
		if (incarnation == server->incarnation)
			link->holds_lists = server->catalog.holds_lists;
		link_upgrade(link);
		return;
	}
	link_check(link);
}

static void link_checked(struct gw_event *event, const struct gw_completion *completion)
{
	struct gw_link *link = (struct gw_link *)((char *)event - offsetof(struct gw_link, checked));
	if (link->state != GW_LINK_CHECKING)
		return;
	if (completion->status == GW_REFUSED && !atomic_exchange(&link->server->wants_disk, true)) {
		link_check(link);
		return;
	}
	if (completion->status != GW_OK) {
		gw_link_failed(link, completion->status, completion->text);
		return;
	}
	gw_status status = gw_remote_check(link->server, link->endpoint, completion->reply, completion->reply_bytes,
					   &link->holds_lists);
	if (status != GW_OK)
		gw_link_failed(link, status, gw_last_error());
	else
		link_upgrade(link);
}

void gw_link_connect_init(struct gw_link *link)
{
	link->connected.fire = link_connected;
	link->checked.fire = link_checked;
	link->listed.fire = link_listed;
	gw_upgrade_init(&link->upgrade, link_upgraded);
}
