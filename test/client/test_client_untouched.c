/* Memory into which rows land may be slow to read, or not readable by the processor at all: memory of a device. Above
 * the transports, only the last step of a gather touches it, before the caller does: the copies of rows from memory in
 * reach, of repeated ids, and the conversion.
 *
 *   acquire ─▶ a mapping without access ─▶ accessible while a function of the list below runs ─▶ the caller
 *
 * Any other access ends the program, with the stack. The linker puts the functions of the list (__wrap_...) before the
 * client's (test/CMakeLists.txt). The slots of the backends are replaced in the endpoints. A poll does not wait,
 * because an idle thread that waits in it would leave the memory accessible. TCP uses epoll, since with io_uring the
 * kernel writes between the calls. */
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/link/link.h"
#include "client/rows/local_rows.h"
#include "client/rows/row_lists.h"
#include "core/numbers/convert.h"
#include "test/support/client_paths.h"

#define PAGE       4096u
#define PIECES_MAX 256u
#define TOUCHED    9 /* exit status */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct piece {
	void *memory;
	uint64_t bytes; /* whole pages */
} pieces[PIECES_MAX];
static uint32_t inside;                               /* functions of the list that run */
static uint64_t acquired, copied, converted, doubled; /* by which functions rows came */

static void allow(struct piece *piece, bool access)
{
	if (piece->memory && mprotect(piece->memory, piece->bytes, access ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
		abort();
}

static void enter(void)
{
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; inside == 0 && i < PIECES_MAX; i++)
		allow(&pieces[i], true);
	inside++;
	pthread_mutex_unlock(&lock);
}

static void leave(void)
{
	pthread_mutex_lock(&lock);
	inside--;
	for (uint32_t i = 0; inside == 0 && i < PIECES_MAX; i++)
		allow(&pieces[i], false);
	pthread_mutex_unlock(&lock);
}

static void touched(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	static const char said[] = "not ok - this code touches memory into which rows land:\n";
	void *stack[32];
	(void)!write(STDERR_FILENO, said, sizeof(said) - 1);
	backtrace_symbols_fd(stack, backtrace(stack, 32), STDERR_FILENO);
	_exit(TOUCHED);
}

/* cmocka takes these signals when a test begins. */
static void watch(void)
{
	void *stack[1];
	backtrace(stack, 1); /* loads what it needs */
	const struct sigaction action = {.sa_sigaction = touched, .sa_flags = SA_SIGINFO};
	assert_int_equal(sigaction(SIGSEGV, &action, NULL) | sigaction(SIGBUS, &action, NULL), 0);
}

static void *acquire(void *context, uint64_t bytes)
{
	(void)context;
	struct piece piece = {.bytes = (bytes + PAGE - 1) / PAGE * PAGE};
	piece.memory = mmap(NULL, piece.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (piece.memory == MAP_FAILED)
		abort();
	pthread_mutex_lock(&lock);
	uint32_t at = 0;
	while (pieces[at].memory)
		at++;
	pieces[at] = piece;
	acquired++;
	allow(&pieces[at], inside > 0);
	pthread_mutex_unlock(&lock);
	return piece.memory;
}

static void release(void *context, void *memory, uint64_t bytes)
{
	(void)context;
	(void)bytes;
	pthread_mutex_lock(&lock);
	uint32_t at = 0;
	while (pieces[at].memory != memory)
		at++;
	if (munmap(memory, pieces[at].bytes) != 0)
		abort();
	pieces[at].memory = NULL;
	pthread_mutex_unlock(&lock);
}

/* --- The list. --- */

size_t __real_gw_poll_group_poll(struct gw_poll_group *group, struct gw_completion *completions, size_t max,
				 uint64_t timeout_ns);
uint64_t __real_gw_local_rows_copy(const struct gw_local_rows *local, const int64_t *ids, uint64_t n, uint8_t *out);
uint64_t __real_gw_local_rows_copy_listed(const struct gw_local_rows *local, const int64_t *ids, const uint32_t *list,
					  uint64_t n, uint8_t *out);
uint64_t __real_gw_local_rows_convert(const struct gw_local_rows *local, const int64_t *ids, uint64_t n,
				      const struct gw_conversion *conversion, uint8_t *out);
void __real_gw_row_lists_copy_duplicates(const struct gw_row_lists *lists, uint8_t *out, uint64_t row_bytes);
void __real_gw_convert_rows(const struct gw_conversion *conversion, const void *from, void *to, uint64_t rows);

size_t __wrap_gw_poll_group_poll(struct gw_poll_group *group, struct gw_completion *completions, size_t max,
				 uint64_t timeout_ns);
uint64_t __wrap_gw_local_rows_copy(const struct gw_local_rows *local, const int64_t *ids, uint64_t n, uint8_t *out);
uint64_t __wrap_gw_local_rows_copy_listed(const struct gw_local_rows *local, const int64_t *ids, const uint32_t *list,
					  uint64_t n, uint8_t *out);
uint64_t __wrap_gw_local_rows_convert(const struct gw_local_rows *local, const int64_t *ids, uint64_t n,
				      const struct gw_conversion *conversion, uint8_t *out);
void __wrap_gw_row_lists_copy_duplicates(const struct gw_row_lists *lists, uint8_t *out, uint64_t row_bytes);
void __wrap_gw_convert_rows(const struct gw_conversion *conversion, const void *from, void *to, uint64_t rows);

size_t __wrap_gw_poll_group_poll(struct gw_poll_group *group, struct gw_completion *completions, size_t max,
				 uint64_t timeout_ns)
{
	enter();
	size_t n = __real_gw_poll_group_poll(group, completions, max, 0);
	leave();
	if (n == 0 && timeout_ns > 0)
		usleep(100);
	return n;
}

uint64_t __wrap_gw_local_rows_copy(const struct gw_local_rows *local, const int64_t *ids, uint64_t n, uint8_t *out)
{
	enter();
	copied += n;
	n = __real_gw_local_rows_copy(local, ids, n, out);
	leave();
	return n;
}

uint64_t __wrap_gw_local_rows_copy_listed(const struct gw_local_rows *local, const int64_t *ids, const uint32_t *list,
					  uint64_t n, uint8_t *out)
{
	enter();
	copied += n;
	n = __real_gw_local_rows_copy_listed(local, ids, list, n, out);
	leave();
	return n;
}

uint64_t __wrap_gw_local_rows_convert(const struct gw_local_rows *local, const int64_t *ids, uint64_t n,
				      const struct gw_conversion *conversion, uint8_t *out)
{
	enter();
	n = __real_gw_local_rows_convert(local, ids, n, conversion, out);
	leave();
	return n;
}

void __wrap_gw_row_lists_copy_duplicates(const struct gw_row_lists *lists, uint8_t *out, uint64_t row_bytes)
{
	enter();
	doubled += lists->copy_count;
	__real_gw_row_lists_copy_duplicates(lists, out, row_bytes);
	leave();
}

void __wrap_gw_convert_rows(const struct gw_conversion *conversion, const void *from, void *to, uint64_t rows)
{
	enter();
	converted += rows;
	__real_gw_convert_rows(conversion, from, to, rows);
	leave();
}

/* The backends' read, which may copy at once. */
static struct gw_transport backends[GW_TRANSPORTS_MAX];
static const struct gw_transport *originals[GW_TRANSPORTS_MAX];

static size_t read_by(struct gw_endpoint *endpoint, struct gw_read_set *set, const struct gw_region *region,
		      struct gw_buffer *buffer, const struct gw_reads *reads, bool last)
{
	enter();
	size_t n = originals[endpoint->transport->number]->read(endpoint, set, region, buffer, reads, last);
	leave();
	return n;
}

static void watch_reads(const struct gw_client *client)
{
	for (uint32_t e = 0; e <= client->engine_count; e++) {
		for (uint32_t s = 0; s < client->server_count; s++) {
			struct gw_endpoint *endpoint = client->engines[e].links[s].endpoint;
			if (!endpoint || endpoint->transport->read == read_by)
				continue;
			const uint32_t number = endpoint->transport->number;
			if (!originals[number]) {
				originals[number] = endpoint->transport;
				backends[number] = *endpoint->transport;
				backends[number].read = read_by;
			}
			endpoint->transport = &backends[number];
		}
	}
}

/* --- What lands. --- */

#define SEEDS 120

static void make_seeds(int64_t *seeds, uint32_t turn)
{
	for (int64_t i = 0; i < SEEDS; i++) /* every second seed repeats another one, and so do labels */
		seeds[i] = (i / 2 * 7 + turn) % SETUP_SCALE;
}

static void plan_of(struct gw_client *client, struct plan *plan, uint32_t turn)
{
	static const gw_dtype types[][4] = {
		{0}, {GW_FLOAT64, GW_FLOAT32, 0, GW_FLOAT64}, {GW_FLOAT16, GW_BFLOAT16, 0, GW_FLOAT16}};
	make_plan(client, plan, false, false);
	for (int f = 0; f < 4; f++)
		plan->fetches[f].convert = types[turn][f];
}

static uint64_t digest_of(struct gw_client *client, uint32_t turn)
{
	int64_t seeds[SEEDS];
	struct plan plan;
	struct gw_minibatch *batch;
	make_seeds(seeds, turn);
	plan_of(client, &plan, turn);
	if (gw_sample(client, &plan.spec, 3, turn, seeds, SEEDS, &batch) != GW_OK)
		fail_msg("%s", gw_last_error());
	enter(); /* the caller reads */
	const uint64_t digest = gw_minibatch_digest(batch);
	leave();
	gw_minibatch_release(batch);
	return digest;
}

static const struct gw_landing_memory hook = {acquire, release, NULL};

static void over(uint32_t parts, const char *transport)
{
	struct setup setup;
	cluster_offer(transport);
	setup_begin(&setup, 71, parts, "epoll");
	const char *const *list = transport ? setup.cluster.list : NULL;
	struct gw_client_options options = {.part_config = setup.fixture.folder,
					    .threads = 1,
					    .servers = list,
					    .server_count = list ? parts : 0,
					    .tcp_driver = "epoll",
					    .transport = transport};
	struct gw_client *plain = open_client(&options);
	static const char *const orders[] = {"auto", "always"};
	static const char *const ways[] = {"reads", "auto"};
	for (uint32_t o = 0; o < 4; o++) {
		options.memory = hook;
		options.order = orders[o % 2];
		options.neighbours = ways[o / 2];
		struct gw_client *client = open_client(&options);
		for (uint32_t turn = 0; turn < 6; turn++) {
			watch_reads(client);
			const uint64_t before = acquired;
			assert_true(digest_of(client, turn % 3) == digest_of(plain, turn % 3));
			assert_true(acquired > before);
		}
		gw_client_close(client);
	}
	gw_client_close(plain);
	setup_end(&setup);
	cluster_offer(NULL);
}

static void only_the_last_step(void **state)
{
	(void)state;
	watch();
	over(1, NULL);
	over(3, NULL);
	over(1, "tcp");
	over(3, "tcp");
	over(3, "shm");
	assert_true(copied > 0 && converted > 0 && doubled > 0);
}

/* What this test can see. */
static void another_access_ends_the_program(void **state)
{
	(void)state;
	watch();
	volatile uint8_t *memory = acquire(NULL, 100);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(STDERR_FILENO);
		_exit(memory[50]);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == TOUCHED);
	enter();
	assert_int_equal(memory[50], 0);
	leave();
	release(NULL, (void *)memory, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_access_ends_the_program),
		cmocka_unit_test(only_the_last_step),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
