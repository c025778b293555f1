/*
 * wordindex: counts how often each word occurs in a text, in an index that survives kill -9.
 *
 * The index is a red-black tree of words. The macros of <bsd/sys/tree.h> make it, as tree(3bsd) says;
 * the nodes come from pm_malloc(). Persistence adds three calls to this ordinary program: pm_open() and
 * pm_setroot() at the start, and pm_commit() every few lines.
 *
 *     wordindex words.pm text.txt             index the text, or go on where the last run died
 *     wordindex --list words.pm               print the index in the form of uniq -c
 *
 * The root has the tree, and `offset`: how many bytes of the text are in the index. One commit covers
 * both. So a run that is killed at any moment leaves an index of exactly the first `offset` bytes. The
 * next run seeks to this offset and goes on: no line is lost or counted twice.
 *
 * A word is a longest run of ASCII letters, in lower case, as this pipeline prints it in the C locale:
 *
 *     tr -cs A-Za-z '\n' | tr A-Z a-z
 *
 * Cost: O(log distinct words) comparisons per word. The volatile memory in use is one line of text.
 *
 * Exit status: 0; 1 if a check failed; 2 if anything else went wrong.
 */
#include <libpm.h>

#include <bsd/sys/tree.h>

#include <argp.h>
#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------------------------
 * The index: ordinary C
 */

struct word {
    RB_ENTRY(word) entry;
    uint64_t count; /* occurrences, at least 1 */
    char text[];    /* lower-case letters, at least one, and a NUL */
};

static int compare_words(struct word *a, struct word *b)
{
    return strcmp(a->text, b->text);
}

RB_HEAD(word_tree, word);
RB_PROTOTYPE(word_tree, word, entry, compare_words)
RB_GENERATE(word_tree, word, entry, compare_words)

/* The root of the container. */
struct index {
    struct word_tree tree;
    uint64_t distinct;  /* words in the tree */
    uint64_t words;     /* sum of their counts */
    uint64_t offset;    /* bytes of the text that are in the index: whole lines */
    uint64_t lines;     /* lines in these bytes */
    uint64_t text_size; /* bytes; a text of another size is another text */
    uint64_t commits;   /* in all runs */
};

/* Count one more occurrence of the word in `key`, a node outside the tree. False if memory runs out. */
static bool count_word(pm_container *c, struct index *index, struct word *key)
{
    struct word *word = RB_FIND(word_tree, &index->tree, key);
    if (!word) {
        size_t size = sizeof *word + strlen(key->text) + 1;
        word = pm_malloc(c, size);
        if (!word)
            return false;
        memcpy(word, key, size);
        word->count = 0;
        RB_INSERT(word_tree, &index->tree, word);
        index->distinct++;
    }
    word->count++;
    index->words++;
    return true;
}

/* Count the words of a line. `key` is scratch space, with room for a word of the line's length. */
static bool count_line(pm_container *c, struct index *index, const char *line, size_t length,
                       struct word *key)
{
    size_t letters = 0;
    for (size_t i = 0; i <= length; i++) {
        char lower = i < length ? (char)(line[i] | 0x20) : 0;
        if (lower >= 'a' && lower <= 'z') {
            key->text[letters++] = lower;
        } else if (letters) {
            key->text[letters] = 0;
            letters = 0;
            if (!count_word(c, index, key))
                return false;
        }
    }
    return true;
}

/*
 * The number of black nodes on every path down from `word`. -1 if the subtree breaks an invariant of
 * red-black trees. Adds the subtree's words to `seen`.
 */
static int survey(struct word *word, struct word *parent, struct index *seen)
{
    if (!word)
        return 1;
    bool red = RB_COLOR(word, entry) == RB_RED;
    if (RB_PARENT(word, entry) != parent || (red && parent && RB_COLOR(parent, entry) == RB_RED))
        return -1;
    int left = survey(RB_LEFT(word, entry), word, seen);
    int right = survey(RB_RIGHT(word, entry), word, seen);
    seen->distinct++;
    seen->words += word->count;
    return left < 0 || left != right ? -1 : left + !red;
}

/* NULL if the tree is whole and has the words that the index counts. Else a text that says what is wrong. */
static const char *check_index(struct index *index)
{
    struct index seen = {0};
    struct word *root = RB_ROOT(&index->tree);
    if (survey(root, NULL, &seen) < 0 || (root && RB_COLOR(root, entry) == RB_RED))
        return "no red-black tree";
    if (seen.distinct != index->distinct || seen.words != index->words)
        return "words lost or counted twice";

    struct word *word, *previous = NULL;
    RB_FOREACH(word, word_tree, &index->tree)
    {
        if (!word->count || !word->text[0] ||
            word->text[strspn(word->text, "abcdefghijklmnopqrstuvwxyz")])
            return "no word";
        if (previous && compare_words(previous, word) >= 0)
            return "words out of order";
        previous = word;
    }
    return NULL;
}

static void list(struct index *index)
{
    struct word *word;
    RB_FOREACH(word, word_tree, &index->tree)
    printf("%7" PRIu64 " %s\n", word->count, word->text); /* as uniq -c */
}

/* ---------------------------------------------------------------------------------------------
 * The program around it
 */

struct arguments {
    const char *container;
    const char *text; /* NULL: none */
    uint64_t lines_per_commit;
    bool list;
    bool check;
    bool progress;
};

static int failed(const char *what)
{
    error(0, 0, "%s: %s", what, pm_errormsg());
    return 2;
}

/* Redraw the bar if it has moved by a thousandth. The \r at its end lets the next bar cover it. */
static void draw_progress(const struct index *index)
{
    static uint64_t drawn = UINT64_MAX;
    uint64_t permille = index->text_size ? index->offset * 1000 / index->text_size : 1000;
    if (permille == drawn)
        return;
    drawn = permille;
    static const char full[] = "########################################";
    int length = (int)(permille * (sizeof full - 1) / 1000);
    fprintf(stderr, "[%-*.*s] %3u.%u %%  %9" PRIu64 " words\r", (int)sizeof full - 1, length, full,
            (unsigned)(permille / 10), (unsigned)(permille % 10), index->words);
}

/* Open the text, at the offset of the last commit. On failure print a message and return NULL. */
static FILE *open_text(struct index *index, const struct arguments *arguments)
{
    FILE *text = fopen(arguments->text, "r");
    struct stat st;
    if (text && !fstat(fileno(text), &st) && !fseeko(text, (off_t)index->offset, SEEK_SET)) {
        if (!index->offset)
            index->text_size = (uint64_t)st.st_size;
        if (index->text_size == (uint64_t)st.st_size)
            return text;
        error(0, 0, "%s: not the text that %s was begun with: its size differs", arguments->text,
              arguments->container);
    } else {
        error(0, errno, "%s", arguments->text);
    }
    if (text)
        fclose(text);
    return NULL;
}

static bool commit(pm_container *c, struct index *index, const struct arguments *arguments)
{
    index->commits++;
    if (pm_commit(c))
        return false;
    if (arguments->progress)
        draw_progress(index);
    return true;
}

/* Index the text from the offset of the last commit to the end. */
static int index_text(pm_container *c, struct index *index, const struct arguments *arguments)
{
    FILE *text = open_text(index, arguments);
    if (!text)
        return 2;

    int status = 0;
    bool pending = !index->commits; /* there is something to commit; in the first run, the index itself */
    char *line = NULL;
    struct word *key = NULL;
    size_t room = 0, key_room = 0; /* bytes of a line, and of a word */
    ssize_t length;
    while (!status && (length = getline(&line, &room, text)) >= 0) {
        if (key_room < room) {
            free(key);
            key = calloc(1, sizeof *key + room);
            key_room = key ? room : 0;
        }
        if (!key) {
            error(0, ENOMEM, "line %" PRIu64, index->lines + 1);
            status = 2;
        } else if (!count_line(c, index, line, (size_t)length, key)) {
            status = failed("pm_malloc");
        } else {
            index->offset += (uint64_t)length;
            index->lines++;
            pending = index->lines % arguments->lines_per_commit != 0;
            if (!pending && !commit(c, index, arguments))
                status = failed("pm_commit");
        }
    }
    if (!status && !feof(text)) {
        error(0, errno, "%s", arguments->text);
        status = 2;
    }
    if (!status && pending && !commit(c, index, arguments))
        status = failed("pm_commit");
    if (arguments->progress)
        fputc('\n', stderr);
    free(key);
    free(line);
    fclose(text);
    return status;
}

/* Check the index that the container has at the start, and print its state. */
static int report_found(pm_container *c, struct index *index)
{
    struct pm_stats stats = {.size = sizeof stats};
    if (pm_stats(c, &stats))
        return failed("pm_stats");
    const char *offence = check_index(index);
    if (offence) {
        error(0, 0, "index is damaged: %s", offence);
        return 1;
    }
    fprintf(stderr,
            "%s: %" PRIu64 " words, %" PRIu64
            " lines, tree whole (checked), recovery took %.3f ms\n",
            stats.recovered ? "recovered" : "opened", index->words, index->lines,
            (double)stats.recovery_ns / 1e6);
    return 0;
}

static int run(pm_container *c, const struct arguments *arguments)
{
    int status = 0;
    struct index *index = pm_getroot(c);
    if (index && arguments->text) {
        status = report_found(c, index);
    } else if (arguments->text) {
        index = pm_calloc(c, 1, sizeof *index); /* all zero: an empty tree, at offset 0 */
        if (!index || pm_setroot(c, index, 0))
            return failed("no room for the root");
    } else if (!index) {
        error(0, 0, "%s: nothing in it yet", arguments->container);
        return 2;
    }
    if (!status && arguments->text)
        status = index_text(c, index, arguments);
    if (!status && arguments->text)
        printf("indexed: %" PRIu64 " words, %" PRIu64 " distinct, %" PRIu64 " lines, %" PRIu64
               " commits\n",
               index->words, index->distinct, index->lines, index->commits);
    if (!status && arguments->check) {
        const char *offence = check_index(index);
        if (!offence && pm_check(c))
            offence = pm_errormsg();
        printf("check: %s\n", offence ? offence : "container and index are whole");
        status = offence != NULL;
    }
    if (!status && arguments->list)
        list(index);
    return status;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    char *end;
    switch (key) {
    case 'n':
        errno = 0;
        arguments->lines_per_commit = strtoull(arg, &end, 10);
        if (arg[0] < '0' || arg[0] > '9' || *end || errno || !arguments->lines_per_commit)
            argp_error(state, "--commit-every wants a positive number, not \"%s\"", arg);
        return 0;
    case 'l':
        arguments->list = true;
        return 0;
    case 'c':
        arguments->check = true;
        return 0;
    case 'p':
        arguments->progress = true;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 1)
            argp_usage(state);
        *(state->arg_num ? &arguments->text : &arguments->container) = arg;
        return 0;
    case ARGP_KEY_END:
        if (!arguments->container || (!arguments->text && !arguments->list && !arguments->check))
            argp_usage(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"commit-every", 'n', "LINES", 0, "Commit after so many lines (default 1000)", 0},
        {"list", 'l', 0, 0, "Print the index, as uniq -c would", 0},
        {"check", 'c', 0, 0, "Check the container and the index", 0},
        {"progress", 'p', 0, 0, "Show a progress bar even if standard error is no terminal", 0},
        {0},
    };
    static const struct argp argp = {
        options,
        parse_option,
        "CONTAINER [TEXT]",
        "Index the words of TEXT in CONTAINER. If an earlier run was interrupted, go on from its "
        "last commit.",
        NULL,
        NULL,
        NULL};
    struct arguments arguments = {.lines_per_commit = 1000, .progress = isatty(STDERR_FILENO)};
    argp_err_exit_status = 2;
    argp_parse(&argp, argc, argv, 0, NULL, &arguments);

    /* PM_UNSAFE_POWER: on an ordinary file, commits need only survive the death of the process. */
    pm_container *c =
        pm_open(arguments.container,
                &(struct pm_options){
                    .size = sizeof(struct pm_options),
                    .flags = PM_UNSAFE_POWER | (arguments.text ? PM_CREATE : PM_READONLY),
                    .layout = "wordindex/1",
                });
    if (!c)
        return failed("pm_open");
    int status = run(c, &arguments);
    if (pm_close(c))
        status = failed("pm_close");
    if (fflush(stdout)) {
        error(0, errno, "standard output");
        status = 2;
    }
    return status;
}
