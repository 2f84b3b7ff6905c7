// Package timing says how long a call to the API server may take, and how long to wait between two. It must not know
// what is called.
package timing
