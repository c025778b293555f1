/* A bank's book: every posting ever made, and the balance of each account. */
#ifndef LEDGER_H
#define LEDGER_H

enum { ACCOUNTS = 16 };

struct posting {
    struct posting *next; /* the one before it */
    int account;
    long amount;
};

/* The root of the container. */
struct ledger {
    struct posting *last;
    long balances[ACCOUNTS]; /* sums of the postings */
    long postings;
};

/* balance.c */
void balance_add(struct ledger *ledger, int account, long amount);

#endif
