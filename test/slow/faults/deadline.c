/* Reads whose deadlines pass before their bytes can arrive.
 *
 *   a read of all bytes, for comparison -> one connection for each round -> creates "ready", waits for "go":
 *   meanwhile the script slows the link -> rounds: a read with a short deadline -> GW_DEADLINE, in time
 *   -> copies the buffer -> with --passed: creates this file, waits for --back: the script repairs the link meanwhile
 *   -> waits until the late bytes would have arrived -> no buffer has changed
 *
 * With --lost, a read may also end because the server is lost: the script has killed it.
 * On failure the status is 1, and one line says which step failed. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/errors/options.h"
#include "core/system/clock.h"
#include "test/support/go.h"
#include "transport/transport.h"

#define ROUNDS      12u
#define BYTES       (64u << 10)
#define SLACK_MS    60000  /* how late a completion may be on a busy machine */
#define AFTER_MS    1000   /* wait for late bytes: several times the link's delay */
#define PATIENCE_MS 120000 /* time limit to connect */

struct command {
	struct gw_address server;
	const char *key_file, *ready, *go, *passed, *back;
	bool lost;
};

struct round {
	struct gw_endpoint *endpoint;
	struct gw_buffer *buffer;
	struct gw_read_set set;
	uint8_t landing[BYTES], noted[BYTES];
};

static struct round rounds[ROUNDS];

static gw_status take_server(void *input, char *text)
{
	return gw_address_parse(text, &((struct command *)input)->server);
}

#define C struct command
static const struct gw_option table[] = {
	{"server", "ADDRESS", "the server, with its scheme", 0, GW_OPTION_CALL(take_server)},
	{"key-file", "FILE", "the server's key", 0, GW_OPTION_TEXT(C, key_file, .missing = "which key?")},
	{"ready", "FILE", "created when every round is connected", 0,
	 GW_OPTION_TEXT(C, ready, .missing = "which file?")},
	{"go", "FILE", "then awaited", 0, GW_OPTION_TEXT(C, go, .missing = "which file?")},
	{"passed", "FILE", "created when every deadline has passed", 0, GW_OPTION_TEXT(C, passed)},
	{"back", "FILE", "then awaited, if --passed is given", 0, GW_OPTION_TEXT(C, back)},
	{"lost", NULL, "the server may be lost", 0, GW_OPTION_FLAG(C, lost)},
	{0},
};
#undef C

/* Another completion is an error. */
static gw_status await(struct gw_poll_group *group, const void *cookie, uint64_t ms)
{
	struct gw_completion completion;
	uint64_t end = gw_now_ns() + ms * GW_NS_PER_MS;
	while (gw_now_ns() < end) {
		if (gw_poll_group_poll(group, &completion, 1, 10 * GW_NS_PER_MS) == 0)
			continue;
		if (completion.cookie != cookie)
			return gw_fail(GW_PROTOCOL, "a completion with another cookie");
		return completion.status ? gw_fail_text(completion.status, completion.text) : GW_OK;
	}
	return gw_fail(GW_INVALID, "nothing completed within %" PRIu64 " ms", ms);
}

static gw_status connect_rounds(const struct command *c, struct gw_poll_group *group)
{
	uint8_t key[1024];
	struct gw_connect_options options = {.address = c->server, .client_uuid = {1}, .key = key};
	gw_status status = gw_key_read(c->key_file, key, &options.key_bytes);
	for (uint32_t i = 0; i < ROUNDS && status == GW_OK; i++) {
		struct round *round = &rounds[i];
		options.deadline_ns = gw_now_ns() + PATIENCE_MS * GW_NS_PER_MS;
		status = gw_buffer_register(group, round->landing, BYTES, &round->buffer);
		if (status == GW_OK)
			status = gw_endpoint_connect(group, &options, round, &round->endpoint);
		if (status == GW_OK)
			status = await(group, round, PATIENCE_MS);
	}
	return status;
}

/* Only a small part of the bytes can be in flight at once; the rest waits for room. */
static gw_status post(struct round *round, uint64_t deadline_ns)
{
	struct gw_span span = {.bytes = BYTES};
	round->set = (struct gw_read_set){.cookie = round, .deadline_ns = deadline_ns};
	memset(round->landing, 0xee, BYTES);
	return gw_endpoint_readv(round->endpoint, &round->set, &round->endpoint->peer.regions[0], round->buffer, &span,
				 1, true) == 1
		       ? GW_OK
		       : gw_fail(GW_INVALID, "no room for a first read");
}

static gw_status miss_deadline(struct gw_poll_group *group, uint32_t number, bool lost, uint64_t *late_ms)
{
	struct round *round = &rounds[number];
	uint64_t deadline = gw_now_ns() + (1 + 10 * number) * GW_NS_PER_MS;
	gw_status status = post(round, deadline);
	if (status == GW_OK)
		status = await(group, round, SLACK_MS);
	uint64_t now = gw_now_ns(), late = now > deadline ? (now - deadline) / GW_NS_PER_MS : 0;
	memcpy(round->noted, round->landing, BYTES);
	*late_ms = late > *late_ms ? late : *late_ms;
	if (status != GW_DEADLINE && !(lost && status == GW_PEER_LOST))
		return gw_fail(GW_INVALID, "round %u: a deadline of %u ms: \"%s\": %s", number, 1 + 10 * number,
			       gw_status_text(status), status != GW_OK ? gw_last_error() : "");
	return GW_OK;
}

static gw_status run(const struct command *c, struct gw_poll_group *group)
{
	struct gw_completion completion;
	uint64_t late_ms = 0;
	gw_status status = connect_rounds(c, group);
	for (uint32_t i = 0; i < ROUNDS && status == GW_OK; i++) { /* every connection works */
		status = post(&rounds[i], gw_now_ns() + PATIENCE_MS * GW_NS_PER_MS);
		if (status == GW_OK)
			status = await(group, &rounds[i], PATIENCE_MS);
	}
	if (status == GW_OK)
		status = go_wait(c->ready, c->go);
	for (uint32_t i = 0; i < ROUNDS && status == GW_OK; i++)
		status = miss_deadline(group, i, c->lost, &late_ms);
	if (status == GW_OK && c->passed)
		status = go_wait(c->passed, c->back);
	uint64_t end = gw_now_ns() + AFTER_MS * GW_NS_PER_MS;
	while (status == GW_OK && gw_now_ns() < end)
		if (gw_poll_group_poll(group, &completion, 1, 10 * GW_NS_PER_MS))
			status = gw_fail(GW_INVALID, "a second completion: %s", completion.text);
	for (uint32_t i = 0; i < ROUNDS && status == GW_OK; i++)
		if (memcmp(rounds[i].noted, rounds[i].landing, BYTES) != 0)
			status = gw_fail(GW_DIGEST, "round %u: its buffer was written to after its deadline", i);
	if (status == GW_OK)
		printf("%u deadlines, the latest completion %" PRIu64 " ms after it\n", ROUNDS, late_ms);
	return status;
}

int main(int argc, char **argv)
{
	static const struct gw_options options = {.table = table,
						  .doc = "Tests reads whose bytes arrive after their deadlines."};
	struct command command = {0};
	struct gw_poll_group *group = NULL;
	gw_options_parse(&options, argc, argv, &command);
	if (command.passed && !command.back) {
		fputs("late: --passed needs --back\n", stderr);
		return 2;
	}
	gw_status status = gw_poll_group_create(&(struct gw_poll_group_options){0}, &group);
	if (status == GW_OK)
		status = run(&command, group);
	if (status != GW_OK)
		fprintf(stderr, "late: %s\n", gw_last_error());
	for (uint32_t i = 0; i < ROUNDS; i++)
		gw_endpoint_close(rounds[i].endpoint);
	for (uint32_t i = 0; i < ROUNDS; i++)
		gw_buffer_release(rounds[i].buffer);
	gw_poll_group_destroy(group);
	return status != GW_OK ? 1 : 0;
}
