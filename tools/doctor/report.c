/* Findings: checks add them; the report prints them under the headline of their section, or as one JSON object.
 *
 * Names and texts of files and servers are untrusted. The report cuts them to their field and replaces every byte that
 * is not printable ASCII by '?', so that they cannot mislead a terminal or a JSON parser. A finding without room is
 * counted and left out. Nothing else here can fail.
 */
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory/alloc.h"
#include "tools/doctor/doctor.h"

#define ROOM_FIRST 64

static const char *const words[] = {"ok", "note", "warning", "problem"};

/* --- Adding. --- */

static void append(char *text, size_t room, const char *format, va_list arguments)
	__attribute__((format(printf, 3, 0)));

static void append(char *text, size_t room, const char *format, va_list arguments)
{
	size_t used = strlen(text);
	vsnprintf(text + used, room - used, format, arguments);
	for (char *c = text + used; *c; c++)
		if (*c < 0x20 || *c > 0x7e)
			*c = '?';
}

static bool doctor_report_make_room(struct gw_doctor *doctor)
{
	if (doctor->count < doctor->capacity)
		return true;
	uint32_t capacity = doctor->capacity ? 2 * doctor->capacity : ROOM_FIRST;
	struct gw_doctor_finding *findings = doctor->count < GW_DOCTOR_FINDINGS_MAX
						     ? gw_realloc(doctor->findings, capacity, sizeof(*findings))
						     : NULL;
	if (!findings) {
		doctor->left_out++;
		return false;
	}
	doctor->findings = findings;
	doctor->capacity = capacity;
	return true;
}

struct gw_doctor_finding *gw_doctor_find(struct gw_doctor *doctor, enum gw_doctor_status status, const char *name, ...)
{
	va_list arguments;
	struct gw_doctor_finding *finding =
		doctor_report_make_room(doctor) ? &doctor->findings[doctor->count++] : &doctor->spare;
	*finding = (struct gw_doctor_finding){.section = doctor->section ? doctor->section : "", .status = status};
	va_start(arguments, name);
	append(finding->name, sizeof(finding->name), name, arguments);
	va_end(arguments);
	return finding;
}

void gw_doctor_add(char text[GW_DOCTOR_TEXT_MAX], const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	append(text, GW_DOCTOR_TEXT_MAX, format, arguments);
	va_end(arguments);
}

void gw_doctor_figure(struct gw_doctor_finding *finding, const char *name, double value)
{
	uint32_t i = 0;
	while (i < GW_DOCTOR_FIGURES_MAX && finding->figures[i].name)
		i++;
	if (i < GW_DOCTOR_FIGURES_MAX)
		finding->figures[i] = (struct gw_doctor_figure){name, value};
}

void gw_doctor_raise(struct gw_doctor_finding *finding, enum gw_doctor_status status)
{
	if (finding->status < status)
		finding->status = status;
}

const char *gw_doctor_bytes(char text[GW_UNIT_TEXT_MAX], uint64_t bytes)
{
	return bytes == UINT64_MAX ? "unlimited" : gw_text_bytes(text, (double)bytes);
}

void gw_doctor_unread(struct gw_doctor_finding *finding, const char *path)
{
	gw_doctor_raise(finding, GW_DOCTOR_NOTE);
	gw_doctor_value(finding, "not known: %s cannot be read, or has unexpected content", path);
}

/* --- Printing. --- */

enum gw_doctor_status gw_doctor_worst(const struct gw_doctor *doctor)
{
	enum gw_doctor_status worst = GW_DOCTOR_OK;
	for (uint32_t i = 0; i < doctor->count; i++)
		if (doctor->findings[i].status > worst)
			worst = doctor->findings[i].status;
	return worst;
}

static uint32_t doctor_report_count_of(const struct gw_doctor *doctor, enum gw_doctor_status status)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < doctor->count; i++)
		count += doctor->findings[i].status == status;
	return count;
}

static void print_finding(const struct gw_doctor_finding *finding)
{
	printf("  %-8s %-28s %s\n", words[finding->status], finding->name, finding->value);
	if (finding->costs[0])
		printf("  %-8s   costs: %s\n", "", finding->costs);
	if (finding->fix[0])
		printf("  %-8s   fix:   %s\n", "", finding->fix);
}

void gw_doctor_print(const struct gw_doctor *doctor)
{
	const char *section = "";
	for (uint32_t i = 0; i < doctor->count; i++) {
		const struct gw_doctor_finding *finding = &doctor->findings[i];
		if (strcmp(finding->section, section) != 0)
			printf("%s%s\n", i ? "\n" : "", finding->section);
		section = finding->section;
		print_finding(finding);
	}
	uint32_t problems = doctor_report_count_of(doctor, GW_DOCTOR_PROBLEM),
		 warnings = doctor_report_count_of(doctor, GW_DOCTOR_WARNING);
	printf("\n%u problem%s, %u warning%s, %u note%s\n", problems, problems == 1 ? "" : "s", warnings,
	       warnings == 1 ? "" : "s", doctor_report_count_of(doctor, GW_DOCTOR_NOTE),
	       doctor_report_count_of(doctor, GW_DOCTOR_NOTE) == 1 ? "" : "s");
}

static json_t *figures_of(const struct gw_doctor_finding *finding)
{
	json_t *figures = json_object();
	for (uint32_t i = 0; i < GW_DOCTOR_FIGURES_MAX && finding->figures[i].name; i++) {
		double value = finding->figures[i].value;
		/* JSON has neither infinities nor NANs. */
		if (json_object_set_new(figures, finding->figures[i].name,
					isfinite(value) ? json_real(value) : json_null())) {
			json_decref(figures);
			return NULL;
		}
	}
	return figures;
}

static json_t *object_of(const struct gw_doctor_finding *finding)
{
	json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "section", finding->section, "name", finding->name,
				   "status", words[finding->status], "value", finding->value, "costs", finding->costs,
				   "fix", finding->fix);
	if (object && finding->figures[0].name && json_object_set_new(object, "figures", figures_of(finding))) {
		json_decref(object);
		return NULL;
	}
	return object;
}

gw_status gw_doctor_print_json(const struct gw_doctor *doctor)
{
	json_t *list = json_array();
	bool whole = list != NULL;
	for (uint32_t i = 0; i < doctor->count && whole; i++)
		whole = json_array_append_new(list, object_of(&doctor->findings[i])) == 0;
	json_t *all = whole ? json_pack("{s:s, s:s, s:O}", "version", GRAPHWIRE_VERSION, "status",
					words[gw_doctor_worst(doctor)], "findings", list)
			    : NULL;
	char *text = all ? json_dumps(all, JSON_INDENT(1) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9)) : NULL;
	if (text)
		puts(text);
	free(text);
	json_decref(all);
	json_decref(list);
	return text ? GW_OK : gw_fail(GW_NO_MEMORY, "out of memory for the report as JSON");
}

void gw_doctor_free(struct gw_doctor *doctor)
{
	gw_free(doctor->findings);
	doctor->findings = NULL;
	doctor->count = doctor->capacity = 0;
}
