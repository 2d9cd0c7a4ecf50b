/* The subcommands of graphwire that live in tools/. Each takes the arguments that follow its name and returns the
 * program's exit status: 0 success, 1 failure (one line on stderr), 2 wrong usage. */
#ifndef GW_TOOLS_TOOLS_H
#define GW_TOOLS_TOOLS_H

int gw_tool_import(int argc, char **argv);
int gw_tool_generate(int argc, char **argv);
int gw_tool_epoch(int argc, char **argv);
int gw_tool_partition(int argc, char **argv);
int gw_tool_replicate(int argc, char **argv);
int gw_tool_verify(int argc, char **argv);
int gw_tool_inspect(int argc, char **argv);
int gw_tool_stat(int argc, char **argv);
int gw_tool_top(int argc, char **argv);
int gw_tool_doctor(int argc, char **argv);
int gw_tool_agent(int argc, char **argv);
int gw_tool_checkpoint(int argc, char **argv);
int gw_tool_restore(int argc, char **argv);
int gw_tool_end_job(int argc, char **argv);

#endif
