package nodeagent

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testRay is a pod at 127.1.2.9 in a cluster whose head is at 127.1.2.3. It records what it forwards.
func testRay(forwarded map[string]string) rayPod {
	return rayPod{
		ip:      "127.1.2.9",
		tempDir: "/tmp/hs1/7",
		find: func(_ context.Context, namespace, service string) (string, error) {
			if strings.HasSuffix(service, "-head-svc") && namespace != "" {
				return "127.1.2.3", nil
			}
			return "", errors.New("no Service " + namespace + "/" + service)
		},
		port: func(name string) (string, error) {
			return map[string]string{"metrics": "20001", "gcs": "20002"}[name], nil
		},
		forward: func(from, to string) error {
			forwarded[from] = to
			return nil
		},
	}
}

func TestRewriteArgs(t *testing.T) {
	const (
		added    = " --include-log-monitor=false --object-store-memory=80000000"
		own      = " --temp-dir=/tmp/hs1/7 --node-ip-address=127.1.2.9"
		noReport = " --disable-usage-stats"
	)
	for _, c := range []struct {
		name, args, want string
		forwarded        map[string]string
	}{
		{
			name: "a worker",
			args: "ulimit -n 65536; ray start  --address=c-head-svc.ns.svc.cluster.local:6379  --block  --dashboard-agent-listen-port=52365  --memory=1  --metrics-export-port=8080  --num-cpus=4  --num-gpus=1 ",
			want: "ulimit -n 65536; exec ray start" + noReport + added + own + "  --address=127.1.2.3:6379  --block  --dashboard-agent-listen-port=52365  --memory=1  --metrics-export-port=20001  --num-cpus=4  --num-gpus=1 ",
		},
		{
			name:      "a head on the port that KubeRay leaves out",
			args:      "ulimit -n 65536; ray start --head  --block  --dashboard-host=0.0.0.0  --metrics-export-port=8080  --num-cpus=0 ",
			want:      "ulimit -n 65536; exec ray start" + noReport + added + " --port=20002" + own + " --head  --block  --dashboard-host=127.1.2.9  --metrics-export-port=20001  --num-cpus=0 ",
			forwarded: map[string]string{"6379": "20002"},
		},
		{
			name:      "a head on a port of the user's",
			args:      "ray start --head --port=6399 --dashboard-host=0.0.0.0 --metrics-export-port=8080",
			want:      "exec ray start" + noReport + added + own + " --head --port=20002 --dashboard-host=127.1.2.9 --metrics-export-port=20001",
			forwarded: map[string]string{"6399": "20002"},
		},
		{
			name: "what the user set is kept where it may be",
			args: "ray start --disable-usage-stats --object-store-memory 200000000 --include-log-monitor=true --block",
			want: "exec ray start" + own + " --metrics-export-port=20001 --disable-usage-stats --object-store-memory 200000000 --include-log-monitor=true --block",
		},
		{
			name: "a command that goes on is not replaced by exec",
			args: "ray start --block --resources='{\"a;b\": 1}' && echo done",
			want: "ray start" + noReport + added + own + " --metrics-export-port=20001 --block --resources='{\"a;b\": 1}' && echo done",
		},
		{
			name: "a separator inside quotes does not end the command",
			args: `ray start --block --labels="x=\"a;b\""`,
			want: `exec ray start` + noReport + added + own + ` --metrics-export-port=20001 --block --labels="x=\"a;b\""`,
		},
		{
			name: "the autoscaler beside the head is told where the GCS is",
			args: "ray kuberay-autoscaler --cluster-name c --cluster-namespace ns",
			want: "ray kuberay-autoscaler --gcs-address=127.1.2.9:6379 --cluster-name c --cluster-namespace ns",
		},
		{
			name: "wait-gcs-ready finds the head",
			args: "if ray health-check --address c-head-svc.ns.svc.cluster.local:6379; then break; fi",
			want: "if ray health-check --address 127.1.2.3:6379; then break; fi",
		},
		{
			name: "what is not Ray's stays",
			args: "echo ray starts; sleep 1",
			want: "echo ray starts; sleep 1",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			forwarded := map[string]string{}
			got, err := testRay(forwarded).rewriteArgs(t.Context(), []string{"/bin/bash", "-c", "--", c.args})
			if err != nil {
				t.Fatal(err)
			}
			// Extra blanks of KubeRay's own formatting carry no meaning.
			if diff := cmp.Diff([]string{"/bin/bash", "-c", "--", squeeze(c.want)}, squeezeAll(got)); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			if c.forwarded == nil {
				c.forwarded = map[string]string{}
			}
			if diff := cmp.Diff(c.forwarded, forwarded); diff != "" {
				t.Errorf("forwarded ports (-want +got):\n%s", diff)
			}
		})
	}
}

var blanks = regexp.MustCompile(` +`)

func squeeze(s string) string { return blanks.ReplaceAllString(s, " ") }

func squeezeAll(words []string) []string {
	squeezed := make([]string, len(words))
	for i, word := range words {
		squeezed[i] = squeeze(word)
	}
	return squeezed
}

func TestRewriteArgsWaitsForTheService(t *testing.T) {
	_, err := testRay(nil).rewriteArgs(t.Context(), []string{"--address=db.ns.svc:5432"})
	if err == nil || !strings.Contains(err.Error(), "no Service ns/db") {
		t.Errorf("rewriteArgs = %v; want the Service that has no address", err)
	}
}

// kuberayArgs are the argument strings that KubeRay v1.6.2 made for one worker group (or head) per name.
func kuberayArgs(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("testdata/kuberay-args.json")
	if err != nil {
		t.Fatal(err)
	}
	args := map[string]string{}
	if err := json.Unmarshal(data, &args); err != nil {
		t.Fatal(err)
	}
	return args
}

// The judge is bash: it splits both command lines, and everything but the documented changes must be equal.
func TestRewriteKeepsAllOtherWordsOfEveryKubeRayCommand(t *testing.T) {
	for name, args := range kuberayArgs(t) {
		if !strings.Contains(args, "ray start") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			rewritten, err := testRay(map[string]string{}).rewriteArgs(t.Context(), []string{args})
			if err != nil {
				t.Fatal(err)
			}
			want, got := shellWords(t, args), shellWords(t, rewritten[0])
			defaults := map[string]string{
				"--object-store-memory": "80000000", "--include-log-monitor": "false", "--disable-usage-stats": "",
			}
			maps.Copy(defaults, want)
			want = defaults
			want["--node-ip-address"], want["--temp-dir"] = "127.1.2.9", "/tmp/hs1/7"
			want["--metrics-export-port"] = "20001"
			if _, head := want["--head"]; head {
				want["--port"], want["--dashboard-host"] = "20002", "127.1.2.9"
			}
			if strings.Contains(want["--address"], "-head-svc.") {
				_, port, _ := strings.Cut(want["--address"], ":")
				want["--address"] = "127.1.2.3:" + port
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("words (-want +got):\n%s", diff)
			}
			if !strings.Contains(rewritten[0], "exec ray start") {
				t.Errorf("no exec before the last command: %s", rewritten[0])
			}
		})
	}
}

// shellWords returns the words after `ray start` as bash sees them: flag to value, other words to "".
func shellWords(t *testing.T, command string) map[string]string {
	t.Helper()
	script := `ulimit() { :; }; exec() { "$@"; }; ray() { shift; printf '%s\n' "$@"; }; RAY_ADDRESS=; ` + command
	output, err := exec.Command("bash", "-c", script).Output()
	if err != nil {
		t.Fatalf("bash cannot read %s: %v", command, err)
	}
	words := map[string]string{}
	for _, word := range strings.Split(strings.TrimSuffix(string(output), "\n"), "\n") {
		flag, value, _ := strings.Cut(word, "=")
		words[flag] = value
	}
	return words
}

func TestRewriteEnv(t *testing.T) {
	for _, c := range []struct {
		name      string
		env, want environment
	}{
		{
			"a worker's variables lead to the head",
			environment{"FQ_RAY_IP": "c-head-svc.ns.svc.cluster.local", "RAY_IP": "c-head-svc", "RAY_ADDRESS": "c-head-svc.ns.svc.cluster.local:6379"},
			environment{"FQ_RAY_IP": "127.1.2.3", "RAY_IP": "127.1.2.3", "RAY_ADDRESS": "127.1.2.3:6379", "RAY_USAGE_STATS_ENABLED": "0", "RAY_prestart_worker_first_driver": "0"},
		},
		{
			"a head's own address is the pod's",
			environment{"RAY_ADDRESS": "127.0.0.1:6379", "RAY_USAGE_STATS_ENABLED": "1", "RAY_prestart_worker_first_driver": "1"},
			environment{"RAY_ADDRESS": "127.1.2.9:6379", "RAY_USAGE_STATS_ENABLED": "1", "RAY_prestart_worker_first_driver": "1"},
		},
		{
			"an empty node id is taken away, since it would kill the GCS",
			environment{"RAY_OVERRIDE_NODE_ID_FOR_TESTING": ""},
			environment{"RAY_USAGE_STATS_ENABLED": "0", "RAY_prestart_worker_first_driver": "0"},
		},
		{
			"a container that is not Ray's gets Services only",
			environment{"DB": "x-head-svc.ns.svc:1"},
			environment{"DB": "127.1.2.3:1"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := testRay(map[string]string{}).rewriteEnv(t.Context(), c.env); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, c.env); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRewriteEnvRewritesTheGeneratedCommand(t *testing.T) {
	env := environment{"RAY_PORT": "6379", "KUBERAY_GEN_RAY_START_CMD": "ray start --address=c-head-svc.ns.svc:6379 --block"}
	if err := testRay(nil).rewriteEnv(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	words := shellWords(t, env["KUBERAY_GEN_RAY_START_CMD"])
	if words["--address"] != "127.1.2.3:6379" || words["--node-ip-address"] != "127.1.2.9" {
		t.Errorf("generated command leads elsewhere: %v", words)
	}
}
