/* Tries the better transports in turn, by the properties of each scheme: see upgrade.h. */
#include "client/link/upgrade.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "core/errors/log.h"
#include "core/system/clock.h"

#define UPGRADE_NS (10000 * GW_NS_PER_MS) /* how long one transport may take to connect and to read */
/* how many bytes, at most, are read from the server's first region to verify that the transport reads correctly */
#define READ_BYTES 4096u
/* Size of the memory for both reads. RDMA copies reads into less memory through bounce buffers, which would stay pinned
 * for each connection. */
#define MEMORY_BYTES ((size_t)128 << 10)
#define PAUSE_MIN_NS (1000 * GW_NS_PER_MS)
#define PAUSE_MAX_NS (60000 * GW_NS_PER_MS)

static void upgrade_connected(struct gw_event *event, const struct gw_completion *completion);
static void upgrade_reads_done(struct gw_event *event, const struct gw_completion *completion);

static struct gw_link *link_of(struct gw_upgrade *upgrade)
{
	return (struct gw_link *)((char *)upgrade - offsetof(struct gw_link, upgrade));
}

void gw_upgrade_init(struct gw_upgrade *upgrade,
		     void (*done)(struct gw_link *link, struct gw_endpoint *better, gw_status status))
{
	memset(upgrade, 0, sizeof(*upgrade));
	upgrade->done = done;
	upgrade->connected.fire = upgrade_connected;
	upgrade->reads_done.fire = upgrade_reads_done;
}

/* --- Receive memory of the read: separate pages, since devices pin pages. --- */

static gw_status read_memory_open(struct gw_upgrade *upgrade)
{
	void *pages = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return gw_fail(GW_NO_MEMORY, "no memory for one read");
	gw_status status = gw_buffer_register(link_of(upgrade)->engine->group, pages, MEMORY_BYTES, &upgrade->buffer);
	if (status != GW_OK)
		munmap(pages, MEMORY_BYTES);
	else
		upgrade->bytes = pages;
	return status;
}

/* The endpoints may be closed although their reads have not completed. Even then no transport writes to the memory: a
 * closed queue pair does not write, and data that TCP still receives is copied only by polls. */
static_assert(READ_BYTES < GW_STAGED_BYTES, "no receive goes directly into the read memory");

static void read_memory_close(struct gw_upgrade *upgrade)
{
	if (!upgrade->bytes)
		return;
	gw_buffer_release(upgrade->buffer);
	munmap(upgrade->bytes, MEMORY_BYTES);
	upgrade->buffer = NULL;
	upgrade->bytes = NULL;
}

/* --- Transports. --- */

__attribute__((format(printf, 2, 3))) static void upgrade_note(struct gw_upgrade *upgrade, const char *format, ...)
{
	char *at = upgrade->reason + strlen(upgrade->reason), *end = upgrade->reason + sizeof(upgrade->reason);
	va_list arguments;
	if (at > upgrade->reason)
		at += snprintf(at, (size_t)(end - at), "; ");
	if (at >= end)
		return;
	va_start(arguments, format);
	vsnprintf(at, (size_t)(end - at), format, arguments);
	va_end(arguments);
}

static void upgrade_give_up(struct gw_upgrade *upgrade)
{
	gw_endpoint_close(upgrade->endpoint);
	upgrade->endpoint = NULL;
	upgrade->step = GW_UPGRADE_IDLE;
}

/* How long a transport may take to connect and to read. If TCP is allowed, the time is short, since ops wait. A search
 * in the background gets as much time as the pause before it. This time grows with the pauses, since a slow machine may
 * need longer than the first attempts allow. */
static uint64_t deadline_ns(struct gw_upgrade *upgrade)
{
	const struct gw_client *client = link_of(upgrade)->engine->client;
	uint64_t patience_ns = client->transport ? UPGRADE_NS : gw_link_patience_ns(client);
	if (upgrade->in_background && upgrade->pause_ns > patience_ns)
		patience_ns = upgrade->pause_ns;
	return gw_now_ns() + patience_ns;
}

/* The server's address for this transport: the name of its incarnation on this host, or its host and port. */
static struct gw_address address_by(const struct gw_link *link, const struct gw_scheme *scheme)
{
	struct gw_address address = {0};
	if (scheme->local)
		snprintf(address.host, sizeof(address.host), "%016llx",
			 (unsigned long long)link->endpoint->peer.incarnation);
	else
		address = link->server->address;
	snprintf(address.scheme, sizeof(address.scheme), "%s", scheme->name);
	return address;
}

static gw_status try_transport(struct gw_upgrade *upgrade, const struct gw_scheme *scheme)
{
	struct gw_link *link = link_of(upgrade);
	struct gw_connect_options options;
	gw_status status = gw_link_connect_options(link, deadline_ns(upgrade), &options);
	options.address = address_by(link, scheme);
	upgrade->scheme = scheme;
	upgrade->step = GW_UPGRADE_CONNECTING;
	if (status == GW_OK)
		status = gw_endpoint_connect(link->engine->group, &options, &upgrade->connected, &upgrade->endpoint);
	if (status == GW_OK)
		upgrade->open++;
	return status;
}

/* Logs why a search in the background failed. The transport stays the same, so nothing else reports the failure. */
static void report_failure(struct gw_upgrade *upgrade)
{
	uint32_t part = link_of(upgrade)->server->part;
	if (upgrade->retry_ns == GW_NO_DEADLINE)
		gw_log(GW_LOG_INFO, "part %u: %s", part, upgrade->reason);
	else
		gw_log(GW_LOG_INFO, "part %u: %s; tried again in %llu s", part, upgrade->reason,
		       (unsigned long long)(upgrade->pause_ns / GW_NS_PER_SECOND));
}

/* Records why the link does not use the transport tried last, and when network transports are tried again. */
static void note_failure(struct gw_upgrade *upgrade, gw_status status, const char *why)
{
	const struct gw_scheme *scheme = upgrade->scheme;
	upgrade_give_up(upgrade);
	read_memory_close(upgrade);
	if (scheme->mapped)
		upgrade_note(upgrade, "not mapped: %s", why);
	else
		upgrade_note(upgrade, "no %s: %s", scheme->title, why);
	if (scheme->local)
		return;
	if (!upgrade->network_tried)
		upgrade->retry_ns = GW_NO_DEADLINE;
	upgrade->network_tried = true;
	/* One transport that may recover is enough for another search. The pause grows only once per search. */
	if (status != GW_UNSUPPORTED && status != GW_DIGEST && upgrade->retry_ns == GW_NO_DEADLINE)
		gw_upgrade_lost(upgrade, scheme, gw_now_ns());
}

/* NULL: no transport remains. */
static const struct gw_scheme *next_scheme(struct gw_upgrade *upgrade)
{
	const struct gw_scheme *scheme = upgrade->scheme, *asked = link_of(upgrade)->engine->client->transport;
	do {
		scheme = gw_scheme_below(scheme);
	} while (scheme && (asked ? scheme != asked : scheme->local ? upgrade->in_background : upgrade->network_waits));
	return scheme;
}

/* Until one starts to connect. status: the result of the transport that was tried before. */
static void upgrade_search(struct gw_upgrade *upgrade, gw_status status)
{
	for (;;) {
		const struct gw_scheme *scheme = next_scheme(upgrade);
		if (!scheme)
			break;
		status = try_transport(upgrade, scheme);
		if (status == GW_OK)
			return;
		note_failure(upgrade, status, gw_last_error());
	}
	if (upgrade->in_background)
		report_failure(upgrade);
	upgrade->done(link_of(upgrade), NULL, status);
}

static void scheme_failed(struct gw_upgrade *upgrade, gw_status status, const char *why)
{
	note_failure(upgrade, status, why);
	upgrade_search(upgrade, status);
}

static void upgrade_take(struct gw_upgrade *upgrade)
{
	struct gw_endpoint *endpoint = upgrade->endpoint;
	upgrade->endpoint = NULL;
	upgrade->step = GW_UPGRADE_IDLE;
	upgrade->done(link_of(upgrade), endpoint, GW_OK);
}

/* --- One read over both transports. --- */

static bool upgrade_post(struct gw_upgrade *upgrade, uint32_t number, struct gw_endpoint *endpoint,
			 const struct gw_span *span)
{
	upgrade->sets[number] =
		(struct gw_read_set){.cookie = &upgrade->reads_done, .deadline_ns = deadline_ns(upgrade)};
	bool accepted = gw_endpoint_readv(endpoint, &upgrade->sets[number], &endpoint->peer.regions[0], upgrade->buffer,
					  span, 1, true) == 1;
	upgrade->open += accepted;
	return accepted;
}

/* The better transport is connected. Verifies that it reads the same bytes as TCP. */
static void read_both(struct gw_upgrade *upgrade)
{
	struct gw_endpoint *there = link_of(upgrade)->endpoint;
	uint64_t bytes = there->peer.region_count ? there->peer.regions[0].bytes : 0;
	upgrade->byte_count = bytes < READ_BYTES ? (uint32_t)bytes : READ_BYTES;
	upgrade->step = GW_UPGRADE_READING;
	upgrade->failed = false;
	gw_status status = read_memory_open(upgrade);
	if (status != GW_OK) {
		scheme_failed(upgrade, status, gw_last_error());
		return;
	}
	if (!there->peer.region_count) {
		scheme_failed(upgrade, GW_PROTOCOL, "its server has no memory to read");
		return;
	}
	struct gw_span one = {0, 0, upgrade->byte_count}, other = {0, READ_BYTES, upgrade->byte_count};
	if (upgrade_post(upgrade, 0, there, &one) && upgrade_post(upgrade, 1, upgrade->endpoint, &other))
		return;
	/* One of the connections has no room for a read, because it is busy at the moment. */
	gw_endpoint_cancel(there, &upgrade->sets[0]);
	upgrade->failed = true;
	if (!upgrade->open)
		scheme_failed(upgrade, GW_AGAIN, "no room for one read");
}

static void upgrade_reads_done(struct gw_event *event, const struct gw_completion *completion)
{
	struct gw_upgrade *upgrade = (struct gw_upgrade *)((char *)event - offsetof(struct gw_upgrade, reads_done));
	upgrade->open--;
	if (upgrade->step != GW_UPGRADE_READING)
		return; /* of a search that was stopped */
	if (completion->status != GW_OK && !upgrade->failed) {
		upgrade->failed = true;
		upgrade_note(upgrade, "%s", *completion->text ? completion->text : gw_status_text(completion->status));
		gw_endpoint_cancel(link_of(upgrade)->endpoint, &upgrade->sets[0]);
		gw_endpoint_cancel(upgrade->endpoint, &upgrade->sets[1]);
	}
	if (upgrade->open)
		return;
	if (upgrade->failed) {
		scheme_failed(upgrade, GW_PEER_LOST, "its first read failed");
		return;
	}
	if (memcmp(upgrade->bytes, upgrade->bytes + READ_BYTES, upgrade->byte_count) != 0) {
		gw_log(GW_LOG_WARN, "part %u: %s reads other bytes than TCP: it is not used",
		       link_of(upgrade)->server->part, upgrade->scheme->title);
		scheme_failed(upgrade, GW_DIGEST, "it reads other bytes than TCP");
		return;
	}
	read_memory_close(upgrade);
	upgrade->since_ns = gw_now_ns();
	upgrade_take(upgrade);
}

/* The check is as strict as that of the first connection. */
static bool is_same_server(const struct gw_peer *here, const struct gw_peer *there)
{
	if (here->incarnation != there->incarnation || here->part != there->part ||
	    here->region_count != there->region_count)
		return false;
	for (uint32_t i = 0; i < here->region_count; i++) {
		if (here->regions[i].bytes != there->regions[i].bytes ||
		    here->regions[i].kind != there->regions[i].kind)
			return false;
	}
	return true;
}

static void upgrade_connected(struct gw_event *event, const struct gw_completion *completion)
{
	struct gw_upgrade *upgrade = (struct gw_upgrade *)event;
	upgrade->open--;
	if (upgrade->step != GW_UPGRADE_CONNECTING)
		return; /* of a search that was stopped */
	gw_status status = completion->status;
	char text[GW_ERROR_TEXT_MAX];
	snprintf(text, sizeof(text), "%s", completion->text); /* copied: the text may belong to the endpoint */
	if (status == GW_OK && !is_same_server(&upgrade->endpoint->peer, &link_of(upgrade)->endpoint->peer)) {
		status = GW_PROTOCOL;
		snprintf(text, sizeof(text), "another server answers there");
	}
	if (status != GW_OK)
		scheme_failed(upgrade, status, text);
	else if (upgrade->scheme->mapped)
		upgrade_take(upgrade);
	else
		read_both(upgrade);
}

/* --- Start and end of a search. --- */

void gw_upgrade_begin(struct gw_link *link, bool wait)
{
	struct gw_upgrade *upgrade = &link->upgrade;
	uint64_t now = gw_now_ns();
	upgrade->scheme = NULL;
	upgrade->reason[0] = 0;
	if (upgrade->retry_ns == GW_NO_DEADLINE)
		upgrade->retry_ns = 0; /* this is a new connection, perhaps to another server */
	upgrade->network_waits = !wait || now < upgrade->retry_ns;
	upgrade->network_tried = false;
	upgrade->in_background = false;
	if (now < upgrade->retry_ns)
		upgrade_note(upgrade, "%s lost; retrying later", upgrade->lost->title);
	if (!upgrade->open) {
		upgrade_search(upgrade, GW_UNSUPPORTED);
		return;
	}
	upgrade_note(upgrade, "the previous upgrade has not ended");
	upgrade->done(link, NULL, GW_AGAIN);
}

void gw_upgrade_again(struct gw_link *link)
{
	struct gw_upgrade *upgrade = &link->upgrade;
	if (upgrade->step != GW_UPGRADE_IDLE || upgrade->open || gw_now_ns() < upgrade->retry_ns)
		return;
	upgrade->scheme = NULL;
	upgrade->reason[0] = 0;
	upgrade->network_waits = upgrade->network_tried = false;
	upgrade->in_background = true;
	upgrade_search(upgrade, GW_UNSUPPORTED);
}

void gw_upgrade_lost(struct gw_upgrade *upgrade, const struct gw_scheme *scheme, uint64_t now_ns)
{
	bool lasted = upgrade->since_ns && now_ns - upgrade->since_ns > PAUSE_MAX_NS;
	upgrade->since_ns = 0;
	upgrade->lost = scheme;
	upgrade->pause_ns = lasted || !upgrade->pause_ns ? PAUSE_MIN_NS : 2 * upgrade->pause_ns;
	if (upgrade->pause_ns > PAUSE_MAX_NS)
		upgrade->pause_ns = PAUSE_MAX_NS;
	upgrade->retry_ns = now_ns + upgrade->pause_ns;
}

void gw_upgrade_stop(struct gw_upgrade *upgrade)
{
	upgrade_give_up(upgrade);
	read_memory_close(upgrade);
}
