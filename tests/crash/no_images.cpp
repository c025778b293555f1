// A planted bug: pages open without their pre-image being taken.
extern "C" void __wrap_log_write_image() {}
