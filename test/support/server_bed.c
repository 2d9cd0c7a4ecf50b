/* See server_bed.h. */
#include "test/support/server_bed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "core/system/clock.h"

struct gw_poll_group *server_bed_group(void)
{
	struct gw_poll_group *group;
	assert_int_equal(gw_poll_group_create(NULL, &group), GW_OK);
	return group;
}

struct gw_completion server_bed_await(struct gw_poll_group *group, const void *cookie)
{
	struct gw_completion completion;
	while (gw_poll_group_poll(group, &completion, 1, GW_NS_PER_SECOND) == 0)
		;
	assert_ptr_equal(completion.cookie, cookie);
	return completion;
}

void server_bed_join(const struct server_bed *bed, struct gw_poll_group *group, struct gw_endpoint **out)
{
	struct gw_connect_options options = {.address = bed->server->listener->address, .deadline_ns = GW_NO_DEADLINE};
	assert_int_equal(gw_endpoint_connect(group, &options, out, out), GW_OK);
	assert_int_equal(server_bed_await(group, out).status, GW_OK);
}

void server_bed_begin(struct server_bed *bed, uint64_t seed, uint64_t scale)
{
	cluster_use_own_runtime_folder();
	memset(bed, 0, sizeof(*bed));
	gw_fixture_begin(&bed->fixture, seed, scale, 1);
	gw_fixture_write(&bed->fixture);
	struct gw_server_options options = {.part_config = bed->fixture.folder,
					    .threads = 1,
					    .numa = GW_NUMA_LOCAL,
					    .huge = GW_HUGE_OFF,
					    .insecure = true,
					    .transport = "tcp"};
	assert_int_equal(gw_address_parse("127.0.0.1:0", &options.listen), GW_OK);
	assert_int_equal(gw_server_start(&options, &bed->server), GW_OK);
	bed->group = server_bed_group();
	server_bed_join(bed, bed->group, &bed->endpoint);
}

void server_bed_end(struct server_bed *bed)
{
	gw_endpoint_close(bed->endpoint);
	gw_poll_group_destroy(bed->group);
	gw_server_end(bed->server, 0);
	gw_fixture_end(&bed->fixture);
}
