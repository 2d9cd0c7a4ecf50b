/* Memory of servers that have ended: it exists until the last process that maps it unmaps it. */
#ifndef GW_SERVER_LEFTOVER_MEMORY_H
#define GW_SERVER_LEFTOVER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Whether processes map memory of Graphwire servers that have ended. If so, text names these processes (pid, command,
 * bytes) and describes what to do. Processes that this one may not inspect are not found. root: "", or the root of a
 * fake /proc. */
bool gw_leftover_memory_find(const char *root, char *text, size_t bytes);

#endif
