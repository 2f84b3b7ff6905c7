// Package printer writes answers for people: the text and tables behind -o table. Each function writes a value on a
// Page; -o json and -o yaml print the same value (WriterOf). A page has lines that wrap at words, and tables whose
// columns share its width (page.go, table.go); a watched list can continue as one table that gets only the rows that
// changed. It must not fetch anything or read flags or files; a Look has the clock.
package printer
