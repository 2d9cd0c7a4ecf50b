/* The JSON objects of a hand-over: from the structs of a server, and back. Reading trusts nothing: what is missing or
 * out of range is GW_PROTOCOL, and names the member. See server/handover_wire.h for what may change between versions.
 */
#ifndef GW_SERVER_HANDOVER_TEXT_H
#define GW_SERVER_HANDOVER_TEXT_H

#include <jansson.h>

#include "core/graph/part.h"
#include "tensors/table_move.h"

/* "is": the name of a message: hello, offer, tensor, ready, state, copied, go, serving, abort. */
json_t *gw_handover_object(const char *is);
/* GW_REFUSED: the other side gave up; its text. GW_PROTOCOL: another message than `is`. */
gw_status gw_handover_expect(const json_t *json, const char *is);

/* Numbers are JSON integers of 64 bits, in two's complement. */
void gw_handover_set(json_t *json, const char *name, uint64_t value);
gw_status gw_handover_number(const json_t *json, const char *name, uint64_t max, uint64_t *out);
/* A text of up to `bytes` - 1 bytes. */
gw_status gw_handover_word(const json_t *json, const char *name, char *out, size_t bytes);

json_t *gw_handover_shape(const struct gw_arena_shape *shape);
gw_status gw_handover_shape_read(const json_t *json, struct gw_arena_shape *out);

/* The arrays of a part: key, digest, place. */
json_t *gw_handover_arrays(const struct gw_part *part);
/* Before the part is opened in the old server's memory, which lacks room for arrays that this server alone would load:
 * whether the options leave the same arrays apart. GW_INVALID names the first difference. */
gw_status gw_handover_apart_check(const json_t *arrays, const struct gw_part_options *options);
/* Whether the old server's arrays are those of this part, at the same places. GW_WRONG_GRAPH names the first
 * difference; GW_INVALID: the mutable features differ. */
gw_status gw_handover_arrays_check(const json_t *arrays, const struct gw_part *part);
/* The same of the lists of other parts: a list of the arrays of each. NULL: none. */
json_t *gw_handover_lists(struct gw_part *const *parts, uint32_t count);
gw_status gw_handover_lists_check(const json_t *lists, struct gw_part *const *parts, uint32_t count);

json_t *gw_handover_tensor(const struct gw_tensor_moved *moved, uint32_t parts);
/* out->epochs is the caller's. */
gw_status gw_handover_tensor_read(const json_t *json, uint32_t parts, struct gw_tensor_moved *out);

json_t *gw_handover_jobs(const struct gw_tensor_moves *moves);
gw_status gw_handover_jobs_read(const json_t *json, struct gw_tensor_moves *out);

#endif
