// Notes all objects in order of address, so a binary search finds the target of a pointer. A breadth-first
// search from the root chooses the objects to draw. The memory is 16 bytes for each object.
#include "pm/look/graph.hpp"

#include "pm/look/census.hpp"
#include "pm/look/walk.hpp"

#include <algorithm>
#include <queue>
#include <unordered_set>
#include <vector>

namespace look
{

namespace
{

struct Object {
    const char *start;
    size_t size;
};

// A pointer: from the word `field` of the object `from`, to the byte `target` of the object `to`.
struct Arrow {
    const char *from, *field, *to, *target;
};

class Graph
{
  public:
    explicit Graph(pm_container *c) : root_(static_cast<const char *>(pm_getroot(c)))
    {
        each_object(c, [&](const char *p, size_t size) {
            objects_.push_back({p, size});
            census_.add(size);
        });
    }

    const char *root() const { return root_; }
    const Census &census() const { return census_; }

    // The object that has the byte `p`, or ends just before it. NULL if there is none.
    const Object *find(const char *p) const
    {
        auto next =
            std::upper_bound(objects_.begin(), objects_.end(), p,
                             [](const char *key, const Object &o) { return key < o.start; });
        if (next == objects_.begin())
            return nullptr;
        const Object *o = &*std::prev(next);
        return p <= o->start + o->size ? o : nullptr;
    }

    template <class Visit> void each_arrow(const Object &o, Visit visit) const
    {
        each_pointer(o.start, o.size, [&](void *const *field) {
            const char *target = static_cast<const char *>(*field);
            if (const Object *to = target ? find(target) : nullptr)
                visit(Arrow{o.start, reinterpret_cast<const char *>(field), to->start, target});
        });
    }

    // At most `most` objects: breadth first from the root, then objects that the root does not reach.
    std::vector<const Object *> choose(uint64_t most) const
    {
        std::vector<const Object *> chosen;
        std::unordered_set<const char *> seen;
        auto add = [&](const Object *o) {
            if (o && chosen.size() < most && seen.insert(o->start).second)
                chosen.push_back(o);
        };
        if (root_)
            add(find(root_));
        for (size_t i = 0; i < chosen.size(); i++)
            each_arrow(*chosen[i], [&](const Arrow &a) { add(find(a.to)); });
        for (const Object &o : objects_)
            add(&o);
        return chosen;
    }

  private:
    const char *root_;
    std::vector<Object> objects_; // in order of address
    Census census_;               // of them
};

// Writes the table of sizes. `shown` is the number of objects in the graph.
void write_census(const Census &census, uint64_t shown, std::ostream &out)
{
    out << "    sizes [shape=plaintext, label=<<table border=\"0\" cellborder=\"1\" "
           "cellspacing=\"0\">\n        <tr><td>bytes</td><td>objects</td><td>in all</td></tr>\n";
    for (auto [size, count] : census.objects)
        out << "        <tr><td>" << size << "</td><td>" << count << "</td><td>" << size * count
            << "</td></tr>\n";
    out << "        <tr><td>" << shown << " of them shown</td><td>" << census.count << "</td><td>"
        << census.bytes << "</td></tr>\n    </table>>];\n";
}

} // namespace

void write_graph(pm_container *c, uint64_t most, std::ostream &out)
{
    const char *base = static_cast<const char *>(stats_of(c).base);
    Graph graph(c);
    std::vector<const Object *> chosen = graph.choose(most);
    std::unordered_set<const char *> shown;
    out << "digraph container {\n    node [shape=box];\n";
    write_census(graph.census(), chosen.size(), out);
    for (const Object *o : chosen) {
        shown.insert(o->start);
        out << "    o" << o->start - base << " [label=\"" << o->start - base << "\\n"
            << o->size << " bytes\"" << (o->start == graph.root() ? ", penwidth=3" : "") << "];\n";
    }
    for (const Object *o : chosen)
        graph.each_arrow(*o, [&](const Arrow &a) {
            if (!shown.count(a.to))
                return;
            out << "    o" << a.from - base << " -> o" << a.to - base << " [taillabel=\"+"
                << a.field - a.from << "\"";
            if (a.target != a.to)
                out << ", headlabel=\"+" << a.target - a.to << "\"";
            out << "];\n";
        });
    out << "}\n";
}

} // namespace look
