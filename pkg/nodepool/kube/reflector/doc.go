// Package reflector keeps a store up to date with objects that a deployment may not have the right to read, or whose
// kind may not exist. client-go's reflector retries for ever and logs each failure; this one pauses and reports once.
// It also says how long a call to the API server may take, and how long to wait between two. It must not know any kind
// of object.
package reflector
