/* Measures how fast one core can sample: the prototype that `graphwire bench sample` is compared with.
 *
 * It samples uniformly without replacement, with fanouts 15, 10, 5 and 1000 seeds a batch, and relabels the blocks. It
 * has no Graphwire code, no checks and no edge types, and converts int64 arrays to 4-byte ids before it measures. So
 * only the memory system limits it.
 *
 *   seeds -> per hop: offsets of the frontier (prefetched 16 ahead), positions by Floyd's method (each picked
 *   neighbour prefetched as it is drawn), neighbours -> dense map (entry prefetched 16 ahead) -> local numbers
 *
 * The dense map holds {batch, local number} for every node, so that it is never cleared. Nothing is allocated per
 * batch. Threads share the graph and nothing else.
 *
 * usage: limit_sample indptr.npy indices.npy BATCHES [THREADS]     (a CSC of int64; prints one JSON object)
 * build: cc -O3 -march=native limit_sample.c -lpthread             (a ceiling may use all that the machine has)
 * Exits with status 1 and one line if a file is not such an array, or if memory runs out.
 */
#define _GNU_SOURCE
#include <err.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define SEEDS       1000
#define HOPS        3
#define FANOUT_MAX  15
#define AHEAD       16
#define NODES_MAX   2000000u /* distinct nodes of one batch */
#define EDGES_MAX   2000000u /* sampled edges of one hop */
#define THREADS_MAX 64

static const uint32_t fanouts[HOPS] = {15, 10, 5};

static struct {
	const uint64_t *indptr;
	uint32_t *indices;
	size_t nodes, edges;
	int batches;
} graph;

struct worker {
	int number;
	uint64_t edges, inputs; /* results */
	uint64_t *map;          /* [nodes] batch << 32 | local number */
	uint32_t *nodes;        /* [NODES_MAX] the batch's nodes in the order of first use */
	uint32_t *neighbours;   /* [EDGES_MAX] of one hop */
	uint32_t *block;        /* [EDGES_MAX * HOPS] local numbers: the blocks */
	uint64_t *positions;    /* [EDGES_MAX] of one hop */
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

/* Allocates zeroed memory, on huge pages if possible. */
static void *big(size_t bytes)
{
	size_t rounded = (bytes + (2u << 20) - 1) & ~((size_t)(2u << 20) - 1);
	void *memory = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		err(1, "%zu bytes", bytes);
	madvise(memory, rounded, MADV_HUGEPAGE);
	return memory;
}

/* The payload of a one-dimensional int64 .npy file, version 1. */
static int64_t *load(const char *path, size_t *count)
{
	unsigned char start[10];
	FILE *file = fopen(path, "rb");
	if (!file || fread(start, 1, sizeof start, file) != sizeof start || memcmp(start, "\x93NUMPY\x01", 7))
		errx(1, "%s: not a .npy file of version 1", path);
	long header = (long)sizeof start + (start[8] | start[9] << 8);
	fseek(file, 0, SEEK_END);
	*count = (size_t)(ftell(file) - header) / sizeof(int64_t);
	fseek(file, header, SEEK_SET);
	int64_t *array = big(*count * sizeof *array);
	if (fread(array, sizeof *array, *count, file) != *count)
		errx(1, "%s: cannot be read", path);
	fclose(file);
	return array;
}

/* Floyd's method: every set of fanout distinct positions is equally likely. */
static inline void pick(uint64_t random, uint64_t first, uint32_t degree, uint32_t fanout, uint64_t *positions)
{
	uint32_t chosen[FANOUT_MAX + 1];
	for (uint32_t j = 0; j < fanout; j++) {
		random = mix(random + j);
		uint32_t t = (uint32_t)(((random >> 32) * (degree - fanout + j + 1)) >> 32);
		for (uint32_t q = 0; q < j; q++) {
			if (chosen[q] == t) {
				t = degree - fanout + j;
				break;
			}
		}
		chosen[j] = t;
		positions[j] = first + t;
		__builtin_prefetch(&graph.indices[first + t]);
	}
}

/* Returns their number. */
static size_t choose(const struct worker *w, uint32_t frontier, uint32_t fanout, uint64_t key)
{
	size_t n = 0;
	for (uint32_t i = 0; i < frontier; i++) {
		if (i + AHEAD < frontier)
			__builtin_prefetch(&graph.indptr[w->nodes[i + AHEAD]]);
		uint32_t node = w->nodes[i];
		uint64_t first = graph.indptr[node];
		uint32_t degree = (uint32_t)(graph.indptr[node + 1] - first);
		if (degree > fanout) {
			pick(key ^ (node * 0x9e3779b97f4a7c15ull), first, degree, fanout, w->positions + n);
			n += fanout;
			continue;
		}
		for (uint32_t j = 0; j < degree; j++)
			w->positions[n++] = first + j;
		if (degree)
			__builtin_prefetch(&graph.indices[first]);
	}
	return n;
}

/* The local number of a node; a node without a number gets the next one. */
static inline uint32_t number(struct worker *w, uint32_t node, uint64_t batch, uint32_t *count)
{
	uint64_t entry = w->map[node];
	if (entry >> 32 != batch) {
		entry = batch << 32 | *count;
		w->map[node] = entry;
		w->nodes[(*count)++] = node;
	}
	return (uint32_t)entry;
}

/* The map is read AHEAD entries after its prefetch. */
static void relabel(struct worker *w, size_t n, uint64_t batch, uint32_t *count)
{
	size_t tail = n > AHEAD ? n - AHEAD : 0;
	for (size_t j = 0; j < n; j++) {
		uint32_t node = graph.indices[w->positions[j]];
		w->neighbours[j] = node;
		__builtin_prefetch(&w->map[node], 1);
		if (j >= AHEAD)
			w->block[j - AHEAD] = number(w, w->neighbours[j - AHEAD], batch, count);
	}
	for (size_t j = tail; j < n; j++)
		w->block[j] = number(w, w->neighbours[j], batch, count);
}

static void *work(void *context)
{
	struct worker *w = context;
	w->map = big(graph.nodes * sizeof *w->map);
	w->nodes = big(NODES_MAX * sizeof *w->nodes);
	w->neighbours = big(EDGES_MAX * sizeof *w->neighbours);
	w->block = big((size_t)EDGES_MAX * HOPS * sizeof *w->block);
	w->positions = big(EDGES_MAX * sizeof *w->positions);
	for (uint64_t b = 0; b < (uint64_t)graph.batches; b++) {
		uint32_t count = 0;
		for (uint64_t i = 0; i < SEEDS; i++)
			number(w, (uint32_t)(mix((uint64_t)w->number * 1000003 + b * 1000 + i) % graph.nodes), b + 1,
			       &count);
		for (uint32_t hop = 0; hop < HOPS; hop++) {
			size_t n = choose(w, count, fanouts[hop], mix(b * HOPS + hop + 1));
			relabel(w, n, b + 1, &count);
			w->edges += n;
		}
		w->inputs += count;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		errx(2, "usage: limit_sample indptr.npy indices.npy BATCHES [THREADS]");
	size_t offsets;
	graph.indptr = (const uint64_t *)load(argv[1], &offsets);
	int64_t *ids = load(argv[2], &graph.edges);
	graph.nodes = offsets - 1;
	graph.batches = atoi(argv[3]);
	int threads = argc > 4 ? atoi(argv[4]) : 1;
	if (offsets < 2 || graph.nodes > UINT32_MAX || graph.batches < 1 || threads < 1 || threads > THREADS_MAX)
		errx(2, "a graph of 1 to 2^32-1 nodes, 1 batch or more, 1 to %d threads", THREADS_MAX);
	graph.indices = big(graph.edges * sizeof *graph.indices);
	for (size_t i = 0; i < graph.edges; i++)
		graph.indices[i] = (uint32_t)ids[i];

	static struct worker workers[THREADS_MAX];
	pthread_t handles[THREADS_MAX];
	double start = now();
	for (int i = 0; i < threads; i++) {
		workers[i].number = i;
		if (pthread_create(&handles[i], NULL, work, &workers[i]))
			errx(1, "thread %d cannot be made", i);
	}
	uint64_t edges = 0, inputs = 0;
	for (int i = 0; i < threads; i++) {
		pthread_join(handles[i], NULL);
		edges += workers[i].edges;
		inputs += workers[i].inputs;
	}
	double seconds = now() - start;
	uint64_t batches = (uint64_t)threads * (uint64_t)graph.batches;
	printf("{\"peer\":\"prototype local\",\"threads\":%d,\"edges_per_s\":%.0f,\"batches_per_s\":%.1f,"
	       "\"edges_per_batch\":%lu,\"inputs_per_batch\":%lu}\n",
	       threads, (double)edges / seconds, (double)batches / seconds, edges / batches, inputs / batches);
	return 0;
}
