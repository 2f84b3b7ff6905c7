package kit

import (
	"fmt"
	"regexp"
	"time"
)

// Part names one program of the dev cluster.
type Part string

// The programs a cluster is made of. Kubectl belongs to no cluster; it is here so that a machine without one has it.
const (
	Etcd              Part = "etcd"
	APIServer         Part = "kube-apiserver"
	Scheduler         Part = "kube-scheduler"
	ControllerManager Part = "kube-controller-manager"
	Operator          Part = "kuberay-operator"
	Kwok              Part = "kwok"
	Kueue             Part = "kueue"
	Karpenter         Part = "karpenter"
	Coscheduling      Part = "coscheduling"
	Kubectl           Part = "kubectl"
)

// recipe is how to build one part.
type recipe struct {
	part Part
	// moduleDir is the nested module whose go.mod pins the part, relative to this package's directory.
	moduleDir string
	// module owns pkg; its version in go.mod is the version of the part.
	module string
	pkg    string
	// own are the files of the nested module itself that the program is made of, as a pattern; empty where it has none.
	own string
	// files are folders of the module that the part needs beside its program.
	files []string
	// estimate is the time of a first build on two cores with nothing cached, in the order of the table: what an
	// earlier part compiled is not compiled again.
	estimate time.Duration
}

// recipes lists every part, in the order in which they are built. Kubernetes' programs and the operator share one
// module, and with it one version of every dependency, so that each dependency is compiled once; kwok needs others.
var recipes = []recipe{
	{
		part:      Etcd,
		moduleDir: "parts",
		module:    "go.etcd.io/etcd/server/v3",
		pkg:       "go.etcd.io/etcd/server/v3",
		estimate:  58 * time.Second,
	},
	{
		part:      APIServer,
		moduleDir: "parts",
		module:    "k8s.io/kubernetes",
		pkg:       "k8s.io/kubernetes/cmd/kube-apiserver",
		estimate:  172 * time.Second,
	},
	{
		part:      Scheduler,
		moduleDir: "parts",
		module:    "k8s.io/kubernetes",
		pkg:       "k8s.io/kubernetes/cmd/kube-scheduler",
		estimate:  18 * time.Second,
	},
	{
		part:      ControllerManager,
		moduleDir: "parts",
		module:    "k8s.io/kubernetes",
		pkg:       "k8s.io/kubernetes/cmd/kube-controller-manager",
		estimate:  36 * time.Second,
	},
	{
		part:      Operator,
		moduleDir: "parts",
		module:    "github.com/ray-project/kuberay/ray-operator",
		pkg:       "github.com/ray-project/kuberay/ray-operator",
		files:     []string{"config/crd/bases", "config/rbac"},
		estimate:  11 * time.Second,
	},
	{
		part:      Kubectl,
		moduleDir: "parts",
		module:    "k8s.io/kubernetes",
		pkg:       "k8s.io/kubernetes/cmd/kubectl",
		estimate:  25 * time.Second,
	},
	{part: Kwok, moduleDir: "kwok", module: "sigs.k8s.io/kwok", pkg: "sigs.k8s.io/kwok/cmd/kwok",
		files: []string{"kustomize/stage"}, estimate: 60 * time.Second},
	{part: Kueue, moduleDir: "kueue", module: "sigs.k8s.io/kueue", pkg: "sigs.k8s.io/kueue/cmd/kueue",
		files: []string{"config/components/crd/bases", "config/components/webhook"}, estimate: 150 * time.Second},
	{part: Karpenter, moduleDir: "karpenter", module: "sigs.k8s.io/karpenter", pkg: ".", own: "*.go",
		files: []string{"pkg/apis/crds", "kwok/apis/crds"}, estimate: 130 * time.Second},
	{part: Coscheduling, moduleDir: "coscheduling", module: "sigs.k8s.io/scheduler-plugins", pkg: ".", own: "*.go",
		files: []string{"config/crd/bases"}, estimate: 100 * time.Second},
}

// Parts returns the names of all parts, in the order in which they are built.
func Parts() []Part {
	names := make([]Part, len(recipes))
	for i, r := range recipes {
		names[i] = r.part
	}
	return names
}

// recipeOf returns the recipe of a part.
func recipeOf(part Part) (recipe, error) {
	for _, r := range recipes {
		if r.part == part {
			return r, nil
		}
	}
	return recipe{}, fmt.Errorf("part %q is unknown; known are %v", part, Parts())
}

// ldflags returns the linker flags of a part. Without its version a Kubernetes program calls itself v0.0.0, and clients
// that ask the server for its version refuse to work with it.
func (r recipe) ldflags(version string) string {
	flags := "-s -w"
	if r.module == "k8s.io/kubernetes" {
		flags += " -X k8s.io/component-base/version.gitVersion=" + version +
			" -X k8s.io/client-go/pkg/version.gitVersion=" + version
	}
	return flags
}

// requiredVersion reads the version of a module from the text of a go.mod file.
func requiredVersion(gomod []byte, module string) (string, error) {
	pattern := regexp.MustCompile(`(?m)^(?:require)?\s*` + regexp.QuoteMeta(module) + ` (v\S+)`)
	m := pattern.FindSubmatch(gomod)
	if m == nil {
		return "", fmt.Errorf("module %s is not required", module)
	}
	return string(m[1]), nil
}
