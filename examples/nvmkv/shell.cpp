// nvmkv: the store on the command line, and in a pipe. See nvmkv.1.
#include "nvmkv/nvmkv.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace
{

using Words = std::vector<std::string>;

enum Status { found = 0, absent = 1, failed = 2 };

struct UsageError : std::runtime_error {
    using runtime_error::runtime_error;
};

class Shell
{
  public:
    Shell(nvmkv::Store &store, std::string pool) : store_(store), pool_(std::move(pool)) {}

    Status run(const Words &words)
    {
        const auto command =
            std::ranges::find_if(commands, [&](const Command &c) { return c.name == words[0]; });
        if (command == commands.end())
            throw UsageError(words[0] + ": there is no such command");
        if (words.size() - 1 < command->least || words.size() - 1 > command->most)
            throw UsageError(words[0] + ": wants " + command->arguments);
        return (this->*command->run)(words);
    }

    // A line is a command; what is behind its key is the value, spaces and all.
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

  private:
    struct Command {
        std::string_view name;
        size_t least, most; // arguments
        const char *arguments;
        Status (Shell::*run)(const Words &);
    };
    static const std::vector<Command> commands;

    nvmkv::Pool pool() { return pool_.empty() ? nvmkv::default_pool : pool_named(pool_); }

    nvmkv::Pool pool_named(const std::string &name)
    {
        auto pool = store_.find_pool(name);
        if (!pool)
            throw std::system_error(ENOENT, std::generic_category(), "pool " + name);
        return *pool;
    }

    Status get(const Words &words)
    {
        std::string value;
        if (!store_.get(words[1], value, pool()))
            return absent;
        std::cout << value << '\n';
        return found;
    }

    Status put(const Words &words)
    {
        if (words.size() == 3)
            store_.put(words[1], words[2], pool());
        else
            store_.put(words[1], standard_input(), pool());
        return found;
    }

    static std::string standard_input()
    {
        std::string all(std::istreambuf_iterator<char>(std::cin), {});
        if (ferror(stdin) || !feof(stdin))
            throw std::runtime_error("cannot read standard input");
        return all;
    }

    Status erase(const Words &words) { return store_.erase(words[1], pool()) ? found : absent; }
    Status exists(const Words &words) { return store_.exists(words[1], pool()) ? found : absent; }

    Status list(const Words &)
    {
        for (auto i = store_.begin(pool()); i.next();)
            if (auto pair = i.get_current())
                std::cout << pair->key << '\t' << pair->value << '\n';
        return found;
    }

    Status erase_all(const Words &)
    {
        store_.erase_all();
        return found;
    }

    Status pools(const Words &)
    {
        for (const nvmkv::PoolInfo &info : store_.pools())
            std::cout << info.pool << '\t' << info.pairs << " pairs\t"
                      << info.sectors * nvmkv::sector_size << " bytes\t" << info.name << '\n';
        return found;
    }

    Status create_pool(const Words &words)
    {
        store_.create_pool(words[1]);
        return found;
    }

    Status delete_pool(const Words &words)
    {
        store_.delete_pool(pool_named(words[1]));
        return found;
    }

    Status info(const Words &)
    {
        const nvmkv::StoreInfo info = store_.info();
        std::cout << "key bits\t" << info.key_bits << "\nvalue bits\t" << info.value_bits
                  << "\nlongest value\t" << info.value_max << " bytes\npools\tat most "
                  << info.pools_max << "\nfile\t" << info.file_bytes << " bytes\n";
        return found;
    }

    Status check(const Words &)
    {
        store_.check();
        return found;
    }

    nvmkv::Store &store_;
    std::string pool_;
};

const std::vector<Shell::Command> Shell::commands = {
    {"get", 1, 1, "KEY", &Shell::get},
    {"put", 1, 2, "KEY [VALUE]", &Shell::put},
    {"delete", 1, 1, "KEY", &Shell::erase},
    {"exists", 1, 1, "KEY", &Shell::exists},
    {"list", 0, 0, "nothing", &Shell::list},
    {"delete-all", 0, 0, "nothing", &Shell::erase_all},
    {"pools", 0, 0, "nothing", &Shell::pools},
    {"create-pool", 1, 1, "NAME", &Shell::create_pool},
    {"delete-pool", 1, 1, "NAME", &Shell::delete_pool},
    {"info", 0, 0, "nothing", &Shell::info},
    {"check", 0, 0, "nothing", &Shell::check},
};

Status run_lines(Shell &shell, std::istream &in)
{
    Status status = found;
    size_t number = 0;
    for (std::string line; std::getline(in, line);) {
        number++;
        const Words words = Shell::split(line);
        if (words.empty())
            continue;
        try {
            if (words[0] == "put" && words.size() < 3)
                throw UsageError("put: wants KEY VALUE");
            status = std::max(status, shell.run(words));
        } catch (const std::exception &error) {
            throw std::runtime_error("line " + std::to_string(number) + ": " + error.what());
        }
        std::cout << std::flush;
    }
    return status;
}

// What only looks needs a store that is there, and may look while others do.
bool creates(const Words &words)
{
    return words.empty() || words[0] == "put" || words[0] == "create-pool";
}

bool looks(const Words &words)
{
    static const std::string_view names[] = {"get", "exists", "list", "pools", "info", "check"};
    return !words.empty() && std::ranges::find(names, words[0]) != std::end(names);
}

} // namespace

int main(int argc, char **argv)
{
    std::string file, pool;
    Words words;
    nvmkv::Options options;
    bool async = false;
    CLI::App app("A key-value store in a file");
    app.add_option("file", file, "the store; put and create-pool create it")->required();
    app.add_option("--pool", pool, "its name; else the default pool");
    app.add_option("--key-bits", options.key_bits, "of a new store")->capture_default_str();
    app.add_option("--value-bits", options.value_bits, "of a new store")->capture_default_str();
    app.add_flag("--async", async, "do not wait for the medium before the end");
    app.footer("COMMAND...: what to do; without one, read commands, one a line");
    app.prefix_command(); // whatever follows FILE is as it stands
    try {
        app.parse(argc, argv);
        words = app.remaining();
    } catch (const CLI::ParseError &error) {
        return app.exit(error) == 0 ? found : failed;
    }
    try {
        if (words == Words{"destroy"}) {
            nvmkv::Store::destroy(file);
            return found;
        }
        options.durability = async ? nvmkv::Durability::async : nvmkv::Durability::sync;
        options.readonly = looks(words);
        options.create_if_missing = creates(words);
        nvmkv::Store store = nvmkv::Store::open(file, options);
        Shell shell(store, pool);
        const Status status = words.empty() ? run_lines(shell, std::cin) : shell.run(words);
        if (!options.readonly)
            store.flush();
        if (!std::cout.flush())
            throw std::runtime_error("cannot write the output");
        return status;
    } catch (const std::exception &error) {
        std::cerr << "nvmkv: " << error.what() << '\n';
        return failed;
    }
}
