package sharing

// What the tests outside of the package see beside what it exports.
type (
	VGPUScheduler          = vgpuScheduler
	ByCard[Key comparable] = byCard[Key]
)

var (
	HAMi        = hami
	Volcano     = volcano
	GPUMemory   = gpuMemoryHeld
	Koordinator = koordinatorHeld
)
