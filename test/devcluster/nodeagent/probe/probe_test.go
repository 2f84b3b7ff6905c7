package probe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHealthGetsReadsKubeRaysProbes(t *testing.T) {
	const wget = "wget --tries 1 -T 2 -q -O- http://localhost:52365/api/local_raylet_healthz | grep success"
	const python = `python -c "import urllib.request; r=urllib.request.urlopen('http://localhost:8265/api/gcs_healthz', timeout=5); exit(0 if b'success' in r.read() else 1)"`
	for _, c := range []struct {
		name    string
		command []string
		want    []string
	}{
		{"a worker's", []string{"bash", "-c", wget}, []string{"52365/api/local_raylet_healthz"}},
		{"a head's", []string{"bash", "-c", wget + " && " + python}, []string{"52365/api/local_raylet_healthz", "8265/api/gcs_healthz"}},
		{"another command", []string{"bash", "-c", wget + " && test -e /tmp/x"}, nil},
		{"not a command of a shell", []string{"cat", "/tmp/healthy"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := healthGets(c.command)
			if ok != (c.want != nil) {
				t.Fatalf("healthGets recognized the command: %v", ok)
			}
			if diff := cmp.Diff(c.want, got); ok && diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStreakDecidesAtItsThresholds(t *testing.T) {
	row := streak{success: 2, failure: 3}
	var verdicts []bool
	for _, ok := range []bool{true, true, true, false, false, true, false, false, false, true, true} {
		if verdict, decided := row.add(ok); decided {
			verdicts = append(verdicts, verdict)
		}
	}
	if diff := cmp.Diff([]bool{true, false, true}, verdicts); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}
