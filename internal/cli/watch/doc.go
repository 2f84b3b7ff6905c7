// Package watch shows an answer of the server once, or with -w again whenever something changes: on a terminal it
// overwrites the last one, elsewhere it writes only answers that differ by more than the passing of time. It must not
// know what the answer is: the subcommand passes a function that fetches and writes it.
package watch
