/* Finds and reads a graph's JSON by its path: a file, or a folder that contains exactly one graph's JSON.
 *
 *   stat -> (folder: each *.json with a "format" of Graphwire) -> file into memory -> gw_meta_parse -> folder set
 *
 * Fails for a path that does not exist, is no regular file or is too long for a graph's JSON; for a folder with no
 * graph or with several; and for a JSON that gw_meta_parse refuses. In a folder, files that cannot be a graph's JSON
 * are skipped.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/files/regular.h"
#include "core/graph/json.h"
#include "core/graph/meta.h"
#include "core/graph/record_names.h"
#include "core/memory/alloc.h"

/* GW_INVALID: no regular file; GW_LIMIT: too long for a graph's JSON. For both, *foreign is true. If the file may be a
 * graph's JSON but cannot be read, *foreign is false. */
static gw_status meta_file_read_file(const char *path, char **text, size_t *bytes, bool *foreign)
{
	struct stat info;
	*text = NULL;
	*foreign = false;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* opening a pipe of that name must not block */
	*foreign = fd < 0 && errno == ENXIO;                    /* a socket */
	if (fd < 0)
		return gw_fail_errno(errno == ENOENT ? GW_NOT_FOUND : GW_IO, errno, "%s: cannot open", path);
	gw_status status = GW_OK;
	if (fstat(fd, &info) < 0)
		status = gw_fail_errno(GW_IO, errno, "%s: cannot stat", path);
	else if (!S_ISREG(info.st_mode))
		status = gw_fail(GW_INVALID, "%s: neither a file nor a folder", path);
	else if (info.st_size > GW_JSON_BYTES_MAX)
		status = gw_fail(GW_LIMIT, "%s: longer than %u bytes: not a graph's JSON", path, GW_JSON_BYTES_MAX);
	*foreign = status == GW_INVALID || status == GW_LIMIT;
	if (status == GW_OK) {
		*bytes = (size_t)info.st_size;
		*text = gw_malloc(*bytes);
		status = *text ? gw_regular_read_all(fd, path, *text, *bytes) : GW_NO_MEMORY;
	}
	close(fd);
	if (status != GW_OK) {
		gw_free(*text);
		*text = NULL;
	}
	return status;
}

/* Whether the text looks like a graph's JSON, of any major version. Used only to choose among the files of a folder;
 * parsing decides. A checkpoint's JSON does not match. */
static bool meta_file_is_ours(const char *text, size_t bytes)
{
	static const char start[] = "\"graphwire-";
	const char *end = text + bytes;
	for (const char *at = text; (at = memmem(at, (size_t)(end - at), start, sizeof(start) - 1));) {
		at += sizeof(start) - 1;
		if (at < end && *at >= '0' && *at <= '9')
			return true;
	}
	return false;
}

static gw_status take_if_graph(const char *folder, const char *name, char **found)
{
	size_t length = strlen(name);
	if (name[0] == '.' || length < 6 || strcmp(name + length - 5, ".json") != 0)
		return GW_OK;
	char *text, *path = gw_format("%s/%s", folder, name);
	size_t bytes;
	bool foreign;
	if (!path)
		return GW_NO_MEMORY;
	gw_status status = meta_file_read_file(path, &text, &bytes, &foreign);
	bool ours = status == GW_OK && meta_file_is_ours(text, bytes);
	gw_free(text);
	if (foreign)
		status = GW_OK; /* a folder, a pipe or a data set is no graph's JSON */
	if (status == GW_OK && ours && *found)
		status = gw_fail(GW_INVALID, "%s: holds more than one graph: name %s or %s", folder, *found, path);
	else if (status == GW_OK && ours)
		*found = path;
	if (*found != path)
		gw_free(path);
	return status;
}

static gw_status find_json(const char *folder, char **path)
{
	*path = NULL;
	DIR *directory = opendir(folder);
	if (!directory)
		return gw_fail_errno(GW_IO, errno, "%s: cannot list", folder);
	gw_status status = GW_OK;
	while (status == GW_OK) {
		errno = 0;
		const struct dirent *entry = readdir(directory);
		if (!entry && errno != 0)
			status = gw_fail_errno(GW_IO, errno, "%s: cannot list", folder);
		if (!entry)
			break;
		status = take_if_graph(folder, entry->d_name, path);
	}
	closedir(directory);
	if (status == GW_OK && !*path)
		status = gw_fail(GW_NOT_FOUND, "%s: holds no graph's JSON (a .json file with \"format\": \"%s\")",
				 folder, GW_FORMAT_NAME);
	if (status != GW_OK) {
		gw_free(*path);
		*path = NULL;
	}
	return status;
}

static bool is_empty(const char *folder)
{
	DIR *directory = opendir(folder);
	if (!directory)
		return false;
	struct dirent *entry;
	do
		entry = readdir(directory);
	while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
	closedir(directory);
	return !entry;
}

gw_status gw_meta_check_replaceable(const char *folder, struct gw_owned **owned)
{
	struct stat info;
	char *path;
	if (owned)
		*owned = NULL;
	if (lstat(folder, &info) < 0)
		return errno == ENOENT ? GW_OK : gw_fail_errno(GW_IO, errno, "%s", folder);
	if (!S_ISDIR(info.st_mode))
		return gw_fail(GW_EXISTS, "%s: exists already and is not a folder", folder);
	if (is_empty(folder))
		return GW_OK;
	struct gw_owned *files = NULL;
	gw_status status = find_json(folder, &path);
	if (status == GW_NOT_FOUND)
		return gw_fail(GW_EXISTS,
			       "%s: holds something other than a graph, and only a graph is replaced; "
			       "choose another folder, or empty this one",
			       folder);
	if (status == GW_OK)
		status = gw_json_owned(folder, path + strlen(folder) + 1, GW_JSON_BYTES_MAX, &files);
	if (status == GW_OK)
		status = gw_records_own(files, path + strlen(folder) + 1);
	if (status == GW_FORMAT)
		status = gw_context(GW_EXISTS, "%s: which files are the graph's cannot be known; remove it", folder);
	gw_free(path);
	if (owned)
		*owned = files;
	else
		gw_owned_destroy(files);
	return status;
}

/* "." for a bare file name. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return gw_strdup(".");
	return slash == path ? gw_strdup("/") : gw_format("%.*s", (int)(slash - path), path);
}

gw_status gw_meta_read(const char *config, struct gw_graph_meta **out)
{
	struct stat info;
	char *path = NULL, *text = NULL, *folder = NULL;
	bool foreign;
	size_t bytes = 0;
	*out = NULL;
	if (stat(config, &info) < 0)
		return gw_fail_errno(errno == ENOENT || errno == ENOTDIR ? GW_NOT_FOUND : GW_IO, errno,
				     "%s: cannot find the graph", config);
	gw_status status = GW_OK;
	if (S_ISDIR(info.st_mode))
		status = find_json(config, &path);
	else if (!(path = gw_strdup(config)))
		status = GW_NO_MEMORY;
	if (status == GW_OK)
		status = meta_file_read_file(path, &text, &bytes, &foreign);
	if (status == GW_OK) {
		status = gw_meta_parse(text, bytes, path, out);
		if (status == GW_FORMAT || status == GW_DIGEST)
			gw_advise(status, "edited or damaged? Copy it or build the graph again");
	}
	if (status == GW_OK && !(folder = folder_of(path)))
		status = GW_NO_MEMORY;
	if (status == GW_OK) {
		gw_free((*out)->folder);
		(*out)->folder = folder;
	} else {
		gw_meta_destroy(*out);
		*out = NULL;
	}
	gw_free(text);
	gw_free(path);
	return status;
}
