/*
 * The history is a list of steps, from the oldest to the newest. `done` is the last step that is not
 * undone. A new step is `open` until it succeeds. Then it replaces all undone steps. Each step has its
 * changes in order.
 */
#include "sheet.h"

#include <stdlib.h>
#include <string.h>

static char *copy_if_any(const char *text)
{
    return text ? copy_text(text) : NULL;
}

static void free_step(struct step *step)
{
    for (struct change *change = step->changes, *next; change; change = next) {
        next = change->next;
        free(change->name);
        free(change->before);
        free(change->after);
        free(change);
    }
    free(step->command);
    free(step);
}

static void unlink_step(struct sheet *sheet, struct step *step)
{
    *(step->older ? &step->older->newer : &sheet->oldest) = step->newer;
    *(step->newer ? &step->newer->older : &sheet->newest) = step->older;
    if (sheet->done == step)
        sheet->done = step->older;
    sheet->steps--;
    free_step(step);
}

/* Give the cell or the name the content `text`. The text was valid before, or has been parsed already. */
static void apply(struct sheet *sheet, const struct change *change, const char *text)
{
    struct area area;
    if (change->name)
        put_name(sheet, change->name, text && read_area(text, &area) ? &area : NULL);
    else
        put_source(sheet, change->place, text, text && *text == '=' ? parse_formula(text) : NULL);
}

/* Undo the changes from the last to the first. The list is reversed for this, and reversed back. */
static void revert(struct sheet *sheet, struct step *step)
{
    struct change *turned = NULL, *next;
    for (struct change *change = step->changes; change; change = next) {
        next = change->next;
        change->next = turned;
        turned = change;
    }
    step->changes = NULL;
    for (struct change *change = turned; change; change = next) {
        apply(sheet, change, change->before);
        next = change->next;
        change->next = step->changes;
        step->changes = change;
    }
    recalculate(sheet, step);
}

void begin_step(struct sheet *sheet, const char *command)
{
    struct step *step = sheet->open = allocate(sizeof *step);
    *step = (struct step){.command = copy_text(command), .end = &step->changes};
}

/* Add a change to the open step. The texts are copied, and still belong to the caller. */
static void add_change(struct sheet *sheet, const char *name, struct place place,
                       const char *before, const char *after)
{
    struct change *change = allocate(sizeof *change);
    *change = (struct change){.name = copy_if_any(name),
                              .place = place,
                              .before = copy_if_any(before),
                              .after = copy_if_any(after)};
    *sheet->open->end = change;
    sheet->open->end = &change->next;
}

bool change_cell(struct sheet *sheet, struct place place, const char *source)
{
    struct node *formula = source && *source == '=' ? parse_formula(source) : NULL;
    if (source && *source == '=' && !formula)
        return false;
    struct cell *cell = find_cell(sheet, place);
    add_change(sheet, NULL, place, cell ? cell->source : NULL, source);
    put_source(sheet, place, source, formula);
    return true;
}

bool change_name(struct sheet *sheet, const char *text, const char *area)
{
    struct area meant;
    if (area && !read_area(area, &meant)) {
        complain("%s is no area", area);
        return false;
    }
    const struct name *name = find_name(sheet, text);
    struct area_text before;
    if (name)
        before = area_name(name->area);
    add_change(sheet, text, (struct place){0, 0}, name ? before.text : NULL, area);
    put_name(sheet, text, area ? &meant : NULL);
    return true;
}

void end_step(struct sheet *sheet)
{
    struct step *step = sheet->open;
    if (!step->changes) {
        drop_step(sheet);
        return;
    }
    recalculate(sheet, step);
    while (sheet->newest != sheet->done)
        unlink_step(sheet, sheet->newest);
    if (sheet->steps == HISTORY_MAX)
        unlink_step(sheet, sheet->oldest);
    step->older = sheet->newest;
    *(step->older ? &step->older->newer : &sheet->oldest) = step;
    sheet->newest = sheet->done = step;
    sheet->open = NULL;
    sheet->steps++;
}

void drop_step(struct sheet *sheet)
{
    revert(sheet, sheet->open);
    free_step(sheet->open);
    sheet->open = NULL;
}

const struct step *undo(struct sheet *sheet)
{
    struct step *step = sheet->done;
    if (step) {
        revert(sheet, step);
        sheet->done = step->older;
    }
    return step;
}

const struct step *redo(struct sheet *sheet)
{
    struct step *step = sheet->done ? sheet->done->newer : sheet->oldest;
    if (step) {
        for (const struct change *change = step->changes; change; change = change->next)
            apply(sheet, change, change->after);
        recalculate(sheet, step);
        sheet->done = step;
    }
    return step;
}
