/* graphwire import table: tables of numbers as text become .npy: features, labels and ids of data sets that come as
 * CSV. */
#ifndef GW_TOOLS_IMPORT_NUMBER_TABLE_H
#define GW_TOOLS_IMPORT_NUMBER_TABLE_H

/* argv[0] is the command's name. Returns the exit status. */
int gw_number_table_main(int argc, char **argv);

#endif
