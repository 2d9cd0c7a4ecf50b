/* The keys that edges and data of DGL's chunked graph share: types, formats and lists of files. */
#include <stdio.h>
#include <string.h>

#include "tools/import/dgl_private.h"

gw_status gw_chunked_bad(const struct gw_chunked *c, const char *key, const char *why)
{
	return gw_fail(GW_FORMAT, "%s: \"%.200s\": %s", c->path, key, why);
}

gw_status gw_chunked_path(const struct gw_chunked *c, const json_t *text, const char *key, const char **out)
{
	const char *relative = json_string_value(text), *slash = strrchr(c->path, '/');
	if (!relative)
		return gw_chunked_bad(c, key, "\"data\" is not a list of file names");
	gw_status status = GW_OK;
	size_t room = strlen(c->path) + strlen(relative) + 2;
	char *path = gw_import_take(c->im, room, 1, &status);
	if (status != GW_OK)
		return status;
	if (relative[0] == '/' || !slash)
		snprintf(path, room, "%s", relative);
	else
		snprintf(path, room, "%.*s/%s", (int)(slash - c->path), c->path, relative);
	*out = path;
	return GW_OK;
}

gw_status gw_chunked_files(const struct gw_chunked *c, const json_t *entry, const char *key, const json_t **out)
{
	*out = json_object_get(entry, "data");
	return json_is_array(*out) ? GW_OK : gw_chunked_bad(c, key, "no \"data\" with a list of files");
}

gw_status gw_chunked_format(const struct gw_chunked *c, const json_t *entry, const char *key,
			    enum gw_import_format *format, char *delimiter)
{
	const json_t *described = json_object_get(entry, "format"), *given = json_object_get(described, "delimiter");
	const char *name = json_string_value(json_object_get(described, "name"));
	const char *between = given ? json_string_value(given) : ",";
	if (!name)
		return gw_chunked_bad(c, key, "no \"format\" with a \"name\"");
	if (strcmp(name, "parquet") == 0)
		return gw_fail(GW_UNSUPPORTED,
			       "%s: \"%.200s\": Parquet chunks: python -m graphwire.chunks %s OUT writes them as numpy",
			       c->path, key, c->path);
	if (strcmp(name, "csv") != 0 && strcmp(name, "numpy") != 0)
		return gw_fail(GW_UNSUPPORTED, "%s: \"%.200s\": format \"%.32s\" is neither csv nor numpy", c->path,
			       key, name);
	*format = name[0] == 'c' ? GW_FROM_TEXT : GW_FROM_NPY;
	if (*format == GW_FROM_TEXT && (!between || strlen(between) != 1 || strchr("\"\r\n.-+0123456789", between[0])))
		return gw_chunked_bad(c, key, "\"delimiter\" is not one character that can stand between numbers");
	*delimiter = *format == GW_FROM_TEXT ? between[0] : ',';
	return GW_OK;
}

gw_status gw_chunked_known(const struct gw_chunked *c, const char *name)
{
	if (gw_import_space_find(c->im, name))
		return GW_OK;
	return gw_chunked_bad(c, name, "an edge type or data names this node type, which \"node_type\" does not list");
}

gw_status gw_chunked_etype(const struct gw_chunked *c, const char *text, char names[3][GW_NAME_MAX + 1])
{
	const char *at = text;
	for (int i = 0; i < 3; i++) {
		size_t bytes = strcspn(at, ":");
		if (bytes > GW_NAME_MAX || (at[bytes] == '\0') != (i == 2))
			return gw_chunked_bad(c, text, "an edge type is \"src:rel:dst\"");
		memcpy(names[i], at, bytes);
		names[i][bytes] = '\0';
		at += bytes + (i < 2);
	}
	return GW_OK;
}
