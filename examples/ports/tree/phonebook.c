/*
 * phonebook: names and their numbers. It reads commands from standard input, one a line.
 *
 *     put NAME NUMBER   another number for a name     get NAME     its numbers, the newest first
 *     drop NAME         forget the name               next NAME    the name after this one
 *     list              all names, in order
 *
 * The book is an RB tree of <bsd/sys/tree.h>. A name is one word.
 * A command answers with one or more lines; after a mistake, with one that begins with "error".
 */
#include <bsd/sys/tree.h>
#include <err.h>
#include <libpm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct number {
    struct number *older;
    char *digits;
};

struct person {
    RB_ENTRY(person) entry;
    char *name;
    struct number *newest;
};

static int compare(struct person *a, struct person *b)
{
    return strcmp(a->name, b->name);
}

RB_HEAD(people, person);
RB_PROTOTYPE(people, person, entry, compare)
RB_GENERATE(people, person, entry, compare)

struct book {
    struct people people;
    size_t names, numbers;
};

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory)
        err(1, NULL);
    return memory;
}

static char *copy(const char *text)
{
    char *memory = strdup(text);
    if (!memory)
        err(1, NULL);
    return memory;
}

static struct book *new_book(void)
{
    struct book *book = allocate(sizeof *book);
    RB_INIT(&book->people);
    return book;
}

static void print(struct person *person)
{
    printf("%s", person->name);
    for (struct number *number = person->newest; number; number = number->older)
        printf(" %s", number->digits);
    printf("\n");
}

static void put(struct book *book, char *name, const char *digits)
{
    struct person *person = RB_FIND(people, &book->people, &(struct person){.name = name});
    if (!person) {
        person = allocate(sizeof *person);
        person->name = copy(name);
        RB_INSERT(people, &book->people, person);
        book->names++;
    }
    struct number *number = allocate(sizeof *number);
    *number = (struct number){.older = person->newest, .digits = copy(digits)};
    person->newest = number;
    book->numbers++;
    print(person);
}

static void drop(struct book *book, struct person *person)
{
    RB_REMOVE(people, &book->people, person);
    printf("dropped %s\n", person->name);
    for (struct number *number = person->newest, *older; number; number = older) {
        older = number->older;
        free(number->digits);
        free(number);
        book->numbers--;
    }
    free(person->name);
    free(person);
    book->names--;
}

/* Print all names. Check that they are in order, and as many as the book counts. */
static void list(struct book *book)
{
    struct person *person, *previous = NULL;
    size_t names = 0;
    RB_FOREACH(person, people, &book->people)
    {
        print(person);
        if (previous && compare(previous, person) >= 0)
            errx(1, "%s stands before %s", previous->name, person->name);
        previous = person;
        names++;
    }
    if (names != book->names)
        errx(1, "%zu names, not %zu", names, book->names);
    printf("names: %zu, numbers: %zu\n", book->names, book->numbers);
}

static void execute(struct book *book, char *line)
{
    char *command = strtok(line, " "), *name = strtok(NULL, " "), *digits = strtok(NULL, "");
    struct person *person = NULL, key = {.name = name};

    if (!command) {
        printf("error: no command\n");
    } else if (strcmp(command, "list") == 0 && !name) {
        list(book);
    } else if (strcmp(command, "put") == 0 && digits) {
        put(book, name, digits);
    } else if (strcmp(command, "next") == 0 && name && !digits) {
        person = RB_NFIND(people, &book->people, &key);
        if (person && compare(person, &key) == 0)
            person = RB_NEXT(people, &book->people, person);
        printf("%s\n", person ? person->name : "error: no name after that");
    } else if ((strcmp(command, "get") == 0 || strcmp(command, "drop") == 0) && name && !digits) {
        person = RB_FIND(people, &book->people, &key);
        if (!person)
            printf("error: no name %s\n", name);
        else if (*command == 'g')
            print(person);
        else
            drop(book, person);
    } else {
        printf("error: not understood: %s\n", command);
    }
}

int main(void)
{
    struct pm_options options = {.size = sizeof options, .flags = PM_CREATE | PM_DISCOVER};
    pm_container *c = pm_open("phonebook.pm", &options);
    struct book *book = c && pm_getroot(c) ? pm_getroot(c) : new_book();
    if (!c || pm_setroot(c, book, 0) != 0)
        errx(1, "%s", pm_errormsg());
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) >= 0) {
        line[strcspn(line, "\n")] = 0;
        execute(book, line);
        if (pm_commit(c) != 0)
            errx(1, "%s", pm_errormsg());
        fflush(stdout);
    }
    return 0;
}
