/* Mapped memory first, then RDMA, then neither: see join.h. */
#include "client/join.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "client/client.h"
#include "client/link.h"
#include "core/base/clock.h"
#include "core/base/log.h"

#define JOIN_NS     (10000 * GW_NS_PER_MS) /* how long one way may take to connect and to read */
#define READ_BYTES  4096u                  /* of the server's first region, at most, to see that RDMA reads right */
#define HOLD_MIN_NS (1000 * GW_NS_PER_MS)
#define HOLD_MAX_NS (60000 * GW_NS_PER_MS)

static void connected(struct gw_event *event, const struct gw_completion *completion);
static void landed(struct gw_event *event, const struct gw_completion *completion);

static struct gw_link *link_of(struct gw_join *join)
{
	return (struct gw_link *)((char *)join - offsetof(struct gw_link, join));
}

void gw_join_init(struct gw_join *join)
{
	memset(join, 0, sizeof(*join));
	join->connected.fire = connected;
	join->landed.fire = landed;
}

/* --- What the read lands in: pages of their own, since devices pin pages. --- */

static gw_status landing_open(struct gw_join *join)
{
	void *pages = mmap(NULL, 2 * (size_t)READ_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return gw_fail(GW_NO_MEMORY, "no memory for one read");
	gw_status status =
		gw_buffer_register(link_of(join)->engine->group, pages, 2 * (uint64_t)READ_BYTES, &join->buffer);
	if (status != GW_OK)
		munmap(pages, 2 * (size_t)READ_BYTES);
	else
		join->bytes = pages;
	return status;
}

/* The endpoints may be closed, but what was open on them has not completed: nothing writes any more all the same. A
 * closed queue pair does not, and what comes by TCP, whose receive may still be under way, is copied by polls alone. */
static_assert(READ_BYTES < GW_STAGED_BYTES, "no receive is made into the landing itself");

static void landing_close(struct gw_join *join)
{
	if (!join->bytes)
		return;
	gw_buffer_release(join->buffer);
	munmap(join->bytes, 2 * (size_t)READ_BYTES);
	join->buffer = NULL;
	join->bytes = NULL;
}

/* --- The ways. --- */

static void note(struct gw_join *join, const char *what, const char *why)
{
	size_t used = strlen(join->reason);
	if (used < sizeof(join->reason))
		snprintf(join->reason + used, sizeof(join->reason) - used, "%s%s%s", used ? "; " : "", what, why);
}

/* This way does not work: its endpoint is given up. */
static void give_up(struct gw_join *join)
{
	gw_endpoint_close(join->endpoint);
	join->endpoint = NULL;
	join->step = GW_JOIN_IDLE;
}

static void stay(struct gw_join *join, gw_status status)
{
	gw_link_joined(link_of(join), NULL, status);
}

/* How long a way may take to connect and to read: where there is TCP as well, nobody waits for long. */
static uint64_t deadline_ns(const struct gw_client *client)
{
	return gw_now_ns() + (client->transport == GW_REACH_AUTO ? gw_link_patience_ns(client) : JOIN_NS);
}

static gw_status try_way(struct gw_join *join, enum gw_join_step step, const struct gw_address *address)
{
	struct gw_link *link = link_of(join);
	struct gw_connect_options options;
	gw_status status = gw_link_connect_options(link, deadline_ns(link->engine->client), &options);
	options.address = *address;
	join->step = step;
	if (status == GW_OK)
		status = gw_endpoint_connect(link->engine->group, &options, &join->connected, &join->endpoint);
	if (status == GW_OK)
		join->open++;
	return status;
}

static void rdma_failed(struct gw_join *join, gw_status status, const char *why)
{
	give_up(join);
	landing_close(join);
	join->retry_ns = GW_NO_DEADLINE;
	if (status != GW_UNSUPPORTED && status != GW_DIGEST)
		gw_join_lost(join, gw_now_ns());
	note(join, "no RDMA: ", why);
	stay(join, status);
}

static void try_rdma(struct gw_join *join)
{
	struct gw_address address = link_of(join)->server->address;
	snprintf(address.scheme, sizeof(address.scheme), "verbs");
	gw_status status = try_way(join, GW_JOIN_DIALLING, &address);
	if (status != GW_OK)
		rdma_failed(join, status, gw_last_error());
}

static void mapping_failed(struct gw_join *join, gw_status status, const char *why)
{
	enum gw_client_transport transport = link_of(join)->engine->client->transport;
	give_up(join);
	note(join, "not mapped: ", why);
	if (transport == GW_REACH_AUTO && !join->rdma_waits)
		try_rdma(join);
	else
		stay(join, status);
}

static void try_mapping(struct gw_join *join)
{
	struct gw_address address = {.scheme = "shm"};
	snprintf(address.host, sizeof(address.host), "%016llx",
		 (unsigned long long)link_of(join)->endpoint->peer.incarnation);
	gw_status status = try_way(join, GW_JOIN_MAPPING, &address);
	if (status != GW_OK)
		mapping_failed(join, status, gw_last_error());
}

static void take(struct gw_join *join)
{
	struct gw_endpoint *endpoint = join->endpoint;
	join->endpoint = NULL;
	join->step = GW_JOIN_IDLE;
	gw_link_joined(link_of(join), endpoint, GW_OK);
}

/* --- One read by both ways. --- */

static bool post(struct gw_join *join, uint32_t number, struct gw_endpoint *endpoint, const struct gw_span *span)
{
	join->groups[number] =
		(struct gw_group){.cookie = &join->landed, .deadline_ns = deadline_ns(link_of(join)->engine->client)};
	bool accepted = gw_endpoint_readv(endpoint, &join->groups[number], &endpoint->peer.regions[0], join->buffer,
					  span, 1, true) == 1;
	join->open += accepted;
	return accepted;
}

/* RDMA is connected: does it read what TCP reads? */
static void read_both(struct gw_join *join)
{
	struct gw_endpoint *there = link_of(join)->endpoint;
	uint64_t bytes = there->peer.region_count ? there->peer.regions[0].bytes : 0;
	join->byte_count = bytes < READ_BYTES ? (uint32_t)bytes : READ_BYTES;
	join->step = GW_JOIN_READING;
	join->failed = false;
	gw_status status = landing_open(join);
	if (status != GW_OK) {
		rdma_failed(join, status, gw_last_error());
		return;
	}
	struct gw_span one = {0, 0, join->byte_count}, other = {0, READ_BYTES, join->byte_count};
	if (post(join, 0, there, &one) && post(join, 1, join->endpoint, &other))
		return;
	/* There is no room: a busy moment. */
	gw_endpoint_cancel(there, &join->groups[0]);
	join->failed = true;
	if (!join->open)
		rdma_failed(join, GW_AGAIN, "no room for one read");
}

static void landed(struct gw_event *event, const struct gw_completion *completion)
{
	struct gw_join *join = (struct gw_join *)((char *)event - offsetof(struct gw_join, landed));
	join->open--;
	if (join->step != GW_JOIN_READING)
		return; /* of a join that was stopped */
	if (completion->status != GW_OK && !join->failed) {
		join->failed = true;
		note(join, "", *completion->text ? completion->text : gw_status_text(completion->status));
		gw_endpoint_cancel(link_of(join)->endpoint, &join->groups[0]);
		gw_endpoint_cancel(join->endpoint, &join->groups[1]);
	}
	if (join->open)
		return;
	if (join->failed) {
		rdma_failed(join, GW_PEER_LOST, "its first read failed");
		return;
	}
	if (memcmp(join->bytes, join->bytes + READ_BYTES, join->byte_count) != 0) {
		gw_log(GW_LOG_WARN, "part %u: RDMA reads other bytes than TCP: it is not used",
		       link_of(join)->server->part);
		rdma_failed(join, GW_DIGEST, "it reads other bytes than TCP");
		return;
	}
	landing_close(join);
	join->since_ns = gw_now_ns();
	take(join);
}

static void connected(struct gw_event *event, const struct gw_completion *completion)
{
	struct gw_join *join = (struct gw_join *)event;
	join->open--;
	if (join->step != GW_JOIN_MAPPING && join->step != GW_JOIN_DIALLING)
		return; /* of a join that was stopped */
	bool mapping = join->step == GW_JOIN_MAPPING;
	gw_status status = completion->status;
	char text[GW_ERROR_TEXT_MAX];
	snprintf(text, sizeof(text), "%s", completion->text); /* the endpoint's own, perhaps */
	if (status == GW_OK) {
		const struct gw_peer *here = &join->endpoint->peer, *there = &link_of(join)->endpoint->peer;
		if (here->incarnation != there->incarnation || here->part != there->part) {
			status = GW_PROTOCOL;
			snprintf(text, sizeof(text), "another server answers there");
		}
	}
	if (status != GW_OK && mapping)
		mapping_failed(join, status, text);
	else if (status != GW_OK)
		rdma_failed(join, status, text);
	else if (mapping)
		take(join);
	else
		read_both(join);
}

/* --- When. --- */

void gw_join_begin(struct gw_link *link, bool wait)
{
	struct gw_join *join = &link->join;
	uint64_t now = gw_now_ns();
	enum gw_client_transport transport = link->engine->client->transport;
	join->reason[0] = 0;
	if (join->retry_ns == GW_NO_DEADLINE)
		join->retry_ns = 0; /* a new connection, perhaps another server */
	join->rdma_waits = !wait || now < join->retry_ns;
	if (now < join->retry_ns)
		note(join, "", "RDMA was lost and rests");
	if (join->open) {
		note(join, "", "the search before this one has not ended");
		stay(join, GW_AGAIN);
	} else if (transport == GW_REACH_VERBS) {
		try_rdma(join);
	} else {
		try_mapping(join);
	}
}

void gw_join_again(struct gw_link *link)
{
	struct gw_join *join = &link->join;
	if (join->step != GW_JOIN_IDLE || join->open || gw_now_ns() < join->retry_ns)
		return;
	join->reason[0] = 0;
	try_rdma(join);
}

void gw_join_lost(struct gw_join *join, uint64_t now_ns)
{
	bool lasted = join->since_ns && now_ns - join->since_ns > HOLD_MAX_NS;
	join->since_ns = 0;
	join->hold_ns = lasted || !join->hold_ns ? HOLD_MIN_NS : 2 * join->hold_ns;
	if (join->hold_ns > HOLD_MAX_NS)
		join->hold_ns = HOLD_MAX_NS;
	join->retry_ns = now_ns + join->hold_ns;
}

void gw_join_stop(struct gw_join *join)
{
	give_up(join);
	landing_close(join);
}
