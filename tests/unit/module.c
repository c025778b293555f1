/* A library that a container's pointers lead into. Compiled twice: as somebody's next version, too. */
__attribute__((visibility("default"))) int module_version(int plus)
{
    return VERSION + plus;
}
