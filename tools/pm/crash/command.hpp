// `pm crash`: crash a program everywhere, and see whether its check approves of what is left.
#ifndef PM_CRASH_COMMAND_HPP
#define PM_CRASH_COMMAND_HPP

namespace CLI
{
class App;
}

namespace crash
{

// The subcommand of `app`. When it was given, `status` is what to exit with: 0 when no crash
// failed, 1 when one did. Error (tape.hpp) when nothing can be said.
void add_command(CLI::App &app, int &status);

} // namespace crash

#endif
