/* Requests of a client's writes, as the server gets them while it sends no answer. Requests in flight have no row in
 * common, since they may take effect in any order. A request whose link is cut between two of its slices goes on there
 * when it is repeated, so that no row is written twice. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "protocol/ops.h"
#include "test/support/client_setup.h"
#include "test/support/must.h"
#include "test/support/relay.h"
#include "transport/service/service_backend.h"

#define COLUMNS   400 /* of a long call */
#define FLIGHTS   60
#define AT_ONCE   4  /* calls of a flight: as many as a lane may have open */
#define FEW_ROWS  24 /* so that calls have rows in common */
#define LONG_CALL 300

/* In the place of the server's handlers of the two writes. */
static struct seen {
	gw_handler truths[2];
	void *contexts[2];
	_Atomic uint32_t count; /* requests of few rows */
	/* Stops a long request after its first slice, until its connection is lost. */
	atomic_bool stops, stopped;
} seen;

static gw_status see(const struct gw_call *call, struct gw_reply *reply, int which)
{
	bool is_long = call->byte_count > LONG_CALL * COLUMNS * sizeof(float);
	if (is_long && atomic_load(&seen.stopped))
		return GW_AGAIN;
	gw_status status = seen.truths[which](seen.contexts[which], call, reply);
	if (is_long && atomic_load(&seen.stops))
		atomic_store(&seen.stopped, status == GW_AGAIN);
	if (!is_long && status != GW_AGAIN)
		atomic_fetch_add(&seen.count, 1);
	return status;
}

static gw_status see_update(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	(void)context;
	return see(call, reply, 0);
}

static gw_status see_push(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	(void)context;
	return see(call, reply, 1);
}

/* Before any client connects. */
static void seen_begin(struct gw_service *service)
{
	static const uint16_t ops[] = {GW_OP_TENSOR_UPDATE, GW_OP_TENSOR_PUSH};
	static const gw_handler handlers[] = {see_update, see_push};
	atomic_store(&seen.stops, false);
	atomic_store(&seen.stopped, false);
	for (int i = 0; i < 2; i++) {
		seen.truths[i] = service->handlers[ops[i]].call;
		seen.contexts[i] = service->handlers[ops[i]].context;
		service->handlers[ops[i]].call = handlers[i];
	}
}

/* A server and a client whose answers pass a relay. */
struct flight {
	struct setup setup;
	struct relay relay;
	struct gw_client *client;
	const struct gw_tensor *tensors[2];
};

static struct gw_client *flight_open(const char *const *list)
{
	const struct gw_client_options options = {.servers = list,
						  .server_count = 1,
						  .threads = 1,
						  .insecure = true,
						  .transport = "tcp",
						  .job = "flight"};
	return open_client(&options);
}

static void flight_begin(struct flight *flight, uint64_t rows, uint64_t columns)
{
	static const char *const names[] = {"one", "two"};
	setup_begin_open(&flight->setup, 606, 1, SETUP_SCALE);
	seen_begin(flight->setup.cluster.servers[0]->service);
	relay_begin(&flight->relay, &flight->setup.cluster.addresses[0]);
	const char *list[] = {flight->relay.text};
	flight->client = flight_open(list);
	for (int t = 0; t < 2; t++) {
		const struct gw_tensor_spec spec = {.name = names[t],
						    .dtype = GW_FLOAT32,
						    .placement = GW_PLACE_STRIPED,
						    .ndim = 2,
						    .shape = {rows, columns}};
		must(gw_tensor_create(flight->client, &spec, &flight->tensors[t]));
	}
}

static void flight_end(struct flight *flight)
{
	gw_client_close(flight->client);
	relay_end(&flight->relay);
	setup_end(&flight->setup);
}

/* A call of one to four rows, ascending, some of them twice. */
struct small_call {
	struct gw_ticket *ticket;
	uint32_t which, n;
	bool push;
	int64_t ids[AT_ONCE];
	float rows[AT_ONCE];
};

static void small_call_draw(struct small_call *call, uint64_t seed)
{
	*call = (struct small_call){
		.which = gw_mix64(seed) % 2, .n = 1 + gw_mix64(seed + 1) % AT_ONCE, .push = gw_mix64(seed + 2) % 2};
	int64_t id = (int64_t)(gw_mix64(seed + 3) % FEW_ROWS);
	for (uint32_t i = 0; i < call->n; i++) {
		call->ids[i] = id;
		call->rows[i] = (float)(gw_mix64(seed + 4 + i) % 100);
		id += (int64_t)(gw_mix64(seed + 9 + i) % 3);
		id = id < FEW_ROWS ? id : FEW_ROWS - 1;
	}
}

/* How many calls are sent before an answer comes: up to the first whose rows begin or end among those of an open one.
 */
static uint32_t calls_sent(const struct small_call *calls)
{
	for (uint32_t i = 1; i < AT_ONCE; i++) {
		for (uint32_t k = 0; k < i; k++) {
			if (calls[i].which == calls[k].which && calls[i].ids[0] <= calls[k].ids[calls[k].n - 1] &&
			    calls[k].ids[0] <= calls[i].ids[calls[i].n - 1])
				return i;
		}
	}
	return AT_ONCE;
}

/* The relay holds back the answers. A read of the client follows its calls on the connection. So at the time of the
 * read the server has seen every request that the client sends without an answer. */
static void open_requests_have_no_row_in_common(void **state)
{
	(void)state;
	static const struct gw_optimizer add = {.kind = GW_SGD, .rate = -1};
	static float expected[2][FEW_ROWS];
	struct flight flight;
	uint32_t waited = 0;
	flight_begin(&flight, FEW_ROWS, 1);
	struct gw_service *service = flight.setup.cluster.servers[0]->service;
	const struct gw_tensor *feat = node_tensor(flight.client, "paper", "feat");
	for (uint64_t f = 0; f < FLIGHTS; f++) {
		struct small_call calls[AT_ONCE];
		struct gw_service_counters before, now;
		struct gw_ticket *read;
		int64_t id = 0;
		uint8_t row[64];
		relay_hold_after(&flight.relay, 0);
		gw_service_counters(service, &before);
		atomic_store(&seen.count, 0);
		for (uint32_t i = 0; i < AT_ONCE; i++) {
			struct small_call *call = &calls[i];
			const struct gw_tensor *tensor;
			small_call_draw(call, 100 * f + 20 * i);
			tensor = flight.tensors[call->which];
			must(call->push ? gw_push_start(flight.client, tensor, call->ids, call->n, call->rows, &add,
							&call->ticket)
					: gw_update_start(flight.client, tensor, call->ids, call->n, call->rows,
							  &call->ticket));
			for (uint32_t r = 0; r < call->n; r++) {
				float *element = &expected[call->which][call->ids[r]];
				*element = call->rows[r] + (call->push ? *element : 0);
			}
		}
		must(gw_gather_start(flight.client, feat, &id, 1, row, &read));
		do
			gw_service_counters(service, &now);
		while (now.reads == before.reads);
		assert_int_equal(atomic_load(&seen.count), calls_sent(calls));
		waited += AT_ONCE - calls_sent(calls);
		relay_pass(&flight.relay);
		must(gw_wait(read, -1));
		for (uint32_t i = 0; i < AT_ONCE; i++)
			must(gw_wait(calls[i].ticket, -1));
	}
	assert_true(waited > FLIGHTS / 2 && waited < 3 * FLIGHTS);
	for (int t = 0; t < 2; t++) {
		int64_t ids[FEW_ROWS];
		float got[FEW_ROWS];
		for (int i = 0; i < FEW_ROWS; i++)
			ids[i] = i;
		must(gw_gather(flight.client, flight.tensors[t], ids, FEW_ROWS, got));
		assert_memory_equal(got, expected[t], sizeof(got));
	}
	flight_end(&flight);
}

static uint64_t calls_open(const struct flight *flight)
{
	struct gw_service_counters counters;
	gw_service_counters(flight->setup.cluster.servers[0]->service, &counters);
	return counters.calls_open;
}

/* The link is cut after the first slice of a write, and another client overwrites a row of that slice. The repeated
 * write goes on behind it. */
static void no_row_is_written_twice_over_a_cut_link(void **state)
{
	(void)state;
	static const struct gw_optimizer add = {.kind = GW_SGD, .rate = -1};
	static float rows[(LONG_CALL + 1) * COLUMNS], got[(LONG_CALL + 1) * COLUMNS], other_row[COLUMNS];
	int64_t ids[LONG_CALL + 1];
	for (int i = 0; i <= LONG_CALL; i++)
		ids[i] = i;
	for (int i = 0; i < (LONG_CALL + 1) * COLUMNS; i++)
		rows[i] = (float)(1 + i % 50);
	for (int i = 0; i < COLUMNS; i++)
		other_row[i] = -7;
	for (int push = 0; push < 2; push++) {
		struct flight flight;
		struct gw_ticket *ticket;
		const struct gw_tensor *tensor;
		flight_begin(&flight, LONG_CALL + 1, COLUMNS);
		struct gw_client *other = flight_open(flight.setup.cluster.list);
		must(gw_tensor_open(other, "one", GW_OF_JOB, &tensor));
		atomic_store(&seen.stops, true);
		must(push ? gw_push_start(flight.client, flight.tensors[0], ids, LONG_CALL + 1, rows, &add, &ticket)
			  : gw_update_start(flight.client, flight.tensors[0], ids, LONG_CALL + 1, rows, &ticket));
		while (!atomic_load(&seen.stopped))
			sched_yield();
		relay_cut_after(&flight.relay, 0);
		while (calls_open(&flight) > 0)
			sched_yield();
		must(gw_update(other, tensor, ids, 1, other_row));
		atomic_store(&seen.stops, false);
		atomic_store(&seen.stopped, false);
		relay_pass(&flight.relay);
		must(gw_wait(ticket, -1));
		must(gw_gather(other, tensor, ids, LONG_CALL + 1, got));
		assert_memory_equal(got, other_row, sizeof(other_row));
		assert_memory_equal(got + COLUMNS, rows + COLUMNS, sizeof(rows) - sizeof(other_row));
		gw_client_close(other);
		flight_end(&flight);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_requests_have_no_row_in_common),
		cmocka_unit_test(no_row_is_written_twice_over_a_cut_link),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
