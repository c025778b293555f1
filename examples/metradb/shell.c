/*
 * metradb: a METRADB container from the command line; metradb.1 is its manual.
 *
 *     metradb users.db create 4 1000
 *     metradb users.db put 0007 Ada       metradb users.db get 0007       metradb users.db list
 *
 * Each command is one transaction: done and durable when it exits with 0, else as if it had never
 * begun. Exit status: 0; 1 if the key is not there, or the check failed; 2 if anything went wrong.
 */
#include "metradb.h"
#include "text.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DONE = 0, ABSENT = 1, FAILED = 2 };

/* A command at work. */
struct session {
    const char *path;
    bool hex;        /* keys and values are hexadecimal */
    metradb *db;     /* NULL: the command opens none */
    char **argument; /* `arguments` of them */
    int arguments;
};

static int usage(void)
{
    fputs("usage: metradb [-x] FILE COMMAND\n"
          "  create LENGTH BUCKETS  a new container, for keys of LENGTH bytes\n"
          "  put KEY [VALUE]        map KEY to VALUE, or to what standard input has\n"
          "  get KEY                print its value\n"
          "  delete KEY             remove it\n"
          "  list                   print each key, a tab, and its value\n"
          "  count                  print how many pairs there are\n"
          "  import                 put pairs, from lines as those of list\n"
          "  batch                  do lines of put KEY VALUE and delete KEY, with tabs between\n"
          "  info                   print length of keys, number of buckets and of pairs\n"
          "  check                  verify the container and the hash table in it\n"
          "  remove                 delete the container\n"
          "  -x                     keys and values are hexadecimal digits\n",
          stderr);
    return FAILED;
}

static int failed(void)
{
    fprintf(stderr, "metradb: %s\n", metradb_errormsg());
    return FAILED;
}

static int complain(const char *what, const char *which)
{
    fprintf(stderr, "metradb: %s: %s\n", which, what);
    return FAILED;
}

/* ---- one pair -------------------------------------------------------------------------------- */

/* A key or a value on the command line: as it is, if not hexadecimal. */
static bool read_argument(const struct session *s, int i, struct metradb_bytes *bytes)
{
    char *text = s->argument[i];
    *bytes = metradb_ref(text, strlen(text));
    if (!s->hex || text_decode(text, bytes->size, true, bytes))
        return true;
    complain("not hexadecimal", text);
    return false;
}

/* All of standard input, to be freed as `data`. */
static bool read_input(struct metradb_bytes *bytes)
{
    char *data = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&data, &size);
    char piece[BUFSIZ];
    size_t n;
    while (memory && (n = fread(piece, 1, sizeof piece, stdin)) > 0)
        if (fwrite(piece, 1, n, memory) != n)
            break;
    bool good = memory && !ferror(memory) && feof(stdin);
    if (memory && fclose(memory) != 0)
        good = false;
    if (!good) {
        complain(strerror(errno), "standard input");
        free(data);
        data = NULL;
    }
    *bytes = metradb_ref(data, size);
    return good;
}

static int put(const struct session *s)
{
    struct metradb_bytes key, value;
    if (!read_argument(s, 0, &key))
        return FAILED;
    bool given = s->arguments == 2;
    if (given ? !read_argument(s, 1, &value) : !read_input(&value))
        return FAILED;
    int status = metradb_put(s->db, key, value) < 0 ? failed() : DONE;
    if (!given)
        free((void *)value.data);
    return status;
}

static int get(const struct session *s)
{
    struct metradb_bytes key, value;
    if (!read_argument(s, 0, &key))
        return FAILED;
    int found = metradb_get(s->db, key, &value);
    if (found < 0)
        return failed();
    if (!found)
        return ABSENT;
    if (s->hex)
        text_print(stdout, value, true);
    else
        fwrite(value.data, 1, value.size, stdout);
    if (s->hex || isatty(STDOUT_FILENO))
        putchar('\n');
    return DONE;
}

static int delete(const struct session *s)
{
    struct metradb_bytes key;
    if (!read_argument(s, 0, &key))
        return FAILED;
    int deleted = metradb_delete(s->db, key);
    return deleted < 0 ? failed() : deleted ? DONE : ABSENT;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Cut the line at its tabs into fields, at most `most`: how many there are. */
static size_t split(char *line, size_t length, struct metradb_bytes *field, size_t most)
{
    size_t count = 0;
    for (char *end = line + length, *tab; line <= end; line = tab + 1) {
        tab = memchr(line, '\t', (size_t)(end - line));
        if (!tab)
            tab = end;
        if (count < most)
            field[count] = metradb_ref(line, (size_t)(tab - line));
        count++;
    }
    return count;
}

static bool decode_field(const struct session *s, struct metradb_bytes *field)
{
    return text_decode((char *)field->data, field->size, s->hex, field);
}

static bool is_word(struct metradb_bytes field, const char *word)
{
    return field.size == strlen(word) && memcmp(field.data, word, field.size) == 0;
}

static const char not_understood[] = "not understood";

/* The next two do what a line says: NULL, or what is wrong with it. */

static const char *import_line(const struct session *s, char *line, size_t length)
{
    struct metradb_bytes field[2];
    if (split(line, length, field, 2) != 2 || !decode_field(s, &field[0]) ||
        !decode_field(s, &field[1]))
        return not_understood;
    return metradb_put(s->db, field[0], field[1]) < 0 ? metradb_errormsg() : NULL;
}

static const char *batch_line(const struct session *s, char *line, size_t length)
{
    struct metradb_bytes field[3];
    size_t count = split(line, length, field, 3);
    if (count == 3 && is_word(field[0], "put") && decode_field(s, &field[1]) &&
        decode_field(s, &field[2]))
        return metradb_put(s->db, field[1], field[2]) < 0 ? metradb_errormsg() : NULL;
    if (count == 2 && is_word(field[0], "delete") && decode_field(s, &field[1]))
        return metradb_delete(s->db, field[1]) < 0 ? metradb_errormsg() : NULL;
    return not_understood;
}

/* Do all lines of standard input; the first with which something is wrong ends it. */
static int for_each_line(const struct session *s,
                         const char *(*act)(const struct session *, char *line, size_t length))
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    int status = DONE;
    for (uint64_t number = 1; status == DONE && (length = getline(&line, &room, stdin)) > 0;
         number++) {
        length -= line[length - 1] == '\n';
        const char *offence = act(s, line, (size_t)length);
        if (offence) {
            fprintf(stderr, "metradb: line %" PRIu64 ": %s; nothing was done\n", number, offence);
            status = FAILED;
        }
    }
    free(line);
    return status == DONE && !feof(stdin) ? complain(strerror(errno), "standard input") : status;
}

static int import(const struct session *s)
{
    return for_each_line(s, import_line);
}

static int batch(const struct session *s)
{
    return for_each_line(s, batch_line);
}

/* ---- whole containers ------------------------------------------------------------------------ */

static int list(const struct session *s)
{
    struct metradb_cursor cursor = {0};
    struct metradb_pair pair;
    while (metradb_next(s->db, &cursor, &pair)) {
        text_print(stdout, pair.key, s->hex);
        putchar('\t');
        text_print(stdout, pair.value, s->hex);
        putchar('\n');
    }
    return DONE;
}

static int count(const struct session *s)
{
    printf("%" PRIu64 "\n", metradb_count(s->db));
    return DONE;
}

static int info(const struct session *s)
{
    printf("key length: %zu\nbuckets: %" PRIu64 "\npairs: %" PRIu64 "\n", metradb_key_size(s->db),
           metradb_buckets(s->db), metradb_count(s->db));
    return DONE;
}

static int check(const struct session *s)
{
    if (metradb_check(s->db) != 0) {
        failed();
        return ABSENT;
    }
    printf("%s: %" PRIu64 " pairs: whole\n", s->path, metradb_count(s->db));
    return DONE;
}

/* Decimal; strtoull alone would take "-1" and "" too. */
static bool parse(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && !*end && !errno)
        return true;
    complain("not a number", text);
    return false;
}

static int create(const struct session *s)
{
    uint64_t key_size, buckets;
    if (!parse(s->argument[0], &key_size) || !parse(s->argument[1], &buckets))
        return FAILED;
    metradb *db =
        metradb_open(s->path, &(struct metradb_options){.flags = METRADB_CREATE | METRADB_EXCLUSIVE,
                                                        .key_size = key_size,
                                                        .buckets = buckets});
    return db && metradb_close(db) == 0 ? DONE : failed();
}

static int remove_container(const struct session *s)
{
    return metradb_remove(s->path) == 0 ? DONE : failed();
}

/* ---- the program ----------------------------------------------------------------------------- */

static const struct command {
    const char *name;
    int least, most; /* arguments */
    enum { NOT_OPEN, READING, WRITING } how;
    int (*run)(const struct session *);
} commands[] = {
    {"create", 2, 2, NOT_OPEN, create},
    {"put", 1, 2, WRITING, put},
    {"get", 1, 1, READING, get},
    {"delete", 1, 1, WRITING, delete},
    {"list", 0, 0, READING, list},
    {"count", 0, 0, READING, count},
    {"import", 0, 0, WRITING, import},
    {"batch", 0, 0, WRITING, batch},
    {"info", 0, 0, READING, info},
    {"check", 0, 0, READING, check},
    {"remove", 0, 0, NOT_OPEN, remove_container},
};

static const struct command *find_command(const char *name, int arguments)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        const struct command *c = &commands[i];
        if (strcmp(c->name, name) == 0 && arguments >= c->least && arguments <= c->most)
            return c;
    }
    return NULL;
}

static int run(const struct command *command, struct session *s)
{
    if (command->how == NOT_OPEN)
        return command->run(s);
    bool writes = command->how == WRITING;
    s->db =
        metradb_open(s->path, &(struct metradb_options){.flags = writes ? 0 : METRADB_READONLY});
    if (!s->db)
        return failed();
    int status = command->run(s);
    if (status == DONE && writes && metradb_commit(s->db) != 0)
        status = failed();
    if (metradb_close(s->db) != 0) /* undoes what was not committed */
        status = failed();
    return status;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"hex", no_argument, NULL, 'x'}, {0}};
    struct session s = {0};
    int option;
    while ((option = getopt_long(argc, argv, "+x", options, NULL)) != -1) {
        if (option != 'x')
            return usage();
        s.hex = true;
    }
    if (argc - optind < 2)
        return usage();
    s.path = argv[optind];
    s.argument = argv + optind + 2;
    s.arguments = argc - optind - 2;
    const struct command *command = find_command(argv[optind + 1], s.arguments);
    if (!command)
        return usage();

    int status = run(command, &s);
    if (fflush(stdout) != 0 || ferror(stdout))
        return complain(strerror(errno), "standard output");
    return status;
}
