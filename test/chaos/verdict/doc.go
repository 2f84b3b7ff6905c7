// Package verdict judges a history of facts about RayClusters that Heliostat scales. The facts come from the API
// server, from Ray heads and from the kernel. Nothing here reads what Heliostat says about itself, and nothing is
// shared with it: the package imports only the standard library, so that a mistake of the product cannot hide itself in
// its own judge.
package verdict
