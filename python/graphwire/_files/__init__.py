"""Files and tables, none of which needs a server: downloads, the columns of tables, a graph in memory to parts."""
