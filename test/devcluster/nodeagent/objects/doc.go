// Package objects reads what pods refer to from the API server: ConfigMaps, Secrets, service account tokens, and the
// pods behind Services.
//
// It must not write anything, and caches nothing.
package objects
