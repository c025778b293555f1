// The one translation unit with Catch2's main: a run of the tests, or one child process of them.
//
// Some test cases are for some modes only. Their tags: [undo], [redo] (whichever the tracker),
// [stores], [faults] (whichever the engine).
#define CATCH_CONFIG_RUNNER
#include "common/process.hpp"

// Signals are what many of these tests are about; sanitizers must leave them to us.
extern "C" const char *__asan_default_options()
{
    return "handle_segv=0:handle_sigbus=0:handle_abort=0:use_sigaltstack=0:detect_leaks=0";
}

// A race ends the process, for a child that is killed would not tell of it.
extern "C" const char *__tsan_default_options()
{
    return "handle_segv=0:handle_sigbus=0:handle_abort=0:use_sigaltstack=0:halt_on_error=1";
}

int main(int argc, char **argv)
{
    int status = test::run_child_named(argc, argv);
    if (status >= 0)
        return status;
    Catch::Session session;
    status = session.applyCommandLine(argc, argv);
    std::vector<std::string> &chosen = session.configData().testsOrTags;
    if (chosen.empty())
        chosen.push_back(test::mode() == "undo"   ? "~[redo]~[stores]"
                         : test::mode() == "redo" ? "~[undo]~[stores]"
                                                  : "~[undo]~[faults]");
    return status != 0 ? status : session.run();
}
