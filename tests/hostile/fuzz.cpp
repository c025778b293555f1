// The fuzzer's door: one input, one container, all ways to use it.
#include "hostile/input.hpp"
#include "hostile/visit.hpp"

#include <cstdio>
#include <cstdlib>

// Faults are libpm's first. What it does not know it passes on to libFuzzer, which tells the input.
extern "C" const char *__asan_default_options()
{
    return "handle_segv=0:handle_sigbus=0:handle_abort=0:use_sigaltstack=0";
}

extern "C" const char *__ubsan_default_options()
{
    return "halt_on_error=1:print_stacktrace=1";
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hostile::visit(hostile::decode(data, size));
    return 0;
}
