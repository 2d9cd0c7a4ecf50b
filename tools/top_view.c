/* Counters of two looks become rates; buckets become percentiles, which are the bound of their bucket: at most twice
 * the true value. Answers come from other programs, so each value may be missing or of another kind. */
#include "tools/top_view.h"

#include <stdio.h>
#include <string.h>

#include "core/numbers/latency.h"

/* --- Values of answers. --- */

static double answer_number(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

static const char *text_at(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text ? text : "";
}

/* The member of a list of objects whose `key` is the text; NULL: none. */
static json_t *find_by(const json_t *list, const char *key, const char *text)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(text_at(json_array_get(list, i), key), text) == 0)
			return json_array_get(list, i);
	return NULL;
}

static json_t *rate_json(double now, double before, double seconds, bool known)
{
	return known && now >= before && seconds > 0 ? json_real((now - before) / seconds) : json_null();
}

/* The same process as in the look before. */
static bool is_same(const json_t *now, const json_t *before)
{
	return before && answer_number(now, "pid") == answer_number(before, "pid") &&
	       answer_number(now, "uptime_s") >= answer_number(before, "uptime_s");
}

/* --- Latencies. --- */

/* Adds the counts of an operation ("" all) since the look before. kind: "request" or "slice". */
static void add_latency(const json_t *now, const json_t *before, const char *op, const char *kind,
			struct gw_latency *into)
{
	const json_t *times = json_object_get(now, "times"), *old_times = json_object_get(before, "times");
	for (size_t i = 0; i < json_array_size(times); i++) {
		const json_t *one = json_array_get(times, i);
		const char *name = text_at(one, "op");
		if (*op && strcmp(op, name) != 0)
			continue;
		const json_t *buckets = json_object_get(json_object_get(one, kind), "buckets");
		const json_t *old = json_object_get(json_object_get(find_by(old_times, "op", name), kind), "buckets");
		for (size_t b = 0; b < GW_LATENCY_BUCKETS; b++) {
			json_int_t count = json_integer_value(json_array_get(buckets, b));
			json_int_t counted = json_integer_value(json_array_get(old, b));
			into->buckets[b] += count > counted ? (uint64_t)(count - counted) : 0;
		}
	}
}

/* null: nothing was counted. The last bucket has no bound: its lower one is shown. */
static json_t *quantile_json(const struct gw_latency *latency, double share)
{
	uint64_t count = 0, seen = 0;
	for (uint32_t b = 0; b < GW_LATENCY_BUCKETS; b++)
		count += latency->buckets[b];
	for (uint32_t b = 0; b < GW_LATENCY_BUCKETS; b++) {
		seen += latency->buckets[b];
		if (count && (double)seen >= share * (double)count)
			return json_real((double)gw_latency_bound_ns(b < GW_LATENCY_BUCKETS - 1 ? b : b - 1) / 1e9);
	}
	return json_null();
}

static void set_latency(json_t *into, const json_t *now, const json_t *before, const char *op)
{
	struct gw_latency requests = {0}, slices = {0};
	add_latency(now, before, op, "request", &requests);
	add_latency(now, before, op, "slice", &slices);
	json_object_set_new(into, "p50_s", quantile_json(&requests, 0.5));
	json_object_set_new(into, "p99_s", quantile_json(&requests, 0.99));
	json_object_set_new(into, "slice_p99_s", quantile_json(&slices, 0.99));
}

/* --- Servers. --- */

/* Adds the calls of an operation over all transports. */
static double sum_calls_of(const json_t *answer, const char *op, const char *field)
{
	const json_t *calls = json_object_get(answer, "calls");
	double sum = 0;
	for (size_t i = 0; i < json_array_size(calls); i++)
		if (!*op || strcmp(text_at(json_array_get(calls, i), "op"), op) == 0)
			sum += answer_number(json_array_get(calls, i), field);
	return sum;
}

static json_t *ops_json(const json_t *now, const json_t *before, double seconds)
{
	const json_t *calls = json_object_get(now, "calls");
	json_t *ops = json_array();
	for (size_t i = 0; ops && i < json_array_size(calls); i++) {
		const char *op = text_at(json_array_get(calls, i), "op");
		if (find_by(ops, "op", op)) /* over another transport */
			continue;
		json_t *one = json_pack("{s:s}", "op", op);
		json_object_set_new(one, "requests_per_s",
				    rate_json(sum_calls_of(now, op, "requests"), sum_calls_of(before, op, "requests"),
					      seconds, before));
		json_object_set_new(one, "sent_bytes_per_s",
				    rate_json(sum_calls_of(now, op, "sent_bytes"),
					      sum_calls_of(before, op, "sent_bytes"), seconds, before));
		set_latency(one, now, before, op);
		json_array_append_new(ops, one);
	}
	return ops;
}

static json_t *server_json(const struct gw_question *question, const json_t *before, double seconds)
{
	static const char *const kept[] = {
		"graph",         "part",  "parts",        "ready",   "uptime_s", "connections", "connections_max",
		"requests_open", "bytes", "tensor_bytes", "version", "name",     "transports"};
	static const struct {
		const char *name, *figure;
	} rates[] = {{"reads_per_s", "reads"},
		     {"requests_per_s", "requests"},
		     {"errors_per_s", "errors"},
		     {"torn_per_s", "rows_torn"},
		     {"replays_per_s", "replays"}};
	const json_t *now = question->stats;
	json_t *server = json_pack("{s:s}", "server", question->text);
	if (!server)
		return NULL;
	if (!now) {
		json_object_set_new(server, "error",
				    json_string(question->error ? question->error : "out of memory for the reason"));
		return server;
	}
	if (!is_same(now, before))
		before = NULL;
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		json_object_set(server, kept[i], json_object_get(now, kept[i]));
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++)
		json_object_set_new(server, rates[i].name,
				    rate_json(answer_number(now, rates[i].figure),
					      answer_number(before, rates[i].figure), seconds, before));
	json_object_set_new(server, "sent_bytes_per_s",
			    rate_json(sum_calls_of(now, "", "sent_bytes"), sum_calls_of(before, "", "sent_bytes"),
				      seconds, before));
	set_latency(server, now, before, "");
	json_object_set_new(server, "ops", ops_json(now, before, seconds));
	return server;
}

/* --- Clients. --- */

static void add_once(json_t *list, const char *text)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(json_string_value(json_array_get(list, i)), text) == 0)
			return;
	json_array_append_new(list, json_string(text));
}

static void grow_number(json_t *object, const char *name, double more)
{
	json_object_set_new(object, name, json_real(answer_number(object, name) + more));
}

/* Adds a connection to its client, which is made if it is new. */
static void add_connection(json_t *clients, const struct gw_question *question, const json_t *connection)
{
	const char *id = text_at(connection, "client");
	json_t *client = find_by(clients, "client", id);
	if (!client) {
		client = json_pack("{s:s, s:[], s:[], s:[]}", "client", id, "names", "transports", "waits");
		json_array_append_new(clients, client);
	}
	if (!client)
		return;
	add_once(json_object_get(client, "names"), text_at(connection, "name"));
	add_once(json_object_get(client, "transports"), text_at(connection, "transport"));
	grow_number(client, "requests", answer_number(connection, "requests"));
	grow_number(client, "reads", answer_number(connection, "reads"));
	grow_number(client, "read_bytes", answer_number(connection, "read_bytes"));
	if (*text_at(connection, "waits_for"))
		json_array_append_new(json_object_get(client, "waits"),
				      json_pack("{s:s, s:f, s:s, s:f}", "server", question->text, "part",
						answer_number(question->stats, "part"), "op",
						text_at(connection, "waits_for"), "s",
						answer_number(connection, "waits_s")));
}

/* answers: NULL takes those of the questions. */
static json_t *clients_of(const struct gw_ask *ask, json_t *const *answers)
{
	json_t *clients = json_array();
	for (uint32_t i = 0; clients && i < ask->count; i++) {
		const json_t *list = json_object_get(answers ? answers[i] : ask->questions[i].stats, "clients");
		for (size_t c = 0; c < json_array_size(list); c++)
			add_connection(clients, &ask->questions[i], json_array_get(list, c));
	}
	return clients;
}

static json_t *view_clients_json(const struct gw_ask *ask, json_t *const *before, double seconds)
{
	static const char *const rates[][2] = {
		{"requests", "requests_per_s"}, {"reads", "reads_per_s"}, {"read_bytes", "read_bytes_per_s"}};
	char own[2 * sizeof(ask->uuid) + 1];
	for (size_t i = 0; i + 1 < sizeof(ask->uuid); i++)
		snprintf(own + 2 * i, 3, "%02x", ask->uuid[i]);
	json_t *clients = clients_of(ask, NULL), *old = clients_of(ask, before);
	for (size_t i = json_array_size(clients); i-- > 0;) {
		json_t *client = json_array_get(clients, i);
		const json_t *then = find_by(old, "client", text_at(client, "client"));
		for (size_t r = 0; r < sizeof(rates) / sizeof(*rates); r++)
			json_object_set_new(client, rates[r][1],
					    rate_json(answer_number(client, rates[r][0]),
						      answer_number(then, rates[r][0]), seconds, then));
		if (strcmp(text_at(client, "client"), own) == 0)
			json_array_remove(clients, i);
	}
	json_decref(old);
	return clients;
}

json_t *gw_top_view(const struct gw_ask *ask, json_t *const *before, double interval_s)
{
	json_t *servers = json_array();
	for (uint32_t i = 0; servers && i < ask->count; i++)
		json_array_append_new(servers, server_json(&ask->questions[i], before[i], interval_s));
	return json_pack("{s:f, s:o, s:o}", "interval_s", interval_s, "servers", servers, "clients",
			 view_clients_json(ask, before, interval_s));
}
