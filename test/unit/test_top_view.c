/* The view of two looks: rates, percentiles, clients and what they wait for; and answers that are not what they should
 * be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tools/top_view.h"

static json_t *parsed(const char *text)
{
	json_error_t error;
	json_t *value = json_loads(text, 0, &error);
	if (!value)
		fail_msg("%s: %s", error.text, text);
	return value;
}

/* The view of servers a and b; NULL: the server did not answer. Owned by the caller. */
static json_t *view_of(const char *const now[2], const char *const before[2], double seconds)
{
	struct gw_question questions[2] = {{.text = "a:1"}, {.text = "b:2"}};
	struct gw_ask ask = {.questions = questions, .count = 2, .uuid = {0xee}};
	json_t *then[2] = {0};
	char error[] = "away";
	for (int i = 0; i < 2; i++) {
		questions[i].stats = now[i] ? parsed(now[i]) : NULL;
		questions[i].error = now[i] ? NULL : error;
		then[i] = before[i] ? parsed(before[i]) : NULL;
	}
	json_t *view = gw_top_view(&ask, then, seconds);
	for (int i = 0; i < 2; i++) {
		json_decref(questions[i].stats);
		json_decref(then[i]);
	}
	assert_non_null(view);
	return view;
}

static const json_t *at(const json_t *view, const char *list, size_t i)
{
	const json_t *found = json_array_get(json_object_get(view, list), i);
	if (!found)
		fail_msg("%s has no element %zu", list, i);
	return found;
}

static void is_number(const json_t *object, const char *name, double wanted)
{
	const json_t *value = json_object_get(object, name);
	if (!json_is_number(value) || json_number_value(value) < wanted * 0.999999 ||
	    json_number_value(value) > wanted * 1.000001)
		fail_msg("%s is %f, not %f", name, json_number_value(value), wanted);
}

static void is_unknown(const json_t *object, const char *name)
{
	assert_true(json_is_null(json_object_get(object, name)));
}

#define BUCKETS(first, fifth)                                                                                          \
	"{\"buckets\": [" #first ", 0, 0, 0, " #fifth                                                                  \
	", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}"

static void counters_become_rates(void **state)
{
	(void)state;
	const char *const before[2] = {
		"{\"pid\": 1, \"uptime_s\": 5, \"reads\": 100, \"requests\": 50, \"errors\": 1, \"part\": 0, "
		"\"calls\": [{\"op\": \"sample\", \"transport\": \"tcp\", \"requests\": 40, \"sent_bytes\": 1000}], "
		"\"times\": [{\"op\": \"sample\", \"request\": " BUCKETS(40, 0) ", \"slice\": " BUCKETS(40, 0) "}]}",
		"{\"pid\": 2, \"uptime_s\": 50, \"reads\": 1000}"};
	const char *const now[2] = {
		"{\"pid\": 1, \"uptime_s\": 7, \"reads\": 300, \"requests\": 90, \"errors\": 1, \"part\": 0, "
		"\"calls\": [{\"op\": \"sample\", \"transport\": \"tcp\", \"requests\": 60, \"sent_bytes\": 3000}, "
		"{\"op\": \"sample\", \"transport\": \"shm\", \"requests\": 20, \"sent_bytes\": 500}], "
		"\"times\": [{\"op\": \"sample\", \"request\": " BUCKETS(60, 10) ", \"slice\": " BUCKETS(70, 0) "}]}",
		"{\"pid\": 3, \"uptime_s\": 1, \"reads\": 7}"}; /* restarted */
	json_t *view = view_of(now, before, 2);
	const json_t *server = at(view, "servers", 0), *op = at(server, "ops", 0);
	assert_int_equal(json_array_size(json_object_get(server, "ops")), 1); /* both transports are one */
	is_number(server, "reads_per_s", 100);
	is_number(server, "requests_per_s", 20);
	assert_true(json_number_value(json_object_get(server, "errors_per_s")) == 0);
	is_number(server, "sent_bytes_per_s", 1250);
	is_number(op, "requests_per_s", 20);
	is_number(op, "p50_s", 1.024e-6);      /* 20 of 30 in the first bucket */
	is_number(op, "p99_s", 1.024e-6 * 16); /* and 10 in the fifth */
	is_number(op, "slice_p99_s", 1.024e-6);
	is_unknown(at(view, "servers", 1), "reads_per_s");
	is_number(view, "interval_s", 2);
	json_decref(view);
}

static void clients_are_joined_over_servers(void **state)
{
	(void)state;
	const char *const before[2] = {
		"{\"clients\": [{\"client\": \"c1\", \"name\": \"h:1\", \"transport\": \"tcp\", \"requests\": 10, "
		"\"reads\": 4, \"read_bytes\": 100, \"waits_for\": \"\", \"waits_s\": 0}]}",
		"{}"};
	const char *const now[2] = {
		"{\"part\": 0, \"clients\": [{\"client\": \"c1\", \"name\": \"h:1\", \"transport\": \"tcp\", \"requests\": 14, "
		"\"reads\": 5, \"read_bytes\": 300, \"waits_for\": \"sample\", \"waits_s\": 0.25}, "
		"{\"client\": \"ee0000000000000000000000000000\", \"name\": \"me\", \"transport\": \"tcp\"}]}",
		"{\"part\": 1, \"clients\": [{\"client\": \"c1\", \"name\": \"h:2\", \"transport\": \"shm\", \"requests\": 2, "
		"\"reads\": 1, \"read_bytes\": 200, \"waits_for\": \"\", \"waits_s\": 0}, "
		"{\"client\": \"c2\", \"name\": \"h:3\", \"transport\": \"tcp\", \"requests\": 9, "
		"\"reads\": 9, \"read_bytes\": 9, \"waits_for\": \"edges\", \"waits_s\": 1.5}]}"};
	json_t *view = view_of(now, before, 2);
	assert_int_equal(json_array_size(json_object_get(view, "clients")), 2); /* this program is not shown */
	const json_t *first = at(view, "clients", 0), *second = at(view, "clients", 1);
	assert_int_equal(json_array_size(json_object_get(first, "names")), 2);
	assert_int_equal(json_array_size(json_object_get(first, "transports")), 2);
	is_number(first, "requests_per_s", 3);
	is_number(first, "reads_per_s", 1);
	is_number(first, "read_bytes_per_s", 200);
	assert_int_equal(json_array_size(json_object_get(first, "waits")), 1);
	const json_t *wait = at(first, "waits", 0);
	assert_string_equal(json_string_value(json_object_get(wait, "server")), "a:1");
	assert_string_equal(json_string_value(json_object_get(wait, "op")), "sample");
	is_number(wait, "s", 0.25);
	is_unknown(second, "requests_per_s"); /* it was not there */
	assert_string_equal(json_string_value(json_object_get(at(second, "waits", 0), "server")), "b:2");
	json_decref(view);
}

static void answers_may_lie(void **state)
{
	(void)state;
	const char *const wrong[] = {
		"{}", "{\"calls\": 3, \"times\": {}, \"clients\": \"x\"}",
		"{\"calls\": [1, null, {}], \"times\": [{\"op\": 7, \"request\": []}], \"clients\": [[]]}",
		"{\"reads\": \"many\", \"uptime_s\": [], \"clients\": [{\"waits_for\": \"x\"}, {}]}",
		"{\"times\": [{\"op\": \"a\", \"request\": {\"buckets\": [-1, 1e300, \"x\"]}}]}"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		const char *const both[2] = {wrong[i], NULL};
		json_decref(view_of(both, both, 1));
		json_decref(view_of(both, both, 0));
	}
	const char *const none[2] = {NULL, NULL};
	json_t *view = view_of(none, none, 1);
	assert_string_equal(json_string_value(json_object_get(at(view, "servers", 1), "error")), "away");
	json_decref(view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_become_rates),
		cmocka_unit_test(clients_are_joined_over_servers),
		cmocka_unit_test(answers_may_lie),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
