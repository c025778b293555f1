// Puts the recorder before the program's libraries by LD_PRELOAD, and tells it the directory by the
// environment. The program's output goes to a file there. So the recorder knows at each event how much was
// printed.
#include "pm/crash/record.hpp"

#include "pm/crash/program.hpp"
#include "pm/crash/tape.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;

namespace crash
{

// The recorder lies beside this program in a build tree, or where it is installed.
static std::string find_recorder()
{
    fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
    for (const fs::path &directory : {here, here / RECORDER_INSTALLED})
        if (fs::exists(directory / RECORDER_NAME))
            return fs::canonical(directory / RECORDER_NAME);
    throw Error("there is no " RECORDER_NAME " in " + here.string() + " or in " +
                (here / RECORDER_INSTALLED).lexically_normal().string());
}

void record(const std::vector<std::string> &program, const std::string &directory,
            const std::string &medium)
{
    std::string preload = find_recorder();
    if (const char *others = getenv("LD_PRELOAD"))
        preload += std::string(":") + others;
    for (const char *name : {STREAM_FILE, STREAM_OUTPUT})
        std::ofstream(directory + "/" + name);
    Start start;
    start.arguments = program;
    start.environment = {"LD_PRELOAD=" + preload, STREAM_DIRECTORY "=" + directory,
                         STREAM_MEDIUM "=" + medium};
    start.output = directory + "/" STREAM_OUTPUT;
    start.input = true;
    End end = run(start);
    if (!end.good)
        throw Error(program[0] + " failed by itself, without any crash: " + end.outcome);
}

} // namespace crash
