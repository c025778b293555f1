#include "simulation/reach.hpp"

#include <libpm.h>

#include <algorithm>
#include <vector>

namespace simulation
{

namespace
{

struct Object {
    uint64_t address, size;
    bool reached;
};

std::string describe(const Object &o)
{
    return "the object of " + std::to_string(o.size) + " bytes at " + std::to_string(o.address);
}

// Marks what can be reached.
class Search
{
  public:
    explicit Search(std::vector<Object> &objects) : objects_(objects) {}

    void from(uint64_t root)
    {
        reach(root);
        while (!found_.empty()) {
            const Object *o = found_.back();
            found_.pop_back();
            const uint64_t *words = reinterpret_cast<const uint64_t *>(o->address);
            for (uint64_t i = 0; i < o->size / sizeof *words; i++)
                reach(words[i]);
        }
    }

  private:
    void reach(uint64_t address)
    {
        if (objects_.empty() || address < objects_.front().address ||
            address > objects_.back().address)
            return;
        auto at = std::lower_bound(objects_.begin(), objects_.end(), address,
                                   [](const Object &o, uint64_t key) { return o.address < key; });
        if (at->address != address || at->reached)
            return;
        at->reached = true;
        found_.push_back(&*at);
    }

    std::vector<Object> &objects_;
    std::vector<const Object *> found_; // and not looked into yet
};

} // namespace

std::string check_reach(pm_container *c)
{
    std::vector<Object> objects;
    size_t size;
    for (void *p = nullptr; (p = pm_next_object(c, p, &size));)
        objects.push_back({(uintptr_t)p, size, false});
    for (size_t i = 1; i < objects.size(); i++)
        if (objects[i].address < objects[i - 1].address + objects[i - 1].size)
            return describe(objects[i]) + " overlaps another";
    Search(objects).from((uintptr_t)pm_getroot(c));
    for (const Object &o : objects)
        if (!o.reached)
            return describe(o) + " has leaked";
    return "";
}

} // namespace simulation
