/* The calls on tensors. Names: every decoder refuses a field without an end, or with bytes after its end, wherever the
 * field is; a longer name never passes for its prefix. Pushes: the parameters of every optimizer arrive unchanged, and
 * a list that the optimizer does not use is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/tensor_call.h"

enum { CALL_CREATE, CALL_LIST, CALL_DELETE, CALL_HOLD, REPLY_STATE, REPLY_LISTED, CALLS };

/* A field of a message: its offset and size. */
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
	const uint8_t *epochs;
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
		return gw_tensor_lease_parse(bytes, count, job);
	case REPLY_STATE:
		return gw_tensor_state_parse(bytes, count, 2, &state, &epochs);
	default:
		return gw_tensor_listed_parse(bytes, count, listed, &n);
	}
}

/* A valid message, and its text fields, ended by a field of no bytes. */
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
		fields[0] = FIELD(struct gw_tensor_plan, name); /* every message begins with the plan */
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
			bytes[field->at + field->bytes - 1] = 0; /* the longest possible text */
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

static gw_status parse_push(const uint8_t *bytes, size_t count, struct gw_tensor_push *push, size_t *left)
{
	uint8_t *exact = malloc(count ? count : 1); /* so that a sanitizer detects a read past the end */
	const uint8_t *rows, *payload;
	memcpy(exact, bytes, count);
	gw_status status = gw_tensor_push_parse(exact, count, push, &rows, &payload, left);
	free(exact);
	return status;
}

static void pushes_carry_their_parameters(void **state)
{
	(void)state;
	const struct gw_tensor_rows_call rows = {.epoch = 7, .count = 1};
	uint32_t kinds = 0;
	for (; gw_optimizer_rule_of(kinds); kinds++) {
		struct gw_tensor_push push = {.rows = rows, .squares = true}, out;
		uint8_t bytes[GW_TENSOR_PUSH_HEAD_MAX + 8] = {0};
		uint64_t values[GW_OPTIMIZER_PARAMETERS_MAX], arrived[GW_OPTIMIZER_PARAMETERS_MAX];
		size_t left;
		memset(&push.optimizer, 0x3e, sizeof(push.optimizer)); /* floats of 0.186 */
		push.optimizer.kind = (enum gw_optimizer_kind)kinds;
		push.optimizer.combine = GW_COMBINE_EACH;
		uint32_t head = gw_tensor_push_encode(&push, bytes),
			 count = gw_optimizer_parameters(&push.optimizer, values);
		assert_int_equal(head, sizeof(struct gw_tensor_push_call) + 8 * count);
		assert_int_equal(parse_push(bytes, head + 8, &out, &left), GW_OK);
		assert_int_equal(left, 0);
		assert_memory_equal(&out.rows, &rows, sizeof(rows));
		assert_true(out.squares && out.optimizer.kind == push.optimizer.kind &&
			    out.optimizer.combine == GW_COMBINE_EACH);
		assert_int_equal(gw_optimizer_parameters(&out.optimizer, arrived), count);
		assert_memory_equal(arrived, values, count * 8);
		assert_int_equal(gw_optimizer_check(&out.optimizer), GW_OK);
		for (size_t n = 0; n < head + 8; n++)
			assert_int_equal(parse_push(bytes, n, &out, &left), GW_PROTOCOL);
	}
	assert_true(kinds > 0);
}

static void parameters_that_an_optimizer_does_not_have_are_refused(void **state)
{
	(void)state;
	const struct gw_tensor_push push = {.optimizer = {.kind = GW_SGD, .rate = 1}};
	uint8_t bytes[GW_TENSOR_PUSH_HEAD_MAX] = {0};
	struct gw_tensor_push out;
	struct gw_tensor_push_call call, bad[6];
	size_t left, bytes_count = sizeof(bytes);
	gw_tensor_push_encode(&push, bytes);
	assert_int_equal(parse_push(bytes, bytes_count, &out, &left), GW_OK);
	memcpy(&call, bytes, sizeof(call));
	for (int i = 0; i < 6; i++)
		bad[i] = call;
	bad[0].parameters = 0;
	bad[1].parameters = 2;
	bad[2].parameters = UINT32_MAX;
	bad[3].kind = UINT32_MAX;
	bad[4].combine = 3;
	bad[5].squares = 2;
	for (int i = 0; i < 6; i++) {
		memcpy(bytes, &bad[i], sizeof(call));
		assert_int_equal(parse_push(bytes, bytes_count, &out, &left), GW_PROTOCOL);
	}
	memcpy(bytes, &call, sizeof(call));
	bytes[sizeof(call) + 4] = 1; /* next to the rate's four bytes */
	assert_int_equal(parse_push(bytes, bytes_count, &out, &left), GW_PROTOCOL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_stands_behind_a_name_is_refused),
		cmocka_unit_test(a_name_without_an_end_is_refused),
		cmocka_unit_test(names_are_checked_where_they_come_in),
		cmocka_unit_test(pushes_carry_their_parameters),
		cmocka_unit_test(parameters_that_an_optimizer_does_not_have_are_refused),
	};
	return cmocka_run_group_tests_name("protocol/tensor_call", tests, NULL, NULL);
}
