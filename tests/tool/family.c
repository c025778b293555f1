/* family FILE [HOW]: a container for `pm info` and its like to look at: a root with two children, of
 * which the second points into the first; the root points behind its own end; one more object that
 * nobody points to; no pointer is unmapped. HOW: `crashed`, it is not closed; `open`, it stays open until
 * the end of the input; `code`, the root points into this program, too; `empty`, nothing is in it; `large`,
 * there is one more object, of LARGE bytes; `log`, it is of the log engine. */
#include <libpm.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LARGE ((size_t)256 << 20)

struct person {
    struct person *child[2], *sibling;
    long age;
};

int main(int argc, char **argv)
{
    const char *how = argc == 3 ? argv[2] : "";
    const bool large = strcmp(how, "large") == 0;
    struct pm_options options = {sizeof options, .flags = PM_CREATE | PM_MOVABLE,
                                 .engine = strcmp(how, "log") == 0 ? PM_ENGINE_LOG : PM_ENGINE_AUTO,
                                 .segment_size = 64 << 10, .max_size = large ? 2 * LARGE : 4 << 20};
    pm_container *c = argc > 1 ? pm_open(argv[1], &options) : NULL;
    if (c && strcmp(how, "empty") == 0)
        return pm_close(c) != 0;
    struct person *root = c ? pm_malloc_typed(c, PM_TYPE(struct person, child, sibling), 3) : NULL;
    for (int i = 0; root && i < 2; i++)
        root->child[i] = pm_malloc_typed(c, PM_TYPE(struct person, child, sibling), 1);
    if (!root || !root->child[0] || !root->child[1] || !pm_malloc(c, 1000) ||
        pm_setroot(c, root, 0) != 0 || (large && !pm_malloc(c, LARGE))) {
        fprintf(stderr, "family: %s\n", pm_errormsg());
        return 1;
    }
    root->child[1]->sibling = (struct person *)&root->child[0]->age;
    root[2].sibling = root + 3;
    if (strcmp(how, "code") == 0)
        root->sibling = (struct person *)(void *)main;
    if (pm_commit(c) != 0) {
        fprintf(stderr, "family: %s\n", pm_errormsg());
        return 1;
    }
    if (strcmp(how, "open") == 0) {
        puts("open");
        fflush(stdout);
        while (getchar() != EOF)
            ;
    }
    if (strcmp(how, "crashed") == 0)
        _exit(0);
    return pm_close(c) != 0;
}
