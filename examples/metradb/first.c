#include <metradb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* first FILE ID NAME: give a number a name. first FILE ID: print the name. */
int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    uint64_t id = strtoull(argv[2], NULL, 10);
    struct metradb_bytes key = metradb_ref(&id, sizeof id), name;
    struct metradb_options options = {.flags = METRADB_CREATE, .key_size = 8, .buckets = 1000};
    metradb *db = metradb_open(argv[1], &options);
    if (!db) {
        fprintf(stderr, "%s\n", metradb_errormsg());
        return 1;
    }
    int result = 0;
    if (argc > 3) {
        name = metradb_ref(argv[3], strlen(argv[3]));
        result = metradb_put(db, key, name) < 0 || metradb_commit(db) != 0;
    } else if (metradb_get(db, key, &name) == 1) {
        printf("%.*s\n", (int)name.size, (const char *)name.data);
    }
    if (result != 0)
        fprintf(stderr, "%s\n", metradb_errormsg());
    return metradb_close(db) != 0 || result != 0;
}
