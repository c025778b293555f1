// `pm copy`: copy a container that no program has open for writing.
#ifndef PM_COPY_COMMAND_HPP
#define PM_COPY_COMMAND_HPP

namespace CLI
{
class App;
}

namespace copy
{

// Add the subcommand to `app`. If the copy fails, the subcommand throws pm::error or std::runtime_error
// and leaves no copy.
void add_command(CLI::App &app);

} // namespace copy

#endif
