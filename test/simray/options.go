package simray

import (
	"crypto/tls"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Clock provides the time of a Head. It alone determines when work ends, when drains finish, and how long nodes are
// idle.
type Clock interface{ Now() time.Time }

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// Options are the options of a head. The zero value is a Ray 2.60.0 head with autoscaler v2, no token and no workers.
type Options struct {
	// Address is the address to listen on. Empty means a free port of 127.0.0.1.
	Address string
	// Version is the version of Ray. Empty means Ray260.
	Version Version
	// V1 makes a head with autoscaler v1, which stores request_resources in the KV store.
	V1 bool
	// Token, if set, is required in every call (in versions with token mode).
	Token string
	// TLS, if set, is the TLS configuration, as with RAY_USE_TLS=1 (package certs creates one). Unlike a real head, a
	// simulated head sends clients a TLS alert with the reason when it rejects a certificate.
	TLS *tls.Config
	// Clock is the clock. Nil means the system clock.
	Clock Clock
	// ShowAfter is the time between the submission of a task and its first listing in the state. On a real head it is
	// about 0.6 s, and 2 ms for placement groups.
	ShowAfter time.Duration
	// Head is the head's own node. The zero value is a node with the name "head" and no CPU.
	Head Node
}

// Node is a raylet to add.
type Node struct {
	// Instance is the name of the pod. Group is the name of the worker group.
	Instance, Group, IP string
	Resources           raydemand.Bundle
	Labels              map[string]string
}

// Task is work that requests one bundle: a task, or the creation of an actor.
type Task struct {
	Bundle raydemand.Bundle
	// Selectors are alternatives in order of preference.
	Selectors []raydemand.Selector
	// Runs is how long the task runs after it is placed. Zero means until Cancel.
	Runs time.Duration
	// Actor marks the task as an actor: a drain marks it as preempted, and it is lost with its node instead of being
	// retried.
	Actor bool
}

// Gang is a placement group.
type Gang struct {
	Strategy  raydemand.Strategy
	Bundles   []raydemand.Bundle
	Selectors []raydemand.Selector // empty, or parallel to Bundles
	// TopologyLabel requires that all nodes of the gang have the same value of this label (2.60 only).
	TopologyLabel string
	// Runs is how long the gang runs after it is placed. Zero means until Cancel.
	Runs time.Duration
}

// WorkID identifies submitted work.
type WorkID int64
