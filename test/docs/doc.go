// Package docs types the commands of documentation pages as a reader would: those of the quick start in a clean shell
// with an empty home, in a copy of the source without anything built, where what the page shows as printed must be
// printed; those of other pages on a RayCluster that is there, where they must succeed.
package docs
