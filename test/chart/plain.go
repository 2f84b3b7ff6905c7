package chart

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	helm "helm.sh/helm/v3/pkg/chart"
)

// plainFile is a manifest for users who do not use Helm.
type plainFile struct {
	name   string
	header string
	values Values
	// templates are the names of the templates that the file contains.
	templates []string
}

// plain lists the plain files. They use the names of a single Heliostat in its own namespace. The API there needs no
// certificate, because it listens inside the pod, for a port-forward.
var plain = []plainFile{
	{
		name: "rbac.yaml",
		header: "The rights of Heliostat: one ServiceAccount for all namespaces, " +
			"and roles for users to see RayClusters and request\n" +
			"capacity. Helm renders this file from deploy/chart. " +
			"To serve only a few namespaces, render the chart with\n" +
			"singleNamespaceInstall.",
		templates: []string{"serviceaccount.yaml", "rbac.yaml", "aggregatedroles.yaml"},
	},
	{
		name: "heliostat.yaml",
		header: "`autoscaler serve` for all RayClusters, with the rights of deploy/rbac.yaml. " +
			"The API only listens inside the pod;\n" +
			"the chart can serve it over TLS. Helm renders this file from deploy/chart.\n\n" +
			"  kubectl create namespace heliostat\n" +
			"  kubectl apply --server-side -f deploy/chart/crds -f deploy/rbac.yaml -f deploy/heliostat.yaml",
		templates: []string{"service.yaml", "deployment.yaml"},
	},
	{
		name: "agent.yaml",
		header: `Optional: reports the cards of each GPU node (free memory, MIG layout, health) in the node's annotation
heliostat.dev/gpus, which Heliostat reads. Without it, Heliostat works with what nodes announce. Build the image from
` + "`make agent`" + ` on a base with glibc; the program for ` + "`autoscaler serve`" + ` cannot call the driver. Helm
renders this file from deploy/chart.

  kubectl apply -f deploy/agent.yaml

To remove it, delete it, then run ` + "`kubectl annotate nodes --all heliostat.dev/gpus-`.",
		values:    Values{"agent": Values{"enabled": true}},
		templates: []string{"agent.yaml"},
	},
	{
		name:      "kustomize/default/heliostat.yaml",
		header:    "deploy/rbac.yaml and deploy/heliostat.yaml in one file. Helm renders it from deploy/chart.",
		templates: whole,
	},
	{
		name: "kustomize/namespaced/heliostat.yaml",
		header: "autoscaler serve for the RayClusters of its own namespace, with Roles there and no other rights. " +
			"Helm renders this\n" +
			"file from deploy/chart. For another namespace, write a kustomization with this folder as a resource " +
			"and that namespace.",
		values: Values{
			"singleNamespaceInstall":  true,
			"clusterScopedRbacEnable": false,
			"aggregatedRoles":         Values{"enabled": false},
		},
		templates: whole,
	},
}

// whole lists the templates of a complete install without the agent.
var whole = []string{"serviceaccount.yaml", "rbac.yaml", "aggregatedroles.yaml", "service.yaml", "deployment.yaml"}

// carried lists the files of deploy that exist twice, because neither Helm nor kustomize reads files outside its own
// directory.
var carried = []struct{ from, pattern, to string }{
	{"dashboards", "*.json", "chart/files/dashboards"},
	{"alerts", "*.yaml", "chart/files/alerts"},
	{"chart/crds", "*.yaml", "kustomize/crd/bases"},
}

// helmsOwn matches the labels that mark an object as managed by Helm.
var helmsOwn = regexp.MustCompile(`(?m)^ +(helm\.sh/chart|app\.kubernetes\.io/managed-by): .*\n`)

// all returns the values with which the file is rendered.
func (p plainFile) all() Values {
	values := Values{"api": Values{"exposure": "loopback"}, "replicas": 1} // replicas cannot connect on loopback
	maps.Copy(values, p.values)
	return values
}

// render returns the file's text.
func (p plainFile) render(c *helm.Chart) (string, error) {
	manifests, _, err := Render(c, Release{Name: "heliostat", Namespace: "heliostat"}, p.all())
	if err != nil {
		return "", fmt.Errorf("making %s: %w", p.name, err)
	}
	var documents []string
	for _, m := range of(manifests, p.templates...) {
		documents = append(documents, strings.TrimSpace(helmsOwn.ReplaceAllString(m.Text+"\n", "")))
	}
	header := "# " + strings.ReplaceAll(p.header, "\n", "\n# ")
	header = strings.ReplaceAll(header, "# \n", "#\n")
	return header + "\n" + strings.Join(documents, "\n---\n") + "\n", nil
}

// Generate writes the files that are generated from the chart into the directory deploy: the files that exist twice,
// the chart's README, the plain manifests and the resources of deploy/kustomize. The kustomizations themselves are
// written by hand.
func Generate(deploy string) error {
	dir := filepath.Join(deploy, "chart")
	for _, c := range carried {
		if err := carry(filepath.Join(deploy, c.from), c.pattern, filepath.Join(deploy, c.to)); err != nil {
			return err
		}
	}
	c, err := Load(dir)
	if err != nil {
		return err
	}
	if err := writeReadme(dir, c); err != nil {
		return err
	}
	for _, file := range plain {
		text, err := file.render(c)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(deploy, file.name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing a manifest: %w", err)
		}
	}
	return nil
}

// carry makes the files in a directory that match a pattern the same as those in another directory.
func carry(from, pattern, to string) error {
	files, err := filepath.Glob(filepath.Join(from, pattern))
	if err != nil {
		return fmt.Errorf("looking for %s in %s: %w", pattern, from, err)
	}
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("emptying %s: %w", to, err)
	}
	if len(files) == 0 {
		return nil
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("making %s: %w", to, err)
	}
	for _, file := range slices.Sorted(slices.Values(files)) {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("carrying %s: %w", file, err)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), text, 0o644); err != nil {
			return fmt.Errorf("carrying %s: %w", file, err)
		}
	}
	return nil
}
