/* A TCP client and a server that is a script. */
#include "test/support/tcp_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/system/clock.h"

static void *say_hello(void *argument)
{
	struct scene *scene = argument;
	scene->fd = gw_fake_accept(scene->listener);
	return scene->fd >= 0 && gw_fake_welcome(scene->fd, SCENE_BYTES) ? scene : NULL;
}

struct scene *scene_begin(const struct bed_kind *kind, uint64_t liveness_ns)
{
	static struct scene scene;
	pthread_t thread;
	void *welcomed;
	struct gw_connect_options options = {.address = {.scheme = "tcp", .host = "127.0.0.1"},
					     .deadline_ns = gw_now_ns() + 60 * GW_NS_PER_SECOND,
					     .liveness_ns = liveness_ns};
	memset(&scene, 0, sizeof(scene));
	scene.listener = gw_fake_listen(&options.address.port);
	assert_true(scene.listener >= 0);
	assert_int_equal(pthread_create(&thread, NULL, say_hello, &scene), 0);
	scene.group = gw_bed_group(kind);
	assert_int_equal(gw_buffer_register(scene.group, scene.landing, SCENE_BYTES, &scene.buffer), GW_OK);
	assert_int_equal(gw_bed_connect(scene.group, &options, &scene.endpoint), GW_OK);
	pthread_join(thread, &welcomed);
	assert_non_null(welcomed);
	scene.client = (struct tcp_client *)scene.endpoint;
	return &scene;
}

void scene_end(struct scene *scene)
{
	gw_endpoint_close(scene->endpoint);
	gw_buffer_release(scene->buffer);
	gw_poll_group_destroy(scene->group);
	if (scene->fd >= 0)
		close(scene->fd);
	close(scene->listener);
}
