#include "programs.h"

#include "movable.h"
#define main wordindex_main
#include "wordindex/wordindex.c"

long wordindex_words(void *root)
{
    struct index *index = root;
    return check_index(index) == NULL ? (long)index->words : -1;
}
