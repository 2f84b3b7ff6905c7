// Package docs types the commands of documentation pages as a reader would. It runs the quick start in a clean shell,
// with an empty home, in a copy of the source without build outputs, and checks the output against the page. It runs
// the commands of the other pages against an existing RayCluster, where they must succeed. It must not change a
// command, except for addresses and names that may be in use on the machine.
package docs
