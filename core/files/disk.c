/* A disk's public functions: its life, its files, reads and counts. See disk.h; disk_thread.c does the work. */
#include <stdio.h>
#include <string.h>

#include "core/errors/log.h"
#include "core/files/disk_private.h"
#include "core/memory/alloc.h"
#include "core/numbers/sort.h"
#include "core/system/thread.h"

#define DEPTH_DEFAULT 128u
#define DEPTH_MAX     4096u
#define WAITS_MIN     256u
#define WAITS_MAX     65536u

/* --- the life --- */

static gw_status disk_allocate(struct gw_disk *disk)
{
	const uint32_t depth = disk->options.queue_depth;
	gw_status status = gw_disk_cache_open(&disk->cache, &disk->options);
	if (status != GW_OK)
		return status;
	uint64_t waits = 2ull * disk->cache.reading_max;
	waits = waits < WAITS_MIN ? WAITS_MIN : waits;
	disk->wait_count = (uint32_t)(waits > WAITS_MAX ? WAITS_MAX : waits);
	disk->ios = gw_calloc(depth, sizeof(*disk->ios));
	disk->waits = gw_calloc(disk->wait_count, sizeof(*disk->waits));
	if (!disk->ios || !disk->waits)
		return GW_NO_MEMORY;
	for (uint32_t i = 0; i < depth; i++) {
		disk->ios[i].next = disk->free_ios;
		disk->free_ios = &disk->ios[i];
	}
	for (uint32_t i = 0; i < disk->wait_count; i++)
		disk->waits[i].next = i + 1 < disk->wait_count ? i + 1 : DISK_NONE;
	return GW_OK;
}

static gw_status disk_thread_begin(struct gw_disk *disk)
{
	int error = gw_thread_start(&disk->thread, gw_disk_thread, disk);
	if (error)
		return gw_thread_failed(error, "cannot start the thread that reads rows on disk");
	disk->has_thread = true;
	pthread_mutex_lock(&disk->lock);
	while (!disk->started)
		pthread_cond_wait(&disk->start, &disk->lock);
	pthread_mutex_unlock(&disk->lock);
	return disk->start_status == GW_OK ? GW_OK : gw_fail_text(disk->start_status, disk->start_text);
}

gw_status gw_disk_create(const struct gw_disk_options *options, struct gw_disk **out)
{
	*out = NULL;
	struct gw_disk *disk = gw_calloc(1, sizeof(*disk));
	if (!disk)
		return GW_NO_MEMORY;
	if (options)
		disk->options = *options;
	if (!disk->options.cache_bytes)
		disk->options.cache_bytes = GW_DISK_CACHE_DEFAULT;
	if (!disk->options.queue_depth)
		disk->options.queue_depth = DEPTH_DEFAULT;
	pthread_mutex_init(&disk->lock, NULL);
	pthread_cond_init(&disk->start, NULL);
	disk->inbox_end = &disk->inbox;
	disk->queue_end = &disk->queue;
	gw_status status = GW_OK;
	if (disk->options.cache_bytes < GW_DISK_CACHE_MIN)
		status = gw_fail(GW_INVALID, "a cache of %llu bytes: at least %llu",
				 (unsigned long long)disk->options.cache_bytes, (unsigned long long)GW_DISK_CACHE_MIN);
	else if (disk->options.queue_depth > DEPTH_MAX)
		status = gw_fail(GW_INVALID, "%u reads in flight: at most %u", disk->options.queue_depth, DEPTH_MAX);
	if (status == GW_OK)
		status = disk_allocate(disk);
	if (status == GW_OK)
		status = disk_thread_begin(disk);
	if (status != GW_OK) {
		gw_disk_destroy(disk);
		return gw_context(status, "rows on disk");
	}
	*out = disk;
	return GW_OK;
}

static void disk_wake(struct gw_disk *disk)
{
	if (atomic_exchange(&disk->sleeps, false))
		disk->driver->wake(disk);
}

static void disk_array_free(struct gw_disk_array *array)
{
	gw_load_file_close(&array->file);
	gw_free(array->path);
	gw_free(array->key);
	gw_free(array);
}

void gw_disk_destroy(struct gw_disk *disk)
{
	struct gw_error_kept kept;
	if (!disk)
		return;
	gw_error_keep(&kept);
	if (disk->has_thread) {
		atomic_store(&disk->stop, true);
		atomic_store(&disk->filled, true);
		if (disk->start_status == GW_OK)
			disk_wake(disk);
		pthread_join(disk->thread, NULL);
	}
	while (disk->arrays) {
		struct gw_disk_array *array = disk->arrays;
		disk->arrays = array->next;
		disk_array_free(array);
	}
	gw_disk_cache_shut(&disk->cache);
	gw_free(disk->ios);
	gw_free(disk->waits);
	pthread_cond_destroy(&disk->start);
	pthread_mutex_destroy(&disk->lock);
	gw_free(disk);
	gw_error_restore(&kept);
}

/* --- files --- */

static gw_status disk_array_open(struct gw_disk *disk, struct gw_disk_array *array)
{
	array->job = (struct gw_load_job){.items = &array->item, .count = 1};
	array->job.options.buffered = disk->options.buffered;
	gw_status status = gw_load_file_open(&array->job, 0, &array->file);
	if (status == GW_OK && atomic_load(&array->job.refused))
		gw_log(GW_LOG_WARN, "%s: its file system refuses O_DIRECT: rows are read buffered", array->path);
	return status;
}

static uint64_t disk_rows_in(uint64_t bytes, struct gw_disk_layout layout)
{
	return layout.step && bytes >= layout.row_bytes ? (bytes - layout.row_bytes) / layout.step + 1 : 0;
}

gw_status gw_disk_add(struct gw_disk *disk, const struct gw_load_item *item, struct gw_disk_layout layout,
		      struct gw_disk_array **out)
{
	*out = NULL;
	struct gw_disk_array *array = gw_calloc(1, sizeof(*array));
	if (!array)
		return GW_NO_MEMORY;
	array->file = (struct gw_load_file){.fd = -1, .direct_fd = -1};
	array->path = gw_strdup(item->path);
	array->key = gw_strdup(item->key);
	array->item = *item;
	array->item.path = array->path;
	array->item.key = array->key;
	array->layout = layout;
	array->rows = disk_rows_in(item->bytes, layout);
	gw_status status = array->path && array->key ? disk_array_open(disk, array) : GW_NO_MEMORY;
	if (status != GW_OK) {
		disk_array_free(array);
		return status;
	}
	array->number = disk->array_count++;
	array->next = disk->arrays;
	disk->arrays = array;
	*out = array;
	return GW_OK;
}

/* --- reads --- */

void gw_disk_read_drop(struct gw_disk_read *read)
{
	pthread_mutex_destroy(&read->lock);
	gw_free(read->rows);
	gw_free(read->to);
	gw_free(read);
}

/* Sorts the rows, unless they are in order. */
static gw_status disk_read_sort(struct gw_disk_read *read)
{
	bool sorted = true;
	for (uint32_t i = 0; i < read->count; i++) {
		if (read->rows[i] >= read->array->rows)
			return gw_fail(GW_RANGE, "%s (%s): row %llu of %llu", read->array->path, read->array->key,
				       (unsigned long long)read->rows[i], (unsigned long long)read->array->rows);
		sorted &= i == 0 || read->rows[i - 1] <= read->rows[i];
		read->to[i] = i;
	}
	if (sorted)
		return GW_OK;
	struct gw_vec scratch = {0};
	gw_status status = gw_sort_rows(read->rows, read->to, read->count, &scratch);
	gw_vec_free(&scratch);
	return status;
}

static gw_status disk_read_make(const struct gw_disk_rows *what, struct gw_disk_read **out)
{
	struct gw_disk_read *read = gw_calloc(1, sizeof(*read));
	if (!read)
		return GW_NO_MEMORY;
	pthread_mutex_init(&read->lock, NULL);
	read->array = what->array;
	read->count = what->count;
	read->out = what->out;
	read->over = what->over;
	read->context = what->context;
	atomic_init(&read->users, 2);
	read->rows = gw_malloc(what->count * sizeof(*read->rows));
	read->to = gw_malloc(what->count * sizeof(*read->to));
	gw_status status = read->rows && read->to ? GW_OK : GW_NO_MEMORY;
	if (status == GW_OK && what->count)
		memcpy(read->rows, what->rows, what->count * sizeof(*read->rows));
	if (status == GW_OK)
		status = disk_read_sort(read);
	if (status != GW_OK) {
		gw_disk_read_drop(read);
		return status;
	}
	*out = read;
	return GW_OK;
}

gw_status gw_disk_read_start(struct gw_disk *disk, const struct gw_disk_rows *what, struct gw_disk_read **out)
{
	*out = NULL;
	struct gw_disk_read *read = NULL;
	gw_status status = disk_read_make(what, &read);
	if (status != GW_OK)
		return status;
	atomic_fetch_add_explicit(&disk->counts.rows, read->count, memory_order_relaxed);
	atomic_fetch_add_explicit(&disk->counts.row_bytes, read->count * read->array->layout.row_bytes,
				  memory_order_relaxed);
	*out = read;
	pthread_mutex_lock(&disk->lock);
	*disk->inbox_end = read;
	disk->inbox_end = &read->next;
	atomic_store(&disk->filled, true);
	pthread_mutex_unlock(&disk->lock);
	disk_wake(disk);
	return GW_OK;
}

gw_status gw_disk_read_status(const struct gw_disk_read *read)
{
	if (!atomic_load_explicit(&read->ended, memory_order_acquire))
		return GW_AGAIN;
	return read->status == GW_OK ? GW_OK : gw_fail_text(read->status, read->text);
}

void gw_disk_read_free(struct gw_disk_read *read)
{
	if (!read)
		return;
	pthread_mutex_lock(&read->lock);
	read->freed = true;
	pthread_mutex_unlock(&read->lock);
	gw_disk_read_unref(read);
}

/* --- what it did --- */

void gw_disk_counts(const struct gw_disk *disk, struct gw_disk_counts *out)
{
	*out = (struct gw_disk_counts){
		.rows = atomic_load_explicit(&disk->counts.rows, memory_order_relaxed),
		.row_bytes = atomic_load_explicit(&disk->counts.row_bytes, memory_order_relaxed),
		.reads = atomic_load_explicit(&disk->counts.reads, memory_order_relaxed),
		.bytes = atomic_load_explicit(&disk->counts.bytes, memory_order_relaxed),
		.hits = atomic_load_explicit(&disk->counts.hits, memory_order_relaxed),
		.misses = atomic_load_explicit(&disk->counts.misses, memory_order_relaxed),
		.errors = atomic_load_explicit(&disk->counts.errors, memory_order_relaxed),
	};
}

const char *gw_disk_driver(const struct gw_disk *disk)
{
	return disk->driver->name;
}

uint64_t gw_disk_cache_bytes(const struct gw_disk *disk)
{
	return disk->options.cache_bytes;
}
