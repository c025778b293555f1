/*
 * metradb: a METRADB container from the command line; metradb.1 is its manual.
 *
 *     metradb users.db create 4 1000
 *     metradb users.db put 0007 Ada       metradb users.db get 0007       metradb users.db list
 *
 * Each command is one transaction. If it exits with 0, its changes are durable; else there are none.
 * Exit status: 0; 1 with a message if the command failed, or without a message if a key is absent.
 * 2 if the command line is wrong.
 */
#include "common/text.h"
#include "metradb.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DONE = 0, NOT_DONE = 1, MISUSED = 2 };

/* The state of a running command. */
struct session {
    const char *path;
    bool hex;                   /* keys and values are hexadecimal */
    bool misused;               /* an argument is wrong */
    bool absent;                /* a key was absent */
    metradb *db;                /* NULL: the command opens no container */
    struct metradb_bytes input; /* for put: all of standard input; owned */
    char **argument;            /* an array of `arguments` strings */
    int arguments;
};

static int usage(FILE *out)
{
    fputs("usage: metradb [-x] FILE COMMAND\n"
          "  create LENGTH BUCKETS  a new container, for keys of LENGTH bytes\n"
          "  put KEY [VALUE]        map KEY to VALUE, or to what standard input has\n"
          "  get KEY                print its value\n"
          "  get-many               print the pairs of keys that standard input has, one a line\n"
          "  delete KEY             remove it\n"
          "  list                   print each key, a tab, and its value\n"
          "  count                  print how many pairs there are\n"
          "  import                 put pairs, from lines as those of list\n"
          "  batch                  do lines of put KEY VALUE and delete KEY, with tabs between\n"
          "  info                   print length of keys, number of buckets and of pairs\n"
          "  check                  verify the container and the hash table in it\n"
          "  remove                 delete the container\n"
          "  -x, --hex              keys and values are hexadecimal digits\n",
          out);
    return MISUSED;
}

static int failed(void)
{
    fprintf(stderr, "metradb: %s\n", metradb_errormsg());
    return NOT_DONE;
}

static int complain(const char *what, const char *which)
{
    fprintf(stderr, "metradb: %s: %s\n", which, what);
    return NOT_DONE;
}

/* ---- one pair -------------------------------------------------------------------------------- */

/* Read a key or a value on the command line: hexadecimal with --hex, else the bytes themselves. */
static bool read_argument(struct session *s, int i, struct metradb_bytes *bytes)
{
    char *text = s->argument[i];
    size_t size = strlen(text);
    if (s->hex && !text_decode(text, &size, true)) {
        complain("not hexadecimal; -x wants two digits for each byte", text);
        s->misused = true;
    }
    *bytes = metradb_ref(text, size);
    return !s->misused;
}

/* Read all of standard input. */
static bool read_input(struct session *s)
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
    s->input = metradb_ref(data, size);
    return good;
}

static int put(struct session *s)
{
    struct metradb_bytes key, value = s->input;
    if (!read_argument(s, 0, &key) || (s->arguments == 2 && !read_argument(s, 1, &value)))
        return NOT_DONE;
    return metradb_put(s->db, key, value) < 0 ? failed() : DONE;
}

static int get(struct session *s)
{
    struct metradb_bytes key, value;
    if (!read_argument(s, 0, &key))
        return NOT_DONE;
    int found = metradb_get(s->db, key, &value);
    if (found < 0)
        return failed();
    if (!found)
        return NOT_DONE;
    if (s->hex)
        text_print(stdout, value.data, value.size, true);
    else
        fwrite(value.data, 1, value.size, stdout);
    if (s->hex || isatty(STDOUT_FILENO))
        putchar('\n');
    return DONE;
}

static int delete(struct session *s)
{
    struct metradb_bytes key;
    if (!read_argument(s, 0, &key))
        return NOT_DONE;
    int deleted = metradb_delete(s->db, key);
    return deleted < 0 ? failed() : deleted ? DONE : NOT_DONE;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Cut the line at its tabs into at most `most` fields. Returns the number of fields. */
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

static bool decode_field(struct session *s, struct metradb_bytes *field)
{
    return text_decode((char *)field->data, &field->size, s->hex);
}

static bool is_word(struct metradb_bytes field, const char *word)
{
    return field.size == strlen(word) && memcmp(field.data, word, field.size) == 0;
}

static void print_pair(const struct session *s, struct metradb_bytes key,
                       struct metradb_bytes value)
{
    text_print(stdout, key.data, key.size, s->hex);
    putchar('\t');
    text_print(stdout, value.data, value.size, s->hex);
    putchar('\n');
}

/* The next three functions carry out a line. They return NULL, or a text that says what is wrong. */

static const char *import_line(struct session *s, char *line, size_t length)
{
    struct metradb_bytes field[2];
    if (split(line, length, field, 2) != 2 || !decode_field(s, &field[0]) ||
        !decode_field(s, &field[1]))
        return "not KEY, a tab, VALUE, as list prints them";
    return metradb_put(s->db, field[0], field[1]) < 0 ? metradb_errormsg() : NULL;
}

static const char *batch_line(struct session *s, char *line, size_t length)
{
    struct metradb_bytes field[3];
    size_t count = split(line, length, field, 3);
    if (count == 3 && is_word(field[0], "put") && decode_field(s, &field[1]) &&
        decode_field(s, &field[2]))
        return metradb_put(s->db, field[1], field[2]) < 0 ? metradb_errormsg() : NULL;
    if (count == 2 && is_word(field[0], "delete") && decode_field(s, &field[1]))
        return metradb_delete(s->db, field[1]) < 0 ? metradb_errormsg() : NULL;
    return "neither put, KEY, VALUE nor delete, KEY, with a tab between";
}

static const char *get_line(struct session *s, char *line, size_t length)
{
    struct metradb_bytes key, value;
    if (split(line, length, &key, 1) != 1 || !decode_field(s, &key))
        return "not a KEY as list prints it";
    int found = metradb_get(s->db, key, &value);
    if (found == 1)
        print_pair(s, key, value);
    s->absent |= found == 0;
    return found < 0 ? metradb_errormsg() : NULL;
}

/* Carry out all lines of standard input, up to the first wrong line. */
static int for_each_line(struct session *s,
                         const char *(*act)(struct session *, char *line, size_t length))
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
            fprintf(stderr, "metradb: standard input, line %" PRIu64 ": %s; %s was not changed\n",
                    number, offence, s->path);
            status = NOT_DONE;
        }
    }
    free(line);
    return status == DONE && !feof(stdin) ? complain(strerror(errno), "standard input") : status;
}

static int import(struct session *s)
{
    return for_each_line(s, import_line);
}

static int batch(struct session *s)
{
    return for_each_line(s, batch_line);
}

static int get_many(struct session *s)
{
    int status = for_each_line(s, get_line);
    return s->absent ? NOT_DONE : status;
}

/* ---- whole containers ------------------------------------------------------------------------ */

static int list(struct session *s)
{
    struct metradb_cursor cursor = {0};
    struct metradb_pair pair;
    while (metradb_next(s->db, &cursor, &pair))
        print_pair(s, pair.key, pair.value);
    return DONE;
}

static int count(struct session *s)
{
    printf("%" PRIu64 "\n", metradb_count(s->db));
    return DONE;
}

static int info(struct session *s)
{
    printf("key length: %zu\nbuckets: %" PRIu64 "\npairs: %" PRIu64 "\n", metradb_key_size(s->db),
           metradb_buckets(s->db), metradb_count(s->db));
    return DONE;
}

static int check(struct session *s)
{
    if (metradb_check(s->db) != 0) {
        failed();
        return NOT_DONE;
    }
    printf("%s: %" PRIu64 " pairs: whole\n", s->path, metradb_count(s->db));
    return DONE;
}

/* Read a decimal number. strtoull() alone would also accept "-1" and "". */
static bool read_number(struct session *s, int i, uint64_t *number)
{
    const char *text = s->argument[i];
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && !*end && !errno)
        return true;
    complain("not a number", text);
    s->misused = true;
    return false;
}

static int create(struct session *s)
{
    uint64_t key_size, buckets;
    if (!read_number(s, 0, &key_size) || !read_number(s, 1, &buckets))
        return NOT_DONE;
    metradb *db =
        metradb_open(s->path, &(struct metradb_options){.flags = METRADB_CREATE | METRADB_EXCLUSIVE,
                                                        .key_size = key_size,
                                                        .buckets = buckets});
    return db && metradb_close(db) == 0 ? DONE : failed();
}

static int remove_container(struct session *s)
{
    return metradb_remove(s->path) == 0 ? DONE : failed();
}

/* ---- the program ----------------------------------------------------------------------------- */

static const struct command {
    const char *name;
    int least, most; /* arguments */
    enum { NOT_OPEN, READING, WRITING } how;
    int (*run)(struct session *);
} commands[] = {
    {"create", 2, 2, NOT_OPEN, create}, {"put", 1, 2, WRITING, put},
    {"get", 1, 1, READING, get},        {"get-many", 0, 0, READING, get_many},
    {"delete", 1, 1, WRITING, delete},  {"list", 0, 0, READING, list},
    {"count", 0, 0, READING, count},    {"import", 0, 0, WRITING, import},
    {"batch", 0, 0, WRITING, batch},    {"info", 0, 0, READING, info},
    {"check", 0, 0, READING, check},    {"remove", 0, 0, NOT_OPEN, remove_container},
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
    /* Read before the container is opened: the program that writes to the pipe may have it open. */
    if (command->run == put && s->arguments == 1 && !read_input(s))
        return NOT_DONE;
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
    static const struct option options[] = {
        {"hex", no_argument, NULL, 'x'}, {"help", no_argument, NULL, 'h'}, {0}};
    struct session s = {0};
    int option;
    while ((option = getopt_long(argc, argv, "+xh", options, NULL)) != -1) {
        if (option == 'h') {
            usage(stdout);
            return DONE;
        }
        if (option != 'x')
            return usage(stderr);
        s.hex = true;
    }
    if (argc - optind < 2)
        return usage(stderr);
    s.path = argv[optind];
    s.argument = argv + optind + 2;
    s.arguments = argc - optind - 2;
    const struct command *command = find_command(argv[optind + 1], s.arguments);
    if (!command)
        return usage(stderr);

    int status = run(command, &s);
    free((void *)s.input.data);
    if (fflush(stdout) != 0 || ferror(stdout))
        return complain(strerror(errno), "standard output");
    return s.misused ? MISUSED : status;
}
