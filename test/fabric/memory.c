/* The device's memory: regions by their keys, and copies in the way of a device. See fabric.h. */
#include <stdlib.h>

#include "core/numbers/rng.h"
#include "test/fabric/fabric.h"

#undef ibv_reg_mr

#define MRS_MAX 65536

struct fabric_mr {
	struct ibv_mr ibv;
	int access;
};

static struct {
	struct fabric_mr *by_key[MRS_MAX];
	uint32_t readable; /* memory regions that peers may read */
	uint64_t pinned;   /* bytes of the others */
	uint32_t next_key;
	uint64_t seed;
} regions = {.next_key = 1};

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *memory, size_t bytes, int access)
{
	struct fabric_mr *mr = fabric_calloc(sizeof(*mr));
	pthread_mutex_lock(&fabric_lock);
	uint32_t key = regions.next_key++; /* a key is never reused, so an old key matches no region */
	fabric_must(key < MRS_MAX, "more keys than the device has");
	*mr = (struct fabric_mr){
		.ibv = {.context = pd->context, .pd = pd, .addr = memory, .length = bytes, .lkey = key, .rkey = key},
		.access = access};
	regions.by_key[key] = mr;
	regions.readable += access & IBV_ACCESS_REMOTE_READ ? 1 : 0;
	regions.pinned += access & IBV_ACCESS_REMOTE_READ ? 0 : bytes;
	pthread_mutex_unlock(&fabric_lock);
	return &mr->ibv;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *memory, size_t bytes, uint64_t iova, unsigned access)
{
	fabric_must(iova == (uintptr_t)memory, "memory registered at another address");
	return ibv_reg_mr(pd, memory, bytes, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct fabric_mr *mr = (struct fabric_mr *)ibv;
	pthread_mutex_lock(&fabric_lock);
	fabric_must(regions.by_key[ibv->lkey] == mr, "a memory region that does not exist is deregistered");
	regions.by_key[ibv->lkey] = NULL;
	regions.readable -= mr->access & IBV_ACCESS_REMOTE_READ ? 1 : 0;
	regions.pinned -= mr->access & IBV_ACCESS_REMOTE_READ ? 0 : ibv->length;
	pthread_mutex_unlock(&fabric_lock);
	free(mr);
	return 0;
}

unsigned fabric_readable(void)
{
	pthread_mutex_lock(&fabric_lock);
	unsigned count = regions.readable;
	pthread_mutex_unlock(&fabric_lock);
	return count;
}

uint64_t fabric_pinned(void)
{
	return regions.pinned;
}

uint64_t fabric_registrations(void)
{
	return regions.next_key - 1;
}

bool fabric_mr_holds(uint32_t key, uint64_t at, uint64_t bytes, int access)
{
	const struct fabric_mr *mr = key < MRS_MAX ? regions.by_key[key] : NULL;
	if (!mr || (mr->access & access) != access)
		return false;
	uint64_t base = (uintptr_t)mr->ibv.addr;
	return at >= base && bytes <= mr->ibv.length && at - base <= mr->ibv.length - bytes;
}

/* A word at any alignment. */
struct fabric_word {
	uint64_t word;
} __attribute__((packed, may_alias));

/* Reads and writes memory as a device does, invisibly to the thread sanitizer. An aligned word is read at once. */
__attribute__((no_sanitize_thread, no_sanitize("undefined"))) static void copy_piece(uint8_t *to, const uint8_t *from,
										     uint32_t bytes)
{
	uint32_t at = 0;
	for (; at + 8 <= bytes; at += 8)
		((volatile struct fabric_word *)(void *)(to + at))->word =
			((const volatile struct fabric_word *)(const void *)(from + at))->word;
	for (; at < bytes; at++)
		((volatile uint8_t *)to)[at] = ((const volatile uint8_t *)from)[at];
}

void fabric_copy(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
	uint32_t piece = 8u << gw_mix64(++regions.seed) % 6, most = bytes / 64 & ~7u;
	piece = piece < most ? most : piece;
	uint32_t n = (bytes + piece - 1) / piece, first = n ? (uint32_t)(gw_mix64(++regions.seed) % n) : 0;
	for (uint32_t p = 0; p < n; p++) {
		uint32_t at = (first + p) % n * piece;
		copy_piece(to + at, from + at, bytes - at < piece ? bytes - at : piece);
	}
}

bool fabric_mr_in(const struct ibv_pd *pd)
{
	for (uint32_t key = 1; key < regions.next_key; key++)
		if (regions.by_key[key] && regions.by_key[key]->ibv.pd == pd)
			return true;
	return false;
}
