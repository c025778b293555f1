/* The part `lsm`: our LSM store in each mode beside LevelDB and RocksDB. */
#include "driver/plan_lsm.h"

namespace bench
{
namespace
{

using Words = std::vector<std::string>;

struct Case {
    std::string durability; /* "as shipped", "durable" */
    std::string tables;     /* "ext4": the file system that is measured; or "memory" */
    std::string cores;      /* "both", "one" */
    uint64_t value;         /* bytes */
};

struct Contender {
    const char *column, *program, *memtables;
};

constexpr Contender contenders[] = {
    {"LevelDB", "lsm_bench_leveldb", ""}, {"RocksDB", "lsm_bench_rocksdb", ""},
    {"plain", "lsm_bench", "dram"},       {"immutable", "lsm_bench", "immutable"},
    {"mutable", "lsm_bench", "mutable"},  {"NoSST", "lsm_bench", "nosst"},
    {"merging", "lsm_bench", "merging"},  {"key LSM", "lsm_bench", "keylsm"}};

constexpr uint64_t all_bytes = UINT64_C(1) << 30; /* of the values of a case */
constexpr const char *one_gib = "1073741824";
constexpr uint64_t key_bytes =
    60; /* of a key of ours and the address of its value, with room to spare */

std::string size_name(uint64_t bytes)
{
    return bytes < 1024 ? std::to_string(bytes) + " B" : std::to_string(bytes >> 10) + " KB";
}

class LsmPlan
{
  public:
    LsmPlan(const Plan &plan, const Plan::Directories &directories)
        : plan_(plan), directories_(directories)
    {
    }

    Words words(const Case &c, const Contender &who, const std::string &benchmarks,
                uint64_t count) const
    {
        const bool is_ours = *who.memtables;
        const std::string &base = c.tables == "memory" ? directories_.memory : directories_.file;
        Words words = {plan_.programs + "/" + who.program, "--db", base + "/db"};
        if (c.cores == "one")
            words.insert(words.begin(), {"/usr/bin/taskset", "-c", "0"});
        add(words, {"--num", std::to_string(count), "--value_size", std::to_string(c.value)});
        if (!benchmarks.empty())
            add(words, {"--benchmarks", benchmarks});
        add(words, {"--column", who.column, "--samples", "lsm"});
        for (const std::string &label : {c.durability, c.tables, c.cores, size_name(c.value)})
            add(words, {"--samples", label});
        if (is_ours)
            add(words, {"--memtables", who.memtables, "--container", directories_.memory + "/pm"});
        if (who.memtables == std::string("nosst") || who.memtables == std::string("merging"))
            /* room for all, with what goes with a value */
            add(words, {"--persistent_bytes", std::to_string(count * (c.value * 5 / 4 + 150))});
        if (who.memtables == std::string("keylsm")) /* room for all keys */
            add(words, {"--persistent_bytes", std::to_string(count * key_bytes)});
        return words;
    }

    std::vector<Plan::Command> of_case(const Case &c, const Contender &who) const
    {
        Words words = this->words(
            c, who, c.durability == "durable" ? "fillrandom" : "fillrandom,wait,readrandom",
            all_bytes / c.value);
        if (c.durability == "durable")
            add(words, {"--sync", "--duration", plan_.quick ? "1" : "3"});
        else
            add(words, {"--read_duration", plan_.quick ? "1" : "3"});
        return {{words, false}};
    }

    /* One program fills a memtable of 1 GiB and is killed; another opens the store. */
    std::vector<Plan::Command> restart(const Contender &who) const
    {
        const Case c = {"as shipped", "ext4", "both", 4096};
        constexpr uint64_t count = 230'000;
        Words words = this->words({"restart", c.tables, c.cores, c.value}, who, "", count);
        add(words, {"--write_buffer_size", one_gib});
        words.insert(words.begin(), {"/bin/sh", "-c",
                                     R"("$0" "$@" --benchmarks fillrandom,die 2>/dev/null;
                                     exec "$0" "$@" --benchmarks open)"});
        return {{words, false}};
    }

    std::vector<Plan::Command> ycsb(const Contender &who) const
    {
        const Case c = {"YCSB", "ext4", "both", 100};
        Words words =
            this->words(c, who, "fillseq,wait,ycsba,ycsbb,ycsbc,ycsbd,ycsbe,ycsbf", 1'000'000);
        add(words, {"--threads", "2", "--read_duration", plan_.quick ? "1" : "3"});
        if (*who.memtables)
            add(words, {"--fast_directory", directories_.memory + "/fast", "--fast_levels", "2"});
        return {{words, false}};
    }

    /* Reads and updates in equal numbers, by 16 clients. */
    std::vector<Plan::Command> clients(const Contender &who) const
    {
        const Case c = {"16 clients", "ext4", "both", 1024};
        Words words = this->words(c, who, "", 500'000);
        add(words, {"--read_duration", plan_.quick ? "1" : "3"});
        words.insert(words.begin(), {"/bin/sh", "-c",
                                     R"("$0" "$@" --benchmarks fillseq,wait >/dev/null;
                                     exec "$0" "$@" --threads 16 --benchmarks ycsba)"});
        return {{words, false}};
    }

    /* Gets of 64 KB without filters, so that several tables may have a key. All of one store, since merges leave
     * each store with other tables. */
    std::vector<Plan::Command> workers() const
    {
        const Contender who = {"fill", "lsm_bench", "dram"};
        Words words =
            this->words({"workers", "ext4", "both", 64 << 10}, who, "", all_bytes / (64 << 10));
        add(words, {"--bloom_bits", "0", "--read_duration", "3"});
        words.insert(words.begin(), {"/bin/sh", "-c",
                                     R"("$0" "$@" --benchmarks fillrandom,wait >/dev/null 2>&1
                                     read() { "$0" "$@" --use_existing_db --benchmarks readrandom; }
                                     for i in 1 2 3; do
                                         read "$@" --read_workers 0 --column alone
                                         read "$@" --read_workers 2 --column "two workers"
                                     done)"});
        return {{words, false}};
    }

    std::vector<Plan::Command> parts(const char *memtables) const
    {
        return {{{plan_.programs + "/bench_lsm_parts", memtables, directories_.file + "/db",
                  directories_.memory + "/pm", "250000", "4096"},
                 false}};
    }

  private:
    static void add(Words &words, const Words &more)
    {
        words.insert(words.end(), more.begin(), more.end());
    }

    const Plan &plan_;
    const Plan::Directories &directories_;
};

} // namespace

std::vector<Plan::Command> lsm_commands(const Plan &plan, size_t repetition,
                                        const Plan::Directories &directories)
{
    const LsmPlan lsm(plan, directories);
    std::vector<Plan::Command> commands;
    const auto in_turn = [&](size_t count, auto &&group) {
        for (size_t i = 0; i < count; i++)
            for (const Plan::Command &command : group((i + repetition) % count))
                commands.push_back(command);
    };
    std::vector<Case> cases = {
        {"as shipped", "ext4", "both", 4096},     {"as shipped", "ext4", "both", 1024},
        {"as shipped", "ext4", "both", 64 << 10}, {"as shipped", "ext4", "one", 4096},
        {"as shipped", "ext4", "one", 1024},      {"as shipped", "memory", "both", 4096},
        {"durable", "ext4", "both", 1024},        {"durable", "ext4", "both", 4096},
        {"durable", "memory", "both", 1024}};
    if (repetition == 0) /* the longest */
        cases.push_back({"as shipped", "ext4", "both", 100});
    for (const Case &c : cases)
        in_turn(std::size(contenders), [&](size_t i) { return lsm.of_case(c, contenders[i]); });
    for (const Contender &who : contenders)
        if (who.column != std::string("immutable") && who.column != std::string("mutable"))
            for (const Plan::Command &command : lsm.restart(who))
                commands.push_back(command);
    constexpr Contender ycsb[] = {contenders[0], contenders[1], contenders[4]};
    in_turn(std::size(ycsb), [&](size_t i) { return lsm.ycsb(ycsb[i]); });
    constexpr Contender clients[] = {contenders[0], contenders[1], contenders[4], contenders[7]};
    in_turn(std::size(clients), [&](size_t i) { return lsm.clients(clients[i]); });
    for (const Plan::Command &command : lsm.workers())
        commands.push_back(command);
    for (const char *memtables : {"dram", "mutable", "nosst"})
        for (const Plan::Command &command : lsm.parts(memtables))
            commands.push_back(command);
    return commands;
}

} // namespace bench
