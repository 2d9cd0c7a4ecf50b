/* Partitioning: from a graph of one part to a graph of many.
 *
 *   gw_assign_metis, gw_assign_random or gw_assign_given: assign every node to a part
 *       -> gw_split: write the parts -> gw_plan_report_print: report the result
 */
#ifndef GW_TOOLS_PARTITION_PLAN_H
#define GW_TOOLS_PARTITION_PLAN_H

#include <stdbool.h>
#include <stdio.h>

#include "core/graph/part.h"
#include "tools/store.h"
#include "tools/times.h"

enum gw_plan_method { GW_PLAN_METIS, GW_PLAN_RANDOM, GW_PLAN_KAMINPAR, GW_PLAN_LP, GW_PLAN_AUTO, GW_PLAN_GIVEN };
enum gw_plan_objective { GW_PLAN_CUT, GW_PLAN_VOL };

#define GW_PLAN_TRAIN_MASK      "train_mask" /* the node feature that --balance-train uses */
#define GW_PLAN_TRAINER_ID      "trainer_id" /* the feature of nodes and edges if a machine has several trainers */
#define GW_PLAN_CONSTRAINTS_MAX 32u
#define GW_PLAN_NUMBERS_MAX     32u /* classes that --balance-nodes numbers in a node type */

/* An edge feature of the input that gets an alias table in every part. */
struct gw_plan_weight {
	uint32_t etype;
	char name[GW_NAME_MAX + 1];
	const struct gw_array *array; /* of the input */
};

struct gw_plan_weights {
	struct gw_plan_weight *list; /* [count] */
	uint32_t count;
};

/* The class number of each node of a type, 0 to count - 1; of is NULL for a type whose nodes have no numbers. */
struct gw_plan_numbers {
	const uint8_t *of; /* [nodes of the type] */
	uint32_t count;
};

struct gw_plan {
	uint32_t parts;
	uint32_t trainers; /* trainers of each machine; if above 1, each part is cut into this number of pieces */
	enum gw_plan_method method;
	bool chosen; /* gw_plan_choose has set the method */
	enum gw_plan_objective objective;
	bool balance_train, balance_edges, balance_ntypes;
	const struct gw_plan_numbers *numbers; /* [ntypes], or NULL: classes that the user numbers */
	const char *const *given;              /* [given_count]: the words of --assignment */
	uint32_t given_count;
	uint64_t seed;
	unsigned threads;   /* 0: all processors */
	const char *python; /* the program that runs KaMinPar */
	const char *out;    /* temporary files are in the folder of this path */
	/* Bytes that the method may use; 0: the free memory. Half of it is for the lists of a part; 0: 0.35 of the free
	 * memory. What exceeds that is in temporary files. */
	uint64_t memory_max;
	struct gw_plan_weights weights; /* the caller frees them */
	struct gw_time_plan times;      /* the same; zeroed: lists keep their order */
	struct gw_store_plan stores;    /* the same; zeroed: rows keep their types */
};

/* Finds the features that words name, "NAME" for each edge type that has it or "SRC:REL:DST:NAME", and checks them.
 * words: [count]. threads: 0: all processors. GW_NOT_FOUND lists the features that can be weights; GW_UNSUPPORTED: a
 * dtype or shape that cannot be; GW_RANGE names the edge with a negative, infinite or NaN weight; GW_NO_MEMORY. */
gw_status gw_plan_weights_find(const char *const *words, uint32_t count, const struct gw_part *part, unsigned threads,
			       struct gw_plan_weights *out);
void gw_plan_weights_free(struct gw_plan_weights *weights); /* zeroed ones are allowed */

/* Makes the plan of --time for a graph of one part: gw_time_plan_make. GW_NOT_FOUND lists the features that can be
 * times; GW_INVALID: an array of an older graph has a name that the format uses for times. Without words *out is
 * zeroed. */
gw_status gw_plan_times_find(const char *const *words, uint32_t count, const struct gw_part *part, unsigned threads,
			     struct gw_time_plan *out);

/* "metis" and so on, as the JSON has it. */
const char *gw_plan_method_name(enum gw_plan_method method);

/* The node type and the path of a word "TYPE=FILE", or "FILE" in a graph of one node type. GW_NOT_FOUND, GW_INVALID. */
gw_status gw_plan_type_of_word(const struct gw_graph_meta *meta, const char *word, const char **path, uint32_t *ntype);

/* Makes the plan of --store for a graph of one part: gw_store_plan_make. GW_NOT_FOUND lists the features whose rows can
 * be narrow. Without words *out is zeroed. */
gw_status gw_plan_stores_find(const char *const *words, uint32_t count, const struct gw_part *part, unsigned threads,
			      const struct gw_plan_weights *weights, const struct gw_time_plan *times,
			      struct gw_store_plan *out);

/* Reads the files of words "TYPE=FILE", or "FILE" in a graph of one node type. words: [count]; without words *out is
 * NULL. GW_NOT_FOUND, GW_INVALID, GW_RANGE and the errors of gw_npy_open name the option and the file. */
struct gw_plan_number_files;
gw_status gw_plan_numbers_read(const char *const *words, uint32_t count, const struct gw_graph_meta *meta,
			       struct gw_plan_number_files **out);
const struct gw_plan_numbers *gw_plan_numbers_of(const struct gw_plan_number_files *files); /* NULL: of none */
void gw_plan_numbers_free(struct gw_plan_number_files *files);                              /* NULL is allowed */

/* The classes of nodes that are balanced separately: one class for all nodes, or one for each type. Numbers divide a
 * type's class into several, and a training mask into the training set and the rest. */
struct gw_plan_classes {
	uint32_t count;
	uint32_t *first;                 /* [ntypes]: the class of the number 0 */
	struct gw_plan_numbers *numbers; /* [ntypes]: of a training mask, numbers that are not 0 count as 1 */
};

/* Makes the classes that the plan's options ask for. GW_NOT_FOUND: --balance-train is set, but no node type has the
 * mask. */
gw_status gw_plan_classes_make(const struct gw_plan *plan, const struct gw_part *part, struct gw_plan_classes *out);
void gw_plan_classes_free(struct gw_plan_classes *classes);

/* The number of a node within its type's classes. */
static inline uint32_t gw_plan_number(const struct gw_plan_numbers *numbers, uint64_t node)
{
	if (!numbers->of)
		return 0;
	return numbers->of[node] < numbers->count ? numbers->of[node] : numbers->count - 1;
}

static inline uint32_t gw_plan_class(const struct gw_plan_classes *classes, uint32_t ntype, uint64_t node)
{
	return classes->first[ntype] + gw_plan_number(&classes->numbers[ntype], node);
}

/* The piece of every node: part * trainers + trainer. */
struct gw_assignment {
	uint32_t pieces; /* parts * trainers */
	uint32_t num_ntypes;
	uint16_t **piece;   /* [ntypes][count of the type] */
	uint64_t objective; /* METIS's own result: weight cut or communication volume, over the pieces */
	bool has_objective;
	const char *process; /* the method ran in a process of its own: its name; static */
	uint64_t file_bytes; /* of temporary files */
	bool keep;           /* another run may give another assignment: gw_split writes it to a file of the graph */
	const char *note;    /* a note for the user about the assignment, or NULL; static */
	double symmetric_s, method_s;
};

/* Allocates the pieces of all nodes, all 0. */
gw_status gw_assignment_make(const struct gw_plan *plan, const struct gw_part *part, struct gw_assignment *out);
void gw_assignment_free(struct gw_assignment *assignment); /* a zeroed one is allowed */

/* Distributes the nodes of each type over the pieces by a keyed permutation; if the plan asks for it, the training set
 * and the rest are distributed separately. Sizes differ by one at most. Edges balance by chance only. */
gw_status gw_assign_random(const struct gw_plan *plan, const struct gw_part *part, struct gw_assignment *assignment);

/* Takes the parts that the files of plan->given name; assign_given.c describes them. The plan has one trainer for each
 * machine. GW_NOT_FOUND, GW_INVALID, GW_RANGE, GW_FORMAT name the file and the row; the errors of gw_npy_open and
 * gw_text_open_file. */
gw_status gw_assign_given(const struct gw_plan *plan, const struct gw_part *part, struct gw_assignment *assignment);

/* Runs KaMinPar, from the Python module kaminpar, in a process of plan->python, on the symmetric graph without loops
 * and repeats. A node weighs its share of all quantities that the plan balances; then the assignment is repaired
 * (refine.h). With one thread the same seed gives the same assignment. GW_UNSUPPORTED: Python or the module is missing;
 * GW_LIMIT: too many nodes or quantities; GW_NO_MEMORY: the estimate exceeds the memory, or the process was killed;
 * GW_IO, GW_NO_SPACE: the process or a temporary file failed; GW_RANGE: its answer is wrong. */
gw_status gw_assign_kaminpar(const struct gw_plan *plan, const struct gw_part *part, struct gw_assignment *assignment);

/* Whether plan->python has KaMinPar with 64-bit ids. GW_UNSUPPORTED names what is missing. */
gw_status gw_kaminpar_check(const struct gw_plan *plan);

/* The bytes that KaMinPar's process needs for a symmetric graph, in addition to the graph's file. */
uint64_t gw_kaminpar_bytes(uint64_t nodes, uint64_t entries);

/* Label propagation on the symmetric graph without loops and repeats, with METIS on a smaller graph where the build has
 * it (assign_lp.c). The same for any number of threads. GW_LIMIT: 2^32 - 1 nodes or more, or too many quantities;
 * GW_NO_MEMORY: the plan does not allow gw_lp_bytes, or they are not free; GW_IO, GW_NO_SPACE: a temporary file; the
 * errors of gw_metis_run. */
gw_status gw_assign_lp(const struct gw_plan *plan, const struct gw_part *part, struct gw_assignment *assignment);

/* The bytes that label propagation needs for its nodes, in addition to those of lists. */
uint64_t gw_lp_bytes(uint64_t nodes);

/* Whether METIS would accept the graph: gw_assign_metis fails early in the same way. */
gw_status gw_metis_check(const struct gw_plan *plan, const struct gw_part *part);

/* Whether label propagation accepts the graph: gw_assign_lp fails early in the same way. */
gw_status gw_lp_check(const struct gw_plan *plan, const struct gw_part *part);

/* The method that a plan with GW_PLAN_AUTO takes: METIS where it accepts the graph, else label propagation where that
 * does, else random. Only METIS minimises the volume: if the plan asks for it, METIS's refusal is the error. */
gw_status gw_plan_choose(struct gw_plan *plan, const struct gw_part *part);

/* What the plan's method does: one of the functions above and below. If gw_plan_choose has set the method, and its
 * memory does not suffice after all, because other programs have taken it, the plan gets the next method. */
gw_status gw_assign(struct gw_plan *plan, const struct gw_part *part, struct gw_assignment *assignment);

/* Runs METIS on the symmetric graph of all types, without loops. The weight of an edge is its number of repetitions.
 * METIS runs in its own process; its output, exit or crash becomes an error here. GW_LIMIT: too many nodes, edges or
 * constraints for its 32-bit ids, found before allocating memory. GW_NO_MEMORY: the estimate exceeds the free memory,
 * found before allocating that memory. Both errors name the other method. */
gw_status gw_assign_metis(const struct gw_plan *plan, const struct gw_part *part, struct gw_assignment *assignment);

/* Whether this build has METIS. GW_UNSUPPORTED if not; the text names the other method and the package. */
gw_status gw_metis_check_built(void);

/* Checks that METIS accepts these numbers of nodes, edges without loops, loops and constraints. GW_LIMIT if not. */
gw_status gw_metis_check_counts(uint64_t nodes, uint64_t edges, uint64_t loops, uint32_t constraints);

/* GW_NO_MEMORY unless the plan allows the bytes, or without a limit, unless they are free: the text names `what` and
 * others, "--method random, which needs less". */
gw_status gw_plan_memory_check(const struct gw_plan *plan, uint64_t bytes, const char *what, const char *others);
#define GW_PLAN_LESS_THAN_METIS "--method lp or --method random, which need less memory"
#define GW_PLAN_LESS_THAN_LP    "--method random, which needs less memory"

/* The bytes for lists that a step holds: half of the plan's limit, because the kernel keeps pages of files in the rest.
 */
uint64_t gw_plan_lists_bytes(const struct gw_plan *plan);

/* The bytes that METIS needs for a symmetric graph with this number of entries, in addition to the graph itself. */
uint64_t gw_metis_bytes(uint64_t nodes, uint64_t entries, uint32_t constraints, uint32_t pieces);

/* One run of METIS. Arrays as for METIS_PartGraphKway; weights may be NULL. Constraints whose sum is 0 are taken out.
 */
struct gw_metis_job {
	int32_t nodes, constraints, pieces;
	int32_t *xadj, *adjncy, *adjwgt, *vwgt;
	enum gw_plan_objective objective;
	uint64_t seed;
	int32_t *piece;  /* [nodes], result */
	int64_t measure; /* result: weight cut, or volume */
};

/* Runs the job in a child process and waits for it. GW_NO_MEMORY. GW_INVALID: METIS refused its input; the text has
 * its output. GW_IO: METIS was killed or crashed. GW_UNSUPPORTED: the build has no METIS. */
gw_status gw_metis_run(struct gw_metis_job *job);

struct gw_split_stats {
	double renumber_s, edges_s, rows_s, commit_s;
	uint64_t bytes;       /* bytes of payload written */
	uint64_t times_bytes; /* of these, of arrays that are made of times */
	uint64_t graph_id;
};

/* Writes the parts.
 *
 *   nodes    renumbered in each type so that part p owns one range, in the order of their old ids
 *   edges    stored with their destination; lists in the order of the plan's times, else in their old order; ties in
 *            their old order
 *   arrays   rows follow their nodes and edges; if the input has no orig_id, its ids become orig_id
 *   tables   alias tables of the plan's weights are made anew; other tables of the input follow their edges
 *   times    fences and indexes of times are made anew (core/graph/times.h)
 *
 * GW_INVALID: the graph has more than one part. Errors of the writer. */
gw_status gw_split(const struct gw_plan *plan, const struct gw_part *part, const struct gw_assignment *assignment,
		   const char *folder, bool replace, struct gw_split_stats *stats);

/* The quality of a partitioning: counts for each part. */
struct gw_plan_quality {
	uint32_t parts, num_ntypes;
	uint64_t edges, edges_cut; /* all types; an edge is cut if its ends are in two parts */
	uint64_t *nodes;           /* [ntypes + 1][parts]; the last row: all types */
	uint64_t *part_edges;      /* [parts]: edges owned */
	uint64_t *train;           /* [parts]: training nodes, or NULL without a mask */
};

gw_status gw_plan_quality_measure(const struct gw_plan *plan, const struct gw_part *part,
				  const struct gw_assignment *assignment, struct gw_plan_quality *out);
void gw_plan_quality_free(struct gw_plan_quality *quality);

/* The fullest part divided by the mean part; 1 is perfect. 0 if all counts are 0. */
double gw_plan_balance(const uint64_t *counts, uint32_t parts);

#endif
