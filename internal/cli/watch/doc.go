// Package watch shows an answer of the server once, or with -w again whenever something changes: over itself on a
// terminal, and elsewhere only if it differs by more than the passing of time. It must not know what the answer is: the
// subcommand passes a function that fetches and writes it.
package watch
