/*
 * A program that is not linked with libpm loads a plugin that is, unloads it, and does so again. The
 * library stays, for its SIGSEGV handler and its mappings do: a fault of the program still finds the
 * program's own handler.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static sigjmp_buf after_fault;

static void own_handler(int number)
{
    siglongjmp(after_fault, number);
}

static void require(int condition, const char *what)
{
    if (condition)
        return;
    const char *reason = dlerror();
    fprintf(stderr, "%s: %s\n", what, reason ? reason : "failed");
    exit(1);
}

/* unloaded PLUGIN */
int main(int argc, char **argv)
{
    require(argc == 2 && signal(SIGSEGV, own_handler) != SIG_ERR, "to begin");
    char path[] = "/dev/shm/libpm-unloaded-XXXXXX";
    int fd = mkstemp(path);
    require(fd >= 0 && remove(path) == 0, "a name");
    for (int run = 1; run <= 2; run++) {
        void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        require(plugin != NULL, "dlopen");
        int (*count)(const char *) = (int (*)(const char *))dlsym(plugin, "count");
        require(count && count(path) == run, "what the plugin counts");
        require(dlclose(plugin) == 0 && !dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD), "dlclose");
    }
    require(remove(path) == 0, "to delete it");

    char *nothing = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(nothing != MAP_FAILED, "mmap");
    int number = sigsetjmp(after_fault, 1);
    if (number == 0)
        *(volatile char *)nothing = 1;
    require(number == SIGSEGV, "a fault");
    return 0;
}
