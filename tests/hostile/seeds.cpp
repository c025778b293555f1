// The seed corpus: containers of all engines, as programs leave them that close or die.
//
//   fuzz_seeds DIRECTORY
#include "hostile/input.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <libpm.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

constexpr uint64_t SEGMENT = 64 << 10;

struct Node {
    Node *next;
    uint64_t value;
    char *large;
};

[[noreturn]] void fail(const char *what)
{
    fprintf(stderr, "fuzz_seeds: %s: %s\n", what, pm_errormsg());
    _exit(1);
}

void require(bool condition, const char *what)
{
    if (!condition)
        fail(what);
}

class Program
{
  public:
    Program(const char *path, pm_engine engine, unsigned flags, uint64_t segment,
            uint64_t checkpoints)
    {
        pm_options options{};
        options.size = sizeof options;
        options.flags = PM_CREATE | flags;
        options.engine = engine;
        options.segment_size = segment;
        options.checkpoint_bytes = checkpoints;
        options.max_size = 18 * segment; // one is the pointer map
        c = pm_open(path, &options);
        require(c, "pm_open");
    }

    void push(uint64_t value, size_t large = 0)
    {
        Node *n = static_cast<Node *>(pm_calloc(c, 1, sizeof(Node) + value % 3 * 100));
        require(n, "pm_calloc");
        n->next = static_cast<Node *>(pm_getroot(c));
        n->value = value;
        require(pm_mark_pointer(&n->next) == 0, "pm_mark_pointer");
        if (large > 0) {
            n->large = static_cast<char *>(pm_malloc(c, large));
            require(n->large, "pm_malloc");
            for (size_t i = 0; i < large; i += 9000)
                n->large[i] = (char)value;
        }
        require(pm_setroot(c, n, 0) == 0, "pm_setroot");
    }

    // Give the first node a value of `pages` pages.
    void put(size_t pages)
    {
        Node *n = static_cast<Node *>(pm_getroot(c));
        std::string value(pages * 4096, '\0');
        for (size_t i = 0; i < value.size(); i += 4000)
            value[i] = (char)pages;
        require(pm_free(n->large) == 0, "pm_free");
        n->large = static_cast<char *>(pm_put(c, value.data(), value.size()));
        require(n->large, "pm_put");
    }

    void pop()
    {
        Node *n = static_cast<Node *>(pm_getroot(c));
        require(pm_setroot(c, n->next, 0) == 0 && pm_free(n) == 0, "pm_free");
    }

    // Leave every fifth.
    void thin_out()
    {
        uint64_t i = 0;
        for (Node *n = static_cast<Node *>(pm_getroot(c)); n; n = n->next)
            while (n->next && ++i % 5 != 0) {
                Node *gone = n->next;
                n->next = gone->next;
                require(pm_free(gone->large) == 0 && pm_free(gone) == 0, "pm_free");
            }
    }

    void store(uint64_t value) { static_cast<Node *>(pm_getroot(c))->value = value; }

    void commit() { require(pm_commit(c) == 0, "pm_commit"); }
    void close() { require(pm_close(c) == 0, "pm_close"); }

  private:
    pm_container *c;
};

struct Seed {
    const char *name;
    void (*run)(Program &p);
    unsigned flags = 0;
    uint64_t segment = SEGMENT;
    uint64_t checkpoints = 0; // options.checkpoint_bytes, and only the log engine has any
};

const Seed seeds[] = {
    {"empty", [](Program &p) { p.close(); }},
    {"clean",
     [](Program &p) {
         p.push(1);
         p.push(2);
         p.commit();
         p.close();
     }},
    {"first-commit",
     [](Program &p) {
         p.push(1);
         p.commit();
     }},
    {"crashed",
     [](Program &p) {
         for (uint64_t i = 0; i < 4; i++) {
             p.push(i);
             p.commit();
         }
         p.store(7);
         p.commit();
         p.push(8);
         p.store(9);
     }},
    {"freed",
     [](Program &p) {
         for (uint64_t i = 0; i < 6; i++)
             p.push(i);
         p.commit();
         p.pop();
         p.pop();
         p.commit();
         p.pop();
     }},
    {"large",
     [](Program &p) {
         p.push(1, 70000);
         p.commit();
         p.push(2, 150000);
         p.commit();
         p.store(3);
     }},
    {"grown",
     [](Program &p) {
         for (uint64_t i = 0; i < 8; i++) {
             p.push(i, 40000);
             p.commit();
         }
         p.close();
     }},
    {"long-log",
     [](Program &p) {
         p.push(1, 200000); // its pages are listed, or fresh, in one record
         p.commit();
         for (uint64_t i = 0; i < 20; i++) {
             p.store(i);
             p.commit();
         }
     }},
    {"movable",
     [](Program &p) {
         for (uint64_t i = 0; i < 6; i++)
             p.push(i, i == 3 ? 70000 : 0);
         p.commit();
         p.store(7);
         p.commit();
         p.close();
     },
     PM_MOVABLE},
    {"fragmented", // so that there is something to compact
     [](Program &p) {
         for (uint64_t i = 0; i < 700; i++) {
             p.push(i, i == 400 ? 66000 : 0);
             if (i % 100 == 99)
                 p.commit();
         }
         p.thin_out();
         p.commit();
         p.close();
     },
     PM_MOVABLE},
    {"values", // of whole pages, which smaller chunks of a log do not have
     [](Program &p) {
         p.push(1);
         p.put(16);
         p.commit();
         p.put(20);
         p.commit();
     },
     0, 4 * SEGMENT},
    {"checkpoint", // and records behind it
     [](Program &p) {
         for (uint64_t i = 0; i < 30; i++) {
             p.push(i);
             p.commit();
         }
         p.pop();
         p.commit();
     },
     0, SEGMENT, 2048},
    {"checkpoint-of-close",
     [](Program &p) {
         for (uint64_t i = 0; i < 30; i++) {
             p.push(i);
             p.commit();
         }
         p.close();
     },
     PM_MOVABLE, SEGMENT, SEGMENT},
};

// In a process of its own, since most do not close.
hostile::Bytes container_of(const Seed &seed, pm_engine engine)
{
    char path[] = "/dev/shm/libpm-seed-XXXXXX";
    require(mkdtemp(path), "mkdtemp");
    std::string file = std::string(path) + "/c.pm";
    pid_t child = fork();
    if (child == 0) {
        Program program(file.c_str(), engine, seed.flags, seed.segment, seed.checkpoints);
        seed.run(program);
        _exit(0);
    }
    int status = 0;
    require(child > 0 && waitpid(child, &status, 0) == child && status == 0, seed.name);
    std::ifstream in(file, std::ios::binary);
    hostile::Bytes bytes((std::istreambuf_iterator<char>(in)), {});
    unlink(file.c_str());
    rmdir(path);
    return bytes;
}

} // namespace

int main(int argc, char **argv)
{
    require(argc == 2, "needs a directory");
    for (const Seed &seed : seeds)
        for (auto [engine, called] : {std::pair{PM_ENGINE_UNDO, "-undo"},
                                      {PM_ENGINE_REDO, "-redo"},
                                      {PM_ENGINE_LOG, "-log"}}) {
            if (seed.checkpoints && engine != PM_ENGINE_LOG)
                continue;
            hostile::Bytes input = hostile::encode(container_of(seed, engine));
            std::string name = std::string(seed.name) + called;
            std::ofstream out(std::string(argv[1]) + "/" + name, std::ios::binary);
            out << input;
            require(!!out.flush(), "cannot write a seed");
        }
    return 0;
}
