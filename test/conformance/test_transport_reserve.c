/* A port that a server reserves while it loads, and a socket that one listener yields to the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/transport_bed.h"

/* A reserved port refuses clients, other reservations and other listeners, until it is yielded. */
static void a_reserved_port(void **state)
{
	struct bed bed;
	gw_bed_begin(&bed, *state, NULL);
	struct gw_poll_group *group = gw_bed_group(*state), *server = gw_bed_group(*state);
	for (int fixed = 0; fixed < 2; fixed++) {
		struct gw_address address = {.scheme = "tcp", .host = "127.0.0.1"}, same;
		int reservation, other;
		if (fixed) { /* a known port: reserved, then free again */
			assert_int_equal(gw_port_reserve(&address, &reservation), GW_OK);
			close(reservation);
		}
		assert_int_equal(gw_port_reserve(&address, &reservation), GW_OK);
		assert_int_not_equal(address.port, 0);
		same = address;
		assert_int_equal(gw_port_reserve(&same, &other), GW_BUSY);
		assert_int_equal(other, -1);
		struct gw_listener *listener;
		assert_int_equal(gw_listen(&server, 1, &address, bed.service, &listener), GW_BUSY);
		assert_null(listener);
		struct gw_connect_options connect = gw_bed_options(&bed);
		struct gw_endpoint *endpoint;
		connect.address = address;
		connect.deadline_ns = gw_deadline_ns(200);
		assert_int_not_equal(gw_bed_connect(group, &connect, &endpoint), GW_OK);
		gw_endpoint_close(endpoint);

		gw_port_yield(reservation);
		assert_int_equal(gw_listen(&server, 1, &address, bed.service, &listener), GW_OK);
		assert_int_equal(listener->address.port, address.port);
		close(reservation);
		assert_int_equal(gw_port_reserve(&same, &other), GW_BUSY);
		gw_listener_free(listener);
	}
	gw_poll_group_destroy(server);
	gw_poll_group_destroy(group);
	gw_bed_end(&bed);
}

/* A client that connects while no listener has the socket waits for the next one, and is served by it. */
static void a_yielded_socket(void **state)
{
	struct bed bed;
	gw_bed_begin(&bed, *state, NULL);
	struct gw_poll_group *group = gw_bed_group(*state);
	for (int turn = 0; turn < 3; turn++) {
		struct gw_poll_group *next = gw_bed_group(*state);
		struct gw_address address = {.scheme = "tcp", .host = "127.0.0.1"};
		struct gw_listener *first, *second;
		int socket;
		assert_int_equal(gw_listen(&next, 1, &address, bed.service, &first), GW_OK);
		address = first->address;
		assert_int_equal(gw_listener_yield(first, &socket), GW_OK);
		gw_listener_free(first);
		struct gw_connect_options connect = gw_bed_options(&bed);
		struct gw_endpoint *endpoint;
		connect.address = address;
		connect.deadline_ns = gw_deadline_ns(20000);
		assert_int_equal(gw_endpoint_connect(group, &connect, &bed, &endpoint), GW_OK);
		gw_poll_group_poll(group, NULL, 0, 0);
		assert_int_equal(gw_listen_on(&next, 1, &address, bed.service, socket, &second), GW_OK);
		close(socket);
		struct gw_completion completion;
		while (gw_poll_group_poll(group, &completion, 1, GW_NS_PER_MS) == 0)
			gw_poll_group_poll(next, NULL, 0, 0);
		assert_int_equal(completion.status, GW_OK);
		gw_endpoint_close(endpoint);
		gw_listener_free(second);
		gw_poll_group_destroy(next);
	}
	gw_poll_group_destroy(group);
	gw_bed_end(&bed);
}

int main(void)
{
	static char names[16][80];
	static struct CMUnitTest tests[16];
	size_t n = 0;
	for (size_t b = 0; b < gw_bed_count && n < 15; b++) {
		if (strcmp(gw_beds[b].scheme, "tcp") != 0 || !gw_bed_possible(&gw_beds[b]))
			continue;
		snprintf(names[n], sizeof(names[n]), "%s: a reserved port", gw_beds[b].name);
		tests[n] = (struct CMUnitTest){names[n], a_reserved_port, NULL, NULL, (void *)(uintptr_t)&gw_beds[b]};
		n++;
		snprintf(names[n], sizeof(names[n]), "%s: a yielded socket", gw_beds[b].name);
		tests[n] = (struct CMUnitTest){names[n], a_yielded_socket, NULL, NULL, (void *)(uintptr_t)&gw_beds[b]};
		n++;
	}
	return _cmocka_run_group_tests("reserved ports", tests, n, NULL, NULL);
}
