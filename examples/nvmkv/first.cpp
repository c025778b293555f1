#include "nvmkv/nvmkv.hpp"

#include <iostream>

int main()
{
    try {
        auto store = nvmkv::Store::open("/dev/shm/fruit.kv", {.create_if_missing = true});
        store.put("apple", "red");
        store.put("pear", "green");
        const nvmkv::KeyValue both[] = {{"plum", "blue"}, {"cherry", "black"}};
        store.put_batch(both, nvmkv::default_pool, nvmkv::Store::Atomic::whole);
        store.erase("pear");
        for (auto walk = store.begin(); walk.next();)
            if (auto pair = walk.get_current())
                std::cout << pair->key << " is " << pair->value << '\n';
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}
