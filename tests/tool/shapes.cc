// A program for `pm crash` whose container leads into the program: to a function, to a virtual table, to
// a constant. Compiled by pmcc too, for mode `stores`.
//
//     shapes FILE faults|stores|fixed    three shapes, a commit each; fixed: as faults, but not
//                                        PM_MOVABLE
//     shapes --check FILE                each shape answers, in this process too
#include <libpm.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace
{

struct Shape {
    virtual int corners() const { return 4; }
    int (*twice)(int);
    const char *name;
    Shape *next;
};

// Its first word, of the compiler's own, leads to the virtual table.
const pm_field all_words = {0, 4};
const pm_type shape_type = {sizeof(Shape), 1, &all_words};

int twice(int n)
{
    return 2 * n;
}

pm_container *must_open(const char *path, unsigned flags, pm_tracker tracker)
{
    pm_options options = {};
    options.size = sizeof options;
    options.flags = flags;
    options.tracker = tracker;
    options.max_size = 64 << 20;
    options.segment_size = 64 << 10;
    pm_container *c = pm_open(path, &options);
    if (!c) {
        printf("%s\n", pm_errormsg());
        exit(1);
    }
    return c;
}

int check(const char *path)
{
    pm_container *c = must_open(path, 0, PM_TRACKER_FAULTS);
    const long least = atol(getenv("LIBPM_CRASH_COMMITS"));
    long count = 0;
    for (auto s = static_cast<const Shape *>(pm_getroot(c)); s; s = s->next, count++) {
        const int corners = s->corners();
        if (s->twice(corners) != 8 || strcmp(s->name, "square") != 0)
            return printf("a shape answers wrongly\n"), 1;
    }
    if (count < least || count > least + 1)
        return printf("%ld shapes, not %ld\n", count, least), 1;
    return pm_close(c) != 0;
}

} // namespace

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    if (strcmp(words[1], "--check") == 0)
        return check(words[2]);
    const bool stores = strcmp(words[2], "stores") == 0, fixed = strcmp(words[2], "fixed") == 0;
    pm_container *c = must_open(words[1], fixed ? PM_CREATE : PM_CREATE | PM_MOVABLE,
                                stores ? PM_TRACKER_STORES : PM_TRACKER_FAULTS);
    for (int i = 0; i < 3; i++) {
        void *memory = stores || fixed ? pm_malloc(c, sizeof(Shape)) : pm_malloc_typed(c, &shape_type, 1);
        auto next = static_cast<Shape *>(pm_getroot(c));
        auto s = memory ? new (memory) Shape : nullptr;
        if (s) {
            s->twice = twice;
            s->name = "square";
            s->next = next;
        }
        if (!s || pm_setroot(c, s, sizeof *s) != 0 || pm_commit(c) != 0) {
            printf("%s\n", pm_errormsg());
            return 1;
        }
    }
    return pm_close(c) != 0;
}
