/* Memory of Python, into which rows of mini-batches land (gw_client_options.memory). The library's threads take it
 * without Python's lock.
 *
 *   landing_put ─▶ spare ─▶ acquire, in a thread of the library ─▶ lent ─▶ release ─▶ gone
 *                    ▲                                                                  │
 *        Python puts others ◀─ landing_tend: which are gone, and what sizes are needed ◀┘
 *
 * A block is lent once. Python's object of a block that is gone may still be read, by arrays of the caller or by a GPU.
 * Only the allocator behind it (torch's, for pinned memory) knows when the last copy to a GPU has ended, so Python
 * drops the object and asks the allocator for another one. acquire returns NULL for rows that are few, while the
 * landing is off, and if no spare block fits; they land in the library's memory then.
 *
 * Blocks have powers of two of bytes. landing_tend keeps as many spare blocks of each size as were taken at most
 * between two calls; 64 calls after the last such time it keeps one less.
 */
#ifndef PYTHON_LANDING_H
#define PYTHON_LANDING_H

#include <graphwire/graphwire.h>

struct landing;

struct held_landing {
	struct landing *landing;
};

/* Both return false if memory runs out. */
bool landing_begin(struct held_landing *held);
/* Adds a spare block of `bytes`, a power of two. It stays the caller's, who frees it once it is gone, or the client is
 * closed. */
bool landing_put(const struct held_landing *held, void *memory, uint64_t bytes);

/* Off, as at first: acquire returns NULL. */
void landing_turn(const struct held_landing *held, bool on);

#define LANDING_SIZES 64

/* Removes blocks that are gone, and spare ones that are too many, at most `room`, and writes their addresses. needed:
 * [64], where needed[i] blocks of 2^i bytes should be added. Returns how many were removed. */
size_t landing_tend(const struct held_landing *held, uintptr_t *removed, size_t room, uint32_t *needed);

/* Whether the client of the landing was closed: nothing touches the blocks any more. */
bool landing_is_over(const struct held_landing *held);

/* The landing is freed when Python and its client have both ended it. */
void landing_end(struct held_landing *held);

/* For owned.c: the functions for a client's options. The client uses the landing until landing_client_ended. */
struct gw_landing_memory landing_lend(struct landing *landing);
void landing_client_ended(struct landing *landing);

#endif
