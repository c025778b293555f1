// A new manifest begins with one edit that says everything. An opening begins one when the last has got
// long, so none grows for ever. In the container, edits take room that tables and memtables need. So there
// another begins as soon as the last is long. The edits that the container had of an earlier time count for
// nothing as long as CURRENT names another manifest.
#include "lsm/manifest.hpp"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

namespace lsm
{
namespace
{

constexpr char current_name[] = "CURRENT", container_name[] = "CONTAINER";

constexpr uint64_t long_bytes = 1 << 20, long_in_container = 64 << 10;

std::string name_of(uint64_t number)
{
    return "MANIFEST-" + std::to_string(number);
}

uint64_t number_of(const std::string &name)
{
    return std::stoull(name.substr(name.find('-') + 1));
}

std::string fresh_path(const std::string &path)
{
    unlink(path.c_str()); // of an opening that a crash ended
    return path;
}

Edit whole(const State &state, const Version &version)
{
    Edit edit{
        state.log, state.next_number, state.last_sequence, state.container_id, state.fast_id, {},
        {}};
    for (const auto &[level, table] : version.with_levels())
        edit.added.emplace_back(level, table->info());
    return edit;
}

} // namespace

void State::apply(const Edit &edit, const Tables &opened)
{
    version = version.after(edit, opened);
    log = edit.log ? edit.log : log;
    next_number = edit.next_number ? edit.next_number : next_number;
    last_sequence = edit.last_sequence ? edit.last_sequence : last_sequence;
    container_id = edit.container_id ? edit.container_id : container_id;
    fast_id = edit.fast_id ? edit.fast_id : fast_id;
}

std::optional<State> read_manifest(const Storage &storage)
{
    const std::string &directory = storage.places.directory;
    const std::string current = directory + "/" + current_name;
    if (!exists(current))
        return {};
    const std::string name = read_whole(current);
    const bool in_container = name == container_name;
    if (in_container && !storage.container)
        throw Error(EBADMSG, directory + "/PLACES: does not name the container, which has the "
                                         "manifest; restore it from a backup");
    const std::string path = in_container ? storage.container->path() : directory + "/" + name;
    State state;
    std::vector<std::pair<unsigned, TableInfo>> tables;
    bool any = false, is_whole = true;
    uint64_t bytes = 0;
    const auto read = [&](std::string_view record) {
        auto edit = Edit::of(record);
        if (!edit)
            damaged(path, 0, "an edit of the manifest makes no sense");
        any = true;
        bytes += record.size();
        for (uint64_t number : edit->removed)
            std::erase_if(tables, [&](const auto &t) { return t.second.number == number; });
        for (auto &table : edit->added)
            tables.push_back(table);
        edit->added.clear();
        state.apply(*edit, {});
    };
    if (in_container)
        for (const std::string_view edit : storage.container->edits())
            read(edit);
    else
        is_whole = read_log(path, read);
    if (!any)
        damaged(path, 0, "the manifest has no edit");
    Edit all;
    all.added = std::move(tables);
    Tables opened;
    for (const auto &[level, info] : all.added)
        opened.push_back(std::make_shared<Table>(storage, info));
    state.apply(all, opened);
    if (is_whole && bytes < long_bytes) {
        state.in_container = in_container;
        state.manifest = in_container ? 0 : number_of(name);
    }
    return state;
}

Manifest::Manifest(const Storage &storage, uint64_t number, const State &state)
    : container_(storage.container), state_(state)
{
    state_.version = {}; // it would keep its tables
    const std::string &directory = storage.places.directory;
    const bool to_container = number == 0, goes_on = state.goes_on(to_container);
    if (!to_container)
        log_.emplace(goes_on ? directory + "/" + name_of(state.manifest)
                             : fresh_path(directory + "/" + name_of(number)));
    if (goes_on) {
        if (log_)
            log_->sync(); // the last edit may have been written, but not synced
        else
            for (const std::string_view edit : container_->edits()) {
                whole_bytes_ = bytes_ == 0 ? edit.size() : whole_bytes_;
                bytes_ += edit.size();
            }
        return;
    }
    const std::string text = whole(state, state.version).text();
    if (log_) {
        log_->append(text);
        log_->sync();
        sync_directory(directory);
    } else {
        container_->begin_edits(text);
        bytes_ = whole_bytes_ = text.size();
    }
    replace(directory, current_name, log_ ? name_of(number) : container_name);
}

void Manifest::append_in_container(const Edit &edit, const Version &after)
{
    State state = state_;
    state.apply(edit, {});
    const bool is_long = bytes_ >= std::max(long_in_container, 2 * whole_bytes_);
    const std::string text = (is_long ? whole(state, after) : edit).text();
    if (is_long) {
        container_->begin_edits(text);
        bytes_ = 0;
        whole_bytes_ = text.size();
    } else {
        container_->append_edit(text);
    }
    bytes_ += text.size();
    state_ = state;
}

void Manifest::append(const Edit &edit, const Version &after, bool &unknown)
{
    unknown = false;
    if (!log_)
        try {
            return append_in_container(edit, after);
        } catch (const Error &error) {
            unknown = error.code().value() == EIO; // as libpm.h says
            throw;
        }
    log_->append(edit.text());
    unknown = true;
    log_->sync();
    unknown = false;
}

} // namespace lsm
