package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
)

// inShadow is a RayCluster that no user has asked Heliostat to scale.
func inShadow(t *testing.T) *remote {
	t.Helper()
	r := newRemote(t)
	r.view.Mode, r.view.Why.Message, r.view.Read = nodepool.Shadow, "shadow by default: nobody asked", addon.LatestOf(time.Now())
	r.view.OptIn = &apiv1.OptIn{
		Waiting: "demand waits for which Heliostat would launch 2 × gpu", Allow: "to let Heliostat scale it: `autoscaler manage ml/llm`",
		Autoscaler: "in-tree autoscaling is off", Patch: "kubectl patch -n ml raycluster llm --type=merge -p '{\"spec\":{\"enableInTreeAutoscaling\":true}}' && kubectl delete pod",
		Changes: []apiv1.WouldChange{
			{Action: "launch", Group: "gpu", Count: "2", Pods: []string{}, Reason: "launching 2 pods for 2 × {GPU 1}"},
			{Action: "stop", Group: "cpu", Count: "7", Pods: []string{"a", "b", "c", "d", "e", "f", "g"}, Reason: "idle for 2m"},
			{Action: "numGpus", Group: "mig", Count: "1", Pods: []string{}, Reason: "the nodes report it"},
			{Action: "shrink", Group: "cpu", Count: "8", Pods: []string{}, Reason: "workers that stay idle for 1m leave, down to minReplicas: 0 of 8 pods"},
		},
	}
	return r
}

// asked runs manage as if a user answered on the terminal.
func asked(t *testing.T, answer string, arguments ...string) (out string, err error) {
	t.Helper()
	cmd := newManageCommand(func(io.Reader) bool { return true })
	var text bytes.Buffer
	cmd.SetIn(strings.NewReader(answer))
	cmd.SetOut(&text)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(arguments)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	root := &cobra.Command{Use: "autoscaler"}
	root.AddCommand(cmd)
	root.SetArgs(append([]string{"manage"}, arguments...))
	err = root.ExecuteContext(t.Context())
	return text.String(), err
}

const plannedInShadow = `ml/llm: shadow (shadow by default: nobody asked)
When it is managed, Heliostat will:
  launch 2 × gpu: launching 2 pods for 2 × {GPU 1}
  stop 7 × cpu (a, b, c, d, e and 2 more): idle for 2m
  write num-gpus 1 to group mig: the nodes report it
  shrink group cpu by up to 8: workers that stay idle for 1m leave, down to minReplicas: 0 of 8 pods
The head: in-tree autoscaling is off.
  kubectl patch -n ml raycluster llm --type=merge -p \
    '{"spec":{"enableInTreeAutoscaling":true}}' \
    && kubectl delete pod
`

func TestManageShowsThePlanAndAsks(t *testing.T) {
	for _, c := range []struct {
		answer string
		goesOn bool
	}{{"y\n", true}, {"YES\n", true}, {"n\n", false}, {"\n", false}, {"", false}, {"managed\n", false}} {
		r := inShadow(t)
		out, err := asked(t, c.answer, "ml/llm")
		if !strings.HasPrefix(out, plannedInShadow) || !strings.Contains(out, "Let Heliostat scale ml/llm? [y/N] ") {
			t.Errorf("%q: prints\n%s", c.answer, out)
		}
		if (r.set == nodepool.Managed) != c.goesOn || (err == nil) != c.goesOn {
			t.Errorf("%q: the mode set is %q, %v", c.answer, r.set, err)
		}
	}
}

func TestManageWithoutATerminalWantsYes(t *testing.T) {
	r := inShadow(t)
	code, out, errOut := command(t, "y\n", "autoscaler", "manage", "ml/llm")
	if code != cli.ExitBadInput || r.set != "" || !strings.Contains(errOut, "use --yes") || !strings.HasPrefix(out, plannedInShadow) {
		t.Errorf("exit %d, set %q, %q:\n%s", code, r.set, errOut, out)
	}
	code, out, errOut = command(t, "", "autoscaler", "manage", "ml/llm", "--yes")
	if code != cli.ExitOK || r.set != nodepool.Managed || strings.Contains(out, "[y/N]") ||
		!strings.Contains(out, "ml/llm is annotated heliostat.dev/mode: managed: Heliostat scales it\n") {
		t.Errorf("exit %d, set %q, %q:\n%s", code, r.set, errOut, out)
	}
	if code, _, errOut = command(t, "", "autoscaler", "manage", "ml/other", "--yes"); code != cli.ExitFailed || !strings.Contains(errOut, "there is no RayCluster ml/other") {
		t.Errorf("exit %d %q", code, errOut)
	}
}

func TestManageSaysWhatTheAnnotationDoesNotOvercome(t *testing.T) {
	r := inShadow(t)
	r.view.OptIn.Obstacle = &planner.Reason{Code: "SidecarAlive", Message: "Ray's own autoscaler runs in head pod llm-head"}
	_, out, _ := command(t, "", "autoscaler", "manage", "ml/llm", "--yes")
	for _, want := range []string{"The annotation is not enough (SidecarAlive): Ray's own autoscaler runs in head pod llm-head\n",
		"ml/llm is annotated heliostat.dev/mode: managed: Heliostat does not scale it yet (SidecarAlive)\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("want in it %q:\n%s", want, out)
		}
	}
}

func TestManageOfWhatIsManagedOrOffOrUnreadSaysSo(t *testing.T) {
	r := newRemote(t)
	if out, err := asked(t, "", "ml/llm"); err != nil || !strings.Contains(out, "Heliostat scales it already.\n") || r.set != nodepool.Managed {
		t.Errorf("%v, set %q:\n%s", err, r.set, out)
	}
	r = inShadow(t)
	r.view.Mode, r.view.OptIn.Changes = nodepool.Off, nil
	if out, _ := asked(t, "n\n", "ml/llm"); !strings.Contains(out, "Ray's state is not read while the mode is off") {
		t.Errorf("off:\n%s", out)
	}
	r.view.Mode, r.view.Err = nodepool.Shadow, "the head does not answer"
	if out, _ := asked(t, "n\n", "ml/llm"); !strings.Contains(out, "It is unknown what Heliostat would do: the head does not answer.") {
		t.Errorf("unread:\n%s", out)
	}
}

func TestUnmanageWritesShadow(t *testing.T) {
	r := newRemote(t)
	code, out, errOut := command(t, "", "autoscaler", "unmanage", "llm", "-n", "ml")
	if code != cli.ExitOK || r.set != nodepool.Shadow || !strings.HasPrefix(out, "ml/llm is annotated heliostat.dev/mode: shadow: Heliostat plans for it and scales nothing\n") {
		t.Errorf("exit %d %s, set %q:\n%s", code, errOut, r.set, out)
	}
}

func TestStatusSaysWhatWaitsInShadowAndHowToAllowIt(t *testing.T) {
	r := inShadow(t)
	r.view.Kube.ScaledBy, r.view.Kube.Groups = "python-requests", []nodepool.WorkerGroup{{Name: "gpu", Replicas: 9, Max: 3, NumOfHosts: 2}}
	for args, want := range map[string]string{
		"status llm -n ml":          "ASKED is what python-requests wants, the last writer of the worker groups",
		"status llm --namespace ml": "gpu 1 2 6 0 2 1 0 0 0 would",
		"status -o wide":            "would launch for pending demand; see autoscaler status ml/llm",
		"status ml/llm": "demand waits for which Heliostat would launch 2 × gpu; to let Heliostat scale it: " +
			"`autoscaler manage ml/llm`",
	} {
		_, out, _ := command(t, "", append([]string{"autoscaler"}, strings.Fields(args)...)...)
		if text := strings.Join(strings.Fields(out), " "); !strings.Contains(text, want) {
			t.Errorf("%s:\n%s", args, out)
		}
	}
}

func TestStatusDoesNotSayThatDemandIsOnItsWayInShadow(t *testing.T) {
	inShadow(t).view.Plan.InfeasibleRequests = nil
	_, out, _ := command(t, "", "autoscaler", "status", "ml/llm")
	if !strings.Contains(out, printer.NothingUnmetIfScaled) || strings.Contains(out, "served or on its way") {
		t.Errorf("want %q:\n%s", printer.NothingUnmetIfScaled, out)
	}
}

func TestACapacityPolicyIsShown(t *testing.T) {
	r := newRemote(t)
	shown := func(want string, argv ...string) {
		t.Helper()
		code, out, errOut := command(t, "", append([]string{"autoscaler", "status", "ml/llm"}, argv...)...)
		if code != cli.ExitOK || !strings.Contains(out, want) {
			t.Errorf("%v: exit %d %s: want in it %q, got %q", argv, code, errOut, want, out)
		}
	}
	r.view.Kube.Policy = &capacity.Written{Policy: capacity.Policy{KeepWarm: []capacity.Warm{{Group: "gpu", Count: 2}}}, Source: "annotation"}
	r.view.Idle = "suspended in 5m"
	r.view.Plan.Warm = []planner.WarmPlan{{WarmEntry: planner.WarmEntry{Name: "keepWarm[0]"}, Reason: planner.Reason{Code: "warm", Message: "2 of 2 free"}}}
	r.view.WarmNodes = []capacity.NodesPlan{{Name: "keepWarmNodes[0]", Code: capacity.NodesWaiting, Message: "nodes for 1 of 1 workers"}}
	for _, want := range []string{"Capacity policy: annotation\n", `{"keepWarm":[{"group":"gpu","count":2}]}`, "  keepWarm[0]: warm: 2 of 2 free\n",
		"  keepWarmNodes[0]: nodes_waiting: nodes for 1 of 1 workers\n", "  suspended in 5m\n"} {
		shown(want)
	}
	shown(`"source": "annotation"`, "-o", "json")
}

func TestCostsAreShownInEachForm(t *testing.T) {
	newRemote(t)
	code, out, errs := command(t, "", "autoscaler", "costs", "-o", "json", "--by", "group")
	var costs apiv1.Costs
	if err := json.Unmarshal([]byte(out), &costs); code != cli.ExitOK || err != nil || len(costs.Items) != 2 || costs.Items[0].Group != "gpu" {
		t.Errorf("%d, %v: %s%s", code, err, out, errs)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-n", "other"}, cli.ExitOK, "nothing has been added up"},
		{[]string{"-o", "yaml"}, cli.ExitOK, "currency: USD"},
		{[]string{"-o", "xml"}, cli.ExitBadInput, `invalid argument "xml" for "-o, --output" flag: want table, wide, json or yaml`},
		{[]string{"--by", "day"}, cli.ExitBadInput, "cluster, group, owner or cause"},
	} {
		code, out, errs := command(t, "", append([]string{"autoscaler", "costs"}, c.args...)...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%v: %d: %s%s, want %q", c.args, code, out, errs, c.want)
		}
	}
}

func TestTheExampleOfPricesIsRead(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/costs.md")
	must(t, err)
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	file := filepath.Join(t.TempDir(), "pools.yaml")
	if err := os.WriteFile(file, []byte(example), 0o600); err != nil || !found {
		t.Fatal(err, found)
	}
	config, err := cli.ReadPools(file)
	if err != nil || config.Currency != "USD" || len(config.Pools) != 1 || len(config.SpotPrices) != 1 || len(config.InstancePrices) != 1 {
		t.Errorf("%v: %+v", err, config)
	}
}

// TestHelpSaysWhichNamespaceCounts: commands that list take no namespace from the kubeconfig.
func TestHelpSaysWhichNamespaceCounts(t *testing.T) {
	for name, want := range map[string]string{"costs": "(default: of all that you may list)",
		"explain": "(default: that of the kubeconfig's context, or default)"} {
		if _, out, _ := command(t, "", "autoscaler", name, "--help"); !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("%s: the help of --namespace lacks %q:\n%s", name, want, out)
		}
	}
}
