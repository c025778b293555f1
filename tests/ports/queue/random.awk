# Random commands for tasks: -v seed -v lines.
function any(n) { return int(rand() * n) + 1 }
BEGIN {
    srand(seed)
    for (i = 1; i <= lines; i++) {
        kind = any(10)
        if (kind <= 4)
            print "add task " i
        else if (kind <= 6)
            print "note " any(20) " note " i
        else if (kind == 7)
            print "first " any(30)
        else if (kind == 8)
            print "after " any(30) " " any(30)
        else
            print "done " any(20)
    }
}
