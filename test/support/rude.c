#include "test/support/rude.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/system/clock.h"

struct rude *rude_begin(void **state, const struct bed_options *options)
{
	struct rude *rude = calloc(1, sizeof(*rude));
	gw_bed_begin(&rude->bed, *state, options);
	rude->group = gw_bed_group(rude->bed.kind);
	struct gw_connect_options connect = gw_bed_options(&rude->bed);
	assert_int_equal(gw_buffer_register(rude->group, rude->landing, 4096, &rude->buffer), GW_OK);
	if (gw_bed_connect(rude->group, &connect, &rude->endpoint))
		fail_msg("%s", gw_last_error());
	return rude;
}

void others_are_served(struct rude *rude)
{
	struct gw_span span = {4096, 0, 4096};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	memset(rude->landing, 0, 4096);
	gw_bed_readv(rude->endpoint, &set, &rude->endpoint->peer.regions[0], rude->buffer, &span, 1);
	assert_int_equal(gw_bed_wait(rude->group, &set).status, GW_OK);
	assert_memory_equal(rude->landing, rude->bed.memory + 4096, 4096);
}

void rude_end(struct rude *rude)
{
	if (!atomic_load(&rude->bed.listener->moved))
		others_are_served(rude);
	gw_endpoint_close(rude->endpoint);
	gw_buffer_release(rude->buffer);
	gw_poll_group_destroy(rude->group);
	gw_bed_end(&rude->bed);
	free(rude);
}

int rude_enter(struct rude *rude, struct wire_region *regions)
{
	struct wire_welcome welcome;
	int fd = gw_fake_connect(rude->bed.address.port);
	assert_true(fd >= 0);
	assert_true(gw_fake_enter(fd, &welcome, regions, 3));
	assert_int_equal(welcome.region_count, 3);
	return fd;
}

bool rude_call(int fd, uint16_t op, uint64_t tag, const void *bytes, uint32_t n)
{
	struct wire_header header = {.bytes = WIRE_REQUEST_BYTES + n, .type = WIRE_REQUEST, .op = op, .tag = tag};
	struct gw_once twice = {0};
	return gw_fake_send(fd, &header, sizeof(header)) && gw_fake_send(fd, &twice, sizeof(twice)) &&
	       gw_fake_send(fd, bytes, n);
}

struct gw_service_counters rude_counters(const struct rude *rude)
{
	struct gw_service_counters counters;
	gw_service_counters(rude->bed.service, &counters);
	return counters;
}
