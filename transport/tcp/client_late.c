/* Late regions at the client's side of a connection.
 *
 *   OPEN ─▶ REGION (unix sockets: its descriptor comes along, and is mapped) ─▶ may be read
 *   WITHDRAWN ─▶ reads fail from here on, the mapping goes ─▶ RELEASED
 *
 * Over TCP the server reads for us, and there is nothing to let go; unless it is for a reader (RDMA) that asked for the
 * region to be held, and lets go itself. What has to be let go is told even if there is no
 * room for it now: with the next bytes that have gone out. Fails by the completion of the open.
 */
#include <string.h>
#include <unistd.h>

#include "core/system/clock.h"
#include "transport/late_regions.h"
#include "transport/tcp/client.h"

/* Whether RELEASED has gone into the output buffer; else it goes with gw_tcp_client_late_sent. */
static bool late_release(struct tcp_client *client, const struct wire_late *late)
{
	gw_status status;
	if (client->late_owed || !gw_tcp_client_reserve(client, sizeof(*late), &status)) {
		client->late_owed = true;
		return false;
	}
	gw_tcp_client_send(client, WIRE_RELEASED, late, sizeof(*late));
	return true;
}

static struct wire_late late_of(const struct gw_region *region)
{
	return (struct wire_late){.id = region->id, .generation = region->generation};
}

static void entry_release(struct tcp_client *client, struct gw_late_entry *entry)
{
	struct wire_late late = late_of(&entry->region);
	entry->owed = !late_release(client, &late);
}

/* A region came that has found no place here. Who has no room for what it owes has none for another question either,
 * and no more are open than the list is long. */
static gw_status unwanted_release(struct tcp_client *client, const struct gw_region *region)
{
	struct wire_late late = late_of(region);
	if (late_release(client, &late))
		return GW_OK;
	if (client->unwanted_count == CLIENT_FRAMES_MAX)
		return gw_fail(GW_LIMIT, "%u regions are to be let go", client->unwanted_count);
	client->unwanted[client->unwanted_count++] = late;
	return GW_OK;
}

void gw_tcp_client_late_sent(struct tcp_client *client)
{
	client->late_owed = false;
	while (client->unwanted_count && late_release(client, &client->unwanted[client->unwanted_count - 1]))
		client->unwanted_count--;
	for (uint32_t i = 0; i < client->base.late.count; i++) {
		struct gw_late_entry *entry = client->base.late.entries[i];
		if (entry && entry->owed)
			entry_release(client, entry);
	}
}

static void late_unmap(struct tcp_client *client, struct gw_late_entry *entry)
{
	if (entry->mapping)
		client->loop->local->unmap_late(entry->mapping);
	entry->mapping = NULL;
	entry->base = NULL;
}

void gw_tcp_client_late_end(struct tcp_client *client)
{
	for (uint32_t i = 0; i < client->base.late.count; i++)
		if (client->base.late.entries[i])
			late_unmap(client, client->base.late.entries[i]);
	gw_late_free(&client->base);
}

gw_status gw_tcp_region_open(struct gw_endpoint *base, uint32_t id, uint32_t generation, void *cookie)
{
	struct tcp_client *client = (struct tcp_client *)base;
	return gw_tcp_client_open_region(client, id, generation, client->loop->local != NULL, cookie);
}

void gw_tcp_late_reader(struct gw_endpoint *base, struct tcp_late_reader *reader)
{
	((struct tcp_client *)base)->late_reader = reader;
}

gw_status gw_tcp_late_hold(struct gw_endpoint *base, uint32_t id, uint32_t generation, void *cookie)
{
	return gw_tcp_client_open_region((struct tcp_client *)base, id, generation, true, cookie);
}

void gw_tcp_late_release(struct gw_endpoint *base, uint32_t id, uint32_t generation)
{
	struct tcp_client *client = (struct tcp_client *)base;
	struct gw_late_entry *entry = gw_late_find(base, id, generation);
	if (!entry || client->phase != CLIENT_OPEN)
		return;
	entry->open = false;
	entry_release(client, entry);
}

gw_status gw_tcp_client_open_region(struct tcp_client *client, uint32_t id, uint32_t generation, bool hold,
				    void *cookie)
{
	char text[GW_ADDRESS_MAX];
	struct wire_late late = {.id = id, .generation = generation, .hold = hold};
	struct gw_note *note;
	gw_status status;
	/* Who is told of withdrawals knows what is open. */
	bool known = hold && gw_endpoint_region(&client->base, id, generation);
	bool possible = id >= GW_REGIONS_MAX && id < GW_REGIONS_MAX + GW_LATE_REGIONS_MAX && generation;
	bool asked = client->phase == CLIENT_OPEN && !known && possible;
	uint8_t *room = asked ? gw_tcp_client_reserve(client, sizeof(late), &status) : NULL;
	if (asked && (!room || client_queued(client) >= CLIENT_FRAMES_MAX)) {
		client->room_wanted = true;
		return room || status == GW_AGAIN ? gw_fail(GW_AGAIN, "too much is open") : status;
	}
	status = gw_note_create(cookie, &note);
	if (status)
		return status;
	if (!asked) {
		if (client->phase != CLIENT_OPEN)
			status = gw_fail(GW_PEER_LOST, "%s is not connected", gw_tcp_client_name(client, text));
		else if (!known)
			status = gw_fail(GW_NOT_FOUND, "region %u of generation %u is none that comes late", id,
					 generation);
		gw_completions_post(&client->loop->completions, note, status);
		return GW_OK;
	}
	memcpy(room + WIRE_HEADER_BYTES, &late, sizeof(late));
	struct wire_header header = {.bytes = sizeof(late), .type = WIRE_OPEN, .tag = ++client->tag};
	struct client_frame *frame = gw_tcp_client_push(client, &header);
	frame->note = note;
	frame->deadline_ns = GW_NO_DEADLINE;
	frame->region = id;
	frame->generation = generation;
	if (!client->io.sending)
		client->loop->driver->ops->flush(client->loop->driver, &client->io);
	return GW_OK;
}

/* The descriptor that came with a REGION, mapped. */
static gw_status late_map(struct tcp_client *client, const struct gw_region *region, struct gw_late_entry *entry)
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
	gw_status status = client->loop->local->map_late(fd, region->bytes, &entry->mapping, &entry->base);
	close(fd);
	return status;
}

gw_status gw_tcp_client_take_region(struct tcp_client *client, const uint8_t *body)
{
	struct client_frame *frame = client_oldest(client);
	struct wire_region told;
	struct gw_region region;
	struct gw_late_entry *entry = NULL, before = {0}, mapped = {0};
	memcpy(&told, body, sizeof(told));
	gw_status status = gw_wire_region(&told, &region);
	if (!status && (region.id != frame->region || region.generation != frame->generation))
		status = gw_fail(GW_PROTOCOL, "region %u was asked for, and region %u came", frame->region, region.id);
	if (status)
		return status;
	if (client->loop->local)
		status = late_map(client, &region, &mapped);
	if (!status)
		status = gw_late_add(&client->base, &region, &entry, &before);
	if (status && mapped.mapping)
		client->loop->local->unmap_late(mapped.mapping);
	if (before.mapping)
		client->loop->local->unmap_late(before.mapping);
	if (entry) {
		entry->base = mapped.base;
		entry->mapping = mapped.mapping;
	}
	if (frame->note)
		gw_completions_post(&client->loop->completions, frame->note, status);
	frame->note = NULL;
	return !entry && (client->loop->local || client->late_reader) ? unwanted_release(client, &region) : GW_OK;
}

gw_status gw_tcp_client_take_withdrawn(struct tcp_client *client, const uint8_t *body)
{
	struct wire_late late;
	gw_status status = gw_wire_late(body, &late);
	if (status)
		return status;
	struct gw_late_entry *entry = gw_late_find(&client->base, late.id, late.generation);
	if (!entry || !entry->open)
		return GW_OK; /* let go already */
	entry->open = false;
	late_unmap(client, entry);
	if (client->late_reader)
		client->late_reader->withdrawn(client->late_reader, late.id, late.generation);
	else
		entry_release(client, entry);
	return GW_OK;
}
