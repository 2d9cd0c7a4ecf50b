#include "test/support/cluster.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files/staging.h"
#include "server/handover.h"
#include "test/support/graph_fixture.h"

static uint64_t tensor_memory;
static uint32_t tensor_lease_ms;

void cluster_limit_tensors(uint64_t bytes, uint32_t lease_ms)
{
	tensor_memory = bytes;
	tensor_lease_ms = lease_ms;
}

static uint32_t server_threads;

void cluster_limit_threads(uint32_t threads)
{
	server_threads = threads;
}

static uint32_t idle_ms;

void cluster_limit_silence(uint32_t ms)
{
	idle_ms = ms;
}

static const char *mutable_features[GW_SERVER_MUTABLE_MAX];
static uint32_t mutable_count;

void cluster_serve_mutable(const char *name)
{
	if (name)
		mutable_features[mutable_count++] = name;
	else
		mutable_count = 0;
}

static const char *on_disk_features[GW_SERVER_ON_DISK_MAX];
static uint32_t on_disk_count;

void cluster_leave_on_disk(const char *name)
{
	if (name)
		on_disk_features[on_disk_count++] = name;
	else
		on_disk_count = 0;
}

bool cluster_is_rdma(void)
{
	const char *bed = getenv("GRAPHWIRE_TEST_BED");
	return bed && strcmp(bed, "verbs") == 0;
}

/* Over RDMA, a server that offers mapped memory is at an address of TCP, as on a client's own host, and stays there. */
static const char *any_port(const struct cluster *cluster)
{
	const bool is_mapped = cluster->transport && strcmp(cluster->transport, "shm") == 0;
	return cluster_is_rdma() && !is_mapped ? "verbs:127.0.0.1:0" : "127.0.0.1:0";
}

static void start(struct cluster *cluster, uint32_t part, const char *tcp_driver, bool take_over)
{
	struct gw_address fresh;
	assert_int_equal(gw_address_parse(any_port(cluster), &fresh), GW_OK);
	const bool was_verbs = strcmp(cluster->addresses[part].scheme, "verbs") == 0;
	if (!cluster->addresses[part].port || (was_verbs && strcmp(fresh.scheme, "verbs") != 0))
		cluster->addresses[part] = fresh;
	struct gw_server_options options = {.part_config = cluster->part_config,
					    .part = part,
					    .listen = cluster->addresses[part],
					    .threads = server_threads ? server_threads : 2,
					    .numa = GW_NUMA_LOCAL,
					    .huge = GW_HUGE_OFF,
					    .insecure = cluster->insecure,
					    .lists = cluster->lists,
					    .transport = cluster->transport ? cluster->transport : "tcp",
					    .tcp_driver = tcp_driver,
					    .idle_ms = idle_ms,
					    .tensor_memory = tensor_memory,
					    .mutable_count = mutable_count,
					    .on_disk_count = on_disk_count,
					    .disk_cache = on_disk_count ? GW_DISK_CACHE_MIN : 0,
					    .take_over = take_over,
					    .tensor_lease_ms = tensor_lease_ms};
	memcpy(options.mutable_features, mutable_features, sizeof(mutable_features));
	memcpy(options.on_disk_features, on_disk_features, sizeof(on_disk_features));
	gw_status status = gw_server_start(&options, &cluster->servers[part]);
	if (status != GW_OK)
		fail_msg("server of part %u: %s", part, gw_last_error());
	cluster->addresses[part].port = cluster->servers[part]->listener->address.port;
	cluster->list[part] = gw_address_text(&cluster->addresses[part], cluster->text[part]);
}

static char runtime_folder[64];

static void remove_runtime_folder(void)
{
	gw_remove_tree(runtime_folder);
}

void cluster_use_own_runtime_folder(void)
{
	if (runtime_folder[0])
		return;
	gw_test_folder(runtime_folder);
	setenv("XDG_RUNTIME_DIR", runtime_folder, 1);
	atexit(remove_runtime_folder);
}

static const char *offered;

void cluster_offer(const char *transport)
{
	offered = transport;
}

const char *cluster_far(void)
{
	return cluster_is_rdma() ? "verbs" : "tcp";
}

static void begin(struct cluster *cluster, const char *part_config, uint32_t parts, const char *tcp_driver,
		  bool insecure)
{
	cluster_use_own_runtime_folder();
	memset(cluster, 0, sizeof(*cluster));
	cluster->insecure = insecure;
	cluster->transport = offered;
	cluster->part_config = part_config;
	cluster->parts = parts;
	for (uint32_t p = 0; p < parts; p++)
		start(cluster, p, tcp_driver, false);
}

void cluster_begin(struct cluster *cluster, const char *part_config, uint32_t parts, const char *tcp_driver)
{
	begin(cluster, part_config, parts, tcp_driver, false);
}

void cluster_begin_open(struct cluster *cluster, const char *part_config, uint32_t parts)
{
	begin(cluster, part_config, parts, NULL, true);
}

void cluster_kill(struct cluster *cluster, uint32_t part)
{
	gw_server_end(cluster->servers[part], 0);
	cluster->servers[part] = NULL;
}

void cluster_revive(struct cluster *cluster, uint32_t part)
{
	start(cluster, part, cluster->driver, false);
}

void cluster_end(struct cluster *cluster)
{
	for (uint32_t p = 0; p < cluster->parts; p++)
		gw_server_end(cluster->servers[p], 0);
}

static void *hand_over(void *argument)
{
	struct gw_server *server = argument;
	struct pollfd polled = {.fd = server->handover_fd, .events = POLLIN};
	enum gw_handover_result result = poll(&polled, 1, -1) == 1 ? gw_handover_answer(server, -1) : GW_HANDOVER_LOST;
	gw_server_end(server, 0);
	return result == GW_HANDOVER_DONE ? NULL : argument;
}

void cluster_replace(struct cluster *cluster, uint32_t part)
{
	pthread_t thread;
	void *failed;
	assert_int_equal(pthread_create(&thread, NULL, hand_over, cluster->servers[part]), 0);
	start(cluster, part, NULL, true);
	pthread_join(thread, &failed);
	assert_null(failed);
}
