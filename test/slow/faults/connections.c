/* Many connections of one process to one server.
 *
 *   creates "before", waits for "begin": meanwhile the script measures this process and the server
 *   -> opens the connections, group by group, at most 64 of them pending at a time -> each reads the same bytes; all
 * agree
 *   -> prints how many, and the seconds -> creates "ready", waits for "go": meanwhile the script measures again
 *   -> closes the connections
 *
 * On failure the status is 1, and one line says how many connections were open, and why the next one is not. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/errors/options.h"
#include "core/system/clock.h"
#include "test/support/go.h"
#include "transport/transport.h"

#define PENDING_MAX 64u
#define GROUP_MAX   500u /* of a poll group: a device limits its completion entries (Soft-RoCE: 32,767) */
#define BYTES       64u
#define PATIENCE_MS 60000 /* time limit of one connect, and of one read */

struct connection {
	struct gw_endpoint *endpoint;
	struct gw_read_set set;
};

struct group {
	struct gw_poll_group *polled;
	struct gw_buffer *buffer;
};

struct connections {
	struct gw_address server;
	const char *key_file, *before, *begin, *ready, *go;
	uint64_t count, opened, open;
	uint8_t key[1024];
	uint32_t key_bytes;
	struct group *groups; /* of GROUP_MAX connections each */
	struct connection *all;
	uint8_t *landing;
};

static gw_status take_server(void *input, char *text)
{
	return gw_address_parse(text, &((struct connections *)input)->server);
}

#define C struct connections
static const struct gw_option table[] = {
	{"server", "ADDRESS", "the server, with its scheme", 0, GW_OPTION_CALL(take_server)},
	{"key-file", "FILE", "the server's key", 0, GW_OPTION_TEXT(C, key_file, .missing = "which key?")},
	{"count", "N", "connections (1000)", 0, GW_OPTION_NUMBER(C, count, 1, 65536)},
	{"before", "FILE", "created before the first connect", 0, GW_OPTION_TEXT(C, before, .missing = "which file?")},
	{"begin", "FILE", "then awaited", 0, GW_OPTION_TEXT(C, begin, .missing = "which file?")},
	{"ready", "FILE", "created when all are open", 0, GW_OPTION_TEXT(C, ready, .missing = "which file?")},
	{"go", "FILE", "then awaited", 0, GW_OPTION_TEXT(C, go, .missing = "which file?")},
	{0},
};
#undef C

static uint64_t group_count(const struct connections *c)
{
	return (c->count + GROUP_MAX - 1) / GROUP_MAX;
}

static gw_status connect_next(struct connections *c)
{
	struct connection *connection = &c->all[c->opened];
	struct gw_connect_options options = {.address = c->server,
					     .client_uuid = {1, (uint8_t)c->opened, (uint8_t)(c->opened >> 8)},
					     .key = c->key,
					     .key_bytes = c->key_bytes,
					     .deadline_ns = gw_now_ns() + PATIENCE_MS * GW_NS_PER_MS};
	gw_status status = gw_endpoint_connect(c->groups[c->opened / GROUP_MAX].polled, &options, connection,
					       &connection->endpoint);
	c->opened += status == GW_OK;
	return status;
}

/* A completion that did not succeed is an error. */
static gw_status await_one(const struct group *group)
{
	struct gw_completion completion;
	uint64_t end = gw_now_ns() + 2 * PATIENCE_MS * GW_NS_PER_MS;
	while (gw_now_ns() < end)
		if (gw_poll_group_poll(group->polled, &completion, 1, 100 * GW_NS_PER_MS) == 1)
			return completion.status ? gw_fail_text(completion.status, completion.text) : GW_OK;
	return gw_fail(GW_DEADLINE, "nothing completed within %d ms", 2 * PATIENCE_MS);
}

static gw_status connect_all(struct connections *c)
{
	gw_status status = GW_OK;
	while (status == GW_OK && c->open < c->count) {
		uint64_t number = c->open / GROUP_MAX, end = (number + 1) * GROUP_MAX;
		end = end < c->count ? end : c->count;
		if (c->opened < end && c->opened - c->open < PENDING_MAX) {
			status = connect_next(c);
			continue;
		}
		status = await_one(&c->groups[number]);
		c->open += status == GW_OK;
	}
	return status != GW_OK
		       ? gw_context(status, "%" PRIu64 " of %" PRIu64 " connections are open", c->open, c->count)
		       : GW_OK;
}

static gw_status read_all_in_turn(struct connections *c)
{
	const struct gw_span span = {.bytes = BYTES};
	uint8_t first[BYTES];
	gw_status status = GW_OK;
	for (uint64_t i = 0; i < c->count && status == GW_OK; i++) {
		struct connection *one = &c->all[i];
		const struct group *group = &c->groups[i / GROUP_MAX];
		one->set = (struct gw_read_set){.cookie = one, .deadline_ns = gw_now_ns() + PATIENCE_MS * GW_NS_PER_MS};
		memset(c->landing, 0xee, BYTES);
		if (gw_endpoint_readv(one->endpoint, &one->set, &one->endpoint->peer.regions[0], group->buffer, &span,
				      1, true) != 1)
			return gw_fail(GW_INVALID, "connection %" PRIu64 ": no room for a first read", i);
		status = await_one(group);
		if (i == 0)
			memcpy(first, c->landing, BYTES);
		if (status == GW_OK && memcmp(first, c->landing, BYTES) != 0)
			status = gw_fail(GW_DIGEST, "other bytes than connection 0");
		if (status != GW_OK)
			status = gw_context(status, "connection %" PRIu64, i);
	}
	return status;
}

static gw_status make_groups(struct connections *c)
{
	gw_status status = GW_OK;
	for (uint64_t i = 0; i < group_count(c) && status == GW_OK; i++) {
		status = gw_poll_group_create(&(struct gw_poll_group_options){0}, &c->groups[i].polled);
		if (status == GW_OK)
			status = gw_buffer_register(c->groups[i].polled, c->landing, BYTES, &c->groups[i].buffer);
	}
	return status;
}

static gw_status run(struct connections *c)
{
	gw_status status = gw_key_read(c->key_file, c->key, &c->key_bytes);
	if (status == GW_OK)
		status = make_groups(c);
	if (status == GW_OK)
		status = go_wait(c->before, c->begin);
	uint64_t begun = gw_now_ns();
	if (status == GW_OK)
		status = connect_all(c);
	uint64_t took = gw_now_ns() - begun;
	if (status == GW_OK)
		status = read_all_in_turn(c);
	if (status != GW_OK)
		return status;
	printf("%" PRIu64 " connections in %.3f s\n", c->open, (double)took * 1e-9);
	fflush(stdout);
	return go_wait(c->ready, c->go);
}

int main(int argc, char **argv)
{
	static const struct gw_options options = {.table = table, .doc = "Opens many connections to one server."};
	static struct connections c = {.count = 1000};
	gw_options_parse(&options, argc, argv, &c);
	c.all = calloc(c.count, sizeof(*c.all));
	c.landing = malloc(BYTES);
	c.groups = calloc(group_count(&c), sizeof(*c.groups));
	gw_status status = c.all && c.landing && c.groups ? run(&c) : GW_NO_MEMORY;
	if (status != GW_OK)
		fprintf(stderr, "connections: %s\n", gw_last_error());
	for (uint64_t i = 0; c.all && i < c.opened; i++)
		gw_endpoint_close(c.all[i].endpoint);
	for (uint64_t i = 0; c.groups && i < group_count(&c); i++) {
		gw_buffer_release(c.groups[i].buffer);
		gw_poll_group_destroy(c.groups[i].polled);
	}
	free(c.groups);
	free(c.landing);
	free(c.all);
	return status != GW_OK ? 1 : 0;
}
