/* The transports of a build: each scheme has its row, its choice and its backend, and a poll group has room for one
 * backend more than schemes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "transport/transport.h"

static void each_scheme_has_a_row_of_its_own(void **state)
{
	(void)state;
	for (size_t i = 0; i < GW_SCHEMES; i++) {
		const struct gw_scheme *scheme = &gw_schemes[i];
		assert_in_range(strlen(scheme->title), 1, 32);
		assert_in_range(strlen(scheme->name), 1, sizeof(((struct gw_address *)NULL)->scheme) - 1);
		assert_ptr_equal(gw_scheme_find(scheme->name), scheme); /* so no name occurs twice */
		assert_true(scheme->local || !(scheme->is_file || scheme->mapped));
		for (size_t other = 0; other < i; other++)
			assert_true(!scheme->rank || scheme->rank != gw_schemes[other].rank);
	}
	assert_int_equal(gw_schemes[GW_SCHEME_TCP].rank, GW_RANK_FIRST);
	assert_null(gw_scheme_find("auto"));
	assert_null(gw_scheme_find("tc"));
	assert_null(gw_scheme_find(""));
}

static void choices_are_the_table(void **state)
{
	char text[128] = "auto";
	size_t at = 1;
	(void)state;
	assert_string_equal(gw_scheme_choices[0], "auto");
	for (size_t i = 0; i < GW_SCHEMES; i++) {
		if (!gw_schemes[i].rank)
			continue;
		assert_non_null(gw_scheme_choices[at]);
		assert_string_equal(gw_scheme_choices[at++], gw_schemes[i].name);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "|%s", gw_schemes[i].name);
	}
	assert_null(gw_scheme_choices[at]);
	assert_string_equal(GW_SCHEME_CHOICES, text);
}

static void better_ways_come_in_falling_rank(void **state)
{
	const struct gw_scheme *way = NULL;
	unsigned rank = UINT32_MAX, count = 0, expected = 0;
	(void)state;
	while ((way = gw_scheme_below(way)) != NULL) {
		assert_true(way->rank < rank && way->rank > GW_RANK_FIRST);
		rank = way->rank;
		count++;
	}
	for (size_t i = 0; i < GW_SCHEMES; i++)
		expected += gw_schemes[i].rank > GW_RANK_FIRST;
	assert_int_equal(count, expected);
	assert_ptr_equal(gw_scheme_below(NULL), &gw_schemes[GW_SCHEME_SHM]);
	assert_ptr_equal(gw_scheme_below(&gw_schemes[GW_SCHEME_SHM]), &gw_schemes[GW_SCHEME_VERBS]);
}

/* A scheme whose backend this build lacks has another error than an unknown word. */
static void backends_are_found_by_scheme(void **state)
{
	const struct gw_transport *transport;
	(void)state;
	for (size_t i = 0; i < GW_SCHEMES; i++) {
		gw_status status = gw_transport_find(gw_schemes[i].name, &transport);
		if (gw_schemes[i].needs && status != GW_OK) {
			assert_int_equal(status, GW_UNSUPPORTED);
			assert_non_null(strstr(gw_last_error(), gw_schemes[i].needs));
			continue;
		}
		assert_int_equal(status, GW_OK);
		assert_ptr_equal(transport->scheme, &gw_schemes[i]);
		assert_int_equal(transport->number, i);
		/* A client reads mapped memory without the server's code. */
		assert_true(transport->one_sided || !transport->scheme->mapped);
	}
	assert_int_equal(gw_transport_find("carrier", &transport), GW_UNSUPPORTED);
	assert_null(transport);
	assert_non_null(strstr(gw_last_error(), "no transport \"carrier\"; built in: memory, tcp, shm"));
}

/* --- A further backend, with a state, a word for each buffer, and one completion. --- */

struct carrier {
	uint32_t shut, registered, released, woken;
	bool owes;
};

static struct carrier carrier;
static const struct gw_transport carrier_transport;

static gw_status carrier_open(struct gw_poll_group *group, void **state)
{
	(void)group;
	*state = &carrier;
	return GW_OK;
}

static void carrier_shut(void *state)
{
	((struct carrier *)state)->shut++;
}

static gw_status carrier_buffer_register(void *state, struct gw_buffer *buffer)
{
	((struct carrier *)state)->registered++;
	assert_null(buffer->words[carrier_transport.number]);
	buffer->words[carrier_transport.number] = state;
	return GW_OK;
}

static void carrier_buffer_release(void *state, struct gw_buffer *buffer)
{
	(void)state;
	assert_ptr_equal(buffer->words[carrier_transport.number], &carrier);
	carrier.released++;
}

static size_t carrier_poll(void *state, struct gw_completion *completions, size_t max, uint64_t timeout_ns)
{
	struct carrier *own = state;
	(void)timeout_ns;
	if (!own->owes || !max)
		return 0;
	own->owes = false;
	completions[0] = (struct gw_completion){.cookie = own, .text = ""};
	return 1;
}

static bool carrier_busy(void *state)
{
	return ((struct carrier *)state)->owes;
}

static int carrier_wait_fd(void *state, uint64_t *until_ns)
{
	(void)state;
	(void)until_ns;
	return -1;
}

static void carrier_wake(void *state)
{
	((struct carrier *)state)->woken++;
}

static const struct gw_scheme carrier_scheme = {.name = "carrier", .title = "a made-up carrier", .rank = 7};
static const struct gw_transport carrier_transport = {
	.scheme = &carrier_scheme,
	.number = GW_SCHEMES,
	.open = carrier_open,
	.shut = carrier_shut,
	.buffer_register = carrier_buffer_register,
	.buffer_release = carrier_buffer_release,
	.poll = carrier_poll,
	.busy = carrier_busy,
	.wait_fd = carrier_wait_fd,
	.wake = carrier_wake,
};

/* Together with every backend of this build that opens on this host. */
static void a_group_has_room_for_one_backend_more(void **state)
{
	static uint8_t memory[4096];
	struct gw_poll_group *group;
	struct gw_buffer *before, *after;
	struct gw_completion completion;
	void *part;
	(void)state;
	memset(&carrier, 0, sizeof(carrier));
	assert_int_equal(gw_poll_group_create(NULL, &group), GW_OK);
	assert_int_equal(gw_buffer_register(group, memory, 1024, &before), GW_OK);
	for (size_t i = 0; i < GW_SCHEMES; i++) {
		const struct gw_transport *transport;
		gw_status status = gw_transport_find(gw_schemes[i].name, &transport);
		if (status == GW_OK)
			status = gw_poll_group_state(group, transport, &part);
		assert_true(status == GW_OK || gw_schemes[i].needs);
	}
	assert_int_equal(gw_poll_group_state(group, &carrier_transport, &part), GW_OK);
	assert_ptr_equal(part, &carrier);
	assert_int_equal(gw_buffer_register(group, memory + 1024, 1024, &after), GW_OK);
	assert_int_equal(carrier.registered, 2);

	carrier.owes = true;
	size_t count = gw_poll_group_poll(group, &completion, 1, GW_NS_PER_SECOND);
	assert_int_equal(count, 1);
	assert_ptr_equal(completion.cookie, &carrier);
	gw_poll_group_wake(group);
	assert_int_equal(carrier.woken, 1);

	gw_buffer_release(after);
	assert_int_equal(carrier.released, 1);
	assert_ptr_equal(before->words[carrier_transport.number], &carrier);
	gw_poll_group_destroy(group);
	assert_int_equal(carrier.shut, 1);
	assert_int_equal(carrier.released, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_scheme_has_a_row_of_its_own),      cmocka_unit_test(choices_are_the_table),
		cmocka_unit_test(better_ways_come_in_falling_rank),      cmocka_unit_test(backends_are_found_by_scheme),
		cmocka_unit_test(a_group_has_room_for_one_backend_more),
	};
	return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
