/* Servers as graphwire doctor asks them. */
#include "test/support/doctor_ask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/doctor_host.h"

void doctor_ask(struct asking *asking, const char *host, uint16_t port)
{
	memset(asking, 0, sizeof(*asking));
	snprintf(asking->server, sizeof(asking->server), "%s:%u", host, port);
	asking->list[0] = asking->server;
	asking->doctor.root = "/nowhere";
	asking->doctor.section = "servers";
	asking->peers = (struct gw_doctor_peers){.servers = asking->list,
						 .count = 1,
						 .insecure = true,
						 .row_bytes = 64,
						 .measure_ms = DOCTOR_MEASURE_MS,
						 .timeout_ms = getenv("GRAPHWIRE_GUEST") ? 60000 : 30000};
}

const struct gw_doctor_finding *doctor_answer(const struct asking *asking, const char *scheme,
					      enum gw_doctor_status status, const char *value)
{
	char name[GW_ADDRESS_MAX + 16];
	snprintf(name, sizeof(name), "%s%s%s", asking->server, *scheme ? " " : "", scheme);
	const struct gw_doctor_finding *finding = doctor_find(&asking->doctor, name);
	/* An emulated guest may take as long for a round trip as a distant server. */
	bool distant = getenv("GRAPHWIRE_GUEST") && status == GW_DOCTOR_OK && finding->status == GW_DOCTOR_NOTE &&
		       strstr(finding->costs, "a round trip");
	if (finding->status != status && !distant)
		fail_msg("%s: status %d, not %d: %s", name, finding->status, status, finding->value);
	doctor_has(finding->value, value);
	return finding;
}
