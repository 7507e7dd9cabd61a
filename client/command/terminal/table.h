/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_TERMINAL_TABLE_H
#define CLIENT_COMMAND_TERMINAL_TABLE_H

/* Prints a table on stdout that fits in the terminal.
 *
 * Every column is as wide as its widest cell. While a line is wider than the terminal, the column with the
 * lowest rank is left out; the first column always stays. */

#include <stdbool.h>
#include <stddef.h>

#define TABLE_CELL_MAX     64 /* bytes, the zero included */
#define TABLE_COLUMNS_MOST 16

struct table_column {
    const char *title;
    int rank;  /* columns with the lowest rank are omitted first */
    bool text; /* aligned left; numbers are aligned right */
};

struct table_cell {
    char text[TABLE_CELL_MAX];
    const char *colour; /* an escape sequence; NULL: none */
};

struct table {
    const struct table_column *columns; /* [n_columns], TABLE_COLUMNS_MOST at most */
    size_t n_columns, n_rows;
    /* Sets a zeroed cell. It must give the same result in every call. */
    void (*fill)(const void *arg, size_t row, size_t column, struct table_cell *ret_cell);
    const void *arg;
};

/* Prints the titles and the rows. `width`: columns of the terminal; 0: no limit. `colours`: with escape
 * sequences, and bold titles. */
void table_print(const struct table *table, size_t width, bool colours);

#endif
