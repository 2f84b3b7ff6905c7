package mode

// Form is the way Heliostat runs; README.md describes who each is for.
type Form string

// Fleet serves many clusters from one process; Sidecar serves the one cluster whose head pod it runs in.
const (
	Fleet   Form = "fleet"
	Sidecar Form = "sidecar"
)
