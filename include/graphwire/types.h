/* Status codes and element types, which all Graphwire interfaces share. */
#ifndef GRAPHWIRE_TYPES_H
#define GRAPHWIRE_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GW_API __attribute__((visibility("default")))

/* X(name, text). GW_OK is 0. A value never changes its meaning between versions. */
#define GW_STATUS_LIST(X)                                                                                              \
	X(GW_OK, "ok")                                                                                                 \
	X(GW_AGAIN, "not yet: try again")                                                                              \
	X(GW_END, "the end was reached")                                                                               \
	X(GW_INVALID, "invalid argument")                                                                              \
	X(GW_NOT_FOUND, "not found")                                                                                   \
	X(GW_EXISTS, "exists already")                                                                                 \
	X(GW_RANGE, "out of range")                                                                                    \
	X(GW_FORMAT, "malformed data")                                                                                 \
	X(GW_DIGEST, "digest mismatch")                                                                                \
	X(GW_VERSION, "version mismatch")                                                                              \
	X(GW_UNSUPPORTED, "not supported here")                                                                        \
	X(GW_IO, "input/output error")                                                                                 \
	X(GW_NO_SPACE, "no space left")                                                                                \
	X(GW_NO_MEMORY, "out of memory")                                                                               \
	X(GW_LOCKED_MEMORY, "locked-memory limit reached")                                                             \
	X(GW_LIMIT, "limit exceeded")                                                                                  \
	X(GW_BUSY, "in use by another")                                                                                \
	X(GW_REFUSED, "refused by the peer")                                                                           \
	X(GW_PROTOCOL, "the peer broke the protocol")                                                                  \
	X(GW_PEER_LOST, "connection to the peer lost")                                                                 \
	X(GW_STALE, "the peer has loaded its data again")                                                              \
	X(GW_WRONG_GRAPH, "the peer serves another graph")                                                             \
	X(GW_DEADLINE, "deadline passed")                                                                              \
	X(GW_CANCELLED, "cancelled")                                                                                   \
	X(GW_INTERRUPTED, "interrupted")                                                                               \
	X(GW_OUTCOME_UNKNOWN, "may have been applied or not")

typedef enum gw_status {
#define GW_STATUS_ENUM(name, text) name,
	GW_STATUS_LIST(GW_STATUS_ENUM)
#undef GW_STATUS_ENUM
		GW_STATUS_COUNT
} gw_status;

/* X(name, text, bytes of one element). The text is the name in mygraph.json. A value never changes its meaning between
 * versions. */
#define GW_DTYPE_LIST(X)                                                                                               \
	X(GW_UINT8, "uint8", 1)                                                                                        \
	X(GW_INT8, "int8", 1)                                                                                          \
	X(GW_BOOL, "bool", 1)                                                                                          \
	X(GW_UINT16, "uint16", 2)                                                                                      \
	X(GW_FLOAT16, "float16", 2)                                                                                    \
	X(GW_BFLOAT16, "bfloat16", 2)                                                                                  \
	X(GW_INT32, "int32", 4)                                                                                        \
	X(GW_UINT32, "uint32", 4)                                                                                      \
	X(GW_FLOAT32, "float32", 4)                                                                                    \
	X(GW_INT64, "int64", 8)                                                                                        \
	X(GW_UINT64, "uint64", 8)                                                                                      \
	X(GW_FLOAT64, "float64", 8)                                                                                    \
	X(GW_INT8_ROW, "int8_row", 1) /* a row is {float32 scale, float32 offset, int8[d]}, padded to 4 bytes */       \
	X(GW_INT16, "int16", 2)

typedef enum gw_dtype {
#define GW_DTYPE_ENUM(name, text, bytes) name,
	GW_DTYPE_LIST(GW_DTYPE_ENUM)
#undef GW_DTYPE_ENUM
		GW_DTYPE_COUNT
} gw_dtype;

#define GW_DIMS_MAX 4 /* dimensions of an array, including the row index */

/* The value that means "no such node" or "no such edge" in 64-bit id arrays. */
#define GW_NONE INT64_MAX

/* The text of a status: a static string, "unknown status" for a value out of range. */
GW_API const char *gw_status_text(gw_status status);

/* The error of this thread's last failed call: one line that names what failed, where and, if a remedy exists, what to
 * do. Valid until the next failure in this thread; "" before the first. Functions that close, cancel, release or free
 * do not change it. */
GW_API const char *gw_last_error(void);

/* Parses a whole number from min to max in the form in which commands and Python take sizes: "64", "10k", "1.5M",
 * "2Gi". k, M, G and T are powers of 1000; Ki, Mi, Gi and Ti of 1024. GW_INVALID names the text; GW_RANGE names the
 * bounds. */
GW_API gw_status gw_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out);

#ifdef __cplusplus
}
#endif
#endif
