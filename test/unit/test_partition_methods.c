/* The methods lp and kaminpar from inside: the file of symmetric lists compared with a table of all pairs, the shares
 * of parts counted again, and processes of Python that are missing, die, or answer garbage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/graph/part.h"
#include "test/support/partition_oracle.h"
#include "test/support/partition_run.h"
#include "tools/partition/refine.h"

struct opened {
	struct gw_fixture fixture;
	struct gw_graph_meta *meta;
	struct gw_part *part;
	struct gw_plan plan;
	char out[128];
};

static void open_fixture(struct opened *o, uint64_t seed, uint64_t scale)
{
	struct gw_part_options options = {.mapped = true};
	partition_begin(&o->fixture, seed, scale);
	snprintf(o->out, sizeof(o->out), "%s/parts", o->fixture.root);
	assert_int_equal(gw_meta_read(o->fixture.folder, &o->meta), GW_OK);
	assert_int_equal(gw_part_open(o->meta, 0, &options, &o->part), GW_OK);
	o->plan = (struct gw_plan){.parts = 2, .trainers = 1, .out = o->out, .threads = 1, .python = "python3"};
}

static void close_fixture(struct opened *o)
{
	gw_part_close(o->part);
	gw_meta_destroy(o->meta);
	gw_fixture_end(&o->fixture);
}

/* --- The file. --- */

/* [n][n]: whether two nodes are neighbours. */
static uint8_t *pairs_of(const struct opened *o, const struct gw_balance *balance, uint64_t n)
{
	uint8_t *pairs = calloc(n * n, 1);
	assert_non_null(pairs);
	for (uint32_t e = 0; e < o->meta->num_etypes; e++) {
		const struct gw_adjacency *a = gw_part_adjacency(o->part, e);
		for (uint64_t row = 0; row < a->rows; row++) {
			uint64_t from, to, v = balance->base[o->meta->etypes[e].dst] + row;
			gw_adjacency_list(a, row, &from, &to);
			for (uint64_t i = from; i < to; i++) {
				uint64_t u = balance->base[o->meta->etypes[e].src] +
					     gw_load_id(a->indices, a->index_bytes, i);
				if (u != v)
					pairs[u * n + v] = pairs[v * n + u] = 1;
			}
		}
	}
	return pairs;
}

/* The file as its format has it, read without lists.h. */
static void check_file(const struct gw_list_file *lists, const uint8_t *pairs, uint64_t n, bool weights)
{
	uint64_t head[3], next = 0, at;
	assert_int_equal(pread(lists->fd, head, sizeof(head), 0), sizeof(head));
	assert_int_equal(head[0], 1 | (weights ? 0 : 2) | 8 | 16 | 32);
	uint64_t *offset = calloc(head[1] + 1, 8);
	uint32_t *ids = calloc(head[2] + 1, 4), *origin = calloc(n, 4);
	assert_true(offset && ids && origin);
	assert_int_equal(pread(lists->fd, offset, 8 * (head[1] + 1), 24), 8 * (head[1] + 1));
	assert_int_equal(pread(lists->fd, ids, 4 * head[2], (off_t)(24 + 8 * (head[1] + 1))), 4 * head[2]);
	assert_int_equal(offset[0], 24 + 8 * (head[1] + 1));
	assert_int_equal(offset[head[1]], offset[0] + 4 * head[2]);
	for (uint64_t v = 0; v < n; v++) {
		if (memchr(pairs + v * n, 1, n))
			origin[next++] = (uint32_t)v;
	}
	assert_int_equal(next, head[1]);
	for (uint64_t i = 0; i < head[1]; i++) {
		assert_int_equal(lists->origin[i], origin[i]);
		at = (offset[i] - offset[0]) / 4;
		for (uint64_t u = 0; u < n; u++) {
			if (pairs[origin[i] * n + u])
				assert_int_equal(origin[ids[at++]], u);
		}
		assert_int_equal(at, (offset[i + 1] - offset[0]) / 4);
	}
	struct stat found;
	assert_int_equal(fstat(lists->fd, &found), 0);
	assert_int_equal(found.st_size, offset[head[1]] + (weights ? 4 * head[1] : 0));
	assert_int_equal(found.st_nlink, 0); /* nobody has to remove it */
	free(offset);
	free(ids);
	free(origin);
}

static void test_lists(void **state)
{
	static const uint64_t budgets[] = {1, 5000, 1ull << 30};
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct opened o;
		struct gw_balance balance;
		struct gw_spill spill;
		open_fixture(&o, seed, seed == 3 ? 2 : 150);
		assert_int_equal(gw_balance_open(&o.plan, o.part, &balance), GW_OK);
		assert_int_equal(gw_spill_open(&spill, o.out, 0), GW_OK);
		uint64_t n = balance.base[o.meta->num_ntypes];
		uint8_t *pairs = pairs_of(&o, &balance, n);
		for (int i = 0; i < 6; i++) {
			struct gw_list_file lists;
			o.plan.threads = i % 2 ? 4 : 1;
			assert_int_equal(gw_list_file_make(&balance, &spill, budgets[i / 2], i % 2, &lists), GW_OK);
			check_file(&lists, pairs, n, i % 2);
			gw_list_file_close(&lists);
		}
		free(pairs);
		gw_spill_close(&spill);
		gw_balance_free(&balance);
		close_fixture(&o);
	}
}

/* --- The shares. --- */

/* Counts the quantities of each part over the nodes that the lists have, and compares them with the promised limits. */
static void check_shares(const struct opened *o, const struct gw_assignment *assignment)
{
	struct gw_balance balance;
	struct gw_spill spill;
	struct gw_list_file lists;
	assert_int_equal(gw_balance_open(&o->plan, o->part, &balance), GW_OK);
	assert_int_equal(gw_spill_open(&spill, o->out, 0), GW_OK);
	assert_int_equal(gw_list_file_make(&balance, &spill, 1 << 20, false, &lists), GW_OK);
	uint32_t parts = o->plan.parts, quantities = balance.quantities;
	uint64_t *share = calloc((size_t)parts * quantities, 8), quantity[GW_BALANCE_QUANTITIES_MAX];
	uint32_t t = 0, ntype = 0;
	assert_non_null(share);
	for (uint64_t v = 0; v < lists.nodes; v++) {
		while (lists.origin[v] >= balance.base[t + 1])
			t++;
		uint32_t part = assignment->piece[t][lists.origin[v] - balance.base[t]];
		assert_in_range(part, 0, parts - 1);
		gw_balance_of_node(&balance, lists.origin[v], &ntype, quantity);
		for (uint32_t c = 0; c < quantities; c++)
			share[part * quantities + c] += quantity[c];
	}
	for (uint32_t i = 0; i < parts * quantities; i++) {
		double mean = (double)lists.total[i % quantities] / parts;
		if ((double)share[i] > 1.03 * mean && (double)share[i] >= mean + 2 &&
		    share[i] > lists.most[i % quantities])
			fail_msg("part %u, quantity %u: %llu, mean %.1f", i / quantities, i % quantities,
				 (unsigned long long)share[i], mean);
	}
	free(share);
	gw_list_file_close(&lists);
	gw_spill_close(&spill);
	gw_balance_free(&balance);
}

static void test_shares(void **state)
{
	static const uint32_t parts[] = {1, 2, 3, 7, 20};
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct opened o;
		open_fixture(&o, seed, 400 * seed);
		for (int i = 0; i < 20; i++) {
			struct gw_assignment assignment = {0};
			o.plan.parts = parts[i % 5];
			o.plan.balance_train = i / 5 == 1;
			o.plan.balance_edges = i / 5 == 2;
			o.plan.balance_ntypes = i / 5 == 3;
			o.plan.method = GW_PLAN_LP;
			assert_int_equal(gw_assignment_make(&o.plan, o.part, &assignment), GW_OK);
			assert_int_equal(gw_assign(&o.plan, o.part, &assignment), GW_OK);
			check_shares(&o, &assignment);
			gw_assignment_free(&assignment);
		}
		close_fixture(&o);
	}
}

/* --- Python. --- */

/* A program in the place of Python, which gets -c, the script, and the five words of a run. */
static void write_python(const struct opened *o, const char *name, const char *text, char path[300])
{
	snprintf(path, 300, "%s/%s", o->fixture.root, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%s", text);
	fclose(file);
	assert_int_equal(chmod(path, 0700), 0);
}

#define LOOKS "#!/bin/sh\n[ $# -gt 2 ] || exit 0\n"

static void test_python_fails(void **state)
{
	static const struct {
		const char *text, *told;
	} cases[] = {
		{"#!/bin/sh\necho \"No module named 'kaminpar'\"; exit 3\n", "-m pip install kaminpar"},
		{"#!/none/sh\n", "does not run"},
		{LOOKS "kill -9 $$\n", "was killed"},
		{LOOKS "kill -11 $$\n", "died of signal 11"},
		{LOOKS "echo MemoryError: std::bad_alloc; exit 1\n", "ran out of memory"},
		{LOOKS "echo ValueError: Failed to load graph; exit 1\n", "Failed to load graph"},
		{LOOKS "exit 0\n", "for"}, /* no answer */
		{LOOKS "truncate -s 3 /proc/self/fd/$4\n", "answered 3 bytes"},
		{LOOKS "n=$(od -An -tu8 -j8 -N8 /proc/self/fd/$3 | tr -d ' ')\n"
		       "head -c $((4 * n)) /dev/zero | tr '\\0' '\\377' >/proc/self/fd/$4\n"
		       "truncate -s $((4 * n)) /proc/self/fd/$4\n",
		 "into part -1 of 2"},
	};
	struct opened o;
	char path[300];
	const char *words[] = {"--num-parts=2", "--method=kaminpar", "--python", path, NULL};
	(void)state;
	open_fixture(&o, 2, 60);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		write_python(&o, "python", cases[i].text, path);
		partition_expect_error(&o.fixture, o.fixture.folder, o.out, words, 1, cases[i].told);
		assert_int_equal(access(o.out, F_OK), -1);
	}
	snprintf(path, sizeof(path), "%s/none", o.fixture.root);
	partition_expect_error(&o.fixture, o.fixture.folder, o.out, words, 1, "--python names");
	close_fixture(&o);
}

/* An answer in which all nodes are in part 0: the repair gives each part its share. One thread: nothing is kept. */
static void test_python_answers(void **state)
{
	struct opened o;
	struct gw_oracle_result result;
	char path[300], kept[300], threads[32];
	const char *words[] = {"--num-parts=3",   "--method=kaminpar", "--python",  path, threads,
			       "--balance-train", "--balance-edges",   "--replace", NULL};
	(void)state;
	open_fixture(&o, 4, 900);
	write_python(&o, "python",
		     LOOKS "n=$(od -An -tu8 -j8 -N8 /proc/self/fd/$3 | tr -d ' ')\n"
			   "[ $5 = 3 ] || exit 1\ntruncate -s $((4 * n)) /proc/self/fd/$4\n",
		     path);
	snprintf(kept, sizeof(kept), "%s/%s.assignment.npy", o.out, o.meta->graph_name);
	for (int i = 2; i > 0; i--) {
		snprintf(threads, sizeof(threads), "--threads=%d", i);
		partition_run_ok(o.fixture.root, o.fixture.folder, o.out, words);
		gw_oracle_check(o.fixture.folder, o.out, &result);
		assert_int_equal(access(kept, F_OK), i == 2 ? 0 : -1); /* --replace removes it */
		struct gw_assignment assignment = {0};
		o.plan = (struct gw_plan){.parts = 3,
					  .trainers = 1,
					  .out = o.out,
					  .threads = 1,
					  .python = path,
					  .method = GW_PLAN_KAMINPAR,
					  .balance_train = true,
					  .balance_edges = true};
		assert_int_equal(gw_assignment_make(&o.plan, o.part, &assignment), GW_OK);
		assert_int_equal(gw_assign(&o.plan, o.part, &assignment), GW_OK);
		check_shares(&o, &assignment);
		gw_assignment_free(&assignment);
		if (i == 2) { /* the same parts from what was kept */
			char again[128];
			const char *given[] = {"--num-parts=3", "--assignment", kept, NULL};
			uint64_t id = result.graph_id;
			snprintf(again, sizeof(again), "%s/again", o.fixture.root);
			partition_run_ok(o.fixture.root, o.fixture.folder, again, given);
			gw_oracle_check(o.fixture.folder, again, &result);
			(void)id; /* the JSON names another method */
		}
	}
	close_fixture(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_python_fails),
		cmocka_unit_test(test_python_answers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
