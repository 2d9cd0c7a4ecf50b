/* graphwire import combine: node types and edge types of several graphs become one graph. */
#ifndef GW_TOOLS_IMPORT_COMBINE_H
#define GW_TOOLS_IMPORT_COMBINE_H

/* argv[0] is the command's name. Returns the exit status. */
int gw_combine_main(int argc, char **argv);

#endif
