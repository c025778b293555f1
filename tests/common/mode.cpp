#include "common/mode.hpp"

#include <cstdlib>

namespace test
{

std::string mode()
{
    const char *mode = getenv("LIBPM_TEST_MODE");
    return mode ? mode : "undo";
}

bool is_log()
{
    const char *engine = getenv("LIBPM_TEST_ENGINE");
    return engine && std::string(engine) == "log";
}

void set_mode(pm_options &options)
{
    options.engine = mode() == "undo" ? PM_ENGINE_UNDO : is_log() ? PM_ENGINE_LOG : PM_ENGINE_REDO;
    options.tracker = mode() == "stores" ? PM_TRACKER_STORES : PM_TRACKER_FAULTS;
}

} // namespace test
