/* SPDX-License-Identifier: MIT */
/* Cells are made twice, once to be measured and once to be printed, so that no table is held in memory. */

#include "client/command/terminal/table.h"

#include <stdio.h>
#include <string.h>

#define GAP   2 /* blanks between columns */
#define BOLD  "\033[1m"
#define PLAIN "\033[0m"

/* A cell of a row; of row n_rows: the title. */
static struct table_cell cell_of(const struct table *table, size_t row, size_t column)
{
    struct table_cell cell = {.colour = NULL};
    if (row < table->n_rows) {
        table->fill(table->arg, row, column, &cell);
    } else {
        snprintf(cell.text, sizeof cell.text, "%s", table->columns[column].title);
        cell.colour = BOLD;
    }
    return cell;
}

/* Columns on the screen: characters, not bytes. */
static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += (*text & 0xc0) != 0x80;
    return n;
}

/* The column that goes next; 0, which stays: there is none. */
static size_t least(const struct table *table, const size_t widths[])
{
    size_t found = 0;
    for (size_t c = 1; c < table->n_columns; c++)
        if (widths[c] > 0 && (found == 0 || table->columns[c].rank < table->columns[found].rank))
            found = c;
    return found;
}

/* The widths of those columns that fit; 0 is a column that does not. */
static void fit(const struct table *table, size_t width, size_t ret_widths[])
{
    size_t line = 0, gone;
    for (size_t c = 0; c < table->n_columns; c++) {
        ret_widths[c] = 0;
        for (size_t row = 0; row <= table->n_rows; row++) {
            const struct table_cell cell = cell_of(table, row, c);
            const size_t own = width_of(cell.text);
            ret_widths[c] = own > ret_widths[c] ? own : ret_widths[c];
        }
        if (ret_widths[c] > 0)
            line += ret_widths[c] + (c > 0 ? GAP : 0);
    }
    while (width > 0 && line > width && (gone = least(table, ret_widths)) > 0) {
        line -= ret_widths[gone] + GAP;
        ret_widths[gone] = 0;
    }
}

static void print_row(const struct table *table, size_t row, const size_t widths[], bool colours)
{
    char line[TABLE_COLUMNS_MOST * 2 * TABLE_CELL_MAX];
    int n = 0;
    for (size_t c = 0; c < table->n_columns; c++) {
        if (widths[c] == 0)
            continue;
        const struct table_cell cell = cell_of(table, row, c);
        const char *colour = colours && cell.colour ? cell.colour : "";
        const int blanks = (int)(widths[c] - width_of(cell.text));
        const int before = table->columns[c].text ? 0 : blanks;
        n += sprintf(line + n, "%*s%s%s%s%*s", before + (c > 0 ? GAP : 0), "", colour, cell.text,
                     colour[0] ? PLAIN : "", blanks - before, "");
    }
    while (n > 0 && line[n - 1] == ' ')
        n--;
    printf("%.*s\n", n, line);
}

void table_print(const struct table *table, size_t width, bool colours)
{
    size_t widths[TABLE_COLUMNS_MOST];
    fit(table, width, widths);
    print_row(table, table->n_rows, widths, colours);
    for (size_t row = 0; row < table->n_rows; row++)
        print_row(table, row, widths, colours);
}
