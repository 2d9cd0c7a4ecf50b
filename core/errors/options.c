/* Parses command lines by tables, on top of argp.
 *
 *   names normalized -> rows become argp's -> each value goes to its field -> missing options, the command's check,
 * options without effect
 *
 * Wrong usage prints one line to stderr and ends the process with status 2.
 */
#include "core/errors/options.h"

#include <argp.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/errors/log.h"

#define FIRST_KEY 0x1000 /* above every letter */

struct parse {
	const struct gw_options *options;
	void *input;
	uint32_t count;
	struct row {
		const struct gw_option *option;
		void *input; /* the struct that contains the option's field */
		bool seen;
	} rows[GW_OPTIONS_MAX];
	struct argp_option argp[GW_OPTIONS_MAX + 1];
	bool argument_seen;
};

void gw_options_normalize(int argc, char **argv)
{
	for (int i = 1; i < argc && argv[i]; i++) {
		char *text = argv[i];
		if (strncmp(text, "--", 2) != 0)
			continue;
		if (text[2] == '\0')
			return;
		for (char *at = text + 2; *at && *at != '='; at++) {
			if (*at == '_')
				*at = '-';
		}
	}
}

/* ---- one line for an error ---- */

/* argp always prints "Try ... --help" after an error, as the last text on its error stream. A stream of our own drops
 * it. */
static bool hint_seen;

static ssize_t write_but_hint(void *unused, const char *text, size_t bytes)
{
	static const char hint[] = "Try `";
	(void)unused;
	if (bytes >= sizeof(hint) - 1 && memcmp(text, hint, sizeof(hint) - 1) == 0)
		hint_seen = true;
	if (!hint_seen)
		fwrite(text, 1, bytes, stderr);
	return (ssize_t)bytes;
}

static void leave_out_hint(struct argp_state *state)
{
	FILE *errors = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_but_hint});
	if (!errors)
		return;
	setvbuf(errors, NULL, _IOLBF, 0);
	state->err_stream = errors; /* stays open: argp writes to it while it exits */
}

/* ---- values ---- */

static gw_status options_take_number(const struct gw_option_target *to, void *field, const char *text)
{
	uint64_t value = 0;
	gw_status status = gw_parse_u64(text, to->min, to->max, &value);
	if (status != GW_OK)
		return status;
	if (to->kind == GW_OPTION_IS_U32)
		*(uint32_t *)field = (uint32_t)value;
	else
		memcpy(field, &value, sizeof(value));
	return GW_OK;
}

static gw_status take_choice(const struct gw_option_target *to, void *field, const char *text)
{
	int index = 0;
	gw_status status = gw_parse_choice(text, to->choices, &index);
	if (status != GW_OK)
		return status;
	if (to->kind == GW_OPTION_IS_CHOICE)
		*(int *)field = index;
	else
		*(const char **)field = to->choices[index];
	return GW_OK;
}

static gw_status take_value(const struct gw_option_target *to, void *input, char *text)
{
	void *field = (char *)input + to->offset;
	switch (to->kind) {
	case GW_OPTION_IS_FLAG:
		*(bool *)field = true;
		return GW_OK;
	case GW_OPTION_IS_VALUE:
		*(int *)field = (int)to->min;
		return GW_OK;
	case GW_OPTION_IS_TEXT:
		*(const char **)field = text;
		return GW_OK;
	case GW_OPTION_IS_U32:
	case GW_OPTION_IS_U64:
	case GW_OPTION_IS_I64:
		return options_take_number(to, field, text);
	case GW_OPTION_IS_REAL:
		return gw_parse_double(text, to->least, to->most, field);
	case GW_OPTION_IS_CHOICE:
	case GW_OPTION_IS_CHOSEN_TEXT:
		return take_choice(to, field, text);
	default:
		assert(to->kind == GW_OPTION_IS_CALL);
		return to->take(input, text);
	}
}

/* ---- argp's side ---- */

static void take_argument(struct parse *parse, char *text, struct argp_state *state)
{
	const struct gw_options *options = parse->options;
	if (!options->argument)
		argp_error(state, "\"%s\": %s", text,
			   options->argument_missing ? options->argument_missing : "no argument is expected");
	if (parse->argument_seen && options->argument_to.kind == GW_OPTION_IS_TEXT)
		argp_error(state, "\"%s\": one %s is enough", text, options->argument);
	parse->argument_seen = true;
	if (options->argument && take_value(&options->argument_to, parse->input, text))
		argp_error(state, "%s", gw_last_error());
}

static bool is_seen(const struct parse *parse, const char *name)
{
	for (uint32_t i = 0; i < parse->count; i++) {
		if (parse->rows[i].seen && strcmp(parse->rows[i].option->name, name) == 0)
			return true;
	}
	return false;
}

/* An option without effect is an error: it says what the user wants, and would not get. */
static void check_effects(const struct parse *parse, struct argp_state *state)
{
	for (uint32_t i = 0; i < parse->count; i++) {
		const struct gw_option *option = parse->rows[i].option;
		const char *needs = option->to.needs, *excludes = option->to.excludes;
		if (!parse->rows[i].seen)
			continue;
		if (needs && !is_seen(parse, needs))
			argp_error(state, "--%s has no effect without --%s", option->name, needs);
		if (excludes && is_seen(parse, excludes))
			argp_error(state, "--%s has no effect with --%s: leave out one of them", option->name,
				   excludes);
	}
}

static void check_all(const struct parse *parse, struct argp_state *state)
{
	const struct gw_options *options = parse->options;
	if (options->argument && options->argument_missing && !parse->argument_seen)
		argp_error(state, "%s is missing: %s", options->argument, options->argument_missing);
	for (uint32_t i = 0; i < parse->count; i++) {
		const struct gw_option *option = parse->rows[i].option;
		if (option->to.missing && !parse->rows[i].seen)
			argp_error(state, "--%s %s is missing: %s", option->name, option->value, option->to.missing);
	}
	if (options->check && options->check(parse->input))
		argp_error(state, "%s", gw_last_error());
	check_effects(parse, state);
}

static error_t options_parse_key(int key, char *text, struct argp_state *state)
{
	struct parse *parse = state->input;
	if (key == ARGP_KEY_INIT)
		leave_out_hint(state);
	if (key == ARGP_KEY_ARG)
		take_argument(parse, text, state);
	if (key == ARGP_KEY_END)
		check_all(parse, state);
	for (uint32_t i = 0; i < parse->count; i++) {
		struct row *row = &parse->rows[i];
		if (!row->option->name || key != parse->argp[i].key)
			continue;
		if (row->seen && row->option->to.once)
			argp_error(state, "--%s: \"%s\": one %s is enough", row->option->name, text,
				   row->option->value);
		row->seen = true;
		if (take_value(&row->option->to, row->input, text))
			argp_error(state, "--%s: %s", row->option->name, gw_last_error());
		return 0;
	}
	return key == ARGP_KEY_ARG || key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
}

static void add_rows(struct parse *parse, const struct gw_option *table, void *input)
{
	for (const struct gw_option *option = table; option->name || option->help; option++) {
		assert(parse->count < GW_OPTIONS_MAX);
		assert(!option->name || option->to.kind != GW_OPTION_NO_FIELD);
		uint32_t at = parse->count++;
		parse->rows[at] = (struct row){.option = option, .input = input};
		parse->argp[at] = (struct argp_option){
			.name = option->name, .arg = option->value, .doc = option->help, .group = option->group};
		if (option->name)
			parse->argp[at].key = option->to.letter ? option->to.letter : FIRST_KEY + (int)at;
	}
}

void gw_options_parse(const struct gw_options *options, int argc, char **argv, void *input)
{
	struct parse parse = {.options = options, .input = input};
	add_rows(&parse, options->table, input);
	if (options->common)
		add_rows(&parse, options->common, (char *)input + options->common_offset);
	const struct argp argp = {
		.options = parse.argp, .parser = options_parse_key, .args_doc = options->argument, .doc = options->doc};
	argp_err_exit_status = 2;
	gw_options_normalize(argc, argv);
	error_t error = argp_parse(&argp, argc, argv, 0, NULL, &parse);
	if (error) {
		fprintf(stderr, "%s: %s\n", argv[0], strerror(error));
		exit(2);
	}
}

int gw_exit_status(const char *command, gw_status status)
{
	if (status != GW_OK)
		gw_log_failure(command);
	return status == GW_OK ? 0 : 1;
}
