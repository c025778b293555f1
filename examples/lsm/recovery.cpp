// Opening: read the manifest, write what the logs have to level 0, and begin a new log and a new
// manifest. If it fails, or a crash ends it, the old manifest and the old logs still count.
#include "lsm/store.hpp"

#include <algorithm>
#include <charconv>
#include <unistd.h>

namespace lsm
{
namespace
{

constexpr size_t memtable_min = 256 << 10;

void demand(bool holds, const std::string &directory, const char *what)
{
    if (!holds)
        throw Error(EINVAL, directory + ": " + what);
}

struct Name {
    std::string_view kind; // "log", "table", "manifest", or "" of any other file
    uint64_t number = 0;
};

Name parse(std::string_view name)
{
    constexpr std::string_view manifest = "MANIFEST-";
    std::string_view digits = name, kind;
    if (name.starts_with(manifest)) {
        kind = "manifest";
        digits.remove_prefix(manifest.size());
    } else if (size_t dot = name.find('.'); dot != name.npos) {
        kind = name.substr(dot + 1);
        digits = name.substr(0, dot);
    }
    Name parsed{kind};
    auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), parsed.number);
    bool is_ours = kind == "log" || kind == "table" || kind == "manifest";
    return is_ours && error == std::errc() && end == digits.data() + digits.size() ? parsed
                                                                                   : Name{};
}

} // namespace

std::unique_ptr<Store> Store::open(const std::string &directory, const Options &options)
{
    demand(options.memtable_bytes >= memtable_min, directory,
           "options.memtable_bytes must be at least 256 KiB");
    demand(options.table_bytes > 0 && options.level_bytes > 0 && options.block_bytes > 0, directory,
           "options.table_bytes, level_bytes and block_bytes must not be 0");
    demand(options.bloom_bits <= 64, directory, "options.bloom_bits must be at most 64");
    if (options.create)
        make_directory(directory);
    return std::make_unique<PlainStore>(directory, options);
}

PlainStore::PlainStore(const std::string &directory, const Options &options)
    : directory_(directory), options_(options), directory_lock_(directory),
      cache_(options.cache_bytes)
{
    recover();
    begin_work();
}

PlainStore::~PlainStore()
{
    end_work();
}

void PlainStore::recover()
{
    std::vector<uint64_t> logs;
    uint64_t next = 1;
    bool has_data = false;
    for (const std::string &file : names_in(directory_)) {
        const auto [kind, number] = parse(file);
        if (kind.empty())
            continue;
        next = std::max(next, number + 1);
        has_data |= kind == "table";
        if (kind == "log") {
            logs.push_back(number);
            has_data |= File(log_path(number), File::Use::read).size() > 0;
        }
    }
    std::optional<State> state = read_manifest(directory_, cache_);
    if (!state && has_data)
        throw Error(EBADMSG,
                    directory_ +
                        "/CURRENT: is missing; restore it: it has the name of the newest MANIFEST");
    if (!state && !options_.create)
        throw Error(ENOENT, directory_ + ": has no store; to make one, open it with `create`");
    if (!state)
        state.emplace();
    next_number_ = std::max(next, state->next_number);

    std::sort(logs.begin(), logs.end());
    for (uint64_t log : logs)
        if (log >= state->log) {
            Memtable memtable;
            replay(log, memtable, state->last_sequence);
            if (!memtable.empty())
                add_table(*state, memtable);
        }
    state->log = log_number_ = next_number_++;
    log_ = std::make_shared<Log>(log_path(log_number_));
    const uint64_t manifest = next_number_++;
    state->next_number = next_number_;
    manifest_ = std::make_unique<Manifest>(directory_, manifest, *state);
    version_ = std::make_shared<const Version>(state->version);
    last_sequence_ = state->last_sequence;
    delete_files([&](std::string_view kind, uint64_t number) {
        if (kind == "manifest")
            return number != manifest;
        if (kind == "log")
            return number != log_number_;
        const Tables all = version_->all();
        return std::none_of(all.begin(), all.end(),
                            [&](const auto &t) { return t->info().number == number; });
    });
}

void PlainStore::replay(uint64_t log, Memtable &memtable, Sequence &last)
{
    const std::string path = log_path(log);
    read_log(path, [&](std::string_view record) {
        Sequence end = read_batch(
            record, [&](Sequence sequence, Kind kind, std::string_view key,
                        std::string_view value) { memtable.add(sequence, kind, key, value); });
        if (end == 0)
            damaged(path, 0, "a batch in the log makes no sense");
        last = std::max(last, end - 1);
    });
}

void PlainStore::add_table(State &state, const Memtable &memtable)
{
    Edit edit;
    edit.added.emplace_back(0, write_table(memtable, next_number_++));
    state.apply(edit, {std::make_shared<Table>(directory_, edit.added[0].second, cache_)});
}

// What cannot be deleted now is tried again at the next opening.
void PlainStore::delete_files(const std::function<bool(std::string_view, uint64_t)> &which)
{
    for (const std::string &file : names_in(directory_)) {
        const auto [kind, number] = parse(file);
        if (!kind.empty() && which(kind, number))
            unlink((directory_ + "/" + file).c_str());
    }
}

} // namespace lsm
