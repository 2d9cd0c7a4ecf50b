/* Trainers that are stopped (SIGSTOP) while their servers live.
 *
 *   this process: stops ─▶ waits ─▶ continues            trainers: a thread for each kind of operation, counted
 *                 └──────── what all share ─────────────────────┘   servers: a process of their own
 *
 * All processes are forked before any has threads. Over the made-up RDMA device a trainer has its servers in itself.
 */
#ifndef GW_TEST_PAUSED_H
#define GW_TEST_PAUSED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

#include <cmocka.h>

#include "core/system/clock.h"
#include "test/support/client_setup.h"

#define PARTS     2
#define ENOUGH_NS (200 * GW_NS_PER_SECOND) /* for what ends by itself */
#define ROWS      3000
#define COLUMNS   64
#define SEEDS     16
#define MARK      0xa5 /* in memory that was taken back */

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

extern struct shared {
	struct told told[TRAINERS_MAX];
	struct servers {
		char text[PARTS][GW_ADDRESS_MAX];
		atomic_bool serve, end; /* orders */
		_Atomic uint32_t tensors;
	} servers[2];
	atomic_bool finish, again;
	int64_t timeout_ms;
} * paused_shared;

extern struct gw_fixture paused_fixture;

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

/* A group of tests, each of which begins with nothing shared and ends with no child. */
#define PAUSED_TEST(function) cmocka_unit_test_setup_teardown(function, paused_forget, paused_kill_children)
int paused_forget(void **state);
int paused_kill_children(void **state);
int paused_run(const struct CMUnitTest *tests, size_t count);

void paused_wait_ns(uint64_t ns);
/* For longer than any deadline, and than a second. */
void paused_for_long(void);
bool paused_wait_for(const atomic_bool *word);
void paused_wait_for_step(const struct told *told, uint32_t step);

/* A child that does not outlive its test, whatever happens. */
pid_t paused_start(int (*run)(uint32_t number), uint32_t number);
int paused_end_of(pid_t child);
void paused_stop(pid_t child);
void paused_go_on(pid_t child);
void paused_expect_well(pid_t child, uint32_t number);

/* Servers as TCP and mapped memory reach them, ready; the second ones soon end tensors that no client holds. */
pid_t paused_begin_servers(uint32_t number);
void paused_end_servers(pid_t servers, uint32_t number);

/* Of a trainer. The first failure is told; false, for the caller to end. */
bool paused_well(struct trainer *self, bool good, const char *what);
struct gw_client_options paused_options_of(struct trainer *self, const char *transport, const char *driver);
gw_status paused_make_sums(struct trainer *self);
/* Memory that was taken back is as it was left. */
bool paused_is_marked(const uint8_t *memory, uint64_t bytes);

#endif
