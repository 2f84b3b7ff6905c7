// Package table lays text out for a terminal: pages of lines that are broken at words, and tables whose columns share
// the width of a page. A list that is watched can continue as one table that gets only the rows that changed. The
// package knows nothing of what it writes: it must not import the API, Kubernetes or cobra.
package table
