/* The state of a disk, for the files of this object:
 *
 *   disk.c         the public functions: files, reads, the thread's life
 *   disk_thread.c  the thread: rounds over the blocks of all reads, completions
 *   disk_cache.c   blocks in memory: their table, and which one gives way
 *   disk_uring.c, disk_pread.c  the drivers
 */
#ifndef GW_FILES_DISK_PRIVATE_H
#define GW_FILES_DISK_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "core/files/disk.h"
#include "core/files/load_job.h"

#define DISK_BLOCK     GW_LOAD_BLOCK
#define DISK_MERGE     32u /* adjacent blocks of one read: 128 KiB */
#define DISK_ACTIVE    32u /* reads that the thread visits at a time; others wait in a queue */
#define DISK_NONE      UINT32_MAX
#define DISK_KEY_SHIFT 44 /* a block's key: the array's number, and the block's in the file */

struct gw_disk_array {
	struct gw_load_item item;
	struct gw_load_job job; /* of this file alone: gw_load_file_open needs one */
	struct gw_load_file file;
	struct gw_disk_layout layout;
	uint64_t rows, number;
	struct gw_disk_array *next;
	char *path, *key;
};

struct gw_disk_read {
	struct gw_disk_array *array;
	uint32_t count;
	uint64_t *rows; /* ascending */
	uint32_t *to;   /* their places in `out` */
	uint8_t *out;
	void (*over)(void *context);
	void *context;
	pthread_mutex_t lock; /* held while rows are copied to `out`, and by gw_disk_read_free */
	bool freed;           /* under the lock */
	_Atomic bool ended;   /* after `status` and `text` were written */
	gw_status status;
	char text[GW_ERROR_TEXT_MAX];
	_Atomic uint32_t users; /* the caller and the thread */
	/* For the thread: a round begins in the middle of the list, at `start`, and ends before it. */
	struct gw_disk_read *next;
	uint32_t start, at, end; /* rows: where the round began, the next one, where this stretch of the round ends */
	uint64_t block;          /* the next one to visit */
	uint32_t waits;          /* blocks in flight whose rows it needs */
	bool visited;            /* no block is left to visit */
};

/* Rows of one read that wait for a block in flight. */
struct disk_wait {
	struct gw_disk_read *read;
	uint32_t first, end; /* rows in the read's order */
	uint32_t next;       /* of the same block, or free; DISK_NONE ends the list */
};

/* A read of adjacent blocks. */
struct disk_io {
	struct disk_io *next; /* free, or queued, or finished */
	struct gw_disk_array *array;
	uint64_t block;
	uint32_t count, at; /* blocks; those before `at` are settled */
	bool single;        /* after an error: one block at a time, so that a bad block fails alone */
	bool direct;        /* as submitted */
	uint32_t tries;
	int fd, result; /* for the drivers; the result is a number of bytes or a negative errno value */
	uint32_t parts; /* of iov */
	uint64_t file_at;
	struct iovec *iov;
	uint32_t frames[DISK_MERGE];
	struct iovec room[DISK_MERGE];
};

enum disk_frame_state { DISK_FREE, DISK_READING, DISK_VALID };

struct disk_frame {
	uint64_t key;
	uint32_t waits; /* of a block in flight */
	uint8_t state;
	bool used; /* since the hand passed */
};

struct disk_cache {
	struct gw_arena *arena;
	struct disk_frame *frames;
	uint32_t *slots; /* a hash table of frames */
	uint32_t count, slot_mask, hand, reading, reading_max;
};

struct disk_driver {
	const char *name;
	gw_status (*open)(struct gw_disk *disk); /* GW_UNSUPPORTED: the kernel refuses it */
	void (*shut)(struct gw_disk *disk);
	void (*submit)(struct gw_disk *disk, struct disk_io *io); /* at the latest with the next wait */
	/* Moves finished reads to disk->finished. may_sleep: returns when there is one, or after a wake. */
	void (*wait)(struct gw_disk *disk, bool may_sleep);
	void (*wake)(struct gw_disk *disk); /* any thread */
};

extern const struct disk_driver gw_disk_uring, gw_disk_pread;

struct gw_disk {
	struct gw_disk_options options;
	const struct disk_driver *driver;
	void *driving; /* the driver's state */
	struct disk_cache cache;
	struct gw_disk_array *arrays;
	uint64_t array_count;
	pthread_t thread;
	bool has_thread;
	pthread_cond_t start; /* with the lock: the thread has opened its driver */
	bool started;
	gw_status start_status;
	char start_text[GW_ERROR_TEXT_MAX];
	_Atomic bool stop;
	/* Reads from other threads, oldest first. */
	pthread_mutex_t lock;
	struct gw_disk_read *inbox, **inbox_end;
	_Atomic bool filled; /* the inbox is not empty, or the thread is to stop */
	_Atomic bool sleeps; /* the thread sleeps, or is about to look at `filled` and then sleep */
	/* For the thread alone. */
	struct gw_disk_read *queue, **queue_end; /* waiting for a place in `active` */
	struct gw_disk_read *active[DISK_ACTIVE];
	uint32_t active_count;
	uint64_t sweep; /* key of the last block that was visited */
	struct disk_io *ios, *free_ios, *finished, *growing;
	uint32_t ios_open; /* not free */
	struct disk_wait *waits;
	uint32_t free_wait, wait_count;
	struct {
		_Atomic uint64_t rows, row_bytes, reads, bytes, hits, misses, errors;
	} counts;
};

/* disk_thread.c */
void *gw_disk_thread(void *opaque);

/* disk_cache.c. A frame is the memory of one block, by its number. */
gw_status gw_disk_cache_open(struct disk_cache *cache, const struct gw_disk_options *options);
void gw_disk_cache_shut(struct disk_cache *cache);
/* The frame of a block, or DISK_NONE. */
uint32_t gw_disk_cache_find(const struct disk_cache *cache, uint64_t key);
/* Gives a block that has no frame the frame of another one: DISK_READING. Fewer than reading_max are in flight. */
uint32_t gw_disk_cache_claim(struct disk_cache *cache, uint64_t key);
/* The block has arrived, or could not be read: then its frame is free. */
void gw_disk_cache_settle(struct disk_cache *cache, uint32_t frame, bool valid);

static inline uint8_t *gw_disk_frame(const struct disk_cache *cache, uint32_t frame)
{
	return gw_arena_base(cache->arena) + frame * DISK_BLOCK;
}

/* disk.c */
void gw_disk_read_drop(struct gw_disk_read *read); /* the last user */

static inline void gw_disk_read_unref(struct gw_disk_read *read)
{
	if (atomic_fetch_sub_explicit(&read->users, 1, memory_order_acq_rel) == 1)
		gw_disk_read_drop(read);
}

#endif
