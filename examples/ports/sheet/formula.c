/*
 * Parses formulas into trees, by recursive descent:
 *
 *     comparison := sum { ( = | <> | < | > | <= | >= ) sum }
 *     sum        := product { ( + | - | & ) product }
 *     product    := power { ( * | / ) power }
 *     power      := - power | primary [ ^ power ]
 *     primary    := number | "text" | place [ : place ] | name | function ( [ comparison { , comparison } ] )
 *                 | ( comparison )
 */
#include "sheet.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct parser {
    struct token token; /* the next one */
    int nesting;
    bool failed;
};

static const struct {
    const char *name;
    size_t least, most; /* operands */
} functions[FUNCTIONS] = {
    [F_SUM] = {"SUM", 1, SIZE_MAX},
    [F_COUNT] = {"COUNT", 1, SIZE_MAX},
    [F_AVERAGE] = {"AVERAGE", 1, SIZE_MAX},
    [F_MIN] = {"MIN", 1, SIZE_MAX},
    [F_MAX] = {"MAX", 1, SIZE_MAX},
    [F_IF] = {"IF", 3, 3},
    [F_ROUND] = {"ROUND", 2, 2},
    [F_ABS] = {"ABS", 1, 1},
    [F_LEN] = {"LEN", 1, 1},
};

static struct node *parse_comparison(struct parser *p);

static void advance(struct parser *p)
{
    p->token = read_token(p->token.text + p->token.length);
}

/* Only the first mistake counts. */
static void fail(struct parser *p, const char *wanted)
{
    if (!p->failed && p->token.kind == END)
        complain("%s expected at the end", wanted);
    else if (!p->failed)
        complain("%s expected at \"%s\"", wanted, p->token.text);
    p->failed = true;
}

static bool is_symbol(const struct parser *p, char symbol)
{
    return p->token.kind == SYMBOL && *p->token.text == symbol;
}

static void expect(struct parser *p, char symbol)
{
    char wanted[] = {'\'', symbol, '\'', 0};
    if (is_symbol(p, symbol))
        advance(p);
    else
        fail(p, wanted);
}

static struct node *new_node(int kind, int what)
{
    struct node *node = allocate(sizeof *node);
    node->kind = kind;
    node->what = what;
    return node;
}

static void add_operand(struct node *node, struct node *operand)
{
    if (node->count == node->room) {
        node->room = node->room ? 2 * node->room : 2;
        node->operands = resize(node->operands, node->room * sizeof *node->operands);
    }
    node->operands[node->count++] = operand;
}

static char *token_text(const struct token *token, size_t cut)
{
    char *text = allocate(token->length - 2 * cut + 1);
    memcpy(text, token->text + cut, token->length - 2 * cut);
    return text;
}

static struct node *parse_area(struct parser *p)
{
    struct place first = p->token.place, last = first;
    advance(p);
    if (is_symbol(p, ':')) {
        advance(p);
        if (p->token.kind == PLACE) {
            last = p->token.place;
            advance(p);
        } else {
            fail(p, "a place");
        }
    }
    struct node *node = new_node(N_AREA, 0);
    node->area = area_between(first, last);
    return node;
}

static struct node *parse_call(struct parser *p, char *word)
{
    struct node *node = new_node(N_CALL, 0);
    while (node->what < FUNCTIONS && strcasecmp(functions[node->what].name, word) != 0)
        node->what++;
    if (node->what == FUNCTIONS && !p->failed) {
        complain("there is no function %s", word);
        p->failed = true;
    }
    do {
        advance(p); /* past the parenthesis, or a comma */
        add_operand(node, parse_comparison(p));
    } while (!p->failed && is_symbol(p, ','));
    expect(p, ')');
    if (!p->failed &&
        (node->count < functions[node->what].least || node->count > functions[node->what].most)) {
        complain("%s takes another number of operands", word);
        p->failed = true;
    }
    free(word);
    return node;
}

static struct node *parse_word(struct parser *p)
{
    char *word = token_text(&p->token, 0);
    advance(p);
    if (is_symbol(p, '('))
        return parse_call(p, word);
    struct node *node = new_node(N_NAME, 0);
    node->text = word;
    return node;
}

static struct node *parse_primary(struct parser *p)
{
    struct node *node;
    switch (p->token.kind) {
    case NUMERAL:
        node = new_node(N_NUMBER, 0);
        node->number = p->token.number;
        advance(p);
        return node;
    case STRING:
        node = new_node(N_TEXT, 0);
        node->text = token_text(&p->token, 1);
        advance(p);
        return node;
    case PLACE:
        return parse_area(p);
    case WORD:
        return parse_word(p);
    case BROKEN:
        fail(p, "a text with an end");
        break;
    default:
        if (is_symbol(p, '(')) {
            advance(p);
            node = parse_comparison(p);
            expect(p, ')');
            return node;
        }
        fail(p, "a value");
    }
    return new_node(N_NUMBER, 0);
}

static struct node *parse_power(struct parser *p)
{
    struct node *node;
    if (++p->nesting > NESTING_MAX) {
        fail(p, "less nesting");
        node = new_node(N_NUMBER, 0);
    } else if (is_symbol(p, '-')) {
        advance(p);
        node = new_node(N_NEGATE, 0);
        add_operand(node, parse_power(p));
    } else {
        node = parse_primary(p);
        if (is_symbol(p, '^')) {
            struct node *power = new_node(N_BINARY, '^');
            advance(p);
            add_operand(power, node);
            add_operand(power, parse_power(p));
            node = power;
        }
    }
    p->nesting--;
    return node;
}

/* Parse operands that are joined by left-associative operators. */
static struct node *parse_row(struct parser *p, const char *operators,
                              struct node *(*parse_operand)(struct parser *))
{
    struct node *node = parse_operand(p);
    while (!p->failed && p->token.kind == SYMBOL && *p->token.text &&
           strchr(operators, *p->token.text)) {
        struct node *binary = new_node(N_BINARY, *p->token.text);
        advance(p);
        add_operand(binary, node);
        add_operand(binary, parse_operand(p));
        node = binary;
    }
    return node;
}

static struct node *parse_product(struct parser *p)
{
    return parse_row(p, "*/", parse_power);
}

static struct node *parse_sum(struct parser *p)
{
    return parse_row(p, "+-&", parse_product);
}

/* The number of the operator: its character, or for an operator of two characters the token's kind. */
static int comparison_operator(const struct parser *p)
{
    if (p->token.kind == SYMBOL && *p->token.text && strchr("=<>", *p->token.text))
        return *p->token.text;
    bool two = p->token.kind == UNEQUAL || p->token.kind == AT_MOST || p->token.kind == AT_LEAST;
    return two ? (int)p->token.kind : 0;
}

static struct node *parse_comparison(struct parser *p)
{
    struct node *node = parse_sum(p);
    for (int operator; !p->failed && (operator= comparison_operator(p)) != 0;) {
        struct node *binary = new_node(N_BINARY, operator);
        advance(p);
        add_operand(binary, node);
        add_operand(binary, parse_sum(p));
        node = binary;
    }
    return node;
}

struct node *parse_formula(const char *source)
{
    struct parser p = {.token = read_token(source + 1)}; /* past the '=' */
    struct node *node = parse_comparison(&p);
    if (p.token.kind != END)
        fail(&p, "an operator");
    if (!p.failed)
        return node;
    free_node(node);
    return NULL;
}

void free_node(struct node *node)
{
    if (!node)
        return;
    for (size_t i = 0; i < node->count; i++)
        free_node(node->operands[i]);
    free(node->operands);
    if (node->kind == N_TEXT || node->kind == N_NAME)
        free(node->text);
    free(node);
}

bool mentions_name(const struct node *node, const char *name)
{
    if (node->kind == N_NAME && strcmp(node->text, name) == 0)
        return true;
    for (size_t i = 0; i < node->count; i++)
        if (mentions_name(node->operands[i], name))
            return true;
    return false;
}
