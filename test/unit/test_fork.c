/* Guards: a fork waits for the threads that hold their locks, in an order without deadlocks. The child has free locks
 * and its own statics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/system/fork.h"
#include "test/support/fork_midst.h"

#define FORKS 50

static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER, second_lock = PTHREAD_MUTEX_INITIALIZER;
static int pairs[2]; /* equal whenever first_lock is free */
static unsigned first_children, second_children;

static void first_in_child(void)
{
	first_children++;
}

static void second_in_child(void)
{
	second_children++;
}

static struct gw_fork_guard first = {.lock = &first_lock, .in_child = first_in_child, .order = 1},
			    second = {.lock = &second_lock, .in_child = second_in_child, .order = 2},
			    without_lock = {.in_child = NULL};

static void *halve(void *argument)
{
	pthread_mutex_lock(&first_lock);
	pairs[0]++;
	gw_midst_stand(argument);
	pairs[1]++;
	pthread_mutex_unlock(&first_lock);
	return NULL;
}

static void a_fork_waits_for_a_lock(void **state)
{
	(void)state;
	struct gw_midst midst = {0};
	pthread_t thread;
	gw_fork_guard(&without_lock);
	gw_fork_guard(&second);
	gw_fork_guard(&first);
	gw_fork_guard(&first); /* repeated registrations are allowed */
	assert_int_equal(pthread_create(&thread, NULL, halve, &midst), 0);
	pid_t child = gw_midst_fork(&midst);
	if (child == 0) {
		pthread_mutex_lock(&first_lock);
		pthread_mutex_lock(&second_lock);
		bool well = pairs[0] == 1 && pairs[1] == 1 && first_children == 1 && second_children == 1;
		gw_midst_exit(well);
	}
	pthread_join(thread, NULL);
	assert_true(gw_midst_child_well(child));
	assert_int_equal(first_children, 0); /* the parent's statics are unchanged */
	pthread_mutex_lock(&first_lock);
	pthread_mutex_unlock(&first_lock);
}

static void *nest(void *argument)
{
	const atomic_bool *stop = argument;
	while (!atomic_load(stop)) {
		pthread_mutex_lock(&first_lock);
		pthread_mutex_lock(&second_lock);
		pthread_mutex_unlock(&second_lock);
		pthread_mutex_unlock(&first_lock);
	}
	return NULL;
}

/* Registered in the reverse order, they are still locked in their own order. */
static void locks_are_taken_in_order(void **state)
{
	(void)state;
	atomic_bool stop = false;
	pthread_t thread;
	gw_fork_guard(&second);
	gw_fork_guard(&first);
	assert_int_equal(pthread_create(&thread, NULL, nest, &stop), 0);
	for (int i = 0; i < FORKS; i++) {
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0)
			gw_midst_exit(true);
		assert_true(gw_midst_child_well(child));
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}

static void children_fork(void **state)
{
	(void)state;
	gw_fork_guard(&first);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		pid_t grandchild = fork();
		if (grandchild == 0)
			gw_midst_exit(first_children == 2);
		gw_midst_exit(first_children == 1 && gw_midst_child_well(grandchild));
	}
	assert_true(gw_midst_child_well(child));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fork_waits_for_a_lock),
		cmocka_unit_test(locks_are_taken_in_order),
		cmocka_unit_test(children_fork),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
