/* The calls on tensors, as a service answers them: for servers and for standalone clients alike. */
#ifndef GW_TENSORS_SERVICE_H
#define GW_TENSORS_SERVICE_H

#include "tensors/table.h"
#include "transport/service.h"

/* Sets the handlers of all calls of protocol/tensor_call.h. The table outlives the service's listeners. */
gw_status gw_tensor_service_set(struct gw_service *service, struct gw_tensor_table *table);

#endif
