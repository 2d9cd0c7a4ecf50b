/* libibverbs and librdmacm, which are not linked but opened at run time: a program of ours runs on hosts without them.
 */
#ifndef GW_TRANSPORT_VERBS_LIBRARY_H
#define GW_TRANSPORT_VERBS_LIBRARY_H

#include "core/errors/status.h"

/* Opens both, once in a process; to be called before the first ibv_ or rdma_ function. GW_UNSUPPORTED: one is missing
 * or too old, and the text names the packages. */
gw_status gw_verbs_library(void);

#endif
