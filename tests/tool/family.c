/* family FILE: a container for `pm info` and its like to look at: a root with two children, of
 * which the second points into the first; one more object that nobody points to; no pointer is
 * unmapped. */
#include <libpm.h>

#include <stdio.h>

struct person {
    struct person *child[2], *sibling;
    long age;
};

int main(int argc, char **argv)
{
    struct pm_options options = {sizeof options, .flags = PM_CREATE | PM_MOVABLE,
                                 .segment_size = 64 << 10, .max_size = 4 << 20};
    pm_container *c = argc == 2 ? pm_open(argv[1], &options) : NULL;
    struct person *root = c ? pm_malloc_typed(c, PM_TYPE(struct person, child, sibling), 3) : NULL;
    for (int i = 0; root && i < 2; i++)
        root->child[i] = pm_malloc_typed(c, PM_TYPE(struct person, child, sibling), 1);
    if (!root || !root->child[0] || !root->child[1] || !pm_malloc(c, 1000) ||
        pm_setroot(c, root, 0) != 0) {
        fprintf(stderr, "family: %s\n", pm_errormsg());
        return 1;
    }
    root->child[1]->sibling = (struct person *)&root->child[0]->age;
    return pm_commit(c) != 0 || pm_close(c) != 0;
}
