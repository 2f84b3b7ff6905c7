package snapshotfile

import (
	"fmt"
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
)

func (in input) groups() []model.Group {
	seen := map[string]int{}
	var groups []model.Group
	for i, each := range in.list() {
		g, name := each.group()
		groups = append(groups, g)
		name.unique(seen, g.Name, i)
	}
	return groups
}

// unique refuses a name that an earlier element of the list has.
func (in input) unique(seen map[string]int, name string, i int) {
	if first, twice := seen[name]; twice {
		list := in.Path().Parent().Parent()
		in.Fail(fmt.Sprintf("a unique name: %s has this one", list.Index(first)))
	}
	seen[name] = i
}

func (in input) group() (model.Group, input) {
	field, done := in.fields()
	defer done()
	cooling := field("coolingSeconds").Number(mostSeconds)
	if cooling == nil {
		cooling = new(float64)
	}
	return model.Group{
		Name:               field("name").NonEmpty("the worker group's name"),
		Resources:          field("resources").capacity(),
		Labels:             field("labels").labels(),
		Min:                int(field("minReplicas").Count(0, math.MaxInt32, 0)),
		Max:                int(field("maxReplicas").Count(0, math.MaxInt32, math.MaxInt32)), // KubeRay's default
		Replicas:           field("replicas").optionalInt(0, math.MaxInt32),
		NumOfHosts:         int(field("numOfHosts").Count(1, mostHosts, 1)),
		IdleTimeoutSeconds: field("idleTimeoutSeconds").Number(mostSeconds),
		Priority:           int(field("priority").Count(math.MinInt32, math.MaxInt32, 0)),
		Price:              field("price").Number(1e9),
		CloudAvailability:  field("cloudAvailability").Number(1),
		RecoverableScore:   field("recoverableScore").Number(1),
		LaunchConfigHash:   field("launchConfigHash").Text(),
		Closed:             field("closed").Text(),
		CoolingSeconds:     *cooling,
		NodesComing:        int(field("nodesComing").Count(0, math.MaxInt32, 0)),
		Slice:              field("slice").slice(),
		Pools:              field("pools").groupPools(),
		Announces:          field("announces").announced(),
		NodeFit:            field("nodeFit").nodeFit(),
		Pod:                field("pod").placedPod(field("name").Text()),
		Bound:              field("bound").Count(0, model.MaxCount, 0),
	}, field("name")
}

// mostHosts bounds numOfHosts.
const mostHosts = nodepool.MostHosts

func (in input) head() *model.Node {
	if in.Absent() {
		return nil
	}
	n, _ := in.node(true)
	return &n
}

func (in input) nodes() []model.Node {
	seen := map[string]int{}
	var nodes []model.Node
	for i, each := range in.list() {
		n, pod := each.node(false)
		nodes = append(nodes, n)
		pod.unique(seen, n.Pod, i)
	}
	return nodes
}

func (in input) node(head bool) (model.Node, input) {
	field, done := in.fields()
	defer done()
	n := model.Node{
		Pod:                   field("pod").Text(),
		Group:                 field("group").Text(),
		State:                 field("state").state(head),
		Resources:             field("resources").capacity(),
		Total:                 field("total").capacity(),
		Available:             field("available").capacity(),
		Labels:                field("labels").labels(),
		PlacedLabels:          field("placedLabels").labels(),
		Refused:               field("refused").bundle(),
		Activity:              field("activity").texts(),
		Since:                 field("since").Time(),
		Replica:               field("replica").Text(),
		KubeNode:              field("kubeNode").Text(),
		Guard:                 field("guard").guard(),
		Going:                 field("going").departure(),
		Arrival:               field("arrival").arrival(),
		Expected:              field("expected").Flag(),
		IMState:               field("imState").Text(),
		LaunchConfigHash:      field("launchConfigHash").Text(),
		GroupLaunchConfigHash: field("groupLaunchConfigHash").Text(),
	}
	if idle := field("idleSeconds").Number(mostSeconds); idle != nil {
		n.IdleSeconds = *idle
	}
	if !head {
		field("pod").NonEmpty("the pod's name")
		field("group").NonEmpty("the worker group's name")
	}
	return n, field("pod")
}

// guard reads who keeps node autoscalers from evicting a pod.
func (in input) guard() string {
	switch by := in.Text(); by {
	case "", nodepool.GuardedByHeliostat, nodepool.GuardedByUser:
		return by
	}
	in.Fail("heliostat or user")
	return ""
}

// departure reads why a node's machine is about to go.
func (in input) departure() *departure.Notice {
	if in.Absent() {
		return nil
	}
	field, done := in.fields()
	defer done()
	return &departure.Notice{
		Sign:      departure.Sign(field("sign").Text()),
		Message:   field("message").Text(),
		Since:     field("since").Time(),
		Deadline:  field("deadline").Time(),
		Certain:   field("certain").Flag(),
		Reclaimed: field("reclaimed").Flag(),
	}
}

// arrival reads where a starting worker is.
func (in input) arrival() *arrival.State {
	if in.Absent() {
		return nil
	}
	field, done := in.fields()
	defer done()
	stage := arrival.Stage(field("stage").Text())
	if !slices.Contains(arrival.Stages, stage) {
		field("stage").Fail("a stage such as node-launched or joining-ray")
	}
	return &arrival.State{
		Stage:      stage,
		Message:    field("message").Text(),
		Since:      field("since").Time(),
		ExpectedAt: field("expectedAt").Time(),
		LateAt:     field("lateAt").Time(),
	}
}

func (in input) state(head bool) model.NodeState {
	state := model.NodeState(in.Text())
	switch state {
	case model.Running, model.Idle, model.Pending, model.AllocationTimeout, model.Leaving:
		return state
	case "":
		if head {
			return model.Running
		}
	}
	in.Fail("RUNNING, IDLE, PENDING, ALLOCATION_TIMEOUT or LEAVING")
	return state
}
