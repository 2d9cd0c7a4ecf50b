/* Servers that are replaced (server/handover.h) while threads train and read rows: every push counts once, and no read
 * fails. test/python/test_take_over.py has processes instead of threads, and successors that fail. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/striped.h"

#define PARTS  2
#define TURNS  3 /* replacements of each server */
#define PUSHES 4 /* of a thread, before the next replacement */

struct pusher {
	struct gw_client *client;
	const struct gw_tensor *tensor;
	const atomic_bool *stop;
	pthread_t thread;
	_Atomic uint32_t pushes;
	gw_status status;
	char text[512];
};

/* Each push adds 1 to every element; then the thread reads its own push. */
static gw_status push_and_read(struct pusher *pusher)
{
	static const struct gw_optimizer add = {.kind = GW_SGD, .rate = 1};
	int64_t ids[STRIPED_ROWS];
	float rows[STRIPED_ROWS * STRIPED_COLUMNS];
	for (int i = 0; i < STRIPED_ROWS; i++)
		ids[i] = i;
	for (int i = 0; i < STRIPED_ROWS * STRIPED_COLUMNS; i++)
		rows[i] = -1;
	gw_status status = gw_push(pusher->client, pusher->tensor, ids, STRIPED_ROWS, rows, &add);
	if (status != GW_OK)
		return status;
	uint32_t pushes = atomic_fetch_add(&pusher->pushes, 1) + 1;
	status = gw_gather(pusher->client, pusher->tensor, ids, STRIPED_ROWS, rows);
	for (int i = 0; i < STRIPED_ROWS * STRIPED_COLUMNS && status == GW_OK; i++)
		if (rows[i] < (float)pushes)
			status = gw_fail(GW_DIGEST, "row %d has %g after %u pushes", i / STRIPED_COLUMNS,
					 (double)rows[i], pushes);
	return status;
}

static void *push_all(void *argument)
{
	struct pusher *pusher = argument;
	while (pusher->status == GW_OK && !atomic_load(pusher->stop))
		pusher->status = push_and_read(pusher);
	if (pusher->status != GW_OK)
		snprintf(pusher->text, sizeof(pusher->text), "%s", gw_last_error());
	return NULL;
}

static void replace_each(const char *offered)
{
	struct setup setup;
	struct pusher pushers[3] = {0};
	atomic_bool stop = false;
	float rows[STRIPED_ROWS * STRIPED_COLUMNS];
	uint32_t pushes = 0;
	cluster_offer(offered);
	setup_begin(&setup, 226, PARTS, NULL);
	struct gw_tensor_spec spec = striped_spec("trained");
	for (int i = 0; i < 3; i++) {
		pushers[i].client = striped_client(&setup.cluster, "replaced", 0);
		pushers[i].tensor = striped_create(pushers[i].client, &spec);
		pushers[i].stop = &stop;
		assert_int_equal(pthread_create(&pushers[i].thread, NULL, push_all, &pushers[i]), 0);
	}
	for (uint32_t turn = 0; turn < TURNS * PARTS; turn++) {
		for (int i = 0; i < 3; i++) {
			uint32_t from = atomic_load(&pushers[i].pushes);
			while (atomic_load(&pushers[i].pushes) < from + PUSHES && !pushers[i].text[0])
				striped_pause();
		}
		cluster_replace(&setup.cluster, turn % PARTS);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 3; i++) {
		pthread_join(pushers[i].thread, NULL);
		if (pushers[i].status != GW_OK)
			fail_msg("%s: %s", gw_status_text(pushers[i].status), pushers[i].text);
		pushes += atomic_load(&pushers[i].pushes);
	}
	striped_read(pushers[0].client, pushers[0].tensor, rows);
	for (int i = 0; i < STRIPED_ROWS * STRIPED_COLUMNS; i++)
		assert_true(rows[i] == (float)pushes);
	for (int i = 0; i < 3; i++)
		gw_client_close(pushers[i].client);
	cluster_offer(NULL);
	setup_end(&setup);
}

static void every_push_counts_once(void **state)
{
	(void)state;
	replace_each(NULL);
}

static void every_push_counts_once_where_rows_are_mapped(void **state)
{
	(void)state;
	if (!cluster_is_rdma())
		replace_each("shm");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_push_counts_once),
		cmocka_unit_test(every_push_counts_once_where_rows_are_mapped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
