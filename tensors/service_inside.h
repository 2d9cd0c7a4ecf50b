/* What the handlers of the calls on tensors share. */
#ifndef GW_TENSORS_SERVICE_INSIDE_H
#define GW_TENSORS_SERVICE_INSIDE_H

#include "tensors/service.h"

/* Numbers of a call, aligned: those of the call itself, or a copy, which the caller frees. NULL: no memory. */
const void *gw_tensor_call_numbers(const uint8_t *bytes, size_t byte_count, void **copy);

gw_status gw_tensor_answer_save(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread);
gw_status gw_tensor_answer_restore(void *context, const struct gw_call *call, struct gw_reply *reply, uint32_t thread);

#endif
