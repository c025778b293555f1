#include "ledger.h"

/* Under PM_TRACKER_STORES this file must be compiled by pmcc, or call pm_dirty() here. */
void balance_add(struct ledger *ledger, int account, long amount)
{
    ledger->balances[account] += amount;
}
