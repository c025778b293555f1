// See registry.cpp.
#ifndef EXAMPLES_TIERED_REGISTRY_HPP
#define EXAMPLES_TIERED_REGISTRY_HPP

#include "tiered/implementation.hpp"

namespace tiered
{

void enter(store::implementation *all); // EMFILE
void leave(store::implementation *all);
store::implementation &open_at(const void *address); // EINVAL: no open store has it
store_root *use_root(store_root *root);              // by this thread; returns the one before

} // namespace tiered

#endif
