// Cells of all sizes that point to each other in all the ways that pointers can: to the start of a
// cell, into it, and just past its end, which is often where the next one begins. What each cell has
// follows from its number, so that one that was moved wrongly, or a pointer that was, is found.
#ifndef TESTS_WEB_HPP
#define TESTS_WEB_HPP

#include <libpm.h>

#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

namespace web
{

using Random = std::mt19937_64;

struct Cell {
    uint64_t number, words;
    uint64_t other_number; // of `other`, if there is one
    uint64_t unused;
    Cell *next, *other;
    uint64_t *inside; // the last word of `other`, or its `words` if that is 0
    uint64_t *end;    // behind the own words, which follow the cell
};

struct Root {
    uint64_t commits, cells, numbers; // `numbers`: cells ever made
    Cell *first;
};

// Declare no types: the code is compiled by pmcc, which records what it stores.
inline bool recorded = false;

inline void require(bool condition, const char *what)
{
    if (!condition)
        throw std::runtime_error(std::string(what) + ": " + pm_errormsg());
}

inline Root *root(pm_container *c)
{
    return static_cast<Root *>(pm_getroot(c));
}

inline uint64_t *words_of(Cell *cell)
{
    return reinterpret_cast<uint64_t *>(cell + 1);
}

inline uint64_t word(const Cell *cell, uint64_t i)
{
    return (cell->number << 20 ^ i) * 0x9e3779b97f4a7c15;
}

inline uint64_t *inside_of(Cell *cell)
{
    return cell->words > 0 ? words_of(cell) + cell->words - 1 : &cell->words;
}

inline Root *begin(pm_container *c)
{
    auto *r = static_cast<Root *>(pm_calloc(c, 1, sizeof(Root)));
    require(r && (recorded || pm_mark_pointer(&r->first) == 0) && pm_setroot(c, r, 0) == 0,
            "begin");
    return r;
}

inline Cell *add(pm_container *c, uint64_t words, Cell *other)
{
    Root *r = root(c);
    auto *cell = static_cast<Cell *>(pm_calloc(c, 1, sizeof(Cell) + words * sizeof(uint64_t)));
    require(cell && (recorded || pm_mark_pointers(&cell->next, 4) == 0), "add");
    cell->number = r->numbers++;
    cell->words = words;
    cell->end = words_of(cell) + words;
    if (other) {
        cell->other = other;
        cell->other_number = other->number;
        cell->inside = inside_of(other);
    }
    for (uint64_t i = 0; i < words; i++)
        words_of(cell)[i] = word(cell, i);
    cell->next = r->first;
    r->first = cell;
    r->cells++;
    return cell;
}

inline std::vector<Cell *> cells(pm_container *c)
{
    std::vector<Cell *> all;
    for (Cell *cell = root(c)->first; cell; cell = cell->next)
        all.push_back(cell);
    return all;
}

// Remove the cells for which `gone` is true, which is asked once for each, in order.
template <class Gone> void remove(pm_container *c, Gone gone)
{
    Root *r = root(c);
    std::vector<Cell *> going;
    std::vector<bool> is_gone(r->numbers);
    for (Cell **link = &r->first; *link;) {
        Cell *cell = *link;
        if (!gone(cell)) {
            link = &cell->next;
            continue;
        }
        *link = cell->next;
        is_gone[cell->number] = true;
        going.push_back(cell);
        r->cells--;
    }
    for (Cell *cell = r->first; cell; cell = cell->next)
        if (cell->other && is_gone[cell->other_number]) {
            cell->other = nullptr;
            cell->inside = nullptr;
        }
    for (Cell *cell : going)
        require(pm_free(cell) == 0, "remove");
}

// Bytes that fill slots to the last one, mostly; some cells of whole slabs and segments of 64 KiB.
inline uint64_t some_words(Random &random)
{
    const uint64_t own = sizeof(Cell) / sizeof(uint64_t), segment = 65536 / sizeof(uint64_t);
    uint64_t kind = random() % 100;
    if (kind < 80)
        return random() % 5 * 2;
    if (kind < 95)
        return random() % 300;
    if (kind < 99)
        return 2000 + random() % 4000;
    return segment * (1 + random() % 2) - own;
}

inline void add_some(pm_container *c, Random &random, uint64_t count)
{
    std::vector<Cell *> all = cells(c);
    for (uint64_t i = 0; i < count; i++) {
        Cell *other = all.empty() ? nullptr : all[random() % all.size()];
        all.push_back(add(c, some_words(random), other));
    }
}

// That all is as it should be; throws otherwise.
inline void check(pm_container *c)
{
    Root *r = root(c);
    uint64_t count = 0, last = r->numbers;
    for (Cell *cell = r->first; cell; cell = cell->next, count++) {
        require(pm_contains(c, cell) && cell->number < last, "a cell");
        last = cell->number;
        require(pm_usable_size(cell) >= sizeof(Cell) + cell->words * sizeof(uint64_t), "its size");
        require(cell->end == words_of(cell) + cell->words, "its end");
        for (uint64_t i = 0; i < cell->words; i++)
            require(words_of(cell)[i] == word(cell, i), "its words");
        require(!cell->other == !cell->inside, "its pointers");
        if (!cell->other)
            continue;
        require(cell->other->number == cell->other_number, "the other cell");
        require(cell->inside == inside_of(cell->other), "inside the other cell");
    }
    require(count == r->cells, "the number of cells");
    require(pm_check(c) == 0, "pm_check");
}

} // namespace web

#endif
