"""What all other rooms use: the C library, its log and errors, arrays, arguments, temporary folders, the program."""
