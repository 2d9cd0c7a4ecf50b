/* Rows on disk, by request.
 *
 *   call -> array and rows checked -> reply reserved -> the disk reads into the reply -> GW_AGAIN: the thread serves
 *           others -> the disk wakes the thread's poll group -> the reply is complete
 *
 * If the client goes before its reply is complete, the read is given up, and the disk no longer writes to the reply.
 * Fails on a call that is malformed, or that means another array or rows that do not exist; if memory runs out; and if
 * rows cannot be read (core/files/disk.h).
 */
#include "tensors/disk_rows.h"

#include <stdio.h>
#include <string.h>

#include "core/graph/part_lists.h"
#include "core/memory/alloc.h"
#include "protocol/disk_call.h"
#include "protocol/ops.h"
#include "tensors/features.h"
#include "transport/transport.h"

struct array_left {
	struct gw_disk_array *array; /* NULL: in memory */
	uint64_t row_bytes;          /* of a row as clients request it */
};

struct gw_disk_rows_of_part {
	struct gw_disk *disk;
	const struct gw_part *part;
	uint32_t count;
	struct array_left *arrays; /* [count], by number in the part */
};

/* --- which arrays --- */

typedef bool (*array_rule)(const struct gw_graph_meta *meta, const struct gw_array_meta *array);

/* The arrays that a word means which is no feature; NULL: it is one. */
static array_rule rule_of(const char *word)
{
	if (strcmp(word, GW_LISTS_WORD) == 0)
		return gw_array_is_of_edges;
	return strcmp(word, GW_OFFSETS_WORD) == 0 ? gw_array_is_of_offsets : NULL;
}

const char *gw_disk_words_of_lists(const struct gw_disk_words *words)
{
	uint32_t i = 0;
	while (i < words->count && !rule_of(words->words[i]))
		i++;
	return i < words->count ? words->words[i] : NULL;
}

/* Whether an array of nodes is the index of a feature that the word means: of original ids, or of times. */
static bool means_index(const struct gw_graph_meta *meta, const char *key, const char *word)
{
	static const char *const tails[] = {GW_TIMES_TAIL, GW_TIMES_NODES_TAIL};
	struct gw_array_key parsed;
	char feature[2 * GW_NAME_MAX + 16];
	if (gw_array_key_parse(meta, key, &parsed) != GW_OK || parsed.edge)
		return false;
	size_t length = gw_name_is_node_ids(parsed.name) ? strlen("orig_id") : 0;
	for (size_t i = 0; i < 2 && meta->minor >= GW_FORMAT_MINOR_TIMES; i++) {
		if (gw_name_ends_in(parsed.name, tails[i]))
			length = strlen(parsed.name) - strlen(tails[i]);
	}
	snprintf(feature, sizeof(feature), "node/%s/%.*s", meta->ntypes[parsed.type].name, (int)length, parsed.name);
	return length > 0 && gw_feature_is_meant(meta, feature, word);
}

bool gw_disk_words_mean(const struct gw_disk_words *words, const struct gw_graph_meta *meta, const char *key)
{
	for (uint32_t i = 0; i < words->count; i++) {
		/* Every part has the same keys. */
		const array_rule rule = rule_of(words->words[i]);
		const struct gw_array_meta *array = rule ? gw_meta_array(meta, 0, key) : NULL;
		if (array ? rule(meta, array)
			  : gw_feature_is_meant(meta, key, words->words[i]) || means_index(meta, key, words->words[i]))
			return true;
	}
	return false;
}

static gw_status disk_word_check(const char *word, const struct gw_graph_meta *meta, uint32_t part)
{
	const struct gw_part_meta *arrays = &meta->parts[part];
	bool found = false, of_edges;
	uint32_t type;
	const char *name;
	if (rule_of(word))
		return GW_OK;
	for (uint32_t a = 0; a < arrays->count; a++) {
		const struct gw_array_meta *array = &arrays->arrays[a];
		found |= means_index(meta, array->key, word);
		if (!gw_feature_is_meant(meta, array->key, word))
			continue;
		if (array->ndim == 0 || !gw_feature_parse(meta, array->key, &of_edges, &type, &name))
			return gw_fail(GW_INVALID,
				       "\"%s\" is no feature: features, \"" GW_LISTS_WORD "\" and \"" GW_OFFSETS_WORD
				       "\" can stay on disk",
				       array->key);
		found = true;
	}
	return found ? GW_OK
		     : gw_fail(GW_NOT_FOUND, "%s has no such feature (graphwire inspect lists them)", meta->graph_name);
}

gw_status gw_disk_words_check(const struct gw_disk_words *words, const struct gw_graph_meta *meta, uint32_t part,
			      const char *option)
{
	for (uint32_t i = 0; i < words->count; i++) {
		gw_status status = disk_word_check(words->words[i], meta, part);
		if (status != GW_OK)
			return gw_context(status, "%s %.80s", option, words->words[i]);
	}
	return GW_OK;
}

/* --- a part --- */

static gw_status array_leave(struct gw_disk_rows_of_part *rows, const struct gw_array *array, struct array_left *left)
{
	const bool ranges = gw_array_is_of_ranges(gw_part_meta(rows->part), array->meta);
	struct gw_load_item item;
	left->row_bytes = (ranges ? 2 : 1) * array->row_bytes;
	gw_status status = gw_part_file(rows->part, array, &item);
	if (status != GW_OK)
		return status;
	return gw_disk_add(rows->disk, &item, (struct gw_disk_layout){left->row_bytes, array->row_bytes}, &left->array);
}

gw_status gw_disk_rows_open(struct gw_disk *disk, const struct gw_part *part, struct gw_disk_rows_of_part **out)
{
	*out = NULL;
	struct gw_disk_rows_of_part *rows = gw_calloc(1, sizeof(*rows));
	if (!rows)
		return GW_NO_MEMORY;
	*rows = (struct gw_disk_rows_of_part){
		.disk = disk, .part = part, .count = gw_part_meta(part)->parts[gw_part_number(part)].count};
	rows->arrays = gw_calloc(rows->count, sizeof(*rows->arrays));
	gw_status status = rows->arrays ? GW_OK : GW_NO_MEMORY;
	for (uint32_t i = 0; i < rows->count && status == GW_OK; i++) {
		const struct gw_array *array = gw_part_array_at(part, i);
		if (array->apart == GW_ARRAY_ON_DISK)
			status = array_leave(rows, array, &rows->arrays[i]);
	}
	if (status != GW_OK) {
		gw_disk_rows_close(rows);
		return status;
	}
	*out = rows;
	return GW_OK;
}

void gw_disk_rows_close(struct gw_disk_rows_of_part *rows)
{
	if (!rows)
		return;
	gw_free(rows->arrays);
	gw_free(rows);
}

/* --- the request --- */

/* What a call keeps between its runs. */
struct disk_rows_work {
	struct gw_disk_read *read;
};

static void disk_rows_leave(void *opaque)
{
	gw_disk_read_free(((struct disk_rows_work *)opaque)->read);
}

static void disk_rows_over(void *group)
{
	gw_poll_group_wake(group);
}

static gw_status disk_rows_find(const struct gw_disk_rows_of_part *rows, const struct gw_disk_call *call,
				const struct array_left **out)
{
	const struct gw_array *array = gw_part_array_at(rows->part, call->array);
	*out = call->array < rows->count ? &rows->arrays[call->array] : NULL;
	if (!*out || !(*out)->array || array->meta->digest != call->digest)
		return gw_fail(GW_PROTOCOL, "array %u of this server does not stay on disk, or is another one",
			       call->array);
	if (call->count > gw_disk_call_most((*out)->row_bytes))
		return gw_fail(GW_PROTOCOL, "%u rows of %llu bytes were asked for in one call", call->count,
			       (unsigned long long)(*out)->row_bytes);
	return GW_OK;
}

static gw_status disk_rows_begin(const struct gw_disk_rows_of_part *rows, const struct gw_call *call,
				 struct gw_reply *reply, struct disk_rows_work *work)
{
	struct gw_disk_call asked;
	struct gw_disk_rows what = {.over = disk_rows_over, .context = call->group};
	const struct array_left *left = NULL;
	const uint8_t *numbers = NULL;
	gw_status status = gw_disk_call_parse(call->bytes, call->byte_count, &asked, &numbers);
	if (status == GW_OK)
		status = disk_rows_find(rows, &asked, &left);
	if (status != GW_OK)
		return status;
	const uint64_t bytes = asked.count * left->row_bytes;
	status = gw_reply_reserve(reply, bytes);
	if (status != GW_OK)
		return status;
	what.out = gw_reply_extend(reply, (uint32_t)bytes);
	if (!what.out)
		return GW_NO_MEMORY;
	what.array = left->array;
	what.rows = numbers;
	what.count = asked.count;
	return gw_disk_read_start(rows->disk, &what, &work->read);
}

static gw_status answer_disk_rows(void *context, const struct gw_call *call, struct gw_reply *reply)
{
	struct disk_rows_work *work = gw_reply_work(reply, sizeof(*work), disk_rows_leave);
	if (!work)
		return GW_NO_MEMORY;
	gw_status status = work->read ? GW_OK : disk_rows_begin(context, call, reply, work);
	if (status != GW_OK)
		return status;
	status = gw_disk_read_status(work->read);
	if (status == GW_AGAIN)
		gw_reply_wait(reply);
	return status;
}

gw_status gw_disk_rows_serve(struct gw_disk_rows_of_part *rows, struct gw_service *service)
{
	return gw_service_handle(service, GW_OP_DISK_ROWS, answer_disk_rows, rows);
}
