/* Ranges of keys: see time_key.h. A bound that the column cannot have exactly is replaced by the nearest time of the
 * column on the side that the range includes. */
#include "core/numbers/time_key.h"

#include <math.h>

#define WHOLE_END 0x1p63 /* the first real number above every int64 */

/* The greatest key of the column whose time is at most `time`; *exact: it is that time. *none: every time is later. */
static int64_t key_at_most(bool real, const struct gw_time *time, bool *exact, bool *none)
{
	*none = false;
	*exact = true;
	if (time->is_real && real)
		return gw_time_key_real(time->value.real);
	if (!time->is_real && !real)
		return time->value.whole;
	if (!time->is_real) {
		double near = (double)time->value.whole;
		int64_t key = gw_time_key_real(near);
		/* 2^63 is near, but above every whole number */
		bool above = near >= WHOLE_END || (int64_t)near > time->value.whole;
		*exact = !above && (int64_t)near == time->value.whole;
		return above ? key - 1 : key;
	}
	double whole = floor(time->value.real);
	*exact = whole == time->value.real && whole >= -WHOLE_END && whole < WHOLE_END;
	*none = whole < -WHOLE_END;
	return *none ? INT64_MIN : whole >= WHOLE_END ? INT64_MAX : (int64_t)whole;
}

bool gw_time_is_exact(bool real, const struct gw_time *time)
{
	bool exact, none;
	(void)key_at_most(real, time, &exact, &none);
	return exact;
}

struct gw_time_range gw_time_range_of(bool real, const struct gw_time *from, const struct gw_time *until, bool strict)
{
	static const struct gw_time_range empty = {INT64_MAX, INT64_MIN};
	bool exact, none;
	struct gw_time_range range = {INT64_MIN, key_at_most(real, until, &exact, &none)};
	if (none || (strict && exact && range.until == INT64_MIN))
		return empty;
	if (strict && exact)
		range.until--;
	if (!from)
		return range;
	range.from = key_at_most(real, from, &exact, &none);
	if (!exact && !none && range.from == INT64_MAX)
		return empty; /* the window begins after every whole number */
	if (!exact && !none)
		range.from++;
	return range;
}
