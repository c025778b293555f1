// Opening: read the manifest, map the container, and read the logs. What is not in tables yet becomes the
// memtables of the store, which are written in the background as usual. If the manifest has got long, a new
// one begins. If opening fails, or a crash ends it, the old manifest and the old logs still count.
#include "lsm/store.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <unistd.h>

namespace lsm
{
namespace
{


void demand(bool holds, const std::string &directory, const char *what)
{
    if (!holds)
        throw Error(EINVAL, directory + ": " + what);
}

std::string absolute(const std::string &path)
{
    return std::filesystem::absolute(path);
}

struct Name {
    std::string_view kind; // "log", "table", "values", "manifest", or "" of any other file
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
    bool is_ours = kind == "log" || kind == "table" || kind == "values" || kind == "manifest";
    return is_ours && error == std::errc() && end == digits.data() + digits.size() ? parsed
                                                                                   : Name{};
}

} // namespace

std::unique_ptr<Store> Store::open(const std::string &directory, const Options &options)
{
    demand(options.memtable_bytes >= memtable_min, directory,
           "options.memtable_bytes must be at least 256 KiB");
    demand(options.garbage_share >= 0 && options.garbage_share <= 1, directory,
           "options.garbage_share must be from 0 to 1");
    demand(options.table_bytes > 0 && options.level_bytes > 0 && options.block_bytes > 0, directory,
           "options.table_bytes, level_bytes and block_bytes must not be 0");
    demand(options.block_bytes <= 64 << 20, directory,
           "options.block_bytes must be at most 64 MiB");
    demand(options.bloom_bits <= 64, directory, "options.bloom_bits must be at most 64");
    demand(options.read_workers <= 64, directory, "options.read_workers must be at most 64");
    if (options.create)
        make_directory(directory);
    return std::make_unique<LsmStore>(directory, options);
}

LsmStore::LsmStore(const std::string &directory, const Options &options)
    : options_(options), directory_lock_(directory), cache_(options.cache_bytes),
      places_(Places::read(directory)), values_(directory),
      storage_{places_, nullptr, cache_, values_}
{
    if (options_.memtables == Memtables::as_before)
        options_.memtables = places_.memtables;
    demand(options_.persistent_bytes >= memtable_min || options_.memtables == Memtables::key_lsm,
           directory, "options.persistent_bytes must be at least 256 KiB");
    recover();
    if (options_.read_workers > 0)
        parallel_ = std::make_unique<ParallelReader>(options_.read_workers);
    begin_work();
}

LsmStore::~LsmStore()
{
    end_work();
}

void LsmStore::recover()
{
    const std::string &directory = places_.directory;
    std::vector<uint64_t> logs;
    uint64_t next = 1;
    bool has_data = false;
    for (const std::string &file : names_in(directory)) {
        const auto [kind, number] = parse(file);
        if (kind.empty())
            continue;
        next = std::max(next, number + 1);
        has_data |= kind == "table" || kind == "values";
        if (kind == "log") {
            logs.push_back(number);
            has_data |= File(log_path(number), File::Use::read).size() > 0;
        }
    }
    open_container();
    std::optional<State> state = read_manifest(storage_);
    if (!state && has_data)
        throw Error(EBADMSG,
                    directory +
                        "/CURRENT: is missing; restore it: it has the name of the newest MANIFEST");
    if (!state && !options_.create)
        throw Error(ENOENT, directory + ": has no store; to make one, open it with `create`");
    if (!state)
        state.emplace();
    const auto pieces = container_ ? container_->tables() : std::vector<uint64_t>();
    for (const uint64_t number : pieces)
        next = std::max(next, number + 1);
    next_number_ = std::max(next, state->next_number);
    last_sequence_ = state->last_sequence;

    check_places(*state);
    open_places();
    set_budget(options_.persistent_bytes);
    std::erase_if(logs, [&](uint64_t number) { return number < state->log; });
    const bool any_dropped = take(found_buffers(logs));
    const bool to_container = options_.memtables == Memtables::key_lsm;
    const bool goes_on = state->goes_on(to_container);
    const uint64_t manifest = to_container ? 0 : goes_on ? state->manifest : next_number_++;
    state->next_number = next_number_;
    const bool has_new_places =
        state->container_id != places_.container_id || state->fast_id != places_.fast_id;
    Edit places;
    places.container_id = state->container_id = places_.container_id;
    places.fast_id = state->fast_id = places_.fast_id;
    manifest_ = std::make_unique<Manifest>(storage_, manifest, *state);
    bool unknown;
    if (goes_on && has_new_places)
        manifest_->append(places, state->version, unknown);
    if (container_)
        container_->claim();
    if (!places_.fast.empty())
        places_.claim_fast();
    version_ = std::make_shared<const Version>(state->version);
    std::set<uint64_t> tables, values;
    for (const auto &table : version_->all()) {
        tables.insert(table->info().number);
        for (const auto &[file, bytes] : table->info().values)
            values.insert(file);
    }
    delete_files([&](std::string_view kind, uint64_t number) {
        if (kind == "manifest")
            return number != manifest;
        if (kind == "log")
            return std::none_of(buffers_->begin(), buffers_->end(),
                                [&](const Buffer &b) { return b.log_number == number; });
        return kind == "values" ? !values.contains(number) : !tables.contains(number);
    });
    for (const uint64_t number : pieces)
        if (!tables.contains(number))
            container_->drop_table(number);
    if (any_dropped)
        sync_directory(directory); // else a log could come back, whose numbers new writes have
}

// PLACES may be ahead of the manifest, by what the last opening was making when a crash ended it. Nothing is
// there then. But PLACES may not lack anything.
void LsmStore::check_places(const State &state) const
{
    if ((state.container_id && places_.container_id != state.container_id) ||
        (state.fast_id && places_.fast_id != state.fast_id))
        throw Error(EBADMSG,
                    places_.directory +
                        "/PLACES: does not name the container or the fast directory that the "
                        "manifest names; restore it from a backup");
}

// The one that PLACES names.
void LsmStore::open_container()
{
    if (places_.container.empty())
        return;
    container_ = std::make_unique<Container>(places_.container_path(), nullptr);
    storage_.container = container_.get();
    if (container_->id() != places_.container_id)
        throw Error(EBADMSG, places_.container_path() +
                                 ": has the memtables of another store; restore those of " +
                                 places_.directory + " from a backup");
}

void LsmStore::open_places()
{
    const Places before = places_;
    places_.memtables = options_.memtables;
    const bool is_new = places_.container.empty();
    if (is_new && options_.memtables == Memtables::merging) // else a few lists could fill it
        demand(options_.container_bytes / 16 >= options_.memtable_bytes, places_.directory,
               "options.container_bytes must be at least sixteen times memtable_bytes");
    if (is_new && options_.memtables == Memtables::key_lsm)
        demand(options_.container_bytes / 4 >= options_.persistent_bytes &&
                   options_.container_bytes - 4 * options_.persistent_bytes >=
                       key_lsm_memtables * options_.memtable_bytes,
               places_.directory,
               "options.container_bytes must be at least four times persistent_bytes and "
               "sixteen times memtable_bytes");
    if (is_new && options_.memtables != Memtables::dram) {
        places_.container =
            options_.container.empty() ? "memtables.pm" : absolute(options_.container);
        container_ = std::make_unique<Container>(places_.container_path(), &options_);
        storage_.container = container_.get();
        places_.container_id = container_->id();
    }
    if (places_.fast.empty() && !options_.fast_directory.empty()) {
        make_directory(options_.fast_directory);
        places_.fast = absolute(options_.fast_directory);
        places_.begin_fast();
    }
    if (places_ != before)
        places_.write();
    demand(options_.fast_levels == 0 || !places_.fast.empty(), places_.directory,
           "options.fast_levels needs a fast_directory");
}

// What has writes that may be in no table: memtables in the container, and logs.
Buffers LsmStore::found_buffers(const std::vector<uint64_t> &logs) const
{
    Buffers found;
    if (container_)
        for (const auto &table : container_->memtables()) {
            Buffer buffer;
            buffer.table = table;
            buffer.first = table->first();
            buffer.last = table->last();
            buffer.synced = table->synced();
            buffer.sealed = true;
            found.push_back(std::move(buffer));
        }
    for (const uint64_t number : logs) {
        Buffer buffer;
        buffer.table = std::make_shared<Memtable>(options_.memtable_bytes / filter_share);
        buffer.log = std::make_shared<Log>(log_path(number));
        buffer.log_number = number;
        buffer.sealed = true;
        replay(buffer);
        found.push_back(std::move(buffer));
    }
    return found;
}

void LsmStore::replay(Buffer &buffer) const
{
    const std::string path = log_path(buffer.log_number);
    read_log(path, [&](std::string_view record) {
        const Sequence first = BatchAccess::sequence(record);
        const Sequence end = read_batch(
            record, first,
            [&](Sequence sequence, Kind kind, std::string_view key, std::string_view value) {
                buffer.table->add(sequence, kind, key, value);
            });
        if (end == 0)
            damaged(path, 0, "a batch in the log makes no sense");
        if (buffer.first == 0)
            buffer.first = first;
        buffer.last = end - 1;
        buffer.synced |= BatchAccess::is_synced(record);
    });
}

// Make memtables of what was found, in the order of their writes, as far as no write is missing between them.
// Returns whether there is more.
//
// After a power failure the last writes of a log may be missing, if none asked for `sync` since. Then all
// that came later goes, too. But if a later write asked for `sync`, everything before it was durable, and so
// it has been damaged. The same is true if no log is there that can have had the missing writes.
bool LsmStore::take(Buffers found)
{
    std::sort(found.begin(), found.end(), [](const Buffer &a, const Buffer &b) {
        return std::pair(a.last, a.first) < std::pair(b.last, b.first);
    });
    uint64_t empty_log = UINT64_MAX; // the first that has no writes; perhaps it had some
    for (const Buffer &buffer : found)
        if (buffer.log && buffer.table->empty())
            empty_log = std::min(empty_log, buffer.log_number);

    Buffers taken; // from old to new
    bool has_gap = false;
    for (Buffer &buffer : found) {
        newest_log_ = std::max(newest_log_, buffer.log_number);
        const bool is_empty = buffer.last < buffer.first || (buffer.log && buffer.table->empty());
        const bool is_needed = !is_empty && buffer.last > last_sequence_;
        has_gap |= is_needed && buffer.first > last_sequence_ + 1;
        const bool was_in_log = (!taken.empty() && taken.back().log) ||
                                empty_log < (buffer.log ? buffer.log_number : UINT64_MAX);
        if (has_gap && is_needed && (!was_in_log || buffer.synced))
            throw Error(EBADMSG, places_.directory + ": the log with the writes from number " +
                                     std::to_string(last_sequence_ + 1) +
                                     " on is missing or damaged; restore it from a backup");
        if (is_needed && !has_gap) {
            last_sequence_ = buffer.last;
            taken.push_back(std::move(buffer));
        } else if (PersistentMemtable *persistent = buffer.persistent()) {
            persistent->drop();
        }
    }
    buffers_ = std::make_shared<Buffers>(taken.rbegin(), taken.rend());
    go_on();
    return has_gap;
}

// Let one of the memtables that were found take writes again, or begin one.
void LsmStore::go_on()
{
    const bool in_place = !has_logs() || options_.memtables == Memtables::mutable_persistent;
    const auto unseal = [](Buffers &buffers) { newest_persistent(buffers)->sealed = false; };
    if (in_place && !buffers_->empty() && buffers_->front().persistent() &&
        !is_full(buffers_->front()))
        change_buffers(unseal);
    else
        begin_buffer();
    const auto below = newest_persistent(*buffers_);
    if (options_.memtables == Memtables::immutable_persistent && below != buffers_->end() &&
        !is_full(*below))
        change_buffers(unseal);
}

// What cannot be deleted now is tried again at the next opening.
void LsmStore::delete_files(const std::function<bool(std::string_view, uint64_t)> &which)
{
    for (const std::string &directory : {places_.directory, places_.fast})
        if (!directory.empty())
            for (const std::string &file : names_in(directory)) {
                const auto [kind, number] = parse(file);
                if (!kind.empty() && which(kind, number))
                    unlink((directory + "/" + file).c_str());
            }
}

} // namespace lsm
