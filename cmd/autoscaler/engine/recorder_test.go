package engine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
)

func TestWhatWasDecidedIsListedExportedAndForgotten(t *testing.T) {
	a := newRecorder(slog.New(slog.DiscardHandler))
	d := decided()
	d.Actions = d.Recent
	a.Publish(d)
	entries := a.past.Entries(d.Cluster)
	if len(entries) != 1 || len(entries[0].Decisions) != 4 || entries[0].Decisions[0].Action != "scale-up" || entries[0].Unmet != 2 ||
		len(entries[0].Groups) != 1 || entries[0].Groups[0].Reasons == nil {
		t.Fatalf("%+v", entries)
	}
	snapshot, plan, known, err := a.past.Past(d.Cluster, entries[0].ID)
	if err != nil || !known || !json.Valid(plan) || !json.Valid(snapshot) {
		t.Fatalf("%v, %v: %s\n%s", known, err, plan, snapshot)
	}
	a.Forget(d.Cluster)
	if _, _, known, err := a.past.Past(d.Cluster, entries[0].ID); known || err != nil {
		t.Errorf("a cluster that is gone: %v, %v", known, err)
	}
}

func TestCallersShareOneReadingOfTheNodesWhileItIsYoung(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	readings, answer, hold := 0, error(nil), make(chan struct{})
	v := &nodepoolsView{now: func() time.Time { return now }, list: func(context.Context) (*decode.NodeSet, error) {
		readings++
		<-hold
		return &decode.NodeSet{Notes: []string{"a note"}}, answer
	}}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Nodepools(gone); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("a caller that is gone: %v", err)
	}
	close(hold)
	for range 3 {
		if report, err := v.Nodepools(t.Context()); err != nil || len(report.Notes) != 1 || readings != 1 {
			t.Errorf("%+v, %v after %d readings", report, err, readings)
		}
	}
	now, answer = now.Add(nodepoolsAge), errors.New("no route")
	if _, err := v.Nodepools(t.Context()); !errors.Is(err, api.ErrUnavailable) || readings != 2 {
		t.Errorf("when it is old: %v after %d readings", err, readings)
	}
	answer = apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no"))
	if report, err := v.Nodepools(t.Context()); err != nil || len(report.Notes) != 1 || readings != 3 {
		t.Errorf("without the right, and after a failure: %+v, %v after %d readings", report, err, readings)
	}
}
