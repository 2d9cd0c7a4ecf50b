/* Compares two mini-batches byte by byte. */
#ifndef GW_TOOLS_MINIBATCH_COMPARE_H
#define GW_TOOLS_MINIBATCH_COMPARE_H

#include <graphwire/graphwire.h>

/* Compares everything that two mini-batches of one spec hold: seeds, nodes, blocks, fetched rows. spec may be the
 * spec of either client. *bytes grows by the number of bytes compared; bytes may be NULL. GW_DIGEST names the step
 * and the first array that differs. */
gw_status gw_minibatch_compare(const struct gw_sample_spec *spec, const struct gw_minibatch *left,
			       const struct gw_minibatch *right, uint64_t *bytes);

#endif
