package simray_test

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
	"heliostat.dev/heliostat/test/simray"
)

func occupants(t *testing.T, client *gcs.Client) raydemand.Occupants {
	t.Helper()
	found, err := client.Occupants(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestWhatLivesInAClusterIsSeenOnTheWire(t *testing.T) {
	clock := newClock()
	head, client := start(t, simray.Options{Clock: clock})
	if found := occupants(t, client); found.Drivers.Count+found.Actors.Count+found.PlacementGroups.Count != 0 {
		t.Errorf("in an empty cluster: %+v", found)
	}
	head.Connect("_ray_internal_dashboard", "")
	end := head.Connect("default", "python train.py")
	if found := occupants(t, client); found.Drivers.Count != 1 || found.Drivers.Names[0] != "python train.py" {
		t.Errorf("drivers %+v, want the one of a user", found.Drivers)
	}
	end()
	if found := occupants(t, client); found.Drivers.Count != 0 {
		t.Errorf("drivers %+v after it has ended", found.Drivers)
	}
	actor := head.Submit(simray.Task{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.One}, Actor: true})
	gang := head.SubmitGang(simray.Gang{Strategy: raydemand.Pack, Bundles: []raydemand.Bundle{{raydemand.CPU: raydemand.One}}})
	clock.move(time.Second)
	if found := occupants(t, client); found.Actors.Count != 1 || found.PlacementGroups.Count != 1 {
		t.Errorf("%+v, want an actor and a placement group", found)
	}
	head.Cancel(actor)
	head.Cancel(gang)
	if found := occupants(t, client); found.Actors.Count+found.PlacementGroups.Count != 0 {
		t.Errorf("%+v after both are gone", found)
	}
}
