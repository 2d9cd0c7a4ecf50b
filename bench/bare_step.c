/* The ceiling of a training step: a client and a server thread on a pair of sockets.
 *
 *   client: numbers ->            <- rows      server: gathers them with prefetch, a piece at a time
 *           numbers, gradients -> <- 8 bytes           updates each row as it comes, and hashes it
 *
 * Fails with the errno of the sockets.
 */
#include "bench/bare_step.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <xxhash.h>

#include "bench/bare_rows.h"
#include "bench/sockets.h"

#define PIECE_BYTES (256u << 10)
#define AHEAD       4u
#define LANES       16u

struct gw_bare_step {
	int client, server;
	uint32_t columns, batch;
	uint64_t rows;
	float *table; /* rows of columns and a sum */
	uint64_t *hashes;
	float *landing; /* the client's receive buffer: [batch][columns] */
	uint8_t *piece; /* the server's buffer */
	uint32_t *numbers;
	uint64_t next; /* number of the next step, over all runs */
	pthread_t thread;
	bool serving;
};

void gw_bare_update(float *row, float *sum, uint64_t *hash, const float *gradient, uint32_t columns)
{
	float lanes[LANES] = {0}, squares = 0;
	uint32_t at = 0;
	for (; at + LANES <= columns; at += LANES) {
		for (uint32_t lane = 0; lane < LANES; lane++)
			lanes[lane] += gradient[at + lane] * gradient[at + lane];
	}
	for (; at < columns; at++)
		lanes[0] += gradient[at] * gradient[at];
	for (uint32_t lane = 0; lane < LANES; lane++)
		squares += lanes[lane];
	*sum += squares / (float)columns;
	float rate = 0.1f / (sqrtf(*sum) + 1e-10f);
	for (uint32_t i = 0; i < columns; i++)
		row[i] -= rate * gradient[i];
	*hash = XXH3_64bits(row, columns * sizeof(float));
}

static float *bare_step_row(const struct gw_bare_step *step, uint32_t i)
{
	return step->table + (uint64_t)step->numbers[i] * (step->columns + 1);
}

static void bare_step_prefetch(const struct gw_bare_step *step, uint32_t i)
{
	if (i >= step->batch)
		return;
	const uint8_t *row = (const uint8_t *)bare_step_row(step, i);
	for (uint32_t at = 0; at < step->columns * sizeof(float) && at < 2048; at += 64)
		__builtin_prefetch(row + at);
}

static bool serve_pull(const struct gw_bare_step *step)
{
	size_t row_bytes = step->columns * sizeof(float);
	uint32_t rows = (uint32_t)(PIECE_BYTES / row_bytes);
	for (uint32_t begin = 0; begin < step->batch; begin += rows) {
		uint32_t count = step->batch - begin < rows ? step->batch - begin : rows;
		for (uint32_t i = 0; i < count; i++) {
			bare_step_prefetch(step, begin + i + AHEAD);
			memcpy(step->piece + i * row_bytes, bare_step_row(step, begin + i), row_bytes);
		}
		if (!gw_sockets_send(step->server, step->piece, count * row_bytes))
			return false;
	}
	return true;
}

static bool serve_push(const struct gw_bare_step *step)
{
	size_t row_bytes = step->columns * sizeof(float);
	uint32_t rows = (uint32_t)(PIECE_BYTES / row_bytes);
	uint64_t done = step->batch;
	for (uint32_t begin = 0; begin < step->batch; begin += rows) {
		uint32_t count = step->batch - begin < rows ? step->batch - begin : rows;
		if (!gw_sockets_receive(step->server, step->piece, count * row_bytes))
			return false;
		for (uint32_t i = 0; i < count; i++) {
			float *row = bare_step_row(step, begin + i);
			bare_step_prefetch(step, begin + i + AHEAD);
			gw_bare_update(row, row + step->columns, &step->hashes[step->numbers[begin + i]],
				       (const float *)(const void *)(step->piece + i * row_bytes), step->columns);
		}
	}
	return gw_sockets_send(step->server, &done, sizeof(done));
}

static void *bare_step_serve(void *argument)
{
	struct gw_bare_step *step = argument;
	size_t bytes = step->batch * sizeof(*step->numbers);
	gw_bare_pin(1);
	while (gw_sockets_receive(step->server, step->numbers, bytes) && serve_pull(step) &&
	       gw_sockets_receive(step->server, step->numbers, bytes) && serve_push(step))
		;
	return NULL;
}

void gw_bare_step_end(struct gw_bare_step *step)
{
	if (!step)
		return;
	if (step->client >= 0)
		close(step->client);
	if (step->serving)
		pthread_join(step->thread, NULL);
	if (step->server >= 0)
		close(step->server);
	if (step->table)
		munmap(step->table, step->rows * (step->columns + 1) * sizeof(float));
	free(step->hashes);
	free(step->landing);
	free(step->piece);
	free(step->numbers);
	free(step);
}

static int bare_step_make(struct gw_bare_step *step)
{
	size_t bytes = step->rows * (step->columns + 1) * sizeof(float);
	void *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (table == MAP_FAILED)
		return errno;
	madvise(table, bytes, MADV_HUGEPAGE);
	memset(table, 0, bytes);
	step->table = table;
	step->hashes = calloc(step->rows, sizeof(*step->hashes));
	step->landing = calloc((size_t)step->batch * step->columns, sizeof(float));
	step->piece = calloc(1, PIECE_BYTES);
	step->numbers = calloc(step->batch, sizeof(*step->numbers));
	if (!step->hashes || !step->landing || !step->piece || !step->numbers)
		return ENOMEM;
	int error = gw_sockets_connect(&step->client, &step->server);
	if (!error)
		error = pthread_create(&step->thread, NULL, bare_step_serve, step);
	step->serving = !error;
	return error;
}

int gw_bare_step_begin(uint64_t rows, uint32_t columns, uint32_t batch, struct gw_bare_step **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return ENOMEM;
	**out = (struct gw_bare_step){.client = -1, .server = -1, .columns = columns, .batch = batch, .rows = rows};
	int error = bare_step_make(*out);
	if (error) {
		gw_bare_step_end(*out);
		*out = NULL;
	}
	return error;
}

static double bare_step_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int gw_bare_step_run(struct gw_bare_step *step, const uint32_t *numbers, uint32_t steps, const float *gradients,
		     double seconds, double *steps_per_second)
{
	size_t ids = step->batch * sizeof(*numbers), rows = (size_t)step->batch * step->columns * sizeof(float);
	double begun = bare_step_now(), elapsed;
	uint64_t done = 0, acknowledged;
	while ((elapsed = bare_step_now() - begun) < seconds) {
		const uint32_t *these = numbers + step->next++ % steps * step->batch;
		if (!gw_sockets_send(step->client, these, ids) ||
		    !gw_sockets_receive(step->client, step->landing, rows) ||
		    !gw_sockets_send(step->client, these, ids) || !gw_sockets_send(step->client, gradients, rows) ||
		    !gw_sockets_receive(step->client, &acknowledged, sizeof(acknowledged)))
			return errno ? errno : EPIPE;
		done++;
	}
	*steps_per_second = (double)done / elapsed;
	return 0;
}
