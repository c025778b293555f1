// A program to crash, and its own check, for `pm crash`: steps on a store of NVMKV in which keys
// collide all the time.
//
//     nvmkv_crash FILE CASE           make the steps of the case, and say so after each
//     nvmkv_crash --check FILE CASE   is the store as after all steps that it was said to have
//                                     made, or in the middle of the next, as far as that may be?
#include "nvmkv/nvmkv.hpp"

#include "common/mode.hpp"
#include "promised.hpp"

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>

using nvmkv::Store;

namespace
{

struct Step {
    enum Kind { put, erase, create_pool, delete_pool } kind;
    std::string pool; // "": the default one
    std::vector<std::string> keys = {};
    bool whole = false;
};

std::vector<std::string> keys(int from, int to)
{
    std::vector<std::string> keys;
    for (int i = from; i < to; i++)
        keys.push_back("key" + std::to_string(i));
    return keys;
}

std::vector<Step> steps_of(const std::string &which)
{
    if (which == "put") {
        std::vector<Step> steps;
        for (int i = 0; i < 8; i++)
            steps.push_back({Step::put, "", keys(i, i + 1)});
        for (int i : {1, 0, 2})
            steps.push_back({Step::erase, "", keys(i, i + 1)});
        for (int i : {3, 1, 4})
            steps.push_back({Step::put, "", keys(i, i + 1)});
        return steps;
    }
    if (which == "batch" || which == "whole")
        return {{Step::put, "", keys(0, 5), which == "whole"},
                {Step::put, "", keys(3, 9), which == "whole"},
                {Step::erase, "", keys(2, 6), which == "whole"},
                {Step::put, "", keys(1, 4), which == "whole"}};
    if (which == "pool")
        return {{Step::create_pool, "a"},
                {Step::put, "", keys(0, 7), true},
                {Step::put, "a", keys(3, 10), true},
                {Step::put, "", keys(7, 10), true},
                {Step::delete_pool, "a"},
                {Step::create_pool, "b"},
                {Step::put, "b", keys(5, 6)}};
    throw std::runtime_error(which + ": there is no such case");
}

// As long as no two steps put the same value to a key, it tells which step it is of.
std::string value_of(size_t step)
{
    return std::string(step * 251 % 1300, static_cast<char>('a' + step));
}

// ---- The program

void make(Store &store, const Step &step, size_t number)
{
    if (step.kind == Step::create_pool) {
        store.create_pool(step.pool);
        return;
    }
    const nvmkv::Pool pool = step.pool.empty() ? 0 : store.find_pool(step.pool).value();
    const auto atomic = step.whole ? Store::Atomic::whole : Store::Atomic::each;
    const std::string value = value_of(number);
    if (step.kind == Step::delete_pool) {
        store.delete_pool(pool);
    } else if (step.kind == Step::erase) {
        std::vector<std::string_view> keys(step.keys.begin(), step.keys.end());
        store.erase_batch(keys, pool, atomic);
    } else {
        std::vector<nvmkv::KeyValue> pairs;
        for (const std::string &key : step.keys)
            pairs.push_back({key, value});
        store.put_batch(pairs, pool, atomic);
    }
}

int run(const std::string &path, const std::string &which)
{
    nvmkv::Options options;
    options.key_bits = 5;
    options.value_bits = 4;
    options.segment_size = 64 << 10;
    options.max_size = 16 << 20;
    options.engine = test::engine_option();
    Store store = Store::create(path, options);
    printf("made 0\n");
    const std::vector<Step> steps = steps_of(which);
    for (size_t i = 0; i < steps.size(); i++) {
        make(store, steps[i], i);
        printf("made %zu\n", i + 1);
    }
    store.wait_for_deletions();
    return 0;
}

// ---- The check

using Model = std::map<std::string, std::map<std::string, std::string>>; // by pool and key

void apply(Model &model, const Step &step, size_t number, size_t keys)
{
    if (step.kind == Step::create_pool)
        model[step.pool];
    else if (step.kind == Step::delete_pool)
        model.erase(step.pool);
    for (size_t i = 0; i < keys; i++)
        if (step.kind == Step::erase)
            model[step.pool].erase(step.keys[i]);
        else
            model[step.pool][step.keys[i]] = value_of(number);
}

// What may be there when so many steps had been made, and perhaps the next had begun.
std::vector<Model> allowed(const std::vector<Step> &steps, size_t made)
{
    Model model = {{"", {}}};
    for (size_t i = 0; i < made; i++)
        apply(model, steps[i], i, steps[i].keys.size());
    std::vector<Model> all = {model};
    if (made == steps.size())
        return all;
    const Step &next = steps[made];
    const size_t least = next.whole || next.keys.empty() ? next.keys.size() : 1;
    for (size_t keys = least; keys <= next.keys.size(); keys++) { // they are made one by one
        all.push_back(model);
        apply(all.back(), next, made, keys);
    }
    return all;
}

Model read(Store &store)
{
    Model model;
    for (const nvmkv::PoolInfo &info : store.pools()) {
        auto &pairs = model[info.name];
        for (auto walk = store.begin(info.pool); walk.next();) {
            const auto pair = walk.get_current().value();
            if (!pairs.emplace(pair.key, pair.value).second)
                throw std::runtime_error(pair.key + " is there twice");
            if (store.get(pair.key, info.pool) != pair.value)
                throw std::runtime_error(pair.key + " is met by a walk, and not found");
        }
        if (pairs.size() != info.pairs)
            throw std::runtime_error("pool " + info.name + " is miscounted");
    }
    return model;
}

int check(const std::string &path, const std::string &which)
{
    const long made = promised();
    std::optional<Store> store;
    try {
        store = Store::open(path);
    } catch (const std::system_error &error) {
        if (made >= 0 || error.code().value() != ENODATA)
            throw;
        // Its creation was cut short: it can be destroyed, and created to the end.
        std::filesystem::copy_file(path, path + ".copy");
        Store::destroy(path + ".copy");
        Store::create(path).check();
        return 0;
    }
    store->check();
    const Model found = read(*store);
    bool fits = false;
    for (const Model &model : allowed(steps_of(which), std::max(made, 0L)))
        fits = fits || found == model;
    if (!fits) {
        for (const auto &[pool, pairs] : found)
            for (const auto &[key, value] : pairs)
                std::cout << pool << ' ' << key << ' ' << value.size() << '\n';
        throw std::runtime_error("the pairs are not those of " + std::to_string(made) +
                                 " steps, nor of one more");
    }
    store->wait_for_deletions();
    store->check();
    if (read(*store) != found)
        throw std::runtime_error("the deletion of a pool has changed others");
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    try {
        if (argc == 4 && std::string(argv[1]) == "--check")
            return check(argv[2], argv[3]);
        if (argc == 3)
            return run(argv[1], argv[2]);
    } catch (const std::exception &error) {
        std::cout << "nvmkv_crash: " << error.what() << '\n';
        return 1;
    }
    std::cerr << "usage: nvmkv_crash FILE CASE, or nvmkv_crash --check FILE CASE\n";
    return 2;
}
