package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/rig"
)

// cannotBeTyped lists the text that marks commands with a requirement that the test does not meet, each with that
// requirement.
var cannotBeTyped = map[string]string{
	"helm ":            "Helm, whose part test/chart plays",
	"-n heliostat":     "the chart's Deployment as pods that have logs",
	"deploy/kustomize": "an image in a registry; test/chart applies them",
	"heliostat.yaml":   "an image in a registry; test/chart applies it",
	"port-forward":     "a kubelet",
	"kubectl top":      "a metrics server",
	" logs ":           "a kubelet",
	"make ":            "what Makefile itself runs",
	"go tool pprof":    "a graphical end",
	"--token-file":     "the way through the API server's proxy, which test/access goes",
	"jq ":              "jq",
	"/history/":        "a decision of another day",
	"--as":             "the chart's account",
	"delete pod":       "a second head; test/e2e lets heads die",
	"dry-run=server":   "nothing, but it is a patch that is to fail where replicas are bounded",
	"govulncheck":      "the network",
	"-f deploy/":       "the reader's own folder of manifests",
}

// anyBlock matches a fenced block of any kind, indented or not.
var anyBlock = regexp.MustCompile("(?ms)^( *)```([a-z]*)\n(.*?)^ *```$")

// asked matches the start of a line that is a command. A block without such a line is not a block of commands.
var asked = regexp.MustCompile(`(?m)^ *(kubectl|autoscaler|curl|api|[a-z]+=)\b`)

// typed returns the blocks on a page that can be typed: those of kind sh and those without a kind.
func typed(page string) (blocks []string) {
	for _, found := range anyBlock.FindAllStringSubmatch(page, -1) {
		if found[2] != "" && found[2] != "sh" {
			continue
		}
		text := regexp.MustCompile("(?m)^"+found[1]).ReplaceAllString(found[3], "")
		can := asked.MatchString(text)
		for sign := range cannotBeTyped {
			can = can && !strings.Contains(text, sign)
		}
		if can {
			blocks = append(blocks, text)
		}
	}
	return blocks
}

// manifestOf returns the first YAML block on a page that is a manifest of the given kind.
func manifestOf(page, kind string) string {
	for _, found := range block.FindAllStringSubmatch(page, -1) {
		if found[1] == "yaml" && strings.Contains(found[2], "\nkind: "+kind+"\n") {
			return found[2]
		}
	}
	return ""
}

// TestCommandsOfThePagesCanBeTyped runs the commands that the pages give for a RayCluster ml/llm. The RayCluster is
// real and can serve what they request.
func TestCommandsOfThePagesCanBeTyped(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	lab := newLab(t, ctx)
	heliostat, err := lab.Serve(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { heliostat.Stop(context.Background()) })
	env := append(os.Environ(), "HELIOSTAT_SERVER="+heliostat.URL, "KUBECONFIG="+lab.Cluster.Kubeconfig(), "PATH="+programs(t, lab.Program)+":"+os.Getenv("PATH"))
	ours := strings.NewReplacer("http://127.0.0.1:8090", heliostat.URL, "http://localhost:8090", heliostat.URL, "NAMESPACE", "ml", "NAME", "llm", "GROUP", "a100")
	count := 0
	for _, name := range []string{"reference/reasons.md", "reference/requests.md", "howto/requests.md", "reference/rest.md", "operations.md",
		"runbooks/RayClusterNotRead.md", "runbooks/RayDemandCapped.md", "runbooks/RayDemandImpossible.md", "runbooks/RayGPUsIdle.md", "runbooks/RayGroupCoolingDown.md",
		"runbooks/RayNumGPUsMismatch.md", "runbooks/RayReplicasReverted.md", "runbooks/RayScaleUpSlow.md", "runbooks/RayWorkersDoNotJoin.md", "runbooks/HeliostatReactsSlowly.md", "runbooks/HeliostatPatchesFail.md",
		"runbooks/HeliostatCyclesFail.md", "runbooks/HeliostatPlannerSlow.md"} {
		page, err := os.ReadFile(filepath.Join("../../docs", name))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if manifest := manifestOf(string(page), "ResourceRequest"); manifest != "" {
			if err := os.WriteFile(filepath.Join(dir, "train-7.yaml"), []byte(manifest), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := terminal(t, dir, env)
		if _, err := s.run(ctx, prelude(heliostat.URL)); err != nil {
			t.Fatal(err)
		}
		for _, commands := range typed(string(page)) {
			count++
			printed, err := s.run(ctx, ours.Replace(commands))
			t.Logf("%s:\n%s%s", name, commands, printed)
			if err != nil {
				t.Errorf("%s: %v in\n%sprinted\n%s", name, err, commands, printed)
				break
			}
		}
	}
	if count < 25 {
		t.Errorf("only %d blocks were typed", count)
	}
}

// prelude returns a script that makes curl fail if the server returns an error, and defines the function that readers
// define in docs/runbooks/README.md.
func prelude(url string) string {
	return `curl() { command curl --fail-with-body "$@"; }
api() { curl -s "` + url + `/v1/namespaces/ml/rayclusters/llm/$1"; }
`
}

// newLab starts a dev cluster with the RayCluster ml/llm.
func newLab(t *testing.T, ctx context.Context) *rig.Rig {
	t.Helper()
	rig.Quiet()
	lab, err := rig.Start(ctx, rig.Options{Out: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := lab.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	llm := rig.Cluster{Namespace: "ml", Name: "llm", IdleSeconds: 5, Groups: []rig.Group{
		{Name: "a100", Max: 8, CPU: "8", Devices: map[string]int64{"nvidia.com/gpu": 1}, Labels: map[string]string{"zone": "us-1"}},
	}}
	for _, step := range []func() error{
		func() error { return rig.InstallCRDs(ctx, lab.Dynamic) },
		func() error { return lab.Create(ctx, llm.Manifest()) },
		func() error { return lab.HeadAlive(ctx, "ml", "llm") },
		func() error {
			driver := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "driver"}}
			_, err := lab.Kube.CoreV1().ServiceAccounts("ml").Create(ctx, driver, metav1.CreateOptions{})
			return err
		},
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return lab
}

// programs returns a directory with the programs that the pages call.
func programs(t *testing.T, autoscaler string) string {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "run", "./cmd/devcluster", "build", "kubectl")
	build.Dir, build.Stderr = "../devcluster", os.Stderr
	out, err := build.Output()
	fields := strings.Fields(string(out))
	if err != nil || len(fields) != 2 {
		t.Fatalf("building kubectl: %v: %s", err, out)
	}
	dir := t.TempDir()
	for name, path := range map[string]string{"kubectl": fields[1], "autoscaler": autoscaler} {
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(fmt.Errorf("putting %s into the PATH: %w", name, err))
		}
	}
	return dir
}
