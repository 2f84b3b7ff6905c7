package gcs

import (
	"context"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Residents lists the actors that have a place on a node. The call reads the actor table, so callers make it seldom. An
// amount that cannot be read is an error: what an actor holds must not be guessed. So is a table that is too long:
// something else may run on a node.
func (c *Client) Residents(ctx context.Context) ([]raydemand.Resident, error) {
	table, complete, err := c.actors(ctx)
	if err == nil && !complete {
		err = fmt.Errorf("the Ray cluster has more than %d actors", mostActors)
	}
	if err != nil {
		return nil, err
	}
	return residentsOf(table)
}

func residentsOf(table []*raypb.ActorTableData) ([]raydemand.Resident, error) {
	owners := map[string]bool{} // the processes whose actors end with them
	for _, actor := range table {
		if actor.GetState() != raypb.ActorTableData_DEAD && !actor.GetIsDetached() {
			owners[string(actor.GetOwnerAddress().GetWorkerId())] = true
		}
	}
	var all []raydemand.Resident
	for _, actor := range table {
		if actor.GetState() == raypb.ActorTableData_DEAD || len(actor.GetNodeId()) == 0 {
			continue
		}
		resident, err := residentOf(actor)
		if err != nil {
			return nil, fmt.Errorf("reading actor %x: %w", actor.GetActorId(), err)
		}
		process := actor.GetAddress().GetWorkerId()
		resident.Owns = len(process) > 0 && owners[string(process)]
		all = append(all, resident)
	}
	return all, nil
}

func residentOf(actor *raypb.ActorTableData) (raydemand.Resident, error) {
	r := raydemand.Resident{
		Name: actor.GetName(), Class: actor.GetClassName(), Namespace: actor.GetRayNamespace(),
		Alive:     actor.GetState() == raypb.ActorTableData_ALIVE,
		Resources: raydemand.Bundle{},
		Restarts:  max(0, actor.GetMaxRestarts()-int64(actor.GetNumRestarts())), //nolint:gosec // a count
		Grouped:   !nilID(actor.GetPlacementGroupId()),
	}
	if actor.GetMaxRestarts() < 0 {
		r.Restarts = raydemand.RestartsAlways
	}
	var err error
	if r.Node, err = raydemand.ParseNodeID(actor.GetNodeId()); err != nil {
		return r, err
	}
	for name, quantity := range actor.GetRequiredResources() {
		amount, err := raydemand.FromFloat(quantity)
		if err == nil && amount < 0 {
			err = fmt.Errorf("%w: %v", raydemand.ErrAmount, quantity)
		}
		if err != nil {
			return r, fmt.Errorf("%s: %w", name, err)
		}
		r.Resources[name] = amount
	}
	if expressions := actor.GetLabelSelector(); len(expressions) > 0 {
		r.Selector, err = raydemand.ParseSelector(expressions)
		r.SelectorUnknown = err != nil
	}
	return r, nil
}

// nilID reports whether an id names nothing: Ray writes no bytes, or only 0xff.
func nilID(id []byte) bool { return !slices.ContainsFunc(id, func(b byte) bool { return b != 0xff }) }
