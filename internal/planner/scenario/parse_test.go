package scenario

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// everything has each word of the grammar once.
const everything = `# Comments and blank lines stay where they are.

scenario  every word
cluster   name ml/llm taken 2026-01-31T12:00:00Z max-workers 9 mode Conservative idle-timeout 60s
          ignore-launch-config isolation limit
policy    max-in-flight 4 work 900
groups    a  {CPU: 4, memory: 16Gi, "odd name": 0.5}  1..4  replicas 2  hosts 2  labels {zone: a, "a b": ""}
            idle-timeout 1.5s price 4.25 availability 0.5 recoverable 0.25 priority -3 launch-config h1
            closed "suspended: by hand" cooling 30s nodes-coming 1
            gpu {kind: mig, profile: 1g.5gb, memory: 4864Mi, compute: 3/7, isolation: hardware, product: A100,
            blocks: 1}
            pool p {pods: 4, resource: nvidia.com/gpu, units: 1, profile-fixed: yes, shares: {cpu: 4000/128000},
            cards: [{product: "A100 40GB", count: 4, busy: 1, cut: {1g.5gb: 7}}]} pool q {}
          b  {GPU: 1}  0..
head      running {CPU: 4} free {CPU: 3} pod head-0
nodes     n0  a  idle for 93s
          n1  a  running {CPU: 8} free {CPU: 0} labels {} placed {_PG_7f: ""} replica r0 launch-config h0
            group-launch-config h1 refused {GPU: 0.5}
          n2  b  pending since 2026-01-31T11:59:00Z expected im-state ALLOCATED
          n3  b  idle unreported
          n4  b  timed-out
          n5  b  leaving {GPU: 1}
          n6  b  idle resources {GPU: 1}
          n7  b  running free unknown
demand    8 × {GPU: 1} each {memory: 4Gi, compute: 0.2, isolation: any} on {zone: a} or {zone: "!in(b,c)"} or {}
          {CPU: 1}
          gang id 7f STRICT_SPREAD topology rack 2 × {CPU: 1} on {zone: a} + {GPU: 1} or 3 × {CPU: 1} or {CPU: 2} on {}
          gang PACK {CPU: 1}
          request_resources 2 × {CPU: 2}
          keep 3 × {GPU: 1}
          owned train by ann priority 5 since 2026-01-31T11:00:00Z satisfied 2026-01-31T11:30:00Z all-or-nothing
            2 × {GPU: 1} + {CPU: 1}
          owned idle by bob nothing
want      a stays 2
`

func whole(n int64) raydemand.Amount { return raydemand.Whole(n) }

func TestEveryWordOfTheGrammarIsRead(t *testing.T) {
	file, err := Parse("s.txt", everything)
	if err != nil {
		t.Fatal(err)
	}
	s := file.Scenarios[0].Snapshot
	a := raydemand.Bundle{"CPU": whole(4), "memory": whole(16 << 30), "odd name": raydemand.One / 2}
	if diff := cmp.Diff(a, s.Groups[0].Resources); diff != "" {
		t.Error(diff)
	}
	slice := &model.Slice{
		Kind: gpuinfo.MIG, Profile: "1g.5gb", MemoryMiB: pointer(int64(4864)), ComputeFraction: pointer(3.0 / 7),
		Isolation: gpuinfo.Hardware, Product: "A100", Blocks: pointer(int64(1)),
	}
	pools := []landing.GroupPool{
		{
			Name: "p", MaxPods: pointer(int64(4)), Resource: "nvidia.com/gpu", Units: 1, ProfileFixed: true,
			Shares: []landing.PoolShare{{Resource: "cpu", Units: 4000, Capacity: 128000}},
			Cards: []sharing.CutCards{{
				Product: "A100 40GB", Count: 4, Busy: pointer(int64(1)),
				Cut: []sharing.Cut{{Profile: "1g.5gb", Count: 7}},
			}},
		},
		{Name: "q"},
	}
	if diff := cmp.Diff(slice, s.Groups[0].Slice); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(pools, s.Groups[0].Pools); diff != "" {
		t.Error(diff)
	}
	gang := s.Gangs[0]
	if len(gang.Bundles) != 3 || len(gang.BundleSelectors) != 3 || len(gang.Fallbacks) != 2 ||
		gang.TopologyLabel != "rack" || len(gang.FallbackSelectors) != 2 || gang.FallbackSelectors[0] != nil ||
		len(gang.FallbackSelectors[1]) != 1 {
		t.Errorf("the gang is %+v", gang)
	}
	if s.Requests[0].Slice.Memory != 4<<30 || len(s.Requests[0].Selectors) != 3 || s.Requests[1].Count != 1 {
		t.Errorf("the requests are %+v", s.Requests)
	}
	if o := s.OwnedRequests[0]; o.Owner != "ann" || o.Priority != 5 || !o.AllOrNothing || len(o.Requests) != 2 {
		t.Errorf("the owned request is %+v", o)
	}
	again, err := Parse("again.txt", Format("every word", &s, nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, again.Scenarios[0].Snapshot, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("written and read again (-before +after):\n%s", diff)
	}
}

func TestNodesTakeFromTheirGroupWhatTheyDoNotSay(t *testing.T) {
	file, err := Parse("s.txt", everything)
	if err != nil {
		t.Fatal(err)
	}
	s := file.Scenarios[0].Snapshot
	group, gpu := s.Groups[0].Resources, raydemand.Bundle{"GPU": whole(1)}
	for i, want := range []model.Node{
		{Total: group, Available: group, Labels: s.Groups[0].Labels},
		{Total: raydemand.Bundle{"CPU": whole(8)}, Available: raydemand.Bundle{"CPU": 0}, Labels: map[string]string{}},
		{}, {}, {}, {Total: gpu}, {}, {Total: gpu},
	} {
		n := s.Nodes[i]
		got := model.Node{Total: n.Total, Available: n.Available, Labels: n.Labels}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("node %s (-want +got): %s", n.Pod, diff)
		}
	}
}

func TestABadLineIsReportedWithFileLineAndWhatWouldBeRight(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"pods      x", `s.txt:2: "pods": want scenario, cluster, policy, groups, head, nodes, demand, warm or want`},
		{"  a {}",
			"s.txt:2: an indented line without a section: want one of cluster, policy, groups, head, nodes, " +
				"demand, warm or want at its start"},
		{"scenario", "s.txt:2: scenario without a name: want a sentence that says what holds"},
		{"scenario  one", `s.txt:2: scenario "one": want a name of its own: line 1 has this one`},
		{"groups\ta {} 0..1", "s.txt:2: a tab: want spaces"},
		{"groups    a {} 0..1\ngroups    b {} 0..1",
			`s.txt:3: "groups": the scenario has this section already: want its lines there`},
		{"groups    a {} 0..1\n     b {} 0..1",
			"s.txt:3: the line starts in column 6: want column 11, or further right to continue the line above"},
		{"groups    a {CPU: 1} 0", `s.txt:2: group a: "0": want MIN..MAX such as 0..4, or 0.. without a maximum`},
		{"groups    a {CPU: -1} 0..1", `s.txt:2: group a: CPU "-1": want an amount such as 0.5 or 16Gi`},
		{"groups    a {CPU: 1, CPU: 2} 0..1", "s.txt:2: group a: CPU: the key is there twice: want each key once"},
		{"groups    a {CPU 1} 0..1",
			`s.txt:2: group a: "CPU": want KEY: VALUE, or } at the end of resources such as {CPU: 4, memory: 16Gi}`},
		{"groups    a {} 0..1\n          a {} 0..1", "s.txt:3: group a: the name is taken: want a name of its own"},
		{"groups    a {} 0..1 price x", `s.txt:2: group a: price "x": want a number from 0`},
		{"groups    a {} 0..1 price 1 price 2", "s.txt:2: group a: price is there twice: want it once"},
		{"groups    a {} 0..1 gpu {compute: 1/0}", `s.txt:2: group a: compute "1/0": want a number such as 0.5 or 3/7`},
		{"groups    a {} 0..1 closed \"x", `s.txt:2: "x: want a closing quote "`},
		{"groups    a {} 0..1 gpu {size: 1}",
			"s.txt:2: group a: size: want blocks, compute, isolation, kind, memory, product or profile"},
		{"cluster   idle-timeout 60", `s.txt:2: cluster: idle-timeout "60": want seconds such as 30s`},
		{"cluster   mode Bold", `s.txt:2: cluster: mode "Bold": want Default, Aggressive or Conservative`},
		{"cluster   max-workers -1", "s.txt:2: cluster: max-workers -1: want a whole number from 0"},
		{"nodes     n g busy", `s.txt:2: node n: state "busy": want idle, leaving, pending, running or timed-out`},
		{"nodes     n g idle",
			"s.txt:2: nodes: there is no group g to take resources from: want them such as {CPU: 4}"},
		{"nodes     n g pending since noon", `s.txt:2: node n: since "noon": want a time such as 2026-01-31T12:00:00Z`},
		{"demand    0 × {CPU: 1}",
			`s.txt:2: demand: "0": want COUNT × {resources}, {resources}, gang, request_resources, keep or owned`},
		{"demand    3 {CPU: 1}", `s.txt:2: demand: "{": want × between the count and the resources`},
		{"demand    {CPU: 1} on {zone: !}",
			`s.txt:2: demand: label "zone": "!": no value after !; want v, !v, in(a,b) or !in(a,b)`},
		{"demand    {CPU: 1} per task",
			`s.txt:2: demand: "per": want the end of the line, or a selector, a slice or + before it`},
		{"demand    gang TIGHT {CPU: 1}",
			`s.txt:2: gang: strategy "TIGHT": want PACK, SPREAD, STRICT_PACK or STRICT_SPREAD`},
		{"demand    gang PACK 999999999999 × {}", "s.txt:2: gang: 999999999999 bundles: want at most 100000"},
		{"demand    owned a of ann {CPU: 1}",
			`s.txt:2: owned a: "of": want by, priority, since, satisfied, all-or-nothing, the requests, or ` +
				`nothing in their place`},
		{"demand    {CPU: 1} each {isolation: total}",
			`s.txt:2: demand: isolation "total": want hardware, limit or any`},
	} {
		_, err := Parse("s.txt", "scenario  one\n"+c.line+"\n")
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s\ngives %v\nwant  %s", c.line, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"":               `s.txt:1: no scenario: want "scenario NAME"`,
		"groups    a {}": `s.txt:1: "groups" before any scenario: want "scenario NAME" above it`,
	} {
		if _, err := Parse("s.txt", text); err == nil || err.Error() != want {
			t.Errorf("%q gives %v, want %s", text, err, want)
		}
	}
}

func TestRewriteChangesTheOutcomesAndNothingElse(t *testing.T) {
	const before = `# A topic.

scenario  one
groups    a   {CPU: 1}  0..1
want      old
            and older
          old too

# About two.
scenario  two
groups    b {CPU: 1} 0..
`
	long := strings.Repeat("word ", 30) + "end"
	const after = `# A topic.

scenario  one
groups    a   {CPU: 1}  0..1
want      new

# About two.
scenario  two
groups    b {CPU: 1} 0..
want      word word word word word word word word word word word word word word word word word word word word word word
            word word word word word word word word end
`
	file, err := Parse("s.txt", before)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"old and older", "old too"}, file.Scenarios[0].Want); diff != "" {
		t.Error(diff)
	}
	outcomes := [][]string{{"new"}, {long}}
	if diff := cmp.Diff(after, file.Rewrite(outcomes)); diff != "" {
		t.Error(diff)
	}
	again, err := Parse("s.txt", after)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range again.Scenarios {
		if diff := cmp.Diff(outcomes[i], s.Want); diff != "" {
			t.Errorf("%s: %s", s.Name, diff)
		}
	}
}
