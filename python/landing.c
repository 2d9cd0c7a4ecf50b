/* Blocks of Python's memory, lent to the library: see landing.h.
 *
 * Errors: memory runs out. */
#include "python/landing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define LEAST_BYTES (64u << 10) /* a block costs Python as much time as a copy of so many bytes */
#define KEPT_CALLS  64u

enum block_state { SPARE, LENT, GONE };

struct lent_block {
	struct lent_block *next;
	void *memory;
	uint32_t size; /* 2^size bytes */
	enum block_state state;
};

/* What is taken of blocks of one size. */
struct demand {
	uint32_t now;    /* since the last call of landing_tend, with those that there were none for */
	uint32_t most;   /* between two calls */
	uint32_t quiet;  /* calls since it was `most` */
	uint32_t spares; /* blocks */
};

struct landing {
	atomic_uint users; /* Python, and the client */
	atomic_bool on, over;
	pthread_mutex_t lock; /* of what follows */
	struct lent_block *blocks;
	struct demand demand[LANDING_SIZES];
};

static uint32_t size_of(uint64_t bytes)
{
	return bytes > 1 ? 64 - (uint32_t)__builtin_clzll(bytes - 1) : 0;
}

static void *acquire(void *context, uint64_t bytes)
{
	struct landing *landing = context;
	if (bytes < LEAST_BYTES || bytes > 1ull << 40 || !atomic_load_explicit(&landing->on, memory_order_relaxed))
		return NULL;
	const uint32_t size = size_of(bytes);
	struct lent_block *found = NULL;
	pthread_mutex_lock(&landing->lock);
	landing->demand[size].now++;
	for (struct lent_block *block = landing->blocks; block; block = block->next)
		if (block->state == SPARE && block->size == size)
			found = block;
	if (found) {
		found->state = LENT;
		landing->demand[size].spares--;
	}
	pthread_mutex_unlock(&landing->lock);
	return found ? found->memory : NULL;
}

static void release(void *context, void *memory, uint64_t bytes)
{
	(void)bytes;
	struct landing *landing = context;
	pthread_mutex_lock(&landing->lock);
	for (struct lent_block *block = landing->blocks; block; block = block->next)
		if (block->state == LENT && block->memory == memory)
			block->state = GONE;
	pthread_mutex_unlock(&landing->lock);
}

bool landing_begin(struct held_landing *held)
{
	struct landing *landing = calloc(1, sizeof(*landing));
	if (!landing)
		return false;
	atomic_init(&landing->users, 1);
	pthread_mutex_init(&landing->lock, NULL);
	held->landing = landing;
	return true;
}

struct gw_landing_memory landing_lend(struct landing *landing)
{
	atomic_fetch_add(&landing->users, 1);
	return (struct gw_landing_memory){acquire, release, landing};
}

static void drop(struct landing *landing)
{
	if (atomic_fetch_sub(&landing->users, 1) != 1)
		return;
	for (struct lent_block *block = landing->blocks, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	pthread_mutex_destroy(&landing->lock);
	free(landing);
}

void landing_client_ended(struct landing *landing)
{
	atomic_store(&landing->over, true);
	drop(landing);
}

void landing_end(struct held_landing *held)
{
	if (held->landing)
		drop(held->landing);
	held->landing = NULL;
}

bool landing_put(const struct held_landing *held, void *memory, uint64_t bytes)
{
	struct landing *landing = held->landing;
	struct lent_block *block = malloc(sizeof(*block));
	if (!block)
		return false;
	*block = (struct lent_block){.memory = memory, .size = size_of(bytes), .state = SPARE};
	pthread_mutex_lock(&landing->lock);
	block->next = landing->blocks;
	landing->blocks = block;
	landing->demand[block->size].spares++;
	pthread_mutex_unlock(&landing->lock);
	return true;
}

void landing_turn(const struct held_landing *held, bool on)
{
	atomic_store(&held->landing->on, on);
}

bool landing_is_over(const struct held_landing *held)
{
	return atomic_load(&held->landing->over);
}

static void count_demand(struct demand *demand)
{
	if (demand->now >= demand->most) {
		demand->most = demand->now;
		demand->quiet = 0;
	} else if (++demand->quiet > KEPT_CALLS) {
		demand->most--;
		demand->quiet = 0;
	}
	demand->now = 0;
}

size_t landing_tend(const struct held_landing *held, uintptr_t *removed, size_t room, uint32_t *needed)
{
	struct landing *landing = held->landing;
	size_t count = 0;
	pthread_mutex_lock(&landing->lock);
	for (uint32_t i = 0; i < LANDING_SIZES; i++)
		count_demand(&landing->demand[i]);
	for (struct lent_block **at = &landing->blocks; *at && count < room;) {
		struct lent_block *block = *at;
		struct demand *demand = &landing->demand[block->size];
		const bool surplus = block->state == SPARE && demand->spares > demand->most;
		if (block->state != GONE && !surplus) {
			at = &block->next;
			continue;
		}
		demand->spares -= surplus;
		removed[count++] = (uintptr_t)block->memory;
		*at = block->next;
		free(block);
	}
	for (uint32_t i = 0; i < LANDING_SIZES; i++)
		needed[i] = landing->demand[i].most > landing->demand[i].spares
				    ? landing->demand[i].most - landing->demand[i].spares
				    : 0;
	pthread_mutex_unlock(&landing->lock);
	return count;
}
