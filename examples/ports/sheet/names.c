/* Names of areas, in a sorted array. */
#include "sheet.h"

#include <stdlib.h>
#include <string.h>

/* The index where the name is, or would be inserted. */
static size_t find_index(const struct sheet *sheet, const char *text)
{
    size_t low = 0, high = sheet->names_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(sheet->names[middle]->text, text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct sheet *sheet, size_t index, const char *text)
{
    return index < sheet->names_count && strcmp(sheet->names[index]->text, text) == 0;
}

const struct name *find_name(const struct sheet *sheet, const char *text)
{
    size_t index = find_index(sheet, text);
    return is_at(sheet, index, text) ? sheet->names[index] : NULL;
}

static void insert(struct sheet *sheet, size_t index, const char *text)
{
    if (sheet->names_count == sheet->names_room) {
        sheet->names_room = sheet->names_room ? 2 * sheet->names_room : 4;
        sheet->names = resize(sheet->names, sheet->names_room * sizeof *sheet->names);
    }
    struct name **at = &sheet->names[index];
    memmove(at + 1, at, (sheet->names_count - index) * sizeof *at);
    *at = allocate(sizeof **at);
    (*at)->text = copy_text(text);
    sheet->names_count++;
}

static void erase(struct sheet *sheet, size_t index)
{
    struct name **at = &sheet->names[index];
    free((*at)->text);
    free(*at);
    sheet->names_count--;
    memmove(at, at + 1, (sheet->names_count - index) * sizeof *at);
}

void put_name(struct sheet *sheet, const char *text, const struct area *area)
{
    size_t index = find_index(sheet, text);
    bool there = is_at(sheet, index, text);
    if (area && !there)
        insert(sheet, index, text);
    if (area)
        sheet->names[index]->area = *area;
    else if (there)
        erase(sheet, index);

    struct cell *cell = NULL;
    while ((cell = next_cell(sheet, all_of(), cell)) != NULL)
        if (cell->formula && mentions_name(cell->formula, text)) {
            unwatch_formula(sheet, cell);
            watch_formula(sheet, cell);
        }
}
