// Package printer writes answers for people: the text and tables behind -o table. Each function takes a value and
// writes it; -o json and -o yaml print the same value. It must not fetch anything, read flags or files, or read the
// clock.
package printer
