/* Servers as graphwire doctor asks them: one address, asked without a key, and the findings about it. */
#ifndef GW_TEST_DOCTOR_ASK_H
#define GW_TEST_DOCTOR_ASK_H

#include "core/system/clock.h"
#include "tools/doctor/doctor.h"
#include "transport/transport.h"

#define DOCTOR_MEASURE_MS 80
#define DOCTOR_TIME_MAX                                                                                                \
	(100 * GW_NS_PER_SECOND) /* for what is bounded by seconds, on a machine that is busy or emulated */

struct asking {
	struct gw_doctor doctor;
	char server[GW_ADDRESS_MAX];
	const char *list[1];
	struct gw_doctor_peers peers;
};

/* The doctor is ready to ask; options may be changed before gw_doctor_ask. */
void doctor_ask(struct asking *asking, const char *host, uint16_t port);
/* The finding about one transport, "" for the server; fails the test unless it has this status and text. */
const struct gw_doctor_finding *doctor_answer(const struct asking *asking, const char *scheme,
					      enum gw_doctor_status status, const char *value);

#endif
