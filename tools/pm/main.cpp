// pm: the command-line tool for containers.
//
// Each subcommand has a folder, and adds itself to the parser. If a subcommand throws, the tool ends with
// status 2.
#include "pm/copy/command.hpp"
#include "pm/crash/command.hpp"
#include "pm/look/command.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <libpm.hpp>

static int run(int argc, char **argv)
{
    int status = 0;
    CLI::App app{"Look after containers of libpm.", "pm"};
    app.require_subcommand(1);
    crash::add_command(app, status);
    look::add_commands(app, status);
    copy::add_command(app);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &e) {
        return app.exit(e) == 0 ? 0 : 2; // help is no error
    } catch (const pm::error &) {        // its what() would repeat the text of errno
        std::cerr << "pm: " << pm_errormsg() << "\n";
        return 2;
    } catch (const std::exception &e) {
        std::cerr << "pm: " << e.what() << "\n";
        return 2;
    }
    return status;
}

int main(int argc, char **argv)
{
    int status = run(argc, argv);
    // If the disk is full, writing the output may fail only now.
    if (std::cout.flush() && fflush(stdout) == 0 && !ferror(stdout))
        return status;
    std::cerr << "pm: cannot write to standard output\n";
    return 2;
}
