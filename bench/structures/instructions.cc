/*
 * Counts the instructions of one durable insert and one durable remove, function by function, where the
 * processor's counters cannot be had. A child does the operation, and its parent steps it.
 *
 *     bench_instructions DIRECTORY [STRUCTURE]     for instance: bench_instructions /dev/shm hashmap
 *
 * The peer is that of the program: the structures of examples/ on libpm, redo and marks in compiled code.
 * Instructions of the kernel do not count. Those of its vdso do, and some 40 of the calls that stop the child.
 */
#include "structures/keys.h"
#include "structures/peer.h"

#include <algorithm>
#include <csignal>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

size_t peer_log_bytes;

extern "C" const char __executable_start; // by the linker

namespace
{

constexpr size_t keys_count = 100'000, warm_up = 2000, operations = 21;
constexpr const char *structures[] = {"hashmap", "rbtree", "btree", "skiplist"};

void require(bool holds, const char *what)
{
    if (!holds)
        throw std::system_error(errno, std::generic_category(), what);
}

/** The functions of this program by address: from its symbol table, so static ones too. */
class Symbols
{
  public:
    Symbols()
    {
        const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        struct stat status;
        require(fd >= 0 && fstat(fd, &status) == 0, "the program's own file");
        const void *file = mmap(nullptr, size_t(status.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
        require(file != MAP_FAILED, "mmap");
        const auto *bytes = static_cast<const char *>(file);
        const auto *header = static_cast<const Elf64_Ehdr *>(file);
        const auto *sections = reinterpret_cast<const Elf64_Shdr *>(bytes + header->e_shoff);
        for (int i = 0; i < header->e_shnum; i++) {
            if (sections[i].sh_type != SHT_SYMTAB)
                continue;
            const auto *symbols =
                reinterpret_cast<const Elf64_Sym *>(bytes + sections[i].sh_offset);
            const char *names = bytes + sections[sections[i].sh_link].sh_offset;
            for (size_t n = 0; n < sections[i].sh_size / sizeof *symbols; n++)
                if (ELF64_ST_TYPE(symbols[n].st_info) == STT_FUNC && symbols[n].st_size > 0)
                    functions_[symbols[n].st_value] = {symbols[n].st_size,
                                                       names + symbols[n].st_name};
        }
        base_ = reinterpret_cast<uintptr_t>(&__executable_start);
    }

    std::string at(uintptr_t address) const
    {
        const auto next = functions_.upper_bound(address - base_);
        if (next != functions_.begin()) {
            const auto &[start, function] = *std::prev(next);
            if (address - base_ - start < function.size)
                return function.name;
        }
        Dl_info found; // the child has the same libraries at the same addresses
        if (dladdr(reinterpret_cast<void *>(address), &found) == 0)
            return "elsewhere";
        return std::filesystem::path(found.dli_fname).filename().string() + " " +
               (found.dli_sname ? found.dli_sname : "");
    }

  private:
    struct Function {
        uint64_t size;
        const char *name;
    };
    std::map<uint64_t, Function> functions_;
    uintptr_t base_;
};

/* The child stops itself with SIGSTOP before the operation and after it. */
void operate(const std::string &path, const std::string &structure)
{
    bench::Keys keys(true);
    peer_open(path.c_str(), structure.c_str(), 2 * keys_count);
    const auto apply = [&](peer_operation what, const std::vector<uint64_t> &them, size_t batch) {
        for (size_t at = 0; at < them.size(); at += batch)
            peer_apply(what, them.data() + at, std::min(batch, them.size() - at));
    };
    apply(PEER_INSERT, keys.fresh(keys_count), peer_preload_batch);
    apply(PEER_INSERT, keys.fresh(warm_up), 1);
    apply(PEER_REMOVE, keys.victims(warm_up), 1);
    require(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0, "ptrace");
    for (size_t i = 0; i < operations; i++)
        for (const peer_operation what : {PEER_INSERT, PEER_REMOVE}) {
            const uint64_t key = what == PEER_INSERT ? keys.fresh(1)[0] : keys.victims(1)[0];
            raise(SIGSTOP);
            peer_apply(what, &key, 1);
            raise(SIGSTOP);
        }
    _exit(0);
}

using Profile = std::map<std::string, size_t>;

size_t sum_of(const Profile &profile)
{
    size_t sum = 0;
    for (const auto &[name, count] : profile)
        sum += count;
    return sum;
}

/* What the child executes until it stops itself again. */
Profile step(pid_t child, const Symbols &symbols)
{
    Profile profile;
    int status = 0;
    for (int signal = 0;;) {
        require(ptrace(PTRACE_SINGLESTEP, child, nullptr, signal) == 0, "ptrace");
        require(waitpid(child, &status, 0) == child && WIFSTOPPED(status), "the child has died");
        signal = WSTOPSIG(status);
        if (signal == SIGSTOP)
            return profile;
        if (signal != SIGTRAP)
            continue; // a page fault, say: its handler counts
        signal = 0;
        user_regs_struct registers;
        require(ptrace(PTRACE_GETREGS, child, nullptr, &registers) == 0, "ptrace");
        profile[symbols.at(registers.rip)]++;
    }
}

void report(const std::string &structure, const char *operation, std::vector<Profile> &profiles)
{
    std::ranges::sort(profiles, {}, sum_of);
    const Profile &median = profiles[profiles.size() / 2];
    std::vector<std::pair<std::string, size_t>> functions(median.begin(), median.end());
    std::ranges::sort(functions, std::greater(), &std::pair<std::string, size_t>::second);
    std::cout << structure << ", " << operation << ": " << sum_of(median) << " instructions ("
              << sum_of(profiles.front()) << " to " << sum_of(profiles.back()) << ")\n";
    for (const auto &[name, count] : functions)
        std::cout << "    " << count << '\t' << name << '\n';
}

void count(const std::string &directory, const std::string &structure, const Symbols &symbols)
{
    const std::string path = directory + "/instructions-" + std::to_string(getpid());
    const pid_t child = fork();
    if (child == 0)
        operate(path, structure);
    int status = 0;
    require(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status),
            "the child has died");
    std::vector<Profile> inserts, removes;
    for (size_t i = 0; i < operations; i++)
        for (std::vector<Profile> *profiles : {&inserts, &removes}) {
            profiles->push_back(step(child, symbols));
            require(ptrace(PTRACE_CONT, child, nullptr, 0) == 0, "ptrace");
            waitpid(child, &status, 0);
        }
    std::filesystem::remove(path);
    report(structure, "insert", inserts);
    report(structure, "remove", removes);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 2) {
        std::cerr << "usage: bench_instructions DIRECTORY [STRUCTURE]\n";
        return 2;
    }
    const Symbols symbols;
    for (const char *structure : structures)
        if (argc == 2 || std::string(structure) == argv[2])
            count(argv[1], structure, symbols);
}
