// The transaction over container and tiers.
//
// Invariants
//   1. A slot that a commit makes durable leads to a value that was synced before.
//   2. extents[e] is the number of bytes of values to which slots lead. It changes with the slots. An
//      extent is discarded after the commit that made it 0 has returned, and not during a backup.
//   3. The background changes nothing in the container. What it has prepared takes effect in commit(), where
//      the slot is as it was.
#include "tiered/directory.hpp"
#include "tiered/registry.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <xxhash.h>

namespace tiered
{
namespace
{

std::string name_of(const schema &type, unsigned field, const void *at)
{
    const auto &one = type.fields()[field];
    char id[24];
    snprintf(id, sizeof id, "0x%zx", reinterpret_cast<uintptr_t>(at) - one.offset);
    return std::string(type.name()) + " " + id + ", field `" + std::string(one.name) + "`";
}

// A tier of the user's may throw anything.
int number_of(const std::exception &failure)
{
    const auto *known = dynamic_cast<const std::system_error *>(&failure);
    const int number = known ? known->code().value() : EIO;
    return number == EFBIG || number == EDQUOT ? ENOSPC : number; // other tiers may have room
}

} // namespace

uint32_t sum_of(bytes value)
{
    return static_cast<uint32_t>(XXH3_64bits(value.data(), value.size()));
}

bool store::implementation::has_room(uint8_t tier, const slot &old, uint64_t bytes,
                                     bool may_move) const
{
    const uint64_t more = growth(tier, old, bytes);
    return more == 0 || // also in a tier that is over its budget
           root->tiers[tier].used + more <= (may_move ? high_water(budgets[tier]) : budgets[tier]);
}

// Store a value. No slot leads to it yet.
slot store::implementation::place(uint8_t tier, bytes value)
{
    slot made;
    made.tier = tier;
    made.length = static_cast<uint32_t>(value.size());
    if (lies_in_slot(tier, value.size())) {
        std::ranges::copy(value, static_cast<std::byte *>(made.value()));
    } else if (tier == tier_pm) {
        void *memory = allocate(value.size());
        memcpy(memory, value.data(), value.size());
        made.where = reinterpret_cast<uintptr_t>(memory);
    } else {
        made.where = tiers[tier]->set(value);
        made.sum = sum_of(value);
    }
    return made;
}

void store::implementation::count_live(uint8_t tier, uint64_t place, int64_t bytes)
{
    const uint64_t key = extent_key(tier, place);
    uint64_t &extent = root->extents[key];
    extent += static_cast<uint64_t>(bytes);
    has_work_ |= is_sparse(key, extent);
    if (extent == 0) {
        root->extents.erase(key);
        emptied_.insert(key);
    }
}

// Let a slot lead to a value that place() has stored. Returns the memory of the one before, if the container
// had it.
void *store::implementation::replace(slot &to, const slot &made)
{
    if (made.tier != tier_pm) {
        count_live(made.tier, made.where, made.length); // ENOSPC; nothing else fails
        set_.push_back({made.tier, made.where});
    }
    root->tiers[made.tier].used += bytes_in(made.tier, made.length);
    void *memory = forget_value(to);
    to = made;
    return memory;
}

// The same; if that is not possible, the value goes again.
void *store::implementation::install(slot &to, const slot &made)
{
    try {
        return replace(to, made);
    } catch (const error &) {
        forget_copy(made);
        throw;
    }
}

// Make a slot empty. Returns its value's memory in the container, if it has some.
void *store::implementation::forget_value(slot &from)
{
    forget_prepared(&from);
    const slot old = std::exchange(from, {});
    if (old.tier == tier_none || is_lost(old))
        return nullptr;
    root->tiers[old.tier].used -= bytes_in(old.tier, old.length);
    if (old.tier == tier_pm)
        return lies_in_slot(old.tier, old.length) ? nullptr : reinterpret_cast<void *>(old.where);
    dropped_.push_back({old.tier, old.where});
    count_live(old.tier, old.where, -int64_t(old.length));
    return nullptr;
}

void store::implementation::set(slot &to, bytes value, const schema &type, unsigned field)
{
    const auto &of = type.fields()[field];
    if (value.size() > value_bytes_max)
        throw error(EFBIG, name_of(type, field, &to) + ": a value has " +
                               std::to_string(value.size()) + " bytes; at most " +
                               std::to_string(value_bytes_max) +
                               " are possible; divide it among several objects");
    std::lock_guard guard(lock);
    forget_prepared(&to);
    std::string reasons;
    for (size_t i = 0; i < of.tiers.size() && !of.tiers[i].empty(); i++) {
        const uint8_t tier = value.empty() ? uint8_t(tier_pm) : tier_id(of.tiers[i]);
        const bool may_move = i + 1 < of.tiers.size() && !of.tiers[i + 1].empty();
        if (!has_room(tier, to, value.size(), may_move) &&
            (may_move || !make_room(tier, growth(tier, to, value.size())))) {
            reasons += (reasons.empty() ? "" : "; ") + usage_text(tier);
            continue;
        }
        if (tier == tier_pm && to.tier == tier_pm && to.length == value.size()) {
            std::ranges::copy(value, static_cast<std::byte *>(to.value()));
            return;
        }
        try {
            pm_free(install(to, place(tier, value)));
            return;
        } catch (const std::exception &failure) {
            const int number = number_of(failure);
            if (number != ENOSPC)
                throw error(number, name_of(type, field, &to) + ": " + failure.what());
            reasons += (reasons.empty() ? "" : "; ") + std::string(failure.what());
        }
    }
    throw error(ENOSPC, name_of(type, field, &to) + ": no tier has room for " +
                            std::to_string(value.size()) + " bytes (" + reasons +
                            "); free objects, or raise a budget");
}

std::string store::implementation::usage_text(uint8_t tier) const
{
    return std::string(root->tiers[tier].name) + " has " + std::to_string(root->tiers[tier].used) +
           " of " + std::to_string(budgets[tier]) + " bytes in use";
}

bool store::implementation::read(const slot &from, std::span<std::byte> value, const schema &type,
                                 unsigned field) const
{
    if (is_lost(from))
        return false;
    try {
        if (!tiers[from.tier]->get(from.where, value))
            return false;
        if (sum_of(value) != from.sum)
            throw error(EBADMSG, tiers[from.tier]->name_of(from.where) +
                                     ": the value is not the one that was stored");
        return true;
    } catch (const std::exception &failure) {
        const int number = number_of(failure);
        const bool is_damaged = number == EBADMSG || number == ENOENT;
        throw error(number, name_of(type, field, &from) + ": " + failure.what() +
                                (is_damaged ? "; set the field again, or restore a backup"
                                            : "; the value may still be there: read it again"));
    }
}

size_t store::implementation::commit()
{
    std::lock_guard guard(lock);
    const size_t moved = publish();
    for (const auto &one : tiers)
        if (one)
            one->sync();
    as_error([this] { container.commit(); });
    to_free_.insert(to_free_.end(), dropped_.begin(), dropped_.end());
    dropped_.clear();
    set_.clear();
    unneeded_.merge(emptied_);
    emptied_.clear();
    discard_unneeded();
    look_for_work();
    return moved;
}

// Nothing leads to these values any more. If a tier cannot free one, it goes with its extent.
void store::implementation::free_values()
{
    for (const location &one : std::exchange(to_free_, {}))
        try {
            tiers[one.tier]->free(one.place);
        } catch (const std::exception &) {
        }
}

void store::implementation::rollback()
{
    std::lock_guard guard(lock);
    while (!prepared_.empty())
        forget_prepared(prepared_.begin()->first);
    in_flight_.clear();
    cursor_ = nullptr; // its record may go
    as_error([this] { container.rollback(); });
    for (const location &one : set_) {
        to_free_.push_back(one);
        unneeded_.insert(extent_key(one.tier, one.place));
    }
    set_.clear();
    dropped_.clear();
    moved_out_.clear();
    emptied_.clear();
    discard_unneeded();
}

// A copy that is prepared, or being made, may lie in an extent to which no slot leads yet. What the open
// transaction has emptied may be needed after a rollback.
void store::implementation::discard_unneeded()
{
    if (backups_ > 0)
        return;
    free_values();
    if (preparing_ > 0)
        return;
    std::set<uint64_t> wanted = emptied_;
    for (const auto &[at, one] : prepared_)
        wanted.insert(extent_key(one.after.tier, one.after.where));
    for (auto at = unneeded_.begin(); at != unneeded_.end();) {
        const uint64_t key = *at;
        if (wanted.contains(key)) {
            ++at;
            continue;
        }
        try {
            if (!root->extents.contains(key))
                tiers[key >> 32]->discard(static_cast<uint32_t>(key));
            at = unneeded_.erase(at);
        } catch (
            const std::exception &) { // the commit has succeeded, and the next opening tries again
            ++at;
        }
    }
}

void store::implementation::backup(const std::filesystem::path &to)
{
    namespace fs = std::filesystem;
    const fs::path unfinished = to.string() + ".new";
    bool is_renamed = false;
    std::error_code code;
    if (fs::exists(to) || !fs::create_directory(unfinished, code))
        throw error(code ? code.value() : EEXIST,
                    to.string() + ": cannot make a backup there: " +
                        (code ? code.message() : "it exists, or " + unfinished.string() + " does") +
                        "; choose another path");
    // Until this goes, no value of the copied container is discarded.
    const std::shared_ptr<void> hold(nullptr, [this](void *) {
        std::lock_guard guard(lock);
        backups_--;
        discard_unneeded();
    });
    {
        std::lock_guard guard(lock);
        backups_++;
    }
    try {
        as_error([&] {
            container.copy(unfinished / container_name); // before the values
            for (uint8_t id = tier_dram; id < tiers_max; id++)
                if (tiers[id])
                    tiers[id]->copy(unfinished /
                                    (id == tier_disk ? values_name : root->tiers[id].name));
            fs::copy_file(directory / identity_name, unfinished / identity_name);
            sync_file(unfinished / identity_name);
            sync_directory(unfinished);
            fs::rename(unfinished, to);
            is_renamed = true;
            sync_directory(fs::absolute(to).parent_path());
        });
    } catch (...) {
        fs::remove_all(is_renamed ? to : unfinished, code);
        throw;
    }
}

} // namespace tiered
