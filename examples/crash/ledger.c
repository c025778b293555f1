/*
 * ledger: a program to crash, and its own check, for docs/crash-testing.md.
 *
 *     ledger FILE COUNT [MODE]   print the number of postings, then make COUNT more, and print the
 *                                number after each. MODE: undo, redo, log, stores (redo with this
 *                                tracker), or log.stores
 *     ledger --check FILE        check the book, and that it has all postings whose number was printed. For
 *                                `pm crash --check`
 *
 * The program can be built with one of two bugs. With -DFORGET_COMMIT it does not commit every third
 * posting, but prints the new number at once; the next posting's commit covers both. Or balance.c is
 * compiled without pmcc, for `stores`: see CMakeLists.txt. As long as nothing crashes, nobody notices
 * either bug.
 */
#include "ledger.h"

#include <libpm.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(void)
{
    fprintf(stderr, "ledger: %s\n", pm_errormsg());
    return 2;
}

static pm_container *open_book(const char *path, const char *mode)
{
    struct pm_options options = {
        .size = sizeof options, .layout = "ledger/1", .max_size = 64 << 20};
    options.flags = PM_CREATE;
    bool undo = strcmp(mode, "undo") == 0, log = strncmp(mode, "log", 3) == 0;
    options.engine = undo ? PM_ENGINE_UNDO : log ? PM_ENGINE_LOG : PM_ENGINE_REDO;
    if (strstr(mode, "stores"))
        options.tracker = PM_TRACKER_STORES;
    return pm_open(path, &options);
}

/* ---- the program ----------------------------------------------------------------------------- */

static bool post(pm_container *c, struct ledger *ledger, int account, long amount)
{
    struct posting *p = pm_malloc(c, sizeof *p);
    if (!p)
        return false;
    *p = (struct posting){ledger->last, account, amount};
    ledger->last = p;
    ledger->postings++;
    balance_add(ledger, account, amount);
#ifdef FORGET_COMMIT
    if (ledger->postings % 3 == 0)
        return true;
#endif
    return pm_commit(c) == 0;
}

static int run(const char *path, long count, const char *mode)
{
    pm_container *c = open_book(path, mode);
    if (!c)
        return fail();
    struct ledger *ledger = pm_getroot(c);
    if (!ledger) {
        ledger = pm_calloc(c, 1, sizeof *ledger);
        if (!ledger || pm_setroot(c, ledger, 0) != 0 || pm_commit(c) != 0)
            return fail();
    }
    printf("posted %ld\n", ledger->postings); /* by earlier runs */
    for (long i = 0; i < count; i++) {
        if (!post(c, ledger, (int)(i % ACCOUNTS), 100 + i))
            return fail();
        printf("posted %ld\n", ledger->postings);
    }
    return pm_commit(c) == 0 && pm_close(c) == 0 ? 0 : fail();
}

/* ---- the check ------------------------------------------------------------------------------- */

/* The last number that the program had printed before the crash. -1: it had printed and promised nothing. */
static long promised(void)
{
    const char *path = getenv("LIBPM_CRASH_OUTPUT");
    FILE *output = path ? fopen(path, "r") : NULL;
    if (!output)
        return -1;
    long number = -1;
    while (fscanf(output, "posted %ld\n", &number) == 1)
        ;
    fclose(output);
    return number;
}

static int complain(const char *what, long is, long should)
{
    printf("%s %ld, should be %ld\n", what, is, should);
    return 1;
}

static int check_book(const struct ledger *ledger)
{
    long sums[ACCOUNTS] = {0}, postings = 0, least = promised();
    for (const struct posting *p = ledger ? ledger->last : NULL; p; p = p->next) {
        sums[p->account] += p->amount;
        postings++;
    }
    if (least >= 0 && postings != least && postings != least + 1)
        return complain("the number of postings is", postings, least);
    if (!ledger)
        return 0;
    if (postings != ledger->postings)
        return complain("the ledger counts postings:", ledger->postings, postings);
    for (int i = 0; i < ACCOUNTS; i++)
        if (sums[i] != ledger->balances[i])
            return complain("a balance is", ledger->balances[i], sums[i]);
    return 0;
}

static int check(const char *path)
{
    struct pm_options options = {.size = sizeof options, .flags = PM_READONLY};
    pm_container *c = pm_open(path, &options);
    if (!c)
        return fail();
    int result = check_book(pm_getroot(c));
    pm_close(c);
    return result;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--check") == 0)
        return check(argv[2]);
    if (argc == 3 || argc == 4)
        return run(argv[1], strtol(argv[2], NULL, 10), argc == 4 ? argv[3] : "undo");
    fprintf(stderr, "usage: ledger FILE COUNT [undo|redo|log|stores|log.stores], or ledger --check FILE\n");
    return 2;
}
