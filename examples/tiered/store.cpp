// The interface of a store: opening, objects, roots.
#include "tiered/directory.hpp"
#include "tiered/registry.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <cxxabi.h>
#include <fstream>
#include <random>

namespace tiered
{
namespace
{

namespace fs = std::filesystem;

constexpr const char *layout = "tiered/3 libstdc++";

// The tracker is always PM_TRACKER_FAULTS. The other one needs a mark for each store, and libtiered is
// compiled without marks. libtiered cannot announce its stores either. Names and extents are in a
// std::map, and only the map knows the nodes to which the map stores. And if a program is not compiled by
// pmcc, its collections have no marks at all.
//
// The engine is undo only if the program asks for it. Undo must log a page before a store to the page, and
// on a full disk the process ends there. Redo logs in commit(), which throws.
pm::container opened(const fs::path &directory, const options &options)
{
    std::error_code code;
    if (options.create && fs::create_directories(directory, code))
        sync_directory(fs::absolute(directory / "..").lexically_normal());
    if (code)
        throw error(code.value(),
                    directory.string() + ": cannot make the store: " + code.message());
    pm::options how;
    how.flags = options.create ? PM_CREATE : 0;
    how.layout = layout;
    how.max_size = options.max_size;
    how.segment_size = block_bytes;
    const fs::path path =
        options.container.empty() ? directory / container_name : options.container;
    const auto open = [&](pm_engine engine) {
        how.engine = engine;
        return as_error([&] { return pm::container(path, how); });
    };
    if (options.engine != PM_ENGINE_AUTO)
        return open(options.engine);
    try {
        return open(PM_ENGINE_REDO);
    } catch (const error &failure) {
        if (failure.code().value() != ENOTSUP)
            throw;
    }
    return open(PM_ENGINE_AUTO); // a container of the log engine
}

void demand_name(const std::string &name)
{
    if (name.empty() || name.size() >= sizeof store_root::tier_state::name)
        throw error(EINVAL, "a tier has the name `" + name + "`; 1 to 31 characters are possible");
    for (const char *taken : {"dram", "pm", "disk", container_name, values_name, identity_name})
        if (name == taken || name.find('/') != std::string::npos)
            throw error(EINVAL, "a tier of the program's own has the name `" + name +
                                    "`, which a backup needs for something else, or with a slash; "
                                    "choose another");
}

std::string in_words(const std::string &type)
{
    int status = 0;
    const std::unique_ptr<char, void (*)(void *)> words(
        abi::__cxa_demangle(type.c_str(), nullptr, nullptr, &status), std::free);
    return status == 0 ? words.get() : type;
}

bool has_files(const fs::path &directory)
{
    std::error_code none; // no directory, no files
    return fs::directory_iterator(directory, none) != fs::directory_iterator();
}

} // namespace

store::implementation::implementation(const fs::path &directory, const options &options)
    : directory(directory), container(opened(directory, options))
{
    std::fill(std::begin(budgets), std::end(budgets), UINT64_MAX);
    root = container.root<store_root>();
    open_root();
    check_directory(options.container.empty() ? directory / container_name : options.container);
    open_tiers(options);
    enter(this);
    try {
        check_types();
        commit();
        has_work_ = true;
        background_ = std::thread([this] { run_background(); });
    } catch (...) {
        leave(this);
        throw;
    }
}

store::implementation::~implementation()
{
    {
        std::lock_guard guard(lock);
        closing_ = true;
    }
    changed_.notify_all();
    background_.join();
    leave(this);
}

void *store::implementation::allocate(size_t bytes)
{
    void *memory = pm_malloc(container.get(), bytes);
    return memory ? memory : throw error(errno, pm_errormsg());
}

// A crash may have come before the first commit.
void store::implementation::open_root()
{
    if (root)
        return;
    root = new (allocate(sizeof(store_root))) store_root();
    container.set_root(root);
    std::random_device random;
    root->identity = uint64_t(random()) << 32 | random() | 1;
    for (const auto &[id, name] :
         {std::pair(tier_dram, "dram"), {tier_pm, "pm"}, {tier_disk, "disk"}})
        strcpy(root->tiers[id].name, name);
    as_error([this] { container.commit(); });
}

// Whatever value the container does not know will be deleted. So a container and a directory have the same
// identity. The container's is durable first: if the directory has none, it has no values either.
void store::implementation::check_directory(const fs::path &container_path)
{
    const fs::path path = directory / identity_name;
    uint64_t found = 0;
    if (std::ifstream in(path); in >> found && found == root->identity)
        return;
    const auto ours = root->extents.lower_bound(uint64_t(tier_disk) << 32);
    if (found != 0 || has_files(directory / values_name) ||
        (ours != root->extents.end() && ours->first >> 32 == tier_disk))
        throw error(EINVAL, container_path.string() + ": is not the container of the values in " +
                                directory.string() + ", as " + path.string() +
                                " is of another or missing; give the right container in "
                                "options::container, or copy container.pm, values and identity "
                                "from a backup");
    const fs::path unfinished = path.string() + ".new";
    if (!(std::ofstream(unfinished) << root->identity << '\n').flush())
        throw error(errno,
                    unfinished.string() + ": cannot be written; is there room, and may you?");
    sync_file(unfinished);
    as_error([&] { fs::rename(unfinished, path); });
    sync_directory(directory);
}

void store::implementation::open_tiers(const options &options)
{
    tiers[tier_dram] = make_memory_tier();
    tiers[tier_disk] = make_file_tier(directory / values_name);
    for (const auto &[name, own] : options.tiers) {
        demand_name(name);
        uint8_t id = tier_first_of_user;
        while (id < tiers_max && *root->tiers[id].name && name != root->tiers[id].name)
            id++;
        if (id == tiers_max)
            throw error(EINVAL, directory.string() + ": no more than " +
                                    std::to_string(tiers_max - tier_first_of_user) +
                                    " tiers of the user's are possible");
        strcpy(root->tiers[id].name, name.c_str());
        tiers[id] = own;
    }
    for (const auto &[name, bytes] : options.budgets)
        budgets[tier_id(name)] = bytes;
    for (uint8_t id = tier_dram; id < tiers_max; id++) {
        if (!tiers[id] && id != tier_pm && root->tiers[id].used > 0)
            throw error(EINVAL, directory.string() + ": has values in the tier `" +
                                    root->tiers[id].name + "`; give it in options::tiers");
        if (tiers[id])
            tiers[id]->keep(extents_to_keep(id));
    }
}

// Values of a volatile tier went with the process that had them. Their slots stay, and keep their places.
std::set<uint32_t> store::implementation::extents_to_keep(uint8_t tier)
{
    std::set<uint32_t> extents;
    const auto first = root->extents.lower_bound(uint64_t(tier) << 32);
    auto end = first;
    for (; end != root->extents.end() && end->first >> 32 == tier; ++end)
        extents.insert(static_cast<uint32_t>(end->first));
    if (!tiers[tier]->is_volatile())
        return extents;
    store_root::tier_state &state = root->tiers[tier];
    root->extents.erase(first, end);
    state.used = 0;
    if (!extents.empty())
        state.lost_end = *extents.rbegin() + uint64_t(1);
    return state.lost_end > 0 ? std::set{static_cast<uint32_t>(state.lost_end - 1)}
                              : std::set<uint32_t>{};
}

void store::implementation::check_types()
{
    for (const schema *type : schema::all()) {
        for (const field &one : type->fields())
            for (const std::string_view tier : one.tiers)
                if (one.in_slot && !tier.empty())
                    tier_id(tier);
        const string name(type->name(), root->in<char>());
        auto found = root->types.find(name);
        if (found == root->types.end()) {
            found =
                root->types.emplace(name, type_state{string(type->text(), root->in<char>())}).first;
            found->second.objects.record_bytes = type->record_bytes();
        }
        const std::string difference = type->difference(found->second.text);
        if (!difference.empty())
            throw error(EMEDIUMTYPE, directory.string() + ": was written by another version of `" +
                                         std::string(type->name()) + "`: " + difference +
                                         "; open it with a program of that version, and copy the "
                                         "objects to a new store");
        types_.emplace_back(type, &found->second);
    }
}

type_state &store::implementation::state_of(const schema &type) const
{
    const auto found = std::ranges::find(types_, &type, [](const auto &one) { return one.first; });
    if (found == types_.end()) // its library was loaded later
        throw error(EINVAL, directory.string() + ": was opened before the type `" +
                                std::string(type.name()) + "` was loaded; open it again");
    return *found->second;
}

void store::implementation::demand_record(const void *record, const schema &type) const
{
    if (!has(record) || !state_of(type).objects.has(record))
        throw error(EINVAL, directory.string() + ": no " + std::string(type.name()) +
                                " has the id " +
                                std::to_string(reinterpret_cast<uintptr_t>(record)) +
                                "; it was destroyed, is a field of another object, or of another "
                                "store");
}

uint8_t store::implementation::tier_id(std::string_view name) const
{
    for (uint8_t id = tier_dram; id < tiers_max; id++)
        if (name == root->tiers[id].name && (tiers[id] || id == tier_pm))
            return id;
    throw error(EINVAL, directory.string() + ": the tier `" + std::string(name) +
                            "` is unknown; give it in options::tiers");
}

store::store(const fs::path &directory, const options &options)
    : all_(std::make_unique<implementation>(directory, options))
{
}

store::~store() = default;

const fs::path &store::directory() const
{
    return all_->directory;
}

void *store::make(const schema &type)
{
    std::lock_guard guard(all_->lock);
    return all_->state_of(type).objects.make([&] {
        void *memory = pm_aligned_alloc(all_->container.get(), block_bytes, block_bytes);
        return memory ? memory : throw error(errno, pm_errormsg());
    });
}

void store::destroy(const schema &type, void *record)
{
    std::lock_guard guard(all_->lock);
    records &objects = all_->state_of(type).objects;
    all_->demand_record(record, type);
    for (const field &one : type.fields())
        if (one.in_slot)
            all_->drop(*reinterpret_cast<slot *>(static_cast<char *>(record) + one.offset));
    objects.free(record);
}

block *store::first_block(const schema &type) const
{
    return all_->state_of(type).objects.first;
}

void *store::find(const schema &type, uint64_t id) const
{
    const auto record = reinterpret_cast<void *>(id);
    all_->demand_record(record, type);
    return record;
}

void *store::root(const std::string &name, const char *kind, size_t bytes, make_root *make)
{
    store_root *in = all_->root;
    std::lock_guard guard(all_->lock);
    const string key(name, in->in<char>());
    auto found = in->names.find(key);
    if (found == in->names.end()) {
        void *memory = all_->allocate(bytes);
        make(memory, in);
        found = in->names.emplace(key, name_state{string(kind, in->in<char>()), memory}).first;
    }
    if (found->second.kind != kind)
        throw error(EINVAL, all_->directory.string() + ": the root `" + name + "` is a " +
                                in_words(found->second.kind.c_str()) + ", not a " + in_words(kind));
    return found->second.object;
}

void store::commit()
{
    all_->commit();
}

void store::rollback()
{
    all_->rollback();
}

usage store::usage_of(const std::string &tier) const
{
    std::lock_guard guard(all_->lock);
    const uint8_t id = all_->tier_id(tier);
    return {all_->root->tiers[id].used, all_->budgets[id]};
}

void store::set_budget(const std::string &tier, uint64_t bytes)
{
    all_->set_budget(all_->tier_id(tier), bytes);
}

void store::settle()
{
    all_->settle();
}

void store::backup(const fs::path &directory)
{
    all_->backup(directory.has_filename() ? directory : directory.parent_path());
}

void store::set(slot &to, bytes value, const schema &type, unsigned field)
{
    open_at(&to).set(to, value, type, field);
}

bool store::read(const slot &from, std::span<std::byte> value, const schema &type, unsigned field)
{
    return open_at(&from).read(from, value, type, field);
}

use::use(store &store) : before_(use_root(store.all_->root)) {}

use::~use()
{
    use_root(before_);
}

} // namespace tiered
