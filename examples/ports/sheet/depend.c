/*
 * Which formula reads which cells. A formula has a watch for each column that it reads. The watch is in
 * the list of the column, which leads to all formulas that read it, and in the list of the formula's cell.
 *
 * All cells that depend on a change are queued, in any order. A cell is computed as soon as it waits for
 * no other cell (A. B. Kahn, 1962). A cell that is never computed waits for itself: it is on a cycle, or
 * depends on a cycle. There is no recursion, so chains may be long.
 */
#include "sheet.h"

#include <stdlib.h>

struct watch {
    struct watch *next, **link; /* next in the column's list; the link to this watch */
    struct watch *sibling;      /* next in the cell's list */
    struct column *column;
    struct cell *user;
    int first, last; /* rows */
};

static void watch_area(struct sheet *sheet, struct cell *cell, struct area area)
{
    for (int number = area.first.column; number <= area.last.column; number++) {
        struct column *column = make_column(sheet, number);
        struct watch *watch = allocate(sizeof *watch);
        *watch = (struct watch){.next = column->watchers,
                                .link = &column->watchers,
                                .sibling = cell->watches,
                                .column = column,
                                .user = cell,
                                .first = area.first.row,
                                .last = area.last.row};
        if (watch->next)
            watch->next->link = &watch->next;
        column->watchers = cell->watches = watch;
    }
}

static void watch_node(struct sheet *sheet, struct cell *cell, const struct node *node)
{
    struct area area;
    if ((node->kind == N_AREA || node->kind == N_NAME) && node_area(sheet, node, &area))
        watch_area(sheet, cell, area);
    for (size_t i = 0; i < node->count; i++)
        watch_node(sheet, cell, node->operands[i]);
}

void watch_formula(struct sheet *sheet, struct cell *cell)
{
    watch_node(sheet, cell, cell->formula);
}

void unwatch_formula(struct sheet *sheet, struct cell *cell)
{
    while (cell->watches) {
        struct watch *watch = cell->watches;
        cell->watches = watch->sibling;
        *watch->link = watch->next;
        if (watch->next)
            watch->next->link = watch->link;
        drop_column_if_unused(sheet, watch->column);
        free(watch);
    }
}

static bool covers(const struct watch *watch, int row)
{
    return row >= watch->first && row <= watch->last;
}

/* The first watch that covers the row, from `watch` on. */
static struct watch *covering(struct watch *watch, int row)
{
    while (watch && !covers(watch, row))
        watch = watch->next;
    return watch;
}

static struct watch *first_user(const struct cell *cell)
{
    return covering(cell->column->watchers, cell->row->number);
}

static struct watch *next_user(const struct cell *cell, const struct watch *watch)
{
    return covering(watch->next, cell->row->number);
}

static struct cell **enqueue(struct cell **end, struct cell *cell)
{
    if (cell->queued)
        return end;
    cell->queued = true;
    cell->pending = 0;
    cell->queue = NULL;
    *end = cell;
    return &cell->queue;
}

static struct cell **enqueue_users(struct cell **end, struct column *column, int row)
{
    for (struct watch *watch = column ? covering(column->watchers, row) : NULL; watch;
         watch = covering(watch->next, row))
        end = enqueue(end, watch->user);
    return end;
}

/* Queue all cells that the step changed, and all that depend on them. */
static struct cell *collect(const struct sheet *sheet, const struct step *step)
{
    struct cell *queue = NULL, **end = &queue, *cell;
    for (const struct change *change = step->changes; change; change = change->next)
        if (!change->name) {
            if ((cell = find_cell(sheet, change->place)) != NULL)
                end = enqueue(end, cell);
            end = enqueue_users(end, find_column(sheet, change->place.column), change->place.row);
        } else {
            for (cell = NULL; (cell = next_cell(sheet, all_of(), cell)) != NULL;)
                if (cell->formula && mentions_name(cell->formula, change->name))
                    end = enqueue(end, cell);
        }
    for (cell = queue; cell; cell = cell->queue)
        end = enqueue_users(end, cell->column, cell->row->number);
    return queue;
}

/* Whether the formula reads a cell without a value, even in an operand that does not count. */
static bool reads_cycle(const struct cell *cell)
{
    for (const struct watch *watch = cell->watches; watch; watch = watch->sibling)
        for (const struct cell *read = watch->column->top; read; read = read->below)
            if (read->value.kind == FAULT && read->value.fault == CYCLE &&
                covers(watch, read->row->number))
                return true;
    return false;
}

static void compute(const struct sheet *sheet, struct cell *cell)
{
    if (!cell->formula)
        return;
    struct value value = reads_cycle(cell) ? fault_value(CYCLE) : evaluate(sheet, cell->formula);
    clear_value(&cell->value);
    cell->value = value.kind == EMPTY ? number_value(0) : value;
}

void recalculate(struct sheet *sheet, const struct step *step)
{
    struct cell *queue = collect(sheet, step), *ready = NULL, *cell;
    struct watch *watch;
    for (cell = queue; cell; cell = cell->queue)
        for (watch = first_user(cell); watch; watch = next_user(cell, watch))
            watch->user->pending++;

    for (cell = queue; cell; cell = cell->queue)
        if (cell->pending == 0) {
            cell->next = ready;
            ready = cell;
        }
    while ((cell = ready) != NULL) {
        ready = cell->next;
        compute(sheet, cell);
        for (watch = first_user(cell); watch; watch = next_user(cell, watch))
            if (--watch->user->pending == 0) {
                watch->user->next = ready;
                ready = watch->user;
            }
    }

    for (cell = queue; cell; cell = cell->queue) {
        cell->queued = false;
        if (cell->pending) {
            clear_value(&cell->value);
            cell->value = fault_value(CYCLE);
        }
    }
}
