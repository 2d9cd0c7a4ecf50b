/* Functions that end the C objects of Python's objects; owned.h describes them.
 *
 * Errors: the client cannot be opened; memory or descriptors run out. */
#include "python/owned.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct share {
	atomic_size_t count;
	void (*end)(void *what);
	void *what;
};

struct block {
	struct block *next;
	_Alignas(16) unsigned char bytes[];
};

static atomic_uint_fast64_t live_clients, live_shares;

gw_status wait_for(struct gw_ticket **ticket, int64_t timeout_ms)
{
	gw_status status = gw_wait(*ticket, timeout_ms);
	if (status != GW_AGAIN)
		*ticket = NULL;
	return status;
}

void cancel_tickets(struct tickets *tickets)
{
	for (size_t i = 0; i < tickets->count; i++) {
		gw_cancel(tickets->each[i]);
		tickets->each[i] = NULL;
	}
}

static struct share *share_new(void (*end)(void *what), void *what)
{
	struct share *share = malloc(sizeof(*share));
	if (share) {
		atomic_init(&share->count, 1);
		share->end = end;
		share->what = what;
		atomic_fetch_add(&live_shares, 1);
	}
	return share;
}

void share_acquire(struct share *from, struct share **to)
{
	if (from) {
		atomic_fetch_add_explicit(&from->count, 1, memory_order_relaxed);
		atomic_fetch_add(&live_shares, 1);
	}
	*to = from;
}

static void share_release(struct share **place)
{
	struct share *share = *place;
	*place = NULL;
	if (!share)
		return;
	atomic_fetch_sub(&live_shares, 1);
	if (atomic_fetch_sub_explicit(&share->count, 1, memory_order_acq_rel) == 1) {
		share->end(share->what);
		free(share);
	}
}

/* What the shares of a client hold. */
struct opened {
	struct gw_client *client;
	struct landing *landing;
};

static void end_client(void *what)
{
	struct opened *opened = what;
	gw_client_close(opened->client);
	if (opened->landing)
		landing_client_ended(opened->landing);
	free(opened);
	atomic_fetch_sub(&live_clients, 1);
}

gw_status client_open(const struct gw_client_options *options, const struct held_landing *landing,
		      struct held_client *out)
{
	struct opened *opened = calloc(1, sizeof(*opened));
	struct share *share = opened ? share_new(end_client, opened) : NULL;
	if (!share) {
		free(opened);
		return GW_NO_MEMORY;
	}
	struct gw_client_options given = *options;
	if (landing) {
		opened->landing = landing->landing;
		given.memory = landing_lend(opened->landing);
	}
	gw_status status = gw_client_open(&given, &out->client);
	atomic_fetch_add(&live_clients, 1);
	opened->client = out->client;
	out->share = share;
	if (status != GW_OK)
		client_end(out); /* gw_client_close ignores a NULL client */
	return status;
}

void client_end(struct held_client *held)
{
	held->client = NULL;
	share_release(&held->share);
}

void minibatch_end(struct held_minibatch *held)
{
	gw_cancel(held->ticket);
	held->ticket = NULL;
	gw_minibatch_release(held->minibatch);
	held->minibatch = NULL;
	share_release(&held->client);
}

void loader_end(struct held_loader *held)
{
	gw_loader_close(held->loader);
	held->loader = NULL;
	share_release(&held->memory);
	share_release(&held->client);
}

void lookahead_end(struct held_lookahead *held)
{
	gw_lookahead_close(held->lookahead);
	held->lookahead = NULL;
	share_release(&held->client);
}

static void end_memory(void *blocks)
{
	for (struct block *block = blocks, *next; block; block = next) {
		next = block->next;
		free(block);
	}
}

void *memory_copy(struct held_memory *held, const void *bytes, size_t count)
{
	struct block *block = malloc(sizeof(*block) + count);
	if (!held->share)
		held->share = share_new(end_memory, NULL);
	if (!block || !held->share) {
		free(block);
		return NULL;
	}
	memcpy(block->bytes, bytes, count);
	block->next = held->share->what;
	held->share->what = block;
	return block->bytes;
}

void memory_end(struct held_memory *held)
{
	share_release(&held->share);
}

void edge_list_end(struct gw_edge_list **list)
{
	gw_edge_list_free(*list);
	*list = NULL;
}

void held_out_end(struct gw_held_out **held_out)
{
	gw_held_out_close(*held_out);
	*held_out = NULL;
}

void triples_end(struct gw_triples **triples)
{
	gw_triples_close(*triples);
	*triples = NULL;
}

void triple_batch_end(struct gw_triple_batch **batch)
{
	gw_triple_batch_free(*batch);
	*batch = NULL;
}

int guard_pipe(struct held_guard *held)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return errno;
	held->reads = ends[0] + 1;
	held->writes = ends[1] + 1;
	return 0;
}

int guard_lock(struct held_guard *held, const char *path)
{
	struct stat named, opened;
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0)
		return errno == ENOENT ? EAGAIN : errno;
	held->folder = folder + 1;
	if (flock(folder, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return EAGAIN;
	bool is_still = fstat(folder, &opened) == 0 && lstat(path, &named) == 0 && named.st_dev == opened.st_dev &&
			named.st_ino == opened.st_ino;
	return is_still ? 0 : EAGAIN;
}

static void close_held(int *descriptor)
{
	if (*descriptor)
		close(*descriptor - 1);
	*descriptor = 0;
}

void guard_reads_end(struct held_guard *held)
{
	close_held(&held->reads);
}

void guard_end(struct held_guard *held)
{
	close_held(&held->reads);
	close_held(&held->folder); /* unlocks the folder; a process that sweeps now removes the same as the guard */
	close_held(&held->writes);
}

const char *package_version(void)
{
	return GRAPHWIRE_VERSION;
}

struct live count_live(void)
{
	return (struct live){.clients = atomic_load(&live_clients), .shares = atomic_load(&live_shares)};
}
