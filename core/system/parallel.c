/* A parallel loop: the threads of one call share a counter, which assigns chunks in ascending order.
 *
 *   caller starts threads -> each takes chunks until none is left or one failed -> caller joins -> first failure's text
 *
 * Chunks are handed out in order, and a chunk that was begun is always finished. So every chunk below a failed one has
 * run. The loop returns the failure of the lowest chunk, which is the same for any number of threads.
 */
#include "core/system/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "core/system/thread.h"

#define THREADS_MAX       256u
#define CHUNKS_PER_THREAD 8u /* if the caller sets no grain */

struct parallel_loop {
	gw_status (*body)(void *context, uint64_t begin, uint64_t end, unsigned thread);
	void *context;
	uint64_t n, grain, chunks;
	_Alignas(64) atomic_uint_fast64_t next;
	atomic_bool failed;
	pthread_mutex_t lock; /* over the members below; taken on failure only */
	gw_status status;
	uint64_t failed_chunk;
	char text[GW_ERROR_TEXT_MAX];
};

struct parallel_worker {
	struct parallel_loop *loop;
	unsigned thread;
	pthread_t id;
};

static void parallel_note_failure(struct parallel_loop *loop, uint64_t chunk, gw_status status)
{
	pthread_mutex_lock(&loop->lock);
	if (loop->status == GW_OK || chunk < loop->failed_chunk) {
		loop->status = status;
		loop->failed_chunk = chunk;
		snprintf(loop->text, sizeof(loop->text), "%s", gw_last_error());
	}
	pthread_mutex_unlock(&loop->lock);
	atomic_store(&loop->failed, true);
}

static void take_chunks(struct parallel_loop *loop, unsigned thread)
{
	while (!atomic_load_explicit(&loop->failed, memory_order_relaxed)) {
		uint64_t chunk = atomic_fetch_add_explicit(&loop->next, 1, memory_order_relaxed);
		if (chunk >= loop->chunks)
			return;
		uint64_t begin = chunk * loop->grain;
		uint64_t end = loop->n - begin < loop->grain ? loop->n : begin + loop->grain;
		gw_status status = loop->body(loop->context, begin, end, thread);
		if (status != GW_OK)
			parallel_note_failure(loop, chunk, status);
	}
}

static void *worker_main(void *argument)
{
	struct parallel_worker *worker = argument;
	take_chunks(worker->loop, worker->thread);
	return NULL;
}

/* Returns how many it started. */
static unsigned start_workers(struct parallel_loop *loop, struct parallel_worker *workers, unsigned count)
{
	unsigned started = 0;
	while (started < count) {
		workers[started] = (struct parallel_worker){.loop = loop, .thread = started + 1};
		if (gw_thread_start(&workers[started].id, worker_main, &workers[started]) != 0)
			break;
		started++;
	}
	return started;
}

gw_status gw_parallel_for(unsigned threads, uint64_t n, uint64_t grain,
			  gw_status (*body)(void *context, uint64_t begin, uint64_t end, unsigned thread),
			  void *context)
{
	if (n == 0)
		return GW_OK;
	if (threads == 0)
		threads = gw_processors();
	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	if (grain == 0)
		grain = n / ((uint64_t)threads * CHUNKS_PER_THREAD) + 1;
	struct parallel_loop loop = {
		.body = body, .context = context, .n = n, .grain = grain, .chunks = (n - 1) / grain + 1};
	if (threads > loop.chunks)
		threads = (unsigned)loop.chunks;
	pthread_mutex_init(&loop.lock, NULL);

	struct parallel_worker workers[THREADS_MAX];
	unsigned started = start_workers(&loop, workers, threads - 1);
	take_chunks(&loop, 0);
	for (unsigned i = 0; i < started; i++)
		pthread_join(workers[i].id, NULL);
	pthread_mutex_destroy(&loop.lock);
	return loop.status ? gw_fail_text(loop.status, loop.text) : GW_OK;
}
