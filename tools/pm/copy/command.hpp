// `pm copy`: copy a container that no program has open for writing.
#ifndef PM_COPY_COMMAND_HPP
#define PM_COPY_COMMAND_HPP

namespace CLI
{
class App;
}

namespace copy
{

// The subcommand of `app`; pm::error or std::runtime_error when it fails, and then there is no copy.
void add_command(CLI::App &app);

} // namespace copy

#endif
