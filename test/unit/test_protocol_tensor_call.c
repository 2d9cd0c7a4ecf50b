/* Names in the calls on tensors: a field that does not end, or has anything behind its end, is refused by every
 * decoder, wherever the field lies; a longer name is never taken for one that it begins with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/tensor_call.h"

enum { CALL_CREATE, CALL_LIST, CALL_DELETE, CALL_HOLD, REPLY_STATE, REPLY_LISTED, CALLS };

/* A field of a message: where it lies, and its size. */
struct field {
	size_t at, bytes;
};

static const struct gw_tensor_plan plan = {
	.name = "a", .job = "j", .source = "s", .ndim = 1, .shape = {3}, .dtype = GW_FLOAT32};

static gw_status parse(int call, const uint8_t *bytes, size_t count)
{
	struct gw_tensor_create_call create;
	struct gw_tensor_list_call list;
	struct gw_tensor_delete_call delete;
	struct gw_tensor_state state;
	static struct gw_tensor_listed listed[GW_TENSOR_LIST_MAX];
	const uint8_t *births;
	char job[GW_JOB_NAME_MAX + 1];
	uint32_t n;
	switch (call) {
	case CALL_CREATE:
		return gw_tensor_create_parse(bytes, count, &create);
	case CALL_LIST:
		return gw_tensor_list_parse(bytes, count, &list);
	case CALL_DELETE:
		return gw_tensor_delete_parse(bytes, count, &delete);
	case CALL_HOLD:
		return gw_tensor_hold_parse(bytes, count, job);
	case REPLY_STATE:
		return gw_tensor_state_parse(bytes, count, 2, &state, &births);
	default:
		return gw_tensor_listed_parse(bytes, count, listed, &n);
	}
}

/* A message that is right; its fields of text, ended by one of no bytes. */
static size_t make(int call, uint8_t *bytes, struct field fields[4])
{
#define FIELD(type, member)                                                                                            \
	(struct field)                                                                                                 \
	{                                                                                                              \
		offsetof(type, member), sizeof(((type *)0)->member)                                                    \
	}
	struct gw_tensor_create_call create = {.plan = plan};
	struct gw_tensor_list_call list = {.job = "j", .after = "a"};
	struct gw_tensor_delete_call delete = {.name = "a", .job = "j"};
	struct gw_tensor_state state = {.plan = plan};
	struct gw_tensor_listed listed = {.plan = plan};
	char job[GW_JOB_NAME_MAX + 1] = "j";
	const void *from[CALLS] = {&create, &list, &delete, job, &state, &listed};
	const size_t counts[CALLS] = {sizeof(create), sizeof(list),  sizeof(delete),
				      sizeof(job),    sizeof(state), sizeof(listed)};
	memset(fields, 0, 4 * sizeof(*fields));
	if (call == CALL_LIST) {
		fields[0] = FIELD(struct gw_tensor_list_call, job);
		fields[1] = FIELD(struct gw_tensor_list_call, after);
	} else if (call == CALL_DELETE) {
		fields[0] = FIELD(struct gw_tensor_delete_call, job);
		fields[1] = FIELD(struct gw_tensor_delete_call, name);
	} else if (call == CALL_HOLD) {
		fields[0] = (struct field){0, sizeof(job)};
	} else {
		fields[0] = FIELD(struct gw_tensor_plan, name); /* the plan comes first everywhere */
		fields[1] = FIELD(struct gw_tensor_plan, job);
		fields[2] = FIELD(struct gw_tensor_plan, source);
	}
	memcpy(bytes, from[call], counts[call]);
	return counts[call];
}

static void what_stands_behind_a_name_is_refused(void **state)
{
	(void)state;
	uint8_t bytes[1024];
	struct field fields[4];
	for (int call = 0; call < CALLS; call++) {
		size_t count = make(call, bytes, fields);
		assert_true(count <= sizeof(bytes));
		assert_int_equal(parse(call, bytes, count), GW_OK);
		for (const struct field *field = fields; field->bytes; field++) {
			for (size_t i = 2; i < field->bytes; i++) {
				bytes[field->at + i] = 'b';
				assert_int_equal(parse(call, bytes, count), GW_PROTOCOL);
				bytes[field->at + i] = 0;
			}
			bytes[field->at + 1] = 'b'; /* a longer name */
			assert_int_equal(parse(call, bytes, count), GW_OK);
		}
	}
}

static void a_name_without_an_end_is_refused(void **state)
{
	(void)state;
	uint8_t bytes[1024];
	struct field fields[4];
	for (int call = 0; call < CALLS; call++) {
		size_t count = make(call, bytes, fields);
		for (const struct field *field = fields; field->bytes; field++) {
			memset(bytes + field->at, 'n', field->bytes);
			assert_int_equal(parse(call, bytes, count), GW_PROTOCOL);
			bytes[field->at + field->bytes - 1] = 0; /* the longest that there is */
			assert_int_equal(parse(call, bytes, count), GW_OK);
		}
	}
}

static void names_are_checked_where_they_come_in(void **state)
{
	(void)state;
	char longest[GW_TENSOR_NAME_MAX + 2];
	memset(longest, 'n', sizeof(longest));
	longest[GW_TENSOR_NAME_MAX + 1] = 0;
	assert_false(gw_tensor_name_valid(longest));
	longest[GW_TENSOR_NAME_MAX] = 0;
	assert_true(gw_tensor_name_valid(longest));
	longest[GW_JOB_NAME_MAX + 1] = 0;
	assert_false(gw_job_name_valid(longest));
	longest[GW_JOB_NAME_MAX] = 0;
	assert_true(gw_job_name_valid(longest));
	assert_false(gw_tensor_name_valid(""));
	assert_false(gw_tensor_name_valid("a b"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_stands_behind_a_name_is_refused),
		cmocka_unit_test(a_name_without_an_end_is_refused),
		cmocka_unit_test(names_are_checked_where_they_come_in),
	};
	return cmocka_run_group_tests_name("protocol/tensor_call", tests, NULL, NULL);
}
