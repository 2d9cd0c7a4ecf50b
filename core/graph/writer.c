/* Writes a partitioned graph to disk.
 *
 *   open: staging folder -> begin: shape checked, header written -> append: [conversion], buffer, digests -> end: .xxh
 * written, array noted -> commit: required arrays exist, graph_id, JSON printed and read back, staging's rename
 *
 * Any failure marks the writer, which can then only abort. A caller that misses one error therefore cannot commit a
 * graph with a missing array. A full disk is GW_NO_SPACE and names the file. Streams of several threads share state
 * only in begin and end, under a lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/files/filemap.h"
#include "core/graph/npy.h"
#include "core/graph/writer_private.h"
#include "core/memory/alloc.h"
#include "core/numbers/digest.h"

#define BUFFER_BYTES (4u << 20)
#define NARROW_BYTES (64u << 10) /* converted rows at a time; more for a longer row */
#define ID_DIGITS    16

struct gw_array_stream {
	struct gw_writer *writer;
	struct gw_digester *digester;
	char *path; /* in the staging folder */
	char *file; /* the same path, relative to the staging folder */
	char key[GW_WRITER_KEY_MAX];
	uint32_t part;
	struct gw_array_meta array;
	uint64_t bytes_wanted, bytes_got;
	int fd;
	gw_status status; /* the first failure */
	size_t room, used;
	uint8_t *buffer;
	const struct gw_conversion *conversion; /* of rows before they are stored, or NULL */
	uint8_t *narrow;                        /* converted rows */
	uint64_t narrow_rows;
};

gw_status gw_writer_mark(struct gw_writer *writer, gw_status status)
{
	if (status != GW_OK)
		atomic_store(&writer->failed, true);
	return status;
}

gw_status gw_writer_open(const char *folder, const struct gw_graph_meta *schema, bool replace, struct gw_writer **out)
{
	*out = NULL;
	struct gw_writer *writer = gw_calloc(1, sizeof(*writer));
	if (!writer)
		return GW_NO_MEMORY;
	struct gw_owned *owned = NULL;
	gw_status status = replace ? gw_meta_check_replaceable(folder, &owned) : GW_OK;
	if (status == GW_OK)
		status = gw_meta_copy(schema, &writer->meta);
	if (status == GW_OK)
		status = gw_staging_begin(folder, replace, &writer->staging);
	if (status == GW_OK) {
		gw_staging_keep_others(writer->staging, owned);
	} else {
		gw_owned_destroy(owned);
		gw_meta_destroy(writer->meta);
		gw_free(writer);
		return status;
	}
	pthread_mutex_init(&writer->lock, NULL);
	*out = writer;
	return GW_OK;
}

static void writer_destroy(struct gw_writer *writer)
{
	for (uint32_t i = 0; i < writer->num_texts; i++) {
		gw_free(writer->texts[i].end);
		gw_free(writer->texts[i].text);
	}
	for (struct writer_store *store = writer->stores, *next; store; store = next) {
		next = store->next;
		gw_free(store);
	}
	gw_meta_destroy(writer->meta);
	pthread_mutex_destroy(&writer->lock);
	gw_free(writer);
}

void gw_writer_abort(struct gw_writer *writer)
{
	if (!writer)
		return;
	gw_staging_abort(writer->staging);
	writer_destroy(writer);
}

static gw_status write_all(int fd, const char *path, const void *data, size_t bytes)
{
	const uint8_t *at = data;
	while (bytes > 0) {
		ssize_t done = write(fd, at, bytes);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return gw_fail_errno(GW_IO, errno, "%s: cannot write", path);
		at += done;
		bytes -= (size_t)done;
	}
	return GW_OK;
}

/* Closing reports errors that some file systems (NFS, quotas) detect only then. */
static gw_status close_checked(int fd, const char *path, gw_status status)
{
	if (close(fd) < 0 && status == GW_OK)
		return gw_fail_errno(GW_IO, errno, "%s: cannot close", path);
	return status;
}

static void stream_free(struct gw_array_stream *stream)
{
	if (stream->fd >= 0)
		close(stream->fd);
	gw_digester_destroy(stream->digester);
	gw_free(stream->buffer);
	gw_free(stream->narrow);
	gw_free(stream->path);
	gw_free(stream->file);
	gw_free(stream);
}

gw_status gw_writer_make_folder(struct gw_writer *writer, uint32_t part, const char *key)
{
	char folder[GW_WRITER_KEY_MAX + 16];
	snprintf(folder, sizeof(folder), "part%u/%s", part, key);
	*strrchr(folder, '/') = '\0';
	pthread_mutex_lock(&writer->lock);
	gw_status status = gw_staging_mkdir(writer->staging, folder);
	pthread_mutex_unlock(&writer->lock);
	return status;
}

/* Where the rows are converted, if they are. */
static gw_status stream_make_narrow(struct gw_array_stream *stream, const struct writer_store *store)
{
	if (!store)
		return GW_OK;
	uint64_t rows = NARROW_BYTES / store->conversion.to_bytes;
	stream->conversion = &store->conversion;
	stream->narrow_rows = rows ? rows : 1;
	stream->narrow = gw_malloc(stream->narrow_rows * store->conversion.to_bytes);
	return stream->narrow ? GW_OK : GW_NO_MEMORY;
}

static gw_status stream_make(struct gw_writer *writer, uint32_t part, const struct gw_array_meta *array,
			     const struct writer_store *store, struct gw_array_stream **out)
{
	struct gw_array_stream *stream = gw_calloc(1, sizeof(*stream));
	if (!stream)
		return GW_NO_MEMORY;
	*out = stream;
	stream->fd = -1;
	stream->writer = writer;
	stream->part = part;
	stream->array = *array;
	snprintf(stream->key, sizeof(stream->key), "%s", array->key);
	stream->array.key = stream->key;
	stream->bytes_wanted = gw_array_meta_bytes(array);
	stream->room = stream->bytes_wanted < BUFFER_BYTES ? (size_t)stream->bytes_wanted : BUFFER_BYTES;
	stream->file = gw_format("part%u/%s.npy", part, array->key);
	stream->path = gw_format("%s/part%u/%s.npy", gw_staging_path(writer->staging), part, array->key);
	stream->buffer = gw_malloc(stream->room);
	if (!stream->file || !stream->path || !stream->buffer)
		return GW_NO_MEMORY;
	stream->array.file = stream->file;
	gw_status status = stream_make_narrow(stream, store);
	return status == GW_OK ? gw_digester_create(&stream->digester) : status;
}

static gw_status stream_start(struct gw_array_stream *stream)
{
	uint8_t header[GW_NPY_HEADER_BYTES];
	const struct gw_array_meta *array = &stream->array;
	gw_status status = gw_npy_format(array->dtype, array->ndim, array->shape, header);
	if (status != GW_OK)
		return status;
	stream->fd = open(stream->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (stream->fd < 0 && errno == EEXIST)
		return gw_fail(GW_EXISTS, "part %u: %s: written already", stream->part, array->key);
	if (stream->fd < 0)
		return gw_fail_errno(GW_IO, errno, "%s: cannot create", stream->path);
	return write_all(stream->fd, stream->path, header, sizeof(header));
}

static const struct writer_store *writer_find_store(const struct gw_writer *writer, const char *key)
{
	const struct writer_store *store = writer->stores;
	while (store && strcmp(store->key, key) != 0)
		store = store->next;
	return store;
}

/* The form in which the array is stored. */
static gw_status array_as_stored(struct gw_array_meta *array, const struct writer_store *store)
{
	if (!store)
		return GW_OK;
	const struct gw_conversion *conversion = &store->conversion;
	if (array->dtype != conversion->from || gw_array_meta_row_bytes(array) != conversion->from_bytes)
		return gw_fail(GW_INVALID, "\"%s\": its rows are of another form than was said", array->key);
	array->dtype = conversion->to;
	if (conversion->to == GW_INT8_ROW) {
		array->ndim = 2;
		array->shape[1] = conversion->to_bytes;
	}
	return GW_OK;
}

gw_status gw_writer_begin(struct gw_writer *writer, uint32_t part, const char *key, gw_dtype dtype, uint32_t ndim,
			  const uint64_t *shape, struct gw_array_stream **out)
{
	struct gw_array_meta array = {.key = (char *)key, .dtype = dtype, .ndim = ndim}; /* the key is only read */
	struct gw_array_stream *stream = NULL;
	*out = NULL;
	for (uint32_t i = 0; i < ndim && i < GW_DIMS_MAX; i++)
		array.shape[i] = shape[i];
	const struct writer_store *store = writer_find_store(writer, key);
	gw_status status = array_as_stored(&array, store);
	pthread_mutex_lock(&writer->lock);
	gw_writer_set_minor(writer, gw_meta_minor_of(writer->meta, key, ndim));
	if (status == GW_OK)
		status = gw_meta_check_array(writer->meta, part, &array);
	pthread_mutex_unlock(&writer->lock);
	if (status != GW_OK)
		return gw_writer_mark(writer, gw_context(status, "part %u", part));
	status = gw_writer_make_folder(writer, part, key);
	if (status == GW_OK)
		status = stream_make(writer, part, &array, store, &stream);
	if (status == GW_OK)
		status = stream_start(stream);
	if (status != GW_OK) {
		if (stream)
			stream_free(stream);
		return gw_writer_mark(writer, status);
	}
	atomic_fetch_add(&writer->open_streams, 1);
	*out = stream;
	return GW_OK;
}

static gw_status writer_flush(struct gw_array_stream *stream)
{
	gw_status status = write_all(stream->fd, stream->path, stream->buffer, stream->used);
	stream->used = 0;
	return status;
}

static gw_status writer_append(struct gw_array_stream *stream, const void *data, size_t bytes)
{
	if (bytes > stream->bytes_wanted - stream->bytes_got)
		return gw_fail(GW_INVALID, "part %u: %s: more than the %" PRIu64 " bytes of its shape", stream->part,
			       stream->key, stream->bytes_wanted);
	gw_status status = gw_digester_add(stream->digester, data, bytes);
	stream->bytes_got += bytes;
	if (status == GW_OK && bytes > stream->room - stream->used)
		status = writer_flush(stream);
	if (status != GW_OK)
		return status;
	if (bytes >= stream->room) /* large pieces bypass the buffer */
		return write_all(stream->fd, stream->path, data, bytes);
	memcpy(stream->buffer + stream->used, data, bytes);
	stream->used += bytes;
	return GW_OK;
}

/* An int8_row holds finite numbers only. */
static gw_status writer_check_rows(const struct gw_array_stream *stream, const void *rows, uint64_t count)
{
	const struct gw_conversion *conversion = stream->conversion;
	uint64_t numbers = count * conversion->numbers, at = numbers;
	if (conversion->to == GW_INT8_ROW)
		at = gw_convert_first_fault(conversion->from, rows, numbers);
	if (at == numbers)
		return GW_OK;
	return gw_fail(GW_RANGE, "part %u: %s: row %" PRIu64 ", column %" PRIu64 " is %g: " GW_INT8_ROW_RULE,
		       stream->part, stream->key, stream->bytes_got / conversion->to_bytes + at / conversion->numbers,
		       at % conversion->numbers, gw_convert_number(conversion->from, rows, at));
}

static gw_status writer_append_rows(struct gw_array_stream *stream, const uint8_t *rows, size_t bytes)
{
	const struct gw_conversion *conversion = stream->conversion;
	uint64_t left = bytes / conversion->from_bytes;
	if (left * conversion->from_bytes != bytes)
		return gw_fail(GW_INVALID, "part %u: %s: a piece of its rows is not whole rows", stream->part,
			       stream->key);
	gw_status status = GW_OK;
	while (left > 0 && status == GW_OK) {
		uint64_t count = left < stream->narrow_rows ? left : stream->narrow_rows;
		status = writer_check_rows(stream, rows, count);
		if (status != GW_OK)
			break;
		gw_convert_rows(conversion, rows, stream->narrow, count);
		status = writer_append(stream, stream->narrow, count * conversion->to_bytes);
		rows += count * conversion->from_bytes;
		left -= count;
	}
	return status;
}

gw_status gw_writer_append(struct gw_array_stream *stream, const void *data, size_t bytes)
{
	if (bytes == 0)
		return GW_OK;
	if (stream->status == GW_OK)
		stream->status =
			gw_writer_mark(stream->writer, (stream->conversion ? writer_append_rows(stream, data, bytes)
									   : writer_append(stream, data, bytes)));
	return stream->status;
}

char *gw_writer_digests_name(char *path)
{
	if (path)
		memcpy(path + strlen(path) - 4, ".xxh", sizeof(".xxh"));
	return path;
}

uint64_t gw_writer_bytes(const struct gw_array_stream *stream)
{
	return stream->bytes_wanted;
}

static gw_status write_digests(struct gw_array_stream *stream)
{
	const uint64_t *digests;
	uint64_t count;
	gw_status status = gw_digester_finish(stream->digester, &digests, &count);
	if (status != GW_OK)
		return status;
	size_t bytes = (size_t)count * sizeof(*digests);
	stream->array.digest = gw_digest(digests, bytes);
	char *path = gw_writer_digests_name(gw_strdup(stream->path));
	if (!path)
		return GW_NO_MEMORY;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		status = gw_fail_errno(GW_IO, errno, "%s: cannot create", path);
	else
		status = close_checked(fd, path, write_all(fd, path, digests, bytes));
	gw_free(path);
	return status;
}

static gw_status writer_end(struct gw_array_stream *stream)
{
	struct gw_writer *writer = stream->writer;
	if (stream->status != GW_OK)
		return gw_fail(stream->status, "part %u: %s: not written, because of an earlier error", stream->part,
			       stream->key);
	if (stream->bytes_got != stream->bytes_wanted)
		return gw_fail(GW_INVALID, "part %u: %s: %" PRIu64 " bytes came, its shape has %" PRIu64, stream->part,
			       stream->key, stream->bytes_got, stream->bytes_wanted);
	gw_status status = writer_flush(stream);
	int fd = stream->fd;
	stream->fd = -1;
	status = close_checked(fd, stream->path, status);
	if (status == GW_OK)
		status = write_digests(stream);
	if (status != GW_OK)
		return status;
	pthread_mutex_lock(&writer->lock);
	status = gw_meta_add_array(writer->meta, stream->part, &stream->array);
	pthread_mutex_unlock(&writer->lock);
	return status;
}

gw_status gw_writer_end(struct gw_array_stream *stream)
{
	struct gw_writer *writer = stream->writer;
	gw_status status = gw_writer_mark(writer, writer_end(stream));
	atomic_fetch_sub(&writer->open_streams, 1);
	stream_free(stream);
	return status;
}

void gw_writer_drop(struct gw_array_stream *stream)
{
	atomic_store(&stream->writer->failed, true);
	atomic_fetch_sub(&stream->writer->open_streams, 1);
	stream_free(stream);
}

gw_status gw_writer_array(struct gw_writer *writer, uint32_t part, const char *key, gw_dtype dtype, uint32_t ndim,
			  const uint64_t *shape, const void *data)
{
	struct gw_array_stream *stream = NULL;
	gw_status status = gw_writer_begin(writer, part, key, dtype, ndim, shape, &stream);
	if (status != GW_OK || !stream)
		return status;
	uint64_t bytes = stream->bytes_wanted;
	if (stream->conversion)
		bytes = shape[0] * stream->conversion->from_bytes;
	status = gw_writer_append(stream, data, (size_t)bytes);
	if (status == GW_OK)
		return gw_writer_end(stream);
	gw_writer_drop(stream);
	return status;
}

gw_status gw_writer_text(struct gw_writer *writer, const char *end, const char *text)
{
	if (writer->num_texts == GW_WRITER_TEXTS_MAX)
		return gw_writer_mark(
			writer, gw_fail(GW_LIMIT, "more than %u texts in the graph's folder", GW_WRITER_TEXTS_MAX));
	char *kept_end = gw_strdup(end), *kept = gw_strdup(text);
	if (!kept_end || !kept) {
		gw_free(kept_end);
		gw_free(kept);
		return gw_writer_mark(writer, GW_NO_MEMORY);
	}
	writer->texts[writer->num_texts].end = kept_end;
	writer->texts[writer->num_texts++].text = kept;
	return GW_OK;
}

char *gw_writer_path(const struct gw_writer *writer, const char *end)
{
	return gw_format("%s/%s%s", gw_staging_path(writer->staging), writer->meta->graph_name, end);
}

const struct gw_graph_meta *gw_writer_meta(const struct gw_writer *writer)
{
	return writer->meta;
}

gw_status gw_writer_map(const struct gw_writer *writer, uint32_t part, const char *key, struct gw_npy_file *out)
{
	const struct gw_array_meta *array = gw_meta_array(writer->meta, part, key);
	if (!array)
		return gw_fail(GW_NOT_FOUND, "part %u: %s: it was not written", part, key);
	char *path = gw_format("%s/%s", gw_staging_path(writer->staging), array->file);
	gw_status status = path ? gw_npy_open(path, out) : GW_NO_MEMORY;
	gw_free(path);
	return status;
}

void gw_writer_set_minor(struct gw_writer *writer, uint32_t minor)
{
	writer->meta->minor = minor > writer->meta->minor ? minor : writer->meta->minor;
}

gw_status gw_writer_set_unit(struct gw_writer *writer, const char *key, enum gw_time_unit unit)
{
	if (unit == GW_UNIT_NONE)
		return GW_OK;
	gw_writer_set_minor(writer, GW_FORMAT_MINOR_TIMES);
	return gw_meta_set_unit(writer->meta, key, unit);
}

static gw_status writer_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return gw_fail_errno(GW_IO, errno, "%s: cannot create", path);
	return close_checked(fd, path, write_all(fd, path, text, strlen(text)));
}

gw_status gw_writer_set_original(struct gw_writer *writer, const char *key, gw_dtype original, uint64_t columns)
{
	gw_writer_set_minor(writer, GW_FORMAT_MINOR_ORIGINALS);
	return gw_meta_set_original(writer->meta, key, original, columns);
}

gw_status gw_writer_set_replicas(struct gw_writer *writer, const char *key, const char *by, uint64_t of)
{
	gw_writer_set_minor(writer, GW_FORMAT_MINOR_REPLICAS);
	return gw_meta_set_replicas(writer->meta, key, by, of);
}

gw_status gw_writer_store(struct gw_writer *writer, const char *key, gw_dtype original, uint64_t numbers,
			  gw_dtype dtype)
{
	struct writer_store *store = gw_calloc(1, sizeof(*store));
	if (!store)
		return GW_NO_MEMORY;
	snprintf(store->key, sizeof(store->key), "%s", key);
	store->conversion = gw_conversion_of(original, dtype, numbers);
	store->next = writer->stores;
	writer->stores = store;
	return gw_writer_set_original(writer, key, original, dtype == GW_INT8_ROW ? numbers : 0);
}

/* Reads it back, so that a committed graph can be opened. */
static gw_status write_json(struct gw_writer *writer)
{
	char *text = NULL, *path = NULL;
	struct gw_graph_meta *again = NULL;
	gw_status status = gw_meta_print(writer->meta, &text);
	if (status != GW_OK)
		return status;
	path = gw_format("%s/%s.json", gw_staging_path(writer->staging), writer->meta->graph_name);
	status = path ? gw_meta_parse(text, strlen(text), path, &again) : GW_NO_MEMORY;
	gw_meta_destroy(again);
	if (status == GW_OK)
		status = writer_write_file(path, text);
	gw_free(path);
	gw_free(text);
	return status;
}

static gw_status write_texts(struct gw_writer *writer)
{
	static const char zeros[ID_DIGITS + 1] = "0000000000000000";
	char id[ID_DIGITS + 1];
	gw_status status = GW_OK;
	snprintf(id, sizeof(id), "%016" PRIx64, writer->meta->graph_id);
	for (uint32_t i = 0; i < writer->num_texts && status == GW_OK; i++) {
		char *at = strstr(writer->texts[i].text, zeros);
		if (at)
			memcpy(at, id, ID_DIGITS);
		char *path = gw_writer_path(writer, writer->texts[i].end);
		status = path ? writer_write_file(path, writer->texts[i].text) : GW_NO_MEMORY;
		gw_free(path);
	}
	return status;
}

gw_status gw_writer_commit(struct gw_writer *writer, uint64_t *graph_id)
{
	gw_status status = GW_OK;
	if (atomic_load(&writer->failed))
		status = gw_fail(GW_INVALID, "graph \"%s\": an array could not be written; nothing is committed",
				 writer->meta->graph_name);
	else if (atomic_load(&writer->open_streams) > 0)
		status = gw_fail(GW_INVALID, "graph \"%s\": %u arrays are not ended", writer->meta->graph_name,
				 atomic_load(&writer->open_streams));
	if (status == GW_OK) /* the mapped input files are unchanged */
		status = gw_filemap_check();
	if (status == GW_OK)
		status = gw_meta_check_arrays(writer->meta);
	if (status == GW_OK)
		status = gw_meta_digest(writer->meta, &writer->meta->graph_id);
	if (status == GW_OK)
		status = write_json(writer);
	if (status == GW_OK)
		status = write_texts(writer);
	if (status != GW_OK) {
		gw_writer_abort(writer);
		return status;
	}
	if (graph_id)
		*graph_id = writer->meta->graph_id;
	status = gw_staging_commit(writer->staging);
	writer_destroy(writer);
	return status;
}
