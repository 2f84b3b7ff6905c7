// Package neighbours runs Heliostat beside controllers that act on the same pods and nodes: the real ones, built from
// their modules, each in a dev cluster of its own. What it asserts is that the two do no harm to each other.
package neighbours
