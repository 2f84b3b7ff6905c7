package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// built returns the output of `kubectl kustomize` for a directory, by kind, namespace and name.
func built(t *testing.T, folder string) map[string]unstructured.Unstructured {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	must(t, err)
	var texts []string
	for _, r := range resources.Resources() {
		text, err := r.AsYAML()
		must(t, err)
		texts = append(texts, string(text))
	}
	return objects(t, texts)
}

// rendered returns the objects that the chart renders with the values of a plain file in a namespace, without Helm's
// own labels.
func rendered(t *testing.T, file, namespace string) map[string]unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(plain, func(p plainFile) bool { return p.name == file })
	manifests, _, err := Render(loaded(t), Release{Name: "heliostat", Namespace: namespace}, plain[i].all())
	must(t, err)
	var texts []string
	for _, m := range manifests {
		if m.Template != "poddisruptionbudget.yaml" {
			texts = append(texts, helmsOwn.ReplaceAllString(m.Text+"\n", ""))
		}
	}
	return objects(t, texts)
}

func objects(t *testing.T, texts []string) map[string]unstructured.Unstructured {
	t.Helper()
	all := map[string]unstructured.Unstructured{}
	for _, text := range texts {
		var o unstructured.Unstructured
		must(t, yaml.Unmarshal([]byte(text), &o.Object))
		all[fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())] = o
	}
	return all
}

// aside removes the objects that only kustomize renders. Helm has these in crds, or creates them with
// --create-namespace.
func aside(all map[string]unstructured.Unstructured) (keys []string) {
	for key, o := range all {
		if kind := o.GetKind(); kind == "CustomResourceDefinition" || kind == "Namespace" {
			keys = append(keys, key)
			delete(all, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func TestKustomizeBuildsWhatTheChartMakes(t *testing.T) {
	got := built(t, filepath.Join(dir, "../kustomize/default"))
	more := []string{"CustomResourceDefinition /resourcerequests.heliostat.dev", "Namespace /heliostat"}
	if diff := cmp.Diff(more, aside(got)); diff != "" {
		t.Errorf("beside the chart's objects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(rendered(t, "kustomize/default/heliostat.yaml", "heliostat"), got); diff != "" {
		t.Errorf("default (-chart +kustomize):\n%s", diff)
	}
}

func TestTheNamespacedKustomizationServesWhereItIsPut(t *testing.T) {
	base, err := filepath.Abs(filepath.Join(dir, "../kustomize/namespaced"))
	must(t, err)
	overlay := t.TempDir()
	relative, err := filepath.Rel(overlay, base)
	must(t, err)
	kustomization := "namespace: ml\nresources: [" + relative + "]\n"
	must(t, os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(kustomization), 0o600))
	for namespace, folder := range map[string]string{"heliostat": base, "ml": overlay} {
		got := built(t, folder)
		if diff := cmp.Diff(rendered(t, "kustomize/namespaced/heliostat.yaml", namespace), renamed(t, got, "heliostat-heliostat", "heliostat-"+namespace)); diff != "" {
			t.Errorf("in %s (-chart +kustomize):\n%s", namespace, diff)
		}
		for key := range got {
			if strings.HasPrefix(key, "Cluster") || !strings.Contains(key, " "+namespace+"/") {
				t.Errorf("%s reaches beyond %s", key, namespace)
			}
		}
	}
}

// renamed returns the same objects with another text, such as a name and the references to it. The chart names Roles
// after their namespace. A kustomization keeps the name.
func renamed(t *testing.T, all map[string]unstructured.Unstructured, from, to string) map[string]unstructured.Unstructured {
	t.Helper()
	var texts []string
	for _, o := range all {
		text, err := yaml.Marshal(o.Object)
		must(t, err)
		texts = append(texts, strings.ReplaceAll(string(text), from, to))
	}
	return objects(t, texts)
}

func TestTheManagedKustomizationDiffersInTheModeAlone(t *testing.T) {
	want, got := built(t, filepath.Join(dir, "../kustomize/default")), built(t, filepath.Join(dir, "../kustomize/managed"))
	if diff := cmp.Diff(renamed(t, want, "--mode=shadow", "--mode=managed"), got); diff != "" || cmp.Equal(want, got) {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
