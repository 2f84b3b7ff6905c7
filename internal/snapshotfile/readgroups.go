package snapshotfile

import (
	"fmt"
	"math"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool"
)

func (in input) groups() []model.Group {
	seen := map[string]int{}
	var groups []model.Group
	for i, each := range in.list() {
		g, name := each.group()
		groups = append(groups, g)
		name.unique(seen, g.Name, i, "groups")
	}
	return groups
}

// unique refuses a second object of the same name.
func (in input) unique(seen map[string]int, name string, i int, list string) {
	if first, twice := seen[name]; twice {
		in.fail(fmt.Sprintf("a name of its own: %s[%d] has this one", list, first))
	}
	seen[name] = i
}

func (in input) group() (model.Group, input) {
	field, done := in.fields()
	defer done()
	cooling := field("coolingSeconds").number(mostSeconds)
	if cooling == nil {
		cooling = new(float64)
	}
	return model.Group{
		Name:               field("name").name("the worker group's name"),
		Resources:          field("resources").capacity(),
		Labels:             field("labels").labels(),
		Min:                int(field("minReplicas").count(0, math.MaxInt32, 0)),
		Max:                int(field("maxReplicas").count(0, math.MaxInt32, math.MaxInt32)), // KubeRay's default
		Replicas:           field("replicas").optionalCount(0, math.MaxInt32),
		NumOfHosts:         int(field("numOfHosts").count(1, mostHosts, 1)),
		IdleTimeoutSeconds: field("idleTimeoutSeconds").number(mostSeconds),
		Priority:           int(field("priority").count(math.MinInt32, math.MaxInt32, 0)),
		Price:              field("price").number(1e9),
		CloudAvailability:  field("cloudAvailability").number(1),
		RecoverableScore:   field("recoverableScore").number(1),
		LaunchConfigHash:   field("launchConfigHash").text(),
		Closed:             field("closed").text(),
		CoolingSeconds:     *cooling,
		NodesComing:        int(field("nodesComing").count(0, math.MaxInt32, 0)),
		Slice:              field("slice").slice(),
		Pools:              field("pools").groupPools(),
	}, field("name")
}

// mostHosts bounds numOfHosts.
const mostHosts = nodepool.MostHosts

func (in input) head() *model.Node {
	if in.absent() {
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
		pod.unique(seen, n.Pod, i, "nodes")
	}
	return nodes
}

func (in input) node(head bool) (model.Node, input) {
	field, done := in.fields()
	defer done()
	n := model.Node{
		Pod: field("pod").text(), Group: field("group").text(), State: field("state").state(head),
		Resources: field("resources").capacity(), Total: field("total").capacity(), Available: field("available").capacity(),
		Labels: field("labels").labels(), PlacedLabels: field("placedLabels").labels(),
		Refused: field(
			"refused",
		).bundle(),
		Since: field(
			"since",
		).moment(),
		Replica: field("replica").text(), Expected: field("expected").boolean(), IMState: field("imState").text(),
		LaunchConfigHash: field("launchConfigHash").text(), GroupLaunchConfigHash: field("groupLaunchConfigHash").text(),
	}
	if idle := field("idleSeconds").number(mostSeconds); idle != nil {
		n.IdleSeconds = *idle
	}
	if !head {
		field("pod").name("the pod's name")
		field("group").name("the worker group's name")
	}
	return n, field("pod")
}

func (in input) state(head bool) model.NodeState {
	state := model.NodeState(in.text())
	switch state {
	case model.Running, model.Idle, model.Pending, model.AllocationTimeout, model.Leaving:
		return state
	case "":
		if head {
			return model.Running
		}
	}
	in.fail("RUNNING, IDLE, PENDING, ALLOCATION_TIMEOUT or LEAVING")
	return state
}
