/*
 * Evaluates formulas. The cells that a formula reads have been computed before, see depend.c, and none is
 * on a cycle. If an operand is a fault, the result is this fault; if several are, the first from the left.
 */
#include "sheet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool node_area(const struct sheet *sheet, const struct node *node, struct area *area)
{
    if (node->kind == N_AREA) {
        *area = node->area;
        return true;
    }
    const struct name *name = find_name(sheet, node->text);
    if (name)
        *area = name->area;
    return name;
}

/* The value of an area that has one cell only. */
static struct value evaluate_area(const struct sheet *sheet, const struct node *node)
{
    struct area area;
    if (!node_area(sheet, node, &area))
        return fault_value(UNKNOWN_NAME);
    if (area.first.column != area.last.column || area.first.row != area.last.row)
        return fault_value(WRONG_KIND);
    const struct cell *cell = find_cell(sheet, area.first);
    return cell ? copy_value(&cell->value) : (struct value){.kind = EMPTY};
}

/* Turn a value into a number, in place. An empty value is 0. False if the value has become a fault. */
static bool be_number(struct value *value)
{
    if (value->kind == EMPTY)
        *value = number_value(0);
    if (value->kind == TEXT) {
        clear_value(value);
        *value = fault_value(WRONG_KIND);
    }
    return value->kind == NUMBER;
}

static struct value number_or_fault(double number)
{
    return isfinite(number) ? number_value(number) : fault_value(DIVISION);
}

static struct value compute(int operator, double a, double b)
{
    switch (operator) {
    case '+':
        return number_or_fault(a + b);
    case '-':
        return number_or_fault(a - b);
    case '*':
        return number_or_fault(a * b);
    case '/':
        return number_or_fault(a / b);
    default:
        return number_or_fault(pow(a, b));
    }
}

static struct value compare(int operator, const struct value * a, const struct value *b)
{
    int order = compare_values(a, b);
    switch (operator) {
    case '=':
        return number_value(order == 0);
    case '<':
        return number_value(order < 0);
    case '>':
        return number_value(order > 0);
    case UNEQUAL:
        return number_value(order != 0);
    case AT_MOST:
        return number_value(order <= 0);
    default:
        return number_value(order >= 0);
    }
}

static struct value join(const struct value *a, const struct value *b)
{
    char *left = value_text(a), *right = value_text(b);
    struct value joined = text_value(join_texts(left, right));
    free(left);
    free(right);
    return joined;
}

static struct value evaluate_binary(const struct sheet *sheet, const struct node *node)
{
    struct value a = evaluate(sheet, node->operands[0]);
    if (a.kind == FAULT)
        return a;
    struct value b = evaluate(sheet, node->operands[1]), result;
    if (b.kind == FAULT)
        result = b;
    else if (node->what == '&')
        result = join(&a, &b);
    else if (!strchr("+-*/^", node->what))
        result = compare(node->what, &a, &b);
    else if (!be_number(&a))
        result = a;
    else if (!be_number(&b))
        result = b;
    else
        result = compute(node->what, a.number, b.number);
    clear_value(&a);
    clear_value(&b);
    return result;
}

struct statistics {
    double sum, least, most;
    size_t count;
    struct value fault; /* EMPTY: none */
};

static void take(struct statistics *s, const struct value *value)
{
    if (value->kind == FAULT && s->fault.kind == EMPTY)
        s->fault = *value;
    if (value->kind != NUMBER) /* texts do not count */
        return;
    s->least = s->count == 0 || value->number < s->least ? value->number : s->least;
    s->most = s->count == 0 || value->number > s->most ? value->number : s->most;
    s->sum += value->number;
    s->count++;
}

static struct value evaluate_statistics(const struct sheet *sheet, const struct node *node)
{
    struct statistics s = {.fault.kind = EMPTY};
    for (size_t i = 0; i < node->count; i++) {
        struct area area;
        const struct node *operand = node->operands[i];
        if ((operand->kind == N_AREA || operand->kind == N_NAME) &&
            node_area(sheet, operand, &area)) {
            const struct cell *cell = NULL;
            while ((cell = next_cell(sheet, area, cell)) != NULL)
                take(&s, &cell->value);
        } else {
            struct value value = evaluate(sheet, operand);
            take(&s, &value);
            clear_value(&value);
        }
    }
    if (s.fault.kind == FAULT)
        return s.fault;
    switch (node->what) {
    case F_SUM:
        return number_or_fault(s.sum);
    case F_COUNT:
        return number_value((double)s.count);
    case F_AVERAGE:
        return number_or_fault(s.sum / (double)s.count);
    case F_MIN:
        return number_value(s.least);
    default:
        return number_value(s.most);
    }
}

static struct value evaluate_call(const struct sheet *sheet, const struct node *node)
{
    if (node->what <= F_MAX)
        return evaluate_statistics(sheet, node);

    struct value first = evaluate(sheet, node->operands[0]);
    if (node->what == F_LEN && first.kind != FAULT) {
        char *text = value_text(&first);
        clear_value(&first);
        first = number_value((double)strlen(text));
        free(text);
        return first;
    }
    if (!be_number(&first))
        return first;
    if (node->what == F_IF)
        return evaluate(sheet, node->operands[first.number != 0 ? 1 : 2]);
    if (node->what == F_ABS)
        return number_value(fabs(first.number));
    struct value digits = evaluate(sheet, node->operands[1]);
    if (!be_number(&digits))
        return digits;
    double unit = pow(10, digits.number);
    return number_or_fault(round(first.number * unit) / unit);
}

struct value evaluate(const struct sheet *sheet, const struct node *node)
{
    struct value value;
    switch (node->kind) {
    case N_NUMBER:
        return number_value(node->number);
    case N_TEXT:
        return text_value(copy_text(node->text));
    case N_AREA:
    case N_NAME:
        return evaluate_area(sheet, node);
    case N_NEGATE:
        value = evaluate(sheet, node->operands[0]);
        if (be_number(&value))
            value.number = -value.number;
        return value;
    case N_BINARY:
        return evaluate_binary(sheet, node);
    case N_CALL:
        break;
    }
    return evaluate_call(sheet, node);
}
