/* Rings of io_uring under the locked-memory limit. A ring opens even if the kernel has not freed closed rings yet. If
 * the room is missing for another reason, the error comes at once, or a moment later while other rings are being
 * closed. */
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/system/uring.h"

#define RINGS_MAX 400
#define LIMIT     (8u << 20) /* of locked memory: about 150 rings */
#define ROUNDS    10
#define ENOUGH    20 /* rings that the test needs */
#define COURSES   10
#define TRIES     600 /* each after 10 ms: longer than the kernel takes to free a closed ring */
#define NO_LIMIT  77  /* a child's status: rings do not count towards the limit, or others have all the room */

static int ring_open(struct io_uring *ring)
{
	struct io_uring_params parameters = {.flags = IORING_SETUP_CQSIZE, .cq_entries = 2048};
	return gw_uring_init(256, ring, &parameters);
}

/* The limit applies to processes without this privilege. */
static void limit_memory_to(rlim_t bytes)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	struct rlimit limit;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur > bytes)
		setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){bytes, bytes});
	if (syscall(SYS_capget, &header, data) != 0)
		_exit(1);
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	if (syscall(SYS_capset, &header, data) != 0)
		_exit(1);
}

static void limit_memory(void)
{
	limit_memory_to(LIMIT);
}

static struct io_uring all[RINGS_MAX];

static uint32_t count_rings_that_fit(struct io_uring *rings, int *error)
{
	uint32_t n = 0;
	while (rings + n < all + RINGS_MAX && (*error = ring_open(&rings[n])) == 0)
		n++;
	return n;
}

/* Opens and closes half of the rings that fit, again and again. Returns the error of a ring that did not fit. */
static int half_come_and_go(uint32_t n)
{
	uint32_t half = n / 2;
	for (int round = 0; round < ROUNDS; round++) {
		while (n)
			gw_uring_exit(&all[--n]);
		for (; n < half; n++) {
			int error = ring_open(&all[n]);
			if (error) {
				fprintf(stderr, "round %d, ring %u: %s\n", round, n, strerror(-error));
				while (n)
					gw_uring_exit(&all[--n]);
				return error;
			}
		}
	}
	while (n)
		gw_uring_exit(&all[--n]);
	return 0;
}

/* Opens so many rings, without the code under test, as the kernel frees closed ones. Returns how many it lets open;
 * closed rings of this process are free long before the last try. */
static uint32_t rings_of_kernel(uint32_t n)
{
	uint32_t opened = 0;
	for (int i = 0; i < TRIES && opened < n; i++) {
		struct io_uring_params parameters = {.flags = IORING_SETUP_CQSIZE, .cq_entries = 2048};
		if (io_uring_queue_init_params(256, &all[opened], &parameters) == 0)
			opened++;
		else
			usleep(10000);
	}
	for (uint32_t i = 0; i < opened; i++)
		io_uring_queue_exit(&all[i]);
	return opened;
}

/* Rings of other processes of the user may take the room for a while, which looks like a wait that was too short. So a
 * failure counts if the rings fit once the kernel has freed the closed ones, and the course fails every time. */
static int rings_come_and_go(void)
{
	int error = 0;
	limit_memory();
	for (int course = 0; course < COURSES; course++) {
		uint32_t n = count_rings_that_fit(all, &error);
		for (int i = 0; i < TRIES && n < ENOUGH && error == -ENOMEM; i++) { /* the kernel frees closed rings */
			usleep(10000);
			n += count_rings_that_fit(all + n, &error);
		}
		if (n == RINGS_MAX || n < ENOUGH)
			return NO_LIMIT;
		if (half_come_and_go(n) == 0)
			return 0;
		if (rings_of_kernel(n) < n)
			return NO_LIMIT; /* others have the room */
	}
	return 1;
}

/* No ring was closed before. */
static int no_room_is_reported(void)
{
	int error = 0;
	limit_memory();
	uint32_t n = count_rings_that_fit(all, &error);
	return n == RINGS_MAX ? NO_LIMIT : error == -ENOMEM ? 0 : 1;
}

/* The usual limit of containers, where one ring fits and two do not. A ring that was closed a moment ago does not
 * change that, and a request for the second one never sleeps. */
static int no_wait_helps(void)
{
	struct rusage before, after;
	if (geteuid() == 0 && setuid(61000) != 0) /* a user whose other processes lock no memory */
		return 1;
	limit_memory_to(64 << 10);
	for (int round = 0; round < ROUNDS; round++) {
		if (ring_open(&all[0]) != 0)
			return NO_LIMIT; /* other processes have the room */
		gw_uring_exit(&all[0]);
		int error = -ENOMEM;
		for (int i = 0; error == -ENOMEM && i < 1000; i++) { /* the kernel frees the first one */
			error = ring_open(&all[0]);
			usleep(error ? 1000 : 0);
		}
		if (error)
			return NO_LIMIT;
		getrusage(RUSAGE_THREAD, &before);
		error = ring_open(&all[1]);
		getrusage(RUSAGE_THREAD, &after);
		if (error == 0)
			return NO_LIMIT; /* rings do not count towards the limit */
		gw_uring_exit(&all[0]);
		if (error == -ENOMEM && after.ru_nvcsw == before.ru_nvcsw)
			return 0;
	}
	return 1;
}

static atomic_int closed; /* closed rings; -1: this kind of ring does not exist here */

/* Only this thread has the privilege: its rings do not count, and closing them makes no room. */
static void *close_rings(void *argument)
{
	(void)argument;
	struct io_uring ring;
	while (ring_open(&ring) == 0) {
		gw_uring_exit(&ring);
		atomic_fetch_add(&closed, 1);
		usleep(1000);
	}
	atomic_store(&closed, -1);
	return NULL;
}

static int no_room_is_reported_in_the_end(void)
{
	pthread_t thread;
	int error = 0;
	if (pthread_create(&thread, NULL, close_rings, NULL) != 0)
		return 1;
	while (atomic_load(&closed) == 0)
		usleep(1000);
	limit_memory();
	uint32_t n = count_rings_that_fit(all, &error);
	return n == RINGS_MAX || atomic_load(&closed) < 0 ? NO_LIMIT : error == -ENOMEM ? 0 : 1;
}

/* In a child, because privileges do not come back. */
static void in_child(int (*run)(void))
{
	int status;
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		alarm(100);
		_exit(run());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_LIMIT)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void closed_rings_make_room(void **state)
{
	(void)state;
	in_child(rings_come_and_go);
}

static void no_wait_for_rings_that_stay(void **state)
{
	(void)state;
	in_child(no_room_is_reported);
}

static void too_small_a_limit_is_reported_at_once(void **state)
{
	(void)state;
	in_child(no_wait_helps);
}

static void no_wait_for_ever(void **state)
{
	(void)state;
	in_child(no_room_is_reported_in_the_end);
}

int main(void)
{
	struct io_uring_params parameters = {0};
	struct io_uring ring;
	if (io_uring_queue_init_params(2, &ring, &parameters) != 0) {
		printf("1..0 # SKIP no io_uring here\n");
		return 0;
	}
	io_uring_queue_exit(&ring); /* bypasses gw_uring_exit, which counts closed rings */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_rings_make_room),
		cmocka_unit_test(no_wait_for_rings_that_stay),
		cmocka_unit_test(too_small_a_limit_is_reported_at_once),
		cmocka_unit_test(no_wait_for_ever),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
