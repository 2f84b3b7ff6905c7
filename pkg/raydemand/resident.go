package raydemand

import "strings"

// Resident is an actor that has a place on a node. Tasks are not in the actor table, and what the GCS keeps about tasks
// does not say whether they are retried.
type Resident struct {
	// Name is empty for most actors; Class is the name of its class.
	Name, Class, Namespace string
	Node                   NodeID
	// Alive: it runs. Otherwise it is being created or restarted.
	Alive bool
	// Resources are what it holds.
	Resources Bundle
	Selector  Selector
	// SelectorUnknown: its selector cannot be read.
	SelectorUnknown bool
	// Restarts is how often Ray would still restart it; RestartsAlways means that there is no bound.
	Restarts int64
	// Grouped: a placement group reserves its place.
	Grouped bool
	// Owns: it has started actors that live and are not detached. Ray ends them with it, wherever they run.
	Owns bool
}

// RestartsAlways is Resident.Restarts of an actor with max_restarts=-1.
const RestartsAlways = -1

// Namespace and names of Ray Serve's actors (ray: serve/_private/constants.py, common.py, utils.py).
const (
	serveNamespace     = "serve"
	serveReplicaPrefix = "SERVE_REPLICA::"
	serveReplicaClass  = "ServeReplica:"
	serveProxyClass    = "ProxyActor"
)

// ServesReplica reports whether the actor is a replica of Ray Serve, which Serve moves away from draining nodes.
func (r *Resident) ServesReplica() bool {
	return r.Namespace == serveNamespace && strings.HasPrefix(r.Name, serveReplicaPrefix) &&
		strings.HasPrefix(r.Class, serveReplicaClass)
}

// ServesProxy reports whether the actor is a proxy of Ray Serve. Serve has one on each node with replicas, and ends it
// when the last of them is gone.
func (r *Resident) ServesProxy() bool {
	return r.Namespace == serveNamespace && r.Class == serveProxyClass
}
