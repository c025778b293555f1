/*
 * A piece of the arena, and of the table of marks, at their real addresses; with pm__mark() and
 * pm__mark_range() that record. Stands for the library.
 */
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace test
{

struct Subject {
    std::string name;
    void (*function)(char *m, long n);
    bool is_exact;
};

std::vector<Subject> &subjects();

/** Reserve the memory; once. */
void make_arena();

/** Memory for a subject: 32 KiB, aligned to a line. */
char *arena_begin();
constexpr size_t arena_bytes = 32768;

/** What went wrong since the last call; empty if all is well. */
struct Outcome {
    std::set<size_t> escaped;  // lines changed and not marked
    std::set<size_t> needless; // lines marked and not changed, in none of the two runs
    std::string fault;         // a mark that breaks the rules
};

/**
 * Run on two different contents. What is marked is compared with what changed at the end and at
 * each commit() in between.
 */
Outcome observe(const Subject &subject, size_t offset, long n);

/** Calls of pm__mark() and pm__mark_range() so far. */
size_t mark_calls();

} // namespace test
