/* The ops of a link and their clocks; the options of each connect; error texts that name the server: see link_ops.h. */
#include "client/link/link_ops.h"

#include <stdio.h>
#include <string.h>

#include "core/memory/list.h"
#include "core/system/clock.h"

#define PATIENCE_MIN_NS (1000 * GW_NS_PER_MS)
#define PATIENCE_MAX_NS (10000 * GW_NS_PER_MS)

/* --- Ops and their clocks. --- */

void gw_link_dequeue(struct gw_link *link, struct gw_link_op *op)
{
	GW_QUEUE_REMOVE(link->head, link->tail, op, next);
	op->queued = false;
	if (op->away) {
		op->away = false;
		gw_job_resume(op->job, gw_now_ns());
	}
}

void gw_link_op_stop_clock(struct gw_link_op *op, uint64_t now_ns)
{
	if (op->away)
		return;
	op->away = true;
	op->deadline_ns = GW_NO_DEADLINE;
	gw_job_pause(op->job, now_ns);
}

void gw_link_op_start_clock(struct gw_link *link, struct gw_link_op *op, uint64_t now_ns)
{
	op->deadline_ns = gw_job_deadline(op->job, now_ns);
	if (op->away) {
		op->away = false;
		gw_job_resume(op->job, now_ns);
	}
	if (op->deadline_ns < link->expiry_ns)
		link->expiry_ns = op->deadline_ns;
}

void gw_link_tick_soon(struct gw_link *link)
{
	if (link->ticks)
		return;
	link->ticks = true;
	link->next_ticking = link->engine->ticking;
	link->engine->ticking = link;
}

void gw_link_enqueue(struct gw_link *link, struct gw_link_op *op)
{
	op->next = NULL;
	op->queued = true;
	*link->tail = op;
	link->tail = &op->next;
	if (link->state == GW_LINK_OPEN)
		gw_link_op_start_clock(link, op, gw_now_ns());
	else
		gw_link_op_stop_clock(op, gw_now_ns());
}

/* --- Connecting. --- */

/* Removes the address at the beginning of a reason: the server's address, or its name on this host. gw_link_name adds
 * the address itself. */
static const char *reason_alone(const char *reason, const char *address)
{
	static const char *const before[] = {"connect to ", "connect: ", ""};
	size_t length = strlen(address);
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		size_t skip = strlen(before[i]);
		if (strncmp(reason, before[i], skip) == 0 && strncmp(reason + skip, address, length) == 0 &&
		    strncmp(reason + skip + length, ": ", 2) == 0)
			return reason + skip + length + 2;
	}
	if (strncmp(reason, "shm:", 4) != 0)
		return reason;
	const char *behind = reason + 4 + strspn(reason + 4, "0123456789abcdef");
	return strncmp(behind, ": ", 2) == 0 ? behind + 2 : reason;
}

void gw_link_name(const struct gw_link *link, const char *reason, char text[GW_ERROR_TEXT_MAX])
{
	static const char its[] = "the server ";
	const struct gw_client *client = link->engine->client;
	char address[GW_ADDRESS_MAX];
	gw_address_text(&link->server->address, address);
	reason = reason_alone(reason, address);
	if (link->server->local && client->server_count == 1)
		snprintf(text, GW_ERROR_TEXT_MAX, "%s", reason);
	else if (link->server->local) /* a part that this process opened from its folder */
		snprintf(text, GW_ERROR_TEXT_MAX, "part %u: %s", (unsigned)(link->server - client->servers), reason);
	else if (strncmp(reason, its, sizeof(its) - 1) == 0)
		snprintf(text, GW_ERROR_TEXT_MAX, "server %s %s", address, reason + sizeof(its) - 1);
	else if (strncmp(reason, address, strlen(address)) == 0)
		snprintf(text, GW_ERROR_TEXT_MAX, "server %s", reason);
	else
		snprintf(text, GW_ERROR_TEXT_MAX, "server %s: %s", address, reason);
}

uint64_t gw_link_budget_end(const struct gw_link *link, uint64_t since_ns)
{
	int64_t budget_ms = link->engine->client->reconnect_ms;
	if (budget_ms < 0 || (uint64_t)budget_ms > (GW_NO_DEADLINE - since_ns) / GW_NS_PER_MS)
		return GW_NO_DEADLINE;
	return since_ns + (uint64_t)budget_ms * GW_NS_PER_MS;
}

/* Sets the key to send: the key of the given file, else a key found in the runtime folder. The search for a key is
 * repeated for each connect, since a restarted server writes a new key. A server that has proved a key once must do so
 * again. */
static gw_status link_set_key(struct gw_link *link, struct gw_connect_options *options)
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
	/* Ops that wait for a link that is away have a budget. If the link is open, nothing waits. */
	uint64_t end = link->away_ns ? gw_link_budget_end(link, link->away_ns) : GW_NO_DEADLINE;
	if (link->head && end < options->deadline_ns)
		options->deadline_ns = end;
	memcpy(options->client_uuid, client->uuid, sizeof(options->client_uuid));
	/* How long the server remembers this client: the reconnect budget plus twice the patience, since the server may
	 * notice a loss earlier than the client. */
	options->budget_ns = gw_link_budget_end(link, 2 * gw_link_patience_ns(client));
	/* Each engine is a separate client to the server: its requests have their own numbers. */
	options->client_uuid[15] ^= (uint8_t)link->engine->number;
	return link_set_key(link, options);
}
