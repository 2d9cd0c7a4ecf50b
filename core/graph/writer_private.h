/* The state of a writer, which writer.c and writer_take.c share. */
#ifndef GW_GRAPH_WRITER_PRIVATE_H
#define GW_GRAPH_WRITER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/files/staging.h"
#include "core/graph/writer.h"
#include "core/numbers/convert.h"

#define GW_WRITER_KEY_MAX   (GW_EDGE_FOLDER_MAX + GW_NAME_MAX + 16)
#define GW_WRITER_TEXTS_MAX 4u

/* An array that is stored in another type than its rows come in. */
struct writer_store {
	struct writer_store *next;
	struct gw_conversion conversion;
	char key[GW_WRITER_KEY_MAX];
};

struct gw_writer {
	struct writer_store *stores;
	struct gw_staging *staging;
	struct gw_graph_meta *meta; /* a copy of the schema, which collects the arrays */
	pthread_mutex_t lock;       /* over meta's arrays and staging */
	atomic_uint open_streams;
	atomic_bool failed;
	struct {
		char *end, *text;
	} texts[GW_WRITER_TEXTS_MAX]; /* [num_texts] */
	uint32_t num_texts;
};

/* A failure marks the writer. Returns the status. */
gw_status gw_writer_mark(struct gw_writer *writer, gw_status status);
/* Makes the folder of an array in the staging folder. */
gw_status gw_writer_make_folder(struct gw_writer *writer, uint32_t part, const char *key);
/* "x.npy" -> "x.xxh", in place. NULL is allowed. */
char *gw_writer_digests_name(char *path);

#endif
