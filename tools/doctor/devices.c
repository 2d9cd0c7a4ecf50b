/* The RDMA devices of this host, and libibverbs' report of one device. */
#include <string.h>

#include "tools/doctor/doctor.h"

bool gw_doctor_device_names(const struct gw_doctor *doctor, struct gw_doctor_names *out)
{
	return gw_doctor_folder(doctor, "", out, "/sys/class/infiniband") && out->count > 0;
}

const struct gw_verbs_report *gw_doctor_report(const struct gw_doctor *doctor, const char *device)
{
	for (uint32_t i = 0; i < doctor->report_count; i++)
		if (strcmp(doctor->reports[i].name, device) == 0)
			return &doctor->reports[i];
	return NULL;
}
