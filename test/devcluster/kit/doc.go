// Package kit builds what a dev cluster is made of into a cache: programs from pinned Go modules, Ray from pinned
// Python packages, and programs of this repository. It imports the standard library alone, so that it runs within
// seconds on a machine where nothing was built yet, judges that machine first, and tells how far it is from the first
// minute on.
package kit
