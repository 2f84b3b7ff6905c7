package gpuinfo

// Strategy is how NVIDIA's device plugin announces MIG instances.
type Strategy string

// The strategies. With None, a card in MIG mode is announced as one card.
const (
	None   Strategy = "none"
	Single Strategy = "single"
	Mixed  Strategy = "mixed"
)
