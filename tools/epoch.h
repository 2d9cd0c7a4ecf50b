/* graphwire epoch. */
#ifndef GW_TOOLS_EPOCH_H
#define GW_TOOLS_EPOCH_H

/* Runs the command; argv[0] is the name it is called by. Returns the exit status: 0, 1 (failed), 2 (usage). */
int gw_tool_epoch(int argc, char **argv);

#endif
