package kit

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEveryPartIsPinned(t *testing.T) {
	b, err := newBuilder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range Parts() {
		p, err := b.plan(part, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.HasPrefix(filepath.Base(p.dir), string(part)+"-") || p.built() {
			t.Errorf("%s: directory %s, built %t", part, p.dir, p.built())
		}
	}
	if _, err := b.plan("kubelet", nil); err == nil || !strings.Contains(err.Error(), `"kubelet"`) {
		t.Errorf("plan of an unknown part: %v", err)
	}
}

func TestAChangeOfAPartsOwnSourceMakesAnotherProgram(t *testing.T) {
	source, err := sourceDir()
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "karpenter")
	if err := copyTree(copied, filepath.Join(source, "karpenter")); err != nil {
		t.Fatal(err)
	}
	b := &builder{source: filepath.Dir(copied), bin: t.TempDir()}
	before, err := b.plan(Karpenter, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(copied, "further.go"), []byte("package main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	after, err := b.plan(Karpenter, nil)
	if err != nil {
		t.Fatal(err)
	}
	if before.dir == after.dir {
		t.Errorf("both sources build %s", before.dir)
	}
}

func TestVersionsAreReadFromGoMod(t *testing.T) {
	gomod := []byte("module m\n\nrequire a.b/c v1.2.3\n\nrequire (\n\tk8s.io/kubernetes v1.35.4 // indirect\n\tk8s.io/kubernetes-extra v0.1.0\n)\n\nreplace k8s.io/api => k8s.io/api v0.35.4\n")
	for module, want := range map[string]string{"a.b/c": "v1.2.3", "k8s.io/kubernetes": "v1.35.4", "k8s.io/kubernetes-extra": "v0.1.0"} {
		got, err := requiredVersion(gomod, module)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", module, got, err, want)
		}
	}
	if got, err := requiredVersion(gomod, "k8s.io/api"); err == nil {
		t.Errorf("a module that is only replaced has version %q", got)
	}
}

func TestEveryRayReleaseHasCompletePins(t *testing.T) {
	source, err := sourceDir()
	if err != nil {
		t.Fatal(err)
	}
	pin := regexp.MustCompile(`^[a-z0-9.-]+==[^\s;]+(; python_version [<>=]= "3\.\d+")*$`)
	for _, version := range RayVersions() {
		data, err := os.ReadFile(filepath.Join(source, "ray", "ray-"+version+".lock"))
		if err != nil {
			t.Error(err)
			continue
		}
		if !bytes.Contains(data, []byte("\nray=="+version+"\n")) {
			t.Errorf("the pins of Ray %s do not name it", version)
		}
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") && !pin.MatchString(line) {
				t.Errorf("Ray %s: %q is no exact pin", version, line)
			}
		}
	}
}

func TestARayReleaseWithoutPinsIsRefused(t *testing.T) {
	if _, err := planRayEnv(t.TempDir(), t.TempDir(), "1.0.0"); err == nil || !strings.Contains(err.Error(), `"1.0.0"`) {
		t.Errorf("got %v, want an error that names the version", err)
	}
}

func TestProgressShowsBeginSignsOfLifeAndEnd(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := &progress{out: &out, total: 2, now: func() time.Time { return now }}
	etcd := p.begin("etcd v3", time.Minute)
	now = now.Add(10 * time.Second)
	p.beat(now)
	now = now.Add(6 * time.Second)
	p.beat(now)
	p.beat(now.Add(time.Second))
	etcd.end("built")
	p.begin("kwok v0", 30*time.Second).end("failed")
	want := "[1/2] etcd v3 … about 1m0s\n[1/2] etcd v3 … 16s of about 1m0s\n[1/2] etcd v3 … built in 16s\n" +
		"[2/2] kwok v0 … about 30s\n[2/2] kwok v0 … failed in 0s\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestWhatAMachineLacksIsOneLine(t *testing.T) {
	var lacks errMachine
	lacks.add(checkPlatform("linux", "arm64"))
	if err := lacks.orNil(); err != nil {
		t.Errorf("Linux on arm64 is refused: %v", err)
	}
	lacks.add(checkPlatform("darwin", "arm64"))
	lacks.add(checkPlatform("linux", "386"))
	err := lacks.orNil()
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "darwin/arm64") || !strings.Contains(err.Error(), "linux/386") {
		t.Errorf("got %v, want one line that names both", err)
	}
}

func TestAvailableMemoryIsReadFromMeminfo(t *testing.T) {
	got, err := availableMemory("MemTotal:       24576000 kB\nMemFree:          1000 kB\nMemAvailable:   2097152 kB\n")
	if err != nil || got != 2<<30 {
		t.Errorf("got %d, %v; want %d", got, err, 2<<30)
	}
	if _, err := availableMemory("MemTotal: 1 kB\n"); err == nil {
		t.Error("a file without the number gives no error")
	}
}

// The interpreter is a stand-in that makes itself the environment's and writes down how it is called.
func TestMakingARayEnvironmentLeavesNothingInPipsCache(t *testing.T) {
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	python := filepath.Join(dir, "python")
	script := "#!/bin/sh\necho \"$@\" >> " + calls + "\nif [ \"$2\" = venv ]; then mkdir -p \"$3/bin\" && cp \"$0\" \"$3/bin/python\"; fi\n"
	if err := os.WriteFile(python, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	env := venv{python: python, lock: filepath.Join(dir, "ray.lock"), dir: filepath.Join(dir, "env")}
	if err := env.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	installs := 0
	for call := range strings.Lines(string(text)) {
		if strings.HasPrefix(call, "-m pip ") {
			installs++
			if !strings.Contains(call, " --no-cache-dir ") {
				t.Errorf("pip keeps a copy outside the cache directory: %s", call)
			}
		}
	}
	if installs != 1 || !env.built() {
		t.Errorf("%d calls of pip, built %t", installs, env.built())
	}
}
