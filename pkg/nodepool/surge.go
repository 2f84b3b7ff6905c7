package nodepool

// SurgeAnnotation on a RayCluster keeps a part of a group's maximum free for the replacements of workers whose machine
// goes: one or none, or a JSON object of these by group. Groups that it does not name have the value of `--surge`.
const SurgeAnnotation = "heliostat.dev/surge"

// Surge is a value of SurgeAnnotation.
type Surge string

// SurgeOne keeps one replica of maxReplicas free until a machine goes: the operator never runs more than maxReplicas,
// so a group that is full cannot get a replacement before the old worker has ended.
const (
	SurgeNone Surge = "none"
	SurgeOne  Surge = "one"
)

// Valid reports whether s is one of the values.
func (s Surge) Valid() bool { return s == SurgeNone || s == SurgeOne }
