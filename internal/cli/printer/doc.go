// Package printer writes answers for people: the text and the tables behind -o table. Each function takes a value and
// writes it; the same value is what -o json and -o yaml print. It must not fetch anything, read flags or files, nor
// depend on the time other than by an argument.
package printer
