/* A RELEASED frame that a TCP client owes its server. A dynamic region arrives that the client cannot keep, and its
 * output has no room now. The client releases the region when room is free; otherwise the server would keep its memory
 * until the connection ends. The server is a script that reads nothing until the client's output buffer is full. Both
 * drivers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/alloc_fault.h"
#include "test/support/fake_peer.h"
#include "test/support/transport_bed.h"
#include "transport/tcp/client/client_private.h"

#define REGION (GW_REGIONS_MAX + 3)

struct scene {
	struct gw_poll_group *group;
	struct gw_endpoint *endpoint;
	struct tcp_client *client;
	struct tcp_dynamic_reader reader;
	int listener, fd;
	uint8_t *request;
	struct wire_dynamic released;
};

static void *say_hello(void *argument)
{
	struct scene *scene = argument;
	scene->fd = gw_fake_accept(scene->listener);
	return scene->fd >= 0 && gw_fake_welcome(scene->fd, 4096) ? scene : NULL;
}

static void begin(struct scene *scene, const struct bed_kind *kind)
{
	pthread_t thread;
	void *welcomed;
	int little = 4096;
	struct gw_connect_options options = {.address = {.scheme = "tcp", .host = "127.0.0.1"},
					     .deadline_ns = gw_now_ns() + 60 * GW_NS_PER_SECOND};
	*scene = (struct scene){.request = calloc(1, GW_REQUEST_BYTES_MAX)};
	assert_non_null(scene->request);
	scene->listener = gw_fake_listen(&options.address.port);
	assert_true(scene->listener >= 0);
	assert_int_equal(setsockopt(scene->listener, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
	assert_int_equal(pthread_create(&thread, NULL, say_hello, scene), 0);
	scene->group = gw_bed_group(kind);
	assert_int_equal(gw_bed_connect(scene->group, &options, &scene->endpoint), GW_OK);
	pthread_join(thread, &welcomed);
	assert_non_null(welcomed);
	scene->client = (struct tcp_client *)scene->endpoint;
	assert_int_equal(setsockopt(scene->client->io.fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)), 0);
	gw_tcp_dynamic_reader(scene->endpoint, &scene->reader);
}

static void end(struct scene *scene)
{
	gw_endpoint_close(scene->endpoint);
	gw_poll_group_destroy(scene->group);
	close(scene->fd);
	close(scene->listener);
	free(scene->request);
}

static gw_status ask(struct scene *scene, uint32_t bytes)
{
	return gw_endpoint_request(scene->endpoint, 1, NULL, scene->request, bytes, GW_NO_DEADLINE, scene->request);
}

/* Until not even a frame of a few bytes has room. */
static void fill(struct scene *scene)
{
	struct tcp_client *client = scene->client;
	gw_status status;
	assert_int_equal(ask(scene, 5 << 20), GW_OK);
	ask(scene, 4 << 20); /* with io_uring the buffer does not grow during a send */
	uint32_t left = client->out_capacity - client->out_end;
	assert_int_equal(ask(scene, left - WIRE_HEADER_BYTES - WIRE_REQUEST_BYTES), GW_OK);
	assert_null(gw_tcp_client_reserve(client, sizeof(struct wire_dynamic), &status));
	assert_int_equal(status, GW_AGAIN);
}

static void *drain_to_the_released(void *argument)
{
	struct scene *scene = argument;
	static uint8_t bytes[1 << 16];
	struct wire_header header;
	while (gw_fake_receive(scene->fd, &header, sizeof(header))) {
		if (header.type == WIRE_RELEASED)
			return gw_fake_receive(scene->fd, &scene->released, sizeof(scene->released)) ? scene : NULL;
		for (uint32_t left = header.bytes, n; left; left -= n) {
			n = left < sizeof(bytes) ? left : (uint32_t)sizeof(bytes);
			if (!gw_fake_receive(scene->fd, bytes, n))
				return NULL;
		}
	}
	return NULL;
}

static void a_region_without_an_entry_is_released(void **state)
{
	struct scene scene;
	struct wire_header header;
	struct wire_dynamic asked;
	struct wire_region region = {.bytes = 4096, .id = REGION, .generation = 5};
	struct gw_completion completion;
	pthread_t thread;
	void *drained;
	begin(&scene, *state);
	assert_int_equal(gw_tcp_dynamic_pin(scene.endpoint, REGION, 5, &scene), GW_OK);
	assert_true(gw_fake_expect(scene.fd, WIRE_OPEN, &header, &asked, sizeof(asked)));
	fill(&scene);
	assert_true(gw_fake_frame(scene.fd, WIRE_REGION, header.tag, &region, sizeof(region)));
	/* Memory for the region's entry runs out. */
	gw_fault_begin_from(1);
	while (gw_poll_group_poll(scene.group, &completion, 1, GW_NS_PER_SECOND) == 0)
		;
	gw_fault_end();
	assert_ptr_equal(completion.cookie, &scene);
	assert_int_equal(completion.status, GW_NO_MEMORY);
	assert_null(gw_endpoint_region(scene.endpoint, REGION, 5));
	assert_int_equal(scene.client->phase, CLIENT_OPEN);
	assert_int_equal(pthread_create(&thread, NULL, drain_to_the_released, &scene), 0);
	uint64_t end_ns = gw_now_ns() + 100 * GW_NS_PER_SECOND;
	while (scene.client->out_end && gw_now_ns() < end_ns)
		assert_int_equal(gw_poll_group_poll(scene.group, &completion, 1, GW_NS_PER_MS), 0);
	pthread_join(thread, &drained);
	assert_non_null(drained);
	assert_int_equal(scene.released.id, REGION);
	assert_int_equal(scene.released.generation, 5);
	end(&scene);
}

int main(void)
{
	static const struct bed_test tests[] = {
		{BED_TEST(a_region_without_an_entry_is_released)},
	};
	return gw_bed_run_tcp("tcp owed", tests, sizeof(tests) / sizeof(tests[0]));
}
