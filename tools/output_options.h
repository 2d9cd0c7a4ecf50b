/* The options of every command that writes a one-part graph, as rows of its table of options. */
#ifndef GW_TOOLS_OUTPUT_OPTIONS_H
#define GW_TOOLS_OUTPUT_OPTIONS_H

#include "core/errors/options.h"
#include "tools/builder/builder.h"

#define GW_TOOL_THREADS_MAX 256

/* type: the command's struct; at: the member that holds out, name and build, with its dot ("import."), or empty. */
#define GW_OUTPUT_OPTIONS(type, at, usual_name, group)                                                                      \
	{"out", "FOLDER", "write the graph here (must not exist)", group,                                                   \
	 GW_OPTION_TEXT(type, at out, .missing = "name a new folder for the graph")},                                       \
		{"name", "NAME", "the graph's name (default: " usual_name ")", group, GW_OPTION_TEXT(type, at name)},       \
		{"replace", NULL, "replace an existing graph; other files in its folder stay", group,                       \
		 GW_OPTION_FLAG(type, at build.replace)},                                                                   \
		{"threads", "N", "default: all processors", group,                                                          \
		 GW_OPTION_NUMBER(type, at build.threads, 1, GW_TOOL_THREADS_MAX)},                                         \
		{"memory", "SIZE",                                                                                          \
		 "memory for edges, ids and arrays, such as 20Gi, besides 8 bytes for each node; the rest is in temporary " \
		 "files in the folder of FOLDER (default: 7 tenths of the free memory); the result does not depend on it",  \
		 group, GW_OPTION_NUMBER(type, at build.memory, 1, UINT64_MAX)},                                            \
	{                                                                                                                   \
		"quiet", NULL, "warnings and errors only", group, GW_OPTION_FLAG(type, at build.quiet)                      \
	}

#endif
