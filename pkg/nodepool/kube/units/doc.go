// Package units converts quantities of Kubernetes into the amounts that the vocabulary counts in. It must not read
// objects: the packages that know the fields do.
package units
