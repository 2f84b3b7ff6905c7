package raydemand

import (
	"slices"
	"strings"
	"time"
)

// ProcessStart is how long a process that Ray starts for a task or an actor may take to register
// (worker_register_timeout_seconds in Ray's ray_config_def.h). Until then, its node shows that resources are in use,
// and nothing that runs.
const ProcessStart = 60 * time.Second

// Activity is why Ray does not report a node as idle. More than one cause can hold
// (docs/reference/facts.md#why-a-node-is-not-idle).
type Activity struct {
	// Workers: tasks or actors run on the node, including those that hold no resources. Ray reports no driver: the
	// driver of a submitted job is below an actor that holds no resources, and a driver alone keeps no node busy.
	Workers bool
	// Arguments: a task waits on the node until its arguments have arrived. Ray reports it since 2.52.
	Arguments bool
	// Objects: the node's object store holds primary copies of objects.
	Objects bool
	// Resources are the names of the resources in use, sorted. Tasks and actors use them, or placement groups reserve
	// them.
	Resources []string
	// Unknown are the texts that no known version of Ray sends.
	Unknown []string
}

// The texts of ray.rpc.autoscaler.NodeState.node_activity, as all supported versions of Ray write them
// (PopulateResourceViewSyncMessage in Ray's local_resource_manager.cc).
const (
	// ActiveWorkers reports that tasks or actors run.
	ActiveWorkers   = "Busy workers on node."
	activeArguments = "Pulling task arguments."
	activeResource  = "Resource: "
	activeUse       = " currently in use."
)

// ObjectStoreMemory is Ray's name of the object store's memory. It is in use while the store holds primary copies.
const ObjectStoreMemory = "object_store_memory"

// ActiveResource returns the resource of a text that reports a resource in use, and whether it is such a text.
func ActiveResource(text string) (name string, ok bool) {
	if name, ok = strings.CutPrefix(text, activeResource); !ok {
		return "", false
	}
	return strings.CutSuffix(name, activeUse)
}

// ReadActivity reads what a node reports in its Activity.
func ReadActivity(texts []string) Activity {
	var a Activity
	for _, text := range texts {
		resource, inUse := ActiveResource(text)
		switch {
		case text == ActiveWorkers:
			a.Workers = true
		case text == activeArguments:
			a.Arguments = true
		case inUse && resource == ObjectStoreMemory:
			a.Objects = true
		case inUse:
			a.Resources = append(a.Resources, resource)
		default:
			a.Unknown = append(a.Unknown, text)
		}
	}
	slices.Sort(a.Resources)
	return a
}
