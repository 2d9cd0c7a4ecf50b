/* See handover_text.h. jansson reports a shortage of memory by NULL, which a message then lacks: the other side finds
 * the member missing, and the hand-over fails. */
#include "server/handover_text.h"

#include <string.h>

#include "core/memory/alloc.h"
#include "core/system/clock.h"
#include "protocol/tensor_call.h"

static gw_status text_wrong(const char *name)
{
	return gw_fail(GW_PROTOCOL, "\"%s\" of the other server is missing or wrong", name);
}

json_t *gw_handover_object(const char *is)
{
	json_t *json = json_object();
	json_object_set_new(json, "is", json_string(is));
	return json;
}

gw_status gw_handover_expect(const json_t *json, const char *is)
{
	const char *has = json_string_value(json_object_get(json, "is"));
	const char *why = json_string_value(json_object_get(json, "why"));
	if (has && strcmp(has, is) == 0)
		return GW_OK;
	if (has && strcmp(has, "abort") == 0)
		return gw_fail(GW_REFUSED, "%.400s", why ? why : "the other server gave up");
	return gw_fail(GW_PROTOCOL, "the other server sent no message \"%s\"", is);
}

void gw_handover_set(json_t *json, const char *name, uint64_t value)
{
	json_object_set_new(json, name, json_integer((json_int_t)value));
}

gw_status gw_handover_number(const json_t *json, const char *name, uint64_t max, uint64_t *out)
{
	const json_t *value = json_object_get(json, name);
	*out = (uint64_t)json_integer_value(value);
	return json_is_integer(value) && *out <= max ? GW_OK : text_wrong(name);
}

gw_status gw_handover_word(const json_t *json, const char *name, char *out, size_t bytes)
{
	const json_t *value = json_object_get(json, name);
	size_t length = json_string_length(value);
	if (!json_is_string(value) || length >= bytes || strlen(json_string_value(value)) != length)
		return text_wrong(name);
	memset(out, 0, bytes);
	memcpy(out, json_string_value(value), length);
	return GW_OK;
}

json_t *gw_handover_shape(const struct gw_arena_shape *shape)
{
	json_t *json = json_object();
	gw_handover_set(json, "bytes", shape->bytes);
	gw_handover_set(json, "slice_bytes", shape->slice_bytes);
	gw_handover_set(json, "pages", shape->level);
	return json;
}

gw_status gw_handover_shape_read(const json_t *json, struct gw_arena_shape *out)
{
	uint64_t level = 0;
	gw_status status = gw_handover_number(json, "bytes", 1ull << 46, &out->bytes);
	if (status == GW_OK)
		status = gw_handover_number(json, "slice_bytes", 1ull << 46, &out->slice_bytes);
	if (status == GW_OK)
		status = gw_handover_number(json, "pages", GW_PAGES_HUGETLB, &level);
	out->level = (enum gw_page_level)level;
	return status;
}

/* --- The part. --- */

json_t *gw_handover_arrays(const struct gw_part *part)
{
	json_t *list = json_array();
	const struct gw_array *array;
	for (uint32_t i = 0; (array = gw_part_array_at(part, i)) != NULL; i++) {
		json_t *one = json_object();
		json_object_set_new(one, "key", json_string(array->meta->key));
		/* Of both: an older successor knows "mutable" alone, and refuses. */
		json_object_set_new(one, "mutable", json_boolean(array->apart != GW_ARRAY_HERE));
		json_object_set_new(one, "on_disk", json_boolean(array->apart == GW_ARRAY_ON_DISK));
		gw_handover_set(one, "digest", array->meta->digest);
		gw_handover_set(one, "offset", array->offset);
		gw_handover_set(one, "bytes", gw_array_meta_bytes(array->meta));
		json_array_append_new(list, one);
	}
	return list;
}

/* apart: of the same array here. */
static gw_status check_moved_apart(const json_t *json, enum gw_array_apart apart, const char *key)
{
	bool on_disk = apart == GW_ARRAY_ON_DISK;
	if (json_is_true(json_object_get(json, "on_disk")) != on_disk)
		return gw_fail(GW_INVALID, "\"%s\" is %son disk at the running server: give the same --on-disk", key,
			       on_disk ? "not " : "");
	if (json_is_true(json_object_get(json, "mutable")) != (apart != GW_ARRAY_HERE))
		return gw_fail(GW_INVALID, "\"%s\" is %smutable at the running server: give the same --mutable", key,
			       apart ? "not " : "");
	return GW_OK;
}

gw_status gw_handover_apart_check(const json_t *arrays, const struct gw_part_options *options)
{
	size_t i;
	const json_t *one;
	gw_status status = GW_OK;
	json_array_foreach(arrays, i, one)
	{
		const char *key = json_string_value(json_object_get(one, "key"));
		if (key && status == GW_OK)
			status = check_moved_apart(one, options->set_apart(options->apart_context, key), key);
	}
	return status;
}

static gw_status check_moved_array(const json_t *json, const struct gw_array *array)
{
	uint64_t digest, offset, bytes;
	const char *key = json_string_value(json_object_get(json, "key"));
	if (!key || strcmp(key, array->meta->key) != 0)
		return gw_fail(
			GW_WRONG_GRAPH,
			"the running server has another array in place of \"%s\": it loaded other arrays, such as "
			"replicas; restart the server",
			array->meta->key);
	gw_status status = check_moved_apart(json, array->apart, key);
	if (status == GW_OK)
		status = gw_handover_number(json, "digest", UINT64_MAX, &digest);
	if (status == GW_OK)
		status = gw_handover_number(json, "offset", UINT64_MAX, &offset);
	if (status == GW_OK)
		status = gw_handover_number(json, "bytes", UINT64_MAX, &bytes);
	if (status == GW_OK &&
	    (digest != array->meta->digest || bytes != gw_array_meta_bytes(array->meta) || offset != array->offset))
		status = gw_fail(GW_WRONG_GRAPH,
				 "\"%s\" differs from that of the running server: the graph was written again since "
				 "it loaded the part; restart it",
				 array->meta->key);
	return status;
}

gw_status gw_handover_arrays_check(const json_t *arrays, const struct gw_part *part)
{
	const struct gw_array *array;
	uint32_t count = 0;
	while ((array = gw_part_array_at(part, count)) != NULL) {
		gw_status status = check_moved_array(json_array_get(arrays, count), array);
		if (status != GW_OK)
			return status;
		count++;
	}
	return json_array_size(arrays) == count
		       ? GW_OK
		       : gw_fail(GW_WRONG_GRAPH, "the running server has %zu arrays, and the part has %u",
				 json_array_size(arrays), count);
}

json_t *gw_handover_lists(struct gw_part *const *parts, uint32_t count)
{
	json_t *lists = json_array();
	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(lists, gw_handover_arrays(parts[i]));
	return lists;
}

gw_status gw_handover_lists_check(const json_t *lists, struct gw_part *const *parts, uint32_t count)
{
	if (json_array_size(lists) != count)
		return gw_fail(
			GW_INVALID,
			"the running server was started %s --lists all, which cannot change in a take-over: start "
			"this one %s it, or restart the server",
			count ? "without" : "with", count ? "without" : "with");
	for (uint32_t i = 0; i < count; i++) {
		gw_status status = gw_handover_arrays_check(json_array_get(lists, i), parts[i]);
		if (status != GW_OK)
			return gw_context(status, "lists of part %u", gw_part_number(parts[i]));
	}
	return GW_OK;
}

/* --- Tensors. --- */

static uint64_t bits_of(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static json_t *list_of(const uint64_t *values, uint32_t n)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(list, json_integer((json_int_t)values[i]));
	return list;
}

/* A list of exactly n numbers; fewer are followed by zeros if `fewer` is allowed. */
static gw_status read_list(const json_t *json, const char *name, bool fewer, uint64_t *out, uint32_t n)
{
	const json_t *list = json_object_get(json, name);
	size_t count = json_array_size(list);
	if (!json_is_array(list) || count > n || (count < n && !fewer))
		return text_wrong(name);
	for (uint32_t i = 0; i < n; i++) {
		const json_t *value = json_array_get(list, i);
		out[i] = (uint64_t)json_integer_value(value);
		if (i < count && !json_is_integer(value))
			return text_wrong(name);
	}
	return GW_OK;
}

static void plan_put(json_t *json, const struct gw_tensor_plan *plan)
{
	json_object_set_new(json, "name", json_string(plan->name));
	json_object_set_new(json, "job", json_string(plan->job));
	json_object_set_new(json, "source", json_string(plan->source));
	json_object_set_new(json, "shape", list_of(plan->shape, GW_DIMS_MAX));
	gw_handover_set(json, "seed", plan->seed);
	gw_handover_set(json, "low", bits_of(plan->low));
	gw_handover_set(json, "high", bits_of(plan->high));
	gw_handover_set(json, "dtype", plan->dtype);
	gw_handover_set(json, "ndim", plan->ndim);
	gw_handover_set(json, "placement", plan->placement);
	gw_handover_set(json, "type", plan->type);
	gw_handover_set(json, "initial", plan->initial);
}

static gw_status plan_read(const json_t *json, struct gw_tensor_plan *plan)
{
	const struct {
		const char *name;
		uint32_t *at;
	} words[] = {{"dtype", &plan->dtype},
		     {"ndim", &plan->ndim},
		     {"placement", &plan->placement},
		     {"type", &plan->type},
		     {"initial", &plan->initial}};
	uint64_t value, low = 0, high = 0;
	gw_status status = gw_handover_word(json, "name", plan->name, sizeof(plan->name));
	if (status == GW_OK)
		status = gw_handover_word(json, "job", plan->job, sizeof(plan->job));
	if (status == GW_OK)
		status = gw_handover_word(json, "source", plan->source, sizeof(plan->source));
	if (status == GW_OK)
		status = read_list(json, "shape", true, plan->shape, GW_DIMS_MAX);
	if (status == GW_OK)
		status = gw_handover_number(json, "seed", UINT64_MAX, &plan->seed);
	if (status == GW_OK)
		status = gw_handover_number(json, "low", UINT64_MAX, &low);
	if (status == GW_OK)
		status = gw_handover_number(json, "high", UINT64_MAX, &high);
	for (size_t i = 0; status == GW_OK && i < sizeof(words) / sizeof(words[0]); i++) {
		status = gw_handover_number(json, words[i].name, UINT32_MAX, &value);
		*words[i].at = (uint32_t)value;
	}
	if (status == GW_OK && (!gw_tensor_name_valid(plan->name) || (plan->job[0] && !gw_job_name_valid(plan->job))))
		status = text_wrong("name");
	memcpy(&plan->low, &low, sizeof(low));
	memcpy(&plan->high, &high, sizeof(high));
	return status;
}

json_t *gw_handover_tensor(const struct gw_tensor_moved *moved, uint32_t parts)
{
	json_t *json = gw_handover_object("tensor");
	plan_put(json, &moved->plan);
	gw_handover_set(json, "epoch", moved->epoch);
	gw_handover_set(json, "leader", moved->leader);
	json_object_set_new(json, "restored", json_boolean(moved->restored));
	json_object_set_new(json, "ready", json_boolean(moved->ready));
	if (moved->epochs)
		json_object_set_new(json, "epochs", list_of(moved->epochs, parts));
	if (!moved->ready)
		return json;
	gw_handover_set(json, "region", moved->region);
	gw_handover_set(json, "generation", moved->generation);
	json_object_set_new(json, "counts", list_of(moved->counts, 6));
	json_object_set_new(json, "rows", gw_handover_shape(&moved->memory.rows));
	if (moved->memory.state_fd < 0)
		return json;
	json_object_set_new(json, "state", gw_handover_shape(&moved->memory.state));
	json_object_set_new(json, "optimizer", json_string(gw_optimizer_name(moved->memory.kind)));
	return json;
}

static gw_status optimizer_read(const json_t *json, enum gw_optimizer_kind *out)
{
	const char *name = json_string_value(json_object_get(json, "optimizer"));
	return name && gw_optimizer_parse(name, out) == GW_OK ? GW_OK : text_wrong("optimizer");
}

static gw_status ready_read(const json_t *json, struct gw_tensor_moved *out)
{
	uint64_t region = 0, generation = 0;
	const json_t *state = json_object_get(json, "state");
	gw_status status = gw_handover_number(json, "region", UINT32_MAX, &region);
	if (status == GW_OK)
		status = gw_handover_number(json, "generation", UINT32_MAX, &generation);
	if (status == GW_OK)
		status = read_list(json, "counts", true, out->counts, 6);
	if (status == GW_OK)
		status = gw_handover_shape_read(json_object_get(json, "rows"), &out->memory.rows);
	if (status == GW_OK && state)
		status = gw_handover_shape_read(state, &out->memory.state);
	if (status == GW_OK && state)
		status = optimizer_read(json, &out->memory.kind);
	out->region = (uint32_t)region;
	out->generation = (uint32_t)generation;
	return status;
}

gw_status gw_handover_tensor_read(const json_t *json, uint32_t parts, struct gw_tensor_moved *out)
{
	*out = (struct gw_tensor_moved){.restored = json_is_true(json_object_get(json, "restored")),
					.ready = json_is_true(json_object_get(json, "ready")),
					.memory = {.rows_fd = -1, .state_fd = -1}};
	gw_status status = gw_handover_expect(json, "tensor");
	if (status == GW_OK)
		status = plan_read(json, &out->plan);
	if (status == GW_OK)
		status = gw_handover_number(json, "epoch", UINT64_MAX, &out->epoch);
	if (status == GW_OK)
		status = gw_handover_number(json, "leader", UINT64_MAX, &out->leader);
	if (status == GW_OK && out->ready)
		status = ready_read(json, out);
	if (status != GW_OK || !json_object_get(json, "epochs"))
		return status;
	out->epochs = gw_calloc(parts, sizeof(uint64_t));
	if (!out->epochs)
		return GW_NO_MEMORY;
	status = read_list(json, "epochs", false, out->epochs, parts);
	if (status != GW_OK) {
		gw_free(out->epochs);
		out->epochs = NULL;
	}
	return status;
}

json_t *gw_handover_jobs(const struct gw_tensor_moves *moves)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < moves->job_count; i++) {
		json_t *one = json_object();
		json_object_set_new(one, "name", json_string(moves->jobs[i].name));
		gw_handover_set(one, "age_ms", moves->jobs[i].age_ms);
		json_array_append_new(list, one);
	}
	return list;
}

gw_status gw_handover_jobs_read(const json_t *json, struct gw_tensor_moves *out)
{
	const json_t *list = json_object_get(json, "jobs");
	size_t count = json_array_size(list);
	if (!json_is_array(list) || count > GW_TENSOR_JOBS_MAX)
		return text_wrong("jobs");
	out->jobs = gw_calloc(count + 1, sizeof(*out->jobs));
	if (!out->jobs)
		return GW_NO_MEMORY;
	for (; out->job_count < count; out->job_count++) {
		struct gw_tensor_moved_job *job = &out->jobs[out->job_count];
		const json_t *one = json_array_get(list, out->job_count);
		gw_status status = gw_handover_word(one, "name", job->name, sizeof(job->name));
		if (status == GW_OK)
			status = gw_handover_number(one, "age_ms", UINT64_MAX / GW_NS_PER_MS, &job->age_ms);
		if (status != GW_OK)
			return status;
	}
	return GW_OK;
}
