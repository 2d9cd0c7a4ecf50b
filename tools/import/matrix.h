/* Inputs that are matrices. A matrix defines how many nodes exist, also nodes without edges, and whether ids count from
 * 0 or 1. Row i, column j is the edge from i to j.
 *
 *   Matrix Market    text; coordinates of pattern, integer or real; general, symmetric or skew-symmetric; from 1
 *   LightGraphs      text; a first line "nodes,edges,d|u,…", then one edge on each line; from 1
 *   SciPy            the output of scipy.sparse.save_npz, as COO, CSR or CSC; from 0
 */
#ifndef GW_TOOLS_IMPORT_MATRIX_H
#define GW_TOOLS_IMPORT_MATRIX_H

#include "tools/import/import.h"

struct gw_npz;

/* Whether the text is one of the two text formats. If so, *format is set so that the entries are the rows of a table.
 * Other text leaves out->what NULL. GW_FORMAT, GW_UNSUPPORTED: the text is a matrix, but damaged or of an unsupported
 * kind. */
gw_status gw_import_matrix_text(const struct gw_text *text, struct gw_table_format *format,
				struct gw_import_matrix *out);

/* Whether the archive holds a sparse matrix of SciPy. If so, its arrays are opened: rows or offsets in
 * file->arrays[0], columns or indices in file->arrays[1]. */
gw_status gw_import_matrix_npz(const struct gw_npz *npz, struct gw_import_file *file);

/* Passes the matrix' declarations to its node types. GW_INVALID: the matrix is rectangular but has one type, or
 * another input disagrees. Call it for every file: ids of a file without a matrix count from 0. */
gw_status gw_import_matrix_claim(struct gw_import *im, struct gw_import_set *set, const struct gw_import_file *file);

/* Converts offsets and indices, or rows and columns, to the ids of file->rows edges. */
gw_status gw_import_matrix_read(struct gw_import *im, const struct gw_import_file *file, uint64_t *src, uint64_t *dst);

/* GW_RANGE names the first entry outside the matrix. */
gw_status gw_import_matrix_check(const struct gw_import_file *file, const uint64_t *src, const uint64_t *dst);

#endif
