/* Rows that land in memory of the caller (gw_client_options.memory): the same bytes over every path; each piece is
 * released once, when its mini-batch is, and never touched afterwards; acquire that has no memory, lost servers,
 * cancelled and failed mini-batches, threads, a fork.
 *
 * Each piece is a mapping of its own that ends at a page without access, and is unmapped when it is released. So a byte
 * too far, or a touch after the release, ends the program. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/support/alloc_fault.h"
#include "test/support/client_inside.h"
#include "test/support/client_paths.h"

#define PAGE       4096u
#define PIECES_MAX 512u

struct piece {
	uint8_t *memory;
	uint64_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct piece pieces[PIECES_MAX];                    /* not released; memory NULL: none */
static uint64_t acquired, released, open_now, refuse_each; /* refuse_each: every so many-th call has no memory */
static uint64_t asked;

static uint64_t mapped(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static void *acquire(void *context, uint64_t bytes)
{
	assert_ptr_equal(context, pieces);
	assert_true(bytes > 0);
	pthread_mutex_lock(&lock);
	uint8_t *memory = NULL;
	asked++;
	if (!refuse_each || asked % refuse_each) {
		uint8_t *base =
			mmap(NULL, mapped(bytes) + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(base != MAP_FAILED);
		memset(base, 0x5a, mapped(bytes));
		assert_int_equal(mprotect(base + mapped(bytes), PAGE, PROT_NONE), 0);
		memory = base + (mapped(bytes) - bytes) / 16 * 16;
		struct piece *free_one = pieces;
		while (free_one < pieces + PIECES_MAX && free_one->memory)
			free_one++;
		assert_true(free_one < pieces + PIECES_MAX);
		*free_one = (struct piece){memory, bytes};
		acquired++;
		open_now++;
	}
	pthread_mutex_unlock(&lock);
	return memory;
}

static struct piece *piece_at(const void *memory)
{
	for (uint32_t i = 0; i < PIECES_MAX; i++)
		if (memory && pieces[i].memory == memory)
			return &pieces[i];
	return NULL;
}

static void release(void *context, void *memory, uint64_t bytes)
{
	assert_ptr_equal(context, pieces);
	pthread_mutex_lock(&lock);
	struct piece *piece = piece_at(memory);
	if (!piece || piece->bytes != bytes) {
		fail_msg("release of %p, %llu bytes: no such piece", memory, (unsigned long long)bytes);
		return;
	}
	uint8_t *base = (uint8_t *)((uintptr_t)memory / PAGE * PAGE);
	assert_int_equal(munmap(base, mapped(bytes) + PAGE), 0);
	piece->memory = NULL;
	released++;
	open_now--;
	pthread_mutex_unlock(&lock);
}

static const struct gw_landing_memory hook = {acquire, release, pieces};

static void hook_begin(uint64_t refuse)
{
	acquired = released = asked = open_now = 0;
	refuse_each = refuse;
}

/* Checks where the rows of a batch are. */
static void expect_landed(const struct gw_minibatch *batch, const struct plan *plan)
{
	pthread_mutex_lock(&lock);
	for (uint32_t f = 0; f < batch->fetch_count; f++) {
		const struct gw_fetch *fetch = &plan->fetches[f];
		const uint64_t row =
			fetch->convert ? gw_converted_bytes(fetch->tensor, fetch->convert) : fetch->tensor->row_bytes;
		const struct piece *piece = piece_at(batch->rows[f]);
		if (batch->row_counts[f] > 0 && !refuse_each && (!piece || piece->bytes < row * batch->row_counts[f]))
			fail_msg("fetch %u: its rows are not in a piece of their length", f);
	}
	pthread_mutex_unlock(&lock);
}

static struct gw_client *open_hooked(const struct setup *setup, uint32_t way)
{
	const struct gw_client_options ways[] = {
		{.part_config = setup->fixture.folder, .threads = 1},
		{.part_config = setup->fixture.folder, .threads = 3, .neighbours = "reads"},
		{.part_config = setup->fixture.folder, .threads = 2, .order = "always"},
		{.servers = setup->cluster.list, .server_count = setup->cluster.parts, .threads = 4},
		{.servers = setup->cluster.list,
		 .server_count = setup->cluster.parts,
		 .threads = 1,
		 .neighbours = "reads"},
	};
	struct gw_client_options options = ways[way % (sizeof(ways) / sizeof(ways[0]))];
	options.memory = hook;
	return open_client(&options);
}
#define WAYS 5u

static void converting_plan(struct gw_client *client, struct plan *plan, uint32_t turn)
{
	static const gw_dtype asked_types[][4] = {
		{0}, {GW_FLOAT64, GW_FLOAT32, 0, GW_FLOAT64}, {GW_FLOAT16, GW_BFLOAT16, 0, 0}};
	make_plan(client, plan, false, false);
	for (int f = 0; f < 4; f++)
		plan->fetches[f].convert = asked_types[turn][f];
}

/* Over each path an epoch with the hook has the bytes of one without. Two batches are held while the next ones come. */
static void epochs(const struct ways *ways)
{
	for (uint32_t turn = 0; turn < 3; turn++) {
		uint64_t expected[EPOCH_MAX];
		struct plan plan;
		converting_plan(ways->clients[0], &plan, turn);
		const uint32_t n = run_epoch(ways->clients[0], &plan, 1, expected);
		for (uint32_t w = 0; w < WAYS; w++) {
			for (uint64_t refuse = 0; refuse <= 3; refuse += 3) {
				hook_begin(refuse);
				struct gw_client *client = open_hooked(&ways->setup, w);
				converting_plan(client, &plan, turn);
				struct gw_loader *loader =
					open_loader(client, &plan, (struct gw_loader_state){.epoch = 1});
				struct gw_minibatch *held[2] = {NULL};
				for (uint32_t b = 0; b < n; b++) {
					struct gw_minibatch *batch;
					if (gw_loader_next(loader, &batch, -1) != GW_OK)
						fail_msg("batch %u: %s", b, gw_last_error());
					expect_landed(batch, &plan);
					assert_true(gw_minibatch_digest(batch) == expected[b]);
					if (held[b % 2])
						assert_true(gw_minibatch_digest(held[b % 2]) == expected[b - 2]);
					gw_minibatch_release(held[b % 2]);
					held[b % 2] = batch;
				}
				gw_loader_close(loader);
				assert_int_equal(open_now > 0, 1); /* the batches that are held outlive the loader */
				for (uint32_t b = n - 2; b < n; b++) {
					assert_true(gw_minibatch_digest(held[b % 2]) == expected[b]);
					gw_minibatch_release(held[b % 2]);
				}
				assert_int_equal(open_now, 0);
				gw_client_close(client);
				assert_int_equal(acquired, released);
				assert_true(acquired >= n);
				assert_true(refuse ? acquired < asked : acquired == asked);
			}
		}
	}
}

static void the_same_bytes(void **state)
{
	(void)state;
	struct ways ways;
	paths_of_parts(61, epochs);
	/* Mapped memory is the same beside RDMA and beside sockets. */
	for (uint32_t parts = 1; parts <= 3 && !cluster_is_rdma(); parts += 2) {
		paths_begin(&ways, 61, parts, "shm", NULL);
		epochs(&ways);
		paths_end(&ways);
	}
}

/* Mini-batches that are cancelled, or fail, return their memory; so does a loader that is closed early. */
static void early_ends(const struct ways *ways)
{
	for (uint32_t w = 0; w < WAYS; w++) {
		hook_begin(0);
		struct gw_client *client = open_hooked(&ways->setup, w);
		struct plan plan;
		make_plan(client, &plan, false, false);
		int64_t seeds[BATCH_SIZE];
		for (int64_t i = 0; i < BATCH_SIZE; i++)
			seeds[i] = i * 3;
		for (uint64_t stream = 0; stream < 40; stream++) {
			struct gw_minibatch *batch = NULL;
			struct gw_ticket *ticket;
			assert_int_equal(
				gw_sample_start(client, &plan.spec, 1, stream, seeds, BATCH_SIZE, &batch, &ticket),
				GW_OK);
			if (stream % 4 == 0 && gw_wait(ticket, (int64_t)(stream % 3)) == GW_OK)
				gw_minibatch_release(batch);
			else
				gw_cancel(ticket); /* where it has ended, its mini-batch is released */
		}
		assert_int_equal(open_now, 0);
		for (int i = 0; i < 3; i++) {
			struct gw_minibatch *batch;
			struct gw_loader *loader = open_loader(client, &plan, (struct gw_loader_state){0});
			if (i) {
				assert_int_equal(gw_loader_next(loader, &batch, -1), GW_OK);
				gw_minibatch_release(batch);
			}
			gw_loader_close(loader);
			assert_int_equal(open_now, 0);
		}
		gw_client_close(client);
		assert_int_equal(acquired, released);
	}
}

static void cancelled_and_closed(void **state)
{
	(void)state;
	struct ways ways;
	paths_begin(&ways, 62, 3, NULL, NULL);
	early_ends(&ways);
	paths_end(&ways);
}

/* Servers are lost within an epoch. A batch that failed is sampled again, with other memory. */
static void lost_servers(void **state)
{
	(void)state;
	struct setup setup;
	uint64_t expected[EPOCH_MAX];
	setup_begin(&setup, 63, 3, NULL);
	struct gw_client *alone =
		open_client(&(struct gw_client_options){.part_config = setup.fixture.folder, .threads = 1});
	struct plan plan;
	make_plan(alone, &plan, false, false);
	const uint32_t n = run_epoch(alone, &plan, 1, expected);
	gw_client_close(alone);
	hook_begin(0);
	/* Mapped memory outlives its server. */
	struct gw_client *client =
		open_client(&(struct gw_client_options){.servers = setup.cluster.list,
							.server_count = 3,
							.threads = 2,
							.transport = cluster_is_rdma() ? NULL : "tcp",
							/* A connection over RDMA takes longer. */
							.reconnect_ms = cluster_is_rdma() ? 3000 : 1,
							.memory = hook});
	make_plan(client, &plan, false, false);
	struct gw_loader *loader = open_loader(client, &plan, (struct gw_loader_state){.epoch = 1});
	uint32_t errors = 0;
	bool lost = false;
	for (uint32_t b = 0; b < n;) {
		struct gw_minibatch *batch;
		if (b == 1 && !lost) {
			cluster_kill(&setup.cluster, 2);
			lost = true;
		}
		if (gw_loader_next(loader, &batch, -1) == GW_OK) {
			expect_landed(batch, &plan);
			assert_true(gw_minibatch_digest(batch) == expected[b++]);
			gw_minibatch_release(batch);
		} else if (errors++ == 0) {
			cluster_revive(&setup.cluster, 2);
		}
	}
	gw_loader_close(loader);
	assert_int_equal(open_now, 0);
	assert_int_equal(acquired, released);
	assert_true(errors > 0);
	gw_client_close(client);
	setup_end(&setup);
}

/* --- Pieces of a buffer of gw_buffer_alloc: no gather registers memory. --- */

static struct slices {
	uint8_t *base;
	uint64_t used;
	bool foreign; /* from malloc instead */
} slices;

static void *slice_acquire(void *context, uint64_t bytes)
{
	struct slices *from = context;
	if (from->foreign)
		return malloc(bytes);
	uint64_t at = __atomic_fetch_add(&from->used, (bytes + 63) / 64 * 64, __ATOMIC_RELAXED);
	assert_true(at + bytes <= 64u << 20);
	return from->base + at;
}

static void slice_release(void *context, void *memory, uint64_t bytes)
{
	(void)bytes;
	if (((const struct slices *)context)->foreign)
		free(memory);
}

static void pieces_of_a_buffer(void **state)
{
	(void)state;
	struct setup setup;
	uint64_t digests[EPOCH_MAX], again[EPOCH_MAX];
	cluster_offer("tcp");
	setup_begin(&setup, 64, 2, NULL);
	const struct gw_landing_memory memory = {slice_acquire, slice_release, &slices};
	struct gw_client *client = open_client(&(struct gw_client_options){
		.servers = setup.cluster.list, .server_count = 2, .threads = 2, .memory = memory});
	slices = (struct slices){.foreign = true};
	struct plan plan;
	make_plan(client, &plan, false, false);
	const uint32_t n = run_epoch(client, &plan, 1, digests);
	const uint64_t before = client_registrations(client);
	assert_true(run_epoch(client, &plan, 1, again) == n && memcmp(digests, again, n * sizeof(*again)) == 0);
	const uint64_t foreign = client_registrations(client) - before;
	assert_true(foreign >= n); /* what the comparison below can see */
	slices = (struct slices){.base = gw_buffer_alloc(client, 64u << 20)};
	assert_non_null(slices.base);
	const uint64_t between = client_registrations(client);
	assert_true(run_epoch(client, &plan, 1, again) == n && memcmp(digests, again, n * sizeof(*again)) == 0);
	assert_true(slices.used > 0);
	assert_int_equal(client_registrations(client), between);
	gw_client_close(client);
	setup_end(&setup);
	cluster_offer(NULL);
}

/* --- What is refused; a fork; short memory. --- */

static void one_function(void **state)
{
	(void)state;
	struct setup setup;
	struct gw_client *client;
	setup_begin(&setup, 65, 1, NULL);
	struct gw_client_options options = {
		.part_config = setup.fixture.folder, .threads = 1, .memory.acquire = acquire};
	expect(gw_client_open(&options, &client), GW_INVALID, "acquire without release");
	options.memory = (struct gw_landing_memory){.release = release};
	expect(gw_client_open(&options, &client), GW_INVALID, "release without acquire");
	setup_end(&setup);
}

static void a_child_releases_nothing(void **state)
{
	(void)state;
	struct setup setup;
	setup_begin(&setup, 66, 2, NULL);
	hook_begin(0);
	struct gw_client *client = open_hooked(&setup, 0);
	struct plan plan;
	make_plan(client, &plan, false, false);
	struct gw_loader *loader = open_loader(client, &plan, (struct gw_loader_state){0});
	struct gw_minibatch *batch;
	assert_int_equal(gw_loader_next(loader, &batch, -1), GW_OK);
	const uint64_t digest = gw_minibatch_digest(batch);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		const uint64_t before = released;
		gw_minibatch_release(batch);
		gw_loader_close(loader);
		gw_client_close(client);
		_exit(released == before ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_true(gw_minibatch_digest(batch) == digest);
	gw_minibatch_release(batch);
	gw_loader_close(loader);
	assert_int_equal(open_now, 0);
	gw_client_close(client);
	setup_end(&setup);
}

static gw_status use_in_short_memory(void *context)
{
	const struct setup *setup = context;
	struct gw_client *client;
	const struct gw_client_options options = {.part_config = setup->fixture.folder, .threads = 1, .memory = hook};
	gw_status status = gw_client_open(&options, &client);
	if (status != GW_OK)
		return status;
	struct plan plan;
	make_plan(client, &plan, false, false);
	struct gw_minibatch *batch = NULL;
	const int64_t seeds[] = {1, 2, 3};
	status = gw_sample(client, &plan.spec, 1, 2, seeds, 3, &batch);
	if (status == GW_OK)
		gw_minibatch_release(batch);
	gw_client_close(client);
	assert_int_equal(open_now, 0);
	return status;
}

static void short_memory(void **state)
{
	(void)state;
	struct setup setup;
	hook_begin(0);
	setup_begin(&setup, 67, 2, NULL);
	assert_true(gw_fault_each(use_in_short_memory, &setup) > 0);
	assert_int_equal(acquired, released);
	setup_end(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_bytes), cmocka_unit_test(cancelled_and_closed),
		cmocka_unit_test(lost_servers),   cmocka_unit_test(pieces_of_a_buffer),
		cmocka_unit_test(one_function),   cmocka_unit_test(a_child_releases_nothing),
		cmocka_unit_test(short_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
