package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"
)

// krewPlugin has the fields of a plugin's manifest that krew reads (its index.Plugin, v1alpha2). Krew rejects unknown
// fields.
type krewPlugin struct {
	APIVersion, Kind string
	Metadata         struct{ Name string }
	Spec             struct {
		Version, Homepage, ShortDescription, Description, Caveats string
		Platforms                                                 []struct {
			URI, SHA256, Bin string
			Selector         struct{ MatchLabels map[string]string }
		}
	}
}

// krewOf renders the manifest for a release, as krew-release-bot does.
func krewOf(t *testing.T, tag string) krewPlugin {
	t.Helper()
	release := map[string]string{"TagName": tag}
	fill := func(address, tag string) (string, error) {
		var uri strings.Builder
		parsed, err := template.New("address").Parse(address)
		if err == nil {
			err = parsed.Execute(&uri, map[string]string{"TagName": tag})
		}
		return fmt.Sprintf("uri: %s\n    sha256: %s", uri.String(), strings.Repeat("a1", 32)), err
	}
	parsed, err := template.New("krew").Funcs(template.FuncMap{"addURIAndSha": fill}).Parse(read(t, ".krew.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := parsed.Execute(&text, release); err != nil {
		t.Fatal(err)
	}
	var plugin krewPlugin
	if err := yaml.UnmarshalStrict([]byte(text.String()), &plugin); err != nil {
		t.Fatalf("%v in\n%s", err, text.String())
	}
	return plugin
}

func TestKrewManifestIsValid(t *testing.T) {
	p := krewOf(t, "v1.2.3")
	if p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin" || p.Metadata.Name != "heliostat" || p.Spec.Version != "v1.2.3" {
		t.Errorf("it is %s %s %s %s", p.APIVersion, p.Kind, p.Metadata.Name, p.Spec.Version)
	}
	// Krew's guidelines: krew shows it in a list with one line per plugin.
	if short := p.Spec.ShortDescription; short == "" || len(short) > 50 || strings.HasSuffix(short, ".") {
		t.Errorf("the short description %q: want up to 50 characters without a full stop", short)
	}
	made := regexp.MustCompile(`kubectl-heliostat_linux_\$\$arch\.tar\.gz`).MatchString(read(t, "Makefile"))
	if len(p.Spec.Platforms) == 0 || !made {
		t.Errorf("%d platforms; make plugin makes their archives: %v", len(p.Spec.Platforms), made)
	}
	for _, platform := range p.Spec.Platforms {
		labels := platform.Selector.MatchLabels
		want := fmt.Sprintf("/v1.2.3/kubectl-heliostat_%s_%s.tar.gz", labels["os"], labels["arch"])
		if !strings.HasPrefix(platform.URI, "https://") || !strings.HasSuffix(platform.URI, want) || len(platform.SHA256) != 64 || platform.Bin != "kubectl-heliostat" {
			t.Errorf("%v: %+v, want https://…%s and the program kubectl-heliostat", labels, platform, want)
		}
	}
}
