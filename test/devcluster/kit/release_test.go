package kit

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The module of each release pins that release, and every part of the module is built from it.
func TestAReleaseIsBuiltFromItsOwnModule(t *testing.T) {
	b, err := newBuilder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{Kubernetes, KubeRay, KueueModule} {
		releases, err := Releases(module)
		if err != nil || len(releases) < 2 {
			t.Fatalf("releases of %s: %v, %v", module, releases, err)
		}
		for _, r := range recipes {
			if r.module != module || r.part == Kubectl {
				continue
			}
			usual, err := b.plan(r.part, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, release := range releases {
				p, err := b.plan(r.part, map[string]string{module: release})
				if err != nil || p.version != "v"+release || (p.dir == usual.dir) != (release == releases[0]) {
					t.Errorf("%s %s: version %q in %s, %v", r.part, release, p.version, filepath.Base(p.dir), err)
				}
			}
		}
	}
}

func TestReleasesAreTheDefaultAndThenTheNewest(t *testing.T) {
	releases, err := Releases(KubeRay)
	if err != nil || len(releases) < 3 {
		t.Fatalf("%v, %v", releases, err)
	}
	if !slices.Equal(releases[1:], []string{"1.5.1", "1.4.2"}) {
		t.Errorf("after the default: %v", releases[1:])
	}
}

func TestAnUnknownReleaseIsRefused(t *testing.T) {
	b, err := newBuilder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.plan(Operator, map[string]string{KubeRay: "0.9.9"})
	if err == nil || !strings.Contains(err.Error(), `release "0.9.9" of kuberay-operator is not pinned`) {
		t.Errorf("%v", err)
	}
	if releases, err := Releases("example.com/other"); err == nil {
		t.Errorf("a module without parts has releases %v", releases)
	}
}
