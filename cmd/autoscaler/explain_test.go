package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/planner"
)

const explainable = `{"groups": [{"name": "cpu", "resources": {"CPU": 4}}, {"name": "gpu", "resources": {"CPU": 8, "GPU": 1}, "labels": {"zone": "b"}, "maxReplicas": 2}],
	"nodes": [{"pod": "worker-7", "group": "gpu", "state": "RUNNING", "total": {"CPU": 8, "GPU": 1}, "available": {"CPU": 8}}],
	"pendingRequests": [{"resources": {"GPU": 1}, "count": 4}]}`

func TestADemandAGroupAndAPodAreExplained(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		want  string
	}{
		"a demand": {[]string{"--demand", `{"GPU": 1}`}, `demand {GPU 1}: capped: 4 asked, 1 is placed on pods launched now, 3 are capped: group gpu is at its
    maximum of 2 (has 1, launching 1); group cpu: too small: needs 1 GPU, has 0
  group cpu: too_small: needs 1 GPU, has 0
  group gpu: launch: launching 1 pod, which serves 1
`},
		"a request as a snapshot has it": {[]string{"--demand", `{"resources": {"GPU": 1}, "count": 2, "labelSelectors": [{"zone": "a"}]}`},
			`demand {GPU 1} where zone=a: impossible: no task in the snapshot is waiting for it; with 2: 2 asked,
    2 are impossible: no group has all of {GPU 1} where zone=a: group gpu: label zone is b, must be
    a; group cpu: too small: needs 1 GPU, has 0; label zone is missing, must be a
  group cpu: too_small: needs 1 GPU, has 0; label zone is missing, must be a
  group gpu: labels: label zone is b, must be a
`},
		"a group": {[]string{"--group", "cpu"}, `group cpu: too_small: {GPU 1}: too small: needs 1 GPU, has 0
  size: too_small: 0 pods (min 0, no max), each {CPU 4}
  demand 4 × {GPU 1}: too_small: needs 1 GPU, has 0
`},
		"a pod": {[]string{"--pod", "worker-7"}, `pod worker-7: busy: it has work, so it is not idle
  CPU: room: 8 of 8 free
  GPU: room: 0 of 1 free
`},
	} {
		t.Run(name, func(t *testing.T) {
			argv := append([]string{"autoscaler", "explain", "--snapshot", "-"}, c.flags...)
			code, out, errOut := command(t, explainable, argv...)
			if diff := cmp.Diff(c.want, out); code != cli.ExitOK || diff != "" {
				t.Errorf("exit %d %s: %s", code, errOut, diff)
			}
			code, out, errOut = command(t, explainable, append(argv, "-o", "json")...)
			var e planner.Explanation
			if err := json.Unmarshal([]byte(out), &e); code != cli.ExitOK || err != nil || e.Code == "" || !strings.HasPrefix(c.want, e.About+": "+e.Code) {
				t.Errorf("exit %d %s (%v): %+v", code, errOut, err, e)
			}
		})
	}
}

func TestWhatCannotBeExplainedEndsWithExitTwoAndWhatWouldBeRight(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		want  string
	}{
		"nothing asked":    {nil, "at least one of the flags in the group [demand group pod gang request] is required"},
		"two things asked": {[]string{"--group", "cpu", "--pod", "p"}, "if any flags in the group [demand group pod gang request] are set none of the others can be; [group pod] were all set"},
		"unknown group":    {[]string{"--group", "tpu"}, `--group: "tpu": want one of cpu, gpu`},
		"unknown pod":      {[]string{"--pod", "w"}, `--pod: "w": want one of worker-7`},
		"no JSON":          {[]string{"--demand", "GPU"}, `--demand: GPU: want an object of amounts such as {"CPU": 4, "GPU": 0.5}`},
		"no name":          {[]string{"--demand", `{"": 1}`}, `--demand: {"":1}: want the name of each resource, such as {"GPU": 1}`},
		"no amount":        {[]string{"--demand", `{"GPU": "one"}`}, `--demand: GPU: "one": want an amount from 0 to 109951162777600, to four decimal places`},
		"negative count":   {[]string{"--demand", `{"resources": {"GPU": 1}, "count": -1}`}, "--demand: count: -1: want a whole number from 1 to 1099511627776"},
		"a list":           {[]string{"--demand", `[1]`}, `--demand: [1]: want an object {…}`},
		"unknown output":   {[]string{"--group", "cpu", "-o", "xml"}, `invalid argument "xml" for "-o, --output" flag: want table, wide, json or yaml`},
		"misspelt demand":  {[]string{"--demand", `{"resources": {"GPU": 1}, "labelSelector": [{"zone": "a"}]}`}, `--demand: labelSelector: unknown key: want labelSelectors`},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := command(t, explainable, append([]string{"autoscaler", "explain", "--snapshot", "-"}, c.flags...)...)
			if diff := cmp.Diff("autoscaler: "+c.want+"\n", errOut); code != cli.ExitBadInput || out != "" || diff != "" {
				t.Errorf("exit %d with output %q: %s", code, out, diff)
			}
		})
	}
	if code, _, errOut := command(t, "", "autoscaler", "explain", "--group", "g"); code != cli.ExitBadInput || !strings.Contains(errOut, "want a RayCluster, or --snapshot with a file") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}
