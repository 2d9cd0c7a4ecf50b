/* Takes over arrays of another graph: see gw_writer_take.
 *
 *   file mapped -> digest compared with the JSON's -> links to the .npy and its .xxh, if both have the bytes that a
 *   stream would write -> else the rows are written anew
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/graph/npy.h"
#include "core/graph/writer_private.h"
#include "core/memory/alloc.h"
#include "core/numbers/digest.h"

/* Whether the file of an array has the bytes that a stream writes for it. */
static bool is_as_written(const struct gw_npy_file *file, const struct gw_array_meta *array)
{
	uint8_t header[GW_NPY_HEADER_BYTES];
	return gw_npy_format(array->dtype, array->ndim, array->shape, header) == GW_OK &&
	       file->mapping_bytes == sizeof(header) + file->npy.data_bytes &&
	       memcmp(file->mapping, header, sizeof(header)) == 0;
}

/* Whether the file has exactly these bytes. */
static bool file_has(const char *path, const void *bytes, size_t count)
{
	uint8_t *found = gw_malloc(count + 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t got = 0;
	ssize_t done = found && fd >= 0 ? 1 : -1;
	while (done > 0 && got <= count) {
		done = read(fd, found + got, count + 1 - got);
		got += done > 0 ? (size_t)done : 0;
	}
	bool same = done == 0 && got == count && memcmp(found, bytes, count) == 0;
	if (fd >= 0)
		close(fd);
	gw_free(found);
	return same;
}

/* Links both files of an array, `from`.npy and .xxh. *linked: false if that is not possible, and neither exists. */
static gw_status link_files(const char *from, const char *to, const uint64_t *digests, size_t bytes, bool *linked)
{
	char *from_digests = gw_writer_digests_name(gw_strdup(from)),
	     *to_digests = gw_writer_digests_name(gw_strdup(to));
	gw_status status = from_digests && to_digests ? GW_OK : GW_NO_MEMORY;
	*linked = status == GW_OK && file_has(from_digests, digests, bytes) &&
		  linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW) == 0;
	if (*linked && linkat(AT_FDCWD, from_digests, AT_FDCWD, to_digests, AT_SYMLINK_FOLLOW) != 0) {
		*linked = false;
		if (unlink(to) != 0)
			status = gw_fail_errno(GW_IO, errno, "%s: cannot remove", to);
	}
	gw_free(from_digests);
	gw_free(to_digests);
	return status;
}

/* Adds the array by links to its files. */
static gw_status take_links(struct gw_writer *writer, uint32_t part, const struct gw_array_meta *array,
			    const char *path, const uint64_t *digests, size_t bytes, bool *linked)
{
	struct gw_array_meta made = *array;
	pthread_mutex_lock(&writer->lock);
	gw_writer_set_minor(writer, gw_meta_minor_of(writer->meta, array->key, array->ndim));
	gw_status status = gw_meta_check_array(writer->meta, part, &made);
	pthread_mutex_unlock(&writer->lock);
	if (status == GW_OK)
		status = gw_writer_make_folder(writer, part, array->key);
	made.file = gw_format("part%u/%s.npy", part, array->key);
	char *to = gw_format("%s/part%u/%s.npy", gw_staging_path(writer->staging), part, array->key);
	if (status == GW_OK)
		status = made.file && to ? link_files(path, to, digests, bytes, linked) : GW_NO_MEMORY;
	if (status == GW_OK && *linked) {
		pthread_mutex_lock(&writer->lock);
		status = gw_meta_add_array(writer->meta, part, &made);
		pthread_mutex_unlock(&writer->lock);
	}
	gw_free(made.file);
	gw_free(to);
	return status;
}

static gw_status writer_take_file(struct gw_writer *writer, uint32_t part, const struct gw_array_meta *array,
				  const char *path, const struct gw_npy_file *file)
{
	struct gw_digester *digester;
	const uint64_t *digests;
	uint64_t count;
	bool linked = false;
	gw_status status = gw_digester_create(&digester);
	if (status != GW_OK)
		return status;
	status = gw_digester_add(digester, file->data, file->npy.data_bytes);
	if (status == GW_OK)
		status = gw_digester_finish(digester, &digests, &count);
	if (status == GW_OK && gw_digest(digests, count * sizeof(*digests)) != array->digest)
		status = gw_fail(GW_DIGEST, "%s: another digest than in the graph's JSON: damaged", path);
	if (status == GW_OK && is_as_written(file, array))
		status = take_links(writer, part, array, path, digests, count * sizeof(*digests), &linked);
	gw_digester_destroy(digester);
	return status != GW_OK || linked
		       ? status
		       : gw_writer_array(writer, part, array->key, array->dtype, array->ndim, array->shape, file->data);
}

/* The digests of an array's file, if they have the digest that the JSON names; else NULL. */
static uint64_t *take_digests(const char *path, const struct gw_array_meta *array, size_t *bytes)
{
	char *name = gw_writer_digests_name(gw_strdup(path));
	*bytes = (size_t)gw_digest_count(gw_array_meta_bytes(array)) * sizeof(uint64_t);
	uint64_t *digests = gw_malloc(*bytes + 1);
	int fd = name ? open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	bool found = digests && fd >= 0 && read(fd, digests, *bytes + 1) == (ssize_t)*bytes &&
		     gw_digest(digests, *bytes) == array->digest;
	if (fd >= 0)
		close(fd);
	gw_free(name);
	if (found)
		return digests;
	gw_free(digests);
	return NULL;
}

gw_status gw_writer_link(struct gw_writer *writer, uint32_t part, const char *key, const struct gw_graph_meta *from)
{
	const struct gw_array_meta *array = gw_meta_array(from, part, key);
	struct gw_npy_file file = {0};
	size_t bytes = 0;
	bool linked = false;
	if (!array)
		return gw_writer_take(writer, part, key, from);
	char *path = gw_format("%s/%s", from->folder, array->file);
	gw_status status = path ? gw_npy_open(path, &file) : GW_NO_MEMORY;
	uint64_t *digests = status == GW_OK ? take_digests(path, array, &bytes) : NULL;
	if (digests && is_as_written(&file, array))
		status = take_links(writer, part, array, path, digests, bytes, &linked);
	gw_free(digests);
	gw_npy_close(&file);
	gw_free(path);
	return status == GW_OK && !linked ? gw_writer_take(writer, part, key, from) : gw_writer_mark(writer, status);
}

gw_status gw_writer_take(struct gw_writer *writer, uint32_t part, const char *key, const struct gw_graph_meta *from)
{
	const struct gw_array_meta *array = gw_meta_array(from, part, key);
	struct gw_npy_file file = {0};
	if (!array)
		return gw_writer_mark(writer, gw_fail(GW_NOT_FOUND, "part %u: %s: not in %s", part, key, from->folder));
	char *path = gw_format("%s/%s", from->folder, array->file);
	gw_status status = path ? gw_npy_open(path, &file) : GW_NO_MEMORY;
	if (status == GW_OK && file.npy.data_bytes != gw_array_meta_bytes(array))
		status = gw_fail(GW_FORMAT, "%s: another shape than in the graph's JSON: damaged", path);
	if (status == GW_OK)
		status = writer_take_file(writer, part, array, path, &file);
	gw_npy_close(&file);
	gw_free(path);
	return gw_writer_mark(writer, status);
}
