/*
 * The language. Each line is a command:
 *
 *     set PLACE TEXT             a number, a text, or a formula after '='
 *     clear AREA                 empty its cells
 *     copy AREA PLACE            formulas refer to the places moved along; references with a $ stay
 *     sort AREA COLUMN [down]    sort its rows by their values in this column
 *     name NAME AREA             for use in formulas           unname NAME
 *     undo    redo    history    of the changes
 *     show PLACE                 its source and its value
 *     print [AREA]               values, as a table
 *     list                       all sources, values and names
 *
 * A command answers with one or more lines. After a mistake the answer is a line that begins with
 * "error:", and nothing has changed.
 */
#include "sheet.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("error: ");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

static bool place_of(const char *text, struct place *place)
{
    bool fixed[2];
    size_t length = text ? read_place(text, place, &fixed[0], &fixed[1]) : 0;
    if (length && !text[length])
        return true;
    complain("%s is no place", text ? text : "nothing");
    return false;
}

static bool area_of(const char *text, struct area *area)
{
    if (text && read_area(text, area))
        return true;
    complain("%s is no area", text ? text : "nothing");
    return false;
}

static void answer(const struct cell *cell)
{
    char *value = value_text(&cell->value);
    if (cell->formula)
        printf("%s %s -> %s\n", place_name(cell_place(cell)).text, cell->source, value);
    else
        printf("%s %s\n", place_name(cell_place(cell)).text, value);
    free(value);
}

static void set(struct sheet *sheet, const char *line, char *arguments)
{
    char *where = strtok(arguments, " "), *source = strtok(NULL, "");
    struct place place;
    if (!place_of(where, &place))
        return;
    if (!source) {
        complain("set wants something to set");
        return;
    }
    begin_step(sheet, line);
    if (!change_cell(sheet, place, source)) {
        drop_step(sheet);
        return;
    }
    end_step(sheet);
    answer(find_cell(sheet, place));
}

static void clear(struct sheet *sheet, const char *line, char *arguments)
{
    struct area area;
    if (!area_of(arguments, &area))
        return;
    int count = 0;
    begin_step(sheet, line);
    for (struct cell *cell; (cell = next_cell(sheet, area, NULL)) != NULL; count++)
        change_cell(sheet, cell_place(cell), NULL);
    end_step(sheet);
    printf("cleared %d\n", count);
}

/* The source that a cell of an area had before a command, and the place where the source goes. */
struct moved {
    struct place to;
    char *source; /* owned */
};

struct moves {
    struct moved *array; /* grows */
    size_t count, room;
};

static bool add_move(struct moves *moves, const struct cell *cell, int columns, int rows)
{
    struct place from = cell_place(cell);
    struct moved moved = {.to = {from.column + columns, from.row + rows},
                          .source = shift_source(cell->source, columns, rows)};
    if (!moved.source || !place_exists(moved.to)) {
        complain("%s cannot move so far", place_name(from).text);
        free(moved.source);
        return false;
    }
    if (moves->count == moves->room) {
        moves->room = moves->room ? 2 * moves->room : 8;
        moves->array = resize(moves->array, moves->room * sizeof *moves->array);
    }
    moves->array[moves->count++] = moved;
    return true;
}

static void free_moves(struct moves *moves)
{
    for (size_t i = 0; i < moves->count; i++)
        free(moves->array[i].source);
    free(moves->array);
}

/* Empty the area, then put the moved sources there. */
static void move_into(struct sheet *sheet, const char *line, struct area area,
                      const struct moves *moves)
{
    begin_step(sheet, line);
    for (struct cell *cell; (cell = next_cell(sheet, area, NULL)) != NULL;)
        change_cell(sheet, cell_place(cell), NULL);
    for (size_t i = 0; i < moves->count; i++)
        change_cell(sheet, moves->array[i].to, moves->array[i].source);
    end_step(sheet);
}

static void copy(struct sheet *sheet, const char *line, char *arguments)
{
    char *from = strtok(arguments, " "), *where = strtok(NULL, "");
    struct area area;
    struct place to;
    if (!area_of(from, &area) || !place_of(where, &to))
        return;
    int columns = to.column - area.first.column, rows = to.row - area.first.row;
    struct area into = {to, {area.last.column + columns, area.last.row + rows}};
    if (!place_exists(into.last)) {
        complain("%s has no room for %s", place_name(to).text, from);
        return;
    }
    struct moves moves = {0};
    struct cell *cell = NULL;
    bool possible = true;
    while (possible && (cell = next_cell(sheet, area, cell)) != NULL)
        possible = add_move(&moves, cell, columns, rows);
    if (possible) {
        move_into(sheet, line, into, &moves);
        printf("copied %zu\n", moves.count);
    }
    free_moves(&moves);
}

struct sorted_row {
    const struct value *key;
    int row;
};

static int compare_up(const void *left, const void *right)
{
    const struct sorted_row *a = left, *b = right;
    int order = compare_values(a->key, b->key);
    return order ? order : a->row - b->row;
}

static int compare_down(const void *left, const void *right)
{
    const struct sorted_row *a = left, *b = right;
    int order = compare_values(b->key, a->key);
    return order ? order : a->row - b->row;
}

/* The rows of the area, sorted by their values in the column. The caller frees the array. */
static struct sorted_row *sort_rows(struct sheet *sheet, struct area area, int column, bool down)
{
    static const struct value nothing = {.kind = EMPTY};
    int count = area.last.row - area.first.row + 1;
    struct sorted_row *rows = allocate((size_t)count * sizeof *rows);
    for (int i = 0; i < count; i++) {
        struct cell *cell = find_cell(sheet, (struct place){column, area.first.row + i});
        rows[i] = (struct sorted_row){cell ? &cell->value : &nothing, area.first.row + i};
    }
    qsort(rows, (size_t)count, sizeof *rows, down ? compare_down : compare_up);
    return rows;
}

static void sort(struct sheet *sheet, const char *line, char *arguments)
{
    char *what = strtok(arguments, " "), *by = strtok(NULL, " "), *direction = strtok(NULL, "");
    struct area area, column;
    bool down = direction && strcmp(direction, "down") == 0;
    if (!area_of(what, &area))
        return;
    char *top = by ? join_texts(by, "1") : NULL;
    bool is_column = top && read_area(top, &column) && !strpbrk(by, "0123456789:$");
    free(top);
    if (!is_column || (direction && !down)) {
        complain("sort wants a column, and perhaps \"down\"");
        return;
    }
    struct sorted_row *rows = sort_rows(sheet, area, column.first.column, down);
    struct moves moves = {0};
    bool possible = true;
    for (int row = area.first.row; possible && row <= area.last.row; row++) {
        int from = rows[row - area.first.row].row;
        struct area old = {{area.first.column, from}, {area.last.column, from}};
        struct cell *cell = NULL;
        while (possible && (cell = next_cell(sheet, old, cell)) != NULL)
            possible = add_move(&moves, cell, 0, row - from);
    }
    if (possible) {
        move_into(sheet, line, area, &moves);
        printf("sorted %d\n", area.last.row - area.first.row + 1);
    }
    free_moves(&moves);
    free(rows);
}

static void name(struct sheet *sheet, const char *line, char *arguments)
{
    char *text = strtok(arguments, " "), *area = strtok(NULL, "");
    struct token token = read_token(text ? text : "");
    if (token.kind != WORD || text[token.length] || !area) {
        complain("name wants a name, which is a word and no place, and an area");
        return;
    }
    begin_step(sheet, line);
    if (!change_name(sheet, text, area)) {
        drop_step(sheet);
        return;
    }
    end_step(sheet);
    printf("%s is %s\n", text, area_name(find_name(sheet, text)->area).text);
}

static void unname(struct sheet *sheet, const char *line, char *arguments)
{
    if (!arguments || !find_name(sheet, arguments)) {
        complain("there is no name %s", arguments ? arguments : "");
        return;
    }
    begin_step(sheet, line);
    change_name(sheet, arguments, NULL);
    end_step(sheet);
    printf("no name %s\n", arguments);
}

static void tell_step(const char *what, const struct step *step)
{
    if (step)
        printf("%s: %s\n", what, step->command);
    else
        complain("nothing to be %s", what);
}

static void history(const struct sheet *sheet)
{
    bool undone = !sheet->done;
    for (const struct step *step = sheet->oldest; step; step = step->newer) {
        printf("%s%s\n", undone ? "  undone: " : "  ", step->command);
        undone = undone || step == sheet->done;
    }
    printf("steps: %zu\n", sheet->steps);
}

static void show(const struct sheet *sheet, const char *arguments)
{
    struct place place;
    if (!place_of(arguments, &place))
        return;
    const struct cell *cell = find_cell(sheet, place);
    if (cell)
        answer(cell);
    else
        printf("%s is empty\n", place_name(place).text);
}

/* Print all places of the area, up to the last row and the last column that have a cell. */
static void print(const struct sheet *sheet, struct area area)
{
    const struct cell *cell = NULL;
    struct place last = {-1, -1};
    while ((cell = next_cell(sheet, area, cell)) != NULL) {
        last.row = cell->row->number;
        last.column = cell->column->number > last.column ? cell->column->number : last.column;
    }
    for (int row = area.first.row; row <= last.row; row++)
        for (int column = area.first.column; column <= last.column; column++) {
            cell = find_cell(sheet, (struct place){column, row});
            char *text = cell ? value_text(&cell->value) : copy_text("");
            printf("%s%s", text, column < last.column ? "\t" : "\n");
            free(text);
        }
    printf("cells: %zu\n", sheet->cells);
}

static void list(const struct sheet *sheet)
{
    const struct cell *cell = NULL;
    while ((cell = next_cell(sheet, all_of(), cell)) != NULL)
        answer(cell);
    for (size_t i = 0; i < sheet->names_count; i++)
        printf("%s is %s\n", sheet->names[i]->text, area_name(sheet->names[i]->area).text);
    printf("cells: %zu, names: %zu\n", sheet->cells, sheet->names_count);
}

void execute(struct sheet *sheet, char *line)
{
    char *whole = copy_text(line); /* strtok() cuts the line up */
    char *command = strtok(line, " "), *arguments = strtok(NULL, "");
    struct area area = all_of();

    if (!command)
        complain("no command");
    else if (strcmp(command, "set") == 0)
        set(sheet, whole, arguments);
    else if (strcmp(command, "clear") == 0)
        clear(sheet, whole, arguments);
    else if (strcmp(command, "copy") == 0)
        copy(sheet, whole, arguments);
    else if (strcmp(command, "sort") == 0)
        sort(sheet, whole, arguments);
    else if (strcmp(command, "name") == 0)
        name(sheet, whole, arguments);
    else if (strcmp(command, "unname") == 0)
        unname(sheet, whole, arguments);
    else if (strcmp(command, "undo") == 0)
        tell_step("undone", undo(sheet));
    else if (strcmp(command, "redo") == 0)
        tell_step("redone", redo(sheet));
    else if (strcmp(command, "history") == 0)
        history(sheet);
    else if (strcmp(command, "show") == 0)
        show(sheet, arguments);
    else if (strcmp(command, "print") != 0 && strcmp(command, "list") != 0)
        complain("there is no command %s", command);
    else if (*command == 'l')
        list(sheet);
    else if (!arguments || area_of(arguments, &area))
        print(sheet, area);
    free(whole);
}
