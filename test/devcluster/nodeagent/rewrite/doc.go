// Package rewrite changes the commands and environments of containers so that many pods, and many Ray nodes, can share
// one machine without cluster DNS.
//
// It must not know pods, processes or clients: it turns text into text.
package rewrite
