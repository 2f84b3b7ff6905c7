package snapshotfile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAnUnknownKeyIsReportedWithTheSimilarKnownOne(t *testing.T) {
	for key, near := range map[string]string{
		"minReplica": "minReplicas", "min_replicas": "minReplicas", "MaxReplicas": "maxReplicas",
		"numOfHost": "numOfHosts", "idleTimeoutSecond": "idleTimeoutSeconds", "prise": "price", "ressources": "resources",
		"owner": "", "x": "", "note": "", strings.Repeat("minReplicas", 10): "",
	} {
		t.Run(key, func(t *testing.T) {
			doc, err := ReadDocument(strings.NewReader(`{"groups": [{"name": "a", "`+key+`": 7}]}`), "s.json")
			if err != nil || len(doc.Findings) != 1 {
				t.Fatalf("%v: findings %+v, want one", err, doc.Findings)
			}
			fix := "rename it to " + near
			if near == "" {
				fix = "remove it; the keys here are name, resources, labels, minReplicas, maxReplicas, replicas, numOfHosts, " +
					"idleTimeoutSeconds, priority, cloudAvailability, recoverableScore, launchConfigHash, price, closed, scaleGates, coolingSeconds, nodesComing, slice, announces, pools, nodeFit, pod, bound"
			}
			want := raydemand.Finding{Code: model.FindingKeyUnknown, Severity: raydemand.Warning, Object: "s.json", Field: "groups[0]." + key, Seen: "7",
				Why: "this key is unknown, so it has no effect", Fix: fix}
			if diff := cmp.Diff(want, doc.Findings[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUnknownKeysAreReportedInEveryObject(t *testing.T) {
	doc, err := ReadDocument(strings.NewReader(`{"groups": [], "nods": [], "head": {"pod": "h", "stat": "IDLE"},
		"nodes": [{"pod": "p", "group": "g", "state": "IDLE", "idleSecond": 1}],
		"pendingRequests": [{"resources": {"CPU": 1}, "count": 1, "labelSelector": []}],
		"requestResources": [{"resources": {"CPU": 1}, "count": 1, "amount": 3}],
		"pendingGangRequests": [{"strategy": "PACK", "bundles": [{}], "bundleLabelSelector": [{}]}],
		"policy": {"maxInflight": 3}}`), "s.json")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range doc.Findings {
		got[f.Field] = strings.TrimPrefix(f.Fix, "rename it to ")
	}
	want := map[string]string{
		"nods": "nodes", "head.stat": "state", "nodes[0].idleSecond": "idleSeconds", "pendingRequests[0].labelSelector": "labelSelectors",
		"requestResources[0].amount":                 "remove it; the keys here are resources, count, labelSelectors, slice, moving",
		"pendingGangRequests[0].bundleLabelSelector": "bundleLabelSelectors", "policy.maxInflight": "maxInFlight",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDescriptiveKeysOfACaseAreNoFindings(t *testing.T) {
	doc, err := ReadDocument(strings.NewReader(`{"groups": [], "expect": {"launch": {}}, "note": "n", "source": "s", "topic": "t", "kind": "plan",
		"exact": true, "assertedUpstream": "full", "expectWithFallback": {}}`), "s.json")
	if err != nil || len(doc.Findings) > 0 {
		t.Errorf("%v: findings %+v, want none", err, doc.Findings)
	}
}

// TestTheFirstOfSeveralFaultsOfAGangIsNamed is for lists that are looked at again after the first fault.
func TestTheFirstOfSeveralFaultsOfAGangIsNamed(t *testing.T) {
	for gang, want := range map[string]string{
		`"bundles": [null, null]`:                              "bundles[0]: null: want an object of amounts",
		`"bundles": [{"CPU": 1}], "fallbackBundles": [[], []]`: "fallbackBundles[0]: []: want at least one bundle",
		`"bundles": [{}], "bundleLabelSelectors": [{}, {}], "fallbackBundles": [[{}]], "fallbackBundleLabelSelectors": [[{}, {}], [{}]]`: "bundleLabelSelectors: ",
	} {
		_, err := ReadSnapshot(strings.NewReader(`{"groups": [{"name": "a"}], "pendingGangRequests": [{"strategy": "PACK", `+gang+`}]}`), "s.json")
		if err == nil || !strings.Contains(err.Error(), "pendingGangRequests[0]."+want) {
			t.Errorf("%s: %v, want %q", gang, err, want)
		}
	}
}

func TestUnknownKeysAreReportedOncePerKindAndForTwentyKinds(t *testing.T) {
	var nodes, kinds []string
	for i := range 1000 {
		nodes = append(nodes, fmt.Sprintf(`{"pod": "p%d", "group": "g", "state": "IDLE", "nodeIP": "10.0.0.1"}`, i))
		kinds = append(kinds, fmt.Sprintf(`"unheard-of-%d": 1`, i))
	}
	for text, want := range map[string]struct {
		findings int
		last     string
	}{
		`{"groups": [], "nodes": [` + strings.Join(nodes, ",") + `]}`: {1, "so it has no effect"},
		`{"groups": [], ` + strings.Join(kinds, ",") + `}`:            {20, "so it has no effect; 980 more keys are unknown"},
	} {
		doc, err := ReadDocument(strings.NewReader(text), "s.json")
		if err != nil || len(doc.Findings) != want.findings {
			t.Fatalf("%v: %d findings, want %d", err, len(doc.Findings), want.findings)
		}
		if last := doc.Findings[len(doc.Findings)-1].Why; !strings.HasSuffix(last, want.last) {
			t.Errorf("reported %q, want %q at its end", last, want.last)
		}
	}
}
