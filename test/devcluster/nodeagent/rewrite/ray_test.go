package rewrite

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

// testRay is a Rewriter for a pod at 127.1.2.9 in a cluster with its head at 127.1.2.3. It records forwarded ports.
func testRay(forwarded map[string]string) Rewriter {
	return Rewriter{
		IP:         "127.1.2.9",
		TempDir:    "/tmp/hs1/7",
		LogMonitor: true,
		Find: func(_ context.Context, namespace, service string) (string, error) {
			if strings.HasSuffix(service, "-head-svc") && namespace != "" {
				return "127.1.2.3", nil
			}
			return "", errors.New("no Service " + namespace + "/" + service)
		},
		Port: func(name string) (string, error) {
			return map[string]string{"metrics": "20001", "gcs": "20002"}[name], nil
		},
		Forward: func(from, to string) error {
			forwarded[from] = to
			return nil
		},
	}
}

func TestArgs(t *testing.T) {
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
			name: "flags of the user stay where they can",
			args: "ray start --disable-usage-stats --object-store-memory 200000000 --include-log-monitor=true --block",
			want: "exec ray start" + own + " --metrics-export-port=20001 --disable-usage-stats --object-store-memory 200000000 --include-log-monitor=true --block",
		},
		{
			name: "a command before another one gets no exec",
			args: "ray start --block --resources='{\"a;b\": 1}' && echo done",
			want: "ray start" + noReport + added + own + " --metrics-export-port=20001 --block --resources='{\"a;b\": 1}' && echo done",
		},
		{
			name: "a separator inside quotes does not end the command",
			args: `ray start --block --labels="x=\"a;b\""`,
			want: `exec ray start` + noReport + added + own + ` --metrics-export-port=20001 --block --labels="x=\"a;b\""`,
		},
		{
			name: "the autoscaler beside the head gets the address of the GCS",
			args: "ray kuberay-autoscaler --cluster-name c --cluster-namespace ns",
			want: "ray kuberay-autoscaler --gcs-address=127.1.2.9:6379 --cluster-name c --cluster-namespace ns",
		},
		{
			name: "wait-gcs-ready finds the head",
			args: "if ray health-check --address c-head-svc.ns.svc.cluster.local:6379; then break; fi",
			want: "if ray health-check --address 127.1.2.3:6379; then break; fi",
		},
		{
			name: "other commands stay",
			args: "echo ray starts; sleep 1",
			want: "echo ray starts; sleep 1",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			forwarded := map[string]string{}
			got, err := testRay(forwarded).Args(t.Context(), []string{"/bin/bash", "-c", "--", c.args})
			if err != nil {
				t.Fatal(err)
			}
			// KubeRay's extra blanks have no meaning.
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

func TestArgsNeedTheAddressOfTheService(t *testing.T) {
	_, err := testRay(nil).Args(t.Context(), []string{"--address=db.ns.svc:5432"})
	if err == nil || !strings.Contains(err.Error(), "no Service ns/db") {
		t.Errorf("Args = %v; want an error that names the Service", err)
	}
}

// kuberayArgs are argument strings that KubeRay v1.6.2 wrote, by the name of a worker group or head.
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

// Bash splits both command lines. All words except the documented changes must be equal.
func TestArgsKeepAllOtherWordsOfEveryKubeRayCommand(t *testing.T) {
	for name, args := range kuberayArgs(t) {
		if !strings.Contains(args, "ray start") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			rewritten, err := testRay(map[string]string{}).Args(t.Context(), []string{args})
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

// shellWords returns the words after `ray start` as bash splits them. Words that are no flags map to "".
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

func TestEnv(t *testing.T) {
	for _, c := range []struct {
		name      string
		env, want map[string]string
	}{
		{
			"a worker's variables have the address of the head",
			map[string]string{"FQ_RAY_IP": "c-head-svc.ns.svc.cluster.local", "RAY_IP": "c-head-svc", "RAY_ADDRESS": "c-head-svc.ns.svc.cluster.local:6379"},
			map[string]string{"FQ_RAY_IP": "127.1.2.3", "RAY_IP": "127.1.2.3", "RAY_ADDRESS": "127.1.2.3:6379", "RAY_USAGE_STATS_ENABLED": "0", "RAY_prestart_worker_first_driver": "0"},
		},
		{
			"a head gets the address of its pod",
			map[string]string{"RAY_ADDRESS": "127.0.0.1:6379", "RAY_USAGE_STATS_ENABLED": "1", "RAY_prestart_worker_first_driver": "1"},
			map[string]string{"RAY_ADDRESS": "127.1.2.9:6379", "RAY_USAGE_STATS_ENABLED": "1", "RAY_prestart_worker_first_driver": "1"},
		},
		{
			"an empty node ID is removed, because it would crash the GCS",
			map[string]string{"RAY_OVERRIDE_NODE_ID_FOR_TESTING": ""},
			map[string]string{"RAY_USAGE_STATS_ENABLED": "0", "RAY_prestart_worker_first_driver": "0"},
		},
		{
			"in other containers only Services change",
			map[string]string{"DB": "x-head-svc.ns.svc:1"},
			map[string]string{"DB": "127.1.2.3:1"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := testRay(map[string]string{}).Env(t.Context(), c.env); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, c.env); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnvRewritesTheGeneratedCommand(t *testing.T) {
	env := map[string]string{"RAY_PORT": "6379", "KUBERAY_GEN_RAY_START_CMD": "ray start --address=c-head-svc.ns.svc:6379 --block"}
	if err := testRay(nil).Env(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	words := shellWords(t, env["KUBERAY_GEN_RAY_START_CMD"])
	if words["--address"] != "127.1.2.3:6379" || words["--node-ip-address"] != "127.1.2.9" {
		t.Errorf("generated command has the words %v", words)
	}
}
