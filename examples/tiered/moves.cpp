// Promotion, demotion, and collecting. All three copy a value to another place in the background:
//
//     down      its tier uses more than 7/8 of the budget: to the field's next tier with room
//     up        a better tier of the field uses less than 3/4 of its budget: to that tier
//     together  less than half of its extent is live: to the same tier, so that the extent empties
//
// The thread walks over all records, some at a time under the lock. It copies values without the lock. Only
// where a field without a choice needs room, values go down at once: make_room().
#include "tiered/registry.hpp"

#include <algorithm>
#include <cstring>

namespace tiered
{
namespace
{

constexpr size_t records_at_once = 1024;
constexpr uint64_t prepared_bytes_max = 8 << 20; // what one commit publishes at most
constexpr uint64_t sparse_extent_min = 1 << 20;  // smaller ones are not worth it

slot &slot_in(void *record, const field &of)
{
    return *reinterpret_cast<slot *>(static_cast<char *>(record) + of.offset);
}

bool has_slots(const schema &type)
{
    return std::ranges::any_of(type.fields(), &field::in_slot);
}

} // namespace

// A walk over all records is worth it if the use of a tier with a budget has changed by a sixteenth of it.
// (Other reasons have set has_work_ already.)
void store::implementation::look_for_work()
{
    for (uint8_t tier = tier_dram; tier < tiers_max; tier++) {
        const uint64_t used = root->tiers[tier].used, then = used_then_[tier];
        if (std::max(used, then) - std::min(used, then) > budgets[tier] / 16)
            has_work_ = true;
    }
    if (has_work_)
        changed_.notify_all();
}

void store::implementation::set_budget(uint8_t tier, uint64_t bytes)
{
    std::lock_guard guard(lock);
    budgets[tier] = bytes;
    has_work_ = true;
    changed_.notify_all();
}

// No slot will lead to this copy.
void store::implementation::forget_copy(const slot &copy)
{
    if (copy.tier == tier_pm) // commit() would have stored it there
        return;
    to_free_.push_back({copy.tier, copy.where});
    unneeded_.insert(extent_key(copy.tier, copy.where));
}

// The slot changes, so copies of its value are void.
void store::implementation::forget_prepared(slot *at)
{
    in_flight_.erase(at);
    const auto found = prepared_.find(at);
    if (found == prepared_.end())
        return;
    const prepared &one = found->second;
    forget_copy(one.after);
    set_pending(one.before, one.after.tier, -1);
    prepared_bytes_ -= one.before.length;
    prepared_.erase(found);
}

// Let values that may lie elsewhere leave `tier` in this transaction, until `bytes` more have room. A getter
// may show one of them, so its memory goes with the commit.
bool store::implementation::make_room(uint8_t tier, uint64_t bytes)
{
    const uint64_t budget = budgets[tier];
    const auto has_room = [&](uint64_t spare) {
        return root->tiers[tier].used + bytes + spare <= budget;
    };
    const uint64_t spare = budget / 16; // so that not each value needs a walk
    for (const auto &[type, state] : types_)
        for (void *at = has_slots(*type) ? state->objects.walk_from(nullptr, 0, {}) : nullptr;
             at && !has_room(spare);)
            at = state->objects.walk_from(at, records_at_once, [&, &type = type](void *record) {
                for (const field &one : type->fields())
                    if (one.in_slot && slot_in(record, one).tier == tier && !has_room(spare))
                        move_now(slot_in(record, one), one);
            });
    return has_room(0);
}

void store::implementation::move_now(slot &at, const field &of)
{
    const uint8_t tier = target_of(at, of, true);
    if (tier == tier_none || tier == at.tier)
        return;
    candidate one(at, tier);
    slot made;
    if (!copy_value(one, made))
        return;
    try {
        moved_out_.push_back(install(at, tier == tier_pm ? place(tier, one.value) : made));
    } catch (const error &) { // no room there: it stays
    }
}

// Let all prepared moves take effect.
size_t store::implementation::publish()
{
    for (void *memory : std::exchange(moved_out_, {}))
        pm_free(memory);
    size_t moved = 0;
    while (!prepared_.empty()) {
        const auto node = prepared_.extract(prepared_.begin());
        slot &at = *node.key();
        const prepared &one = node.mapped();
        set_pending(one.before, one.after.tier, -1);
        prepared_bytes_ -= one.before.length;
        slot made = one.after;
        try {
            if (made.tier == tier_pm)
                made = place(tier_pm, one.value);
            pm_free(install(at, made));
        } catch (const error &) { // no room in the container: the value stays where it is
            continue;
        }
        moved++;
        has_work_ = true; // there may be more than one commit publishes
    }
    return moved;
}

void store::implementation::set_pending(const slot &from, uint8_t to, int sign)
{
    pending_[from.tier] -= sign * int64_t(bytes_in(from.tier, from.length));
    pending_[to] += sign * int64_t(bytes_in(to, from.length));
}

bool store::implementation::is_sparse(uint64_t key, uint64_t live) const
{
    const uint64_t bytes = tiers[key >> 32]->full_bytes(static_cast<uint32_t>(key));
    return bytes >= sparse_extent_min && live < bytes / 2;
}

// What is on its way out may have left already, by the program's own hand, before the move is given up.
uint64_t store::implementation::use_to_be(uint8_t tier) const
{
    return uint64_t(std::max<int64_t>(0, int64_t(root->tiers[tier].used) + pending_[tier]));
}

// `is_full`: the value must leave its tier, if another has room.
uint8_t store::implementation::target_of(const slot &at, const field &of, bool is_full) const
{
    if (at.tier == tier_none || at.length == 0 || is_lost(at) || lies_in_slot(at.tier, at.length))
        return tier_none;
    bool is_below = false; // the tiers looked at are below the value's
    for (const std::string_view name : of.tiers) {
        if (name.empty())
            break;
        const uint8_t tier = tier_id(name);
        if (tier == at.tier) {
            is_below = true;
            continue;
        }
        const uint64_t limit = is_below ? high_water(budgets[tier]) : budgets[tier] / 4 * 3;
        if ((!is_below || is_full) && use_to_be(tier) + bytes_in(tier, at.length) <= limit)
            return tier;
    }
    if (at.tier == tier_pm)
        return tier_none;
    const auto extent = root->extents.find(extent_key(at.tier, at.where));
    return is_sparse(extent->first, extent->second) ? at.tier : uint8_t(tier_none);
}

// Look at some records. False: all have been looked at, and the walk begins anew.
bool store::implementation::find_candidates(std::vector<candidate> &found)
{
    std::lock_guard guard(lock);
    if (cursor_type_ >= types_.size()) {
        cursor_type_ = 0;
        cursor_ = nullptr;
        return false;
    }
    const auto &[type, state] = types_[cursor_type_];
    if (!has_slots(*type)) {
        cursor_type_++;
        return true;
    }
    uint64_t bytes = prepared_bytes_;
    cursor_ = state->objects.walk_from(cursor_, records_at_once, [&](void *record) {
        for (const field &one : type->fields()) {
            if (!one.in_slot)
                continue;
            slot &at = slot_in(record, one);
            if (bytes >= prepared_bytes_max || prepared_.contains(&at))
                continue;
            const uint8_t tier =
                target_of(at, one, use_to_be(at.tier) > high_water(budgets[at.tier]));
            if (tier == tier_none)
                continue;
            candidate next(at, tier);
            bytes += at.length;
            set_pending(at, tier, 1); // until prepare() has given it up, or a commit has it
            in_flight_.insert(&at);
            preparing_++;
            found.push_back(std::move(next));
        }
    });
    if (!cursor_)
        cursor_type_++;
    return true;
}

store::implementation::candidate::candidate(slot &at, uint8_t tier)
    : at(&at), tier(tier), before(at)
{
    if (at.tier != tier_pm)
        return;
    const auto *from = static_cast<const std::byte *>(at.value());
    value.assign(from, from + at.length);
}

// Copy a value, without the lock. False: it cannot be read, or not be stored. Then it stays where it is, for
// its reader to hear of.
bool store::implementation::copy_value(candidate &one, slot &after)
{
    try {
        after = one.before;
        after.tier = one.tier;
        after.where = 0;
        if (one.before.tier == tier_pm) {
            after.sum = sum_of(one.value);
        } else {
            one.value.resize(one.before.length);
            if (!tiers[one.before.tier]->get(one.before.where, one.value) ||
                sum_of(one.value) != one.before.sum)
                return false;
        }
        if (one.tier != tier_pm)
            after.where = tiers[one.tier]->set(one.value);
        return true;
    } catch (const std::exception &) {
        return false;
    }
}

void store::implementation::prepare(candidate &one)
{
    slot after;
    const bool is_copied = copy_value(one, after);
    if (one.tier != tier_pm)
        one.value = {};
    std::lock_guard guard(lock);
    preparing_--;
    const bool is_same = in_flight_.erase(one.at) > 0;
    if (is_copied && is_same) {
        prepared_bytes_ += one.before.length;
        prepared_.emplace(one.at, prepared{one.before, after, std::move(one.value)});
        return;
    }
    set_pending(one.before, one.tier, -1);
    if (is_copied)
        forget_copy(after);
}

// Prepare some moves. False: a walk over all records has ended.
bool store::implementation::prepare_some()
{
    std::vector<candidate> found;
    const bool more = find_candidates(found);
    for (candidate &one : found)
        prepare(one);
    return more;
}

// For one commit; or the store is being closed.
bool store::implementation::has_enough()
{
    std::lock_guard guard(lock);
    return closing_ || prepared_bytes_ >= prepared_bytes_max;
}

void store::implementation::run_background()
{
    for (;;) {
        {
            std::unique_lock guard(lock);
            changed_.wait(guard, [this] { return closing_ || has_work_; });
            if (closing_)
                return;
            has_work_ = false;
            for (uint8_t tier = tier_dram; tier < tiers_max; tier++)
                used_then_[tier] = root->tiers[tier].used;
        }
        for (bool more = true; more;) {
            std::lock_guard turn(moving_);
            more = prepare_some() && !has_enough();
        }
    }
}

void store::implementation::settle()
{
    size_t moved = 0;
    do {
        moved = 0;
        {
            std::lock_guard turn(moving_);
            cursor_type_ = 0;
            cursor_ = nullptr;
        }
        for (bool more = true; more;) {
            {
                std::lock_guard turn(moving_);
                while ((more = prepare_some()) && !has_enough())
                    ;
            }
            moved += commit();
        }
    } while (moved > 0);
}

} // namespace tiered
