/* Dynamic regions at the client's end of a connection.
 *
 *   OPEN ─▶ REGION (unix sockets: with its descriptor, which is mapped) ─▶ may be read
 *   WITHDRAWN ─▶ reads fail from here on, the mapping ends ─▶ RELEASED
 *
 * Over TCP the server reads for the client, so the client has nothing to release. Exception: a dynamic reader (RDMA)
 * asks the server to keep the region's memory, and releases it itself. If the output has no room for a RELEASED, the
 * frame is sent later, after the next bytes were sent. Failures are reported by the completion of the open.
 */
#include <string.h>
#include <unistd.h>

#include "core/system/clock.h"
#include "transport/dynamic_regions.h"
#include "transport/tcp/client/client_private.h"

/* Whether RELEASED is in the output buffer; if not, gw_tcp_client_dynamic_sent sends it. */
static bool dynamic_release(struct tcp_client *client, const struct wire_dynamic *dynamic)
{
	gw_status status;
	if (client->dynamic_owed || !gw_tcp_client_reserve(client, sizeof(*dynamic), &status)) {
		client->dynamic_owed = true;
		return false;
	}
	gw_tcp_client_send(client, WIRE_RELEASED, dynamic, sizeof(*dynamic));
	return true;
}

static struct wire_dynamic dynamic_of(const struct gw_region *region)
{
	return (struct wire_dynamic){.id = region->id, .generation = region->generation};
}

static void entry_release(struct tcp_client *client, struct gw_dynamic_region_entry *entry)
{
	struct wire_dynamic dynamic = dynamic_of(&entry->region);
	entry->owed = !dynamic_release(client, &dynamic);
}

/* Releases a region for which the table has no entry, since memory ran out. Without room for RELEASED there is no room
 * for new questions either, so at most CLIENT_FRAMES_MAX regions wait here. */
static gw_status unwanted_release(struct tcp_client *client, const struct gw_region *region)
{
	struct wire_dynamic dynamic = dynamic_of(region);
	if (dynamic_release(client, &dynamic))
		return GW_OK;
	if (client->unwanted_count == CLIENT_FRAMES_MAX)
		return gw_fail(GW_LIMIT, "%u regions wait to be released", client->unwanted_count);
	client->unwanted[client->unwanted_count++] = dynamic;
	return GW_OK;
}

void gw_tcp_client_dynamic_sent(struct tcp_client *client)
{
	client->dynamic_owed = false;
	while (client->unwanted_count && dynamic_release(client, &client->unwanted[client->unwanted_count - 1]))
		client->unwanted_count--;
	for (uint32_t i = 0; i < client->base.dynamic.count; i++) {
		struct gw_dynamic_region_entry *entry = client->base.dynamic.entries[i];
		if (entry && entry->owed)
			entry_release(client, entry);
	}
}

static void dynamic_unmap(struct tcp_client *client, struct gw_dynamic_region_entry *entry)
{
	if (entry->mapping)
		client->loop->local->unmap_dynamic(entry->mapping);
	entry->mapping = NULL;
	entry->base = NULL;
}

void gw_tcp_client_dynamic_end(struct tcp_client *client)
{
	for (uint32_t i = 0; i < client->base.dynamic.count; i++)
		if (client->base.dynamic.entries[i])
			dynamic_unmap(client, client->base.dynamic.entries[i]);
	gw_dynamic_region_free(&client->base);
}

gw_status gw_tcp_region_open(struct gw_endpoint *base, uint32_t id, uint32_t generation, void *cookie)
{
	struct tcp_client *client = (struct tcp_client *)base;
	return gw_tcp_client_open_region(client, id, generation, client->loop->local != NULL, cookie);
}

void gw_tcp_dynamic_reader(struct gw_endpoint *base, struct tcp_dynamic_reader *reader)
{
	((struct tcp_client *)base)->dynamic_reader = reader;
}

gw_status gw_tcp_dynamic_pin(struct gw_endpoint *base, uint32_t id, uint32_t generation, void *cookie)
{
	return gw_tcp_client_open_region((struct tcp_client *)base, id, generation, true, cookie);
}

void gw_tcp_dynamic_release(struct gw_endpoint *base, uint32_t id, uint32_t generation)
{
	struct tcp_client *client = (struct tcp_client *)base;
	struct gw_dynamic_region_entry *entry = gw_dynamic_region_find(base, id, generation);
	if (!entry || client->phase != CLIENT_OPEN)
		return;
	entry->open = false;
	entry_release(client, entry);
}

gw_status gw_tcp_client_open_region(struct tcp_client *client, uint32_t id, uint32_t generation, bool lease,
				    void *cookie)
{
	char text[GW_ADDRESS_MAX];
	struct wire_dynamic dynamic = {.id = id, .generation = generation, .lease = lease};
	struct gw_note *note;
	gw_status status;
	/* A caller with `lease` is notified of withdrawals, so a region in the table is open. */
	bool known = lease && gw_endpoint_region(&client->base, id, generation);
	bool possible = id >= GW_REGIONS_MAX && id < GW_REGIONS_MAX + GW_DYNAMIC_REGIONS_MAX && generation;
	bool asked = client->phase == CLIENT_OPEN && !known && possible;
	uint8_t *room = asked ? gw_tcp_client_reserve(client, sizeof(dynamic), &status) : NULL;
	if (asked && (!room || client_queued(client) >= CLIENT_FRAMES_MAX)) {
		client->room_wanted = true;
		return room || status == GW_AGAIN ? gw_fail(GW_AGAIN, "too many requests are open") : status;
	}
	status = gw_note_create(cookie, &note);
	if (status != GW_OK)
		return status;
	if (!asked) {
		if (client->phase != CLIENT_OPEN)
			status = gw_fail(GW_PEER_LOST, "%s is not connected", gw_tcp_client_name(client, text));
		else if (!known)
			status = gw_fail(GW_NOT_FOUND, "region %u of generation %u is not a dynamic region", id,
					 generation);
		gw_completions_post(&client->loop->completions, note, status);
		return GW_OK;
	}
	memcpy(room + WIRE_HEADER_BYTES, &dynamic, sizeof(dynamic));
	struct wire_header header = {.bytes = sizeof(dynamic), .type = WIRE_OPEN, .tag = ++client->tag};
	struct client_frame *frame = gw_tcp_client_push(client, &header);
	frame->note = note;
	frame->deadline_ns = GW_NO_DEADLINE;
	frame->region = id;
	frame->generation = generation;
	if (!client->io.sending)
		client->loop->driver->ops->flush(client->loop->driver, &client->io);
	return GW_OK;
}

static gw_status dynamic_map(struct tcp_client *client, const struct gw_region *region,
			     struct gw_dynamic_region_entry *entry)
{
	struct tcp_fd_passing *passing = &client->fd_passing;
	static const uint8_t nothing[1];
	entry->base = nothing;
	if (region->bytes == 0)
		return GW_OK;
	if (!passing->in_count)
		return gw_fail(GW_PROTOCOL, "no descriptor came with region %u (is ulimit -n reached?)", region->id);
	int fd = passing->in[0];
	memmove(passing->in, passing->in + 1, --passing->in_count * sizeof(int));
	gw_status status = client->loop->local->map_dynamic(fd, region->bytes, &entry->mapping, &entry->base);
	close(fd);
	return status;
}

gw_status gw_tcp_client_take_region(struct tcp_client *client, const uint8_t *body)
{
	struct client_frame *frame = client_oldest(client);
	struct wire_region encoded;
	struct gw_region region;
	struct gw_dynamic_region_entry *entry = NULL, before = {0}, mapped = {0};
	memcpy(&encoded, body, sizeof(encoded));
	gw_status status = gw_wire_region(&encoded, &region);
	if (status == GW_OK && (region.id != frame->region || region.generation != frame->generation))
		status = gw_fail(GW_PROTOCOL, "the client opened region %u, and the server sent region %u",
				 frame->region, region.id);
	if (status != GW_OK)
		return status;
	if (client->loop->local)
		status = dynamic_map(client, &region, &mapped);
	if (status == GW_OK)
		status = gw_dynamic_region_add(&client->base, &region, &entry, &before);
	if (status != GW_OK && mapped.mapping)
		client->loop->local->unmap_dynamic(mapped.mapping);
	if (before.mapping)
		client->loop->local->unmap_dynamic(before.mapping);
	if (entry) {
		entry->base = mapped.base;
		entry->mapping = mapped.mapping;
	}
	if (frame->note)
		gw_completions_post(&client->loop->completions, frame->note, status);
	frame->note = NULL;
	return !entry && (client->loop->local || client->dynamic_reader) ? unwanted_release(client, &region) : GW_OK;
}

gw_status gw_tcp_client_take_withdrawn(struct tcp_client *client, const uint8_t *body)
{
	struct wire_dynamic dynamic;
	gw_status status = gw_wire_dynamic(body, &dynamic);
	if (status != GW_OK)
		return status;
	struct gw_dynamic_region_entry *entry = gw_dynamic_region_find(&client->base, dynamic.id, dynamic.generation);
	if (!entry || !entry->open)
		return GW_OK; /* released already */
	entry->open = false;
	dynamic_unmap(client, entry);
	if (client->dynamic_reader)
		client->dynamic_reader->withdrawn(client->dynamic_reader, dynamic.id, dynamic.generation);
	else
		entry_release(client, entry);
	return GW_OK;
}
