/*
 * A spreadsheet in memory. All its files include this header.
 *
 *     grid.c      cells, in linked rows and linked columns; only those that hold something
 *     place.c     "B7", "A1:C9"
 *     token.c     the words of a formula        formula.c   formulas as trees
 *     value.c     values of cells               evaluate.c  evaluates formulas
 *     depend.c    which formula reads which cells; the order in which to compute
 *     names.c     names of areas
 *     history.c   changes, for undo and redo
 *     command.c   the language                  main.c      reads the lines
 *
 * The invariants between two commands:
 *
 *   1. Each cell is in the list of its row, sorted by column, and in the list of its column, sorted by row.
 *   2. A row has cells. A column has cells or watchers.
 *   3. A cell has a source. It has a formula if and only if the source begins with '='.
 *   4. A formula watches exactly the places that it mentions, directly or by a name.
 *   5. Each value is the result of the formula over the present values. It is #CYCLE if the formula reads
 *      itself, or reads a cell that reads itself.
 *   6. Undoing all steps, from the newest, and redoing them leads to the same sheet.
 *
 * If memory runs out, allocate() and its like end the program.
 */
#ifndef SHEET_H
#define SHEET_H

#include <stdbool.h>
#include <stddef.h>

enum {
    COLUMNS_MAX = 702, /* A to ZZ */
    ROWS_MAX = 9999,
    NESTING_MAX = 100, /* of parentheses and signs */
    HISTORY_MAX = 500, /* steps */
};

/* ---- memory.c ---- */

void *allocate(size_t size); /* zeroed */
void *resize(void *memory, size_t size);
char *copy_text(const char *text);
char *join_texts(const char *a, const char *b);

/* ---- place.c ---- */

struct place {
    int column, row; /* from 0 */
};

struct area {
    struct place first, last; /* corners; both belong to the area */
};

struct area_text {
    char text[2 * (2 + 11) + 2]; /* an int has up to 11 characters */
};

/* Read a place at the start of `text`. A $ makes its column or row fixed. Returns the number of
 * characters, or 0 if there is no place. */
size_t read_place(const char *text, struct place *place, bool fixed_column[1], bool fixed_row[1]);
bool place_exists(struct place place);
/* Read all of `text` as an area: "A1:B2" or "A1". False if it is no area. */
bool read_area(const char *text, struct area *area);
struct area area_between(struct place a, struct place b);
bool area_has(struct area area, struct place place);
struct area_text area_name(struct area area);
struct area_text place_name(struct place place);

/* ---- value.c ---- */

enum fault { CYCLE, DIVISION, UNKNOWN_NAME, WRONG_KIND };

struct value {
    enum { EMPTY, NUMBER, TEXT, FAULT } kind;
    union {
        double number;
        char *text; /* owned */
        enum fault fault;
    };
};

struct value number_value(double number);
struct value fault_value(enum fault fault);
struct value text_value(char *text); /* the value owns the text from now on */
struct value constant_value(const char *source);
struct value copy_value(const struct value *value);
void clear_value(struct value *value);
/* Compare in the order numbers, texts, faults, empty values. Negative, 0 or positive like strcmp(). */
int compare_values(const struct value *a, const struct value *b);
/* The value as text, which the caller frees. "" for an empty value. */
char *value_text(const struct value *value);

/* ---- token.c ---- */

struct token {
    enum {
        END,
        PLACE,
        NUMERAL,
        STRING,
        WORD,
        UNEQUAL,
        AT_MOST,
        AT_LEAST,
        BROKEN, /* a string without end */
        SYMBOL, /* a character by itself, *text */
    } kind;
    const char *text;
    size_t length;
    struct place place;
    bool fixed_column, fixed_row;
    double number;
};

/* The first token of `text`, after blanks. */
struct token read_token(const char *text);
/*
 * The source of a cell that moves by so many columns and rows: places that are not fixed move along. The
 * caller frees the text. NULL if a place would then lie outside of the sheet.
 */
char *shift_source(const char *source, int columns, int rows);

/* ---- formula.c ---- */

struct node {
    enum { N_NUMBER, N_TEXT, N_AREA, N_NAME, N_NEGATE, N_BINARY, N_CALL } kind;
    int what; /* N_BINARY: the operator; N_CALL: enum function */
    union {
        double number;
        char *text; /* N_TEXT, N_NAME: owned */
        struct area area;
    };
    struct node **operands; /* grows */
    size_t count, room;
};

enum function { F_SUM, F_COUNT, F_AVERAGE, F_MIN, F_MAX, F_IF, F_ROUND, F_ABS, F_LEN, FUNCTIONS };

/* Parse "=..." into a tree, which the caller frees. NULL after a complaint. */
struct node *parse_formula(const char *source);
void free_node(struct node *node);
bool mentions_name(const struct node *node, const char *name);

/* ---- grid.c ---- */

struct watch; /* depend.c */

struct column {
    struct column *next; /* to the right */
    int number;
    struct cell *top;
    struct watch *watchers; /* watches of cells in this column */
};

struct row {
    struct row *next; /* below */
    int number;
    struct cell *leftmost;
};

struct cell {
    struct column *column;
    struct row *row;
    struct cell *right, *below;
    char *source;
    struct node *formula; /* NULL: a constant */
    struct value value;
    struct watch *watches;     /* what the formula reads */
    struct cell *queue, *next; /* depend.c: lists of cells to compute, and of cells ready to compute */
    size_t pending;            /* how many watches still wait for a cell to be computed */
    bool queued;
};

struct name {
    char *text;
    struct area area;
};

struct sheet {
    struct row *rows;
    struct column *columns;
    size_t cells;
    struct name **names; /* by text; grows */
    size_t names_count, names_room;
    struct step *oldest, *newest; /* history.c */
    struct step *done;            /* the last one that is not undone, or NULL */
    struct step *open;            /* the step being made; NULL between two commands */
    size_t steps;
};

struct sheet *new_sheet(void);
struct cell *find_cell(const struct sheet *sheet, struct place place);
struct column *find_column(const struct sheet *sheet, int number);
struct column *make_column(struct sheet *sheet, int number);
void drop_column_if_unused(struct sheet *sheet, struct column *column);
struct place cell_place(const struct cell *cell);
/* The next cell in the area after `previous`, row by row. If `previous` is NULL, the first cell. */
struct cell *next_cell(const struct sheet *sheet, struct area area, const struct cell *previous);
struct area all_of(void);
/* Give the cell this source. A formula has been parsed already. NULL removes the cell. */
void put_source(struct sheet *sheet, struct place place, const char *source, struct node *formula);

/* ---- evaluate.c ---- */

struct value evaluate(const struct sheet *sheet, const struct node *node);
/* The area of a node of the kind N_AREA or N_NAME. False if the name is unknown. */
bool node_area(const struct sheet *sheet, const struct node *node, struct area *area);

/* ---- depend.c ---- */

void watch_formula(struct sheet *sheet, struct cell *cell);
void unwatch_formula(struct sheet *sheet, struct cell *cell);
/* Recompute all cells that a step changed, and all cells that depend on them. */
void recalculate(struct sheet *sheet, const struct step *step);

/* ---- names.c ---- */

const struct name *find_name(const struct sheet *sheet, const char *text);
/* Give an area a name. NULL removes the name. Formulas that use the name then watch its new area. */
void put_name(struct sheet *sheet, const char *text, const struct area *area);

/* ---- history.c ---- */

struct change {
    struct change *next;
    char *name; /* of an area, else NULL: the cell at `place` */
    struct place place;
    char *before, *after; /* sources, or areas; NULL: none */
};

struct step {
    struct step *older, *newer;
    char *command; /* the command that made the step */
    struct change *changes, **end;
};

void begin_step(struct sheet *sheet, const char *command);
/* Change a cell or a name as part of the open step. False after a complaint; then nothing has changed. */
bool change_cell(struct sheet *sheet, struct place place, const char *source);
bool change_name(struct sheet *sheet, const char *name, const char *area);
void end_step(struct sheet *sheet);
void drop_step(struct sheet *sheet); /* everything is as before the step */
/* Undo or redo a step, and return it. NULL if there is none. */
const struct step *undo(struct sheet *sheet);
const struct step *redo(struct sheet *sheet);

/* ---- command.c ---- */

/* Carry out a line, and answer on standard output. */
void execute(struct sheet *sheet, char *line);
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
