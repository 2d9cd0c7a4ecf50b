/* Training together, a part of graphwire bench update: clients that pull and push the same rows at once.
 *
 *   mix       four clients, 3,000 of 100,000 rows a step, by Zipf's law, against the same steps with separate rows for
 *             each client. Counts the rows that are read while they are written, so that a request has to fetch them
 *   hot row   three clients that push to one row without a pause, and a client that reads it: every read must complete
 *             in time. The ceiling is the same reads without pushes
 *
 * All gradients are ones. Whatever updates a row has had, all its elements therefore have the same value; a torn row
 * has two values. A client without servers has its own table, which its four threads share.
 */
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bare_rows.h"
#include "bench/place.h"
#include "bench/update_private.h"
#include "client/engine/remote_call.h"
#include "client/state/client.h"
#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "protocol/ops.h"
#include "tensors/table.h"

#define MIX_CLIENTS 4u
#define MIX_LISTS   16u     /* number of lists of rows; the steps use them one after another, again and again */
#define MIX_ROWS    100000u /* rows of the table, at most */
#define MIX_LOOK    16u     /* one row in 16 is checked */

struct mix_client {
	struct gw_update *arguments;
	struct mix *mix;
	struct gw_client *client;
	const struct gw_tensor *tensor;
	bool owned; /* this struct opened the client, and closes it */
	pthread_t thread;
	int64_t *shared, *own; /* [MIX_LISTS][step]: drawn by Zipf's law, from all rows; from this client's quarter */
	const int64_t *lists;
	float *landing;
	uint64_t done;
	gw_status status;
	char error[GW_ERROR_TEXT_MAX];
};

struct mix {
	struct gw_update *arguments;
	struct mix_client clients[MIX_CLIENTS];
	const char *transport; /* NULL: without servers, in memory */
	uint64_t rows, step;
	float *ones; /* [step][columns] */
	uint64_t read, torn;
	atomic_bool stop;
	double *microseconds; /* [MIX_TIMES]: times of reads of the hot row */
	uint64_t times;
	bool takes_times;
};

#define MIX_TIMES 200000u

/* --- The servers' counts. --- */

static void mix_add_torn(void *context, const struct gw_shard *shard, uint64_t bytes, bool ready)
{
	(void)bytes;
	(void)ready;
	*(uint64_t *)context += atomic_load(&shard->counts.torn);
}

/* *torn: the rows that requests fetched because reads found them torn, of all servers so far. */
static gw_status mix_count_torn(const struct mix *mix, uint64_t *torn)
{
	struct gw_client *client = mix->clients[0].client;
	struct gw_vec reply = {0};
	size_t bytes = 0;
	gw_status status = GW_OK;
	*torn = 0;
	for (uint32_t p = 0; p < client->server_count && status == GW_OK; p++) {
		if (!mix->transport) {
			gw_tensor_table_each(client->servers[p].table, mix_add_torn, torn);
			continue;
		}
		status = gw_remote_call(client, p, GW_OP_STATS, NULL, 0, &reply, &bytes);
		json_t *root = status == GW_OK ? json_loadb(reply.data, bytes, 0, NULL) : NULL;
		json_t *tensor;
		size_t i;
		json_array_foreach(json_object_get(root, "tensors"), i, tensor) *torn +=
			(uint64_t)json_integer_value(json_object_get(tensor, "torn"));
		json_decref(root);
	}
	gw_vec_free(&reply);
	return status;
}

/* --- A step. --- */

static gw_status mix_check_row(const struct mix_client *c, uint64_t i)
{
	uint64_t bytes = c->arguments->row_bytes;
	const uint8_t *row = (const uint8_t *)c->landing + i * bytes;
	if (memcmp(row, row + sizeof(float), bytes - sizeof(float)) == 0)
		return GW_OK;
	return gw_fail(GW_DIGEST, "a row is torn");
}

static gw_status mix_step(struct mix_client *c)
{
	const struct mix *mix = c->mix;
	const int64_t *ids = c->lists + c->done % MIX_LISTS * mix->step;
	gw_status status = gw_gather(c->client, c->tensor, ids, mix->step, c->landing);
	for (uint64_t i = c->done % MIX_LOOK; i < mix->step && status == GW_OK; i += MIX_LOOK)
		status = mix_check_row(c, i);
	if (status == GW_OK)
		status = gw_push(c->client, c->tensor, ids, mix->step, mix->ones, &gw_update_optimizer);
	c->done++;
	return status;
}

static void *mix_train(void *context)
{
	struct mix_client *c = context;
	do
		c->status = mix_step(c);
	while (!atomic_load(&c->mix->stop) && c->status == GW_OK);
	if (c->status != GW_OK)
		snprintf(c->error, sizeof(c->error), "%s", gw_last_error());
	return NULL;
}

/* Pushes only to the first row. */
static void *mix_push_hot(void *context)
{
	static const int64_t hot = 0;
	struct mix_client *c = context;
	c->status = GW_OK;
	for (; !atomic_load(&c->mix->stop) && c->status == GW_OK; c->done++)
		c->status = gw_push(c->client, c->tensor, &hot, 1, c->mix->ones, &gw_update_optimizer);
	if (c->status != GW_OK)
		snprintf(c->error, sizeof(c->error), "%s", gw_last_error());
	return NULL;
}

/* The calls of the ceiling's other threads, which do not touch the first row. */
static void *mix_rest(void *context)
{
	struct mix_client *c = context;
	c->status = GW_OK;
	return NULL;
}

/* Reads the first row at least once, and measures the time of each read. */
static void *mix_read_hot(void *context)
{
	static const int64_t hot = 0;
	struct mix_client *c = context;
	struct mix *mix = c->mix;
	c->status = GW_OK;
	do {
		uint64_t begun = gw_now_ns();
		c->status = gw_gather(c->client, c->tensor, &hot, 1, c->landing);
		if (c->status == GW_OK)
			c->status = mix_check_row(c, 0);
		if (mix->takes_times)
			mix->microseconds[mix->times++ % MIX_TIMES] = (double)(gw_now_ns() - begun) * 1e-3;
		c->done++;
	} while (!atomic_load(&mix->stop) && c->status == GW_OK);
	if (c->status != GW_OK)
		snprintf(c->error, sizeof(c->error), "%s", gw_last_error());
	return NULL;
}

/* Runs all clients at once until the time is over. *done: the number of their calls. */
static gw_status mix_run(struct mix *mix, void *(*first)(void *), void *(*others)(void *), uint64_t *done)
{
	uint32_t begun = 0;
	gw_status status = GW_OK;
	*done = 0;
	atomic_store(&mix->stop, false);
	for (; begun < MIX_CLIENTS && status == GW_OK; begun++) {
		struct mix_client *c = &mix->clients[begun];
		c->done = 0;
		int error = pthread_create(&c->thread, NULL, begun ? others : first, c);
		if (error) {
			status = gw_fail_errno(GW_LIMIT, error, "cannot start a client's thread");
			break;
		}
		gw_bench_unpin(c->thread);
	}
	struct timespec pause = {.tv_sec = (time_t)mix->arguments->seconds};
	pause.tv_nsec = (long)((mix->arguments->seconds - (double)pause.tv_sec) * 1e9);
	if (status == GW_OK)
		nanosleep(&pause, NULL);
	atomic_store(&mix->stop, true);
	for (uint32_t i = 0; i < begun; i++) {
		pthread_join(mix->clients[i].thread, NULL);
		*done += mix->clients[i].done;
		if (mix->clients[i].status != GW_OK && status == GW_OK)
			status = gw_fail_text(mix->clients[i].status, mix->clients[i].error);
	}
	return status;
}

static gw_status mix_measure(struct mix *mix, bool shared, double *figure)
{
	uint64_t done, begun = gw_now_ns();
	for (uint32_t i = 0; i < MIX_CLIENTS; i++)
		mix->clients[i].lists = shared ? mix->clients[i].shared : mix->clients[i].own;
	gw_status status = mix_run(mix, mix_train, mix_train, &done);
	*figure = (double)done * 1e9 / (double)(gw_now_ns() - begun);
	if (shared)
		mix->read += done * mix->step;
	return status;
}

static gw_status mix_measure_shared(void *context, double *figure)
{
	struct mix *mix = context;
	uint64_t before, after;
	gw_status status = mix_count_torn(mix, &before);
	if (status == GW_OK)
		status = mix_measure(mix, true, figure);
	if (status == GW_OK)
		status = mix_count_torn(mix, &after);
	if (status == GW_OK)
		mix->torn += after - before;
	return status;
}

static gw_status mix_measure_own(void *context, double *figure)
{
	return mix_measure(context, false, figure);
}

/* --- The cases. --- */

static gw_status mix_together(struct mix *mix)
{
	static struct gw_bench_series ceilings, values;
	ceilings.count = values.count = 0;
	gw_status status = gw_bench_alternate(&mix->arguments->bench, mix_measure_own, mix_measure_shared, mix,
					      &ceilings, &values);
	if (status != GW_OK)
		return status;
	double share = (double)mix->torn / (double)(mix->read ? mix->read : 1);
	char title[96], note[224];
	snprintf(title, sizeof(title), "%u clients, %llu of %llu rows, %s", MIX_CLIENTS, (unsigned long long)mix->step,
		 (unsigned long long)mix->rows, mix->transport ? mix->transport : "memory");
	snprintf(note, sizeof(note),
		 "%llu of %llu rows were torn at every try and requested: %.2g; the ceiling: "
		 "each client has separate rows",
		 (unsigned long long)mix->torn, (unsigned long long)mix->read, share);
	const struct gw_bench_result result = {
		.title = title,
		.unit = "steps/s",
		.values = &values,
		.ceilings = &ceilings,
		.verified = true,
		.note = note,
		.fields = {{"rows_read", (double)mix->read, NULL}, {"torn_share", share, NULL}}};
	gw_bench_report(&mix->arguments->bench, &result);
	return GW_OK;
}

/* *figure: thousands of reads of the hot row a second, while the other clients run `others`. Records the time of each
 * read if takes_times. */
static gw_status mix_read_concurrently(struct mix *mix, void *(*others)(void *), bool takes_times, double *figure)
{
	uint64_t done, begun = gw_now_ns();
	mix->takes_times = takes_times;
	gw_status status = mix_run(mix, mix_read_hot, others, &done);
	*figure = (double)mix->clients[0].done * 1e6 / (double)(gw_now_ns() - begun);
	return status;
}

static gw_status mix_measure_hot(void *context, double *figure)
{
	return mix_read_concurrently(context, mix_push_hot, true, figure);
}

static gw_status mix_measure_quiet(void *context, double *figure)
{
	return mix_read_concurrently(context, mix_rest, false, figure);
}

static gw_status mix_hot_row(struct mix *mix)
{
	static struct gw_bench_series ceilings, values;
	uint64_t before, after;
	ceilings.count = values.count = 0;
	mix->times = 0;
	gw_status status = mix_count_torn(mix, &before);
	if (status == GW_OK)
		status = gw_bench_alternate(&mix->arguments->bench, mix_measure_quiet, mix_measure_hot, mix, &ceilings,
					    &values);
	if (status == GW_OK)
		status = mix_count_torn(mix, &after);
	if (status != GW_OK)
		return status;
	uint64_t count = mix->times < MIX_TIMES ? mix->times : MIX_TIMES;
	double median = gw_bench_quantile(mix->microseconds, count, 0.5), worst = mix->microseconds[count - 1];
	char title[96], note[224];
	snprintf(title, sizeof(title), "one row that %u clients push to, %s", MIX_CLIENTS - 1,
		 mix->transport ? mix->transport : "memory");
	snprintf(note, sizeof(note),
		 "all of %llu reads in time: median %.3g us, at most %.3g us; %llu of the rows were requested; "
		 "the ceiling: no pushes",
		 (unsigned long long)mix->times, median, worst, (unsigned long long)(after - before));
	const struct gw_bench_result result = {.title = title,
					       .unit = "k reads/s",
					       .values = &values,
					       .ceilings = &ceilings,
					       .verified = true,
					       .note = note,
					       .fields = {{"p50_us", median, NULL}, {"max_us", worst, NULL}}};
	gw_bench_report(&mix->arguments->bench, &result);
	return GW_OK;
}

/* --- Creating and freeing. --- */

/* [rows]: the sum of the weights of the rows up to each row. NULL: out of memory. */
static double *mix_make_law(uint64_t rows)
{
	double *sums = gw_malloc(rows * sizeof(*sums)), sum = 0;
	for (uint64_t i = 0; sums && i < rows; i++)
		sums[i] = sum += 1 / (double)(i + 1);
	return sums;
}

static uint64_t mix_draw(const double *law, uint64_t rows, uint64_t number)
{
	double wanted = law[rows - 1] * (double)(gw_bare_mix(number) >> 11) * 0x1p-53;
	uint64_t low = 0, high = rows - 1;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (law[middle] < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Makes lists without duplicates, as a trainer does: the first `step` different rows that the law draws, from all rows
 * or from the client's quarter. */
static gw_status mix_make_lists(struct mix *mix, uint32_t number, bool shared, const double *law, int64_t *lists)
{
	uint64_t next = (uint64_t)number << 40 | (uint64_t)shared << 39, quarter = mix->rows / MIX_CLIENTS;
	uint8_t *taken = gw_malloc(mix->rows);
	if (!taken)
		return GW_NO_MEMORY;
	for (uint32_t list = 0; list < MIX_LISTS; list++) {
		memset(taken, 0, mix->rows);
		for (uint64_t i = 0; i < mix->step;) {
			uint64_t row = shared ? mix_draw(law, mix->rows, next++)
					      : mix_draw(law, quarter, next++) * MIX_CLIENTS + number;
			if (!taken[row])
				lists[list * mix->step + i++] = (int64_t)row;
			taken[row] = 1;
		}
	}
	gw_free(taken);
	return GW_OK;
}

static gw_status mix_open_client(struct mix *mix, uint32_t number)
{
	struct gw_update *a = mix->arguments;
	struct mix_client *c = &mix->clients[number];
	struct gw_client_options options = a->clients.client;
	options.servers = a->own.list;
	options.server_count = a->own.count;
	options.transport = mix->transport;
	c->client = a->alone;
	c->owned = mix->transport != NULL;
	if (c->owned)
		c->client = NULL;
	return c->owned ? gw_client_open(&options, &c->client) : GW_OK;
}

static gw_status mix_make_client(struct mix *mix, uint32_t number, const double *law)
{
	struct gw_update *a = mix->arguments;
	struct mix_client *c = &mix->clients[number];
	const struct gw_tensor_spec spec = {.name = "mix",
					    .dtype = GW_FLOAT32,
					    .placement = GW_PLACE_EVEN,
					    .ndim = 2,
					    .shape = {mix->rows, gw_update_columns(a)}};
	c->arguments = a;
	c->mix = mix;
	c->shared = gw_malloc(MIX_LISTS * mix->step * sizeof(*c->shared));
	c->own = gw_malloc(MIX_LISTS * mix->step * sizeof(*c->own));
	c->landing = gw_malloc(mix->step * a->row_bytes);
	gw_status status = c->shared && c->own && c->landing ? mix_open_client(mix, number) : GW_NO_MEMORY;
	if (status == GW_OK)
		status = gw_tensor_create(c->client, &spec, &c->tensor);
	if (status == GW_OK)
		status = mix_make_lists(mix, number, true, law, c->shared);
	return status == GW_OK ? mix_make_lists(mix, number, false, law, c->own) : status;
}

static gw_status mix_make(struct mix *mix)
{
	uint64_t values = mix->step * gw_update_columns(mix->arguments);
	double *law = mix_make_law(mix->rows);
	mix->ones = gw_malloc(values * sizeof(float));
	mix->microseconds = gw_malloc(MIX_TIMES * sizeof(*mix->microseconds));
	gw_status status = law && mix->ones && mix->microseconds ? GW_OK : GW_NO_MEMORY;
	for (uint64_t i = 0; i < values && status == GW_OK; i++)
		mix->ones[i] = 1;
	for (uint32_t i = 0; i < MIX_CLIENTS && status == GW_OK; i++)
		status = mix_make_client(mix, i, law);
	gw_free(law);
	return status;
}

static void mix_free(struct mix *mix)
{
	struct gw_error_kept kept;
	gw_error_keep(&kept);
	if (mix->clients[0].tensor)
		(void)gw_tensor_delete(mix->clients[0].client, "mix", GW_OF_JOB);
	for (uint32_t i = 0; i < MIX_CLIENTS; i++) {
		struct mix_client *c = &mix->clients[i];
		if (c->owned)
			gw_client_close(c->client);
		gw_free(c->shared);
		gw_free(c->own);
		gw_free(c->landing);
	}
	gw_free(mix->ones);
	gw_free(mix->microseconds);
	gw_error_restore(&kept);
}

gw_status gw_update_mix(struct gw_update *a)
{
	static const char *const transports[] = {NULL, "shm", "tcp"};
	gw_status status = GW_OK;
	for (size_t w = 0; w < sizeof(transports) / sizeof(transports[0]) && status == GW_OK; w++) {
		struct mix mix = {.arguments = a, .transport = transports[w]};
		mix.rows = a->rows < MIX_ROWS ? a->rows : MIX_ROWS;
		/* Each client's quarter must have enough different rows. */
		mix.step = a->step_rows < mix.rows / 2 / MIX_CLIENTS ? a->step_rows : mix.rows / 2 / MIX_CLIENTS;
		status = mix_make(&mix);
		if (status == GW_OK)
			status = mix_together(&mix);
		if (status == GW_OK)
			status = mix_hot_row(&mix);
		mix_free(&mix);
	}
	return status;
}
