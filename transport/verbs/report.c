/* Reports the devices that libibverbs lists: list -> open -> query the device, then its ports -> close.
 *
 * If a device cannot be opened (this user may not open its file, its provider's library is missing), the report lists
 * the device with the reason. Fails only where no list exists: no libraries, no RDMA in the kernel, out of memory.
 */
#include "transport/verbs/report.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>

#include "transport/verbs/library.h"
#include "transport/verbs/verbs.h"

/* enum ibv_mtu numbers the powers of two from 256 upwards. */
static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

static void ask_paging(struct ibv_context *context, struct gw_verbs_report *report)
{
	struct ibv_device_attr_ex extended = {0};
	if (ibv_query_device_ex(context, NULL, &extended) != 0)
		return;
	const struct ibv_odp_caps *caps = &extended.odp_caps;
	report->odp_known = true;
	report->odp = caps->general_caps & IBV_ODP_SUPPORT;
	report->odp_implicit = caps->general_caps & IBV_ODP_SUPPORT_IMPLICIT;
	report->odp_reads = caps->per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_READ;
}

static void ask_port(struct ibv_context *context, uint32_t number, struct gw_verbs_port_report *report)
{
	struct ibv_port_attr port;
	if (ibv_query_port(context, (uint8_t)number, &port) != 0)
		return;
	report->known = true;
	report->active_mtu = mtu_bytes(port.active_mtu);
	report->max_mtu = mtu_bytes(port.max_mtu);
}

static int ask_device(struct ibv_context *context, struct gw_verbs_report *report)
{
	struct ibv_device_attr device;
	int error = ibv_query_device(context, &device);
	if (error)
		return error;
	report->iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP;
	report->reads_as_server = device.max_qp_rd_atom > 0 ? (uint32_t)device.max_qp_rd_atom : 0;
	report->reads_as_reader = device.max_qp_init_rd_atom > 0 ? (uint32_t)device.max_qp_init_rd_atom : 0;
	report->queue_pairs = device.max_qp > 0 ? (uint32_t)device.max_qp : 0;
	report->registrations = device.max_mr > 0 ? (uint32_t)device.max_mr : 0;
	ask_paging(context, report);
	report->port_count = device.phys_port_cnt;
	for (uint32_t i = 0; i < report->port_count && i < GW_VERBS_REPORT_PORTS_MAX; i++)
		ask_port(context, i + 1, &report->ports[i]);
	return 0;
}

static void report_ask(struct ibv_device *device, struct gw_verbs_report *report)
{
	*report = (struct gw_verbs_report){0};
	snprintf(report->name, sizeof(report->name), "%s", ibv_get_device_name(device));
	errno = 0;
	struct ibv_context *context = ibv_open_device(device);
	if (!context) {
		report->error = errno ? errno : ENODEV;
		return;
	}
	report->error = ask_device(context, report);
	ibv_close_device(context);
}

gw_status gw_verbs_report(struct gw_verbs_report *reports, uint32_t max, uint32_t *count)
{
	int listed = 0;
	*count = 0;
	gw_status status = gw_verbs_library();
	if (status != GW_OK)
		return status;
	errno = 0;
	struct ibv_device **devices = ibv_get_device_list(&listed);
	if (!devices)
		return gw_verbs_missing("RDMA devices", errno == ENOSYS || errno == 0 ? ENODEV : errno);
	for (int i = 0; i < listed && *count < max; i++)
		report_ask(devices[i], &reports[(*count)++]);
	ibv_free_device_list(devices);
	return GW_OK;
}
