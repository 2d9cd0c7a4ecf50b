/* Memory of servers that have ended: it is there until the last process that maps it has let it go. */
#ifndef GW_SERVER_LEFTOVER_MEMORY_H
#define GW_SERVER_LEFTOVER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* Whether processes map memory of a Graphwire server that no server has any more. Then text says which (pid, command,
 * bytes), and what to do. Processes that this one may not look at are not seen. root: "", or a made-up tree with a
 * proc. */
bool gw_leftover_memory_find(const char *root, char *text, size_t bytes);

#endif
