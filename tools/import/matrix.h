/* Inputs that are matrices: they say how many nodes there are, nodes without edges among them, and from which number
 * their ids count. Row i, column j is the edge from i to j.
 *
 *   Matrix Market    text; coordinates of pattern, integer or real; general, symmetric or skew-symmetric; from 1
 *   LightGraphs      text; a first line "nodes,edges,d|u,…", then an edge a line; from 1
 *   SciPy            what scipy.sparse.save_npz writes, as COO, CSR or CSC; from 0
 */
#ifndef GW_TOOLS_IMPORT_MATRIX_H
#define GW_TOOLS_IMPORT_MATRIX_H

#include "tools/import/import.h"

struct gw_npz;

/* Is this text one of the two? If so, *format is set so that its entries are the rows of a table. A text that is none
 * leaves out->what NULL. GW_FORMAT, GW_UNSUPPORTED: it is one, but damaged or of a kind that is not read. */
gw_status gw_import_matrix_text(const struct gw_text *text, struct gw_table_format *format,
				struct gw_import_matrix *out);

/* Does the archive hold a sparse matrix of SciPy? If so, its arrays are opened: the rows or the offsets in
 * file->arrays[0], the columns or the indices in file->arrays[1]. */
gw_status gw_import_matrix_npz(const struct gw_npz *npz, struct gw_import_file *file);

/* The node types take over what a matrix says of them. GW_INVALID: it is rectangular and there is one type, or another
 * input says otherwise. Called for every file: those that are no matrix count from 0. */
gw_status gw_import_matrix_claim(struct gw_import *im, struct gw_import_set *set, const struct gw_import_file *file);

/* Offsets and indices, or rows and columns, to the ids of file->rows edges. */
gw_status gw_import_matrix_read(struct gw_import *im, const struct gw_import_file *file, uint64_t *src, uint64_t *dst);

/* GW_RANGE names the first entry that lies outside of the matrix. */
gw_status gw_import_matrix_check(const struct gw_import_file *file, const uint64_t *src, const uint64_t *dst);

#endif
