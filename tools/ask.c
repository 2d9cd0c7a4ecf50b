/* Answers come from other programs: they are checked to be objects, and their text is printed without control
 * characters. A server that does not answer in time gets one more second, in which the transport reports the reason. */
#include "tools/ask.h"

#include <string.h>
#include <sys/random.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "protocol/ops.h"
#include "transport/transport.h"

#define COMPLETIONS 64

/* --- Options. --- */

gw_status gw_ask_take_server(void *input, char *text)
{
	struct gw_ask *ask = input;
	struct gw_address address;
	if (ask->count == GW_ASK_SERVERS_MAX)
		return gw_fail(GW_LIMIT, "more than %d servers", GW_ASK_SERVERS_MAX);
	ask->questions[ask->count].text = text;
	return gw_address_parse(ask->questions[ask->count++].text, &address);
}

gw_status gw_ask_check(void *input)
{
	struct gw_ask *ask = input;
	if (ask->count > 0)
		return GW_OK;
	if (!gw_is_launched())
		return gw_fail(GW_INVALID, "no servers given: name them, such as 127.0.0.1:30050");
	gw_status status = gw_launched_read(&ask->launched);
	for (uint32_t i = 0; status == GW_OK && i < ask->launched.server_count; i++)
		status = gw_ask_take_server(ask, (char *)ask->launched.servers[i]);
	if (!ask->key_file && !ask->insecure)
		ask->key_file = ask->launched.key_file;
	return status;
}

gw_status gw_ask_begin(struct gw_ask *ask)
{
	ask->questions = gw_calloc(GW_ASK_SERVERS_MAX, sizeof(*ask->questions));
	(void)!getrandom(ask->uuid, sizeof(ask->uuid), 0); /* no request here is repeated, so any uuid will do */
	return ask->questions ? GW_OK : GW_NO_MEMORY;
}

gw_status gw_ask_read_key(struct gw_ask *ask)
{
	return ask->key_file ? gw_key_read(ask->key_file, ask->key, &ask->key_bytes) : GW_OK;
}

static void forget_answer(struct gw_question *question)
{
	json_decref(question->stats);
	gw_free(question->error);
	*question = (struct gw_question){.text = question->text};
}

void gw_ask_end(struct gw_ask *ask)
{
	explicit_bzero(ask->key, sizeof(ask->key));
	for (uint32_t i = 0; ask->questions && i < ask->count; i++)
		forget_answer(&ask->questions[i]);
	gw_free(ask->questions);
	gw_launched_free(&ask->launched);
}

/* --- Requests. --- */

static void fail_question(struct gw_question *question, const char *text)
{
	question->answered = true;
	if (!question->error)
		question->error = gw_strdup(text);
}

static void connect_to(struct gw_ask *ask, struct gw_poll_group *group, struct gw_question *question,
		       uint64_t deadline_ns)
{
	struct gw_connect_options to = {.deadline_ns = deadline_ns, .key = ask->key, .key_bytes = ask->key_bytes};
	uint8_t found[GW_KEY_BYTES];
	gw_status status = gw_address_parse(question->text, &to.address);
	if (!ask->key_file)
		to.key = NULL;
	if (status == GW_OK && !ask->key_file)
		status = gw_key_choose(&to, ask->insecure, found);
	memcpy(to.client_uuid, ask->uuid, sizeof(to.client_uuid));
	if (status == GW_OK)
		status = gw_endpoint_connect(group, &to, question, &question->endpoint);
	if (status != GW_OK)
		fail_question(question, gw_last_error());
}

static void take_stats(struct gw_question *question, const struct gw_completion *completion)
{
	json_error_t error;
	question->answered = true;
	question->stats = json_loadb((const char *)completion->reply, completion->reply_bytes, 0, &error);
	if (!json_is_object(question->stats)) {
		json_decref(question->stats);
		question->stats = NULL;
		fail_question(question, "the server's answer is not a JSON object");
	}
}

/* True: this completion settles the question. */
static bool advance(const struct gw_ask *ask, struct gw_question *question, const struct gw_completion *completion,
		    uint64_t deadline_ns)
{
	static const uint8_t with_clients = GW_STATS_WITH_CLIENTS;
	if (question->answered)
		return false; /* the completion is from an endpoint that was closed */
	if (completion->status != GW_OK) {
		fail_question(question, completion->text);
	} else if (!question->connected) {
		question->connected = true;
		if (gw_endpoint_request(question->endpoint, GW_OP_STATS, 0, &with_clients, ask->with_clients,
					deadline_ns, question))
			fail_question(question, gw_last_error());
	} else {
		take_stats(question, completion);
	}
	if (!question->answered)
		return false;
	gw_endpoint_close(question->endpoint);
	question->endpoint = NULL;
	return true;
}

gw_status gw_ask_all(struct gw_ask *ask)
{
	for (uint32_t i = 0; i < ask->count; i++)
		forget_answer(&ask->questions[i]);
	struct gw_poll_group *group;
	gw_status status = gw_poll_group_create(NULL, &group);
	if (status != GW_OK)
		return status;
	uint64_t deadline = gw_deadline_ns((int64_t)ask->timeout_ms);
	uint32_t open = 0;
	for (uint32_t i = 0; i < ask->count; i++) {
		connect_to(ask, group, &ask->questions[i], deadline);
		open += !ask->questions[i].answered;
	}
	/* The transport reports a missed deadline. It gets one more second to do so. */
	uint64_t end = deadline + GW_NS_PER_SECOND;
	for (uint64_t now; open > 0 && (now = gw_now_ns()) < end;) {
		struct gw_completion completions[COMPLETIONS];
		size_t n = gw_poll_group_poll(group, completions, COMPLETIONS, end - now);
		for (size_t i = 0; i < n; i++)
			open -= advance(ask, completions[i].cookie, &completions[i], deadline);
	}
	for (uint32_t i = 0; i < ask->count; i++) {
		if (!ask->questions[i].answered)
			fail_question(&ask->questions[i], "no answer");
	}
	gw_poll_group_destroy(group);
	return GW_OK;
}
