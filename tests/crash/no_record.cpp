// A planted bug: commits of the redo engine write no record.
extern "C" void __wrap_redo_log_flush() {}
extern "C" void __wrap_redo_log_fill() {}
