package decode

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// The group has limits of 8 CPUs and 2 GPUs, and the variables NUM_GPUS=1 and, from a ConfigMap, SECRET.
func TestAnOwnCommandStartsRayAsTheShellReadsIt(t *testing.T) {
	const (
		quoted  = `"resources": "'{\"rec1\": 1, \"rec2\": 10}'"`
		limits  = "{CPU 8, GPU 2, memory 34359738368}"
		detects = "{CPU 8, GPU 2}"
		custom  = "{CPU 8, GPU 2, memory 34359738368, rec1 1, rec2 10}"
	)
	for name, c := range map[string]struct{ script, params, want, code string }{
		"the shell keeps quotes in the value of a variable": {`ulimit -n 65536; $KUBERAY_GEN_RAY_START_CMD`, quoted, "{}", RayStartFails},
		"eval removes the quotes":                           {`ulimit -n 65536; eval "$KUBERAY_GEN_RAY_START_CMD"`, quoted, custom, ""},
		"an inner shell removes the quotes":                 {`exec /bin/bash -c "$KUBERAY_GEN_RAY_START_CMD"`, quoted, custom, ""},
		"Kubernetes expands before the shell":               {`$(KUBERAY_GEN_RAY_START_CMD)`, quoted, custom, ""},
		"a text in echo starts nothing":                     {`echo 'before ray start'; $KUBERAY_GEN_RAY_START_CMD`, "", limits, ""},
		"a comment starts nothing":                          {"# ray start --num-gpus=7\n$KUBERAY_GEN_RAY_START_CMD", "", limits, ""},
		"a printed command starts nothing":                  {"echo ray start --num-gpus=7; ray start --num-gpus=2", "", detects, ""},
		"redirections and comments are no arguments":        {"ray start --num-gpus=2 --block > /tmp/log 2>&1 # all", "", detects, ""},
		"an inner script starts Ray":                        {`timeout 60 bash -c 'sleep 1; ray start --num-gpus=1'`, "", "{CPU 8, GPU 1}", ""},
		"a known variable has its value":                    {"ray start --num-gpus $NUM_GPUS", "", "{CPU 8, GPU 1}", ""},
		"a variable that the script sets is unknown":        {"NUM_GPUS=7; ray start --num-gpus=$NUM_GPUS", "", limits, StartCommandUnknown},
		"an unknown value behind a blank":                   {"ray start --address $X:6379 --num-gpus $SECRET", "", limits, StartCommandUnknown},
		"an unknown value behind =":                         {"ray start --num-gpus=${SECRET:-1}", "", limits, StartCommandUnknown},
		"unknown arguments":                                 {"ray start $RAY_ARGS", "", limits, StartCommandUnknown},
		"an unknown address sets no resource":               {"ray start --address=$X --num-gpus=2 --block", "", detects, ""},
		"a script of the image starts by rayStartParams":    {"exec /opt/start-ray.sh", `"num-gpus": "1"`, "{CPU 8, GPU 1, memory 34359738368}", StartCommandUnknown},
		"a branch for the head": {
			"if [ $ROLE = head ]; then\n ray start --head --num-gpus=0\nelse\n ray start --num-gpus=2\nfi", "", limits, StartCommandUnknown,
		},
		"two equal starts are one":      {"ray start --num-gpus=2 || ray start --num-gpus=2", "", detects, ""},
		"Ray detects what no flag sets": {"ray start --block", "", detects, ""},
	} {
		t.Run(name, func(t *testing.T) {
			report := &Report{}
			group := FieldsOf(objectOf(t, `{"rayStartParams": {`+c.params+`}, "template": {"spec": {"containers": [{
				"command": ["/bin/bash", "-lc", "--"], "args": [`+strconv.Quote(c.script)+`],
				"env": [{"name": "NUM_GPUS", "value": "1"}, {"name": "SECRET", "valueFrom": {}}],
				"resources": {"limits": {"cpu": 8, "memory": "32Gi", "nvidia.com/gpu": 2}}}]}}}`), report)
			if got := effectiveResources(startOf(group, podOf(group.Object("template")), true)).String(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			for _, code := range []string{RayStartFails, StartCommandUnknown} {
				if has := strings.Contains(strings.Join(codes(report.All), " "), code); has != (code == c.code) {
					t.Errorf("findings %v, want %q", report.All, c.code)
				}
			}
		})
	}
}

func TestAGPULimitThatTheOperatorDropsIsReportedAtTheStringThatItCannotParse(t *testing.T) {
	report := &Report{}
	group := FieldsOf(objectOf(t, `{"rayStartParams": {"resources": "\"{\\\"A100\\\": 1}\""}, "template": {"spec": {
		"containers": [{"resources": {"limits": {"cpu": 8, "memory": "32Gi", "nvidia.com/gpu": 1}}}]}}}`), report)
	if got := effectiveResources(startOf(group, podOf(group.Object("template")), false)).String(); got != "{A100 1, CPU 8, memory 34359738368}" {
		t.Errorf("got %s", got)
	}
	if len(report.All) != 1 || report.All[0].Code != ResourceUnknown ||
		report.All[0].Field != "rayStartParams.resources" || !strings.Contains(report.All[0].Why, "nvidia.com/gpu") {
		t.Errorf("got %v", report.All)
	}
}

func TestVariablesThatAreNotReadAreReported(t *testing.T) {
	limits := raydemand.Bundle{"CPU": raydemand.Whole(2), "GPU": raydemand.One, "memory": raydemand.Whole(1 << 30)}
	for _, c := range []struct {
		name, container string
		want            raydemand.Bundle
		reported        string // severity and what was seen
		fixed           bool
	}{
		{"none", ``, limits, "", false},
		{"a ConfigMap that may have it", `envFrom: [{configMapRef: {name: ray-env}}]`, limits, "info ConfigMap ray-env", false},
		{"a Secret that may have it", `envFrom: [{prefix: APP_, configMapRef: {name: app}}, {prefix: RAY_, secretRef: {name: keys}}]`, limits, "info Secret keys", false},
		{"a prefix that it has not", `envFrom: [{prefix: APP_, secretRef: {name: keys}}]`, limits, "", false},
		{"env wins", `env: [{name: RAY_OVERRIDE_RESOURCES, value: ""}], envFrom: [{configMapRef: {name: ray-env}}]`, limits, "", false},
		{"it comes from elsewhere", `env: [{name: RAY_OVERRIDE_RESOURCES, valueFrom: {configMapKeyRef: {name: c, key: k}}}]`, raydemand.Bundle{},
			"warning RAY_OVERRIDE_RESOURCES by valueFrom", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.container != "" {
				c.container += ", "
			}
			cluster := joined(&unstructured.Unstructured{Object: objectOf(t, `
spec: {headGroupSpec: {template: {spec: {containers: [{name: ray}]}}}, workerGroupSpecs: [{groupName: gpu, maxReplicas: 5, template: {spec: {containers: [
  {`+c.container+`name: ray, resources: {limits: {cpu: 2, memory: 1Gi, nvidia.com/gpu: 1}}}]}}}]}`)}, nil)
			if got := cluster.Groups[0]; !got.Resources.Equal(c.want) || (got.GPUs.Fixed != "") != c.fixed {
				t.Errorf("announces %v, fixed by %q; want %v, fixed: %t", got.Resources, got.GPUs.Fixed, c.want, c.fixed)
			}
			if got := environmentReported(cluster); got != c.reported {
				t.Errorf("reported %q, want %q", got, c.reported)
			}
		})
	}
}

// environmentReported lists the findings about variables.
func environmentReported(cluster nodepool.Cluster) (reported string) {
	for _, f := range cluster.Findings {
		if f.Code == EnvironmentUnknown {
			if reported != "" {
				reported += ", "
			}
			reported += string(f.Severity) + " " + f.Seen
		}
	}
	return reported
}

// Keys that the operator takes for the same flag reach `ray start` in the order of a Go map.
func TestOfKeysForOneFlagTheSmallestIsPlanned(t *testing.T) {
	tests := []struct {
		name      string
		resources map[string]any
		want      raydemand.Bundle
		seen      string
	}{
		{"two for GPUs", map[string]any{"GPU": "1", "MyGPU": "4"}, raydemand.Bundle{raydemand.GPU: raydemand.One}, "GPU: 1, MyGPU: 4"},
		{"the last one is the smallest", map[string]any{"GPU": "4", "MyGPU": "1"}, raydemand.Bundle{raydemand.GPU: raydemand.One}, "GPU: 4, MyGPU: 1"},
		{"three, in any case", map[string]any{"gpu": "2", "nvidia.com/gpu": "8", "SharedGPU": "3"}, raydemand.Bundle{raydemand.GPU: raydemand.Whole(2)}, "SharedGPU: 3, gpu: 2, nvidia.com/gpu: 8"},
		{"a MIG profile", map[string]any{"GPU": "2", "nvidia.com/mig-1g.5gb": "7"}, raydemand.Bundle{raydemand.GPU: raydemand.Whole(2)}, "GPU: 2, nvidia.com/mig-1g.5gb: 7"},
		{"none of one", map[string]any{"GPU": "0", "MyGPU": "4"}, raydemand.Bundle{raydemand.GPU: 0}, "GPU: 0, MyGPU: 4"},
		{"for CPUs", map[string]any{"CPU": "8", "cpu": "4"}, raydemand.Bundle{raydemand.CPU: raydemand.Whole(4)}, "CPU: 8, cpu: 4"},
		{"for memory", map[string]any{"Memory": "8Gi", "memory": "4Gi"}, raydemand.Bundle{raydemand.Memory: raydemand.Whole(4 << 30)}, "Memory: 8Gi, memory: 4Gi"},
		{"of one number", map[string]any{"GPU": "1", "MyGPU": "1"}, raydemand.Bundle{raydemand.GPU: raydemand.One}, ""},
		{"one is no quantity", map[string]any{"GPU": "one", "MyGPU": "4"}, raydemand.Bundle{raydemand.GPU: raydemand.Whole(4)}, ""},
		{"another resource", map[string]any{"GPU": "1", "gpu_type_a": "4"}, raydemand.Bundle{raydemand.GPU: raydemand.One}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cluster := clusterOf(t, test.resources)
			group := cluster.Groups[0]
			for name, want := range test.want {
				if got := group.Resources[name]; got != want {
					t.Errorf("%s is %s, want %s", name, got, want)
				}
			}
			seen := ""
			for _, f := range cluster.Findings {
				if f.Code == ResourceKeysDiffer {
					seen = f.Seen
					if f.Field != "spec.workerGroupSpecs[0].resources" || f.Severity != raydemand.Warning || !strings.Contains(f.Fix, "keep one of them") {
						t.Errorf("%+v", f)
					}
				}
			}
			if seen != test.seen {
				t.Errorf("reported %q, want %q", seen, test.seen)
			}
			if _, gpus := test.want[raydemand.GPU]; !gpus || test.seen == "" {
				return
			}
			if group.GPUs.Declared == nil || *group.GPUs.Declared != test.want[raydemand.GPU] || *group.GPUs.Derived != test.want[raydemand.GPU] {
				t.Errorf("declared %v, derived %v", group.GPUs.Declared, group.GPUs.Derived)
			}
			if refusal := cluster.SyncRefusal(&group); refusal == nil || refusal.Code != nodepool.SyncFixed || !strings.Contains(refusal.Why, " and ") {
				t.Errorf("the number could be written: %v", refusal)
			}
		})
	}
}

// clusterOf returns a RayCluster whose one group has this field resources.
func clusterOf(t *testing.T, resources map[string]any) nodepool.Cluster {
	t.Helper()
	container := map[string]any{"name": "ray", "image": "rayproject/ray", "resources": map[string]any{"limits": map[string]any{"cpu": "4", "memory": "8Gi"}}}
	template := map[string]any{"spec": map[string]any{"containers": []any{container}}}
	group := map[string]any{"groupName": "w", "rayStartParams": map[string]any{}, "resources": maps.Clone(resources), "template": template}
	return joined(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": map[string]any{"name": "r", "namespace": "d"},
		"spec": map[string]any{"headGroupSpec": map[string]any{"rayStartParams": map[string]any{}, "template": template}, "workerGroupSpecs": []any{group}},
	}}, nil)
}

// The operator passes rayStartParams to a shell, in args, in which Kubernetes expands $(NAME).
func TestVariablesInRayStartParamsHaveTheirValues(t *testing.T) {
	for params, want := range map[string]struct{ resources, code string }{
		`"num-gpus": "$NUM_GPUS"`:                      {"{CPU 8, GPU 1, memory 34359738368}", ""},
		`"num-gpus": "${NUM_GPUS}"`:                    {"{CPU 8, GPU 1, memory 34359738368}", ""},
		`"num-cpus": "$(NUM_GPUS)"`:                    {"{CPU 1, GPU 2, memory 34359738368}", ""},
		`"num-gpus": "$SECRET"`:                        {"{CPU 8, GPU 2, memory 34359738368}", StartCommandUnknown},
		`"num-gpus": "$ABSENT"`:                        {"{}", RayStartFails},
		`"node-ip-address": "$SECRET", "x": "$ABSENT"`: {"{CPU 8, GPU 2, memory 34359738368}", ""},
	} {
		report := &Report{}
		group := FieldsOf(objectOf(t, `{"rayStartParams": {`+params+`}, "template": {"spec": {"containers": [{
			"env": [{"name": "NUM_GPUS", "value": "1"}, {"name": "SECRET", "valueFrom": {}}],
			"resources": {"limits": {"cpu": 8, "memory": "32Gi", "nvidia.com/gpu": 2}}}]}}}`), report)
		got := effectiveResources(startOf(group, podOf(group.Object("template")), false)).String()
		if code := strings.Join(codes(report.All), " "); got != want.resources || code != want.code {
			t.Errorf("%s: %s %q, want %s %q; %v", params, got, code, want.resources, want.code, report.All)
		}
	}
}

// TestAHostileScriptIsReadAtOnce reads scripts whose expansion has no end, or that bash alone can run.
func TestAHostileScriptIsReadAtOnce(t *testing.T) {
	itself := map[string]string{"A": `bash -c "$A $A"`, "B": "2"}
	for script, want := range map[string]string{
		"ray start <(x) >(y) --num-gpus=$B":                  "[[{<(x) true} {>(y) true} {--num-gpus=2 false}]]",
		"ray start --x={1..100000}{1..100000}":               "[[{--x={1..100000}{1..100000} false}]]",
		"ray start " + strings.Repeat("{a,b}", 10):           "[[{" + strings.Repeat("{a,b}", 10) + " false}]]",
		"ray start ${B:-1} ${B%2} $((B*2)) $(x) '{\"B\":1}'": "[[{${B:-1} true} {${B%2} true} {$((B*2)) true} {$(x) true} {{\"B\":1} false}]]",
		strings.Repeat("$(", 100_000):                        "[]",
		strings.Repeat("$(", mostParentheses):                "[]",
		strings.Repeat("(", mostParentheses):                 "[]",
		`bash -c "$A"`:                                       "[]",
	} {
		if got := fmt.Sprint(startsIn(script, itself, mostNested)); got != want {
			t.Errorf("%.60s: %s, want %s", script, got, want)
		}
	}
}
