// Package planner makes every scaling decision. Compute turns a Snapshot and a Policy into a Plan, and Explain answers
// a question about a plan. It is the only package of the planner that the rest of the program imports, but for
// snapshotfile, which imports the model; the names below are aliases of the packages underneath. It must not decide
// anything itself. Nothing underneath it uses a clock, the network or files. Equal input gives equal bytes, so you can
// replay any decision with `autoscaler plan --snapshot`.
package planner

import (
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// The input of a decision; see package model.
type (
	Snapshot  = model.Snapshot
	Group     = model.Group
	GroupPool = landing.GroupPool
	Slice     = model.Slice
	Node      = model.Node
	NodeState = model.NodeState
	Policy    = model.Policy
	Promise   = landing.Promise
	Quota     = landing.Quota
	Warm      = model.Warm
	WarmEntry = model.WarmEntry
)

// States of a node in a snapshot.
const (
	Running           = model.Running
	Idle              = model.Idle
	Pending           = model.Pending
	AllocationTimeout = model.AllocationTimeout
	Leaving           = model.Leaving
)

// Some of the codes of WhyUnused.
const (
	UnusedStarting = model.UnusedStarting
	UnusedLeaving  = model.UnusedLeaving
	UnusedKept     = model.UnusedKept
	UnusedWarm     = model.UnusedWarm
	UnusedReserved = model.CodeReserved
)

// A decision; see package model.
type (
	Plan          = model.Plan
	Reason        = model.Reason
	Termination   = model.Termination
	GroupPlan     = model.GroupPlan
	NumGPUs       = model.NumGPUs
	UnmetRequest  = model.UnmetRequest
	UnmetGang     = model.UnmetGang
	DemandSummary = model.DemandSummary
	DemandKind    = model.DemandKind
	RequestPlan   = model.RequestPlan
	RequestGroup  = model.RequestGroup
	WarmPlan      = model.WarmPlan
)

// The kinds of demand in a plan's summary.
const (
	KindRequest          = model.KindRequest
	KindGang             = model.KindGang
	KindRequestResources = model.KindRequestResources
)

// Codes of reasons and findings that callers compare with.
const (
	Impossible   = model.Impossible
	Trying       = model.Trying
	PoolPromised = model.PoolPromised
	Capped       = model.Capped
	Closed       = model.Closed
	CoolingDown  = model.CoolingDown

	CodeLaunch       = model.CodeLaunch
	CodeClosed       = model.CodeClosed
	CodePoolPromised = model.CodePoolPromised
	CodePoolCeiling  = model.CodePoolCeiling
	CodeQuota        = model.CodeQuota
	CodeCoolingDown  = model.CodeCoolingDown
	CodeProvisioning = model.CodeProvisioning

	FindingPoolWithoutNodes = model.FindingPoolWithoutNodes
	FindingKeyUnknown       = model.FindingKeyUnknown
)

// A question about a plan and its answer; see package model.
type (
	Question     = model.Question
	Explanation  = model.Explanation
	Detail       = model.Detail
	UnknownError = model.UnknownError
)

// PlainRequest is the Question.Request for calls of request_resources without an owner.
const PlainRequest = model.PlainRequest

// ErrQuestion is an error of Explain.
var ErrQuestion = model.ErrQuestion

// WarmOf returns what a policy wants at a moment; nil if nothing.
func WarmOf(source string, wanted []capacity.Wanted) *Warm { return model.WarmOf(source, wanted) }

// SnapshotOf returns the settings and groups of a RayCluster as a snapshot without nodes and demand.
func SnapshotOf(cluster nodepool.Cluster) Snapshot { return model.SnapshotOf(cluster) }

// SliceOf returns what one GPU of a group is if a pod declares this many GPUs to Ray, or nil if that is unknown.
func SliceOf(g nodepool.WorkerGroup, numGPUs raydemand.Amount) *Slice {
	return model.SliceOf(g, numGPUs)
}

// Describe formats a request: {CPU 1, memory 2 GiB} where zone=a.
func Describe(r raydemand.Request) string { return model.Describe(r) }

// Span formats a duration in seconds: 98ms, 45s, 2m30s, 3d4h.
func Span(seconds float64) string { return model.Span(seconds) }

// Pods counts pods: 1 pod, 2 pods.
func Pods(n int64) string { return model.Pods(n) }

// OfOneNode reports whether a label of Ray nodes has a value of its own on every node, or on every slice of TPUs.
func OfOneNode(label string) bool { return model.OfOneNode(label) }
