/*
 * words: counts the different words of a text on standard input. It answers each line with the number
 * of words so far, and of different words.
 *
 * The words are in a GHashTable of GLib, a library that somebody else has compiled.
 */
#include <err.h>
#include <glib.h>
#include <libpm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct index {
    GHashTable *counts; /* word -> how often it occurs */
    size_t words;
};

static struct index *new_index(void)
{
    struct index *index = malloc(sizeof *index);
    if (!index)
        err(1, NULL);
    index->counts = g_hash_table_new(g_str_hash, g_str_equal);
    index->words = 0;
    return index;
}

static void count(struct index *index, char *line)
{
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) {
        gpointer key = word, occurrences = NULL;
        if (!g_hash_table_lookup_extended(index->counts, word, &key, &occurrences))
            key = strdup(word);
        g_hash_table_insert(index->counts, key,
                            GSIZE_TO_POINTER(GPOINTER_TO_SIZE(occurrences) + 1));
        index->words++;
    }
    printf("words: %zu, different ones: %u\n", index->words, g_hash_table_size(index->counts));
}

int main(void)
{
    struct pm_options options = {.size = sizeof options, .flags = PM_CREATE | PM_DISCOVER};
    pm_container *c = pm_open("words.pm", &options);
    struct index *index = c && pm_getroot(c) ? pm_getroot(c) : new_index();
    if (!c || pm_setroot(c, index, 0) != 0)
        errx(1, "%s", pm_errormsg());
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) >= 0) {
        line[strcspn(line, "\n")] = 0;
        count(index, line);
        if (pm_commit(c) != 0)
            errx(1, "%s", pm_errormsg());
        fflush(stdout);
    }
    return 0;
}
