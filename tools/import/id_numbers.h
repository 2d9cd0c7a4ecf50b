/* graphwire import ids: numbers ids, texts or integers, within a limit of memory. The Python package numbers the ids of
 * tables with it that exceed its memory. */
#ifndef GW_TOOLS_IMPORT_ID_NUMBERS_H
#define GW_TOOLS_IMPORT_ID_NUMBERS_H

/* argv[0] is the command's name. Returns the exit status. */
int gw_id_numbers_main(int argc, char **argv);

#endif
