package decode

import (
	"strconv"
	"strings"
	"testing"
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
			if got := effectiveResources(group, true).String(); got != c.want {
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
	if got := effectiveResources(group, false).String(); got != "{A100 1, CPU 8, memory 34359738368}" {
		t.Errorf("got %s", got)
	}
	if len(report.All) != 1 || report.All[0].Code != ResourceUnknown ||
		report.All[0].Field != "rayStartParams.resources" || !strings.Contains(report.All[0].Why, "nvidia.com/gpu") {
		t.Errorf("got %v", report.All)
	}
}
