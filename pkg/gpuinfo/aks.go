package gpuinfo

import "fmt"

// Strategy is how NVIDIA's device plugin announces MIG instances.
type Strategy string

// The strategies. With None, a card in MIG mode is announced as one card.
const (
	None   Strategy = "none"
	Single Strategy = "single"
	Mixed  Strategy = "mixed"
)

// aksProfiles maps the values of gpuInstanceProfile of an AKS pool to the compute slices of each instance (AKS, "Create
// a multi-instance GPU node pool"). The profile of a pool cannot change after its creation.
var aksProfiles = map[string]int{"MIG1g": 1, "MIG2g": 2, "MIG3g": 3, "MIG4g": 4, "MIG7g": 7}

// AKSPool describes what the nodes of an AKS pool announce.
type AKSPool struct {
	// Resource is the name of the resource. PerCard is the number of units that each card adds.
	Resource string
	PerCard  int
	Profile  Profile
}

// AKSInstances returns what a pool with a gpuInstanceProfile announces: nvidia.com/gpu with the single strategy,
// nvidia.com/mig-<profile> with the mixed strategy. The same resource name can therefore mean different things on
// different pools.
func AKSInstances(product Product, gpuInstanceProfile string, strategy Strategy) (AKSPool, error) {
	wanted, known := aksProfiles[gpuInstanceProfile]
	if !known {
		return AKSPool{}, fmt.Errorf("reading gpuInstanceProfile %q: want MIG1g, MIG2g, MIG3g, MIG4g or MIG7g",
			gpuInstanceProfile)
	}
	// Of the profiles with this number of slices, use the one with the least memory: the others are variants of it.
	at := -1
	for i, p := range product.Profiles {
		if p.Plain() && p.Slices == wanted {
			at = i
		}
	}
	if at < 0 {
		return AKSPool{}, fmt.Errorf("reading gpuInstanceProfile %s: %s has no profile with %d slices",
			gpuInstanceProfile, product.Name, wanted)
	}
	pool := AKSPool{Profile: product.Profiles[at], PerCard: product.Profiles[at].Max}
	switch strategy {
	case Single:
		pool.Resource = NvidiaGPU
	case Mixed:
		profile, err := ParseProfile(pool.Profile.Name)
		if err != nil {
			return AKSPool{}, err
		}
		pool.Resource = ResourceName(profile, false)
	default:
		return AKSPool{}, fmt.Errorf("reading MIG strategy %q of a pool with %s: want single or mixed", strategy,
			gpuInstanceProfile)
	}
	return pool, nil
}
