package kueue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: fields}
}

// slice returns a Workload of RayCluster ml/llm with a head of one CPU, a group od with GPUs in flavor ondemand, and a
// group Spot in flavor spot.
func slice(t *testing.T, name string, od, spot string, more string) *workload {
	t.Helper()
	text := `
metadata:
  name: ` + name + `
  namespace: ml
  uid: uid-` + name + `
  generation: 3
  creationTimestamp: "2026-11-23T11:00:00Z"
  annotations: {kueue.x-k8s.io/elastic-job: "true"}
  ownerReferences: [{apiVersion: ray.io/v1, kind: RayCluster, name: llm, uid: llm-uid, controller: true}]
spec:
  podSets: [{name: head, count: 1}, {name: od, count: ` + od + `}, {name: spot, count: ` + spot + `}]
` + more
	w, err := readWorkload(object(t, text))
	if err != nil || w == nil {
		t.Fatalf("%v, %v", w, err)
	}
	return w
}

// admission is the status of a Workload with quota for so many pods.
func admission(od, spot string) string {
	return `
status:
  conditions: [{type: QuotaReserved, status: "True", reason: QuotaReserved, observedGeneration: 3}]
  admission:
    clusterQueue: q
    podSetAssignments:
    - {name: head, count: 1, flavors: {cpu: default}, resourceUsage: {cpu: "1"}}
    - {name: od, count: ` + od + `, flavors: {cpu: default, nvidia.com/gpu: ondemand}, resourceUsage: {cpu: "` + od + `", nvidia.com/gpu: "` + od + `"}}
    - {name: spot, count: ` + spot + `, flavors: {cpu: default, nvidia.com/gpu: spot}, resourceUsage: {cpu: "` + spot + `", nvidia.com/gpu: "` + spot + `"}}
`
}

const refusal = `
status:
  conditions: [{type: QuotaReserved, status: "False", reason: Pending, observedGeneration: 3, message: "insufficient unused quota"}]
`

func queueOf(t *testing.T, reservedOd string, more string) *quotaHolder {
	t.Helper()
	q, err := readHolder(object(t, `
metadata: {name: q}
spec:
  `+more+`
  resourceGroups:
  - {flavors: [{name: default, resources: [{name: cpu, nominalQuota: "10"}]}]}
  - {flavors: [{name: ondemand, resources: [{name: nvidia.com/gpu, nominalQuota: "8"}]}, {name: spot, resources: [{name: nvidia.com/gpu, nominalQuota: "4"}]}]}
status:
  flavorsReservation:
  - {name: default, resources: [{name: cpu, total: "5"}]}
  - {name: ondemand, resources: [{name: nvidia.com/gpu, total: "`+reservedOd+`"}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func cluster() *nodepool.Cluster {
	takes := landing.Quantities{"cpu": raydemand.One, "nvidia.com/gpu": raydemand.One}
	c := &nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, UID: "llm-uid"}
	for i, name := range []string{"od", "Spot"} {
		g := nodepool.WorkerGroup{Name: name, Index: i}
		g.Pod.Requests = takes
		c.Groups = append(c.Groups, g)
	}
	c.Queue = nodepool.Queue{Mark: "label", Elastic: true}
	return c
}

// quotaOf returns what Workloads and a ClusterQueue mean for the groups.
func quotaOf(all workloads, queue *quotaHolder, others othersUse, now time.Time) *nodepool.Quota {
	w := newTestWatch(nil)
	if w.cohorts.unread = ""; queue != nil {
		w.queues.kept[queue.name] = queue
	}
	return all.quota(cluster(), queue, func(of flavored) (raydemand.Amount, string) { return w.mostOf(queue, of) }, others, now)
}

// bound returns the amount of the bound on a resource in a flavor.
func bound(t *testing.T, q *nodepool.Quota, name, resource string) float64 {
	t.Helper()
	for _, b := range q.Bounds {
		if strings.HasPrefix(b.Name, name) && b.Resource == resource {
			return b.Amount.Float()
		}
	}
	t.Fatalf("no bound on %s in %s: %+v", resource, name, q.Bounds)
	return 0
}

func TestTheHeadroomIsWhatOtherWorkloadsAndTheHeadLeave(t *testing.T) {
	own := workloads{slice(t, "a", "2", "0", admission("2", "0"))}
	q := quotaOf(own, queueOf(t, "5", ""), othersUse{}, noon)
	if !q.Elastic || !q.Admitted || q.Pending != nil || cmp.Diff(map[string]int{"od": 2, "Spot": 0}, q.Granted) != "" {
		t.Errorf("%+v", q)
	}
	for _, want := range []struct {
		flavor, resource string
		amount           float64
	}{
		{"flavor ondemand ", "nvidia.com/gpu", 8 - 3}, // others have 3 of 5
		{"flavor spot ", "nvidia.com/gpu", 4},
		{"flavor default ", "cpu", 10 - 2 - 1}, // others have 2 of 5, the head 1
	} {
		if got := bound(t, q, want.flavor, want.resource); got != want.amount {
			t.Errorf("%s in %s: %v, want %v", want.resource, want.flavor, got, want.amount)
		}
	}
}

// TestAQuotaOfPodsBoundsThem: of a ClusterQueue that has quota of pods, Kueue takes one for each pod, the head included,
// although no pod requests any (v0.19.0, pkg/scheduler/flavorassigner).
func TestAQuotaOfPodsBoundsThem(t *testing.T) {
	pods := func(text string) string {
		text = strings.ReplaceAll(text, "flavors: {cpu: default", "flavors: {pods: default, cpu: default")
		for _, n := range []string{"1", "2", "0"} {
			text = strings.ReplaceAll(text, `resourceUsage: {cpu: "`+n+`"`, `resourceUsage: {pods: "`+n+`", cpu: "`+n+`"`)
		}
		return text
	}
	queue := queueOf(t, "2", "")
	queue.quotas[flavored{"default", "pods"}] = quota{nominal: raydemand.Whole(6)}
	queue.reserved[flavored{"default", "pods"}] = raydemand.Whole(4) // others have one
	q := quotaOf(workloads{slice(t, "a", "2", "0", pods(admission("2", "0")))}, queue, othersUse{}, noon)
	if got := bound(t, q, "flavor default ", "pods"); got != 6-1-1 {
		t.Errorf("%v pods in both groups, want 4", got)
	}
	for _, b := range q.Bounds {
		if b.Resource == "pods" && (b.PodTakes["od"] != raydemand.One || b.PodTakes["Spot"] != raydemand.One) {
			t.Errorf("a pod takes %v", b.PodTakes)
		}
	}
}

// TestAPodTakesOfAQuotaWhatKueueCounts: the overhead of a RuntimeClass, and resources that Kueue's configuration makes of
// others, are in no template, and what the operator adds to pods is in no Workload.
func TestAPodTakesOfAQuotaWhatKueueCounts(t *testing.T) {
	text := strings.NewReplacer(
		`nvidia.com/gpu: ondemand}, resourceUsage: {cpu: "2"`, `nvidia.com/gpu: ondemand, example.com/credits: ondemand}, resourceUsage: {example.com/credits: "80", cpu: "3"`,
	).Replace(admission("2", "0"))
	queue := queueOf(t, "2", "")
	queue.quotas[flavored{"ondemand", "example.com/credits"}] = quota{nominal: raydemand.Whole(200)}
	queue.reserved[flavored{"ondemand", "example.com/credits"}] = raydemand.Whole(80)
	q := quotaOf(workloads{slice(t, "a", "2", "0", text)}, queue, othersUse{}, noon)
	for resource, want := range map[string]raydemand.Bundle{
		"example.com/credits": {"od": raydemand.Whole(40)},
		"cpu":                 {"od": raydemand.One + raydemand.One/2, "Spot": raydemand.One}, // Spot has no pods yet
	} {
		at := slices.IndexFunc(q.Bounds, func(b landing.Quota) bool { return b.Resource == resource })
		if at < 0 || !q.Bounds[at].PodTakes.Equal(want) {
			t.Errorf("of %s, a pod takes other than %v: %+v", resource, want, q.Bounds)
		}
	}
}

func TestAReplacedSliceIsNotAnotherWorkload(t *testing.T) {
	old := slice(t, "a", "2", "0", admission("2", "0"))
	others := othersUse{}
	if got := bound(t, quotaOf(workloads{old}, queueOf(t, "2", ""), others, noon), "flavor ondemand ", "nvidia.com/gpu"); got != 8 {
		t.Errorf("bound %v, want 8: nobody else has any", got)
	}
	old.finishedAt = noon.Add(-time.Second)
	next := slice(t, "b", "3", "0", admission("3", "0"))
	next.Metadata.Annotations[replaces] = "ml/a"
	own := workloads{next, old}
	// The status counts both: 2 and 3.
	if got := bound(t, quotaOf(own, queueOf(t, "5", ""), others, noon), "flavor ondemand ", "nvidia.com/gpu"); got != 8 {
		t.Errorf("bound %v, want 8: nobody else has any", got)
	}
	later := noon.Add(time.Minute)
	if got := bound(t, quotaOf(own, queueOf(t, "5", ""), othersUse{}, later), "flavor ondemand ", "nvidia.com/gpu"); got != 6 {
		t.Errorf("bound %v, want 6: somebody else has 2", got)
	}
}

// The status of a ClusterQueue is up to 1 s late, and a conclusion from it must not be about quota that is not there.
func TestAnOldStatusPromisesNoQuota(t *testing.T) {
	fresh := func(w *workload) *workload { w.reservedAt = noon.Add(-time.Second); return w }
	gone := func(w *workload) *workload { w.finishedAt = noon.Add(-time.Second); return w }
	none, one := slice(t, "a", "0", "0", admission("0", "0")), fresh(slice(t, "b", "1", "0", admission("1", "0")))
	two, three := slice(t, "c", "2", "0", admission("2", "0")), fresh(slice(t, "d", "3", "0", admission("3", "0")))
	one.Metadata.Annotations[replaces], three.Metadata.Annotations[replaces] = "ml/a", "ml/c"
	gpus := flavored{"ondemand", "nvidia.com/gpu"}
	for _, test := range []struct {
		name     string
		own      workloads
		reserved string
		others   othersUse
		want     float64
	}{
		{"the first pod is not counted yet", workloads{gone(none), one}, "2", othersUse{gpus: raydemand.Whole(2)}, 6},
		{"the first pod is counted", workloads{gone(none), one}, "3", othersUse{gpus: raydemand.Whole(2)}, 6},
		{"nothing is known of others", workloads{gone(none), one}, "2", othersUse{}, 6},
		{"nothing is known of others beside two slices", workloads{gone(two), three}, "3", othersUse{}, 8 - 3},
		{"others freed some, which is seen later", workloads{gone(two), three}, "4", othersUse{gpus: raydemand.Whole(5)}, 8 - 5},
		{"others took some", workloads{fresh(three)}, "7", othersUse{}, 8 - 7},
	} {
		q := quotaOf(test.own, queueOf(t, test.reserved, ""), test.others, noon)
		if got := bound(t, q, "flavor ondemand ", "nvidia.com/gpu"); got != test.want {
			t.Errorf("%s: bound %v, want %v", test.name, got, test.want)
		}
	}
}

func TestAShrunkWorkloadUsesLessThanItsStatusSays(t *testing.T) {
	own := workloads{slice(t, "a", "1", "0", admission("4", "0"))}
	if got := bound(t, quotaOf(own, queueOf(t, "1", ""), othersUse{}, noon), "flavor ondemand ", "nvidia.com/gpu"); got != 8 {
		t.Errorf("bound %v, want 8", got)
	}
}

func TestTheHeadroomIsUnknownWithoutItsQueue(t *testing.T) {
	own := workloads{slice(t, "a", "2", "0", admission("2", "0"))}
	if q := quotaOf(own, nil, othersUse{}, noon); len(q.Bounds) > 0 || !strings.Contains(q.Unbounded, "cannot be read") {
		t.Errorf("%+v", q)
	}
}

// TestTheHeadroomInACohort asserts what a ClusterQueue may use in all, with quota that it borrows and lends, as Kueue's
// scheduler computes it (v0.19.0, pkg/cache/scheduler/resource_node.go).
func TestTheHeadroomInACohort(t *testing.T) {
	gpus := flavored{"f", "gpu"}
	queue := func(name, cohort, limits string, nominal, reserved int) string {
		return fmt.Sprintf(`{kind: ClusterQueue, metadata: {name: %s}, spec: {cohortName: %q, resourceGroups: [{flavors: [{name: f,
			resources: [{name: gpu, nominalQuota: %d%s}]}]}]}, status: {flavorsReservation: [{name: f, resources: [{name: gpu, total: %d}]}]}}`,
			name, cohort, nominal, limits, reserved)
	}
	const reclaims = "spec: {preemption: {reclaimWithinCohort: Any}, "
	for name, c := range map[string]struct {
		objects []string
		want    int64
		unknown string
	}{
		"alone":                           {objects: []string{queue("q", "", "", 4, 3)}, want: 4},
		"what another one does not use":   {objects: []string{queue("q", "all", "", 4, 3), queue("r", "all", "", 4, 1)}, want: 7},
		"of another cohort":               {objects: []string{queue("q", "all", "", 4, 3), queue("r", "b", "", 4, 1)}, want: 4},
		"no more than it may borrow":      {objects: []string{queue("q", "all", ", borrowingLimit: 2", 4, 3), queue("r", "all", "", 4, 1)}, want: 6},
		"it has borrowed already":         {objects: []string{queue("q", "all", ", borrowingLimit: 2", 4, 6), queue("r", "all", "", 4, 1)}, want: 6},
		"another one lends a part":        {objects: []string{queue("q", "all", "", 4, 3), queue("r", "all", ", lendingLimit: 1", 4, 0)}, want: 5},
		"it uses more than it keeps":      {objects: []string{queue("q", "all", "", 4, 3), queue("r", "all", ", lendingLimit: 2", 4, 3)}, want: 5},
		"others have borrowed of it":      {objects: []string{queue("q", "all", "", 4, 1), queue("r", "all", "", 4, 6)}, want: 2},
		"what it keeps is never lent":     {objects: []string{queue("q", "all", ", lendingLimit: 1", 4, 0), queue("r", "all", "", 4, 5)}, want: 3},
		"and Kueue may evict them":        {objects: []string{strings.Replace(queue("q", "all", "", 4, 1), "spec: {", reclaims, 1), queue("r", "all", "", 4, 6)}, unknown: "Kueue may evict them"},
		"reclaiming with nothing to take": {objects: []string{strings.Replace(queue("q", "all", "", 4, 1), "spec: {", reclaims, 1), queue("r", "all", "", 4, 1)}, want: 7},
		"a cohort with quota": {objects: []string{queue("q", "all", "", 4, 3),
			`{kind: Cohort, metadata: {name: all}, spec: {resourceGroups: [{flavors: [{name: f, resources: [{name: gpu, nominalQuota: 5}]}]}]}}`}, want: 9},
		"a cohort above, of which a sister uses some": {objects: []string{queue("q", "a", "", 4, 3), queue("r", "b", "", 4, 5),
			`{kind: Cohort, metadata: {name: a}, spec: {parentName: top}}`, `{kind: Cohort, metadata: {name: b}, spec: {parentName: top}}`,
			`{kind: Cohort, metadata: {name: top}, spec: {resourceGroups: [{flavors: [{name: f, resources: [{name: gpu, nominalQuota: 3}]}]}]}}`}, want: 6},
		"a cohort that may not borrow from above": {objects: []string{queue("q", "a", "", 4, 3), queue("r", "b", "", 4, 0),
			`{kind: Cohort, metadata: {name: a}, spec: {parentName: top, resourceGroups: [{flavors: [{name: f, resources: [{name: gpu, nominalQuota: 0, borrowingLimit: 0}]}]}]}}`,
			`{kind: Cohort, metadata: {name: b}, spec: {parentName: top}}`}, want: 4},
		"cohorts above each other in a circle": {objects: []string{queue("q", "a", "", 4, 3),
			`{kind: Cohort, metadata: {name: a}, spec: {parentName: b}}`, `{kind: Cohort, metadata: {name: b}, spec: {parentName: a}}`}, want: -1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestWatch(func(nodepool.ClusterKey) {})
			w.cohorts.replace(nil, "")
			for _, text := range c.objects {
				if object := object(t, text); object.GetKind() == "Cohort" {
					w.cohorts.put(object)
				} else {
					w.queues.put(object)
				}
			}
			most, unknown := w.mostOf(w.queues.kept["q"], gpus)
			if c.want >= 0 && most != raydemand.Whole(c.want) || !strings.Contains(unknown, c.unknown) || (unknown == "") != (c.unknown == "") {
				t.Errorf("%v, %q; want %d, %q", most.Float(), unknown, c.want, c.unknown)
			}
		})
	}
	w := newTestWatch(func(nodepool.ClusterKey) {})
	w.queues.put(object(t, queue("q", "all", "", 4, 3)))
	if _, unknown := w.mostOf(w.queues.kept["q"], gpus); !strings.Contains(unknown, "cohort all: Cohorts have not been read yet") {
		t.Errorf("without Cohorts: %q", unknown)
	}
}

// TestAQuotaBeyondTheLargestAmountIsNotNegative has cohorts whose quotas of memory add up to more than the bytes that an
// Amount can hold, as those of a large fleet do, and those that are to bound nothing.
func TestAQuotaBeyondTheLargestAmountIsNotNegative(t *testing.T) {
	memory := flavored{"f", "memory"}
	const most = raydemand.MaxAmount
	for name, c := range map[string]struct {
		own, other quota
		// used is what the queue itself has of it, taken what the other one has.
		used, taken, least raydemand.Amount
	}{
		"two large quotas":          {quota{nominal: most}, quota{nominal: most}, raydemand.Whole(1 << 40), 0, most},
		"and a large use":           {quota{nominal: most}, quota{nominal: most}, 0, most, most},
		"of 400 TiB and of 600 TiB": {quota{nominal: raydemand.Whole(400 << 40)}, quota{nominal: raydemand.Whole(600 << 40)}, raydemand.Whole(300 << 40), raydemand.Whole(900 << 40), raydemand.Whole(800 << 40)},
		"with a borrowing limit":    {quota{nominal: most, borrowing: new(raydemand.One)}, quota{nominal: most}, 0, 0, most},
		"with a lending limit":      {quota{nominal: most, lending: new(raydemand.One)}, quota{nominal: most}, 0, 0, most},
		"alone, with all in use":    {quota{nominal: most}, quota{}, most, 0, most},
	} {
		t.Run(name, func(t *testing.T) {
			holder := func(q quota, name string) *quotaHolder {
				return &quotaHolder{name: name, cohort: "all", quotas: map[flavored]quota{memory: q},
					reserved: map[flavored]raydemand.Amount{}}
			}
			own := holder(c.own, "q")
			own.reserved[memory] = c.used
			other := holder(c.other, "r")
			other.reserved[memory] = c.taken
			tree := quotaTree{of: memory, queues: map[string]*quotaHolder{"q": own, "r": other}}
			if got := tree.most(own); got < c.least {
				t.Errorf("it may use %v, want at least %v", got, c.least)
			}
		})
	}
}

func TestAPendingSliceIsReportedBesideTheAdmittedOne(t *testing.T) {
	admitted := slice(t, "a", "2", "0", admission("2", "0"))
	waiting := slice(t, "b", "5", "1", refusal)
	waiting.Metadata.Annotations[replaces] = "ml/a"
	q := quotaOf(workloads{waiting, admitted}, nil, othersUse{}, noon)
	want := &nodepool.PendingWorkload{Name: "b", Version: "uid-b/3", Pods: map[string]int{"od": 5, "Spot": 1},
		Message: "insufficient unused quota", Judged: true}
	if diff := cmp.Diff(want, q.Pending); diff != "" || q.Granted["od"] != 2 || !q.Elastic {
		t.Errorf("%+v (-want +got):\n%s", q, diff)
	}
	waiting.Metadata.Annotations = nil
	if quotaOf(workloads{waiting, admitted}, nil, othersUse{}, noon).Elastic {
		t.Error("elastic, although the newest Workload is not")
	}
	old := slice(t, "c", "5", "1", strings.Replace(refusal, "observedGeneration: 3", "observedGeneration: 2", 1))
	if q := quotaOf(workloads{old}, nil, othersUse{}, noon); q.Pending.Judged || q.Admitted {
		t.Errorf("%+v: the message is about an earlier generation", q)
	}
	unseen := slice(t, "c", "5", "1", strings.Replace(refusal, "reason: Pending", "reason: PendingEvaluation", 1))
	if q := quotaOf(workloads{unseen}, nil, othersUse{}, noon); q.Pending == nil || q.Pending.Judged {
		t.Errorf("%+v: Kueue has not looked at it", q.Pending)
	}
	preempts := slice(t, "d", "5", "1", strings.Replace(refusal, "unused quota", "quota. Pending the preemption of 1 workload(s)", 1))
	if q := quotaOf(workloads{preempts}, nil, othersUse{}, noon); !q.Pending.Preempting {
		t.Errorf("%+v: Kueue evicts other work for it", q.Pending)
	}
}

func TestARayClusterThatKueueCannotStartAgainIsFound(t *testing.T) {
	const failed = `
status:
  conditions: [{type: Finished, status: "True", reason: FailedToStart, lastTransitionTime: "2026-11-23T11:59:00Z", message: "conflict for annotations"}]
`
	c := cluster()
	c.Suspended = true
	own := workloads{slice(t, "a", "2", "0", failed)}
	found := own.neverStarts(c)
	if found == nil || !strings.Contains(found.Fix, "/spec/workerGroupSpecs/1/template/metadata/annotations") ||
		!strings.Contains(found.Seen, "conflict for annotations") {
		t.Fatalf("%+v", found)
	}
	if c.Suspended = false; own.neverStarts(c) != nil {
		t.Error("found although it runs")
	}
	c.Suspended = true
	next := slice(t, "b", "2", "0", refusal)
	next.Metadata.Annotations[replaces] = "ml/a"
	if append(own, next).neverStarts(c) != nil {
		t.Error("found although another Workload waits")
	}
}

// TestAStatusThatShowsMoreThanOthersHadCounts is for an elastic job that grows all the time while others take quota.
func TestAStatusThatShowsMoreThanOthersHadCounts(t *testing.T) {
	gpus := flavored{"ondemand", "nvidia.com/gpu"}
	others := othersUse{gpus: raydemand.Whole(0)}
	for i := range 20 { // a new slice every two seconds, as an elastic job that grows
		now := noon.Add(time.Duration(2*i) * time.Second)
		own := slice(t, "b", "1", "0", admission("1", "0"))
		own.reservedAt = now.Add(-time.Second)
		q := quotaOf(workloads{own}, queueOf(t, "8", ""), others, now)
		if got := bound(t, q, "flavor ondemand ", "nvidia.com/gpu"); got > 2 {
			t.Fatalf("after %d s: bound %v although 7 of 8 are others' for sure", 2*i, got)
		}
	}
}
