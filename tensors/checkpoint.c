/* checkpoint.json, written and read.
 *
 *   struct <-> JSON: format, graph, tensors -> plan, optimizer, parts -> the arrays that are there, with their digests
 *
 * Files have the names that follow from their places, so that no path is read from the file. A reader trusts nothing: a
 * key that is missing or of another type, and numbers that no tensor has, are GW_FORMAT and name the key.
 */
#include "tensors/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/alloc.h"

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
 * jansson says by NULL that it is out of memory, and what takes NULL fails in its turn. Whatever was not added is
 * noted: a reader would take what is missing for what was never there. */

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

gw_status gw_checkpoint_write(const struct gw_checkpoint_index *checkpoint, const char *folder)
{
	bool failed = false;
	json_t *tensors = json_array();
	for (uint32_t t = 0; checkpoint->tensors && t < checkpoint->count; t++)
		checkpoint_add(tensors, checkpoint_print_tensor(checkpoint, t, &failed), &failed);
	json_t *root = json_pack("{s:s, s:s, s:o, s:I, s:o}", "format", GW_CHECKPOINT_FORMAT, "graph_name",
				 checkpoint->graph_name, "graph_id", checkpoint_hex(checkpoint->graph_id), "num_parts",
				 (json_int_t)checkpoint->num_parts, "tensors", tensors);
	char *path = gw_format("%s/checkpoint.json", folder);
	gw_status status = root && path && !failed ? GW_OK : gw_fail(GW_NO_MEMORY, "no memory for checkpoint.json");
	errno = 0;
	if (status == GW_OK && json_dump_file(root, path, JSON_INDENT(2)) != 0)
		status = errno ? gw_fail_errno(GW_IO, errno, "%s: cannot write", path)
			       : gw_fail(GW_NO_MEMORY, "no memory for checkpoint.json");
	json_decref(root);
	gw_free(path);
	return status;
}

/* --- Reading. --- */

static gw_status checkpoint_choice(const char *key, const char *text, const char *const *choices, size_t count,
				   uint32_t *out)
{
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(text, choices[i]) == 0) {
			*out = i;
			return GW_OK;
		}
	}
	return gw_fail(GW_FORMAT, "\"%s\": there is no \"%.64s\"", key, text);
}

static gw_status checkpoint_text(const char *key, const char *text, size_t room, char *out)
{
	if (strlen(text) >= room)
		return gw_fail(GW_FORMAT, "\"%s\": longer than %zu bytes", key, room - 1);
	memcpy(out, text, strlen(text) + 1);
	return GW_OK;
}

static gw_status checkpoint_number(const char *key, const char *text, uint64_t *out)
{
	if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
		return gw_fail(GW_FORMAT, "\"%s\": \"%.32s\" is not 16 hexadecimal digits", key, text);
	*out = strtoull(text, NULL, 16);
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

static gw_status checkpoint_read_initial(json_t *initial, struct gw_tensor_plan *plan)
{
	json_error_t error;
	const char *kind, *seed, *source;
	if (json_unpack_ex(initial, &error, 0, "{s:s, s:F, s:F, s:s, s:s}", "kind", &kind, "low", &plan->low, "high",
			   &plan->high, "seed", &seed, "source", &source) != 0)
		return checkpoint_bad("\"initial\"", &error);
	gw_status status = checkpoint_choice("initial", kind, checkpoint_initials, 5, &plan->initial);
	if (status == GW_OK)
		status = checkpoint_number("seed", seed, &plan->seed);
	return status == GW_OK ? checkpoint_text("source", source, sizeof(plan->source), plan->source) : status;
}

static gw_status checkpoint_read_part(json_t *json, struct gw_checkpoint_tensor *tensor, uint32_t number)
{
	struct gw_checkpoint_part *part = &tensor->parts[number];
	json_error_t error;
	json_int_t rows, first, step;
	json_t *arrays;
	if (json_unpack_ex(json, &error, 0, "{s:I, s:I, s:I, s:o}", "rows", &rows, "first", &first, "step", &step,
			   "arrays", &arrays) != 0)
		return checkpoint_bad("\"parts\"", &error);
	uint64_t all = tensor->plan.shape[0];
	/* The last row's id is one of the tensor's. Of a part without rows `first` means nothing, and may be beyond. */
	first = rows > 0 ? first : 0;
	if (rows < 0 || first < 0 || step < 1 || (uint64_t)rows > all || (uint64_t)step > GW_PARTS_MAX ||
	    (uint64_t)first > all || (rows > 0 && (uint64_t)first + (uint64_t)(rows - 1) * (uint64_t)step >= all))
		return gw_fail(GW_FORMAT, "part %u: rows, first and step are out of range", number);
	*part = (struct gw_checkpoint_part){.rows = (uint64_t)rows, .first = (uint64_t)first, .step = (uint64_t)step};
	if (number == 0)
		tensor->text_ids = json_object_get(arrays, "orig_text") != NULL;
	uint32_t state =
		tensor->trained ? gw_optimizer_arrays(tensor->kind, 1, (struct gw_optimizer_array[3]){{0}}) : 0;
	for (uint32_t a = 0; a < GW_CHECKPOINT_STATE + state; a++) {
		struct gw_checkpoint_shape shape = gw_checkpoint_shape_of(tensor, number, a);
		json_t *array = json_object_get(arrays, shape.name);
		const char *digest;
		if (!array)
			continue;
		if (json_unpack_ex(array, &error, 0, "{s:s}", "digest", &digest) != 0)
			return checkpoint_bad(shape.name, &error);
		part->there[a] = true;
		gw_status status = checkpoint_number("digest", digest, &part->digests[a]);
		if (status != GW_OK)
			return status;
	}
	/* State is there as a whole or not at all: a part that nobody had trained has none. */
	for (uint32_t a = 1; a < state; a++) {
		if (part->there[GW_CHECKPOINT_STATE + a] != part->there[GW_CHECKPOINT_STATE])
			return gw_fail(GW_FORMAT, "part %u: the optimizer's state is not whole", number);
	}
	if (!part->there[GW_CHECKPOINT_ROWS])
		return gw_fail(GW_FORMAT, "part %u: there is no array \"rows\"", number);
	return GW_OK;
}

static gw_status checkpoint_read_optimizer(const char *text, struct gw_checkpoint_tensor *tensor)
{
	tensor->trained = *text != 0;
	for (tensor->kind = GW_SGD; *text && tensor->kind <= GW_ADAM; tensor->kind++) {
		if (strcmp(text, gw_optimizer_name(tensor->kind)) == 0)
			return GW_OK;
	}
	tensor->kind = GW_SGD;
	return *text ? gw_fail(GW_FORMAT, "\"optimizer\": there is no \"%.64s\"", text) : GW_OK;
}

static gw_status checkpoint_read_tensor(json_t *json, uint32_t parts_count, struct gw_checkpoint_tensor *tensor)
{
	struct gw_tensor_plan *plan = &tensor->plan;
	json_error_t error;
	const char *name, *lifetime, *dtype_name, *placement, *type, *optimizer;
	json_t *shape, *initial, *parts;
	gw_dtype dtype;
	if (json_unpack_ex(json, &error, 0, "{s:s, s:s, s:s, s:o, s:s, s:s, s:o, s:s, s:o}", "name", &name, "lifetime",
			   &lifetime, "dtype", &dtype_name, "shape", &shape, "placement", &placement, "type", &type,
			   "initial", &initial, "optimizer", &optimizer, "parts", &parts) != 0)
		return checkpoint_bad("\"tensors\"", &error);
	if (!gw_tensor_name_valid(name))
		return gw_fail(GW_FORMAT, "\"name\": \"%.64s\" is no tensor's name", name);
	if (gw_dtype_parse(dtype_name, &dtype) != GW_OK || dtype == GW_INT8_ROW)
		return gw_fail(GW_FORMAT, "\"dtype\": no tensor is of \"%.32s\"", dtype_name);
	plan->dtype = (uint32_t)dtype;
	memcpy(plan->name, name, strlen(name) + 1);
	plan->job[0] = strcmp(lifetime, "kept") == 0 ? 0 : 'j';
	gw_status status = checkpoint_choice("placement", placement, checkpoint_placements, 4, &plan->placement);
	if (status == GW_OK)
		status = checkpoint_text("type", type, sizeof(tensor->type), tensor->type);
	if (status == GW_OK)
		status = checkpoint_read_shape(shape, plan);
	if (status == GW_OK)
		status = checkpoint_read_initial(initial, plan);
	if (status == GW_OK)
		status = checkpoint_read_optimizer(optimizer, tensor);
	if (status == GW_OK && json_array_size(parts) != parts_count)
		status = gw_fail(GW_FORMAT, "\"parts\": %zu of %u", json_array_size(parts), parts_count);
	for (uint32_t p = 0; p < parts_count && status == GW_OK; p++)
		status = checkpoint_read_part(json_array_get(parts, p), tensor, p);
	return status == GW_OK ? status : gw_context(status, "tensor \"%s\"", plan->name);
}

static gw_status checkpoint_read_root(json_t *root, struct gw_checkpoint_index **out)
{
	json_error_t error;
	const char *format, *graph_name, *graph_id;
	json_int_t parts;
	json_t *tensors;
	if (json_unpack_ex(root, &error, 0, "{s:s, s:s, s:s, s:I, s:o}", "format", &format, "graph_name", &graph_name,
			   "graph_id", &graph_id, "num_parts", &parts, "tensors", &tensors) != 0)
		return checkpoint_bad("the whole", &error);
	if (strcmp(format, GW_CHECKPOINT_FORMAT) != 0)
		return gw_fail(GW_VERSION, "\"format\" is \"%.64s\"; this program reads \"%s\"", format,
			       GW_CHECKPOINT_FORMAT);
	size_t count = json_array_size(tensors);
	/* Each part of each tensor has its lines in the file: no memory is taken for what is only claimed. */
	for (size_t t = 0; t < count; t++) {
		if ((json_int_t)json_array_size(json_object_get(json_array_get(tensors, t), "parts")) != parts)
			return gw_fail(GW_FORMAT, "tensor %zu has not as many parts as the graph", t);
	}
	if (parts < 1 || parts > GW_PARTS_MAX || count > GW_CHECKPOINT_TENSORS_MAX)
		return gw_fail(GW_FORMAT, "%zu tensors in %lld parts", count, (long long)parts);
	gw_status status = gw_checkpoint_make((uint32_t)parts, (uint32_t)count, out);
	if (status == GW_OK)
		status = checkpoint_text("graph_name", graph_name, sizeof((*out)->graph_name), (*out)->graph_name);
	if (status == GW_OK)
		status = checkpoint_number("graph_id", graph_id, &(*out)->graph_id);
	for (uint32_t t = 0; t < count && status == GW_OK; t++)
		status = checkpoint_read_tensor(json_array_get(tensors, t), (uint32_t)parts, &(*out)->tensors[t]);
	return status;
}

gw_status gw_checkpoint_parse(const char *text, size_t bytes, struct gw_checkpoint_index **out)
{
	json_error_t error;
	*out = NULL;
	json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return gw_fail(GW_FORMAT, "line %d: %s", error.line, error.text);
	gw_status status = checkpoint_read_root(root, out);
	json_decref(root);
	if (status != GW_OK) {
		gw_checkpoint_free(*out);
		*out = NULL;
	}
	return status;
}

static gw_status checkpoint_load(const char *path, char **text, size_t *bytes)
{
	struct stat info;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	*text = NULL;
	if (fd < 0)
		return gw_fail_errno(errno == ENOENT ? GW_NOT_FOUND : GW_IO, errno, "%s", path);
	gw_status status = GW_OK;
	if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_size > CHECKPOINT_JSON_MAX)
		status = gw_fail(GW_FORMAT, "%s: no regular file of at most %u bytes", path, CHECKPOINT_JSON_MAX);
	else if (!(*text = gw_malloc((size_t)info.st_size)))
		status = GW_NO_MEMORY;
	for (*bytes = 0; status == GW_OK && *bytes < (size_t)info.st_size;) {
		ssize_t got = read(fd, *text + *bytes, (size_t)info.st_size - *bytes);
		if (got < 0 && errno != EINTR)
			status = gw_fail_errno(GW_IO, errno, "%s: cannot read", path);
		if (got == 0)
			break;
		*bytes += got > 0 ? (size_t)got : 0;
	}
	close(fd);
	return status;
}

gw_status gw_checkpoint_read(const char *folder, struct gw_checkpoint_index **out)
{
	char *text = NULL, *path = gw_format("%s/checkpoint.json", folder);
	size_t bytes = 0;
	*out = NULL;
	gw_status status = path ? checkpoint_load(path, &text, &bytes) : GW_NO_MEMORY;
	if (status == GW_OK) {
		status = gw_checkpoint_parse(text, bytes, out);
		if (status != GW_OK)
			status = gw_context(status, "%s", path);
	}
	gw_free(text);
	gw_free(path);
	return status;
}
