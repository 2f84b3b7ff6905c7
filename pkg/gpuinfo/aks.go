package gpuinfo

import "fmt"

// Strategy is how NVIDIA's device plugin announces MIG instances.
type Strategy string

// The strategies. With None a card in MIG mode is announced as one card.
const (
	None   Strategy = "none"
	Single Strategy = "single"
	Mixed  Strategy = "mixed"
)

// aksProfiles are the values of an AKS pool's gpuInstanceProfile, and the compute slices of the instances into which
// each card is cut (AKS, "Create a multi-instance GPU node pool"). The profile is fixed when the pool is made.
var aksProfiles = map[string]int{"MIG1g": 1, "MIG2g": 2, "MIG3g": 3, "MIG4g": 4, "MIG7g": 7}

// AKSPool is what the nodes of an AKS pool announce.
type AKSPool struct {
	// Resource is the name, PerCard how many units of it each card brings.
	Resource string
	PerCard  int
	Profile  Profile
}

// AKSInstances returns what a pool with a gpuInstanceProfile announces: under the single strategy nvidia.com/gpu, under
// the mixed one nvidia.com/mig-<profile>. The same name thus means different things on different pools.
func AKSInstances(product Product, gpuInstanceProfile string, strategy Strategy) (AKSPool, error) {
	wanted, known := aksProfiles[gpuInstanceProfile]
	if !known {
		return AKSPool{}, fmt.Errorf("reading gpuInstanceProfile %q: want MIG1g, MIG2g, MIG3g, MIG4g or MIG7g",
			gpuInstanceProfile)
	}
	// The profile with the least memory of those with that many slices: the others are variants of it.
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
