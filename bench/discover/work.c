#include "discover/work.h"

#include <stdlib.h>

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* The optimiser is not to know what becomes of it. */
static void *used(void *p)
{
    __asm__ volatile("" : "+r"(p) : : "memory");
    return p;
}

void allocate_and_free(size_t count)
{
    while (count-- > 0)
        free(used(malloc(64)));
}

void replace(size_t count, size_t live)
{
    void **places = calloc(live, sizeof *places);
    uint64_t state = 1;
    for (size_t i = 0; i < count; i++) {
        uint64_t random = next_random(&state);
        void **place = &places[random % live];
        free(*place);
        *place = used(malloc(16 + (random >> 32) % 241));
    }
    for (size_t i = 0; i < live; i++)
        free(places[i]);
    free(places);
}

struct tree {
    struct tree *child[2];
    uint64_t key;
};

static uint64_t sum_and_free(struct tree *tree)
{
    if (!tree)
        return 0;
    uint64_t sum = tree->key + sum_and_free(tree->child[0]) + sum_and_free(tree->child[1]);
    free(tree);
    return sum;
}

uint64_t build_tree(size_t count)
{
    struct tree *root = NULL;
    uint64_t state = 1;
    for (size_t i = 0; i < count; i++) {
        uint64_t key = next_random(&state);
        struct tree **link = &root;
        while (*link)
            link = &(*link)->child[key > (*link)->key];
        struct tree *tree = malloc(sizeof *tree);
        tree->child[0] = tree->child[1] = NULL;
        tree->key = key;
        *link = tree;
    }
    return sum_and_free(root);
}

struct node {
    struct node *next, *previous;
    uint64_t number;
};

uint64_t build_list(size_t count)
{
    struct node *head = NULL;
    for (size_t i = 0; i < count; i++) {
        struct node *node = malloc(sizeof *node);
        node->next = head;
        node->previous = NULL;
        node->number = i;
        if (head)
            head->previous = node;
        head = node;
    }
    for (struct node *node = head; node; node = node->next)
        node->number *= 3;
    uint64_t sum = 0;
    while (head) {
        struct node *next = head->next;
        sum += head->number;
        free(head);
        head = next;
    }
    return sum;
}
