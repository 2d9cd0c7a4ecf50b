/* Numbers and names in the forms that people type on a command line and read in output. */
#include "core/errors/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHOICES_TEXT_MAX 512

/* The factor of a unit's name; 0 for an unknown name. */
static uint64_t unit_factor(const char *unit)
{
	static const struct {
		const char *name;
		uint64_t factor;
	} units[] = {
		{"", 1},
		{"k", 1000},
		{"K", 1000},
		{"M", 1000000},
		{"G", 1000000000},
		{"Ki", 1ull << 10},
		{"Mi", 1ull << 20},
		{"Gi", 1ull << 30},
		{"Ti", 1ull << 40},
		{"T", 1000000000000},
	};
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(units[i].name, unit) == 0)
			return units[i].factor;
	}
	return 0;
}

/* Moves *at behind the digits, and returns their number. *overflow is set if the value does not fit. */
static uint32_t read_digits(const char **at, uint64_t *value, bool *overflow)
{
	uint32_t count = 0;
	*value = 0;
	for (; **at >= '0' && **at <= '9'; count++, (*at)++)
		*overflow |= __builtin_mul_overflow(*value, 10, value) ||
			     __builtin_add_overflow(*value, (uint64_t)(**at - '0'), value);
	return count;
}

gw_status gw_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	const char *at = text;
	uint64_t value, digits = 0, tens = 1;
	bool overflow = false, is_number = read_digits(&at, &value, &overflow) > 0;
	if (is_number && *at == '.') {
		bool too_fine = false;
		at++;
		for (uint32_t count = read_digits(&at, &digits, &too_fine); count > 0; count--)
			too_fine |= __builtin_mul_overflow(tens, 10, &tens);
		is_number = tens > 1 && !too_fine;
	}
	uint64_t factor = is_number ? unit_factor(at) : 0;
	unsigned __int128 share = (unsigned __int128)digits * factor; /* of a unit, times `tens` */
	if (factor == 0 || (tens > 1 && factor == 1) || share % tens != 0)
		return gw_fail(GW_INVALID, "\"%.64s\" is not a whole number: write 64, 10k, 1.5M or 2Gi", text);
	overflow |= __builtin_mul_overflow(value, factor, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(share / tens), &value);
	if (overflow || value < min || value > max)
		return gw_fail(GW_RANGE, "%.64s is out of range: from %llu to %llu", text, (unsigned long long)min,
			       (unsigned long long)max);
	*out = value;
	return GW_OK;
}

gw_status gw_parse_double(const char *text, double min, double max, double *out)
{
	char *end;
	errno = 0;
	double value = strtod(text, &end);
	if (errno == ERANGE && fpclassify(value) == FP_ZERO)
		return gw_fail(GW_RANGE, "%.64s is too small: it would become 0", text);
	if (end == text || *end != '\0' || isspace((unsigned char)text[0]) || !isfinite(value))
		return gw_fail(GW_INVALID, "\"%.64s\" is not a number", text);
	if (value < min || value > max)
		return gw_fail(GW_RANGE, "%.64s is out of range: from %g to %g", text, min, max);
	*out = value;
	return GW_OK;
}

gw_status gw_parse_choice(const char *text, const char *const *choices, int *out)
{
	char list[CHOICES_TEXT_MAX] = "";
	size_t used = 0;
	for (int i = 0; choices[i]; i++) {
		if (strcmp(text, choices[i]) == 0) {
			*out = i;
			return GW_OK;
		}
		int added = snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", choices[i]);
		if (added > 0 && used + (size_t)added < sizeof(list))
			used += (size_t)added;
	}
	return gw_fail(GW_INVALID, "\"%.64s\" is not one of: %s", text, list);
}

gw_status gw_parse_list(const char *text, int32_t min, int32_t max, uint32_t room, int32_t *out, uint32_t *count)
{
	uint32_t found = 0;
	for (const char *at = text;; at++) {
		char *end;
		long value = strtol(at, &end, 10);
		if (end == at || isspace((unsigned char)*at) || value < min || value > max || (*end && *end != ','))
			return gw_fail(GW_INVALID, "\"%.64s\" is not a list of numbers from %d to %d, such as 15,10,5",
				       text, min, max);
		if (found == room)
			return gw_fail(GW_LIMIT, "\"%.64s\" has more than %u numbers", text, room);
		out[found++] = (int32_t)value;
		at = end;
		if (!*at)
			break;
	}
	*count = found;
	return GW_OK;
}

gw_status gw_split_list(char *text, uint32_t room, const char **out, uint32_t *count)
{
	uint32_t found = 0;
	for (char *one; (one = strsep(&text, ","));) {
		if (!*one)
			return gw_fail(GW_INVALID, "an empty name in the list, behind \"%.64s\"",
				       found ? out[found - 1] : "");
		if (found == room)
			return gw_fail(GW_LIMIT, "a list of more than %u names", room);
		out[found++] = one;
	}
	*count = found;
	return GW_OK;
}

static char *text_scaled(char *buffer, double value, double step, const char *const *units, const char *first)
{
	int unit = 0;
	double scaled = value;
	while (scaled >= step - 0.5 && units[unit]) {
		scaled /= step;
		unit++;
	}
	if (unit == 0) {
		snprintf(buffer, GW_UNIT_TEXT_MAX, "%.0f%s", value, first);
		return buffer;
	}
	int decimals = scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;
	snprintf(buffer, GW_UNIT_TEXT_MAX, "%.*f %s", decimals, scaled, units[unit - 1]);
	return buffer;
}

char *gw_text_bytes(char buffer[GW_UNIT_TEXT_MAX], double bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", NULL};
	return text_scaled(buffer, bytes, 1024, units, " B");
}

char *gw_text_count(char buffer[GW_UNIT_TEXT_MAX], double count)
{
	static const char *const units[] = {"k", "M", "G", "T", "P", NULL};
	return text_scaled(buffer, count, 1000, units, "");
}

char *gw_text_duration(char buffer[GW_UNIT_TEXT_MAX], double seconds)
{
	if (seconds < 1e-6)
		snprintf(buffer, GW_UNIT_TEXT_MAX, "%.0f ns", seconds * 1e9);
	else if (seconds < 0.9995e-3)
		snprintf(buffer, GW_UNIT_TEXT_MAX, "%.3g us", seconds * 1e6);
	else if (seconds < 0.9995)
		snprintf(buffer, GW_UNIT_TEXT_MAX, "%.3g ms", seconds * 1e3);
	else if (seconds < 59.95)
		snprintf(buffer, GW_UNIT_TEXT_MAX, "%.1f s", seconds);
	else if (seconds < 3599.5)
		snprintf(buffer, GW_UNIT_TEXT_MAX, "%d min %02d s", (int)(seconds + 0.5) / 60,
			 (int)(seconds + 0.5) % 60);
	else
		snprintf(buffer, GW_UNIT_TEXT_MAX, "%.0f h %02d min", floor((seconds + 30) / 3600),
			 (int)fmod((seconds + 30) / 60, 60));
	return buffer;
}

char *gw_text_printable(char *buffer, size_t bytes, const char *text)
{
	size_t n = 0;
	for (; text && text[n] && n < bytes - 1; n++)
		buffer[n] = iscntrl((unsigned char)text[n]) ? '?' : text[n];
	snprintf(buffer + n, bytes - n, "%s", n ? "" : "-");
	return buffer;
}
