/* Opens one part: in an arena (servers, the standalone client) or mapped (tools).
 *
 *   for each array: the .npy header equals the JSON's description, the file is long enough, the .xxh file has the
 *   JSON's digest
 *     -> arena:  layout at 4 KiB in the JSON's order -> gw_load (chunks verified)
 *        mapped: mmap -> chunks read and verified
 *     -> views -> gw_part_check
 *
 * All headers and lengths are checked before memory is allocated, so that a wrong shape is an error about a file, not
 * about memory. Every failure names the file and the key. After a failure, gw_part_close frees the partly opened part.
 */
#include "core/graph/part_private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/graph/npy.h"
#include "core/graph/part_lists.h"
#include "core/memory/alloc.h"
#include "core/numbers/digest.h"
#include "core/system/parallel.h"

struct part_source {
	char *path;
	uint64_t *digests; /* of the chunks; NULL: not compared */
	uint64_t file_offset;
	uint64_t bytes;
	struct gw_npy_file file; /* if mapped */
};

static gw_status part_fail_read(int error, const char *path, const char *key)
{
	return gw_fail_errno(error == ENOENT ? GW_NOT_FOUND : GW_IO, error, "%s: %s: cannot read", path, key);
}

/* All bytes if the file is shorter; *length is the file's length. */
static gw_status read_start(const char *path, const char *key, void *data, size_t bytes, size_t *got, uint64_t *length)
{
	struct stat info;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* opening a pipe of that name must not block */
	if (fd < 0)
		return part_fail_read(errno, path, key);
	gw_status status = GW_OK;
	*got = 0;
	if (fstat(fd, &info) < 0)
		status = part_fail_read(errno, path, key);
	else if (!S_ISREG(info.st_mode))
		status = gw_fail(GW_FORMAT, "%s: %s: not a regular file", path, key);
	*length = status == GW_OK ? (uint64_t)info.st_size : 0;
	while (status == GW_OK && *got < bytes) {
		ssize_t done = pread(fd, (uint8_t *)data + *got, bytes - *got, (off_t)*got);
		if (done < 0 && errno != EINTR)
			status = part_fail_read(errno, path, key);
		if (done == 0)
			break;
		*got += done > 0 ? (size_t)done : 0;
	}
	close(fd);
	return status;
}

/* bfloat16 and int8_row have no NumPy dtype of their own. */
static gw_status compare_header(const struct gw_array_meta *meta, const struct gw_npy *npy)
{
	if (strcmp(gw_dtype_numpy(meta->dtype), gw_dtype_numpy(npy->dtype)) != 0)
		return gw_fail(GW_FORMAT, "the file holds %s, the JSON says %s", gw_dtype_name(npy->dtype),
			       gw_dtype_name(meta->dtype));
	if (meta->ndim != npy->ndim)
		return gw_fail(GW_FORMAT, "the file has %u dimensions, the JSON says %u", npy->ndim, meta->ndim);
	for (uint32_t i = 0; i < npy->ndim; i++) {
		if (meta->shape[i] != npy->shape[i])
			return gw_fail(GW_FORMAT, "dimension %u is %" PRIu64 " in the file, %" PRIu64 " in the JSON", i,
				       npy->shape[i], meta->shape[i]);
	}
	return GW_OK;
}

static gw_status check_header(const struct gw_array_meta *meta, struct part_source *source)
{
	uint8_t header[GW_NPY_HEADER_BYTES];
	struct gw_npy npy;
	size_t got = 0;
	uint64_t length = 0;
	gw_status status = read_start(source->path, meta->key, header, sizeof(header), &got, &length);
	if (status != GW_OK)
		return status;
	status = gw_npy_parse(header, got, &npy);
	if (status == GW_OK)
		status = compare_header(meta, &npy);
	if (status == GW_OK && npy.data_offset % gw_dtype_bytes(meta->dtype) != 0)
		status = gw_fail(GW_FORMAT, "its payload at byte %" PRIu64 " is not aligned", npy.data_offset);
	if (status == GW_OK && npy.data_bytes > length - npy.data_offset)
		status = gw_fail(GW_FORMAT, "truncated: %" PRIu64 " bytes long, its header asks for %" PRIu64, length,
				 npy.data_offset + npy.data_bytes);
	if (status == GW_OK && npy.data_bytes < length - npy.data_offset)
		status = gw_fail(GW_FORMAT, "%" PRIu64 " bytes follow its payload",
				 length - npy.data_offset - npy.data_bytes);
	if (status != GW_OK)
		return gw_context(status, "%s: %s", source->path, meta->key);
	source->file_offset = npy.data_offset;
	source->bytes = npy.data_bytes;
	return GW_OK;
}

static gw_status read_digests(const struct gw_array_meta *meta, struct part_source *source)
{
	uint64_t length = 0;
	size_t got = 0, bytes = (size_t)gw_digest_count(source->bytes) * sizeof(uint64_t);
	char *path = gw_strdup(source->path);
	source->digests = gw_malloc(bytes);
	if (!path || !source->digests) {
		gw_free(path);
		return GW_NO_MEMORY;
	}
	memcpy(path + strlen(path) - 4, ".xxh", sizeof(".xxh"));
	gw_status status = read_start(path, meta->key, source->digests, bytes, &got, &length);
	if (status == GW_OK && length != bytes)
		status = gw_fail(GW_FORMAT, "%s: %s: %" PRIu64 " bytes long; the payload's digests have %zu", path,
				 meta->key, length, bytes);
	else if (status == GW_OK && got != bytes)
		status = gw_fail(GW_IO, "%s: %s: it became shorter while being read", path, meta->key);
	else if (status == GW_OK && gw_digest(source->digests, bytes) != meta->digest)
		status = gw_fail(GW_DIGEST,
				 "%s: %s: not the digests that the JSON names (%016" PRIx64 ", not %016" PRIx64
				 "): edited, or of another graph",
				 path, meta->key, gw_digest(source->digests, bytes), meta->digest);
	gw_free(path);
	return status;
}

static gw_status check_source(const struct gw_array_meta *array, struct part_source *source, bool verify)
{
	gw_status status = check_header(array, source);
	if (status == GW_OK && verify)
		status = read_digests(array, source);
	if (status == GW_NOT_FOUND || status == GW_FORMAT || status == GW_UNSUPPORTED || status == GW_DIGEST)
		gw_advise(status, "copy or build it again");
	return status;
}

static enum gw_array_apart part_sets_apart(const struct gw_graph_meta *meta, const struct gw_array_meta *array,
					   const struct gw_part_options *options)
{
	if (options->only_lists && !gw_array_is_of_lists(meta, array))
		return GW_ARRAY_LEFT_OUT;
	return options->set_apart ? options->set_apart(options->apart_context, array->key) : GW_ARRAY_HERE;
}

static gw_status name_sources(struct gw_part *part, const struct gw_part_options *options)
{
	const struct gw_graph_meta *meta = part->meta;
	const struct gw_part_meta *arrays = &meta->parts[part->number];
	for (uint32_t i = 0; i < part->count; i++) {
		struct part_source *source = &part->sources[i];
		const struct gw_array_meta *array = &arrays->arrays[i];
		source->path = gw_format("%s/%s", meta->folder[0] ? meta->folder : ".", array->file);
		if (!source->path)
			return GW_NO_MEMORY;
		part->arrays[i] = (struct gw_array){.meta = array,
						    .rows = array->shape[0],
						    .row_bytes = gw_array_meta_row_bytes(array),
						    .apart = part_sets_apart(meta, array, options)};
		source->bytes = gw_array_meta_bytes(array);
	}
	return GW_OK;
}

static gw_status open_sources(struct gw_part *part, const struct gw_part_options *options)
{
	bool verify = !options->skip_verify;
	gw_status status = name_sources(part, options);
	for (uint32_t i = 0; i < part->count && status == GW_OK; i++) {
		bool apart = part->arrays[i].apart;
		if (!apart || !options->only_lists)
			status = check_source(part->arrays[i].meta, &part->sources[i], verify && !apart);
	}
	return status;
}

/* --- the arena ---------------------------------------------------------------------------------------------------- */

static uint64_t part_round_up(uint64_t bytes)
{
	return (bytes + GW_ARENA_ALIGN - 1) & ~(GW_ARENA_ALIGN - 1);
}

static struct gw_load_item part_item(const struct part_source *source, const char *key, uint64_t arena_offset)
{
	return (struct gw_load_item){.path = source->path,
				     .key = key,
				     .file_offset = source->file_offset,
				     .bytes = source->bytes,
				     .arena_offset = arena_offset,
				     .digests = source->digests};
}

/* Gives each array its place. */
static gw_status part_place(struct gw_part *part)
{
	gw_status status = GW_OK;
	for (uint32_t i = 0; status == GW_OK && i < part->count; i++) {
		struct gw_array *array = &part->arrays[i];
		if (array->apart)
			continue;
		status = gw_arena_take(part->arena, part_round_up(part->sources[i].bytes), GW_ARENA_ALIGN,
				       &array->offset);
		if (status == GW_OK)
			array->data = gw_arena_base(part->arena) + array->offset;
	}
	return status;
}

static gw_status part_find_arena(struct gw_part *part, uint64_t bytes, const struct gw_part_options *options)
{
	part->borrowed = options->into != NULL;
	if (!part->borrowed)
		return gw_arena_create(bytes + options->room, &options->arena, &part->arena);
	part->arena = options->into;
	return GW_OK;
}

static gw_status part_lay_out(struct gw_part *part, const struct gw_part_options *options, struct gw_load_item *items,
			      size_t *count)
{
	uint64_t total = 0;
	for (uint32_t i = 0; i < part->count; i++) {
		total += part->arrays[i].apart ? 0 : part_round_up(part->sources[i].bytes);
		if (total > INT64_MAX / 2 || options->room > INT64_MAX / 2)
			return gw_fail(GW_LIMIT, "%s: the arrays have more bytes than any memory",
				       part->sources[i].path);
	}
	gw_status status = part_find_arena(part, total, options);
	if (status == GW_OK)
		status = part_place(part);
	for (uint32_t i = 0; status == GW_OK && i < part->count; i++) {
		const struct gw_array *array = &part->arrays[i];
		if (!array->apart)
			items[(*count)++] = part_item(&part->sources[i], array->meta->key, array->offset);
	}
	return status;
}

static gw_status load_arrays(struct gw_part *part, const struct gw_part_options *options)
{
	struct gw_load_item *items = gw_calloc(part->count, sizeof(*items));
	if (!items)
		return GW_NO_MEMORY;
	size_t count = 0;
	gw_status status = part_lay_out(part, options, items, &count);
	if (status == GW_OK)
		status = gw_load(part->arena, items, count, &options->load, &part->stats);
	gw_free(items);
	return status;
}

gw_status gw_part_file(const struct gw_part *part, const struct gw_array *array, struct gw_load_item *out)
{
	struct part_source source = {.path = part->sources[array - part->arrays].path};
	gw_status status = check_source(array->meta, &source, true);
	gw_free(source.digests);
	*out = part_item(&source, array->meta->key, 0);
	out->digests = NULL;
	return status == GW_OK ? GW_OK
			       : gw_context(status, "graph \"%s\", part %u", part->meta->graph_name, part->number);
}

gw_status gw_part_load_apart(const struct gw_part *part, const struct gw_array *array,
			     const struct gw_arena_options *arena_options, struct gw_arena **out)
{
	static const struct gw_load_options defaults;
	struct part_source source = {.path = part->sources[array - part->arrays].path};
	struct gw_load_stats stats;
	uint64_t offset = 0;
	*out = NULL;
	gw_status status = check_source(array->meta, &source, true);
	if (status == GW_OK && source.bytes)
		status = gw_arena_create(part_round_up(source.bytes), arena_options, out);
	if (status == GW_OK && source.bytes)
		status = gw_arena_take(*out, part_round_up(source.bytes), GW_ARENA_ALIGN, &offset);
	if (status == GW_OK && source.bytes) {
		struct gw_load_item item = part_item(&source, array->meta->key, offset);
		status = gw_load(*out, &item, 1, &defaults, &stats);
	}
	gw_free(source.digests);
	if (status == GW_OK)
		return GW_OK;
	gw_arena_destroy(*out);
	*out = NULL;
	return gw_context(status, "graph \"%s\", part %u", part->meta->graph_name, part->number);
}

/* --- mapped files ------------------------------------------------------------------------------------------------- */

#define PIECE_BYTES (64u << 10) /* stays in a processor's cache between the kernel's copy and the digest */

/* Digests are computed from data that pread copies, although the file is mapped too. A failing disk is then an error
 * code and not a signal, and later accesses find the pages in memory. */
struct chunks {
	const struct part_source *source;
	const char *key;
	int fd;
};

static gw_status digest_chunk(const struct chunks *chunks, uint64_t from, uint64_t bytes, uint8_t *piece,
			      struct gw_digester *digester)
{
	const struct part_source *source = chunks->source;
	for (uint64_t at = 0; at < bytes;) {
		size_t wanted = bytes - at < PIECE_BYTES ? (size_t)(bytes - at) : PIECE_BYTES;
		uint64_t place = source->file_offset + from + at;
		ssize_t got = pread(chunks->fd, piece, wanted, (off_t)place);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return gw_fail_errno(GW_IO, errno, "%s: %s: cannot read at byte %" PRIu64, source->path,
					     chunks->key, place);
		if (got == 0)
			return gw_fail(GW_FORMAT,
				       "%s: %s: cut short while it was read: ends at byte %" PRIu64 " of %" PRIu64
				       ": copy or build it again",
				       source->path, chunks->key, place, source->file_offset + source->bytes);
		gw_status status = gw_digester_add(digester, piece, (size_t)got);
		if (status != GW_OK)
			return status;
		at += (uint64_t)got;
	}
	return GW_OK;
}

static gw_status verify_chunk(const struct chunks *chunks, uint64_t chunk, uint8_t *piece)
{
	const struct part_source *source = chunks->source;
	uint64_t from = chunk * GW_DIGEST_CHUNK, count;
	uint64_t bytes = source->bytes - from < GW_DIGEST_CHUNK ? source->bytes - from : GW_DIGEST_CHUNK;
	const uint64_t *found;
	struct gw_digester *digester;
	gw_status status = gw_digester_create(&digester);
	if (status != GW_OK)
		return status;
	status = digest_chunk(chunks, from, bytes, piece, digester);
	if (status == GW_OK)
		status = gw_digester_finish(digester, &found, &count);
	if (status == GW_OK && found[0] != source->digests[chunk])
		status = gw_fail(GW_DIGEST,
				 "%s: %s: chunk %" PRIu64 " (payload bytes %" PRIu64 " to %" PRIu64
				 ") does not have its digest: the file was damaged or edited: copy or build it again",
				 source->path, chunks->key, chunk, from, from + bytes);
	gw_digester_destroy(digester);
	return status;
}

static gw_status verify_chunks(void *context, uint64_t begin, uint64_t end, unsigned thread)
{
	const struct chunks *chunks = context;
	gw_status status = GW_OK;
	(void)thread;
	uint8_t *piece = gw_malloc(PIECE_BYTES);
	if (!piece)
		return GW_NO_MEMORY;
	for (uint64_t chunk = begin; status == GW_OK && chunk < end; chunk++)
		status = verify_chunk(chunks, chunk, piece);
	gw_free(piece);
	return status;
}

static gw_status map_verified_array(struct part_source *source, const char *key, unsigned threads)
{
	int fd = open(source->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return part_fail_read(errno, source->path, key);
	struct chunks chunks = {source, key, fd};
	gw_status status = gw_npy_open_fd(fd, source->path, &source->file);
	if (status == GW_OK &&
	    (source->file.npy.data_bytes != source->bytes || source->file.npy.data_offset != source->file_offset))
		status = gw_fail(GW_FORMAT, "%s: %s: it changed while being opened", source->path, key);
	if (status == GW_OK && source->digests)
		status = gw_parallel_for(threads, gw_digest_count(source->bytes), 1, verify_chunks, &chunks);
	close(fd);
	return status;
}

static gw_status map_arrays(struct gw_part *part, const struct gw_load_options *options)
{
	uint64_t total = 0, done = 0;
	for (uint32_t i = 0; i < part->count; i++)
		total += part->sources[i].bytes;
	for (uint32_t i = 0; i < part->count; i++) {
		struct part_source *source = &part->sources[i];
		gw_status status = map_verified_array(source, part->arrays[i].meta->key, options->verify_threads);
		if (status != GW_OK)
			return status;
		part->arrays[i].data = source->file.data;
		done += source->bytes;
		if (options->progress)
			options->progress(options->progress_context, done, total);
	}
	return GW_OK;
}

/* --- views -------------------------------------------------------------------------------------------------------- */

static const struct gw_array *part_find(const struct gw_part *part, bool edge, const char *type, const char *name)
{
	char key[GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 16];
	snprintf(key, sizeof(key), "%s/%s/%s", edge ? "edge" : "node", type, name);
	return gw_part_array(part, key);
}

static gw_status make_view(const struct gw_part *part, uint32_t etype, bool out, struct gw_adjacency *view)
{
	const struct gw_graph_meta *meta = part->meta;
	const struct gw_edge_type *type = &meta->etypes[etype];
	const struct gw_node_type *rows_of = &meta->ntypes[out ? type->src : type->dst];
	const struct gw_array *indptr = part_find(part, false, rows_of->name, out ? "out_indptr" : "indptr");
	const struct gw_array *indices = part_find(part, true, type->folder, out ? "out/indices" : "indices");
	const struct gw_array *eid = out ? part_find(part, true, type->folder, "out/eid") : NULL;
	if (!indptr || !indices || (out && !eid))
		return gw_fail(GW_FORMAT, "part %u: edge type \"%s\" has no offsets or no ids", part->number,
			       type->folder);
	*view = (struct gw_adjacency){
		.indptr = indptr->data,
		.indices = indices->data,
		.rows = rows_of->starts[part->number + 1] - rows_of->starts[part->number],
		.edges = indices->rows,
		.columns = out ? rows_of->out_columns : rows_of->columns,
		.column = out ? type->out_column : type->column,
		.indptr_bytes = (uint8_t)gw_dtype_bytes(indptr->meta->dtype),
		.index_bytes = (uint8_t)gw_dtype_bytes(indices->meta->dtype),
		.dst_start = rows_of->starts[part->number],
		.edge_start = type->starts[part->number],
		.eid = eid ? (const uint64_t *)eid->data : NULL,
		.on_disk = indptr->apart == GW_ARRAY_ON_DISK || indices->apart == GW_ARRAY_ON_DISK ||
			   (eid && eid->apart == GW_ARRAY_ON_DISK),
	};
	return GW_OK;
}

static gw_status make_views(struct gw_part *part)
{
	gw_status status = GW_OK;
	for (uint32_t t = 0; status == GW_OK && t < part->meta->num_etypes; t++) {
		status = make_view(part, t, false, &part->adjacency[t]);
		if (status == GW_OK && part->meta->etypes[t].out_column != GW_TYPE_NONE)
			status = make_view(part, t, true, &part->out_adjacency[t]);
	}
	return status;
}

/* --- open and close ----------------------------------------------------------------------------------------------- */

static gw_status part_make_tables(struct gw_part *part)
{
	part->arrays = gw_calloc(part->count, sizeof(*part->arrays));
	part->sources = gw_calloc(part->count, sizeof(*part->sources));
	part->adjacency = gw_calloc(part->meta->num_etypes, sizeof(*part->adjacency));
	part->out_adjacency = gw_calloc(part->meta->num_etypes, sizeof(*part->out_adjacency));
	return part->arrays && part->sources && part->adjacency && part->out_adjacency ? GW_OK : GW_NO_MEMORY;
}

static gw_status part_fill(struct gw_part *part, const struct gw_part_options *options)
{
	gw_status status = part_make_tables(part);
	if (status == GW_OK)
		status = open_sources(part, options);
	if (status == GW_OK)
		status = options->mapped ? map_arrays(part, &options->load) : load_arrays(part, options);
	if (status == GW_OK)
		status = make_views(part);
	if (status == GW_OK && !options->skip_checks)
		status = gw_part_check(part, options->load.verify_threads);
	return status;
}

static gw_status part_new(const struct gw_graph_meta *meta, uint32_t number, struct gw_part **out)
{
	*out = NULL;
	if (number >= meta->num_parts)
		return gw_fail(GW_RANGE, "graph \"%s\" has parts 0 to %u; there is no part %u", meta->graph_name,
			       meta->num_parts - 1, number);
	*out = gw_calloc(1, sizeof(**out));
	if (!*out)
		return GW_NO_MEMORY;
	(*out)->meta = meta;
	(*out)->number = number;
	(*out)->count = meta->parts[number].count;
	return GW_OK;
}

gw_status gw_part_adopt(const struct gw_graph_meta *meta, uint32_t number, const struct gw_part_options *options,
			struct gw_arena *arena, struct gw_part **out)
{
	struct gw_part *part;
	*out = NULL;
	gw_status status = part_new(meta, number, &part);
	if (status != GW_OK)
		return status;
	status = part_make_tables(part);
	if (status == GW_OK)
		status = name_sources(part, options);
	part->borrowed = options->into != NULL;
	part->arena = part->borrowed ? options->into : arena;
	if (status == GW_OK)
		status = part_place(part);
	part->stats.driver = "taken over";
	for (uint32_t i = 0; i < part->count && status == GW_OK; i++)
		part->stats.bytes += part->arrays[i].apart ? 0 : part->sources[i].bytes;
	if (status == GW_OK)
		status = make_views(part);
	if (status != GW_OK) {
		part->arena = NULL;
		gw_part_close(part);
		return gw_context(status, "graph \"%s\", part %u", meta->graph_name, number);
	}
	*out = part;
	return GW_OK;
}

gw_status gw_part_open(const struct gw_graph_meta *meta, uint32_t number, const struct gw_part_options *options,
		       struct gw_part **out)
{
	static const struct gw_part_options defaults = {.arena = {.name = "part"}};
	struct gw_part *part;
	*out = NULL;
	gw_status status = part_new(meta, number, &part);
	if (status != GW_OK)
		return status;
	status = part_fill(part, options ? options : &defaults);
	if (status != GW_OK) {
		gw_part_close(part);
		return gw_context(status, "graph \"%s\", part %u", meta->graph_name, number);
	}
	/* The digests (2 bytes per MiB) are compared, and no longer needed. */
	for (uint32_t i = 0; i < part->count; i++) {
		gw_free(part->sources[i].digests);
		part->sources[i].digests = NULL;
	}
	*out = part;
	return GW_OK;
}

void gw_part_close(struct gw_part *part)
{
	if (!part)
		return;
	for (uint32_t i = 0; part->sources && i < part->count; i++) {
		gw_npy_close(&part->sources[i].file);
		gw_free(part->sources[i].digests);
		gw_free(part->sources[i].path);
	}
	if (!part->borrowed)
		gw_arena_destroy(part->arena);
	gw_free(part->sources);
	gw_free(part->arrays);
	gw_free(part->adjacency);
	gw_free(part->out_adjacency);
	gw_free(part);
}
