// Package docs types the commands of documentation pages as a reader would: from the page, in a clean shell with an empty home, in a copy
// of the source without anything built. What the pages show as printed must be printed.
package docs
