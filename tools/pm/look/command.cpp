// Opens the container for reading only, whether its program is loaded or not. `pm check` calls pm_check().
// `pm info` and `pm graph` walk over all objects, and then call pm_check() too, since reading does not
// notice all damage. Graphviz's dot draws the graph, if it is installed.
#include "pm/look/command.hpp"

#include "pm/look/census.hpp"
#include "pm/look/graph.hpp"
#include "pm/look/walk.hpp"

#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <spawn.h>
#include <sys/wait.h>

namespace look
{

namespace
{

struct Options {
    std::string file, out;
    uint64_t objects = 200;
};

pm::container open(const Options &o)
{
    // The program and libraries that the container points to are not loaded here.
    return pm::container(o.file, {.flags = PM_READONLY, .module_pointers = PM_MODULES_MISSING_OK});
}

// Reports damage that reading does not notice, for example to the pointer map. Returns 1 if there is damage,
// else 0.
int report_damage(pm_container *c)
{
    if (pm_check(c) == 0)
        return 0;
    std::cerr << "pm: damage: " << pm_errormsg() << "\n";
    return 1;
}

int info(const Options &o)
{
    pm::container c = open(o);
    struct pm_stats s = stats_of(c.get());
    Census census;
    uint64_t pointers = 0;
    each_object(c.get(), [&](const char *p, size_t size) {
        census.add(size);
        each_pointer(p, size, [&](void **) { pointers++; });
    });
    printf("%-10s %" PRIu64 " bytes\n", "file", s.file_bytes);
    printf("%-10s %s\n", "engine", strcmp(s.engine, "log") == 0 ? "log" : "undo or redo");
    printf("%-10s %p%s%s\n", "base", s.base, s.movable ? ", movable" : "",
           s.moved ? ", now elsewhere" : "");
    printf("%-10s %" PRIu64 " of objects, %" PRIu64 " of the log, %" PRIu64
           " of the pointer map, %" PRIu64 " free\n",
           "segments", s.segments_data, s.segments_log, s.segments_map, s.segments_free);
    if (const void *root = pm_getroot(c.get()))
        printf("%-10s %zu bytes at offset %td\n", "root", pm_usable_size(root),
               static_cast<const char *>(root) - static_cast<const char *>(s.base));
    else
        printf("%-10s none\n", "root");
    printf("%-10s %" PRIu64 "\n", "pointers", pointers);
    printf("%-10s %" PRIu64 " of %" PRIu64 " bytes in all\n", "objects", census.count,
           census.bytes);
    for (auto [size, count] : census.objects)
        printf("%-10s %12" PRIu64 " of %zu bytes\n", "", count, size);
    if (s.recovered)
        printf("%-10s its last writer did not close it; the next will recover, as was done here in "
               "memory\n",
               "log");
    return report_damage(c.get());
}

int check(const Options &o)
{
    pm::container c = open(o);
    if (pm_check(c.get()) == 0) {
        printf("%s: no damage found\n", o.file.c_str());
        return 0;
    }
    printf("%s\n", pm_errormsg());
    return 1;
}

std::string svg_beside(const std::string &dot)
{
    return std::filesystem::path(dot).replace_extension(".svg");
}

// Draws the graph with Graphviz, if Graphviz is installed.
void draw(const std::string &dot)
{
    std::string svg = svg_beside(dot);
    std::string format = "-Tsvg", to = "-o" + svg, from = dot, name = "dot";
    char *arguments[] = {name.data(), format.data(), to.data(), from.data(), nullptr};
    pid_t child;
    int status;
    if (posix_spawnp(&child, "dot", nullptr, nullptr, arguments, environ) != 0)
        std::cout << "wrote " << dot << "; Graphviz's dot is not there to draw it\n";
    else if (waitpid(child, &status, 0) != child || status != 0)
        throw std::runtime_error("dot could not draw " + dot);
    else
        std::cout << "wrote " << dot << " and " << svg << "\n";
}

// Call it before anything is written.
void refuse_to_overwrite(const std::string &container, const std::string &out)
{
    std::error_code none;
    if (std::filesystem::equivalent(container, out, none))
        throw std::runtime_error(out + " is the container itself; nothing has been written");
}

int graph(const Options &o)
{
    if (o.out == svg_beside(o.out))
        throw std::runtime_error(o.out + " would be overwritten: name the graph OUT.dot, and the "
                                         "SVG is drawn beside it");
    pm::container c = open(o);
    if (o.out.empty()) {
        write_graph(c.get(), o.objects, std::cout);
        return report_damage(c.get());
    }
    refuse_to_overwrite(o.file, o.out);
    refuse_to_overwrite(o.file, svg_beside(o.out));
    std::ofstream out(o.out);
    write_graph(c.get(), o.objects, out);
    out.close();
    if (!out)
        throw std::runtime_error("cannot write " + o.out);
    draw(o.out);
    return report_damage(c.get());
}

CLI::App *add(CLI::App &app, const char *name, const char *what, const std::shared_ptr<Options> &o)
{
    CLI::App *command = app.add_subcommand(name, what);
    command->add_option("file", o->file, "The container")->required();
    return command;
}

} // namespace

void add_commands(CLI::App &app, int &status)
{
    auto o = std::make_shared<Options>();
    add(app, "info", "Say what a container holds, and where", o)->callback([o, &status] {
        status = info(*o);
    });
    add(app, "check", "Look for damage", o)->callback([o, &status] { status = check(*o); });
    CLI::App *command = add(app, "graph", "Draw objects and the mapped pointers between them", o);
    command->add_option("-o", o->out, "Write it there, and an SVG beside it if Graphviz is there")
        ->type_name("OUT.dot");
    command->add_option("--objects", o->objects, "Draw so many, those nearest to the root first")
        ->type_name("N")
        ->capture_default_str();
    command->callback([o, &status] { status = graph(*o); });
}

} // namespace look
