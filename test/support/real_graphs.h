/* Real graphs as edge lists, from the folder of test data: $GRAPHWIRE_TEST_DATA, or "shared/data" beside a folder
 * above. */
#ifndef GW_TEST_REAL_GRAPHS_H
#define GW_TEST_REAL_GRAPHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a test that takes a graph all the way takes the large ones too: under a sanitizer that would be minutes, and
 * run no line that the small ones have not run. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REAL_GRAPHS_ALL 0
#else
#define REAL_GRAPHS_ALL 1
#endif

struct real_graph {
	uint64_t nodes, edges, relations; /* relations: 0 unless it is a knowledge graph */
	uint64_t *src, *dst;              /* [edges] */
	uint32_t *rel;                    /* [edges], or NULL */
};

/* name: "cora", "facebook", "cnr-2000", "ego-twitter", "fb15k-237". False where there is no test data, which fails the
 * test if CI=true; a file that cannot be read fails it anyway. */
bool real_graph_load(const char *name, struct real_graph *out);
/* The path of a file in the test data, "cora/cora.npz". False, or a failure, as above. */
bool real_graph_file(const char *relative, char *path, size_t room);
void real_graph_free(struct real_graph *graph);

#endif
