// nvmkv: a store from the command line, or in a pipe. See nvmkv.1.
#include "common/lines.hpp"
#include "nvmkv/nvmkv.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

namespace
{

using text::Lines, text::print_line;
using Words = std::vector<std::string>;

enum Status { done = 0, not_done = 1, misused = 2 }; // not_done without a message: a key is absent

struct UsageError : std::runtime_error {
    using runtime_error::runtime_error;
};

/// The message of an error, without the text of its errno. Our messages say what to do, and need no such
/// text. libpm's messages have none.
std::string message_of(const std::exception &error)
{
    std::string message = error.what();
    auto *system = dynamic_cast<const std::system_error *>(&error);
    if (system && !dynamic_cast<const pm::error *>(&error)) {
        const std::string text = ": " + system->code().message();
        if (message.ends_with(text))
            message.resize(message.size() - text.size());
    }
    return message;
}

std::string standard_input()
{
    std::string all(std::istreambuf_iterator<char>(std::cin), {});
    if (ferror(stdin) || !feof(stdin))
        throw std::runtime_error("cannot read standard input");
    return all;
}

/// Puts pairs in batches of some size, or with --whole all in one batch.
class Batch
{
  public:
    Batch(nvmkv::Store &store, bool whole) : store_(store), whole_(whole) {}

    void add(nvmkv::Pool pool, std::string key, std::string value)
    {
        if (!whole_ && (pool != pool_ || bytes_ > bytes_at_once))
            put();
        pool_ = pool;
        bytes_ += key.size() + value.size();
        pairs_.emplace_back(std::move(key), std::move(value));
    }
    void put()
    {
        std::vector<nvmkv::KeyValue> pairs;
        for (const auto &[key, value] : pairs_)
            pairs.push_back({key, value});
        store_.put_batch(pairs, pool_,
                         whole_ ? nvmkv::Store::Atomic::whole : nvmkv::Store::Atomic::each);
        pairs_.clear();
        bytes_ = 0;
    }

  private:
    static constexpr size_t bytes_at_once = 1 << 20;

    nvmkv::Store &store_;
    bool whole_;
    nvmkv::Pool pool_ = nvmkv::default_pool;
    size_t bytes_ = 0;
    std::vector<std::pair<std::string, std::string>> pairs_;
};

class Shell
{
  public:
    enum Access { looks, changes, creates }; // several processes at once may look at a store
    enum Heeds { neither, pool_only, pool_and_whole }; // which of --pool and --whole it uses

    struct Command {
        std::string_view name;
        size_t least, most; // arguments
        const char *arguments;
        Access access;
        Heeds heeds;
        bool reads_input; // reads standard input, unless it has `most` arguments
        Status (Shell::*run)(const Words &);
    };

    Shell(nvmkv::Store &store, std::string pool, bool whole)
        : store_(store), pool_(std::move(pool)), whole_(whole)
    {
    }

    /// The command that the first word names.
    static const Command &command_of(const Words &words)
    {
        const auto command =
            std::ranges::find_if(commands, [&](const Command &c) { return c.name == words[0]; });
        if (command == commands.end())
            throw UsageError(words[0] + ": there is no such command; see nvmkv --help");
        if (words.size() - 1 < command->least || words.size() - 1 > command->most)
            throw UsageError(words[0] + ": wants " + command->arguments);
        return *command;
    }

    /// Refuses an option that the command would ignore. For example, --pool would not restrict delete-all,
    /// which deletes from all pools, nor destroy, which deletes the whole file.
    static void require_heeded(std::string_view name, Heeds heeds, const std::string &pool,
                               bool whole)
    {
        if (!pool.empty() && heeds == neither)
            throw UsageError(std::string(name) + ": does not take --pool");
        if (whole && heeds != pool_and_whole)
            throw UsageError(std::string(name) + ": does not take --whole");
    }

    Status run(const Words &words) { return (this->*command_of(words).run)(words); }

    /// Run the commands of standard input, one a line.
    Status run_lines()
    {
        Status status = done;
        size_t number = 0;
        for (std::string line; std::getline(std::cin, line);) {
            number++;
            const Words words = split(line);
            if (words.empty())
                continue;
            try {
                const Command &command = command_of(words);
                if (command.reads_input && (command.most == 0 || words.size() <= command.most))
                    throw UsageError(words[0] + ": reads standard input, so it is no line of that");
                require_heeded(command.name, command.heeds, pool_, whole_);
                status = std::max(status, run(words));
            } catch (const std::exception &error) {
                throw std::runtime_error("standard input, line " + std::to_string(number) + ": " +
                                         message_of(error));
            }
            std::cout << std::flush;
        }
        return status;
    }

    static std::string help()
    {
        std::string all = "COMMANDS\n  create\n  destroy\n";
        for (const Command &command : commands)
            all.append("  ").append(command.name).append(" ").append(command.arguments) += '\n';
        return all + "Without a command, these are read from standard input, one a line.";
    }

  private:
    static const std::vector<Command> commands;

    // A line is a command. Everything behind its key is the value, with all spaces.
    static Words split(const std::string &line)
    {
        std::istringstream in(line);
        Words words;
        std::string word;
        while (words.size() < 2 && in >> word)
            words.push_back(word);
        if (std::getline(in >> std::ws, word))
            words.push_back(word);
        return words;
    }

    nvmkv::Pool pool() { return pool_.empty() ? nvmkv::default_pool : pool_named(pool_); }

    nvmkv::Pool pool_named(const std::string &name)
    {
        auto pool = store_.find_pool(name);
        if (!pool)
            throw std::runtime_error(store_.ftl().path() + ": there is no pool " + name +
                                     "; create-pool makes one");
        return *pool;
    }

    // ---- Pairs

    Status get(const Words &words)
    {
        std::string value;
        if (!store_.get(words[1], value, pool()))
            return not_done;
        std::cout << value << '\n';
        return done;
    }

    Status put(const Words &words)
    {
        store_.put(words[1], words[2], pool());
        return done;
    }

    Status erase(const Words &words) { return store_.erase(words[1], pool()) ? done : not_done; }
    Status exists(const Words &words) { return store_.exists(words[1], pool()) ? done : not_done; }

    // ---- Batches, from lines

    Status put_batch(const Words &)
    {
        const nvmkv::Pool pool = this->pool();
        Batch batch(store_, whole_);
        Lines lines;
        for (Words fields; lines.next(fields);) {
            if (fields.size() != 2)
                lines.refuse("not KEY, a tab, VALUE, as list prints them");
            batch.add(pool, fields[0], fields[1]);
        }
        batch.put();
        return done;
    }

    static Words read_keys()
    {
        Words keys;
        Lines lines;
        for (Words fields; lines.next(fields); keys.push_back(fields[0]))
            if (fields.size() != 1)
                lines.refuse("not a KEY as list prints it");
        return keys;
    }

    Status get_batch(const Words &)
    {
        const Words keys = read_keys();
        const auto values =
            store_.get_batch(std::vector<std::string_view>(keys.begin(), keys.end()), pool());
        Status status = done;
        for (size_t i = 0; i < keys.size(); i++)
            if (values[i])
                print_line({keys[i], *values[i]});
            else
                status = not_done;
        return status;
    }

    Status erase_batch(const Words &)
    {
        const Words keys = read_keys();
        const size_t erased =
            store_.erase_batch(std::vector<std::string_view>(keys.begin(), keys.end()), pool(),
                               whole_ ? nvmkv::Store::Atomic::whole : nvmkv::Store::Atomic::each);
        return erased == keys.size() ? done : not_done;
    }

    Status erase_all(const Words &)
    {
        store_.erase_all();
        return done;
    }

    Status list(const Words &)
    {
        for (auto i = store_.begin(pool()); i.next();)
            if (auto pair = i.get_current())
                print_line({pair->key, pair->value});
        return done;
    }

    // ---- All there is

    // A pool's name has a line of its own, since the pool may be empty.
    Status dump(const Words &)
    {
        std::map<nvmkv::Pool, std::string> names;
        for (const nvmkv::PoolInfo &info : store_.pools()) {
            names[info.pool] = info.name;
            if (info.pool != nvmkv::default_pool)
                print_line({info.name});
        }
        for (auto i = store_.begin(); i.next();)
            if (auto pair = i.get_current())
                print_line({names.at(pair->pool), pair->key, pair->value});
        return done;
    }

    Status load(const Words &)
    {
        Batch batch(store_, false);
        std::map<std::string, nvmkv::Pool> pools = {{"", nvmkv::default_pool}};
        Lines lines;
        for (Words fields; lines.next(fields);) {
            if (fields.size() != 1 && fields.size() != 3)
                lines.refuse("neither POOL nor POOL, KEY, VALUE, as dump prints them");
            auto [pool, is_new] = pools.try_emplace(fields[0]);
            if (is_new) {
                auto found = store_.find_pool(fields[0]);
                pool->second = found ? *found : store_.create_pool(fields[0]);
            }
            if (fields.size() == 3)
                batch.add(pool->second, fields[1], fields[2]);
        }
        batch.put();
        return done;
    }

    // ---- Pools

    static void print_pool(const nvmkv::PoolInfo &info)
    {
        print_line({std::to_string(info.pool), std::to_string(info.pairs) + " pairs",
                    std::to_string(info.sectors * nvmkv::sector_size) + " bytes", info.name});
    }

    Status pools(const Words &)
    {
        std::ranges::for_each(store_.pools(), print_pool);
        return done;
    }

    Status pool_info(const Words &words)
    {
        print_pool(store_.pool_info(pool_named(words[1])));
        return done;
    }

    Status pool_exists(const Words &words) { return store_.find_pool(words[1]) ? done : not_done; }

    Status create_pool(const Words &words)
    {
        store_.create_pool(words[1]);
        return done;
    }

    Status delete_pool(const Words &words)
    {
        store_.delete_pool(pool_named(words[1]));
        return done;
    }

    // ---- The store

    Status info(const Words &)
    {
        const nvmkv::StoreInfo info = store_.info();
        std::cout << "key bits\t" << info.key_bits << "\nvalue bits\t" << info.value_bits
                  << "\nlongest value\t" << info.value_max << " bytes\npools\tat most "
                  << info.pools_max << "\nfile\t" << info.file_bytes << " bytes\n";
        return done;
    }

    Status check(const Words &)
    {
        store_.check();
        return done;
    }

    nvmkv::Store &store_;
    std::string pool_;
    bool whole_;
};

const std::vector<Shell::Command> Shell::commands = {
    {"get", 1, 1, "KEY", looks, pool_only, false, &Shell::get},
    {"put", 1, 2, "KEY [VALUE]", creates, pool_only, true, &Shell::put},
    {"delete", 1, 1, "KEY", changes, pool_only, false, &Shell::erase},
    {"exists", 1, 1, "KEY", looks, pool_only, false, &Shell::exists},
    {"put-batch", 0, 0, "<LINES", creates, pool_and_whole, true, &Shell::put_batch},
    {"get-batch", 0, 0, "<LINES", looks, pool_only, true, &Shell::get_batch},
    {"delete-batch", 0, 0, "<LINES", changes, pool_and_whole, true, &Shell::erase_batch},
    {"delete-all", 0, 0, "", changes, neither, false, &Shell::erase_all},
    {"list", 0, 0, "", looks, pool_only, false, &Shell::list},
    {"dump", 0, 0, "", looks, neither, false, &Shell::dump},
    {"load", 0, 0, "<LINES", creates, neither, true, &Shell::load},
    {"pools", 0, 0, "", looks, neither, false, &Shell::pools},
    {"pool-info", 1, 1, "NAME", looks, neither, false, &Shell::pool_info},
    {"pool-exists", 1, 1, "NAME", looks, neither, false, &Shell::pool_exists},
    {"create-pool", 1, 1, "NAME", creates, neither, false, &Shell::create_pool},
    {"delete-pool", 1, 1, "NAME", changes, neither, false, &Shell::delete_pool},
    {"info", 0, 0, "", looks, neither, false, &Shell::info},
    {"check", 0, 0, "", looks, neither, false, &Shell::check},
};

struct Invocation {
    std::string file, pool;
    Words words;
    nvmkv::Options options;
    bool async = false, whole = false;
};

Status run(Invocation &i)
{
    const bool destroys = i.words == Words{"destroy"}, makes = i.words == Words{"create"};
    if (destroys || makes)
        Shell::require_heeded(i.words[0], Shell::neither, i.pool, i.whole);
    if (destroys) {
        nvmkv::Store::destroy(i.file);
        return done;
    }
    i.options.durability = i.async ? nvmkv::Durability::async : nvmkv::Durability::sync;
    if (makes) {
        nvmkv::Store::create(i.file, i.options);
        return done;
    }
    Shell::Access access = Shell::creates;
    if (!i.words.empty()) {
        const Shell::Command &command = Shell::command_of(i.words);
        Shell::require_heeded(command.name, command.heeds, i.pool, i.whole);
        access = command.access;
    }
    // Read before the store is opened: the program that writes to the pipe may have the store open.
    if (i.words.size() == 2 && i.words[0] == "put")
        i.words.push_back(standard_input());
    i.options.readonly = access == Shell::looks;
    i.options.create_if_missing = access == Shell::creates;
    nvmkv::Store store = nvmkv::Store::open(i.file, i.options);
    Shell shell(store, i.pool, i.whole);
    const Status status = i.words.empty() ? shell.run_lines() : shell.run(i.words);
    if (!i.options.readonly)
        store.flush();
    if (!std::cout.flush() || ferror(stdout))
        throw std::runtime_error("cannot write standard output");
    return status;
}

} // namespace

int main(int argc, char **argv)
{
    Invocation i;
    CLI::App app("A key-value store in a file", "nvmkv");
    app.add_option("file", i.file, "the store; what puts something creates it")->required();
    app.add_option("--pool", i.pool, "its name; else the default pool");
    app.add_option("--key-bits", i.options.key_bits, "of a new store")->capture_default_str();
    app.add_option("--value-bits", i.options.value_bits, "of a new store")->capture_default_str();
    app.add_flag("--async", i.async, "do not wait for the medium before the end");
    app.add_flag("--whole", i.whole, "put-batch, delete-batch: all or none");
    app.footer(Shell::help());
    app.prefix_command(); // words after FILE are not parsed as options
    try {
        app.parse(argc, argv);
        i.words = app.remaining();
    } catch (const CLI::ParseError &error) {
        return app.exit(error) == 0 ? done : misused;
    }
    try {
        return run(i);
    } catch (const UsageError &error) {
        std::cerr << "nvmkv: " << error.what() << '\n';
        return misused;
    } catch (const std::exception &error) {
        std::cerr << "nvmkv: " << message_of(error) << '\n';
        return not_done;
    }
}
