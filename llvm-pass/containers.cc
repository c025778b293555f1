/* Announces the library functions that link nodes of C++ containers: src/runtime/containers.def. */
#include "calls.h"

using namespace llvm;

namespace pmcc
{

constexpr Route links[] = {
#define LINKS(name, type, parameters) {#name, type},
#include "runtime/containers.def"
};

bool announce_links(Module &module, bool optnone_only)
{
    return announce_calls(module, links, optnone_only);
}

} // namespace pmcc
