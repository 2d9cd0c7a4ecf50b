/* DGL's chunked graph: the interface between its files. */
#ifndef GW_TOOLS_IMPORT_DGL_PRIVATE_H
#define GW_TOOLS_IMPORT_DGL_PRIVATE_H

#include <jansson.h>

#include "tools/import/import.h"

struct gw_chunked {
	struct gw_import *im;
	const char *path; /* path of the JSON */
	json_t *root;
};

/* Fails with GW_FORMAT: the JSON's path, the key and the reason. */
gw_status gw_chunked_bad(const struct gw_chunked *c, const char *key, const char *why);

/* Splits "src:rel:dst" into three names. */
gw_status gw_chunked_etype(const struct gw_chunked *c, const char *text, char names[3][GW_NAME_MAX + 1]);

/* GW_FORMAT unless "node_type" lists the name. */
gw_status gw_chunked_known(const struct gw_chunked *c, const char *name);

/* The list "data" of an entry: files relative to the JSON's folder. */
gw_status gw_chunked_files(const struct gw_chunked *c, const json_t *entry, const char *key, const json_t **out);
/* The path of one file, in memory that the builder keeps. */
gw_status gw_chunked_path(const struct gw_chunked *c, const json_t *text, const char *key, const char **out);

/* "format": {"name": "csv" | "numpy", "delimiter": ","}. GW_UNSUPPORTED names any other. */
gw_status gw_chunked_format(const struct gw_chunked *c, const json_t *entry, const char *key,
			    enum gw_import_format *format, char *delimiter);

/* Reads "node_data" and "edge_data", after types and edges. */
gw_status gw_chunked_features(struct gw_chunked *c);

#endif
