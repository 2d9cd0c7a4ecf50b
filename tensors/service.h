/* Answers the calls on tensors, for servers and for standalone clients. */
#ifndef GW_TENSORS_SERVICE_H
#define GW_TENSORS_SERVICE_H

#include "tensors/table.h"
#include "transport/service/service.h"

/* Sets the handlers of all calls of protocol/tensor_call.h. The table must outlive the service's listeners. */
gw_status gw_tensor_service_set(struct gw_service *service, struct gw_tensor_table *table);

#endif
