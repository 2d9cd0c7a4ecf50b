/* graphwire import columns: columns of tables of text, as CSV. The Python package reads text with it. */
#ifndef GW_TOOLS_IMPORT_COLUMNS_H
#define GW_TOOLS_IMPORT_COLUMNS_H

/* argv[0] is the command's name. Returns the exit status. */
int gw_import_columns_main(int argc, char **argv);

#endif
