/* Trainers that are stopped for longer than an operation's deadline (SIGSTOP), while their servers live: what they had
 * begun ends well, what they pushed is applied once, nothing is written where it was cancelled. And what a pause must
 * not hide: servers that are gone, tensors that have ended meanwhile.
 *
 *   this process: stops ─▶ waits ─▶ continues            trainers: a thread for each kind of operation, counted
 *                 └──────── what all share ─────────────────────┘   servers: a process of their own
 *
 * All processes are forked before any has threads. Over the made-up RDMA device a trainer has its servers in itself.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/system/clock.h"
#include "test/support/client_setup.h"

#define PARTS      2
#define TIMEOUT_MS 1500
#define LATE_MS    12000 /* where the machine is too busy for a deadline a test begins again with twice as long a one */
#define ENOUGH_NS  (200 * GW_NS_PER_SECOND) /* for what ends by itself */
#define ROUNDS     2
#define IDLE_MS    600 /* a client that is silent inside a frame for longer loses its connection */
#define LEASE_MS   1500
#define ROWS       3000
#define COLUMNS    64
#define PUSHED     1500 /* rows of a push: 384 KB, so that some frame is always on its way */
#define IN_FLIGHT  4
#define SEEDS      16
#define MARK       0xa5 /* in memory that was taken back */

enum kind { GATHERS, SAMPLES, LOADERS, PUSHES, CANCELS, KINDS };

/* What a trainer tells. */
struct told {
	_Atomic uint32_t counts[KINDS];
	_Atomic uint32_t step; /* of what a test waits for */
	atomic_bool failed;
	bool late; /* of a deadline that passed */
	char text[GW_ERROR_TEXT_MAX];
};

#define TRAINERS_MAX 4
#define CHILDREN_MAX (TRAINERS_MAX + 1)

static struct shared {
	struct told told[TRAINERS_MAX];
	struct servers {
		char text[PARTS][GW_ADDRESS_MAX];
		atomic_bool serve, end; /* orders */
		_Atomic uint32_t tensors;
	} servers[2];
	atomic_bool finish, again;
	int64_t timeout_ms;
} * shared;

static struct gw_fixture fixture;

/* --- Waiting, and processes. --- */

static void pause_ns(uint64_t ns)
{
	struct timespec time = gw_timespec(ns);
	nanosleep(&time, NULL);
}

static bool wait_for(const atomic_bool *word)
{
	uint64_t end = gw_monotonic_ns() + ENOUGH_NS;
	while (!atomic_load(word) && gw_monotonic_ns() < end)
		pause_ns(GW_NS_PER_MS);
	return atomic_load(word);
}

static pid_t children[CHILDREN_MAX]; /* 0: ended */

/* A child that does not outlive its test, whatever happens. */
static pid_t start(int (*run)(uint32_t number), uint32_t number)
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

static int end_of(pid_t child)
{
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	for (uint32_t at = 0; at < CHILDREN_MAX; at++)
		if (children[at] == child)
			children[at] = 0;
	return status;
}

static int kill_children(void **state)
{
	(void)state;
	for (uint32_t at = 0; at < CHILDREN_MAX; at++) {
		if (!children[at])
			continue;
		kill(children[at], SIGKILL);
		end_of(children[at]);
	}
	return 0;
}

static void stop(pid_t child)
{
	int status;
	assert_int_equal(kill(child, SIGSTOP), 0);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
}

static void go_on(pid_t child)
{
	assert_int_equal(kill(child, SIGCONT), 0);
}

static void expect_well(pid_t child, uint32_t number)
{
	int status = end_of(child);
	if (status != 0)
		fail_msg("trainer %u: status %d: %s", number, status, shared->told[number].text);
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
	struct servers *mine = &shared->servers[number];
	struct cluster cluster;
	cluster_offer("shm");
	cluster_limit_silence(IDLE_MS);
	cluster_limit_tensors(0, number == 1 ? LEASE_MS : 0);
	cluster_begin(&cluster, fixture.folder, PARTS, NULL);
	memcpy(mine->text, cluster.text, sizeof(mine->text));
	atomic_store(&mine->serve, true);
	while (!atomic_load(&mine->end)) {
		uint32_t tensors = 0;
		for (uint32_t p = 0; p < PARTS; p++)
			gw_tensor_table_each(cluster.servers[p]->tensors, count_tensor, &tensors);
		atomic_store(&mine->tensors, tensors);
		pause_ns(2 * GW_NS_PER_MS);
	}
	cluster_end(&cluster);
	return 0;
}

/* Servers as TCP and mapped memory reach them, ready. */
static pid_t begin_servers(uint32_t number)
{
	shared->servers[number].serve = shared->servers[number].end = false;
	pid_t servers = start(serve, number);
	assert_true(wait_for(&shared->servers[number].serve));
	return servers;
}

static void end_servers(pid_t servers, uint32_t number)
{
	atomic_store(&shared->servers[number].end, true);
	assert_int_equal(end_of(servers), 0);
}

/* --- A trainer: its client, and what is right. --- */

struct trainer {
	struct told *told;
	struct cluster own; /* over the made-up device */
	const char *list[PARTS];
	struct gw_client *client;
	const struct gw_tensor *feat, *sums;
	struct plan plan;
	uint8_t *rows; /* of feat: all of them */
	uint64_t digests[SEEDS], epoch[EPOCH_MAX];
	uint32_t batches;
	float pushed[ROWS];
};

static struct trainer trainer;

/* The first failure is told; false, for the caller to end. */
static bool well(struct trainer *self, bool good, const char *what)
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

/* Others have their turn, too. */
static bool goes_on(const struct trainer *self)
{
	pause_ns(GW_NS_PER_MS);
	return !atomic_load(&shared->finish) && !atomic_load(&self->told->failed);
}

static int64_t seed_of(uint64_t i, uint32_t at)
{
	return (int64_t)(gw_mix64(i * 64 + at) % SETUP_SCALE);
}

static gw_status sample(struct gw_client *client, const struct gw_sample_spec *spec, uint64_t i, uint64_t *digest)
{
	struct gw_minibatch *batch;
	int64_t seeds[10];
	for (uint32_t s = 0; s < 10; s++)
		seeds[s] = seed_of(i, s);
	gw_status status = gw_sample(client, spec, i, 1, seeds, 10, &batch);
	if (status != GW_OK)
		return status;
	*digest = gw_minibatch_digest(batch);
	gw_minibatch_release(batch);
	return GW_OK;
}

/* By a client that has no servers. */
static void expect_all(struct trainer *self)
{
	struct gw_client_options options = {.part_config = fixture.folder, .threads = 1};
	struct gw_client *client = open_client(&options);
	struct plan plan;
	const struct gw_tensor *feat = node_tensor(client, "paper", "feat");
	int64_t ids[SETUP_SCALE];
	make_plan(client, &plan, false, false);
	for (int i = 0; i < SETUP_SCALE; i++)
		ids[i] = i;
	self->rows = calloc(SETUP_SCALE, feat->row_bytes);
	well(self, gw_gather(client, feat, ids, SETUP_SCALE, self->rows) == GW_OK, "rows");
	for (uint64_t i = 0; i < SEEDS; i++)
		well(self, sample(client, &plan.spec, i, &self->digests[i]) == GW_OK, "samples");
	self->batches = run_epoch(client, &plan, 1, self->epoch);
	gw_client_close(client);
}

static struct gw_client_options options_of(struct trainer *self, const char *transport, const char *driver)
{
	struct gw_client_options options = {
		.threads = 2, .timeout_ms = shared->timeout_ms, .reconnect_ms = shared->timeout_ms};
	if (cluster_is_rdma()) {
		cluster_offer("verbs");
		cluster_begin(&self->own, fixture.folder, PARTS, NULL);
		options.servers = self->own.list;
		options.server_count = PARTS;
	} else if (transport) {
		for (int p = 0; p < PARTS; p++)
			self->list[p] = shared->servers[0].text[p];
		options.servers = self->list;
		options.server_count = PARTS;
		options.transport = transport;
		options.tcp_driver = driver;
	} else {
		options.part_config = fixture.folder;
	}
	return options;
}

static gw_status make_sums(struct trainer *self)
{
	struct gw_tensor_spec spec = {.name = "sums",
				      .dtype = GW_FLOAT32,
				      .placement = GW_PLACE_STRIPED,
				      .ndim = 2,
				      .shape = {ROWS, COLUMNS}};
	return gw_tensor_create(self->client, &spec, &self->sums);
}

/* --- What it does over and over. --- */

static void *gather_rows(void *argument)
{
	struct trainer *self = argument;
	uint64_t bytes = self->feat->row_bytes;
	uint8_t *rows = calloc(100, bytes);
	int64_t ids[100];
	for (uint64_t turn = 0; goes_on(self); turn++) {
		for (uint32_t i = 0; i < 100; i++)
			ids[i] = seed_of(turn, i);
		if (!well(self, gw_gather(self->client, self->feat, ids, 100, rows) == GW_OK, "gather"))
			break;
		for (uint32_t i = 0; i < 100; i++)
			well(self, memcmp(rows + i * bytes, self->rows + (uint64_t)ids[i] * bytes, bytes) == 0,
			     "other rows");
		atomic_fetch_add(&self->told->counts[GATHERS], 1);
	}
	free(rows);
	return NULL;
}

static void *sample_seeds(void *argument)
{
	struct trainer *self = argument;
	for (uint64_t turn = 0; goes_on(self); turn++) {
		uint64_t digest = 0;
		if (!well(self, sample(self->client, &self->plan.spec, turn % SEEDS, &digest) == GW_OK, "sample"))
			break;
		well(self, digest == self->digests[turn % SEEDS], "another sample");
		atomic_fetch_add(&self->told->counts[SAMPLES], 1);
	}
	return NULL;
}

static void *load_epochs(void *argument)
{
	struct trainer *self = argument;
	while (goes_on(self)) {
		struct gw_loader *loader = open_loader(self->client, &self->plan, (struct gw_loader_state){.epoch = 1});
		for (uint32_t b = 0; b < self->batches && goes_on(self); b++) {
			struct gw_minibatch *batch;
			if (!well(self, gw_loader_next(loader, &batch, -1) == GW_OK, "loader"))
				break;
			well(self, gw_minibatch_digest(batch) == self->epoch[b], "another batch");
			gw_minibatch_release(batch);
			atomic_fetch_add(&self->told->counts[LOADERS], 1);
		}
		gw_loader_close(loader);
	}
	return NULL;
}

/* Several at a time, each of other rows than the one before. */
static void *push_ones(void *argument)
{
	static float ones[PUSHED * COLUMNS];
	static int64_t ids[IN_FLIGHT][PUSHED];
	const struct gw_optimizer add = {.kind = GW_SGD, .rate = -1};
	struct trainer *self = argument;
	struct gw_ticket *tickets[IN_FLIGHT] = {NULL};
	for (uint32_t i = 0; i < PUSHED * COLUMNS; i++)
		ones[i] = 1;
	for (uint32_t turn = 0; goes_on(self); turn = (turn + 1) % IN_FLIGHT) {
		bool good = !tickets[turn] || gw_wait(tickets[turn], -1) == GW_OK;
		tickets[turn] = NULL;
		if (!well(self, good, "push"))
			break;
		for (uint32_t i = 0; i < PUSHED; i++) {
			ids[turn][i] = (int64_t)((i * 2 + turn) % ROWS);
			self->pushed[ids[turn][i]]++;
		}
		if (!well(self,
			  gw_push_start(self->client, self->sums, ids[turn], PUSHED, ones, &add, &tickets[turn]) ==
				  GW_OK,
			  "push"))
			break;
		atomic_fetch_add(&self->told->counts[PUSHES], 1);
	}
	for (uint32_t turn = 0; turn < IN_FLIGHT; turn++)
		well(self, !tickets[turn] || gw_wait(tickets[turn], -1) == GW_OK, "the last pushes");
	return NULL;
}

static bool is_marked(const uint8_t *memory, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++)
		if (memory[i] != MARK)
			return false;
	return true;
}

/* Takes its memory back in the middle of it: nothing is written there from then on. */
static void *cancel_gathers(void *argument)
{
	struct trainer *self = argument;
	uint64_t bytes = SETUP_SCALE * self->feat->row_bytes;
	uint8_t *rows = calloc(1, bytes);
	int64_t ids[SETUP_SCALE];
	for (uint32_t i = 0; i < SETUP_SCALE; i++)
		ids[i] = seed_of(7, i);
	for (uint64_t turn = 0; goes_on(self); turn++) {
		struct gw_ticket *ticket;
		if (!well(self, gw_gather_start(self->client, self->feat, ids, SETUP_SCALE, rows, &ticket) == GW_OK,
			  "gather"))
			break;
		gw_status status = turn % 2 ? gw_wait(ticket, 0) : GW_AGAIN;
		if (status == GW_AGAIN)
			gw_cancel(ticket);
		memset(rows, MARK, bytes);
		well(self, status == GW_OK || status == GW_AGAIN, "gather");
		sched_yield();
		well(self, is_marked(rows, bytes), "written after it was cancelled");
		atomic_fetch_add(&self->told->counts[CANCELS], 1);
	}
	free(rows);
	return NULL;
}

static void check_sums(struct trainer *self)
{
	float *rows = calloc(ROWS, COLUMNS * sizeof(*rows));
	int64_t *ids = calloc(ROWS, sizeof(*ids));
	for (int i = 0; i < ROWS; i++)
		ids[i] = i;
	well(self, gw_gather(self->client, self->sums, ids, ROWS, rows) == GW_OK, "sums");
	for (int i = 0; i < ROWS * COLUMNS && !atomic_load(&self->told->failed); i++)
		well(self, rows[i] == self->pushed[i / COLUMNS], "a push was applied twice, or not at all");
	free(ids);
	free(rows);
}

/* One who does everything at once until it is told to finish. */
static int train(uint32_t number)
{
	static const struct {
		const char *transport, *driver;
	} ways[] = {{"tcp", "epoll"}, {"tcp", "io_uring"}, {"shm", NULL}, {NULL, NULL}};
	static void *(*const work[KINDS])(void *) = {gather_rows, sample_seeds, load_epochs, push_ones, cancel_gathers};
	struct trainer *self = &trainer;
	pthread_t threads[KINDS];
	self->told = &shared->told[number];
	expect_all(self);
	struct gw_client_options options = options_of(self, ways[number].transport, ways[number].driver);
	gw_status status = gw_client_open(&options, &self->client);
	if (status == GW_UNSUPPORTED) {
		atomic_store(&self->told->step, 1); /* no io_uring here */
		return 0;
	}
	if (!well(self, status == GW_OK, "client"))
		return 1;
	self->feat = node_tensor(self->client, "paper", "feat");
	make_plan(self->client, &self->plan, false, false);
	well(self, make_sums(self) == GW_OK, "tensor");
	for (int k = 0; k < KINDS; k++)
		pthread_create(&threads[k], NULL, work[k], self);
	for (int k = 0; k < KINDS; k++)
		pthread_join(threads[k], NULL);
	if (!atomic_load(&self->told->failed))
		check_sums(self);
	gw_client_close(self->client);
	cluster_end(&self->own);
	free(self->rows);
	return atomic_load(&self->told->failed);
}

/* Until each kind has been done so many times more than when this was called, or it has failed. */
static void wait_for_more(const struct told *told, uint32_t more)
{
	uint32_t begun[KINDS];
	uint64_t end = gw_monotonic_ns() + ENOUGH_NS;
	for (int k = 0; k < KINDS; k++)
		begun[k] = atomic_load(&told->counts[k]);
	for (int k = 0; k < KINDS;) {
		if (atomic_load(&told->failed) || atomic_load(&told->step))
			return;
		if (atomic_load(&told->counts[k]) - begun[k] >= more)
			k++;
		else
			pause_ns(GW_NS_PER_MS);
		assert_true(gw_monotonic_ns() < end);
	}
}

static int forget(void **state)
{
	(void)state;
	memset(shared, 0, sizeof(*shared));
	shared->timeout_ms = TIMEOUT_MS;
	return 0;
}

/* For longer than any deadline, and than a second. */
static void pause_for_long(void)
{
	pause_ns((uint64_t)shared->timeout_ms * 3 / 2 * GW_NS_PER_MS);
}

/* Whether one was late: perhaps it would have been without the pauses, too. */
static bool stop_trainers(void)
{
	uint32_t count = cluster_is_rdma() ? 1 : TRAINERS_MAX;
	pid_t servers = cluster_is_rdma() ? 0 : begin_servers(0), trainers[TRAINERS_MAX];
	for (uint32_t t = 0; t < count; t++)
		trainers[t] = start(train, t);
	for (int round = 0; round < ROUNDS; round++) {
		bool stopped[TRAINERS_MAX] = {false};
		for (uint32_t t = 0; t < count; t++)
			wait_for_more(&shared->told[t], 3);
		for (uint32_t t = 0; t < count; t++) {
			stopped[t] = !atomic_load(&shared->told[t].failed) && !atomic_load(&shared->told[t].step);
			if (stopped[t])
				stop(trainers[t]);
		}
		pause_for_long();
		for (uint32_t t = 0; t < count; t++)
			if (stopped[t])
				go_on(trainers[t]);
	}
	for (uint32_t t = 0; t < count; t++)
		wait_for_more(&shared->told[t], IN_FLIGHT + 1);
	atomic_store(&shared->finish, true);
	bool late = false;
	for (uint32_t t = 0; t < count; t++) {
		if (shared->told[t].late && shared->timeout_ms < LATE_MS)
			late |= end_of(trainers[t]) != 0;
		else
			expect_well(trainers[t], t);
	}
	if (servers)
		end_servers(servers, 0);
	return late;
}

static void stopped_trainers_go_on(void **state)
{
	for (int64_t timeout_ms = TIMEOUT_MS; stop_trainers();) {
		print_message("%lld ms were too few\n", (long long)timeout_ms);
		forget(state);
		shared->timeout_ms = timeout_ms *= 2;
	}
}

/* --- What a pause must not hide. --- */

/* Gathers until a server is found out, and goes on when it is back: nothing that it asked for before is written then.
 */
static int lose_a_server(uint32_t number)
{
	struct trainer *self = &trainer;
	gw_status status = GW_OK;
	self->told = &shared->told[number];
	struct gw_client_options options = options_of(self, "tcp", number == 0 ? "epoll" : "io_uring");
	status = gw_client_open(&options, &self->client);
	if (status == GW_UNSUPPORTED) {
		atomic_store(&self->told->step, 9);
		return 0;
	}
	if (!well(self, status == GW_OK, "client"))
		return 1;
	self->feat = node_tensor(self->client, "paper", "feat");
	uint64_t bytes = SETUP_SCALE * self->feat->row_bytes;
	uint8_t *rows = calloc(1, bytes), *fresh = calloc(1, bytes);
	int64_t ids[SETUP_SCALE];
	for (uint32_t i = 0; i < SETUP_SCALE; i++)
		ids[i] = i;
	while ((status = gw_gather(self->client, self->feat, ids, SETUP_SCALE, rows)) == GW_OK)
		atomic_store(&self->told->step, 1);
	memset(rows, MARK, bytes);
	well(self, status == GW_DEADLINE || status == GW_PEER_LOST, "a server that is stopped");
	atomic_store(&self->told->step, 2);
	well(self, wait_for(&shared->again), "the server's return");
	uint64_t end = gw_monotonic_ns() + ENOUGH_NS;
	do
		status = gw_gather(self->client, self->feat, ids, SETUP_SCALE, fresh);
	while (status != GW_OK && gw_monotonic_ns() < end);
	well(self, status == GW_OK, "gather");
	well(self, is_marked(rows, bytes), "written after its deadline");
	gw_client_close(self->client);
	free(fresh);
	free(rows);
	return atomic_load(&self->told->failed);
}

static void wait_for_step(const struct told *told, uint32_t step)
{
	uint64_t end = gw_monotonic_ns() + ENOUGH_NS;
	while (atomic_load(&told->step) < step && !atomic_load(&told->failed)) {
		pause_ns(GW_NS_PER_MS);
		assert_true(gw_monotonic_ns() < end);
	}
}

/* The servers are stopped while the trainers are, and do not go on with them. */
static void lost_servers_are_found_out(void **state)
{
	(void)state;
	if (cluster_is_rdma())
		return; /* it has them in itself */
	pid_t servers = begin_servers(0), trainers[2];
	for (uint32_t t = 0; t < 2; t++)
		trainers[t] = start(lose_a_server, t);
	for (uint32_t t = 0; t < 2; t++) {
		wait_for_step(&shared->told[t], 1);
		if (atomic_load(&shared->told[t].step) == 1)
			stop(trainers[t]);
	}
	stop(servers);
	pause_for_long();
	for (uint32_t t = 0; t < 2; t++)
		go_on(trainers[t]);
	for (uint32_t t = 0; t < 2; t++)
		wait_for_step(&shared->told[t], 2);
	go_on(servers);
	atomic_store(&shared->again, true);
	for (uint32_t t = 0; t < 2; t++)
		expect_well(trainers[t], t);
	end_servers(servers, 0);
}

/* Has a tensor of ones, alone in its job, and reads it while it lasts. */
static int hold_a_tensor(uint32_t number)
{
	static float ones[ROWS * COLUMNS], row[COLUMNS];
	static int64_t ids[ROWS];
	struct trainer *self = &trainer;
	self->told = &shared->told[number];
	for (int p = 0; p < PARTS; p++)
		self->list[p] = shared->servers[1].text[p];
	struct gw_client_options options = {.servers = self->list,
					    .server_count = PARTS,
					    .threads = 1,
					    .job = number % 2 ? "odd" : "even",
					    .transport = number % 2 ? "shm" : "tcp"};
	for (int i = 0; i < ROWS * COLUMNS; i++)
		ones[i] = 1;
	for (int i = 0; i < ROWS; i++)
		ids[i] = i;
	if (!well(self, gw_client_open(&options, &self->client) == GW_OK && make_sums(self) == GW_OK, "tensor"))
		return 1;
	/* The second of a job finds the first one's tensor gone, and has zeros. */
	gw_status status = number < 2 ? gw_update(self->client, self->sums, ids, ROWS, ones) : GW_OK;
	well(self, status == GW_OK, "update");
	atomic_store(&self->told->step, 1);
	if (number >= 2) {
		well(self, wait_for(&shared->finish), "the other's end");
	} else {
		for (int64_t i = 0; status == GW_OK; i = (i + 1) % ROWS) {
			status = gw_gather(self->client, self->sums, &ids[i], 1, row);
			for (int c = 0; status == GW_OK && c < COLUMNS; c++)
				well(self, row[c] == 1, "another's rows");
		}
		well(self, status == GW_NOT_FOUND && strstr(gw_last_error(), "gone"), "a tensor that has ended");
		well(self,
		     gw_push(self->client, self->sums, ids, 1, ones, &(struct gw_optimizer){.kind = GW_SGD}) ==
			     GW_NOT_FOUND,
		     "a push to a tensor that has ended");
	}
	gw_client_close(self->client);
	return atomic_load(&self->told->failed);
}

/* Nobody holds their tensors while they are stopped: they end, others of the same job make new ones of the same name,
 * and who goes on is told, and reads no other rows. */
static void leases_end_meanwhile(void **state)
{
	(void)state;
	if (cluster_is_rdma())
		return;
	pid_t servers = begin_servers(1), trainers[4];
	uint64_t end = gw_monotonic_ns() + ENOUGH_NS;
	for (uint32_t t = 0; t < 2; t++)
		trainers[t] = start(hold_a_tensor, t);
	for (uint32_t t = 0; t < 2; t++) {
		wait_for_step(&shared->told[t], 1);
		stop(trainers[t]);
	}
	while (atomic_load(&shared->servers[1].tensors)) {
		pause_ns(GW_NS_PER_MS);
		assert_true(gw_monotonic_ns() < end);
	}
	for (uint32_t t = 2; t < 4; t++)
		trainers[t] = start(hold_a_tensor, t);
	for (uint32_t t = 2; t < 4; t++)
		wait_for_step(&shared->told[t], 1);
	for (uint32_t t = 0; t < 2; t++)
		go_on(trainers[t]);
	for (uint32_t t = 0; t < 2; t++)
		expect_well(trainers[t], t);
	atomic_store(&shared->finish, true);
	for (uint32_t t = 2; t < 4; t++)
		expect_well(trainers[t], t);
	end_servers(servers, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(stopped_trainers_go_on, forget, kill_children),
		cmocka_unit_test_setup_teardown(lost_servers_are_found_out, forget, kill_children),
		cmocka_unit_test_setup_teardown(leases_end_meanwhile, forget, kill_children),
	};
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	cluster_use_own_runtime_folder();
	gw_fixture_begin(&fixture, 71, SETUP_SCALE, PARTS);
	gw_fixture_write(&fixture);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	gw_fixture_end(&fixture);
	return failed;
}
