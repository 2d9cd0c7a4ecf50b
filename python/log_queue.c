/* A list under a lock, which is held for a few instructions. Errors: memory runs out: the line is counted as dropped.
 */
#include "python/log_queue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
	pthread_mutex_t lock;
	struct log_entry *first, **last;
	atomic_size_t count;
	uint64_t dropped;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &queue.first};

/* Another thread may have held the lock at the fork, so the child begins with a new lock and no entry. */
static void in_child(void)
{
	pthread_mutex_init(&queue.lock, NULL);
	queue.first = NULL;
	queue.last = &queue.first;
	queue.dropped = 0;
	atomic_store(&queue.count, 0);
}

static void take_line(void *context, enum gw_log_level level, const char *line)
{
	struct timespec now;
	size_t bytes = strlen(line) + 1;
	(void)context;
	clock_gettime(CLOCK_REALTIME, &now);
	struct log_entry *entry = malloc(sizeof(*entry) + bytes);
	pthread_mutex_lock(&queue.lock);
	if (!entry || atomic_load(&queue.count) == LOG_QUEUE_MAX) {
		queue.dropped++;
		pthread_mutex_unlock(&queue.lock);
		free(entry);
		return;
	}
	*entry = (struct log_entry){
		.level = level, .time = (double)now.tv_sec + (double)now.tv_nsec / 1e9, .dropped = queue.dropped};
	memcpy(entry->line, line, bytes);
	queue.dropped = 0;
	*queue.last = entry;
	queue.last = &entry->next;
	atomic_fetch_add(&queue.count, 1);
	pthread_mutex_unlock(&queue.lock);
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

gw_status log_begin(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, watch_forks);
	return gw_log_set_sink(take_line, NULL);
}

gw_status log_end(void)
{
	return gw_log_set_sink(NULL, NULL);
}

bool log_waits(void)
{
	return atomic_load(&queue.count) > 0;
}

void log_take(struct log_entry **to)
{
	pthread_mutex_lock(&queue.lock);
	struct log_entry *entry = queue.first;
	if (entry) {
		queue.first = entry->next;
		if (!queue.first)
			queue.last = &queue.first;
		entry->next = NULL;
		atomic_fetch_sub(&queue.count, 1);
	}
	pthread_mutex_unlock(&queue.lock);
	*to = entry;
}

void log_entry_end(struct log_entry **entry)
{
	free(*entry);
	*entry = NULL;
}
