// `pm info`, `pm check` and `pm graph`: look at a container, without changing it.
#ifndef PM_LOOK_COMMAND_HPP
#define PM_LOOK_COMMAND_HPP

namespace CLI
{
class App;
}

namespace look
{

// The subcommands of `app`. When one was given, `status` is what to exit with: 0, or 1 if there is
// damage. pm::error when a container cannot be opened.
void add_commands(CLI::App &app, int &status);

} // namespace look

#endif
