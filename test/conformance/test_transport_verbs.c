/* Behaviour that only RDMA has, on a Soft-RoCE device: reads without server code, broken queue pairs, memory that
 * cannot be registered or was replaced, forks, and the removal of a device. The last test removes the device and needs
 * a separate machine (GRAPHWIRE_GUEST). */
#include <stdio.h>
#ifndef GRAPHWIRE_VERBS
int main(void)
{
	printf("1..0 # SKIP built without RDMA\n");
	return 0;
}
#else
#include <linux/capability.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/verbs_one.h"

/* --- No server code runs. --- */

/* User and system time. */
static unsigned long cpu_ticks(pid_t pid)
{
	char path[64], conn[1024] = "";
	unsigned long user = 0, system = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	assert_non_null(fgets(conn, sizeof(conn), file));
	fclose(file);
	assert_int_equal(
		sscanf(strrchr(conn, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system),
		2);
	return user + system;
}

struct served {
	struct gw_address address;
	uint64_t bytes;
};

static void serve_in_child(const struct bed_kind *kind, int out)
{
	struct bed bed;
	gw_bed_begin(&bed, kind, NULL);
	struct served served = {bed.address, bed.bytes};
	if (write(out, &served, sizeof(served)) != sizeof(served))
		_exit(1);
	for (;;)
		pause();
}

#define STOPPED_READS 100000u
#define STOPPED_BATCH 5000u

static void reads_of_a_stopped_server(void **state)
{
	int pipe_fds[2];
	struct served served;
	assert_int_equal(pipe(pipe_fds), 0);
	pid_t child = gw_bed_fork();
	if (child == 0)
		serve_in_child(*state, pipe_fds[1]);
	assert_int_equal(read(pipe_fds[0], &served, sizeof(served)), sizeof(served));

	/* The bed's memory is a function of the offset, so another bed here has the same bytes. */
	struct one one;
	gw_one_begin(&one, state, NULL, STOPPED_BATCH * 64);
	struct gw_connect_options connect = gw_bed_options(&one.bed);
	struct gw_endpoint *endpoint;
	connect.address = served.address;
	assert_int_equal(gw_bed_connect(one.group, &connect, &endpoint), GW_OK);
	assert_int_equal(kill(child, SIGSTOP), 0);
	int how;
	assert_int_equal(waitpid(child, &how, WUNTRACED), child);
	assert_true(WIFSTOPPED(how));
	unsigned long before = 0;

	uint64_t *remote = calloc(STOPPED_BATCH, sizeof(*remote)), seed = 9;
	for (uint32_t done = 0; done < STOPPED_READS; done += STOPPED_BATCH) {
		for (uint32_t i = 0; i < STOPPED_BATCH; i++)
			remote[i] = gw_below(&seed, served.bytes - 64);
		struct gw_gather gather = {.remote = remote, .row_bytes = 64, .stride = 64};
		struct gw_read_set set = {.cookie = &set, .deadline_ns = gw_now_ns() + 60 * GW_NS_PER_SECOND};
		memset(one.landing, 0, one.landing_bytes);
		gw_bed_gather(endpoint, &set, &endpoint->peer.regions[0], one.buffer, &gather, STOPPED_BATCH);
		struct gw_completion completion;
		while (gw_poll_group_poll(one.group, &completion, 1, GW_NS_PER_SECOND) == 0)
			;
		assert_int_equal(completion.status, GW_OK);
		for (uint32_t i = 0; i < STOPPED_BATCH; i++)
			assert_memory_equal(one.landing + i * 64ull, one.bed.memory + remote[i], 64);
		if (done == 0)
			before = cpu_ticks(child); /* the time until the stop is counted, too */
	}
	unsigned long after = cpu_ticks(child);
	free(remote);
	/* The stopped server counts as alive: a request waits for its deadline, and nothing is lost. */
	assert_int_equal(gw_endpoint_request(endpoint, BED_OP_ECHO, 0, "x", 1, gw_now_ns() + 20 * GW_NS_PER_MS, &one),
			 GW_OK);
	assert_int_equal(gw_bed_wait(one.group, &one).status, GW_DEADLINE);
	assert_int_equal(endpoint->state, GW_ENDPOINT_OPEN);
	/* When the server is killed, the client notices the loss. */
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &how, 0), child);
	for (int i = 0; i < 30000 && endpoint->state != GW_ENDPOINT_LOST; i++)
		gw_one_nothing_more(&one, 2);
	assert_int_equal(endpoint->state, GW_ENDPOINT_LOST);
	gw_endpoint_close(endpoint);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	gw_one_end(&one);
	assert_int_equal(after, before); /* after the kill: a child that stays would keep the device */
}

/* A client's child that ends, or writes to the receive buffer, changes nothing for the parent. */
static void forks_do_not_matter(void **state)
{
	struct one one;
	uint64_t seed = 3, remote[512];
	gw_one_begin(&one, state, NULL, 512 * 512);
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 512; i++)
			remote[i] = gw_below(&seed, one.bed.bytes - 512);
		struct gw_gather gather = {.remote = remote, .row_bytes = 512, .stride = 512};
		struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
		gw_bed_gather(one.endpoint, &set, &one.region, one.buffer, &gather, 512);
		pid_t child = gw_bed_fork();
		if (child == 0) {
			memset(one.landing, round, one.landing_bytes);
			_exit(0);
		}
		for (int i = 0; i < 512; i++)
			one.landing[i * 512 + 511] = one.landing[i * 512 + 511]; /* would copy a shared page */
		gw_one_wait_ok(&one, &set);
		for (int i = 0; i < 512; i++)
			assert_memory_equal(one.landing + i * 512, one.bed.memory + remote[i], 511);
		int how;
		assert_int_equal(waitpid(child, &how, 0), child);
	}
	gw_one_end(&one);
}

/* --- Broken connections. --- */

static void a_queue_pair_in_error(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 1 << 20);
	for (uint32_t number = 0; number < 2; number++) {
		struct gw_span span = {0, 0, 1 << 20};
		struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
		struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
		gw_bed_readv(one.endpoint, &set, &one.region, one.buffer, &span, 1);
		assert_int_equal(ibv_modify_qp(verbs_inside(&one)->conns[number].qp->id->qp, &error, IBV_QP_STATE), 0);
		/* Reads in flight may complete before; later reads on this queue pair fail. */
		gw_status status = gw_bed_wait(one.group, &set).status;
		for (int i = 0; i < 4 && status == GW_OK; i++) {
			struct gw_read_set next = {.cookie = &next, .deadline_ns = GW_NO_DEADLINE};
			gw_bed_readv(one.endpoint, &next, &one.region, one.buffer, &span, 1);
			status = gw_bed_wait(one.group, &next).status;
		}
		assert_int_equal(status, GW_PEER_LOST);
		/* Nothing is written after that. */
		memset(one.landing, 0xee, one.landing_bytes);
		memset(one.expected, 0xee, one.landing_bytes);
		gw_one_nothing_more(&one, 50);
		assert_memory_equal(one.landing, one.expected, one.landing_bytes);
		verbs_connect_again(&one);
	}
	gw_one_end(&one);
}

static void say(struct verbs_device *device, struct ibv_async_event event)
{
	pthread_mutex_lock(&gw_verbs_lock);
	gw_verbs_async(device, &event);
	pthread_mutex_unlock(&gw_verbs_lock);
}

/* A read without an answer, since the server has replaced its queue pairs, fails for this reason. */
static void expect_reason(struct one *one, const char *reason)
{
	struct gw_span span = {0, 0, 4096};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_readv(one->endpoint, &set, &one->region, one->buffer, &span, 1);
	struct gw_completion completion = gw_bed_wait(one->group, &set);
	assert_int_equal(completion.status, GW_PEER_LOST);
	if (!strstr(completion.text, reason))
		fail_msg("\"%s\" without \"%s\"", completion.text, reason);
	verbs_connect_again(one);
}

/* A device that reports a queue pair or a completion queue as failed ends the connections of that one, by name. */
static void events_of_the_device(void **state)
{
	static const enum ibv_event_type types[] = {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_ACCESS_ERR, IBV_EVENT_CQ_ERR};
	struct one one;
	gw_one_begin(&one, state, NULL, 1 << 20);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct verbs_endpoint *endpoint = verbs_inside(&one);
		struct ibv_async_event event = {.event_type = types[i]};
		if (types[i] == IBV_EVENT_CQ_ERR)
			event.element.cq = endpoint->conns[0].qp->cq->ibv;
		else
			event.element.qp = endpoint->conns[1].qp->id->qp;
		say(endpoint->poller->device, event);
		verbs_wait_for_loss(&one);
		verbs_connect_again(&one);
	}
	/* At the server: it ends the client's connection, and the client reconnects. */
	gw_bed_pause(&one.bed);
	const struct verbs_client *peer = ((struct verbs_listener *)one.bed.listener)->cm_listeners[0].clients;
	say(peer->rail->device, (struct ibv_async_event){{.qp = peer->conns[0].qp->id->qp}, IBV_EVENT_QP_FATAL});
	gw_bed_resume(&one.bed);
	verbs_wait_for_loss(&one);
	verbs_connect_again(&one);
	gw_one_end(&one);
}

/* More completions than the completion queue has room for: the device reports that, and no call waits for a lost
 * completion. */
static void a_completion_queue_that_overflows(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 1 << 20);
	struct verbs_qp *qp = verbs_inside(&one)->conns[0].qp;
	assert_int_equal(ibv_resize_cq(qp->cq->ibv, 8), 0);
	for (uint32_t i = 0; i < qp->depth / 2; i++)
		gw_verbs_qp_probe(qp);
	/* All completions arrive before the poll. The server's threads share the device in this process. One of them
	 * may take the event, and then it is noted at the completion queue. */
	int events = verbs_inside(&one)->poller->device->context->async_fd;
	struct pollfd told = {.fd = events, .events = POLLIN};
	uint64_t end = gw_now_ns() + 100 * GW_NS_PER_SECOND;
	while (!atomic_load(&qp->cq->failed) && poll(&told, 1, 5) <= 0)
		assert_in_range(gw_now_ns(), 0, end);
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	assert_int_equal(ibv_query_qp(qp->id->qp, &attr, IBV_QP_STATE, &init), 0);
	expect_reason(&one, ibv_event_type_str(IBV_EVENT_CQ_ERR));
	gw_one_end(&one);
}

/* A port that is down for a moment costs nothing. Open work does not wait long for a port that stays down. */
static void a_port_that_goes_down(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 4096);
	struct verbs_device *device = verbs_inside(&one)->poller->device;
	struct ibv_async_event event = {.element.port_num = 1, .event_type = IBV_EVENT_PORT_ERR};
	gw_bed_pause(&one.bed);
	assert_int_equal(gw_endpoint_request(one.endpoint, BED_OP_ECHO, 0, "x", 1, 0, &one), GW_OK);
	say(device, event);
	event.event_type = IBV_EVENT_PORT_ACTIVE;
	say(device, event);
	gw_bed_resume(&one.bed);
	assert_int_equal(gw_bed_wait(one.group, &one).status, GW_OK);
	gw_bed_pause(&one.bed);
	event.event_type = IBV_EVENT_PORT_ERR;
	assert_int_equal(gw_endpoint_request(one.endpoint, BED_OP_ECHO, 0, "x", 1, 0, &one), GW_OK);
	say(device, event);
	struct gw_completion completion = gw_bed_wait(one.group, &one);
	assert_int_equal(completion.status, GW_PEER_LOST);
	assert_non_null(strstr(completion.text, "is down"));
	gw_bed_resume(&one.bed);
	/* A new connection also shows that the port is up. */
	verbs_connect_again(&one);
	assert_false(atomic_load(&device->ports[0].down_ns));
	gw_one_end(&one);
}

/* The device reports that a link goes down, and that it returns; then the link is used again. */
static void a_link_that_goes_down(void **state)
{
	struct one one;
	if (!getenv("GRAPHWIRE_GUEST"))
		skip();
	gw_one_begin(&one, state, NULL, 1 << 20);
	const struct verbs_port *port = &verbs_inside(&one)->poller->device->ports[0];
	assert_int_equal(system("ip link set eth0 down"), 0);
	verbs_wait_for_gate(&one, port, true);
	assert_int_equal(system("ip link set eth0 up"), 0);
	verbs_wait_for_gate(&one, port, false);
	gw_status status = GW_PEER_LOST;
	uint64_t end = gw_now_ns() + 100 * GW_NS_PER_SECOND;
	while (status != GW_OK && gw_now_ns() < end) {
		struct gw_connect_options connect = gw_bed_options(&one.bed);
		gw_endpoint_close(one.endpoint);
		status = gw_bed_connect(one.group, &connect, &one.endpoint);
	}
	assert_int_equal(status, GW_OK);
	one.region = one.endpoint->peer.regions[0];
	gw_one_read_works(&one);
	gw_one_end(&one);
}

/* Its device answers the probe. */
static void a_busy_server_is_alive(void **state)
{
	struct one one;
	gw_one_begin(&one, state, NULL, 4096);
	struct gw_connect_options connect = gw_bed_options(&one.bed);
	connect.liveness_ns = 500 * GW_NS_PER_MS;
	gw_endpoint_close(one.endpoint);
	assert_int_equal(gw_bed_connect(one.group, &connect, &one.endpoint), GW_OK);
	gw_bed_pause(&one.bed);
	uint64_t begun = gw_now_ns(), deadline = begun + 4000 * GW_NS_PER_MS;
	assert_int_equal(gw_endpoint_request(one.endpoint, BED_OP_ECHO, 0, "x", 1, deadline, &one), GW_OK);
	assert_int_equal(gw_bed_wait(one.group, &one).status, GW_DEADLINE);
	assert_int_equal(one.endpoint->state, GW_ENDPOINT_OPEN);
	gw_bed_resume(&one.bed);
	gw_one_read_works(&one);
	assert_int_equal(gw_one_call(&one, BED_OP_ECHO, 0, "abc", 3).status, GW_OK);
	gw_one_end(&one);
}

/* --- Memory that cannot be registered. --- */

static void drop_memory_privilege(rlim_t limit)
{
	struct rlimit memory = {limit, limit};
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &memory), 0);
	assert_int_equal(syscall(SYS_capget, &header, data), 0);
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	data[0].permitted &= ~(1u << CAP_IPC_LOCK);
	assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

static void read_all(struct one *one, gw_status wanted)
{
	struct gw_span spans[] = {{3, 1, 700000}, {700003, 700001, 300000}, {9, 1000100, 12}};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_readv(one->endpoint, &set, &one->region, one->buffer, spans, 3);
	struct gw_completion completion = gw_bed_wait(one->group, &set);
	if (completion.status != wanted)
		print_error("%s\n", completion.text);
	assert_int_equal(completion.status, wanted);
	if (wanted) {
		assert_non_null(strstr(completion.text, "limit"));
		return;
	}
	for (int i = 0; i < 3; i++)
		assert_memory_equal(one->landing + spans[i].local, one->bed.memory + spans[i].remote, spans[i].bytes);
}

/* Reads into memory that exceeds the limit, in a child: privileges do not come back, and the kernel allows a device
 * only to a process with the privileges that opened it. */
static void read_within(void **state, rlim_t limit, gw_status wanted)
{
	pid_t child = gw_bed_fork();
	if (child == 0) {
		struct one one;
		drop_memory_privilege(limit);
		gw_one_begin(&one, state, NULL, 8 << 20);
		read_all(&one, wanted);
		if (!wanted && !verbs_inside(&one)->conns[0].qp->bounce.base)
			_exit(1);
		_exit(0);
	}
	int how;
	assert_int_equal(waitpid(child, &how, 0), child);
	assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

/* A read into memory above the locked-memory limit goes through a bounce buffer. If even the bounce buffer exceeds the
 * limit, after the region and the messages of both sides, the read fails with an error that names the limit. */
static void locked_memory(void **state)
{
	read_within(state, 3 << 20, GW_OK);
	read_within(state, 1600 << 10, GW_LOCKED_MEMORY);
}

static void read_into(struct one *one, struct gw_buffer *buffer)
{
	struct gw_span span = {1000, 0, (uint32_t)buffer->bytes};
	struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
	gw_bed_readv(one->endpoint, &set, &one->region, buffer, &span, 1);
	gw_one_wait_ok(one, &set);
	assert_memory_equal(buffer->base, one->bed.memory + span.remote, span.bytes);
}

/* A buffer that shared a former buffer's registration does not pass it on to later buffers: the memory may have other
 * pages by then. */
static void memory_that_was_mapped_anew(void **state)
{
	const uint64_t bytes = 512 << 10, part = 128 << 10; /* too long to be copied */
	struct one one;
	struct gw_buffer *whole, *first, *last;
	gw_one_begin(&one, state, NULL, 4096);
	uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(gw_buffer_register(one.group, memory, bytes, &whole), GW_OK);
	assert_int_equal(gw_buffer_register(one.group, memory, part, &first), GW_OK);
	read_into(&one, whole);
	read_into(&one, first);
	gw_buffer_release(whole);
	uint8_t *end = memory + bytes - part;
	assert_ptr_equal(mmap(end, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), end);
	assert_int_equal(gw_buffer_register(one.group, end, part, &last), GW_OK);
	read_into(&one, last);
	memset(memory, 0, part);
	read_into(&one, first);
	gw_buffer_release(first);
	gw_buffer_release(last);
	munmap(memory, bytes);
	gw_one_end(&one);
}

/* --- The removal of a device. --- */

static void *delete_device(void *result)
{
	*(_Atomic int *)result = system("rdma link delete rxe0");
	return NULL;
}

static void removal(void **state)
{
	struct one one;
	pthread_t thread;
	_Atomic int result = -1;
	if (!getenv("GRAPHWIRE_GUEST"))
		skip();
	gw_one_begin(&one, state, NULL, 1 << 20);
	gw_one_read_works(&one);
	assert_int_equal(pthread_create(&thread, NULL, delete_device, &result), 0);
	/* Reads go on until the device is removed. */
	gw_status status = GW_OK;
	uint64_t end = gw_now_ns() + 200 * GW_NS_PER_SECOND;
	while (status == GW_OK && gw_now_ns() < end) {
		struct gw_span span = {5, 0, 1 << 19};
		struct gw_read_set set = {.cookie = &set, .deadline_ns = GW_NO_DEADLINE};
		gw_bed_readv(one.endpoint, &set, &one.region, one.buffer, &span, 1);
		status = gw_bed_wait(one.group, &set).status;
	}
	assert_int_equal(status, GW_PEER_LOST);
	/* The removal ends only when client and server have closed the device; both are polled as usual. */
	for (int i = 0; i < 20000 && result < 0; i++)
		gw_one_nothing_more(&one, 10);
	assert_int_equal(result, 0);
	pthread_join(thread, NULL);
	/* RDMA connects fail with an error, and do not hang. */
	struct gw_connect_options connect = gw_bed_options(&one.bed);
	gw_endpoint_close(one.endpoint);
	assert_true(gw_bed_connect(one.group, &connect, &one.endpoint) != GW_OK);
	gw_one_end(&one);
	/* A device that returns is used again. */
	assert_int_equal(system("rdma link add rxe0 type rxe netdev eth0"), 0);
	gw_one_begin(&one, state, NULL, 1 << 20);
	gw_one_read_works(&one);
	gw_one_end(&one);
}

int main(void)
{
	const struct bed_kind *kind = verbs_kind();
	if (!gw_bed_possible(kind))
		return 0;
	void *state = (void *)(uintptr_t)kind;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(
			locked_memory,
			state), /* first: its children use the device, which this process has not opened yet */
		cmocka_unit_test_prestate(reads_of_a_stopped_server, state),
		cmocka_unit_test_prestate(forks_do_not_matter, state),
		cmocka_unit_test_prestate(a_queue_pair_in_error, state),
		cmocka_unit_test_prestate(events_of_the_device, state),
		cmocka_unit_test_prestate(a_completion_queue_that_overflows, state),
		cmocka_unit_test_prestate(a_port_that_goes_down, state),
		cmocka_unit_test_prestate(a_link_that_goes_down, state),
		cmocka_unit_test_prestate(memory_that_was_mapped_anew, state),
		cmocka_unit_test_prestate(a_busy_server_is_alive, state),
		cmocka_unit_test_prestate(removal, state),
	};
	return cmocka_run_group_tests_name("transport verbs", tests, NULL, NULL);
}
#endif
