/* Cells in linked rows and linked columns. */
#include "sheet.h"

#include <stdlib.h>

struct sheet *new_sheet(void)
{
    return allocate(sizeof(struct sheet));
}

struct area all_of(void)
{
    return (struct area){{0, 0}, {COLUMNS_MAX - 1, ROWS_MAX - 1}};
}

struct place cell_place(const struct cell *cell)
{
    return (struct place){cell->column->number, cell->row->number};
}

/* The link to the column. If there is no such column, the link where it would be. */
static struct column **column_link(const struct sheet *sheet, int number)
{
    struct column **link = (struct column **)&sheet->columns;
    while (*link && (*link)->number < number)
        link = &(*link)->next;
    return link;
}

static struct row **row_link(const struct sheet *sheet, int number)
{
    struct row **link = (struct row **)&sheet->rows;
    while (*link && (*link)->number < number)
        link = &(*link)->next;
    return link;
}

struct column *find_column(const struct sheet *sheet, int number)
{
    struct column *column = *column_link(sheet, number);
    return column && column->number == number ? column : NULL;
}

struct column *make_column(struct sheet *sheet, int number)
{
    struct column **link = column_link(sheet, number);
    if (!*link || (*link)->number != number) {
        struct column *column = allocate(sizeof *column);
        *column = (struct column){.next = *link, .number = number};
        *link = column;
    }
    return *link;
}

void drop_column_if_unused(struct sheet *sheet, struct column *column)
{
    if (column->top || column->watchers)
        return;
    *column_link(sheet, column->number) = column->next;
    free(column);
}

static struct row *make_row(struct sheet *sheet, int number)
{
    struct row **link = row_link(sheet, number);
    if (!*link || (*link)->number != number) {
        struct row *row = allocate(sizeof *row);
        *row = (struct row){.next = *link, .number = number};
        *link = row;
    }
    return *link;
}

static struct cell **link_in_row(struct row *row, int column)
{
    struct cell **link = &row->leftmost;
    while (*link && (*link)->column->number < column)
        link = &(*link)->right;
    return link;
}

static struct cell **link_in_column(struct column *column, int row)
{
    struct cell **link = &column->top;
    while (*link && (*link)->row->number < row)
        link = &(*link)->below;
    return link;
}

struct cell *find_cell(const struct sheet *sheet, struct place place)
{
    struct row *row = *row_link(sheet, place.row);
    if (!row || row->number != place.row)
        return NULL;
    struct cell *cell = *link_in_row(row, place.column);
    return cell && cell->column->number == place.column ? cell : NULL;
}

struct cell *next_cell(const struct sheet *sheet, struct area area, const struct cell *previous)
{
    const struct row *row = previous ? previous->row : *row_link(sheet, area.first.row);
    struct cell *cell = previous ? previous->right : row ? row->leftmost : NULL;
    while (row && row->number <= area.last.row) {
        while (cell && cell->column->number < area.first.column)
            cell = cell->right;
        if (cell && cell->column->number <= area.last.column)
            return cell;
        row = row->next;
        cell = row ? row->leftmost : NULL;
    }
    return NULL;
}

static struct cell *make_cell(struct sheet *sheet, struct place place)
{
    struct cell *cell = allocate(sizeof *cell);
    cell->row = make_row(sheet, place.row);
    cell->column = make_column(sheet, place.column);
    struct cell **in_row = link_in_row(cell->row, place.column);
    struct cell **in_column = link_in_column(cell->column, place.row);
    cell->right = *in_row;
    cell->below = *in_column;
    *in_row = *in_column = cell;
    sheet->cells++;
    return cell;
}

static void drop_cell(struct sheet *sheet, struct cell *cell)
{
    *link_in_row(cell->row, cell->column->number) = cell->right;
    *link_in_column(cell->column, cell->row->number) = cell->below;
    if (!cell->row->leftmost) {
        *row_link(sheet, cell->row->number) = cell->row->next;
        free(cell->row);
    }
    drop_column_if_unused(sheet, cell->column);
    free(cell);
    sheet->cells--;
}

void put_source(struct sheet *sheet, struct place place, const char *source, struct node *formula)
{
    struct cell *cell = find_cell(sheet, place);
    if (!cell && !source)
        return;
    if (!cell)
        cell = make_cell(sheet, place);
    unwatch_formula(sheet, cell);
    free(cell->source);
    free_node(cell->formula);
    clear_value(&cell->value);
    if (!source) {
        drop_cell(sheet, cell);
        return;
    }
    cell->source = copy_text(source);
    cell->formula = formula;
    if (formula)
        watch_formula(sheet, cell);
    else
        cell->value = constant_value(source);
}
