/* Units of times: a column with a unit counts it since 1970-01-01T00:00:00 UTC. Plain numbers have no unit. */
#ifndef GW_NUMBERS_TIME_UNIT_H
#define GW_NUMBERS_TIME_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum gw_time_unit { GW_UNIT_NONE, GW_UNIT_DAY, GW_UNIT_S, GW_UNIT_MS, GW_UNIT_US, GW_UNIT_NS, GW_UNITS };

/* NumPy's value for a time that is missing, of every unit. */
#define GW_TIME_NAT INT64_MIN

/* The unit's name, as NumPy and the graph's JSON have it: "D", "s", "ms", "us" or "ns"; "" for none. */
static inline const char *gw_time_unit_text(enum gw_time_unit unit)
{
	static const char *const texts[GW_UNITS] = {"", "D", "s", "ms", "us", "ns"};
	return texts[unit];
}

/* Finds the unit of a name; false: no unit has it. */
static inline bool gw_time_unit_parse(const char *text, enum gw_time_unit *out)
{
	for (enum gw_time_unit unit = GW_UNIT_DAY; unit < GW_UNITS; unit++) {
		if (strcmp(gw_time_unit_text(unit), text) == 0) {
			*out = unit;
			return true;
		}
	}
	return false;
}

#endif
