package verdict

import "time"

// Fact is something that was seen. Facts go to Judge.See in the order in which they were seen.
type Fact interface{ isFact() }

// Spec is a state of a RayCluster, as the API server stores it.
type Spec struct {
	At      time.Time
	Cluster string
	// Writer is the field manager that owns the worker groups, so it wrote the latest change of them.
	Writer string
	Groups []Group
}

// Group is a worker group of a RayCluster. Delete are the pods in workersToDelete.
type Group struct {
	Name               string
	Replicas, Min, Max int64
	Delete             []string
}

// State is what a head really is at a moment, whatever it answers.
type State struct {
	At      time.Time
	Cluster string
	// Workers are the living Ray nodes, by pod. Waiting is the work without a place, by group, in
	// workers that it needs. Smallest is how many of them the smallest part needs that Ray places as a whole.
	Workers           map[string]Worker
	Waiting, Smallest map[string]int64
	// Spent are the pods of each group that can take no work: their Ray node drains or has ended, or they are ending.
	Spent map[string]int64
}

// Worker is a living Ray node. Ending says that its pod is being deleted.
type Worker struct {
	Group                  string
	Busy, Draining, Ending bool
}

// Answer is what a head answers, true or not, before it does: the work that waits or runs, and the living workers, by
// group. No decision that knows an answer is seen before it.
type Answer struct {
	At            time.Time
	Cluster       string
	Demand, Alive map[string]int64
}

// Cause is why a Ray node ended.
type Cause string

// The causes. A pod that the API server deleted has the cause Deleted.
const (
	Deleted Cause = "its pod was deleted"
	Machine Cause = "its machine disappeared"
	Storage Cause = "the API server came back with older storage"
)

// End is the end of a worker's Ray node. Busy is whether work ran on it at that moment.
type End struct {
	At                  time.Time
	Cluster, Group, Pod string
	Cause               Cause
	Busy                bool
}

// Hindered says that a fault that begins or ends keeps Heliostat from reading a head or from writing a RayCluster: that
// of a name, or all without one. At is when it begins, and Ended when it ends, or zero.
type Hindered struct {
	At, Ended time.Time
	Cluster   string
}

// Standstill says that the operator stands still. At is when that begins, and Ended when it ends, or zero.
type Standstill struct{ At, Ended time.Time }

// Limited says that a person changes a limit of a group, before the change and after it. A watch that was cut may show
// two changes as one, and the operator may act on both.
type Limited struct {
	At             time.Time
	Cluster, Group string
}

// Write is a request of Heliostat that changed, or could have changed, an object.
type Write struct {
	At                           time.Time
	Verb, Resource, Name, Answer string
}

// Usage is the resident memory of Heliostat, in bytes.
type Usage struct {
	At    time.Time
	Bytes int64
}

// Crash is the end of Heliostat that nobody caused.
type Crash struct {
	At  time.Time
	Log string
}

// Restored says that the API server comes back with older storage: no RayCluster is as it was.
type Restored struct{ At time.Time }

// Phase begins a phase of a run.
type Phase struct {
	At   time.Time
	Name PhaseName
}

// PhaseName is the name of a phase.
type PhaseName string

// In a Storm, there are faults. A Calm has neither faults nor new work. At Rest begins when everything must be served
// and nothing may change any more.
const (
	Storm PhaseName = "storm"
	Calm  PhaseName = "calm"
	Rest  PhaseName = "rest"
)

func (Spec) isFact()       {}
func (State) isFact()      {}
func (Answer) isFact()     {}
func (End) isFact()        {}
func (Hindered) isFact()   {}
func (Standstill) isFact() {}
func (Limited) isFact()    {}
func (Write) isFact()      {}
func (Usage) isFact()      {}
func (Crash) isFact()      {}
func (Phase) isFact()      {}
func (Restored) isFact()   {}
