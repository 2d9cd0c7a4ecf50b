/* The driver of a disk by threads that block in preadv, for kernels and containers that refuse io_uring. The threads
 * take reads from one queue. Fails if no thread can be started; fewer threads than wanted are enough. */
#include <errno.h>

#include "core/files/disk_private.h"
#include "core/memory/alloc.h"
#include "core/system/thread.h"

#define DISK_READERS 16u

struct disk_readers {
	pthread_mutex_t lock;
	pthread_cond_t queued, finished;
	struct disk_io *first, **end; /* not read yet */
	struct disk_io *done;
	bool woken, stop;
	uint32_t count;
	pthread_t threads[DISK_READERS];
};

static void *disk_reader_run(void *opaque)
{
	struct disk_readers *readers = opaque;
	pthread_mutex_lock(&readers->lock);
	while (!readers->stop) {
		struct disk_io *io = readers->first;
		if (!io) {
			pthread_cond_wait(&readers->queued, &readers->lock);
			continue;
		}
		readers->first = io->next;
		if (!readers->first)
			readers->end = &readers->first;
		pthread_mutex_unlock(&readers->lock);
		ssize_t got = preadv(io->fd, io->iov, (int)io->parts, (off_t)io->file_at);
		io->result = got < 0 ? -errno : (int)got;
		pthread_mutex_lock(&readers->lock);
		io->next = readers->done;
		readers->done = io;
		pthread_cond_signal(&readers->finished);
	}
	pthread_mutex_unlock(&readers->lock);
	return NULL;
}

static void disk_pread_shut(struct gw_disk *disk)
{
	struct disk_readers *readers = disk->driving;
	pthread_mutex_lock(&readers->lock);
	readers->stop = true;
	pthread_cond_broadcast(&readers->queued);
	pthread_mutex_unlock(&readers->lock);
	for (uint32_t i = 0; i < readers->count; i++)
		pthread_join(readers->threads[i], NULL);
	pthread_cond_destroy(&readers->queued);
	pthread_cond_destroy(&readers->finished);
	pthread_mutex_destroy(&readers->lock);
	gw_free(readers);
	disk->driving = NULL;
}

static gw_status disk_pread_open(struct gw_disk *disk)
{
	struct disk_readers *readers = gw_calloc(1, sizeof(*readers));
	if (!readers)
		return GW_NO_MEMORY;
	pthread_mutex_init(&readers->lock, NULL);
	pthread_cond_init(&readers->queued, NULL);
	pthread_cond_init(&readers->finished, NULL);
	readers->end = &readers->first;
	disk->driving = readers;
	uint32_t wanted = disk->options.queue_depth < DISK_READERS ? disk->options.queue_depth : DISK_READERS;
	int error = 0;
	while (readers->count < wanted && !error) {
		error = gw_thread_start(&readers->threads[readers->count], disk_reader_run, readers);
		readers->count += !error;
	}
	if (readers->count > 0)
		return GW_OK;
	disk_pread_shut(disk);
	return gw_thread_failed(error, "cannot start a thread that reads rows");
}

static void disk_pread_submit(struct gw_disk *disk, struct disk_io *io)
{
	struct disk_readers *readers = disk->driving;
	io->next = NULL;
	pthread_mutex_lock(&readers->lock);
	*readers->end = io;
	readers->end = &io->next;
	pthread_cond_signal(&readers->queued);
	pthread_mutex_unlock(&readers->lock);
}

static void disk_pread_wait(struct gw_disk *disk, bool may_sleep)
{
	struct disk_readers *readers = disk->driving;
	pthread_mutex_lock(&readers->lock);
	while (may_sleep && !readers->done && !readers->woken)
		pthread_cond_wait(&readers->finished, &readers->lock);
	readers->woken = false;
	disk->finished = readers->done;
	readers->done = NULL;
	pthread_mutex_unlock(&readers->lock);
}

static void disk_pread_wake(struct gw_disk *disk)
{
	struct disk_readers *readers = disk->driving;
	pthread_mutex_lock(&readers->lock);
	readers->woken = true;
	pthread_cond_signal(&readers->finished);
	pthread_mutex_unlock(&readers->lock);
}

const struct disk_driver gw_disk_pread = {
	.name = "pread",
	.open = disk_pread_open,
	.shut = disk_pread_shut,
	.submit = disk_pread_submit,
	.wait = disk_pread_wait,
	.wake = disk_pread_wake,
};
