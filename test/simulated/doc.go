// Package simulated runs Heliostat on a real control plane, without nodes and without the operator, and with a
// simulated Ray head. Its tests are about what Heliostat sees and writes in Kubernetes, where a real Ray would add
// minutes and no proof. Each test has a control plane of its own, because tests change what all of it shares.
package simulated
