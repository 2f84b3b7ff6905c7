// Package reflector keeps a store up to date with objects that a deployment may not have the right to read, or whose
// kind may not exist. client-go's reflector retries for ever and logs each failure; this one pauses and reports once.
// It must not know any kind of object.
package reflector
