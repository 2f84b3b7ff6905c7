// Package table lays out text for a terminal: pages of lines that wrap at words, and tables whose columns share the
// width of a page. A watched list can continue as one table that gets only the rows that changed. The package knows
// nothing about the contents: it must not import the API, Kubernetes or cobra.
package table
