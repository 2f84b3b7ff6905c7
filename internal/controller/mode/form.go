package mode

// Form is the way Heliostat runs; README.md tells for whom each is.
type Form string

// Fleet serves many clusters from one process; Sidecar serves the one cluster whose head pod it lives in.
const (
	Fleet   Form = "fleet"
	Sidecar Form = "sidecar"
)
