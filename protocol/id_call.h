/* The id request: asks the server that has the entries of original ids for the nodes. The server looks them up in its
 * index (core/graph/id_index.h). Little-endian, 8-byte aligned, all numbers uint64.
 *
 *   call:   struct gw_id_call, then keys [count][1 or 2 words]; for dense ids, the id minus the part's first id
 *   reply:  for each key: the node, GW_ID_MISSING, or GW_ID_SHARED + the first of several nodes [count]
 */
#ifndef GW_PROTOCOL_ID_CALL_H
#define GW_PROTOCOL_ID_CALL_H

#include <stddef.h>
#include <stdint.h>

#include "core/graph/id_index.h"

#define GW_ID_KEYS_MAX 16384u /* in one call */

struct gw_id_call {
	uint32_t ntype;
	uint32_t form; /* enum gw_id_form that the client expects */
	uint32_t count;
	uint32_t zero;
};

/* Checks a call's bytes: type, form, counts and lengths. *keys points into them, at any alignment. GW_PROTOCOL,
 * GW_RANGE. */
gw_status gw_id_call_parse(const void *bytes, size_t byte_count, uint32_t num_ntypes, struct gw_id_call *call,
			   const uint8_t **keys);

/* Checks a reply's bytes against the number of keys and of the type's nodes, and copies the answers to nodes [count].
 * GW_PROTOCOL. */
gw_status gw_id_reply_parse(const void *bytes, size_t byte_count, uint32_t count, uint64_t node_count, uint64_t *nodes);

/* Checks answers, of a server or of an index in mapped memory: each is a node, or one of the marks. GW_PROTOCOL. */
gw_status gw_id_answers_check(const uint64_t *nodes, uint64_t count, uint64_t node_count);

#endif
