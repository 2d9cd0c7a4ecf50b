/* Trainers that are stopped, and their servers. */
#include "test/support/paused.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_MS   1500
#define IDLE_MS      600 /* a client that is silent inside a frame for longer loses its connection */
#define LEASE_MS     1500
#define CHILDREN_MAX (TRAINERS_MAX + 1)

struct shared *paused_shared;
struct gw_fixture paused_fixture;

/* --- Waiting, and processes. --- */

void paused_wait_ns(uint64_t ns)
{
	struct timespec time = gw_timespec(ns);
	nanosleep(&time, NULL);
}

bool paused_wait_for(const atomic_bool *word)
{
	uint64_t end = gw_monotonic_ns() + ENOUGH_NS;
	while (!atomic_load(word) && gw_monotonic_ns() < end)
		paused_wait_ns(GW_NS_PER_MS);
	return atomic_load(word);
}

static pid_t children[CHILDREN_MAX]; /* 0: ended */

pid_t paused_start(int (*run)(uint32_t number), uint32_t number)
{
	uint32_t at = 0;
	while (children[at])
		assert_true(++at < CHILDREN_MAX);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(run(number));
	}
	children[at] = child;
	return child;
}

int paused_end_of(pid_t child)
{
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	for (uint32_t at = 0; at < CHILDREN_MAX; at++)
		if (children[at] == child)
			children[at] = 0;
	return status;
}

int paused_kill_children(void **state)
{
	(void)state;
	for (uint32_t at = 0; at < CHILDREN_MAX; at++) {
		if (!children[at])
			continue;
		kill(children[at], SIGKILL);
		paused_end_of(children[at]);
	}
	return 0;
}

void paused_stop(pid_t child)
{
	int status;
	assert_int_equal(kill(child, SIGSTOP), 0);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
}

void paused_go_on(pid_t child)
{
	assert_int_equal(kill(child, SIGCONT), 0);
}

void paused_expect_well(pid_t child, uint32_t number)
{
	int status = paused_end_of(child);
	if (status != 0)
		fail_msg("trainer %u: status %d: %s", number, status, paused_shared->told[number].text);
}

/* --- Servers. --- */

static void count_tensor(void *context, const struct gw_shard *shard, uint64_t bytes, bool ready)
{
	(void)shard;
	(void)bytes;
	(void)ready;
	++*(uint32_t *)context;
}

static int serve(uint32_t number)
{
	struct servers *mine = &paused_shared->servers[number];
	struct cluster cluster;
	cluster_offer("shm");
	cluster_limit_silence(IDLE_MS);
	cluster_limit_tensors(0, number == 1 ? LEASE_MS : 0);
	cluster_begin(&cluster, paused_fixture.folder, PARTS, NULL);
	memcpy(mine->text, cluster.text, sizeof(mine->text));
	atomic_store(&mine->serve, true);
	while (!atomic_load(&mine->end)) {
		uint32_t tensors = 0;
		for (uint32_t p = 0; p < PARTS; p++)
			gw_tensor_table_each(cluster.servers[p]->tensors, count_tensor, &tensors);
		atomic_store(&mine->tensors, tensors);
		paused_wait_ns(2 * GW_NS_PER_MS);
	}
	cluster_end(&cluster);
	return 0;
}

pid_t paused_begin_servers(uint32_t number)
{
	paused_shared->servers[number].serve = paused_shared->servers[number].end = false;
	pid_t servers = paused_start(serve, number);
	assert_true(paused_wait_for(&paused_shared->servers[number].serve));
	return servers;
}

void paused_end_servers(pid_t servers, uint32_t number)
{
	atomic_store(&paused_shared->servers[number].end, true);
	assert_int_equal(paused_end_of(servers), 0);
}

/* --- A trainer. --- */

bool paused_well(struct trainer *self, bool good, const char *what)
{
	bool no = false;
	if (good)
		return true;
	if (atomic_compare_exchange_strong(&self->told->failed, &no, true)) {
		snprintf(self->told->text, sizeof(self->told->text), "%s: %s", what, gw_last_error());
		self->told->late = strstr(gw_last_error(), "deadline");
	}
	return false;
}

struct gw_client_options paused_options_of(struct trainer *self, const char *transport, const char *driver)
{
	struct gw_client_options options = {
		.threads = 2, .timeout_ms = paused_shared->timeout_ms, .reconnect_ms = paused_shared->timeout_ms};
	if (cluster_is_rdma()) {
		cluster_offer("verbs");
		cluster_begin(&self->own, paused_fixture.folder, PARTS, NULL);
		options.servers = self->own.list;
		options.server_count = PARTS;
	} else if (transport) {
		for (int p = 0; p < PARTS; p++)
			self->list[p] = paused_shared->servers[0].text[p];
		options.servers = self->list;
		options.server_count = PARTS;
		options.transport = transport;
		options.tcp_driver = driver;
	} else {
		options.part_config = paused_fixture.folder;
	}
	return options;
}

gw_status paused_make_sums(struct trainer *self)
{
	struct gw_tensor_spec spec = {.name = "sums",
				      .dtype = GW_FLOAT32,
				      .placement = GW_PLACE_STRIPED,
				      .ndim = 2,
				      .shape = {ROWS, COLUMNS}};
	return gw_tensor_create(self->client, &spec, &self->sums);
}

bool paused_is_marked(const uint8_t *memory, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++)
		if (memory[i] != MARK)
			return false;
	return true;
}

/* --- Tests. --- */

int paused_forget(void **state)
{
	(void)state;
	memset(paused_shared, 0, sizeof(*paused_shared));
	paused_shared->timeout_ms = TIMEOUT_MS;
	return 0;
}

void paused_for_long(void)
{
	paused_wait_ns((uint64_t)paused_shared->timeout_ms * 3 / 2 * GW_NS_PER_MS);
}

void paused_wait_for_step(const struct told *told, uint32_t step)
{
	uint64_t end = gw_monotonic_ns() + ENOUGH_NS;
	while (atomic_load(&told->step) < step && !atomic_load(&told->failed)) {
		paused_wait_ns(GW_NS_PER_MS);
		assert_true(gw_monotonic_ns() < end);
	}
}

int paused_run(const struct CMUnitTest *tests, size_t count)
{
	paused_shared = mmap(NULL, sizeof(*paused_shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (paused_shared == MAP_FAILED)
		return 1;
	cluster_use_own_runtime_folder();
	gw_fixture_begin(&paused_fixture, 71, SETUP_SCALE, PARTS);
	gw_fixture_write(&paused_fixture);
	int failed = _cmocka_run_group_tests("paused", tests, count, NULL, NULL);
	gw_fixture_end(&paused_fixture);
	return failed;
}
