/* An allocator that counts the bytes that are held, for tests of how much memory something takes. Only what goes
 * through core/memory/alloc.h is seen; a block counts with its usable size. Any number of threads may allocate
 * meanwhile. */
#ifndef GW_TEST_HELD_H
#define GW_TEST_HELD_H

void gw_held_begin(void);
/* Bytes of blocks that were allocated since begin and not freed (less those of older blocks that were freed); the most
 * at any time since begin; the number of allocations. */
long gw_held_bytes(void);
long gw_held_peak(void);
unsigned long gw_held_allocations(void);
/* Restores libc's allocator. Returns gw_held_bytes. */
long gw_held_end(void);

#endif
