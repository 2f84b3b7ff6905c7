// Package printer writes answers for people: the text and tables behind -o table. Each function takes a value and
// writes it; -o json and -o yaml print the same value. A page has lines that wrap at words, and tables whose columns
// share its width (page.go, table.go); a watched list can continue as one table that gets only the rows that changed.
// It must not fetch anything, read flags or files, or read the clock.
package printer
