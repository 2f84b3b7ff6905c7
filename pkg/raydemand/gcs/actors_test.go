package gcs

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand/jobs"
)

// tableWith answers with n actors: living ones, and as the last ones those.
func tableWith(t *testing.T, n int, last ...*raypb.ActorTableData) answer {
	t.Helper()
	reply := &raypb.GetAllActorInfoReply{Status: &raypb.GcsStatus{}, Total: int64(10 * n)}
	for range n - len(last) {
		reply.ActorTableData = append(reply.ActorTableData, &raypb.ActorTableData{State: raypb.ActorTableData_ALIVE})
	}
	text, err := proto.Marshal(&raypb.GetAllActorInfoReply{Status: reply.Status, Total: reply.Total,
		ActorTableData: append(reply.ActorTableData, last...)})
	if err != nil {
		t.Fatal(err)
	}
	return answer{reply: text}
}

func TestTheActorTableIsReadInPart(t *testing.T) {
	ended := &raypb.ActorTableData{State: raypb.ActorTableData_DEAD}
	mayRestart := &raypb.ActorTableData{State: raypb.ActorTableData_DEAD, MaxRestarts: -1}
	r := newReplay(t)
	none, err := proto.Marshal(&raypb.GetAllJobInfoReply{Status: &raypb.GcsStatus{}})
	if err != nil {
		t.Fatal(err)
	}
	r.set("GetAllJobInfo", answer{reply: none})
	client := dial(t, r)
	for name, c := range map[string]struct {
		answer   func(most int) answer
		complete bool
	}{
		"few":                       {func(int) answer { return tableWith(t, 3, ended) }, true},
		"many, and ended ones last": {func(most int) answer { return tableWith(t, most, ended) }, true},
		"many in another order": {func(most int) answer {
			return tableWith(t, most, ended, &raypb.ActorTableData{})
		}, false},
		"many that may be restarted, after ended ones": {func(most int) answer {
			return tableWith(t, most, ended, mayRestart)
		}, true},
		"too many that live": {func(most int) answer { return tableWith(t, most, &raypb.ActorTableData{}) }, false},
		"too many, one of which may be restarted": {
			func(most int) answer { return tableWith(t, most, mayRestart) }, false},
	} {
		r.set("GetAllActorInfo", c.answer(mostResidents))
		_, err := client.Residents(t.Context())
		if c.complete && err != nil || !c.complete && (err == nil || !strings.Contains(err.Error(), "more than 10000 actors")) {
			t.Errorf("%s: residents: %v", name, err)
		}
		r.set("GetAllActorInfo", c.answer(jobs.MostActors))
		if read, err := client.Jobs(t.Context()); err != nil || read.Truncated == c.complete {
			t.Errorf("%s: jobs: truncated %t, %v", name, read.Truncated, err)
		}
	}
	for _, call := range r.called("GetAllActorInfo") {
		var request raypb.GetAllActorInfoRequest
		if err := proto.Unmarshal(call.request, &request); err != nil || request.GetLimit() == 0 {
			t.Errorf("request %v, %v: want a limit", &request, err)
		}
	}
}

func TestATableOfActorsThatIsCutNeverMakesARayClusterLookEmpty(t *testing.T) {
	ended := &raypb.ActorTableData{State: raypb.ActorTableData_DEAD}
	mayRestart := &raypb.ActorTableData{State: raypb.ActorTableData_DEAD, MaxRestarts: -1}
	r := newReplay(t)
	for method, none := range map[string]proto.Message{
		"GetAllJobInfo":        &raypb.GetAllJobInfoReply{Status: &raypb.GcsStatus{}},
		"GetAllPlacementGroup": &raypb.GetAllPlacementGroupReply{Status: &raypb.GcsStatus{}},
	} {
		text, err := proto.Marshal(none)
		if err != nil {
			t.Fatal(err)
		}
		r.set(method, answer{reply: text})
	}
	client := dial(t, r)
	dead := func(n int, of *raypb.ActorTableData) []*raypb.ActorTableData {
		return slices.Repeat([]*raypb.ActorTableData{of}, n)
	}
	for name, c := range map[string]struct {
		table   []*raypb.ActorTableData
		living  int
		more    bool
		unknown bool
	}{
		"nothing":                 {nil, 0, false, false},
		"ended ones":              {dead(3, ended), 0, false, false},
		"all rows are ended ones": {dead(mostActors, ended), 0, false, false},
		"one lives before them":   {append([]*raypb.ActorTableData{{}}, dead(mostActors-1, ended)...), 1, false, false},
		"one lives after them":    {append(dead(mostActors-1, ended), &raypb.ActorTableData{}), 1, true, false},
		"all rows live":           {dead(mostActors, &raypb.ActorTableData{}), mostActors, true, false},
		"a Serve that is gone, whose replicas could restart":   {dead(mostActors+5, mayRestart), 0, false, false},
		"all rows may be restarted, so living ones may follow": {dead(mostResidents, mayRestart), 0, true, true},
	} {
		r.set("GetAllActorInfo", tableWith(t, len(c.table), c.table...))
		got, err := client.Occupants(t.Context())
		if got.Actors.Count != c.living || got.Actors.More != c.more || (err != nil) != c.unknown {
			t.Errorf("%s: %+v, %v", name, got.Actors, err)
		}
	}
}
