#include "programs.h"

#include "movable.h"
#define main ledger_main
#include "crash/ledger.c"

#include "crash/balance.c"

long ledger_postings(void *root)
{
    const struct ledger *ledger = root;
    return check_book(ledger) == 0 ? ledger->postings : -1;
}
