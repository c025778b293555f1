// A planted bug: rounds that do not end, but for those that settle recovery and close.
extern "C" int __wrap_medium_fence()
{
    return 0;
}
