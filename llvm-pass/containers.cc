/* The library functions that link nodes of containers: src/runtime/containers.def. */
#include "calls.h"
#include "discover.h"

using namespace llvm;

namespace pmcc
{

constexpr Route links[] = {
#define LINKS(name, type) {#name, type},
#include "runtime/containers.def"
};

bool route_links(Module &module, bool optnone_only)
{
    return route_calls(module, links, optnone_only);
}

} // namespace pmcc
