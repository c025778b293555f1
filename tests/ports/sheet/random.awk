# Random commands for sheet: -v seed -v lines.
function any(n) { return int(rand() * n) + 1 }
function place() { return substr("ABCDEF", any(6), 1) any(12) }
function area() { return place() ":" place() }
BEGIN {
    srand(seed)
    for (i = 1; i <= lines; i++) {
        kind = any(20)
        if (kind <= 5)
            print "set " place() " " any(100)
        else if (kind <= 8)
            print "set " place() " =" place() "*" any(9) "+SUM(" area() ")"
        else if (kind == 9)
            print "set " place() " text" i
        else if (kind == 10)
            print "set " place() " =AVERAGE(name_" any(5) ")&name_" any(5)
        else if (kind == 11)
            print "copy " area() " " place()
        else if (kind == 12)
            print "sort " area() " " substr("ABCDEF", any(6), 1) (any(2) == 1 ? " down" : "")
        else if (kind == 13)
            print "name name_" any(5) " " area()
        else if (kind == 14)
            print "unname name_" any(5)
        else if (kind == 15)
            print "clear " area()
        else
            print any(3) == 1 ? "redo" : "undo"
    }
}
