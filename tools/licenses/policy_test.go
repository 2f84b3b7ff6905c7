package licenses

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/licenseclassifier/v2/assets"
)

const checkout = "../.."

// textOf returns the text of a license from the classifier's data.
func textOf(t *testing.T, id string) []byte {
	t.Helper()
	for _, variant := range []string{"license.txt", "pristine.txt"} {
		if text, err := assets.ReadLicenseFile("License/" + id + "/" + variant); err == nil {
			return text
		}
	}
	t.Fatalf("the classifier has no text of %s", id)
	return nil
}

func newChecker(t *testing.T) *Checker {
	t.Helper()
	c, err := NewChecker()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAModuleNeedsALicenseThatIsAllowed(t *testing.T) {
	c := newChecker(t)
	file := func(name string, texts ...[]byte) File {
		return File{Name: name, Text: bytes.Join(texts, []byte("\n\n"))}
	}
	mit, gpl := textOf(t, "MIT"), textOf(t, "GPL-3.0")
	for name, test := range map[string]struct {
		files []File
		want  []string // words in the message; nil if the module is allowed
	}{
		"MIT":                              {files: []File{file("LICENSE", mit)}},
		"Apache, and a NOTICE":             {files: []File{file("LICENSE", textOf(t, "Apache-2.0")), {Name: "NOTICE", Text: []byte("Made by us."), Notice: true}}},
		"GPL":                              {[]File{file("COPYING", gpl)}, []string{"/cache/x/COPYING", "GPL-3.0 is not allowed", "Apache-2.0", "replace the module"}},
		"AGPL":                             {[]File{file("LICENSE", textOf(t, "AGPL-3.0"))}, []string{"AGPL-3.0 is not allowed"}},
		"MPL, which nothing needs":         {[]File{file("LICENSE", textOf(t, "MPL-2.0"))}, []string{"MPL-2.0 is not allowed", policyFile}},
		"GPL below MIT in one file":        {[]File{file("LICENSE", mit, gpl)}, []string{"GPL-3.0 is not allowed"}},
		"GPL of one folder":                {[]File{file("LICENSE", mit), file("third_party/x/LICENSE", gpl)}, []string{"/cache/x/third_party/x/LICENSE"}},
		"no file":                          {nil, []string{"no file LICENSE", "/cache/x"}},
		"a NOTICE alone":                   {[]File{{Name: "NOTICE", Text: mit, Notice: true}}, []string{"no file LICENSE"}},
		"a text that nobody knows":         {[]File{file("LICENSE", []byte("You may look at this on Sundays."))}, []string{"no known license"}},
		"MIT with more of its own than it": {[]File{file("LICENSE", mit, bytes.Repeat([]byte("You may not use it on Mondays.\n"), 40))}, []string{"less than half"}},
	} {
		err := c.Check([]Module{{Path: "example.com/x", Version: "v1.2.3", Dir: "/cache/x", Files: test.files}})
		if test.want == nil {
			if err != nil {
				t.Errorf("%s: %v, want it to be allowed", name, err)
			}
			continue
		}
		for _, want := range append(test.want, "example.com/x v1.2.3") {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", name, err, want)
			}
		}
	}
}

// TestWhatIsLinkedIsReadFromTheGoCommand builds a program that links one of two modules. One package of the linked
// module has a GPL license.
func TestAnExceptionIsOfOneModule(t *testing.T) {
	checker, err := NewChecker()
	if err != nil {
		t.Fatal(err)
	}
	for path, allowed := range map[string]bool{"github.com/hashicorp/golang-lru/v2": true, "github.com/hashicorp/vault": false} {
		err := checker.Check([]Module{{Path: path, Version: "v1.0.0", Files: []File{{Name: "LICENSE", Text: textOf(t, "MPL-2.0")}}}})
		if (err == nil) != allowed {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestWhatIsLinkedIsReadFromTheGoCommand(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/main\n\ngo 1.26\n\nrequire (\n\texample.com/used v1.0.0\n\texample.com/unused v1.0.0\n)\n\n" +
			"replace example.com/used => ./used\nreplace example.com/unused => ./unused\n",
		"main.go":                 "package main\n\nimport _ \"example.com/used/inner/deep\"\n\nfunc main() {}\n",
		"used/go.mod":             "module example.com/used\n\ngo 1.26\n",
		"used/LICENSE":            string(textOf(t, "MIT")),
		"used/inner/COPYING":      string(textOf(t, "GPL-3.0")),
		"used/inner/deep/deep.go": "package deep\n",
		"used/other/LICENSE":      string(textOf(t, "AGPL-3.0")), // of a package that is not linked
		"unused/go.mod":           "module example.com/unused\n\ngo 1.26\n",
		"unused/unused.go":        "package unused\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "-mod=mod")
	modules, err := Linked(t.Context(), Program{Dir: dir, Package: ".", Arch: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range modules {
		for _, f := range m.Files {
			names = append(names, m.Path+" "+f.Name)
		}
	}
	if want := []string{"./used LICENSE", "./used inner/COPYING", "stdlib LICENSE", "stdlib PATENTS"}; !slices.Equal(names, want) {
		t.Errorf("licenses %q, want %q", names, want)
	}
	err = newChecker(t).Check(modules)
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "used/inner/COPYING")) || strings.Count(err.Error(), "is not allowed") != 1 {
		t.Errorf("%v, want an error for the one file", err)
	}
}

func TestTheTextsAreThoseOfAllProgramsThatArePassedOn(t *testing.T) {
	modules, err := Linked(t.Context(), Carried(checkout)...)
	if err != nil {
		t.Fatal(err)
	}
	texts := string(newChecker(t).Texts(modules))
	for _, want := range []string{
		"k8s.io/client-go ",                       // the autoscaler
		"github.com/NVIDIA/go-nvml ",              // the agent
		"mvdan.cc/sh/v3 ",                         // the image's shell
		"golang.org/x/crypto/x509roots/fallback ", // its certificates
		"stdlib ",         // all programs
		"client_golang v", // has a NOTICE
		"This product includes software developed", // the text of that NOTICE
		"k8s.io/apimachinery v",                    // one of its directories
		"third_party/forked/golang/LICENSE",        // has another license
	} {
		if !strings.Contains(texts, want) {
			t.Errorf("the texts lack %q", want)
		}
	}
	if got := strings.Count(texts, "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION"); got < 1 || got > 20 {
		t.Errorf("the Apache license is there %d times", got)
	}
}

func TestHeliostatIsUnderTheApacheLicense(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(checkout, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	if r := newChecker(t).recognize(text); !slices.Equal(r.ids, []string{"Apache-2.0"}) || !r.mostly {
		t.Errorf("LICENSE is %+v, want the Apache license alone", r)
	}
}
