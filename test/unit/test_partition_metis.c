/* The code around METIS: the symmetric graph compared with a table of all pairs, refusals, and the rights of its
 * process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/numbers/rng.h"
#include "core/system/progress.h"
#include "test/support/alloc_fault.h"
#include "tools/partition/plan.h"
#include "tools/partition/symmetric.h"

#define NODES 900u

/* Edges in CSC, more to low ids: a hub with over 512 distinct neighbours, loops, repeats, isolated nodes. */
struct edges {
	uint32_t indptr[NODES + 1], indices[40 * NODES], count;
};

static void draw_edges(struct edges *edges, uint64_t seed, uint32_t per_node)
{
	struct gw_draws draws = gw_draws_begin(gw_draw_key(seed, 0, GW_DRAW_WALK, 0, 0), 1);
	edges->count = 0;
	for (uint32_t v = 0; v < NODES; v++) {
		edges->indptr[v] = edges->count;
		uint32_t n = v == 0 ? 20 * per_node : v % 3 == 0 ? 0 : gw_draw_below(&draws, per_node + 1);
		for (uint32_t i = 0; i < n; i++)
			edges->indices[edges->count++] =
				v == 0 ? gw_draw_below(&draws, NODES - 50)
				       : gw_draw_below(&draws, 1 + gw_draw_below(&draws, NODES - 50));
	}
	edges->indptr[NODES] = edges->count;
}

static struct gw_adjacency view(const struct edges *edges)
{
	return (struct gw_adjacency){.indptr = edges->indptr,
				     .indices = edges->indices,
				     .rows = NODES,
				     .edges = edges->count,
				     .columns = 1,
				     .indptr_bytes = 4,
				     .index_bytes = 4};
}

static void test_symmetric(void **state)
{
	static const uint64_t bases[2][2] = {{0, 0}, {NODES, 2 * NODES}};
	struct edges *edges = calloc(2, sizeof(*edges));
	uint32_t n = 3 * NODES;
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		int32_t *table = calloc((size_t)n * n, sizeof(*table));
		struct gw_symmetric_source sources[2];
		struct gw_adjacency views[2];
		uint64_t loops = 0, total = 0;
		for (int e = 0; e < 2; e++) {
			draw_edges(&edges[e], seed * 2 + (uint64_t)e, seed == 4 ? 0 : 3 * (uint32_t)seed * 3);
			views[e] = view(&edges[e]);
			sources[e] = (struct gw_symmetric_source){&views[e], bases[e][0], bases[e][1], false};
			for (uint32_t v = 0; v < NODES; v++) {
				for (uint32_t i = edges[e].indptr[v]; i < edges[e].indptr[v + 1]; i++) {
					uint64_t a = bases[e][0] + edges[e].indices[i], b = bases[e][1] + v;
					loops += a == b;
					total++;
					if (a != b) {
						table[a * n + b]++;
						table[b * n + a]++;
					}
				}
			}
		}
		for (unsigned threads = 1; threads <= 4; threads += 3) {
			struct gw_symmetric graph;
			assert_int_equal(gw_symmetric_build(sources, 2, n, threads, &graph), GW_OK);
			assert_int_equal(graph.edges, total - loops);
			assert_int_equal(gw_symmetric_loops(sources, 2, threads), loops);
			uint64_t next = 0, entry = 0;
			for (uint32_t v = 0; v < n; v++) {
				uint64_t first = entry;
				for (uint32_t w = 0; w < n; w++) {
					if (table[(size_t)v * n + w] == 0)
						continue;
					assert_true(entry < graph.entries);
					assert_int_equal(graph.origin[graph.adjncy[entry]], w);
					assert_int_equal(graph.adjwgt[entry++], table[(size_t)v * n + w]);
				}
				if (entry == first)
					continue;
				assert_int_equal(graph.origin[next], v);
				assert_int_equal(graph.xadj[next++], first);
			}
			assert_int_equal(next, graph.nodes);
			assert_int_equal(entry, graph.entries);
			assert_int_equal(graph.xadj[next], entry);
			gw_symmetric_free(&graph);
		}
		free(table);
	}
	free(edges);
}

static gw_status build_once(void *context)
{
	struct gw_symmetric graph;
	gw_status status = gw_symmetric_build(context, 1, NODES, 2, &graph);
	if (status != GW_OK)
		assert_null(graph.arena);
	gw_symmetric_free(&graph);
	return status;
}

static void test_symmetric_memory_short(void **state)
{
	struct edges *edges = calloc(1, sizeof(*edges));
	(void)state;
	draw_edges(edges, 3, 30);
	struct gw_adjacency adjacency = view(edges);
	struct gw_symmetric_source source = {&adjacency, 0, 0, false};
	assert_true(gw_fault_each(build_once, &source) > 0);
	free(edges);
}

/* Counts that are too large for a test: no arrays exist, and only the counts are read. */
static void test_too_big(void **state)
{
	const uint64_t most = INT32_MAX;
	(void)state;
	assert_int_equal(gw_metis_check_counts(most - 1, most / 2 - 1, 0, 1), GW_OK);
	assert_int_equal(gw_metis_check_counts(most, 10, 0, 1), GW_LIMIT);
	assert_non_null(strstr(gw_last_error(), "--method random"));
	assert_int_equal(gw_metis_check_counts(10, most / 2, 0, 1), GW_LIMIT);
	assert_non_null(strstr(gw_last_error(), "--method random"));
	assert_int_equal(gw_metis_check_counts(10, 10, most - 10, 1), GW_LIMIT);
	assert_int_equal(gw_metis_check_counts(10, 10, UINT32_MAX, 1), GW_LIMIT);
	assert_int_equal(gw_metis_check_counts(10, 10, 0, GW_PLAN_CONSTRAINTS_MAX), GW_OK);
	assert_int_equal(gw_metis_check_counts(10, 10, 0, GW_PLAN_CONSTRAINTS_MAX + 1), GW_LIMIT);
	assert_true(gw_metis_bytes(1000, 2000, 2, 4) > gw_metis_bytes(1000, 2000, 1, 4));
	assert_true(gw_metis_bytes(1ull << 30, 1ull << 31, 1, 8) > 1ull << 36);

	/* and by an adjacency that claims to have as many */
	uint32_t none[2] = {0, 0};
	struct gw_adjacency huge = {.indptr = none, .rows = 1, .edges = most, .columns = 1, .indptr_bytes = 4};
	struct gw_symmetric_source source = {&huge, 0, 5, false};
	struct gw_symmetric graph;
	assert_int_equal(gw_symmetric_build(&source, 1, 6, 1, &graph), GW_LIMIT);
}

/* Rings of nodes: `pieces` rings, `nodes` in all. */
static gw_status run_ring(int32_t nodes, int32_t pieces, uint64_t seed, enum gw_plan_objective objective,
			  int32_t *piece, int64_t *measure)
{
	int32_t *xadj = malloc(((size_t)nodes + 1) * 4), *adjncy = malloc((size_t)nodes * 8);
	assert_true(xadj && adjncy);
	for (int32_t v = 0; v < nodes; v++) {
		xadj[v] = 2 * v;
		adjncy[2 * v] = (v + nodes - 1) % nodes;
		adjncy[2 * v + 1] = (v + 1) % nodes;
	}
	xadj[nodes] = 2 * nodes;
	struct gw_metis_job job = {.nodes = nodes,
				   .constraints = 1,
				   .pieces = pieces,
				   .xadj = xadj,
				   .adjncy = adjncy,
				   .objective = objective,
				   .seed = seed,
				   .piece = piece};
	gw_status status = gw_metis_run(&job);
	*measure = job.measure;
	free(xadj);
	free(adjncy);
	return status;
}

static void test_run(void **state)
{
	int32_t piece[200], again[200];
	int64_t measure, cut = 0;
	(void)state;
	assert_int_equal(run_ring(200, 4, 1, GW_PLAN_CUT, piece, &measure), GW_OK);
	for (int v = 0; v < 200; v++)
		cut += piece[v] != piece[(v + 1) % 200];
	assert_int_equal(measure, cut);
	assert_in_range(cut, 4, 8);
	srand(77); /* METIS must not use this process's random numbers */
	int want = rand();
	srand(77);
	assert_int_equal(run_ring(200, 4, 1, GW_PLAN_CUT, again, &measure), GW_OK);
	assert_int_equal(rand(), want);
	assert_memory_equal(piece, again, sizeof(piece));
}

/* The volume as its header defines it: for each node, the number of other parts with neighbours of it. */
static void test_run_volume(void **state)
{
	int32_t piece[200];
	int64_t measure, volume = 0;
	(void)state;
	assert_int_equal(run_ring(200, 4, 1, GW_PLAN_VOL, piece, &measure), GW_OK);
	for (int v = 0; v < 200; v++) {
		int32_t left = piece[(v + 199) % 200], right = piece[(v + 1) % 200];
		volume += (left != piece[v]) + (right != piece[v] && right != left);
	}
	assert_int_equal(measure, volume);
	assert_in_range(volume, 8, 16);
}

static void run_short_of_memory(void)
{
	enum { NODES_MANY = 2000000 };
	unsigned long pages = 0;
	int32_t *piece = malloc(NODES_MANY * sizeof(*piece));
	int64_t measure;
	FILE *file = fopen("/proc/self/statm", "r");
	bool known = file && fscanf(file, "%lu", &pages) == 1;
	struct rlimit limit = {.rlim_cur = pages * (unsigned long)sysconf(_SC_PAGESIZE) + (64ul << 20),
			       .rlim_max = RLIM_INFINITY};
	if (!piece || !known || setrlimit(RLIMIT_AS, &limit) != 0)
		_exit(2);
	gw_status status = run_ring(NODES_MANY, 4, 1, GW_PLAN_CUT, piece, &measure);
	_exit(status == GW_NO_MEMORY && strstr(gw_last_error(), "--method random") ? 0 : 1);
}

static void test_run_memory_short(void **state)
{
	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* their shadow memory exceeds any such limit */
#endif
	int status;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0)
		run_short_of_memory();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_progress_shows_time_without_rate(void **state)
{
	struct gw_progress progress;
	char text[256] = "";
	int saved = dup(2), file = memfd_create("stderr", MFD_CLOEXEC);
	(void)state;
	fflush(stderr);
	dup2(file, 2);
	gw_progress_begin(&progress, "METIS", NULL, 0);
	progress.next_ns = 0;
	gw_progress_update(&progress, 0);
	gw_progress_end(&progress, 0);
	dup2(saved, 2);
	assert_true(pread(file, text, sizeof(text) - 1, 0) > 0);
	close(file);
	close(saved);
	assert_memory_equal(text, "METIS: ", 7);
	assert_null(strchr(text, '/'));
}

/* Input that METIS refuses, or that kills it, gives an error here, and the program continues. */
static void test_run_fails(void **state)
{
	int32_t piece[200], xadj[3] = {0, 1, 2}, adjncy[2] = {1, 0};
	int64_t measure;
	(void)state;
	assert_int_equal(run_ring(200, 0, 1, GW_PLAN_CUT, piece, &measure), GW_INVALID);
	assert_non_null(strstr(gw_last_error(), "--method random"));
	struct gw_metis_job job = {
		.nodes = 2, .constraints = 1, .pieces = 2, .xadj = (int32_t *)8, .adjncy = adjncy, .piece = piece};
	assert_int_not_equal(gw_metis_run(&job), GW_OK);
	assert_non_null(strstr(gw_last_error(), "METIS"));
	job.xadj = xadj;
	assert_int_equal(gw_metis_run(&job), GW_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symmetric),
		cmocka_unit_test(test_symmetric_memory_short),
		cmocka_unit_test(test_too_big),
		cmocka_unit_test(test_run),
		cmocka_unit_test(test_run_volume),
		cmocka_unit_test(test_run_memory_short),
		cmocka_unit_test(test_progress_shows_time_without_rate),
		cmocka_unit_test(test_run_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
