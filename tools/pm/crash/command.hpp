// `pm crash`: crash a program at every event, and let its check judge the containers after each crash.
#ifndef PM_CRASH_COMMAND_HPP
#define PM_CRASH_COMMAND_HPP

namespace CLI
{
class App;
}

namespace crash
{

// Add the subcommand to `app`. The subcommand sets `status` to the tool's exit status: 0 if no crash
// failed, 1 if a crash failed. It throws Error (tape.hpp) if it cannot judge.
void add_command(CLI::App &app, int &status);

} // namespace crash

#endif
