/*
 * A spreadsheet in memory: what its files share.
 *
 *     grid.c      cells, in linked rows and linked columns; only those that hold something
 *     place.c     "B7", "A1:C9"
 *     token.c     the words of a formula        formula.c   formulas as trees
 *     value.c     what a cell holds             evaluate.c  what a formula gives
 *     depend.c    who reads whom; the order in which to compute
 *     names.c     names of areas
 *     history.c   what was changed, to be undone and redone
 *     command.c   the language                  main.c      its lines
 *
 * What must always hold between two commands:
 *   1. each cell is in the list of its row, by column, and in that of its column, by row;
 *   2. a row has cells; a column has cells or watchers;
 *   3. a cell has a source, and a formula if and only if that begins with '=';
 *   4. a formula watches exactly the places that it mentions, by themselves or by a name;
 *   5. each value is that of the formula over the values as they are, or #CYCLE if it reads itself or
 *      a cell that does;
 *   6. undoing all that was done, from the newest, and redoing it leads to the same sheet.
 *
 * Memory never runs out: allocate() and its like end the program instead.
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
    struct place first, last; /* corners, both in it */
};

struct area_text {
    char text[2 * (2 + 11) + 2]; /* an int has up to 11 characters */
};

/* How many characters of `text` are a place, with a $ before what is `fixed`; 0 if it is none. */
size_t read_place(const char *text, struct place *place, bool fixed_column[1], bool fixed_row[1]);
bool place_exists(struct place place);
/* The whole of `text` as an area, "A1:B2" or "A1"; false if it is none. */
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
struct value text_value(char *text); /* takes the text */
struct value constant_value(const char *source);
struct value copy_value(const struct value *value);
void clear_value(struct value *value);
/* Numbers, texts, faults, nothing; negative, 0 or positive as strcmp(). */
int compare_values(const struct value *a, const struct value *b);
/* To be freed; "" for nothing. */
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
 * `source` as it is when its cell moves so far: what is not fixed moves with it. To be freed; NULL
 * if it would then mention what no sheet has.
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

/* The tree of "=...", to be freed; NULL after a complaint. */
struct node *parse_formula(const char *source);
void free_node(struct node *node);
bool mentions_name(const struct node *node, const char *name);

/* ---- grid.c ---- */

struct watch; /* depend.c */

struct column {
    struct column *next; /* to the right */
    int number;
    struct cell *top;
    struct watch *watchers; /* of cells in this column */
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
    struct cell *queue, *next; /* depend.c: to be computed; can be computed now */
    size_t pending;            /* watches of cells to be computed before this one */
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
    struct step *open;            /* being made; NULL between two commands */
    size_t steps;
};

struct sheet *new_sheet(void);
struct cell *find_cell(const struct sheet *sheet, struct place place);
struct column *find_column(const struct sheet *sheet, int number);
struct column *make_column(struct sheet *sheet, int number);
void drop_column_if_unused(struct sheet *sheet, struct column *column);
struct place cell_place(const struct cell *cell);
/* The first cell in the area after `previous`, row by row; the very first if that is NULL. */
struct cell *next_cell(const struct sheet *sheet, struct area area, const struct cell *previous);
struct area all_of(void);
/* Let the cell have that source, which is a constant or has been parsed; NULL: let there be none. */
void put_source(struct sheet *sheet, struct place place, const char *source, struct node *formula);

/* ---- evaluate.c ---- */

struct value evaluate(const struct sheet *sheet, const struct node *node);
/* What a node of the kind N_AREA or N_NAME means; false if the name has no meaning. */
bool node_area(const struct sheet *sheet, const struct node *node, struct area *area);

/* ---- depend.c ---- */

void watch_formula(struct sheet *sheet, struct cell *cell);
void unwatch_formula(struct sheet *sheet, struct cell *cell);
/* Compute anew all that a step changed, and all that depends on it. */
void recalculate(struct sheet *sheet, const struct step *step);

/* ---- names.c ---- */

const struct name *find_name(const struct sheet *sheet, const char *text);
/* Give an area a name; NULL: let there be no such name. Its users watch what it means now. */
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
    char *command; /* that did it */
    struct change *changes, **end;
};

void begin_step(struct sheet *sheet, const char *command);
/* Change a cell or a name as part of the step. False after a complaint, and nothing has changed. */
bool change_cell(struct sheet *sheet, struct place place, const char *source);
bool change_name(struct sheet *sheet, const char *name, const char *area);
void end_step(struct sheet *sheet);
void drop_step(struct sheet *sheet); /* all is as before */
/* The step, or NULL if there is none. */
const struct step *undo(struct sheet *sheet);
const struct step *redo(struct sheet *sheet);

/* ---- command.c ---- */

/* Do what a line says, and answer on standard output. */
void execute(struct sheet *sheet, char *line);
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
