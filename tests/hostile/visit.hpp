// Everything that a program does with a container, done with one that may be hostile.
#ifndef TESTS_HOSTILE_VISIT_HPP
#define TESTS_HOSTILE_VISIT_HPP

#include "hostile/anatomy.hpp"

namespace hostile
{

// Open `file` read-only, and then in one way to write it, which its bytes choose: undo, redo, or
// redo on an ordinary file. Check, walk, change, commit, close, and read again what was committed.
// Aborts, with a message, where libpm contradicts itself.
void visit(const Bytes &file);

} // namespace hostile

#endif
