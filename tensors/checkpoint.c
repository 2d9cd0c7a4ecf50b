/* Writes and reads checkpoint.json.
 *
 *   struct <-> JSON: versions, digest, save, graph, tensors -> plan, optimizer, parts -> the existing arrays
 *                    with their digests
 *
 * The numbers of tensor, part and array determine a file's name, so the reader takes no path from the JSON. The reader
 * checks everything:
 * - A text that differs from what was written is GW_DIGEST.
 * - GW_FORMAT names the key or the part: a key that is missing, unknown or of another type; a number that no tensor can
 *   have; parts that omit a row or contain one twice.
 *
 * Keys and arrays of a newer minor version are ignored.
 */
#include "tensors/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/files/regular.h"
#include "core/graph/json.h"
#include "core/memory/alloc.h"
#include "core/memory/vec.h"
#include "tensors/write_behind.h"

#define CHECKPOINT_JSON_MAX (256u << 20) /* bytes */

static const char *const checkpoint_placements[] = {"nodes", "edges", "even", "striped"};
static const char *const checkpoint_initials[] = {"zero", "constant", "uniform", "normal", "copy"};

gw_status gw_checkpoint_make(uint32_t parts, uint32_t tensors, struct gw_checkpoint_index **out)
{
	struct gw_checkpoint_index *checkpoint = gw_calloc(1, sizeof(*checkpoint));
	*out = NULL;
	if (!checkpoint)
		return GW_NO_MEMORY;
	checkpoint->num_parts = parts;
	checkpoint->tensors = gw_calloc(tensors ? tensors : 1, sizeof(*checkpoint->tensors));
	gw_status status = checkpoint->tensors ? GW_OK : GW_NO_MEMORY;
	for (uint32_t t = 0; t < tensors && status == GW_OK; t++) {
		checkpoint->tensors[t].parts = gw_calloc(parts, sizeof(*checkpoint->tensors[t].parts));
		checkpoint->count = t + 1;
		if (!checkpoint->tensors[t].parts)
			status = GW_NO_MEMORY;
	}
	if (status != GW_OK) {
		gw_checkpoint_free(checkpoint);
		return status;
	}
	*out = checkpoint;
	return GW_OK;
}

void gw_checkpoint_free(struct gw_checkpoint_index *checkpoint)
{
	if (!checkpoint)
		return;
	for (uint32_t t = 0; checkpoint->tensors && t < checkpoint->count; t++)
		gw_free(checkpoint->tensors[t].parts);
	gw_free(checkpoint->tensors);
	gw_free(checkpoint);
}

void gw_checkpoint_part_folder(uint32_t tensor, uint32_t part, char out[GW_CHECKPOINT_PATH_MAX])
{
	snprintf(out, GW_CHECKPOINT_PATH_MAX, "tensor%u/part%u", tensor, part);
}

struct gw_checkpoint_shape gw_checkpoint_shape_of(const struct gw_checkpoint_tensor *tensor, uint32_t part,
						  uint32_t array)
{
	struct gw_checkpoint_shape shape = {
		.name = tensor->text_ids ? "orig_text" : "orig_id", .dtype = GW_INT64, .ndim = 1};
	struct gw_optimizer_array state[GW_OPTIMIZER_ARRAYS_MAX] = {{0}};
	uint64_t elements = 1;
	for (uint32_t i = 1; i < tensor->plan.ndim; i++)
		elements *= tensor->plan.shape[i];
	if (array == GW_CHECKPOINT_ROWS) {
		shape.name = "rows";
		shape.dtype = (gw_dtype)tensor->plan.dtype;
		shape.ndim = tensor->plan.ndim;
		memcpy(shape.shape, tensor->plan.shape, sizeof(shape.shape));
	} else if (array >= GW_CHECKPOINT_STATE) {
		gw_optimizer_arrays(tensor->kind, elements, state);
		shape.name = state[array - GW_CHECKPOINT_STATE].name;
		shape.dtype = state[array - GW_CHECKPOINT_STATE].dtype;
		shape.ndim = 2;
		shape.shape[1] = state[array - GW_CHECKPOINT_STATE].columns;
	}
	shape.shape[0] = tensor->parts[part].rows;
	return shape;
}

/* --- Writing. ---
 *
 * jansson returns NULL if memory runs out, and its functions fail if an argument is NULL. `failed` records every value
 * that could not be added: otherwise a reader would assume that the value never existed. */

static json_t *checkpoint_hex(uint64_t number)
{
	return json_sprintf("%016" PRIx64, number);
}

static void checkpoint_add(json_t *array, json_t *value, bool *failed)
{
	if (json_array_append_new(array, value) != 0)
		*failed = true;
}

static json_t *checkpoint_print_arrays(const struct gw_checkpoint_tensor *tensor, uint32_t number, uint32_t part,
				       bool *failed)
{
	json_t *arrays = json_object();
	char folder[GW_CHECKPOINT_PATH_MAX];
	gw_checkpoint_part_folder(number, part, folder);
	for (uint32_t a = 0; a < GW_CHECKPOINT_ARRAYS; a++) {
		if (!tensor->parts[part].there[a])
			continue;
		struct gw_checkpoint_shape shape = gw_checkpoint_shape_of(tensor, part, a);
		json_t *array =
			json_pack("{s:o, s:s, s:o}", "file", json_sprintf("%s/%s.npy", folder, shape.name), "dtype",
				  gw_dtype_name(shape.dtype), "digest", checkpoint_hex(tensor->parts[part].digests[a]));
		if (json_object_set_new(arrays, shape.name, array) != 0)
			*failed = true;
	}
	return arrays;
}

static json_t *checkpoint_print_tensor(const struct gw_checkpoint_index *checkpoint, uint32_t number, bool *failed)
{
	const struct gw_checkpoint_tensor *tensor = &checkpoint->tensors[number];
	const struct gw_tensor_plan *plan = &tensor->plan;
	json_t *shape = json_array(), *parts = json_array();
	for (uint32_t i = 0; i < plan->ndim; i++)
		checkpoint_add(shape, json_integer((json_int_t)plan->shape[i]), failed);
	for (uint32_t p = 0; p < checkpoint->num_parts; p++) {
		const struct gw_checkpoint_part *part = &tensor->parts[p];
		json_t *arrays = checkpoint_print_arrays(tensor, number, p, failed);
		checkpoint_add(parts,
			       json_pack("{s:I, s:I, s:I, s:o}", "rows", (json_int_t)part->rows, "first",
					 (json_int_t)part->first, "step", (json_int_t)part->step, "arrays", arrays),
			       failed);
	}
	json_t *initial =
		json_pack("{s:s, s:f, s:f, s:o, s:s}", "kind", checkpoint_initials[plan->initial], "low", plan->low,
			  "high", plan->high, "seed", checkpoint_hex(plan->seed), "source", plan->source);
	return json_pack("{s:s, s:s, s:s, s:o, s:s, s:s, s:o, s:s, s:o}", "name", plan->name, "lifetime",
			 plan->job[0] ? "job" : "kept", "dtype", gw_dtype_name((gw_dtype)plan->dtype), "shape", shape,
			 "placement", checkpoint_placements[plan->placement], "type", tensor->type, "initial", initial,
			 "optimizer", tensor->trained ? gw_optimizer_name(tensor->kind) : "", "parts", parts);
}

/* The printed text. json_dumps is not used: it would omit a key if one allocation failed and the next one succeeded. */
struct checkpoint_printed {
	struct gw_vec text;
	size_t used;
	bool failed;
};

static int checkpoint_put(const char *piece, size_t bytes, void *to)
{
	struct checkpoint_printed *printed = to;
	if (printed->failed || gw_vec_reserve(&printed->text, printed->used + bytes) != GW_OK) {
		printed->failed = true;
		return -1;
	}
	memcpy((char *)printed->text.data + printed->used, piece, bytes);
	printed->used += bytes;
	return 0;
}

static gw_status checkpoint_write_text(const char *path, const struct checkpoint_printed *printed)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return gw_fail_errno(GW_IO, errno, "%s: cannot create", path);
	gw_status status = gw_write_all(path, fd, printed->text.data, printed->used);
	if (close(fd) < 0 && status == GW_OK) /* a full disk may be reported only by close */
		status = gw_fail_errno(GW_IO, errno, "%s: cannot write", path);
	return status;
}

gw_status gw_checkpoint_write(const struct gw_checkpoint_index *checkpoint, const char *folder)
{
	struct checkpoint_printed printed = {0};
	bool failed = false;
	json_t *tensors = json_array();
	for (uint32_t t = 0; checkpoint->tensors && t < checkpoint->count; t++)
		checkpoint_add(tensors, checkpoint_print_tensor(checkpoint, t, &failed), &failed);
	json_t *root = json_pack("{s:s, s:i, s:s, s:o, s:s, s:o, s:I, s:o}", "format", GW_CHECKPOINT_FORMAT, "minor", 1,
				 GW_JSON_DIGEST_KEY, GW_JSON_DIGEST_NONE, "save", checkpoint_hex(checkpoint->save),
				 "graph_name", checkpoint->graph_name, "graph_id", checkpoint_hex(checkpoint->graph_id),
				 "num_parts", (json_int_t)checkpoint->num_parts, "tensors", tensors);
	char *path = gw_format("%s/checkpoint.json", folder);
	failed = failed || !root || !path || json_dump_callback(root, checkpoint_put, &printed, JSON_INDENT(2)) != 0;
	gw_status status = failed || printed.failed ? gw_fail(GW_NO_MEMORY, "no memory for checkpoint.json") : GW_OK;
	if (status == GW_OK) {
		gw_json_digest_set(printed.text.data, printed.used);
		status = checkpoint_write_text(path, &printed);
	}
	json_decref(root);
	gw_vec_free(&printed.text);
	gw_free(path);
	return status;
}

/* --- Reading. --- */

/* Unknown keys are ignored in a newer minor version, and an error otherwise. */
#define CHECKPOINT_ONLY(newer, object, what, ...)                                                                      \
	((newer) ? GW_OK                                                                                               \
		 : gw_json_only(object, what, (const char *const[]){__VA_ARGS__},                                      \
				sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)))

static gw_status checkpoint_choice(const char *key, const char *text, const char *const *choices, size_t count,
				   uint32_t *out)
{
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(text, choices[i]) == 0) {
			*out = i;
			return GW_OK;
		}
	}
	return gw_fail(GW_FORMAT, "\"%s\": unknown value \"%.64s\"", key, text);
}

static gw_status checkpoint_text(const char *key, const char *text, size_t room, char *out)
{
	if (strlen(text) >= room)
		return gw_fail(GW_FORMAT, "\"%s\": longer than %zu bytes", key, room - 1);
	memcpy(out, text, strlen(text) + 1);
	return GW_OK;
}

static gw_status checkpoint_bad(const char *what, const json_error_t *error)
{
	return gw_fail(GW_FORMAT, "%s: %s", what, error->text);
}

static gw_status checkpoint_read_shape(const json_t *shape, struct gw_tensor_plan *plan)
{
	size_t ndim = json_array_size(shape);
	if (ndim < 1 || ndim > GW_DIMS_MAX)
		return gw_fail(GW_FORMAT, "\"shape\": %zu dimensions", ndim);
	plan->ndim = (uint32_t)ndim;
	uint64_t bytes = gw_dtype_bytes((gw_dtype)plan->dtype);
	for (size_t i = 0; i < ndim; i++) {
		const json_t *value = json_array_get(shape, i);
		json_int_t number = json_integer_value(value);
		uint64_t most = i == 0 ? GW_TENSOR_ROWS_MAX : GW_TENSOR_ROW_BYTES_MAX / bytes;
		if (!json_is_integer(value) || number < (i > 0) || (uint64_t)number > most)
			return gw_fail(GW_FORMAT, "\"shape\": dimension %zu is out of range", i);
		plan->shape[i] = (uint64_t)number;
		bytes *= i ? (uint64_t)number : 1;
	}
	return GW_OK;
}

static gw_status checkpoint_read_initial(json_t *initial, bool newer, struct gw_tensor_plan *plan)
{
	json_error_t error;
	const char *kind, *source;
	if (json_unpack_ex(initial, &error, 0, "{s:s, s:F, s:F, s:s}", "kind", &kind, "low", &plan->low, "high",
			   &plan->high, "source", &source) != 0)
		return checkpoint_bad("\"initial\"", &error);
	gw_status status = CHECKPOINT_ONLY(newer, initial, "\"initial\"", "kind", "low", "high", "seed", "source");
	if (status == GW_OK)
		status = checkpoint_choice("initial", kind, checkpoint_initials, 5, &plan->initial);
	if (status == GW_OK)
		status = gw_json_hex(initial, "seed", &plan->seed);
	return status == GW_OK ? checkpoint_text("source", source, sizeof(plan->source), plan->source) : status;
}

/* The array's number determines its file and dtype; the JSON must name the same file and dtype. */
static gw_status checkpoint_read_array(const json_t *json, const char *folder, const struct gw_checkpoint_shape *shape,
				       bool newer, uint64_t *digest)
{
	char expected[GW_CHECKPOINT_PATH_MAX + 32];
	const char *file, *dtype;
	gw_status status = gw_json_text(json, "file", sizeof(expected), &file);
	if (status == GW_OK)
		status = gw_json_text(json, "dtype", 32, &dtype);
	if (status == GW_OK)
		status = gw_json_hex(json, "digest", digest);
	if (status == GW_OK)
		status = CHECKPOINT_ONLY(newer, json, "an array", "file", "dtype", "digest");
	if (status != GW_OK)
		return status;
	snprintf(expected, sizeof(expected), "%s/%s.npy", folder, shape->name);
	if (strcmp(file, expected) != 0)
		return gw_fail(GW_FORMAT, "\"file\" is \"%s\", not \"%s\"", file, expected);
	if (strcmp(dtype, gw_dtype_name(shape->dtype)) != 0)
		return gw_fail(GW_FORMAT, "\"dtype\" is \"%s\", not \"%s\"", dtype, gw_dtype_name(shape->dtype));
	return GW_OK;
}

/* The tensor's optimizer and the part's rows must be set. */
static gw_status checkpoint_read_arrays(const json_t *arrays, const char *folder, bool newer,
					struct gw_checkpoint_tensor *tensor, uint32_t number)
{
	struct gw_checkpoint_part *part = &tensor->parts[number];
	uint32_t state = tensor->trained
				 ? gw_optimizer_arrays(tensor->kind, 1,
						       (struct gw_optimizer_array[GW_OPTIMIZER_ARRAYS_MAX]){{0}})
				 : 0;
	const char *names[GW_CHECKPOINT_ARRAYS];
	if (number == 0)
		tensor->text_ids = json_object_get(arrays, "orig_text") != NULL;
	for (uint32_t a = 0; a < GW_CHECKPOINT_STATE + state; a++) {
		struct gw_checkpoint_shape shape = gw_checkpoint_shape_of(tensor, number, a);
		const json_t *array = json_object_get(arrays, shape.name);
		names[a] = shape.name;
		part->there[a] = array != NULL;
		if (!array)
			continue;
		gw_status status = checkpoint_read_array(array, folder, &shape, newer, &part->digests[a]);
		if (status != GW_OK)
			return gw_context(status, "\"%s\"", shape.name);
	}
	/* The arrays of an optimizer's state exist all or not at all: a part that was never trained has none. */
	for (uint32_t a = 1; a < state; a++) {
		if (part->there[GW_CHECKPOINT_STATE + a] != part->there[GW_CHECKPOINT_STATE])
			return gw_fail(GW_FORMAT, "the optimizer's state is incomplete");
	}
	if (!part->there[GW_CHECKPOINT_ROWS])
		return gw_fail(GW_FORMAT, "array \"rows\" is missing");
	return newer ? GW_OK : gw_json_only(arrays, "\"arrays\"", names, GW_CHECKPOINT_STATE + state);
}

static gw_status checkpoint_read_part(const json_t *json, uint32_t number, bool newer,
				      struct gw_checkpoint_tensor *tensor, uint32_t part_number)
{
	struct gw_checkpoint_part *part = &tensor->parts[part_number];
	uint64_t all = tensor->plan.shape[0];
	json_t *arrays;
	char folder[GW_CHECKPOINT_PATH_MAX];
	gw_checkpoint_part_folder(number, part_number, folder);
	gw_status status = gw_json_number(json, "rows", all, &part->rows);
	if (status == GW_OK)
		status = gw_json_number(json, "first", INT64_MAX, &part->first);
	if (status == GW_OK)
		status = gw_json_number(json, "step", GW_PARTS_MAX, &part->step);
	if (status == GW_OK)
		status = gw_json_get(json, "arrays", JSON_OBJECT, &arrays);
	if (status == GW_OK)
		status = CHECKPOINT_ONLY(newer, json, "a part", "rows", "first", "step", "arrays");
	if (status == GW_OK)
		status = checkpoint_read_arrays(arrays, folder, newer, tensor, part_number);
	return status == GW_OK ? status : gw_context(status, "part %u", part_number);
}

/* Checks that every row is in exactly one part: in consecutive ranges, or striped. */
static gw_status checkpoint_check_tiles(struct gw_checkpoint_tensor *tensor, uint32_t parts)
{
	bool striped = tensor->plan.placement == GW_PLACE_STRIPED;
	unsigned long long all = tensor->plan.shape[0], next = 0;
	for (uint32_t p = 0; p < parts; p++) {
		struct gw_checkpoint_part *part = &tensor->parts[p];
		unsigned long long rows = part->rows, first = part->first, step = striped ? parts : 1;
		if (part->step != step)
			return gw_fail(GW_FORMAT, "part %u: \"step\" is %llu, not %llu", p,
				       (unsigned long long)part->step, step);
		if (striped && rows != all / parts + (p < all % parts))
			return gw_fail(GW_FORMAT,
				       "part %u: %llu rows; striped over the parts, its share of %llu is %llu", p, rows,
				       all, all / parts + (p < all % parts));
		if (striped && rows > 0 && first != p)
			return gw_fail(GW_FORMAT, "part %u: its first row is %llu, not %u", p, first, p);
		if (!striped && rows > 0 && first != next)
			return first < next
				       ? gw_fail(GW_FORMAT, "part %u: rows %llu to %llu are in a part before it too", p,
						 first, (next < first + rows ? next : first + rows) - 1)
				       : gw_fail(GW_FORMAT, "part %u: rows %llu to %llu before it are in no part", p,
						 next, first - 1);
		if (rows == 0)
			part->first = 0; /* without rows it has no meaning, and may be out of range */
		next += rows;
	}
	if (next != all)
		return gw_fail(GW_FORMAT, "the parts have %llu rows of %llu", next, all);
	return GW_OK;
}

static gw_status checkpoint_read_optimizer(const char *text, struct gw_checkpoint_tensor *tensor)
{
	tensor->trained = *text != 0;
	if (tensor->trained && gw_optimizer_parse(text, &tensor->kind) != GW_OK)
		return gw_fail(GW_FORMAT, "\"optimizer\": unknown optimizer \"%.64s\"", text);
	return GW_OK;
}

static gw_status checkpoint_read_type(const char *text, struct gw_checkpoint_tensor *tensor)
{
	bool of_type = tensor->plan.placement <= GW_PLACE_EDGES;
	if (of_type != (*text != 0))
		return gw_fail(GW_FORMAT, "\"type\": \"%.64s\", and \"placement\": \"%s\"", text,
			       checkpoint_placements[tensor->plan.placement]);
	return checkpoint_text("type", text, sizeof(tensor->type), tensor->type);
}

/* number: of the tensor's folder. */
static gw_status checkpoint_read_tensor(json_t *json, uint32_t number, bool newer, uint32_t parts_count,
					struct gw_checkpoint_tensor *tensor)
{
	static const char *const lifetimes[] = {"kept", "job"};
	struct gw_tensor_plan *plan = &tensor->plan;
	json_error_t error;
	const char *name, *lifetime, *dtype_name, *placement, *type, *optimizer;
	json_t *shape, *initial, *parts;
	gw_dtype dtype;
	uint32_t of_job = 0;
	if (json_unpack_ex(json, &error, 0, "{s:s, s:s, s:s, s:o, s:s, s:s, s:o, s:s, s:o}", "name", &name, "lifetime",
			   &lifetime, "dtype", &dtype_name, "shape", &shape, "placement", &placement, "type", &type,
			   "initial", &initial, "optimizer", &optimizer, "parts", &parts) != 0)
		return checkpoint_bad("\"tensors\"", &error);
	if (!gw_tensor_name_valid(name))
		return gw_fail(GW_FORMAT, "\"name\": \"%.64s\" is not a valid name of a tensor", name);
	if (gw_dtype_parse(dtype_name, &dtype) != GW_OK || dtype == GW_INT8_ROW)
		return gw_fail(GW_FORMAT, "\"dtype\": tensors cannot have \"%.32s\"", dtype_name);
	plan->dtype = (uint32_t)dtype;
	memcpy(plan->name, name, strlen(name) + 1);
	gw_status status = CHECKPOINT_ONLY(newer, json, "a tensor", "name", "lifetime", "dtype", "shape", "placement",
					   "type", "initial", "optimizer", "parts");
	if (status == GW_OK)
		status = checkpoint_choice("lifetime", lifetime, lifetimes, 2, &of_job);
	if (status == GW_OK)
		status = checkpoint_choice("placement", placement, checkpoint_placements, 4, &plan->placement);
	if (status == GW_OK)
		status = checkpoint_read_type(type, tensor);
	if (status == GW_OK)
		status = checkpoint_read_shape(shape, plan);
	if (status == GW_OK)
		status = checkpoint_read_initial(initial, newer, plan);
	if (status == GW_OK)
		status = checkpoint_read_optimizer(optimizer, tensor);
	if (status == GW_OK && json_array_size(parts) != parts_count)
		status = gw_fail(GW_FORMAT, "\"parts\": %zu of %u", json_array_size(parts), parts_count);
	for (uint32_t p = 0; p < parts_count && status == GW_OK; p++)
		status = checkpoint_read_part(json_array_get(parts, p), number, newer, tensor, p);
	if (status == GW_OK)
		status = checkpoint_check_tiles(tensor, parts_count);
	if (status != GW_OK)
		return gw_context(status, "tensor \"%s\"", plan->name);
	plan->job[0] = of_job ? 'j' : 0;
	return GW_OK;
}

/* A job's tensor and a kept tensor may have the same name; two tensors of one lifetime may not. */
static gw_status checkpoint_check_once(const struct gw_checkpoint_index *checkpoint)
{
	for (uint32_t t = 0; t < checkpoint->count; t++) {
		const struct gw_tensor_plan *plan = &checkpoint->tensors[t].plan;
		for (uint32_t other = 0; other < t; other++) {
			if (strcmp(plan->name, checkpoint->tensors[other].plan.name) == 0 &&
			    plan->job[0] == checkpoint->tensors[other].plan.job[0])
				return gw_fail(GW_FORMAT, "tensor \"%s\" appears twice", plan->name);
		}
	}
	return GW_OK;
}

static gw_status checkpoint_read_tensors(json_t *root, bool newer, struct gw_checkpoint_index **out)
{
	json_t *tensors;
	uint64_t parts;
	gw_status status = gw_json_get(root, "tensors", JSON_ARRAY, &tensors);
	if (status == GW_OK)
		status = gw_json_number(root, "num_parts", GW_PARTS_MAX, &parts);
	if (status != GW_OK)
		return status;
	size_t count = json_array_size(tensors);
	/* The file must contain lines for each part of each tensor. Check this first, so that a small file cannot make
	 * the reader allocate much memory. */
	for (size_t t = 0; t < count; t++) {
		if (json_array_size(json_object_get(json_array_get(tensors, t), "parts")) != parts)
			return gw_fail(GW_FORMAT, "tensor %zu: its number of parts is not that of the graph", t);
	}
	if (parts < 1 || count > GW_CHECKPOINT_TENSORS_MAX)
		return gw_fail(GW_FORMAT, "%zu tensors in %llu parts", count, (unsigned long long)parts);
	status = gw_checkpoint_make((uint32_t)parts, (uint32_t)count, out);
	for (uint32_t t = 0; t < count && status == GW_OK; t++)
		status = checkpoint_read_tensor(json_array_get(tensors, t), t, newer, (uint32_t)parts,
						&(*out)->tensors[t]);
	return status == GW_OK ? checkpoint_check_once(*out) : status;
}

static gw_status checkpoint_read_root(json_t *root, const char *text, size_t bytes, struct gw_checkpoint_index **out)
{
	const char *format, *graph_name;
	uint64_t minor, graph_id, save = 0;
	gw_status status = gw_json_text(root, "format", 64, &format);
	if (status == GW_OK && strcmp(format, GW_CHECKPOINT_FORMAT) != 0)
		status = gw_fail(GW_VERSION,
				 "\"format\" is \"%s\"; this program reads \"%s\": take the Graphwire that wrote it",
				 format, GW_CHECKPOINT_FORMAT);
	if (status == GW_OK)
		status = gw_json_minor(root, &minor);
	if (status == GW_OK)
		status = gw_json_digest_check(text, bytes, minor > 0 || json_object_get(root, GW_JSON_DIGEST_KEY));
	if (status != GW_OK)
		return status;
	bool newer = minor > GW_CHECKPOINT_MINOR;
	status = CHECKPOINT_ONLY(newer, root, GW_CHECKPOINT_FORMAT, "format", "minor", GW_JSON_DIGEST_KEY, "save",
				 "graph_name", "graph_id", "num_parts", "tensors");
	if (status == GW_OK && minor > 0)
		status = gw_json_hex(root, "save", &save);
	if (status == GW_OK)
		status = gw_json_text(root, "graph_name", GW_NAME_MAX, &graph_name);
	if (status == GW_OK)
		status = gw_json_hex(root, "graph_id", &graph_id);
	if (status == GW_OK)
		status = checkpoint_read_tensors(root, newer, out);
	if (status != GW_OK)
		return newer && status == GW_FORMAT
			       ? gw_context(status, "minor version %llu, newer than this program's, %d",
					    (unsigned long long)minor, GW_CHECKPOINT_MINOR)
			       : status;
	(*out)->graph_id = graph_id;
	(*out)->save = save;
	snprintf((*out)->graph_name, sizeof((*out)->graph_name), "%s", graph_name);
	return GW_OK;
}

gw_status gw_checkpoint_parse(const char *text, size_t bytes, struct gw_checkpoint_index **out)
{
	json_error_t error;
	*out = NULL;
	json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return gw_fail(GW_FORMAT, "line %d: %s", error.line, error.text);
	gw_status status = json_is_object(root) ? checkpoint_read_root(root, text, bytes, out)
						: gw_fail(GW_FORMAT, "not a JSON object");
	json_decref(root);
	if (status != GW_OK) {
		gw_checkpoint_free(*out);
		*out = NULL;
	}
	return status;
}

gw_status gw_checkpoint_read(const char *folder, struct gw_checkpoint_index **out)
{
	char *text = NULL, *path = gw_format("%s/checkpoint.json", folder);
	size_t bytes = 0;
	*out = NULL;
	gw_status status = path ? gw_regular_read(path, CHECKPOINT_JSON_MAX, &text, &bytes) : GW_NO_MEMORY;
	if (status == GW_LIMIT)
		status = GW_FORMAT;
	if (text) {
		status = gw_checkpoint_parse(text, bytes, out);
		if (status == GW_FORMAT || status == GW_DIGEST)
			gw_advise(status, "edited or damaged? Take another checkpoint");
		if (status != GW_OK)
			status = gw_context(status, "%s", path);
	}
	gw_free(text);
	gw_free(path);
	return status;
}

gw_status gw_checkpoint_owned(const char *folder, struct gw_owned **out)
{
	return gw_json_owned(folder, "checkpoint.json", CHECKPOINT_JSON_MAX, out);
}
