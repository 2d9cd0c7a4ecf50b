/* Command lines as tables: a row for each option says how it is called, what --help tells about it, and which field of
 * the command's struct its value goes to. Long options with '-' or '_' alike, values in the units people type, one
 * style of error.
 *
 *   static const struct gw_option table[] = {
 *           {"num-parts", "N", "how many parts", 0, GW_OPTION_NUMBER(struct arguments, parts, 1, 4096)},
 *           {"json", NULL, "one JSON object", 0, GW_OPTION_FLAG(struct arguments, json)},
 *           {0}};
 *   static const struct gw_options options = {.table = table, .doc = "Cut a graph in parts."};
 *   gw_options_parse(&options, argc, argv, &arguments);
 */
#ifndef GW_ERRORS_OPTIONS_H
#define GW_ERRORS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/errors/units.h"

#define GW_OPTIONS_MAX 64 /* rows of a command, those of its common table included */

enum gw_option_kind {
	GW_OPTION_NO_FIELD,
	GW_OPTION_IS_FLAG,
	GW_OPTION_IS_TEXT,
	GW_OPTION_IS_U32,
	GW_OPTION_IS_U64,
	GW_OPTION_IS_I64,
	GW_OPTION_IS_REAL,
	GW_OPTION_IS_CHOICE,
	GW_OPTION_IS_CHOSEN_TEXT,
	GW_OPTION_IS_CALL,
};

/* Where a value goes. Made by the macros below, which refuse a field of another type; they take .missing and .letter as
 * further arguments. */
struct gw_option_target {
	enum gw_option_kind kind;
	size_t offset;     /* of the field, in the command's struct */
	uint64_t min, max; /* of numbers */
	double least, most;
	const char *const *choices;
	gw_status (*take)(void *input, char *text);
	const char *missing; /* the option must be given; the question that its lack raises */
	int letter;          /* a short form, or 0 */
};

typedef const char *gw_option_text; /* for the formatter, which takes the * below for a product */

/* A field of no object, for its type: never read, nowhere defined. */
extern char gw_option_nowhere[];
#define GW_OPTION_FIELD(type, field) (((type *)(void *)gw_option_nowhere)->field)

/* The option's being there, in a bool. */
#define GW_OPTION_FLAG(type, field, ...)                                                                               \
	{                                                                                                              \
		.kind = _Generic(GW_OPTION_FIELD(type, field), bool                                                    \
				 : GW_OPTION_IS_FLAG),                                                                 \
		.offset = offsetof(type, field), __VA_ARGS__                                                           \
	}

/* Its text as it is, in a const char *: the command line's memory. */
#define GW_OPTION_TEXT(type, field, ...)                                                                               \
	{                                                                                                              \
		.kind = _Generic(GW_OPTION_FIELD(type, field), gw_option_text                                          \
				 : GW_OPTION_IS_TEXT),                                                                 \
		.offset = offsetof(type, field), __VA_ARGS__                                                           \
	}

/* A whole number from least to greatest, units allowed, in a uint32_t, uint64_t or int64_t. */
#define GW_OPTION_NUMBER(type, field, least_number, greatest_number, ...)                                              \
	{                                                                                                              \
		.kind = _Generic(GW_OPTION_FIELD(type, field), uint32_t                                                \
				 : GW_OPTION_IS_U32, uint64_t                                                          \
				 : GW_OPTION_IS_U64, int64_t                                                           \
				 : GW_OPTION_IS_I64),                                                                  \
		.offset = offsetof(type, field), .min = (least_number), .max = (greatest_number), __VA_ARGS__          \
	}

/* A number from least to greatest, in a double. */
#define GW_OPTION_REAL(type, field, least_number, greatest_number, ...)                                                \
	{                                                                                                              \
		.kind = _Generic(GW_OPTION_FIELD(type, field), double                                                  \
				 : GW_OPTION_IS_REAL),                                                                 \
		.offset = offsetof(type, field), .least = (least_number), .most = (greatest_number), __VA_ARGS__       \
	}

/* One of a NULL-terminated list: its index in an enum or int, or itself in a const char *. */
#define GW_OPTION_CHOICE(type, field, list, ...)                                                                       \
	{                                                                                                              \
		.kind = _Generic(GW_OPTION_FIELD(type, field), gw_option_text                                          \
				 : GW_OPTION_IS_CHOSEN_TEXT, int                                                       \
				 : GW_OPTION_IS_CHOICE, unsigned                                                       \
				 : GW_OPTION_IS_CHOICE),                                                               \
		.offset = offsetof(type, field), .choices = (list), __VA_ARGS__                                        \
	}

/* A function that takes the value (NULL where the option has none): gw_status take(void *input, char *text). */
#define GW_OPTION_CALL(function, ...)                                                                                  \
	{                                                                                                              \
		.kind = GW_OPTION_IS_CALL, .take = (function), __VA_ARGS__                                             \
	}

struct gw_option {
	const char *name;  /* "num-parts"; NULL: the row is a headline of its group, told by help */
	const char *value; /* what --help calls its value; NULL: it has none */
	const char *help;
	int group; /* --help shows groups in this order */
	struct gw_option_target to;
};

/* A command line. */
struct gw_options {
	const struct gw_option *table;       /* up to a row of zeros */
	const struct gw_option *common;      /* a table that several commands share, or NULL */
	size_t common_offset;                /* of its struct in the command's */
	const char *argument;                /* what --help calls an argument that is no option; NULL: there is none */
	struct gw_option_target argument_to; /* GW_OPTION_TEXT: at most one; GW_OPTION_CALL: any number, in turn */
	const char *argument_missing; /* it must be given; the question that its lack raises. Without `argument`: what
					 is said of one */
	const char *doc;              /* for --help: what comes before the options, '\v', what comes after them */
	gw_status (*check)(void *input); /* what the rows cannot tell; its error text is shown; or NULL */
};

/* Takes a command line into the command's struct. Returns only if it is right: else it prints one line on stderr and
 * ends the process with status 2 (after --help and --usage with 0). Of an option that is given twice the last one
 * counts. Call before the program has threads. */
void gw_options_parse(const struct gw_options *options, int argc, char **argv, void *input);

/* How a command ends that has run: 0, or 1 with its error in one line on stderr. */
int gw_exit_status(const char *command, gw_status status);

/* Rewrites '_' to '-' in the names of long options ("--num_parts=4"), in place, up to "--". Values are untouched. */
void gw_options_normalize(int argc, char **argv);

#endif
