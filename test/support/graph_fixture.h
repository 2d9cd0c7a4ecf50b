/* A small graph with everything the format has, written to a temporary folder: what tests of the format stand on.
 *
 *   node types  paper (string ids; feat float32 [5], label int64, train_mask bool), author (int64 ids; half bfloat16
 *               [2, 2], q int8_row [12]), venue (no edges, nothing but a feature)
 *   edge types  author:writes:paper (transposed; orig_id), paper:written-by:author (its reverse),
 *               paper:cites:paper (by time; weight float32 and its alias table),
 *               author:knows:author (fused, 7 relations)
 *
 * Ids, edges and values depend on the seed alone, ranges on the number of parts; with three parts or more, part 1 is
 * empty.
 */
#ifndef GW_TEST_GRAPH_FIXTURE_H
#define GW_TEST_GRAPH_FIXTURE_H

#include "core/graph/meta.h"
#include "core/graph/writer.h"

#define GW_FIXTURE_NTYPES 3
#define GW_FIXTURE_ETYPES 4

enum { FIXTURE_WRITES, FIXTURE_WRITTEN_BY, FIXTURE_CITES, FIXTURE_KNOWS };

struct gw_fixture_edges { /* in CSC order of the whole graph */
	uint64_t count;
	uint64_t *indptr, *src, *dst;
	int64_t *time;
	uint32_t *rel;
};

struct gw_fixture {
	char root[64];   /* a temporary folder, removed by gw_fixture_end */
	char folder[96]; /* root/graph: where the graph is written */
	struct gw_graph_meta *schema;
	struct gw_fixture_edges edges[GW_FIXTURE_ETYPES];
};

/* Makes a new temporary folder; the caller removes it. */
void gw_test_folder(char path[64]);

/* Makes ids and edges in memory; fails the test when it cannot. scale: nodes of paper. */
void gw_fixture_begin(struct gw_fixture *fixture, uint64_t seed, uint64_t scale, uint32_t parts);
/* Graphs that are written from now on have times: papers (int64) and authors (float64) a feature born and its index,
 * and cites the fence of its year. Papers (int64) and authors (float32) also have an end: gone. */
void gw_fixture_give_times(bool give);
/* The same from a group's set-up to its tear-down. */
int gw_fixture_times_set_up(void **state);
int gw_fixture_times_tear_down(void **state);
/* The time of a paper or an author. One node is the first of its type, 5 are born up to GW_FIXTURE_BORN_5, 51 up to
 * GW_FIXTURE_BORN_51; many of the others have equal times, up to GW_FIXTURE_BORN_ALL. */
double gw_fixture_born(const struct gw_fixture *fixture, uint32_t ntype, uint64_t id);
#define GW_FIXTURE_BORN_1   (-1000)
#define GW_FIXTURE_BORN_5   (-896)
#define GW_FIXTURE_BORN_51  (-798)
#define GW_FIXTURE_BORN_ALL 39
/* Its end, which is soon; or, of the first node and of one in 64, never: of papers NaN, of authors later than
 * GW_FIXTURE_NEVER. */
double gw_fixture_gone(const struct gw_fixture *fixture, uint32_t ntype, uint64_t id);
#define GW_FIXTURE_NEVER 1e15
/* Writes all arrays of all parts into a writer. */
gw_status gw_fixture_fill(const struct gw_fixture *fixture, struct gw_writer *writer);
/* Opens, fills, indexes the original ids and commits under fixture->folder; fails the test when it cannot. */
void gw_fixture_write(const struct gw_fixture *fixture);
void gw_fixture_end(struct gw_fixture *fixture);
/* The JSON of a small graph in two parts, of several types, which reads well, of minor version 1: from a group's set-up
 * to its tear-down.
 */
extern char *gw_fixture_json;
int gw_fixture_json_set_up(void **state);
int gw_fixture_json_tear_down(void **state);

#endif
