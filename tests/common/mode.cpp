#include "common/mode.hpp"

#include <cstdlib>

namespace test
{

std::string mode()
{
    const char *mode = getenv("LIBPM_TEST_MODE");
    return mode ? mode : "undo";
}

std::string engine_of(const std::string &mode)
{
    return mode == "undo" ? "undo" : mode.find("log") == 0 ? "log" : "redo";
}

bool stores_in(const std::string &mode)
{
    return mode == "stores" || mode == "log.stores";
}

std::string engine()
{
    return engine_of(mode());
}

bool stores()
{
    return stores_in(mode());
}

pm_engine engine_option(const std::string &mode)
{
    const std::string engine = engine_of(mode);
    return engine == "undo" ? PM_ENGINE_UNDO : engine == "log" ? PM_ENGINE_LOG : PM_ENGINE_REDO;
}

void set_mode(pm_options &options, const std::string &mode)
{
    options.engine = engine_option(mode);
    options.tracker = stores_in(mode) ? PM_TRACKER_STORES : PM_TRACKER_FAULTS;
    if (getenv("LIBPM_TEST_CHECKPOINTS"))
        options.checkpoint_bytes = 1;
    if (getenv("LIBPM_TEST_BOUNDED"))
        options.private_max = 1;
}

} // namespace test
