/*
 * tasks: a list of things to do, in order. It reads commands from standard input, one a line.
 *
 *     add TEXT        a task at the end            note N TEXT     a remark on task N
 *     first N         do task N first              after N M       do task N after task M
 *     done N          forget task N                list            all tasks, with their remarks
 *
 * The board is a TAILQ of tasks, each with a LIST of notes (<sys/queue.h>). Tasks are numbered in order.
 * A command answers with one or more lines; after a mistake, with one that begins with "error".
 */
#include <err.h>
#include <libpm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct note {
    LIST_ENTRY(note) link;
    char text[];
};

struct task {
    TAILQ_ENTRY(task) link;
    LIST_HEAD(, note) notes; /* the newest first */
    char *text;
};

struct board {
    TAILQ_HEAD(task_list, task) tasks;
    size_t count; /* of tasks */
};

static void *allocate(size_t size)
{
    void *memory = malloc(size);
    if (!memory)
        err(1, NULL);
    return memory;
}

static struct board *new_board(void)
{
    struct board *board = allocate(sizeof *board);
    TAILQ_INIT(&board->tasks);
    board->count = 0;
    return board;
}

/* The task of this number; the first task has number 1. NULL after a complaint. */
static struct task *find(struct board *board, const char *number)
{
    char *end;
    unsigned long left = strtoul(number, &end, 10);
    struct task *task;
    TAILQ_FOREACH(task, &board->tasks, link)
    if (--left == 0)
        return task;
    printf("error: no task %.*s\n", (int)strcspn(number, " "), number);
    return NULL;
}

static void add(struct board *board, const char *text)
{
    struct task *task = allocate(sizeof *task);
    LIST_INIT(&task->notes);
    task->text = strdup(text);
    if (!task->text)
        err(1, NULL);
    TAILQ_INSERT_TAIL(&board->tasks, task, link);
    printf("%zu: %s\n", ++board->count, text);
}

static void annotate(struct task *task, const char *text)
{
    struct note *note = allocate(sizeof *note + strlen(text) + 1);
    strcpy(note->text, text);
    LIST_INSERT_HEAD(&task->notes, note, link);
    printf("%s: %s\n", task->text, text);
}

static void do_first(struct board *board, struct task *task)
{
    TAILQ_REMOVE(&board->tasks, task, link);
    TAILQ_INSERT_HEAD(&board->tasks, task, link);
    printf("first: %s\n", task->text);
}

static void do_after(struct board *board, struct task *task, struct task *other)
{
    if (task != other) {
        TAILQ_REMOVE(&board->tasks, task, link);
        TAILQ_INSERT_AFTER(&board->tasks, other, task, link);
    }
    printf("after %s: %s\n", other->text, task->text);
}

static void forget(struct board *board, struct task *task)
{
    printf("done: %s\n", task->text);
    TAILQ_REMOVE(&board->tasks, task, link);
    while (!LIST_EMPTY(&task->notes)) {
        struct note *note = LIST_FIRST(&task->notes);
        LIST_REMOVE(note, link);
        free(note);
    }
    free(task->text);
    free(task);
    board->count--;
}

static void list(struct board *board)
{
    size_t number = 0;
    struct task *task;
    struct note *note;
    TAILQ_FOREACH(task, &board->tasks, link)
    {
        printf("%zu: %s\n", ++number, task->text);
        LIST_FOREACH(note, &task->notes, link)
        printf("    %s\n", note->text);
    }
    printf("tasks: %zu\n", board->count);
}

/* The text after the next blank; "" if there is no blank. */
static const char *after_word(const char *text)
{
    text += strcspn(text, " ");
    return text + strspn(text, " ");
}

static void execute(struct board *board, const char *line)
{
    const char *argument = after_word(line), *second = after_word(argument);
    size_t length = strcspn(line, " ");
    struct task *task, *other;

    if (strncmp(line, "add ", length + 1) == 0 && *argument) {
        add(board, argument);
    } else if (strncmp(line, "note ", length + 1) == 0 && *second) {
        if ((task = find(board, argument)))
            annotate(task, second);
    } else if (strncmp(line, "first ", length + 1) == 0 && *argument) {
        if ((task = find(board, argument)))
            do_first(board, task);
    } else if (strncmp(line, "after ", length + 1) == 0 && *second) {
        if ((task = find(board, argument)) && (other = find(board, second)))
            do_after(board, task, other);
    } else if (strncmp(line, "done ", length + 1) == 0 && *argument) {
        if ((task = find(board, argument)))
            forget(board, task);
    } else if (strcmp(line, "list") == 0) {
        list(board);
    } else {
        printf("error: not understood: %s\n", line);
    }
}

int main(void)
{
    struct pm_options options = {.size = sizeof options, .flags = PM_CREATE | PM_DISCOVER};
    pm_container *c = pm_open("tasks.pm", &options);
    struct board *board = c && pm_getroot(c) ? pm_getroot(c) : new_board();
    if (!c || pm_setroot(c, board, 0) != 0)
        errx(1, "%s", pm_errormsg());
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) >= 0) {
        line[strcspn(line, "\n")] = 0;
        execute(board, line);
        if (pm_commit(c) != 0)
            errx(1, "%s", pm_errormsg());
        fflush(stdout);
    }
    return 0;
}
