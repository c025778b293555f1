# Judge coverage in lcov's format (SF:file, DA:line,count, BRDA:line,block,branch,count,
# end_of_record), against the marks in the sources: see scripts/coverage. -v prefix=ROOT/

function complain(line, what) {
    printf "%s:%d: %s: %s\n", file, line, what, text[line] >"/dev/stderr"
    errors++
}

# Lines [first, last] were not executed.
function judge_run(first, last,    i, marks) {
    for (i = first; i <= last; i++)
        if (i in marked) {
            marks++
            delete marked[i]
        }
    excused += marks ? last - first + 1 : 0
    for (i = first; i <= last && !marks; i++)
        complain(i, "not executed")
}

function percent(part, all) {
    return all ? sprintf("%.2f %%", 100 * part / all) : "-"
}

function report(name, lines, missed, excused, branches, taken) {
    printf "%-30s %6d %6d %6d %10s %8d %6d %10s\n", name, lines, missed, excused,
        percent(lines - missed, lines), branches, branches - taken,
        percent(taken, branches) | "sort -s -k1,1" # with "all" before "src/"
}

BEGIN {
    printf "%-30s %6s %6s %6s %10s %8s %6s %10s\n", "", "lines", "missed", "marked", "", "branches",
        "missed", ""
    fflush()
}

/^SF:/ {
    path = file = substr($0, 4)
    sub(prefix, "", file)
    for (n = 0; (getline row <path) > 0;) {
        text[++n] = row
        if (row ~ /\/\* unreachable: /)
            marked[n]
    }
    close(path)
}

/^DA:/ {
    split(substr($0, 4), field, ",")
    lines++
    missed += count[field[1]] = field[2] == 0
}

/^BRDA:/ {
    branches++
    taken += $0 !~ /,(0|-)$/
}

/^end_of_record/ {
    for (i = 1; i <= n; i++)
        if (count[i]) {
            for (first = i; count[i + 1]; i++)
                ;
            judge_run(first, i)
        }
    for (i in marked)
        complain(i, "marked as unreachable, and executed")
    report(file, lines, missed, excused, branches, taken)
    all_lines += lines; all_missed += missed; all_excused += excused
    all_branches += branches; all_taken += taken
    lines = missed = excused = branches = taken = 0
    delete text; delete marked; delete count
}

END {
    report("all", all_lines, all_missed, all_excused, all_branches, all_taken)
    exit errors > 0
}
