/* Names of operations. */
#include "protocol/ops.h"

#include <stddef.h>

const char *gw_op_name(unsigned op)
{
	static const char *const names[] = {
		[GW_OP_CATALOG] = "catalog",
		[GW_OP_SAMPLE] = "sample",
		[GW_OP_STATS] = "stats",
		[GW_OP_EDGES] = "edges",
		[GW_OP_IDS] = "ids",
		[GW_OP_SUBGRAPH] = "subgraph",
		[GW_OP_DISK_ROWS] = "disk_rows",
		[GW_OP_SAVED] = "saved",
		[GW_OP_TENSOR_CREATE] = "tensor_create",
		[GW_OP_TENSOR_COMPLETE] = "tensor_complete",
		[GW_OP_TENSOR_LIST] = "tensor_list",
		[GW_OP_TENSOR_DELETE] = "tensor_delete",
		[GW_OP_TENSOR_PULL] = "tensor_pull",
		[GW_OP_TENSOR_UPDATE] = "tensor_update",
		[GW_OP_TENSOR_PUSH] = "tensor_push",
		[GW_OP_TENSOR_COUNT] = "tensor_count",
		[GW_OP_TENSOR_LEASE] = "tensor_lease",
		[GW_OP_TENSOR_SAVE] = "tensor_save",
		[GW_OP_TENSOR_RESTORE] = "tensor_restore",
		[GW_OP_TENSOR_END_JOB] = "tensor_end_job",
		[GW_OP_TENSOR_READS] = "tensor_reads",
	};
	return op < sizeof(names) / sizeof(*names) ? names[op] : NULL;
}
