/* Verifier threads take chunks from a bounded queue while the loading thread keeps the disk busy.
 *
 *   add -> queue -> a thread compares the digest -> the first failure is kept, and ends the load
 *
 * If the queue is full, or no thread runs, the caller verifies: slower, but it never blocks.
 */
#include <pthread.h>
#include <stdio.h>

#include "core/files/load_job.h"
#include "core/memory/alloc.h"
#include "core/system/thread.h"

#define QUEUE_CHUNKS 1024u /* 4 GiB waiting to be verified; a power of two */

struct chunk {
	size_t item;
	uint64_t number;
};

struct gw_verifier {
	const struct gw_load_job *job;
	pthread_mutex_t lock; /* over the members below; taken once per 4 MiB */
	pthread_cond_t more;
	struct chunk queue[QUEUE_CHUNKS];
	uint64_t head, tail; /* numbers of chunks added and taken */
	bool ended;          /* no chunk follows */
	gw_status status;
	char text[GW_ERROR_TEXT_MAX];
	atomic_bool failed; /* the loading thread reads it without the lock */
	unsigned threads;
	pthread_t ids[];
};

static void do_verify(struct gw_verifier *verifier, struct chunk chunk)
{
	gw_status status = gw_load_verify(verifier->job, chunk.item, chunk.number);
	if (status == GW_OK)
		return;
	pthread_mutex_lock(&verifier->lock);
	if (!verifier->status) {
		verifier->status = status;
		snprintf(verifier->text, sizeof(verifier->text), "%s", gw_last_error());
	}
	pthread_mutex_unlock(&verifier->lock);
	atomic_store(&verifier->failed, true);
}

/* The caller holds the lock. */
static bool verify_take(struct gw_verifier *verifier, struct chunk *chunk)
{
	if (verifier->head == verifier->tail || verifier->status)
		return false;
	*chunk = verifier->queue[verifier->tail++ % QUEUE_CHUNKS];
	return true;
}

static void *verifier_main(void *argument)
{
	struct gw_verifier *verifier = argument;
	struct chunk chunk;
	pthread_mutex_lock(&verifier->lock);
	for (;;) {
		bool taken = verify_take(verifier, &chunk);
		if (!taken && verifier->ended)
			break;
		if (!taken) {
			pthread_cond_wait(&verifier->more, &verifier->lock);
			continue;
		}
		pthread_mutex_unlock(&verifier->lock);
		do_verify(verifier, chunk);
		pthread_mutex_lock(&verifier->lock);
	}
	pthread_mutex_unlock(&verifier->lock);
	return NULL;
}

gw_status gw_verifier_create(const struct gw_load_job *job, struct gw_verifier **out)
{
	*out = NULL;
	unsigned wanted = job->options.verify_threads;
	struct gw_verifier *verifier = gw_calloc(1, sizeof(*verifier) + wanted * sizeof(pthread_t));
	if (!verifier)
		return GW_NO_MEMORY;
	verifier->job = job;
	pthread_mutex_init(&verifier->lock, NULL);
	pthread_cond_init(&verifier->more, NULL);
	while (verifier->threads < wanted &&
	       gw_thread_start(&verifier->ids[verifier->threads], verifier_main, verifier) == 0)
		verifier->threads++;
	*out = verifier;
	return GW_OK;
}

void gw_verifier_add(struct gw_verifier *verifier, size_t item, uint64_t number)
{
	struct chunk chunk = {.item = item, .number = number};
	if (!verifier->job->items[item].digests)
		return;
	pthread_mutex_lock(&verifier->lock);
	bool queued = verifier->threads > 0 && verifier->head - verifier->tail < QUEUE_CHUNKS;
	if (queued) {
		verifier->queue[verifier->head++ % QUEUE_CHUNKS] = chunk;
		pthread_cond_signal(&verifier->more);
	}
	pthread_mutex_unlock(&verifier->lock);
	if (!queued)
		do_verify(verifier, chunk);
}

bool gw_verifier_failed(struct gw_verifier *verifier)
{
	return atomic_load_explicit(&verifier->failed, memory_order_relaxed);
}

gw_status gw_verifier_finish(struct gw_verifier *verifier, bool abandon)
{
	if (!verifier)
		return GW_OK;
	struct chunk chunk;
	pthread_mutex_lock(&verifier->lock);
	if (abandon)
		verifier->tail = verifier->head;
	verifier->ended = true;
	pthread_cond_broadcast(&verifier->more);
	while (verify_take(verifier, &chunk)) { /* the loading thread has nothing else to do */
		pthread_mutex_unlock(&verifier->lock);
		do_verify(verifier, chunk);
		pthread_mutex_lock(&verifier->lock);
	}
	pthread_mutex_unlock(&verifier->lock);
	for (unsigned i = 0; i < verifier->threads; i++)
		pthread_join(verifier->ids[i], NULL);
	gw_status status = verifier->status ? gw_fail_text(verifier->status, verifier->text) : GW_OK;
	pthread_cond_destroy(&verifier->more);
	pthread_mutex_destroy(&verifier->lock);
	gw_free(verifier);
	return status;
}
