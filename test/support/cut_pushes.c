/* Pushes over a link that is cut: see cut_pushes.h. */
#include "test/support/cut_pushes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/numbers/rng.h"

#define AT_ONCE 8  /* pushes between two cuts */
#define HOT     10 /* rows that are pushed to */

static void cut_pushes_must(gw_status status)
{
	if (status != GW_OK)
		fail_msg("%s", gw_last_error());
}

void cut_pushes_begin(struct cut_pushes *pushes)
{
	*pushes = (struct cut_pushes){0};
	setup_begin_open(&pushes->setup, 227, 1, SETUP_SCALE);
	relay_begin(&pushes->relay, &pushes->setup.cluster.addresses[0]);
	const char *list[] = {pushes->relay.text};
	struct gw_client_options options = {
		.servers = list, .server_count = 1, .threads = 1, .insecure = true, .transport = "tcp"};
	struct gw_tensor_spec spec = {.name = "sums",
				      .dtype = GW_FLOAT32,
				      .placement = GW_PLACE_STRIPED,
				      .ndim = 2,
				      .shape = {CUT_PUSHES_ROWS, CUT_PUSHES_COLUMNS}};
	pushes->client = open_client(&options);
	cut_pushes_must(gw_tensor_create(pushes->client, &spec, &pushes->tensor));
}

void cut_pushes_read(struct cut_pushes *pushes, float *rows)
{
	int64_t ids[CUT_PUSHES_ROWS];
	for (int i = 0; i < CUT_PUSHES_ROWS; i++)
		ids[i] = i;
	cut_pushes_must(gw_gather(pushes->client, pushes->tensor, ids, CUT_PUSHES_ROWS, rows));
}

/* Until a connection was cut, or all are applied before that, which takes the last ticket. */
static bool was_cut(struct cut_pushes *pushes, uint64_t *accepted, struct gw_ticket **last)
{
	gw_status status = GW_AGAIN;
	while (status == GW_AGAIN && atomic_load(&pushes->relay.accepted) == *accepted)
		status = gw_wait(*last, 2);
	*accepted = atomic_load(&pushes->relay.accepted);
	if (status == GW_AGAIN)
		return true;
	cut_pushes_must(status);
	*last = NULL;
	return false;
}

uint32_t cut_pushes_run(struct cut_pushes *pushes, uint32_t attempts, uint64_t seed)
{
	static const float ones[CUT_PUSHES_COLUMNS] = {1, 1, 1, 1, 1};
	const struct gw_optimizer add = {.kind = GW_SGD, .rate = -1};
	struct gw_ticket **tickets = calloc((size_t)attempts * AT_ONCE, sizeof(*tickets));
	int64_t *ids = calloc((size_t)attempts * AT_ONCE, sizeof(*ids));
	float rows[CUT_PUSHES_ROWS * CUT_PUSHES_COLUMNS];
	uint64_t accepted = atomic_load(&pushes->relay.accepted);
	uint32_t cuts = 0;
	assert_non_null(tickets);
	assert_non_null(ids);
	for (uint32_t cut = 0; cut < attempts; cut++) {
		relay_cut_after(&pushes->relay, (int64_t)(gw_mix64(seed + cut) % 1200));
		for (uint32_t i = cut * AT_ONCE; i < (cut + 1) * AT_ONCE; i++) {
			ids[i] = (int64_t)(gw_mix64(seed ^ i) % HOT);
			pushes->expected[ids[i]]++;
			cut_pushes_must(
				gw_push_start(pushes->client, pushes->tensor, &ids[i], 1, ones, &add, &tickets[i]));
		}
		cuts += was_cut(pushes, &accepted, &tickets[(cut + 1) * AT_ONCE - 1]);
	}
	relay_pass(&pushes->relay);
	cut_pushes_must(gw_flush(pushes->client));
	for (uint32_t i = 0; i < attempts * AT_ONCE; i++)
		cut_pushes_must(tickets[i] ? gw_wait(tickets[i], 0) : GW_OK);
	cut_pushes_read(pushes, rows);
	for (int i = 0; i < CUT_PUSHES_ROWS; i++)
		assert_true(rows[i * CUT_PUSHES_COLUMNS] == pushes->expected[i]);
	free(tickets);
	free(ids);
	return cuts;
}

void cut_pushes_end(struct cut_pushes *pushes)
{
	gw_client_close(pushes->client);
	relay_end(&pushes->relay);
	setup_end(&pushes->setup);
}
