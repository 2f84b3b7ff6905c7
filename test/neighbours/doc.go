// Package neighbours runs Heliostat beside other controllers that act on the same pods and nodes. Each controller is
// the real one, built from its module, in its own dev cluster. The tests assert that neither controller harms the
// other. They must not use simulated controllers.
package neighbours
