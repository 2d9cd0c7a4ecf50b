/* Dynamic regions at a client: opened and released over the endpoint's TCP connection, read over RDMA.
 *
 *   open ─▶ OPEN over TCP: the server pins the region for us ─▶ GW_OP_KEYS: its place, the keys of our rail (the
 * device) ─▶ may be read ─▶ WITHDRAWN over TCP: unposted reads fail, new reads are refused ─▶ the work in flight has
 * landed ─▶ RELEASED: the server deregisters after every client has released
 *
 * So no read of ours uses a key that no longer exists; such a read would cost the connection and all work open on it.
 * The client remembers a region that the server cannot offer over RDMA, or whose rows the device might tear, and
 * refuses it again without asking. The completion of the open reports failures. A server must not give the place of a
 * region to another region while we still read it. If it does, the endpoint is lost.
 */
#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "transport/verbs/endpoint_private.h"

/* The keys of an open region. */
struct verbs_dynamic_keys {
	struct verbs_place place; /* must be first: endpoint_read.c uses this struct as its place */
	uint8_t keys[];
};

static gw_status endpoint_dynamic_gone(uint32_t id, uint32_t generation)
{
	return gw_fail(GW_NOT_FOUND, "region %u of generation %u does not exist: it was deleted", id, generation);
}

void gw_verbs_dynamic_withdrawn(struct tcp_dynamic_reader *reader, uint32_t id, uint32_t generation)
{
	struct verbs_endpoint *endpoint =
		(struct verbs_endpoint *)(void *)((uint8_t *)reader - offsetof(struct verbs_endpoint, dynamic_reader));
	struct gw_dynamic_region_entry *entry = gw_dynamic_region_find(&endpoint->base, id, generation);
	if (!entry || !entry->open) {
		gw_tcp_dynamic_release(endpoint->control, id, generation); /* the region was still being opened */
		return;
	}
	entry->open = false;
	entry->reads++; /* keeps the entry during this call */
	endpoint_dynamic_gone(id, generation);
	gw_verbs_reads_withdraw(endpoint, entry);
	gw_verbs_dynamic_read(endpoint, entry);
}

/* --- Releasing, and the end of opens. --- */

/* No read of it is in flight, and no read can begin. */
static void endpoint_dynamic_release(struct verbs_endpoint *endpoint, struct gw_dynamic_region_entry *entry)
{
	gw_free(entry->mapping);
	entry->mapping = NULL;
	if (!endpoint->control)
		return;
	gw_tcp_dynamic_release(endpoint->control, entry->region.id, entry->region.generation);
	verbs_timer(endpoint->loop, 0); /* the next poll of the TCP part sends it */
}

void gw_verbs_dynamic_read(struct verbs_endpoint *endpoint, struct gw_dynamic_region_entry *entry)
{
	if (--entry->reads == 0 && !entry->open)
		endpoint_dynamic_release(endpoint, entry);
}

static void opening_end(struct verbs_endpoint *endpoint, struct verbs_opening *opening, gw_status status)
{
	struct verbs_opening **at = &endpoint->openings;
	while (*at != opening)
		at = &(*at)->next;
	*at = opening->next;
	endpoint->opening_count--;
	if (status != GW_OK && opening->held && endpoint->control)
		gw_tcp_dynamic_release(endpoint->control, opening->id, opening->generation);
	gw_completions_post(&endpoint->loop->completions, opening->note, status);
	endpoint->loop->open--;
	gw_free(opening);
	if (endpoint->room_wanted) {
		endpoint->room_wanted = false;
		gw_poll_group_room(endpoint->loop->group);
	}
}

void gw_verbs_dynamic_fail(struct verbs_endpoint *endpoint, gw_status status)
{
	while (endpoint->openings)
		opening_end(endpoint, endpoint->openings, status);
}

void gw_verbs_dynamic_end(struct verbs_endpoint *endpoint)
{
	for (uint32_t i = 0; i < endpoint->base.dynamic.count; i++)
		if (endpoint->base.dynamic.entries[i])
			gw_free(endpoint->base.dynamic.entries[i]->mapping);
	gw_dynamic_region_free(&endpoint->base);
}

/* --- Opening. --- */

/* Asks for the keys of pinned regions, oldest first, as far as there is room for questions. */
void gw_verbs_dynamic_pump(struct verbs_endpoint *endpoint)
{
	for (struct verbs_opening *opening = endpoint->openings, *next; opening; opening = next) {
		struct handshake_keys_question question = {.version = endpoint->answer.answer.version,
							   .rail = endpoint->rail,
							   .id = opening->id,
							   .generation = opening->generation};
		next = opening->next;
		if (!opening->held || opening->asked)
			continue;
		gw_status status =
			gw_transport_tcp.request(endpoint->control, GW_OP_KEYS, NULL, &question, sizeof(question),
						 GW_NO_DEADLINE, (void *)(uintptr_t)opening->number);
		if (status == GW_AGAIN)
			return;
		opening->asked = status == GW_OK;
		if (status != GW_OK)
			opening_end(endpoint, opening, status);
	}
}

/* An earlier region at its place must have no reads open. */
static gw_status endpoint_dynamic_enter(struct verbs_endpoint *endpoint, const struct gw_region *region,
					struct gw_dynamic_region_entry **entry)
{
	struct gw_dynamic_region_entry before;
	gw_status status = gw_dynamic_region_add(&endpoint->base, region, entry, &before);
	if (!before.reads) {
		gw_free(before.mapping);
		return status;
	}
	(*entry)->open = false;
	(*entry)->mapping = before.mapping; /* open frames refer to it */
	return gw_fail(GW_PROTOCOL, "region %u was replaced by the server while it was read", region->id);
}

static gw_status take_keys(struct verbs_endpoint *endpoint, const struct gw_region *region,
			   const struct gw_completion *completion)
{
	struct gw_dynamic_region_entry *entry;
	struct handshake_region place;
	const uint8_t *keys;
	gw_status status = gw_handshake_keys(completion->reply, completion->reply_bytes, region, &place, &keys);
	if (status != GW_OK)
		return status;
	struct verbs_dynamic_keys *dynamic = gw_malloc(sizeof(*dynamic) + 4 * (size_t)place.slice_count);
	if (!dynamic)
		return GW_NO_MEMORY;
	memcpy(dynamic->keys, keys, 4 * (size_t)place.slice_count);
	dynamic->place = (struct verbs_place){place.base, dynamic->keys, place.slice_shift};
	status = endpoint_dynamic_enter(endpoint, region, &entry);
	if (status != GW_OK) {
		gw_free(dynamic);
		return status;
	}
	entry->mapping = dynamic;
	return GW_OK;
}

/* So that a later open fails at once. */
static gw_status endpoint_dynamic_refuse(struct verbs_endpoint *endpoint, const struct gw_region *region)
{
	struct gw_dynamic_region_entry *entry;
	struct gw_error_kept kept;
	gw_error_keep(&kept);
	if (endpoint_dynamic_enter(endpoint, region, &entry) == GW_OK) {
		entry->open = false;
		entry->refused = true;
	}
	gw_error_restore(&kept);
	return GW_UNSUPPORTED;
}

/* Continues an open: the server has pinned the region, or has answered with the keys. GW_AGAIN: the keys are still
 * missing. */
static gw_status opening_goes_on(struct verbs_endpoint *endpoint, struct verbs_opening *opening,
				 const struct gw_completion *completion)
{
	const struct gw_region *region = gw_endpoint_region(endpoint->control, opening->id, opening->generation);
	if (completion->status && completion->status != GW_UNSUPPORTED)
		return gw_fail_text(completion->status, completion->text);
	if (!region)
		return endpoint_dynamic_gone(opening->id, opening->generation);
	if (completion->status) {
		gw_fail_text(completion->status, completion->text);
		return endpoint_dynamic_refuse(endpoint, region);
	}
	if (!opening->held) {
		opening->held = true;
		return gw_verbs_words_check(endpoint, region) ? endpoint_dynamic_refuse(endpoint, region) : GW_AGAIN;
	}
	return take_keys(endpoint, region, completion);
}

static struct verbs_opening *opening_find(const struct verbs_endpoint *endpoint, const void *cookie)
{
	struct verbs_opening *opening = endpoint->openings;
	while (opening && (void *)(uintptr_t)opening->number != cookie)
		opening = opening->next;
	return opening;
}

bool gw_verbs_dynamic_completed(struct verbs_loop *loop, const struct gw_completion *completion)
{
	struct verbs_endpoint *endpoint = loop->endpoints;
	while (endpoint && !opening_find(endpoint, completion->cookie))
		endpoint = endpoint->next;
	if (!endpoint)
		return false;
	struct verbs_opening *opening = opening_find(endpoint, completion->cookie);
	gw_status status = opening_goes_on(endpoint, opening, completion);
	if (status != GW_AGAIN)
		opening_end(endpoint, opening, status);
	if (status == GW_PROTOCOL)
		gw_verbs_lose(endpoint, status);
	else if (endpoint->control)
		gw_verbs_dynamic_pump(endpoint);
	gw_verbs_control_settle(endpoint);
	return true;
}

static gw_status opening_create(struct verbs_endpoint *endpoint, uint32_t id, uint32_t generation, void *cookie,
				struct verbs_opening **out)
{
	struct verbs_opening *opening = gw_calloc(1, sizeof(*opening));
	*out = opening;
	if (!opening)
		return GW_NO_MEMORY;
	*opening = (struct verbs_opening){.number = gw_verbs_number(), .id = id, .generation = generation};
	gw_status status = gw_note_create(cookie, &opening->note);
	if (status == GW_OK)
		status = gw_tcp_dynamic_pin(endpoint->control, id, generation, (void *)(uintptr_t)opening->number);
	if (status == GW_OK)
		return GW_OK;
	endpoint->room_wanted |= status == GW_AGAIN;
	gw_note_destroy(opening->note);
	gw_free(opening);
	return status;
}

/* The outcome that is known without asking the server; GW_AGAIN: it is not known. */
static gw_status endpoint_dynamic_known(const struct verbs_endpoint *endpoint, uint32_t id, uint32_t generation)
{
	char text[GW_ADDRESS_MAX];
	const struct gw_dynamic_region_entry *entry = gw_dynamic_region_find(&endpoint->base, id, generation);
	if (endpoint->phase != ENDPOINT_OPENED)
		return gw_fail(GW_PEER_LOST, "%s is not connected", gw_verbs_name(endpoint, text));
	if (!entry)
		return GW_AGAIN;
	if (entry->refused)
		return gw_fail(GW_UNSUPPORTED, "region %u of generation %u cannot be read over RDMA", id, generation);
	return entry->open ? GW_OK : endpoint_dynamic_gone(id, generation);
}

gw_status gw_verbs_region_open(struct gw_endpoint *base, uint32_t id, uint32_t generation, void *cookie)
{
	struct verbs_endpoint *endpoint = (struct verbs_endpoint *)base;
	struct verbs_opening *opening, **end = &endpoint->openings;
	gw_status known = endpoint_dynamic_known(endpoint, id, generation);
	if (known != GW_AGAIN)
		return gw_completions_answer(&endpoint->loop->completions, cookie, known);
	if (endpoint->opening_count == ENDPOINT_OPENINGS_MAX) {
		endpoint->room_wanted = true;
		return gw_fail(GW_AGAIN, "%u regions are being opened", endpoint->opening_count);
	}
	gw_status status = opening_create(endpoint, id, generation, cookie, &opening);
	if (status != GW_OK)
		return status;
	while (*end)
		end = &(*end)->next;
	*end = opening;
	endpoint->opening_count++;
	endpoint->loop->open++;
	gw_verbs_control_settle(endpoint);
	return GW_OK;
}
