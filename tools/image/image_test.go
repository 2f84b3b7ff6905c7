package main

import (
	"crypto/x509"
	"debug/buildinfo"
	"encoding/pem"
	"io"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestTheImageRunsAsNobodyAndStartsTheAutoscaler(t *testing.T) {
	for _, arch := range platforms {
		config, err := imageFor(t, wholeImage(t).index, arch).ConfigFile()
		must(t, err)
		if config.OS != "linux" || config.Architecture != arch {
			t.Errorf("the image for %s says %s/%s", arch, config.OS, config.Architecture)
		}
		if diff := cmp.Diff([]string{"/usr/local/bin/autoscaler"}, config.Config.Entrypoint); diff != "" || config.Config.User != "65532:65532" {
			t.Errorf("runs as %s, entry point -want +got:\n%s", config.Config.User, diff)
		}
	}
}

func TestTheCertificatesAreAuthoritiesThatGoReads(t *testing.T) {
	text := unpacked(t, imageFor(t, wholeImage(t).index, "amd64"))[certificates].data
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(text) {
		t.Fatal("no certificate can be read")
	}
	count := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err != nil || !c.IsCA {
			t.Errorf("certificate %d: %v, an authority: %v", count, err, c != nil && c.IsCA)
		}
		count++
	}
	if count < 100 {
		t.Errorf("%d authorities, Mozilla has well over 100", count)
	}
}

func TestAnnotationsShowVersionRevisionAndItsTime(t *testing.T) {
	stamped := compiled{release: "1.2.3", info: &buildinfo.BuildInfo{Main: debug.Module{Version: "v0.0.0-20260102030405-abcdefabcdef"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}}}}
	want := map[string]string{
		"org.opencontainers.image.title":       "Heliostat",
		"org.opencontainers.image.description": "Scales Ray clusters on Kubernetes to what Ray asks for",
		"org.opencontainers.image.version":     "1.2.3",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.revision":    "abc",
		"org.opencontainers.image.created":     "2026-01-02T03:04:05Z",
	}
	if diff := cmp.Diff(want, annotations(stamped)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	delete(want, "org.opencontainers.image.revision")
	release, err := releaseOf(checkout)
	must(t, err)
	want["org.opencontainers.image.version"] = release
	want["org.opencontainers.image.created"] = time.Unix(0, 0).UTC().Format(time.RFC3339)
	index, err := wholeImage(t).index.IndexManifest()
	must(t, err)
	if diff := cmp.Diff(want, index.Annotations); diff != "" {
		t.Errorf("of the index, -want +got:\n%s", diff)
	}
	config, err := imageFor(t, wholeImage(t).index, "arm64").ConfigFile()
	must(t, err)
	if diff := cmp.Diff(want, config.Config.Labels); diff != "" {
		t.Errorf("labels, -want +got:\n%s", diff)
	}
}

// listed returns the text of a bill of materials.
func listed(t *testing.T, list v1.Image) string {
	t.Helper()
	layers, err := list.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers: %v", len(layers), err)
	}
	r, err := layers[0].Compressed()
	must(t, err)
	defer r.Close()
	text, err := io.ReadAll(r)
	must(t, err)
	return string(text)
}

// TestTheBillOfMaterialsNamesWhatTheProgramsWereLinkedFrom compares the bill of materials with the modules that it
// reads from the programs in the image.
func TestTheBillOfMaterialsNamesWhatTheProgramsWereLinkedFrom(t *testing.T) {
	whole := wholeImage(t)
	for i, arch := range platforms {
		var bom cdx.BOM
		must(t, cdx.NewBOMDecoder(strings.NewReader(listed(t, whole.lists[i])), cdx.BOMFileFormatJSON).Decode(&bom))
		got := map[string]bool{}
		third := string(unpacked(t, imageFor(t, whole.index, arch))[termsFolder+"THIRD-PARTY"].data)
		for _, c := range *bom.Components {
			if c.Licenses == nil || len(*c.Licenses) != 1 {
				t.Errorf("%s: %s has the licenses %v, want one or one expression", arch, c.Name, c.Licenses)
			}
			if !strings.Contains(third, "\n"+c.Name+" "+c.Version+": ") {
				t.Errorf("%s: the image has no text of a license of %s %s", arch, c.Name, c.Version)
			}
			for _, o := range *c.Evidence.Occurrences {
				got[c.Name+" "+c.Version+" in "+o.Location] = true
			}
		}
		want := map[string]bool{}
		files := unpacked(t, imageFor(t, whole.index, arch))
		for _, p := range []program{autoscaler, bash} {
			info, err := buildinfo.Read(strings.NewReader(string(files[p.path].data)))
			must(t, err)
			want["stdlib "+strings.TrimPrefix(info.GoVersion, "go")+" in /"+p.path] = true
			for _, m := range info.Deps {
				want[m.Path+" "+m.Version+" in /"+p.path] = true
			}
		}
		version, err := rootsVersion()
		must(t, err)
		want[rootsModule+" "+version+" in /"+certificates] = true
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", arch, diff)
		}
		if len(want) < 50 {
			t.Errorf("%s: only %d modules", arch, len(want))
		}
	}
}

func TestAModuleOfWhichNoLicenseWasReadIsNotListed(t *testing.T) {
	read := terms{ids: map[string][]string{"example.com/one v1.0.0": {"MIT"}, "example.com/two v1.0.0": {"Apache-2.0", "MIT"}}}
	for module, want := range map[string]string{"example.com/one": "MIT", "example.com/two": "Apache-2.0 AND MIT"} {
		got, err := read.of(module, "v1.0.0")
		if err != nil || len(*got) != 1 {
			t.Fatalf("%s: %v, %v", module, got, err)
		}
		choice, id := (*got)[0], ""
		if choice.License != nil {
			id = choice.License.ID
		}
		if choice.Expression+id != want {
			t.Errorf("%s is under %+v, want %s", module, choice, want)
		}
	}
	if _, err := read.of("example.com/one", "v2.0.0"); err == nil || !strings.Contains(err.Error(), "example.com/one v2.0.0") {
		t.Errorf("%v, want an error that names the module", err)
	}
}
