/* libibverbs and librdmacm, opened at run time instead of linked, so that Graphwire's programs run on hosts without
 * them.
 */
#ifndef GW_TRANSPORT_VERBS_LIBRARY_H
#define GW_TRANSPORT_VERBS_LIBRARY_H

#include "core/errors/status.h"

/* Opens both libraries, once in a process. Call it before the first ibv_ or rdma_ function. GW_UNSUPPORTED: a library
 * is missing or too old; the text names the packages. */
gw_status gw_verbs_library(void);

#endif
