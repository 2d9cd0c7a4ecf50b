/* Plans, entries and turns: see row_window.h.
 *
 * One map has the rows of all entries: id -> (serial, row of the entry). The serial numbers the plans; without failures
 * it is the batch's number, counted from the first. An item whose serial is W plans old or older is stale: the next
 * plan that needs the row fetches it and overwrites the item. When the map is full of stale items, it is made again.
 *
 * `planning` guards the map. It is free in the turn of a batch, except while a batch that is sampled again plans.
 * `lock` guards the rest, and is held for short: while a batch plans, others land, copy and leave.
 */
#include "client/rows/row_window.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "core/memory/idmap.h"

#define AHEAD       16u /* ids whose items are prefetched */
#define COPY_AHEAD  8u
#define SOURCE_KEPT UINT32_MAX
#define PASSED      (GW_WINDOW_BATCHES_MAX) /* batches whose turn may pass early: the most that a loader samples ahead */

enum entry_state { ENTRY_OPEN, ENTRY_LANDED, ENTRY_FAILED };

struct gw_window_entry {
	struct gw_window_entry *next; /* unused ones */
	struct gw_vec rows;
	uint64_t count;
	enum entry_state state;
	uint32_t users;          /* the window, its own batch, and those that copy */
	struct gw_queue waiting; /* shares */
};

struct window_copy {
	uint32_t to;     /* position */
	uint32_t source; /* serial % W of the entry, or SOURCE_KEPT */
	uint32_t row;    /* of the entry; slot of the kept rows */
};

struct gw_row_window {
	uint32_t batches;
	uint64_t row_bytes;
	pthread_mutex_t planning;
	struct gw_hash_map map;                                /* number: the entry's row; mark: the serial */
	uint64_t live;                                         /* rows of `recent` */
	uint64_t serial;                                       /* of the next plan */
	struct gw_window_entry *recent[GW_WINDOW_BATCHES_MAX]; /* [batches], by serial % batches */
	pthread_mutex_t lock;
	pthread_cond_t moved; /* for gw_row_window_take_kept */
	uint64_t turn, gate;
	uint64_t passed[PASSED / 64]; /* bits, by number % PASSED: of turn and the numbers after it */
	struct gw_queue waiting;      /* shares, for their turns */
	struct gw_window_entry *unused;
	const struct gw_kept_rows *kept;
	uint32_t planned; /* shares that have not left */
	bool given_up;
};

gw_status gw_row_window_create(uint32_t batches, uint64_t row_bytes, uint64_t first, struct gw_row_window **out)
{
	assert(batches >= 1 && batches <= GW_WINDOW_BATCHES_MAX);
	struct gw_row_window *window = gw_calloc(1, sizeof(*window));
	*out = NULL;
	if (!window)
		return GW_NO_MEMORY;
	gw_status status = gw_hash_map_create(0, &window->map);
	if (status != GW_OK) {
		gw_free(window);
		return status;
	}
	window->batches = batches;
	window->row_bytes = row_bytes;
	window->turn = first;
	window->gate = UINT64_MAX;
	pthread_mutex_init(&window->planning, NULL);
	pthread_mutex_init(&window->lock, NULL);
	pthread_cond_init(&window->moved, NULL);
	*out = window;
	return GW_OK;
}

static void entry_free(struct gw_window_entry *entry)
{
	gw_vec_free(&entry->rows);
	gw_free(entry);
}

bool gw_row_window_has_entries(const struct gw_row_window *window)
{
	return window->batches > 1;
}

void gw_row_window_destroy(struct gw_row_window *window)
{
	struct gw_window_entry *next;
	if (!window)
		return;
	for (uint32_t i = 0; i < window->batches; i++) {
		if (window->recent[i])
			entry_free(window->recent[i]);
	}
	for (struct gw_window_entry *entry = window->unused; entry; entry = next) {
		next = entry->next;
		entry_free(entry);
	}
	gw_hash_map_destroy(&window->map);
	pthread_cond_destroy(&window->moved);
	pthread_mutex_destroy(&window->lock);
	pthread_mutex_destroy(&window->planning);
	gw_free(window);
}

void gw_window_share_free(struct gw_window_share *share)
{
	gw_vec_free(&share->sources);
	gw_vec_free(&share->copies);
}

/* --- Turns. The caller holds the lock. --- */

static struct gw_window_share *waiting_share(struct gw_queued *queued)
{
	return (struct gw_window_share *)((char *)queued - offsetof(struct gw_window_share, queued));
}

static uint64_t *passed_word(struct gw_row_window *window, uint64_t number, uint64_t *bit)
{
	*bit = 1ull << number % 64;
	return &window->passed[number % PASSED / 64];
}

static bool has_passed(struct gw_row_window *window, uint64_t number)
{
	uint64_t bit, *word = passed_word(window, number, &bit);
	return number < window->turn || (*word & bit);
}

static bool may_plan(struct gw_row_window *window, uint64_t number)
{
	return number < window->gate && (number == window->turn || has_passed(window, number));
}

static void wake(struct gw_queue *queue, struct gw_window_share *share)
{
	gw_queue_drop(queue, &share->queued);
	gw_parked_wake(&share->parked);
}

static void wake_turns(struct gw_row_window *window)
{
	struct gw_queued *next;
	for (struct gw_queued *queued = window->waiting.first; queued; queued = next) {
		next = queued->next;
		if (may_plan(window, waiting_share(queued)->number))
			wake(&window->waiting, waiting_share(queued));
	}
	pthread_cond_broadcast(&window->moved);
}

static void pass(struct gw_row_window *window, uint64_t number)
{
	uint64_t bit, *word;
	if (number < window->turn)
		return;
	assert(number - window->turn < PASSED);
	word = passed_word(window, number, &bit);
	*word |= bit;
	for (word = passed_word(window, window->turn, &bit); *word & bit;
	     word = passed_word(window, window->turn, &bit)) {
		*word &= ~bit;
		window->turn++;
	}
	wake_turns(window);
}

bool gw_row_window_takes(struct gw_row_window *window, uint64_t number)
{
	pthread_mutex_lock(&window->lock);
	const bool takes = number < window->turn || number - window->turn < PASSED;
	pthread_mutex_unlock(&window->lock);
	return takes;
}

void gw_row_window_pass(struct gw_row_window *window, uint64_t number)
{
	pthread_mutex_lock(&window->lock);
	pass(window, number);
	pthread_mutex_unlock(&window->lock);
}

bool gw_row_window_turn(struct gw_window_share *share)
{
	struct gw_row_window *window = share->window;
	pthread_mutex_lock(&window->lock);
	bool may = may_plan(window, share->number);
	if (!may)
		gw_queue_add(&window->waiting, &share->queued);
	pthread_mutex_unlock(&window->lock);
	return may;
}

/* --- Entries. The caller holds the lock. --- */

static void entry_leave(struct gw_row_window *window, struct gw_window_entry *entry)
{
	if (--entry->users > 0)
		return;
	entry->next = window->unused;
	window->unused = entry;
}

static void entry_settle(struct gw_window_entry *entry, enum entry_state state)
{
	entry->state = state;
	while (entry->waiting.first)
		wake(&entry->waiting, waiting_share(entry->waiting.first));
}

/* Without a new entry if W = 1, or if memory runs out: *out is then NULL. */
static gw_status entry_begin(struct gw_row_window *window, struct gw_window_entry **out)
{
	struct gw_window_entry *entry = window->unused, **place = &window->recent[window->serial % window->batches];
	*out = NULL;
	if (window->batches == 1)
		return GW_OK;
	if (entry)
		window->unused = entry->next;
	else
		entry = gw_calloc(1, sizeof(*entry));
	if (!entry)
		return GW_NO_MEMORY;
	if (*place) {
		window->live -= (*place)->count;
		entry_leave(window, *place);
	}
	entry->count = 0;
	entry->state = ENTRY_OPEN;
	entry->users = 2;
	*out = *place = entry;
	return GW_OK;
}

void gw_row_window_restart(struct gw_row_window *window, uint64_t gate)
{
	pthread_mutex_lock(&window->lock);
	assert(window->planned == 0 && !window->waiting.first);
	for (uint32_t i = 0; i < window->batches; i++) {
		if (!window->recent[i])
			continue;
		window->live -= window->recent[i]->count;
		entry_leave(window, window->recent[i]);
		window->recent[i] = NULL;
	}
	window->serial += window->batches; /* all items of the map are stale */
	window->turn = 0;
	window->gate = gate;
	memset(window->passed, 0, sizeof(window->passed));
	pthread_mutex_unlock(&window->lock);
}

/* --- Plans. The caller holds `planning`. --- */

/* Makes room for the ids of a plan, and removes stale items instead of growing where that suffices. */
static gw_status map_make_room(struct gw_row_window *window, uint64_t more)
{
	struct gw_hash_map *map = &window->map, made;
	if (more <= map->limit - map->used)
		return GW_OK;
	gw_status status = gw_hash_map_create(2 * (window->live + more), &made);
	if (status != GW_OK)
		return status;
	for (uint64_t i = 0; i <= map->mask; i++) {
		const struct gw_hash_slot *slot = &map->slots[i];
		bool is_new;
		if (slot->key != GW_HASH_EMPTY && (uint32_t)window->serial - slot->mark < window->batches)
			*gw_hash_map_at(&made, slot->key, 0, &is_new) = *slot;
	}
	gw_hash_map_destroy(map);
	*map = made;
	return GW_OK;
}

/* Sorts the positions into F(k), which stays in the list, and copies. used: [batches], which entries are copied from.
 */
static uint64_t plan_rows(struct gw_window_share *share, const int64_t *ids, uint32_t *positions, uint64_t n,
			  bool *used)
{
	struct gw_row_window *window = share->window;
	const uint32_t batches = window->batches, serial = (uint32_t)window->serial;
	const uint32_t place = (uint32_t)(window->serial % batches);
	struct window_copy *copies = share->copies.data;
	uint64_t fetched = 0, copied = 0;
	for (uint64_t i = 0; i < n; i++) {
		const uint32_t position = positions[i];
		const uint64_t id = (uint64_t)ids[position];
		if (share->own && i + AHEAD < n)
			gw_hash_map_prefetch(&window->map, (uint64_t)ids[positions[i + AHEAD]]);
		uint64_t kept;
		if (share->kept && gw_replica_find(share->kept->ids, id, &kept)) {
			copies[copied++] = (struct window_copy){position, SOURCE_KEPT, share->kept->slots[kept]};
			continue;
		}
		if (!share->own) {
			positions[fetched++] = position;
			continue;
		}
		bool is_new;
		struct gw_hash_slot *slot = gw_hash_map_at(&window->map, id, (uint32_t)fetched, &is_new);
		const uint32_t age = serial - slot->mark;
		if (!is_new && age < batches) {
			const uint32_t source = (place + batches - age) % batches;
			copies[copied++] = (struct window_copy){position, source, slot->number};
			used[source] = true;
			continue;
		}
		slot->mark = serial;
		slot->number = (uint32_t)fetched;
		positions[fetched++] = position;
	}
	share->copy_count = copied;
	return fetched;
}

/* The entries that are copied from stay until the share leaves. The caller holds the lock. */
static void take_sources(struct gw_window_share *share, const bool *used)
{
	struct gw_row_window *window = share->window;
	struct gw_window_entry **sources = share->sources.data;
	for (uint32_t i = 0; i < window->batches; i++) {
		sources[i] = used[i] ? window->recent[i] : NULL;
		if (sources[i])
			sources[i]->users++;
	}
}

/* Begins the plan of a batch, whose turn does not pass yet. */
static gw_status plan_begin(struct gw_window_share *share, uint64_t n)
{
	struct gw_row_window *window = share->window;
	gw_status status = gw_vec_reserve(&share->copies, n * sizeof(struct window_copy));
	if (status == GW_OK)
		status = gw_vec_reserve(&share->sources, window->batches * sizeof(struct gw_window_entry *));
	if (status == GW_OK && window->batches > 1)
		status = map_make_room(window, n);
	if (status != GW_OK)
		return status;
	pthread_mutex_lock(&window->lock);
	status = entry_begin(window, &share->own);
	if (status == GW_OK) {
		memset(share->sources.data, 0, window->batches * sizeof(struct gw_window_entry *));
		share->copy_count = 0;
		share->kept = window->kept;
		share->in_plan = true;
		window->planned++;
	}
	pthread_mutex_unlock(&window->lock);
	return status;
}

gw_status gw_row_window_plan(struct gw_window_share *share, const int64_t *ids, uint32_t *positions, uint64_t *count)
{
	struct gw_row_window *window = share->window;
	bool used[GW_WINDOW_BATCHES_MAX] = {false};
	assert(!share->in_plan);
	pthread_mutex_lock(&window->planning);
	gw_status status = plan_begin(share, *count);
	if (status == GW_OK) {
		*count = plan_rows(share, ids, positions, *count, used);
		if (share->own) {
			share->own->count = *count;
			window->live += *count;
			status = gw_vec_reserve(&share->own->rows, *count * window->row_bytes);
		}
	}
	pthread_mutex_lock(&window->lock);
	if (share->in_plan) {
		take_sources(share, used);
		window->serial++;
	}
	if (share->own && *count == 0)
		entry_settle(share->own, ENTRY_LANDED);
	pass(window, share->number);
	pthread_mutex_unlock(&window->lock);
	pthread_mutex_unlock(&window->planning);
	return status;
}

/* --- After the plan. --- */

void gw_row_window_keep(struct gw_window_share *share, const uint8_t *rows, const uint32_t *positions, uint64_t first,
			uint64_t end)
{
	struct gw_row_window *window = share->window;
	struct gw_window_entry *own = share->own;
	const uint64_t bytes = window->row_bytes;
	if (!own)
		return;
	uint8_t *out = own->rows.data;
	for (uint64_t i = first; i < end; i++) {
		if (i + COPY_AHEAD < end)
			__builtin_prefetch(rows + positions[i + COPY_AHEAD] * bytes);
		memcpy(out + i * bytes, rows + positions[i] * bytes, bytes);
	}
	if (end < own->count)
		return;
	pthread_mutex_lock(&window->lock);
	entry_settle(own, ENTRY_LANDED);
	pthread_mutex_unlock(&window->lock);
}

bool gw_row_window_settled(struct gw_window_share *share)
{
	struct gw_row_window *window = share->window;
	struct gw_window_entry **sources = share->sources.data;
	struct gw_window_entry *open = NULL;
	pthread_mutex_lock(&window->lock);
	for (uint32_t i = 0; i < window->batches && !open; i++)
		open = sources[i] && sources[i]->state == ENTRY_OPEN ? sources[i] : NULL;
	if (open)
		gw_queue_add(&open->waiting, &share->queued);
	pthread_mutex_unlock(&window->lock);
	return !open;
}

static const uint8_t *copy_source(const struct gw_window_share *share, const struct window_copy *copy)
{
	if (copy->source == SOURCE_KEPT)
		return share->kept->rows + copy->row * share->window->row_bytes;
	const struct gw_window_entry *entry = ((struct gw_window_entry **)share->sources.data)[copy->source];
	return entry->state == ENTRY_LANDED ? (const uint8_t *)entry->rows.data + copy->row * share->window->row_bytes
					    : NULL;
}

void gw_row_window_copy(struct gw_window_share *share, uint64_t first, uint64_t end, uint8_t *out, uint32_t *positions,
			struct gw_window_copied *copied)
{
	const struct window_copy *copies = share->copies.data;
	const uint64_t bytes = share->window->row_bytes;
	*copied = (struct gw_window_copied){0};
	for (uint64_t i = first; i < end; i++) {
		const uint8_t *row = copy_source(share, &copies[i]);
		if (i + COPY_AHEAD < end)
			__builtin_prefetch(copy_source(share, &copies[i + COPY_AHEAD]));
		if (row)
			memcpy(out + copies[i].to * bytes, row, bytes);
		else
			positions[copied->missing++] = copies[i].to;
		copied->kept += row && copies[i].source == SOURCE_KEPT;
		copied->ahead += row && copies[i].source != SOURCE_KEPT;
	}
}

bool gw_row_window_unpark(struct gw_window_share *share)
{
	struct gw_row_window *window = share->window;
	struct gw_window_entry **sources = share->sources.data;
	pthread_mutex_lock(&window->lock);
	const bool waits = share->queued.waits;
	if (waits && !share->in_plan) {
		gw_queue_drop(&window->waiting, &share->queued);
	} else if (waits) {
		/* It waits for the first entry that is open: none before it was, and none becomes open again. */
		for (uint32_t i = 0; share->queued.waits; i++) {
			assert(i < window->batches);
			if (sources[i] && sources[i]->state == ENTRY_OPEN)
				gw_queue_drop(&sources[i]->waiting, &share->queued);
		}
	}
	pthread_mutex_unlock(&window->lock);
	return waits;
}

void gw_row_window_leave(struct gw_window_share *share)
{
	struct gw_row_window *window = share->window;
	struct gw_window_entry **sources = share->sources.data;
	if (!share->in_plan)
		return;
	pthread_mutex_lock(&window->lock);
	for (uint32_t i = 0; i < window->batches; i++) {
		if (sources[i])
			entry_leave(window, sources[i]);
	}
	if (share->own && share->own->state == ENTRY_OPEN)
		entry_settle(share->own, ENTRY_FAILED);
	if (share->own)
		entry_leave(window, share->own);
	share->own = NULL;
	share->kept = NULL;
	share->in_plan = false;
	window->planned--;
	pthread_cond_broadcast(&window->moved);
	pthread_mutex_unlock(&window->lock);
}

/* --- Kept rows. --- */

void gw_row_window_hold(struct gw_row_window *window, uint64_t gate)
{
	window->gate = gate;
}

bool gw_row_window_take_kept(struct gw_row_window *window)
{
	pthread_mutex_lock(&window->lock);
	while (!window->given_up && (window->turn < window->gate || window->planned > 0))
		pthread_cond_wait(&window->moved, &window->lock);
	const bool taken = !window->given_up;
	if (taken)
		window->kept = NULL;
	pthread_mutex_unlock(&window->lock);
	return taken;
}

void gw_row_window_set_kept(struct gw_row_window *window, const struct gw_kept_rows *kept, uint64_t gate)
{
	pthread_mutex_lock(&window->lock);
	window->kept = kept;
	window->gate = gate;
	wake_turns(window);
	pthread_mutex_unlock(&window->lock);
}

void gw_row_window_give_up(struct gw_row_window *window)
{
	pthread_mutex_lock(&window->lock);
	window->given_up = true;
	pthread_cond_broadcast(&window->moved);
	pthread_mutex_unlock(&window->lock);
}
