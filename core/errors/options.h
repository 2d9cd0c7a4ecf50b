/* Command lines as tables. Each option is a row: its name, its text in --help, and the field of the command's struct
 * that receives its value. Long options accept '-' and '_' alike, and numbers the usual units. Errors have one style.
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

#define GW_OPTIONS_MAX 64 /* rows of a command, including those of its common table */

enum gw_option_kind {
	GW_OPTION_NO_FIELD,
	GW_OPTION_IS_FLAG,
	GW_OPTION_IS_VALUE,
	GW_OPTION_IS_TEXT,
	GW_OPTION_IS_U32,
	GW_OPTION_IS_U64,
	GW_OPTION_IS_I64,
	GW_OPTION_IS_REAL,
	GW_OPTION_IS_CHOICE,
	GW_OPTION_IS_CHOSEN_TEXT,
	GW_OPTION_IS_CALL,
};

/* Where a value goes: a field of the command's struct. The macros below fill it; a field of another type does not
 * compile. Their further arguments set other members: .missing, .letter, .once, .needs, .excludes. */
struct gw_option_target {
	enum gw_option_kind kind;
	size_t offset;     /* offset of the field in the command's struct */
	uint64_t min, max; /* range of a number */
	double least, most;
	const char *const *choices;
	gw_status (*take)(void *input, char *text);
	const char *missing;  /* not NULL: the option is required, and this text ends the error if it is missing */
	int letter;           /* a short form, or 0 */
	bool once;            /* it is an error to give the option twice */
	const char *needs;    /* not NULL: the name of an option without which this one has no effect: an error */
	const char *excludes; /* not NULL: the name of an option with which it has none: an error */
};

typedef const char *gw_option_text; /* a typedef, because clang-format takes the * below for a product */

/* Used only in type expressions: no code reads it, and no file defines it. */
extern char gw_option_nowhere[];
#define GW_OPTION_FIELD(type, field) (((type *)(void *)gw_option_nowhere)->field)

/* Whether the option is given, in a bool. */
#define GW_OPTION_FLAG(type, field, ...)                                                                               \
	{                                                                                                              \
		.kind = _Generic(GW_OPTION_FIELD(type, field), bool                                                    \
				 : GW_OPTION_IS_FLAG),                                                                 \
		.offset = offsetof(type, field), __VA_ARGS__                                                           \
	}

/* An option without a value that sets an enum or int. */
#define GW_OPTION_VALUE(type, field, number, ...)                                                                      \
	{                                                                                                              \
		.kind = _Generic(GW_OPTION_FIELD(type, field), int                                                     \
				 : GW_OPTION_IS_VALUE, unsigned                                                        \
				 : GW_OPTION_IS_VALUE),                                                                \
		.offset = offsetof(type, field), .min = (number), __VA_ARGS__                                          \
	}

/* The option's text, unchanged, in a const char *; it points into argv. */
#define GW_OPTION_TEXT(type, field, ...)                                                                               \
	{                                                                                                              \
		.kind = _Generic(GW_OPTION_FIELD(type, field), gw_option_text                                          \
				 : GW_OPTION_IS_TEXT),                                                                 \
		.offset = offsetof(type, field), __VA_ARGS__                                                           \
	}

/* An integer from least to greatest, units allowed, in a uint32_t, uint64_t or int64_t. */
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

/* One of a NULL-terminated list: its index in an enum or int, or its text in a const char *. */
#define GW_OPTION_CHOICE(type, field, list, ...)                                                                       \
	{                                                                                                              \
		.kind = _Generic(GW_OPTION_FIELD(type, field), gw_option_text                                          \
				 : GW_OPTION_IS_CHOSEN_TEXT, int                                                       \
				 : GW_OPTION_IS_CHOICE, unsigned                                                       \
				 : GW_OPTION_IS_CHOICE),                                                               \
		.offset = offsetof(type, field), .choices = (list), __VA_ARGS__                                        \
	}

/* A function that receives the value (NULL if the option has none): gw_status take(void *input, char *text). */
#define GW_OPTION_CALL(function, ...)                                                                                  \
	{                                                                                                              \
		.kind = GW_OPTION_IS_CALL, .take = (function), __VA_ARGS__                                             \
	}

struct gw_option {
	const char *name;  /* "num-parts"; NULL: the row is a headline of its group in --help */
	const char *value; /* the value's name in --help; NULL: the option has no value */
	const char *help;
	int group; /* --help shows groups in this order */
	struct gw_option_target to;
};

/* A command line. */
struct gw_options {
	const struct gw_option *table;       /* up to a row of zeros */
	const struct gw_option *common;      /* a table that several commands share; or NULL */
	size_t common_offset;                /* offset of the common table's struct in the command's struct */
	const char *argument;                /* name of a positional argument in --help; NULL: the command has none */
	struct gw_option_target argument_to; /* GW_OPTION_TEXT: at most one; GW_OPTION_CALL: any number, in order */
	const char *argument_missing;    /* the argument is required; the text asks for it when it is missing. Without
					    `argument`: the error text if any argument is given */
	const char *doc;                 /* for --help: the text before the options, '\v', the text after them */
	gw_status (*check)(void *input); /* checks that rows cannot express; its error text is printed; or NULL */
};

/* Parses a command line into the command's struct. Returns only on success. An error prints one line to stderr and ends
 * the process with status 2; --help and --usage end it with 0. If an option is given twice, the last one counts, unless
 * its row says .once: rows of names do that other commands add up. Call it before the program has threads. */
void gw_options_parse(const struct gw_options *options, int argc, char **argv, void *input);

/* The exit status of a command that has run: 0, or 1 after it prints its error in one line to stderr. */
int gw_exit_status(const char *command, gw_status status);

/* Rewrites '_' to '-' in the names of long options ("--num_parts=4"), in place, up to "--". Values stay unchanged. */
void gw_options_normalize(int argc, char **argv);

#endif
