// A program to crash, and its own check, for `pm crash`: what the tiered store does in its container.
//
//     tiered_crash FILE set        fields in the record and in slots are set, objects are made and destroyed
//     tiered_crash FILE insert     collections grow, and lose elements
//     tiered_crash FILE move       values leave the container, and come back, as its budget changes
//     tiered_crash --check FILE CASE     does it have what it was said to have, or the next step?
#include "types.durable.hpp"

#include "clients/promised.hpp"
#include "common/mode.hpp"

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>

using Account = durable::account;
using Note = people::durable::note;

namespace
{

constexpr uint64_t steps = 12, accounts = 3, notes = 5;

std::string owner_of(uint64_t step)
{
    return step == 0 ? "" : std::to_string(step) + std::string(step * 97 % 500, 'o');
}

// A tier that need not store anything, as each value begins with the number of its step. So every state of
// the container has the values that it wants.
class Known : public tiered::tier
{
  public:
    void keep(const std::set<uint32_t> &) override {}
    uint64_t set(tiered::bytes value) override
    {
        return strtoull(reinterpret_cast<const char *>(value.data()), nullptr, 10);
    }
    bool get(uint64_t place, std::span<std::byte> value) override
    {
        memcpy(value.data(), owner_of(place).data(), value.size());
        return true;
    }
    void discard(uint32_t) override {}
    uint64_t full_bytes(uint32_t) const override { return 0; }
    std::string name_of(uint64_t) const override { return "known"; }
};

tiered::options options_of(const std::string &path)
{
    tiered::options options;
    options.container = path;
    options.max_size = 64 << 20;
    options.engine = test::engine_option();
    options.tiers["remote"] = std::make_shared<Known>();
    return options;
}

// New for each run, and for each state of a container. It needs no files, as no value is on the disk.
std::string directory_of(const std::string &path)
{
    const std::string directory = std::filesystem::absolute(path).string() + ".store";
    std::filesystem::remove_all(directory);
    return directory;
}

void said(uint64_t step)
{
    printf("made %zu\n", size_t(step));
    fflush(stdout);
}

using Accounts = tiered::vector<Account>;
using Names = tiered::map<tiered::string, uint64_t>;
using Numbers = tiered::hash_map<uint64_t, tiered::string>;
using List = tiered::list<uint64_t>;
using Notes = tiered::vector<Note>;

// ---- What one step does, and what a store has after some steps

void set(tiered::store &store, uint64_t step)
{
    auto &all = store.root<Accounts>("all");
    while (all.size() < accounts)
        all.push_back(store.make<Account>());
    Account &one = all[step % accounts];
    if (step % 4 == 0) {
        store.destroy(one);
        one = store.make<Account>();
    }
    one.set_balance(step);
    one.set_owner(owner_of(step));
}

bool has_set(tiered::store &store, uint64_t made)
{
    auto &all = store.root<Accounts>("all");
    uint64_t last[accounts]{};
    for (uint64_t step = 1; step <= made; step++)
        last[step % accounts] = step;
    const auto objects = store.all<Account>();
    const auto count = size_t(std::ranges::distance(objects));
    if (made == 0)
        return all.empty() && count == 0;
    for (size_t i = 0; i < accounts; i++)
        if (all.size() != accounts || all[i].balance() != last[i] ||
            all[i].owner() != owner_of(last[i]))
            return false;
    return count == accounts;
}

void insert(tiered::store &store, uint64_t step)
{
    store.root<Names>("names").emplace(owner_of(step), step);
    store.root<Numbers>("numbers").emplace(step, owner_of(step));
    store.root<List>("list").push_front(step);
    if (step % 3 == 0) {
        store.root<Names>("names").erase(store.root<Names>("names").begin());
        store.root<Numbers>("numbers").erase(step - 1);
        store.root<List>("list").pop_back();
    }
}

bool has_inserted(tiered::store &store, uint64_t made)
{
    std::map<std::string, uint64_t> names;
    std::map<uint64_t, std::string> numbers;
    std::list<uint64_t> list;
    for (uint64_t step = 1; step <= made; step++) {
        names.emplace(owner_of(step), step);
        numbers.emplace(step, owner_of(step));
        list.push_front(step);
        if (step % 3 == 0) {
            names.erase(names.begin());
            numbers.erase(step - 1);
            list.pop_back();
        }
    }
    auto &found = store.root<Numbers>("numbers");
    return std::ranges::equal(store.root<List>("list"), list) && found.size() == numbers.size() &&
           std::ranges::all_of(
               found, [&](const auto &one) { return one.second == numbers[one.first].c_str(); }) &&
           std::ranges::equal(store.root<Names>("names"), names, [](const auto &a, const auto &b) {
               return a.first == b.first.c_str() && a.second == b.second;
           });
}

void move(tiered::store &store, uint64_t step)
{
    auto &all = store.root<Notes>("notes");
    while (all.size() < notes)
        all.push_back(store.make<Note>());
    all[step % notes].set_text(owner_of(step));
    store.set_budget("pm", step % 2 ? 300 : 1 << 20);
}

bool has_moved(tiered::store &store, uint64_t made)
{
    const auto &all = store.root<Notes>("notes");
    for (uint64_t i = 0; i < all.size(); i++) {
        uint64_t last = made;
        while (last > 0 && last % notes != i)
            last--;
        if (all[i].text() != owner_of(last))
            return false;
    }
    return all.size() == (made == 0 ? 0 : notes);
}

struct Case {
    void (*make)(tiered::store &, uint64_t);
    bool (*has)(tiered::store &, uint64_t);
};

Case case_of(const std::string &name)
{
    return name == "set"    ? Case{set, has_set}
           : name == "move" ? Case{move, has_moved}
                            : Case{insert, has_inserted};
}

void run(const std::string &path, Case one)
{
    tiered::store store(directory_of(path), options_of(path));
    for (uint64_t step = 1; step <= steps; step++) {
        said(step - 1);
        one.make(store, step);
        store.settle();
    }
    said(steps);
}

void check(const std::string &path, Case one)
{
    tiered::store store(directory_of(path), options_of(path));
    const auto made = static_cast<uint64_t>(std::max(promised(), 0L));
    if (!one.has(store, made) && !one.has(store, made + 1))
        throw std::runtime_error("the store is not as after " + std::to_string(made) +
                                 " steps, nor after one more");
}

} // namespace

int main(int argc, char **argv)
try {
    const bool checks = argc == 4 && std::string(argv[1]) == "--check";
    if (checks)
        check(argv[2], case_of(argv[3]));
    else if (argc == 3)
        run(argv[1], case_of(argv[2]));
    else
        return 2;
    return 0;
} catch (const std::exception &error) {
    std::cerr << error.what() << "\n";
    return 1;
}
