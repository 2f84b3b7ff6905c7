// Package lostdata takes away what the control plane has stored while Heliostat runs. It has a control plane of its own, without nodes and operator,
// and a simulated Ray head: what is tested is what Heliostat believes and writes.
package lostdata
