/* A checkpoint on disk: what its JSON contains about its tensors. docs/FORMAT.md describes the format.
 *
 *   folder/checkpoint.json
 *          tensor<N>/part<P>/rows.npy             the rows of tensor N in part P, in the part's order
 *                            orig_id.npy          their original ids, if the graph has them
 *                            orig_text.npy        or the digests of original ids that are text
 *                            sum.npy, step.npy .. the optimizer's state of each row
 *
 * Row i of a part has the id first + i * step in the graph's layout at that time. For a graph that is partitioned
 * differently, original ids map to the new ids.
 */
#ifndef GW_TENSORS_CHECKPOINT_H
#define GW_TENSORS_CHECKPOINT_H

#include "core/files/owned.h"
#include "core/rows/optimizer.h"
#include "tensors/plan.h"

#define GW_CHECKPOINT_FORMAT      "graphwire-checkpoint-1"
#define GW_CHECKPOINT_MINOR       1 /* the newest minor version that this program knows; version 0.1 wrote 0 */
#define GW_CHECKPOINT_TENSORS_MAX 4096u

/* The arrays of one part. A missing array has no file. */
enum gw_checkpoint_array { GW_CHECKPOINT_ROWS, GW_CHECKPOINT_IDS, GW_CHECKPOINT_STATE };
#define GW_CHECKPOINT_ARRAYS (GW_CHECKPOINT_STATE + GW_OPTIMIZER_ARRAYS_MAX)

struct gw_checkpoint_part {
	uint64_t rows, first, step;
	bool there[GW_CHECKPOINT_ARRAYS];
	uint64_t digests[GW_CHECKPOINT_ARRAYS];
};

struct gw_checkpoint_tensor {
	struct gw_tensor_plan plan;        /* job: "" for a kept tensor; any other text means a tensor of some job */
	char type[GW_EDGE_FOLDER_MAX + 1]; /* of nodes or edges; else "" */
	bool text_ids;                     /* GW_CHECKPOINT_IDS are digests of texts */
	bool trained;
	enum gw_optimizer_kind kind; /* if trained */
	struct gw_checkpoint_part *parts;
};

struct gw_checkpoint_index {
	uint64_t save; /* a random number of the save that wrote the checkpoint; 0 if version 0.1 wrote it */
	uint64_t graph_id;
	char graph_name[GW_NAME_MAX + 1];
	uint32_t num_parts, count;
	struct gw_checkpoint_tensor *tensors; /* [count] */
};

/* Creates an index for this many parts and tensors; all other fields are zero. GW_NO_MEMORY. */
gw_status gw_checkpoint_make(uint32_t parts, uint32_t tensors, struct gw_checkpoint_index **out);
void gw_checkpoint_free(struct gw_checkpoint_index *checkpoint); /* NULL is allowed */

gw_status gw_checkpoint_write(const struct gw_checkpoint_index *checkpoint, const char *folder);
/* GW_NOT_FOUND: the folder has no checkpoint. GW_VERSION: its major version is newer. GW_DIGEST: the text differs from
 * what was written. GW_FORMAT names the key, or the part whose rows are missing or duplicated. */
gw_status gw_checkpoint_read(const char *folder, struct gw_checkpoint_index **out);
/* Reads a checkpoint from text, for fuzzing. */
gw_status gw_checkpoint_parse(const char *text, size_t bytes, struct gw_checkpoint_index **out);
/* Lists the files of the checkpoint in a folder. Fails as gw_json_owned does. */
gw_status gw_checkpoint_owned(const char *folder, struct gw_owned **out);

/* The folder of a part's arrays, relative to the checkpoint's; and name, dtype and shape of one of these arrays. */
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
