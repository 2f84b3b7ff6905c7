package conformance

import (
	"bytes"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// workerIDBytes is how long the id of a worker process is: kUniqueIDSize in id.h of Ray.
const workerIDBytes = 28

// actorsListed tests what consolidation reads. A head lists actors that have ended after all others, so
// that a table with a limit lacks none that lives.
func actorsListed(t *testing.T, h head) {
	work := Work{Tasks: []Task{{Resources: res{"CPU": 0, "pin": 0.01}, Count: 1, Actor: true}}}
	living := func(*raypb.ActorTableData) bool { return true }
	stop := h.Do(t, work)
	h.livingActor(t, "an actor lives", living)
	stop()
	h.node(t, cpuWorker.Instance, raydemand.Idle)
	stop = h.Do(t, work)
	started := func(a *raypb.ActorTableData) bool {
		process, owner := a.GetAddress().GetWorkerId(), a.GetOwnerAddress().GetWorkerId()
		return len(process) == workerIDBytes && len(owner) == workerIDBytes && !bytes.Equal(process, owner)
	}
	h.livingActor(t, "another actor lives, and another process has started it", started)
	h.eventually(t, func() string {
		all, err := h.actors.GetAllActorInfo(t.Context(), &raypb.GetAllActorInfoRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, actor := range all.GetActorTableData() {
			if actor.GetState() == raypb.ActorTableData_DEAD {
				return ""
			}
		}
		return "no actor has ended"
	})
	limited, err := h.actors.GetAllActorInfo(t.Context(), &raypb.GetAllActorInfoRequest{Limit: proto.Int64(1)})
	if err != nil {
		t.Fatal(err)
	}
	if rows := limited.GetActorTableData(); len(rows) != 1 || rows[0].GetState() != raypb.ActorTableData_ALIVE {
		t.Errorf("a table of one actor is %v, want the one that lives", rows)
	}
	node := h.node(t, cpuWorker.Instance, raydemand.Running)
	h.eventually(t, func() string {
		residents, err := h.ours.Residents(t.Context())
		if err != nil || len(residents) != 1 || residents[0].Node != node.ID || !residents[0].Alive ||
			residents[0].Resources["pin"] != raydemand.One/100 {
			return fmt.Sprintf("the actors on nodes are %+v, %v", residents, err)
		}
		return ""
	})
	stop()
	h.node(t, cpuWorker.Instance, raydemand.Idle)
}
