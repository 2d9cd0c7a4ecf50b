/* Writes chunks in a background thread:
 *
 *   put: wait until the previous chunk is written -> pass the chunk -> the thread: digest, write -> done
 *
 * The thread has one chunk at a time, and the owner allocates the chunks, so memory is bounded. Fails if a file cannot
 * be written; the first failure is kept.
 */
#include "tensors/write_behind.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "core/memory/alloc.h"
#include "core/system/thread.h"

struct gw_write_behind {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct gw_write_chunk chunk;
	bool busy, stop;
	gw_status status; /* the first failure */
	char text[GW_ERROR_TEXT_MAX];
};

gw_status gw_write_all(const char *path, int fd, const void *data, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		ssize_t got = write(fd, (const uint8_t *)data + at, bytes - at);
		if (got < 0 && errno == EINTR)
			continue;
		/* Not all file systems support O_DIRECT here: continue without it. */
		int flags = got < 0 && errno == EINVAL ? fcntl(fd, F_GETFL) : 0;
		if (flags > 0 && (flags & O_DIRECT) && fcntl(fd, F_SETFL, flags & ~O_DIRECT) == 0)
			continue;
		if (got <= 0) /* nothing was written, and a retry would not write anything either */
			return gw_fail_errno(GW_IO, got < 0 ? errno : ENOSPC, "%s: cannot write", path);
		at += (size_t)got;
	}
	return GW_OK;
}

static gw_status behind_write(const struct gw_write_chunk *chunk)
{
	gw_status status = chunk->digester ? gw_digester_add(chunk->digester, chunk->data, chunk->bytes) : GW_OK;
	return status == GW_OK ? gw_write_all(chunk->path, chunk->fd, chunk->data, chunk->bytes) : status;
}

static void *behind_run(void *context)
{
	struct gw_write_behind *writer = context;
	pthread_mutex_lock(&writer->lock);
	for (;;) {
		while (!writer->busy && !writer->stop)
			pthread_cond_wait(&writer->changed, &writer->lock);
		if (!writer->busy)
			break;
		pthread_mutex_unlock(&writer->lock);
		gw_status status = behind_write(&writer->chunk);
		pthread_mutex_lock(&writer->lock);
		if (status != GW_OK) {
			writer->status = status;
			snprintf(writer->text, sizeof(writer->text), "%s", gw_last_error());
		}
		writer->busy = false;
		pthread_cond_broadcast(&writer->changed);
	}
	pthread_mutex_unlock(&writer->lock);
	return NULL;
}

gw_status gw_write_behind_create(struct gw_write_behind **out)
{
	struct gw_write_behind *writer = gw_calloc(1, sizeof(*writer));
	*out = NULL;
	if (!writer)
		return GW_NO_MEMORY;
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->changed, NULL);
	int error = gw_thread_start(&writer->thread, behind_run, writer);
	if (error) {
		pthread_cond_destroy(&writer->changed);
		pthread_mutex_destroy(&writer->lock);
		gw_free(writer);
		return gw_thread_failed(error, "cannot start the thread that writes files");
	}
	*out = writer;
	return GW_OK;
}

/* The lock must be held. */
static gw_status behind_wait(struct gw_write_behind *writer)
{
	while (writer->busy)
		pthread_cond_wait(&writer->changed, &writer->lock);
	return writer->status == GW_OK ? GW_OK : gw_fail_text(writer->status, writer->text);
}

gw_status gw_write_behind_put(struct gw_write_behind *writer, const struct gw_write_chunk *chunk)
{
	pthread_mutex_lock(&writer->lock);
	gw_status status = behind_wait(writer);
	if (status == GW_OK) {
		writer->chunk = *chunk;
		writer->busy = true;
		pthread_cond_broadcast(&writer->changed);
	}
	pthread_mutex_unlock(&writer->lock);
	return status;
}

gw_status gw_write_behind_flush(struct gw_write_behind *writer)
{
	pthread_mutex_lock(&writer->lock);
	gw_status status = behind_wait(writer);
	pthread_mutex_unlock(&writer->lock);
	return status;
}

void gw_write_behind_destroy(struct gw_write_behind *writer)
{
	struct gw_error_kept kept;
	if (!writer)
		return;
	gw_error_keep(&kept);
	pthread_mutex_lock(&writer->lock);
	writer->stop = true; /* a chunk that was passed is still written: its owner frees the memory afterwards */
	pthread_cond_broadcast(&writer->changed);
	pthread_mutex_unlock(&writer->lock);
	pthread_join(writer->thread, NULL);
	pthread_cond_destroy(&writer->changed);
	pthread_mutex_destroy(&writer->lock);
	gw_free(writer);
	gw_error_restore(&kept);
}
