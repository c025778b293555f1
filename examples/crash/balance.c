#include "ledger.h"

/* Under PM_TRACKER_STORES, pmcc must compile this file, or the function must call pm_dirty(). */
void balance_add(struct ledger *ledger, int account, long amount)
{
    ledger->balances[account] += amount;
}
