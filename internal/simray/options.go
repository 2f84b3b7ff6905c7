package simray

import (
	"crypto/tls"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Clock tells the time to a Head. Work ends, drains finish and idle times grow by it alone.
type Clock interface{ Now() time.Time }

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// Options say what head to start. The zero value is a Ray 2.60.0 head with autoscaler v2, no token, no worker.
type Options struct {
	// Address to listen on; empty means a free port of 127.0.0.1.
	Address string
	// Version of Ray; empty means Ray260.
	Version Version
	// V1 makes a head that believes in autoscaler v1: request_resources lives in its KV store.
	V1 bool
	// Token, when set, is demanded of every call (where the version knows tokens).
	Token string
	// TLS, when set, is what the head speaks, as with RAY_USE_TLS=1 (package certs makes one). Unlike a live head, this
	// one tells a client in a TLS alert why its certificate is refused.
	TLS *tls.Config
	// Clock; nil means the system's.
	Clock Clock
	// ShowAfter is how long a task waits until the state shows it. A real head needs about 0.6 s, placement groups 2
	// ms.
	ShowAfter time.Duration
	// Head is the head's own node; the zero value announces no CPU, under the name "head".
	Head Node
}

// Node is a raylet that joins.
type Node struct {
	// Instance is the pod's name, Group the worker group's.
	Instance, Group, IP string
	Resources           raydemand.Bundle
	Labels              map[string]string
}

// Task is work that asks for one bundle, a task or an actor's creation.
type Task struct {
	Bundle raydemand.Bundle
	// Selectors are alternatives in order of preference.
	Selectors []raydemand.Selector
	// Runs is how long it works once placed; zero means until Cancel.
	Runs time.Duration
	// Actor marks a task that a drain marks as preempted and that dies with its node instead of starting again.
	Actor bool
}

// Gang is a placement group.
type Gang struct {
	Strategy  raydemand.Strategy
	Bundles   []raydemand.Bundle
	Selectors []raydemand.Selector // empty or parallel to Bundles
	// TopologyLabel wants all bundles on nodes with one value of it (2.60 only).
	TopologyLabel string
	// Runs is how long it stays once placed; zero means until Cancel.
	Runs time.Duration
}

// WorkID names submitted work.
type WorkID int64
