// `pm info`, `pm check` and `pm graph`: look at a container without changing it.
#ifndef PM_LOOK_COMMAND_HPP
#define PM_LOOK_COMMAND_HPP

namespace CLI
{
class App;
}

namespace look
{

// Add the subcommands to `app`. They set `status` to the tool's exit status: 0, or 1 if the container is
// damaged. They throw pm::error if a container cannot be opened.
void add_commands(CLI::App &app, int &status);

} // namespace look

#endif
