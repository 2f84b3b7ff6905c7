// Package printer writes answers for people: the text and tables behind -o table. Each function writes a value on a
// Page; -o json and -o yaml print the same value (Write). A page has lines that wrap at words, and tables as kubectl
// prints them (page.go, table.go). It must not fetch anything or read flags or files; a Page has the clock.
package printer
