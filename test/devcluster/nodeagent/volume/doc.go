// Package volume makes the directories of a pod: its home, its volumes, its service account token, and the directory
// for Ray's sessions.
//
// It must not mount anything, which package sandbox does, and must not know clients: Source reads the objects.
package volume
