package requests

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestALeaseBeginsNoLaterThanItIsSeen(t *testing.T) {
	for _, renewed := range []string{"9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999-14:00", "0000-01-01T00:00:00.000000+14:00"} {
		w := newReadingWorld(t)
		created := w.now.Add(-time.Hour)
		_ = w.Update(leasedRequest("5", created, 1, renewed))
		first, _ := w.get("ml", "a")
		w.now = w.now.Add(time.Minute)
		_ = w.Update(leasedRequest("6", created, 1, renewed))
		r, _ := w.get("ml", "a")
		if !r.Expired(w.now) || !r.ExpiresAt().Equal(first.ExpiresAt()) {
			t.Errorf("%s: over at %v, at first %v; it is %v", renewed, r.ExpiresAt(), first.ExpiresAt(), w.now)
		}
		if _, err := json.Marshal(r.ExpiresAt()); err != nil {
			t.Error(err)
		}
	}
}

func TestALeaseWithoutRenewalBeginsWhenItWasGiven(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	object := leasedRequest("5", now.Add(-9*time.Hour), 600, "")
	given := metav1.NewTime(now.Add(-time.Minute))
	object.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "kubectl", Time: new(metav1.NewTime(now.Add(-5 * time.Minute))), FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:leaseSeconds":{}}}`)}},
		{Manager: "patch", Time: &given, FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:leaseSeconds":{}}}`)}},
		{Manager: "other", Time: new(metav1.NewTime(now)), FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:priority":{}}}`)}},
	})
	if r := Decode(object); !r.RenewedAt.Equal(given.Time) {
		t.Errorf("it began at %v, want %v", r.RenewedAt, given)
	}
}

func TestARenewTimeIsReadInEveryFormThatTheAPIServerTakes(t *testing.T) {
	want := time.Date(2026, 11, 22, 20, 30, 5, 0, time.UTC)
	for _, text := range []string{"2026-11-22T20:30:05Z", "2026-11-22T20:30:05.000Z", "2026-11-22T20:30:05.000000Z", "2026-11-22T22:30:05+02:00", "2026-11-22T20:30:05.000000000Z",
		"2026-11-22T20:30:05"} {
		r := Decode(leasedRequest("5", want.Add(-time.Hour), 600, text))
		if r.Unreadable != "" || !r.RenewedAt.Equal(want) {
			t.Errorf("%s: renewed at %v, %s", text, r.RenewedAt, r.Unreadable)
		}
	}
}

func TestOfARequestThatCannotBeReadItsOwnerLeaseAndStatusAre(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, spoil := range map[string]func(spec map[string]any){
		"a bundle": func(spec map[string]any) {
			spec["bundles"] = []any{map[string]any{"resources": map[string]any{"CPU": 0.00001}}}
		},
		"a priority": func(spec map[string]any) { spec["priority"] = int64(99999999999) },
		"a slice": func(spec map[string]any) {
			spec["bundles"] = []any{map[string]any{"slice": map[string]any{"memory": "-10Gi"}}}
		},
	} {
		object := leasedRequest("5", now, 600, "2026-01-01T12:01:00.000000Z")
		spoil(object.Object["spec"].(map[string]any))
		written := nodepool.OwnedStatus{State: raydemand.RequestImpossible, Code: raydemand.CodeUnreadable, Since: now, ObservedRequest: "f00"}
		patch, err := statusPatch("uid-a", &written)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(patch, &object.Object); err != nil {
			t.Fatal(err)
		}
		r := Decode(object)
		if r.Unreadable == "" || r.Owner != "ann" || r.LeaseSeconds != 600 || !r.RenewedAt.Equal(now.Add(time.Minute)) || !r.Status.Equal(written) {
			t.Errorf("%s: read as %+v", name, r)
		}
	}
}
