/* A checkpoint on disk: what its JSON says of the tensors in it. docs/FORMAT.md is its description.
 *
 *   folder/checkpoint.json
 *          tensor<N>/part<P>/rows.npy             the rows that part P had of tensor N, in its order
 *                            orig_id.npy          their original ids, where the graph has them
 *                            orig_text.npy        or the digests of these, where they are text
 *                            sum.npy, step.npy .. what an optimizer had of each row
 *
 * Which id a row has: first + i * step, by the layout of the graph at the time; original ids lead to the ids of a graph
 * that is partitioned in another way.
 */
#ifndef GW_TENSORS_CHECKPOINT_H
#define GW_TENSORS_CHECKPOINT_H

#include "core/files/owned.h"
#include "core/rows/optimizer.h"
#include "tensors/plan.h"

#define GW_CHECKPOINT_FORMAT      "graphwire-checkpoint-1"
#define GW_CHECKPOINT_MINOR       1 /* the newest minor version that this program knows; 0: what version 0.1 wrote */
#define GW_CHECKPOINT_TENSORS_MAX 4096u

/* The arrays of one part. What is not there has no file. */
enum gw_checkpoint_array { GW_CHECKPOINT_ROWS, GW_CHECKPOINT_IDS, GW_CHECKPOINT_STATE };
#define GW_CHECKPOINT_ARRAYS (GW_CHECKPOINT_STATE + GW_OPTIMIZER_ARRAYS_MAX)

struct gw_checkpoint_part {
	uint64_t rows, first, step;
	bool there[GW_CHECKPOINT_ARRAYS];
	uint64_t digests[GW_CHECKPOINT_ARRAYS];
};

struct gw_checkpoint_tensor {
	struct gw_tensor_plan plan;        /* job: "" or any other name: of a job, whichever */
	char type[GW_EDGE_FOLDER_MAX + 1]; /* of nodes or edges; "" */
	bool text_ids;                     /* GW_CHECKPOINT_IDS are digests of texts */
	bool trained;
	enum gw_optimizer_kind kind; /* if trained */
	struct gw_checkpoint_part *parts;
};

struct gw_checkpoint_index {
	uint64_t save; /* a random number of the save that wrote it; 0 in what version 0.1 wrote */
	uint64_t graph_id;
	char graph_name[GW_NAME_MAX + 1];
	uint32_t num_parts, count;
	struct gw_checkpoint_tensor *tensors; /* [count] */
};

/* Zeroed, but for what the graph says. GW_NO_MEMORY. */
gw_status gw_checkpoint_make(uint32_t parts, uint32_t tensors, struct gw_checkpoint_index **out);
void gw_checkpoint_free(struct gw_checkpoint_index *checkpoint); /* NULL is allowed */

gw_status gw_checkpoint_write(const struct gw_checkpoint_index *checkpoint, const char *folder);
/* GW_NOT_FOUND: no checkpoint there; GW_VERSION: of a newer major version; GW_DIGEST: the text is not what was written;
 * GW_FORMAT names the key, or the part where rows are missing or there twice. */
gw_status gw_checkpoint_read(const char *folder, struct gw_checkpoint_index **out);
/* The same from text, for fuzzing. */
gw_status gw_checkpoint_parse(const char *text, size_t bytes, struct gw_checkpoint_index **out);
/* The files of the checkpoint in a folder; fails as gw_json_owned does. */
gw_status gw_checkpoint_owned(const char *folder, struct gw_owned **out);

/* Folder of a part's arrays, below the checkpoint's; name, dtype and shape of an array of it. */
#define GW_CHECKPOINT_PATH_MAX 64
void gw_checkpoint_part_folder(uint32_t tensor, uint32_t part, char out[GW_CHECKPOINT_PATH_MAX]);
struct gw_checkpoint_shape {
	const char *name;
	gw_dtype dtype;
	uint32_t ndim;
	uint64_t shape[GW_DIMS_MAX];
};
struct gw_checkpoint_shape gw_checkpoint_shape_of(const struct gw_checkpoint_tensor *tensor, uint32_t part,
						  uint32_t array);

#endif
