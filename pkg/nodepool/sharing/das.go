package sharing

import (
	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// readDAS recognizes a node of OpenShift's Dynamic Accelerator Slicer, which creates MIG instances when pods are
// scheduled. The node announces how many of each profile its cards could have: the amounts are alternatives, and no sum
// of them means anything (openshift/instaslice-operator, pkg/daemonset/deviceplugins/device.go).
func (r *reading) readDAS() bool {
	if !r.gpus.slicedOnDemand() {
		return false
	}
	r.problem(AmountsAlternative, "the amounts under mig.das.com are how many instances of each profile the cards "+
		"could have, so fewer pods fit than their sum")
	return r.is(gpuinfo.MIG, gpuinfo.Hardware)
}

// slicedOnDemand reports whether the node announces instances that do not exist yet.
func (n *GPUs) slicedOnDemand() bool {
	for name, units := range n.Units {
		if _, isDAS := gpuinfo.DASName(name); isDAS && units > 0 {
			return true
		}
	}
	return false
}
