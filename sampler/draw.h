/* A draw: which edges of a list one hop takes. A kind of sampling is a table of pure functions over a run of lists.
 *
 *   lists (degrees) ─▶ round 0 ─▶ needs: spans of columns ─▶ a driver brings them ─▶ round 1 ─▶ ... ─▶ positions
 *
 * A kind never knows where the bytes come from. Two drivers exist: draw_memory.h reads columns through pointers, and
 * client/batch/hop_reads.c reads them from a server. Both call the same rounds, so the picks have the same bytes.
 *
 * A kind is pure: its picks depend on (key, group, vertex, columns) alone. It allocates only from the scratch, and does
 * no I/O. docs/SAMPLING.md shows how to add a kind.
 */
#ifndef GW_SAMPLER_DRAW_H
#define GW_SAMPLER_DRAW_H

#include <string.h>

#include <graphwire/edges.h>

#include "core/errors/status.h"
#include "core/graph/times.h"
#include "core/numbers/dtype.h"
#include "sampler/lists.h"
#include "sampler/rule.h"

/* The columns of an edge type: arrays with one entry for each edge, in the order of the lists. The table in
 * columns.c says how rules name them and where parts store them. The numbers are on the wire; they never change. */
enum gw_column {
	GW_COLUMN_ALIAS,  /* {uint32 threshold, uint32 alias}: core/graph/alias.h */
	GW_COLUMN_WEIGHT, /* a number, at least 0 */
	GW_COLUMN_MASK,
	GW_COLUMN_TIME,
	GW_COLUMN_IDS,   /* the neighbours' ids, 4 or 8 bytes; every list has them */
	GW_COLUMN_FENCE, /* int64 keys of times (core/numbers/time_key.h), for lists that are sorted by time */
	GW_COLUMN_END,   /* a time from which an edge is not valid any more */
	GW_COLUMN_COUNT
};

#define GW_COLUMN_BIT(column) (1u << (column))

/* The form of a column's entries. entry_bytes 0: the graph does not have the column, or the draw does not use it. The
 * driver sets the form of GW_COLUMN_IDS. */
struct gw_column_form {
	uint32_t entry_bytes;
	gw_dtype dtype;
};

/* A column has an entry for each edge; a fence has one for each edge at a multiple of 64 in the part's array of lists.
 * The first entry for the edges from `position` of that array on: */
static inline uint64_t gw_column_entry(enum gw_column column, uint64_t position)
{
	return column == GW_COLUMN_FENCE ? gw_fence_entries(position) : position;
}

/* The columns of an edge type in one part's memory. */
struct gw_columns {
	const void *at[GW_COLUMN_COUNT];
};

/* Where the columns of a run's lists are. */
struct gw_draw_columns {
	const struct gw_columns *all;         /* of all lists; or NULL, and then: */
	const struct gw_columns *const *each; /* [n]: of each list */
	const uint64_t *firsts;               /* [n]: the position of each list in its part; NULL: lists.begins */
};

/* Eligible times of groups, both ends included, as keys (core/numbers/time_key.h). from or until may be NULL: no
 * bound. */
struct gw_groups {
	uint32_t count; /* at most GW_GROUPS_MAX; 0: no table; groups are plain numbers */
	const int64_t *from, *until;
	/* An edge with an end is valid until the key before that end: its end exceeds until. strict_ends: until is the
	 * key before the group's time, which the end must exceed as well. */
	bool strict_ends;
};

struct gw_sampling_kind;
struct gw_column_names; /* columns.h */

/* How the lists of one edge type are drawn from. */
struct gw_edge_sampling {
	const struct gw_sampling_kind *kind; /* NULL: uniform */
	struct gw_column_form forms[GW_COLUMN_COUNT];
	const struct gw_column_names *names; /* of the columns, for error texts; or NULL. Not copied */
};

/* How one edge type is sampled in one hop. */
struct gw_draw {
	struct gw_pick_rule rule; /* key, fanout, replace */
	const struct gw_sampling_kind *kind;
	struct gw_column_form forms[GW_COLUMN_COUNT];
	const struct gw_column_names *names;
	struct gw_groups groups;
	bool no_edge_ids; /* the caller does not read the positions of the picks */
};

/* Entries [first, first + count) of a column, counted from the first one of list `list` of the run: gw_column_entry()
 * of its begin. */
struct gw_need {
	uint32_t list;
	enum gw_column column;
	uint64_t first, count;
};

/* A run of lists while a draw is made from them.
 *
 * positions + lists.starts[i] has room for the bound of list i. A kind writes the picks of list i there, each as
 * lists.begins[i] + position in the list, and their number to counts[i]. Between rounds it may keep its state there. It
 * may narrow a list that needs no more entries: then the list begins later and has a lower degree. */
struct gw_draw_run {
	struct gw_lists lists;       /* starts: sums of the bounds; after the last round: of the counts */
	uint32_t counts[GW_RUN_MAX]; /* 0 before round 0 */
	bool done[GW_RUN_MAX];       /* false before round 0; the picks of the list are final */
	/* What the previous round needed, in its order. got[i] points to the entries of needs[i], at any alignment. */
	const struct gw_need *needs;
	const void *const *got;
	uint64_t need_count;
	struct gw_vec *next; /* struct gw_need: filled by gw_draw_need */
	uint64_t next_count;
	/* The columns, if this process can address them; else NULL. A kind that needs single entries may then read them
	 * in round 0. It asks for spans of a list's length all the same, because the driver limits their length. */
	const struct gw_draw_columns *at_hand;
	struct gw_pick_scratch *scratch;
	uint64_t entry_count; /* the memory driver, if entries are bounded: those read so far */
	/* Where a driver will read the neighbours; a kind may prefetch them. element_bytes 0: nowhere. */
	uintptr_t memory;
	uint32_t element_bytes;
};

struct gw_sampling_kind {
	const char *name;
	const char *how;        /* in a sentence: sampled "by weight" */
	uint32_t number;        /* on the wire; never changes */
	uint32_t columns;       /* GW_COLUMN_BITs of the columns that rounds may need */
	uint32_t optional;      /* those of them that a rule may leave unnamed */
	enum gw_edge_pick pick; /* of the rule. Kinds of the same columns differ in it */
	bool valued;            /* rounds read the values of the lists' groups: the draw needs a table of groups */
	/* The most picks from a list of this degree. NULL: gw_pick_count(). */
	uint64_t (*bound)(const struct gw_pick_rule *rule, uint64_t degree);
	/* Checks the forms of the columns: GW_UNSUPPORTED names what is missing. The client asks when it looks a rule
	 * up, and the server for each request. It does not see the fanout: every kind takes all fanouts, with and
	 * without replacement. NULL: the kind needs no column. */
	gw_status (*check)(const struct gw_draw *draw);
	/* Round `number` for the lists that are not done. GW_AGAIN: call the next round with the entries that the run
	 * needs, which may be none. GW_OK: every list is done, and its picks ascend. Other statuses name the vertex. */
	gw_status (*round)(const struct gw_draw *draw, struct gw_draw_run *run, uint32_t number, uint64_t *positions);
};

#define GW_KIND_UNIFORM  1u
#define GW_KIND_WEIGHTED 2u
#define GW_KIND_TEMPORAL 3u
#define GW_KIND_LAST     4u

/* The kinds. gw_sampling_kind_at: by number, NULL for a number that this version does not know. */
extern const struct gw_sampling_kind gw_sample_uniform, gw_sample_weighted, gw_sample_temporal, gw_sample_last;
const struct gw_sampling_kind *gw_sampling_kind_at(uint32_t number);
/* The kind that draws with the columns that a rule names, as its pick says. GW_UNSUPPORTED: no kind does; the text
 * names the column. GW_INVALID: the rule has a pick or an end that nothing reads, because it names no time. */
gw_status gw_sampling_kind_of(const struct gw_column_names *names, const struct gw_sampling_kind **out);
/* Whether a rule that names the columns of these GW_COLUMN_BITs may have the kind. */
bool gw_sampling_kind_takes(const struct gw_sampling_kind *kind, uint32_t bits);
/* For tests: adds a kind to the table, in place of the one added before; NULL: none. Call it while nothing draws. */
void gw_sampling_kind_try(const struct gw_sampling_kind *kind);

/* Adds to the needs of the next round. GW_NO_MEMORY. */
gw_status gw_draw_need(struct gw_draw_run *run, uint32_t list, enum gw_column column, uint64_t first, uint64_t count);

/* What every driver checks before its rounds: the fanout, that a valued kind has values, and that no more than
 * GW_GROUPS_MAX groups have values. GW_INVALID: with GW_LIMIT a driver asks for fewer rows. */
gw_status gw_draw_check_use(const struct gw_draw *draw);

/* What a driver does around the rounds. begin: lists.starts, which gw_lists_read has set, become sums of the bounds.
 * end: the picks move together, and the starts become sums of the counts. */
void gw_draw_run_begin(const struct gw_draw *draw, struct gw_draw_run *run);
void gw_draw_run_end(const struct gw_draw *draw, struct gw_draw_run *run, uint64_t *positions);

/* Where the list begins in its part, if the columns are at hand. */
static inline uint64_t gw_draw_position(const struct gw_draw_run *run, uint32_t list)
{
	return run->at_hand->firsts ? run->at_hand->firsts[list] : run->lists.begins[list];
}

/* The list's first entry in a column at hand. */
static inline const void *gw_draw_at_hand(const struct gw_draw *draw, const struct gw_draw_run *run, uint32_t list,
					  enum gw_column column)
{
	const struct gw_draw_columns *columns = run->at_hand;
	const struct gw_columns *of = columns->all ? columns->all : columns->each[list];
	uint64_t first = gw_column_entry(column, gw_draw_position(run, list));
	return (const uint8_t *)of->at[column] + first * draw->forms[column].entry_bytes;
}

/* Uniform draws alone know their counts from the degrees. They leave counts and done alone, and servers draw long lists
 * of them piece by piece. */
static inline bool gw_draw_is_uniform(const struct gw_draw *draw)
{
	return draw->kind == &gw_sample_uniform;
}

/* The draw takes the kind and the columns of its edge type. */
static inline void gw_draw_set(struct gw_draw *draw, const struct gw_edge_sampling *sampling)
{
	draw->kind = sampling->kind;
	memcpy(draw->forms, sampling->forms, sizeof(draw->forms));
	draw->names = sampling->names;
}

static inline gw_status gw_draw_check(const struct gw_draw *draw)
{
	return draw->kind->check ? draw->kind->check(draw) : GW_OK;
}

static inline uint64_t gw_draw_bound(const struct gw_draw *draw, uint64_t degree)
{
	return draw->kind->bound ? draw->kind->bound(&draw->rule, degree) : gw_pick_count(&draw->rule, degree);
}

#endif
