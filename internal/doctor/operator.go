package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// manyClusters is from where on one worker of the operator is likely to make clusters wait for each other.
const manyClusters = 10

// operator are checks of the KubeRay operator's Deployment.
var operator = []Check{
	{
		Code: "operator-concurrency", Severity: raydemand.Info,
		Why: "the operator works on one RayCluster at a time: while one of them grows by hundreds of pods, the others wait for minutes (kuberay #3909)",
		look: func(x *exam, tell func(sight)) {
			for _, o := range x.byKind["Deployment"] {
				words := o.arguments("kuberay/operator")
				container, at := o.container("kuberay/operator")
				if container < 0 || len(x.clusters) < manyClusters || slices.ContainsFunc(words, isConfig) || concurrency(words) > 1 {
					continue
				}
				var change op
				args := at.get("args")
				if i := slices.IndexFunc(args.items(), func(v value) bool { return strings.HasPrefix(strings.TrimLeft(v.text(), "-"), concurrencyFlag) }); i >= 0 {
					change = op{Op: "replace", At: args.at.then(i), Value: "--" + concurrencyFlag + "=4"}
				} else {
					change = o.add(args, "--"+concurrencyFlag+"=4")
				}
				tell(sight{of: o, at: args.at, seen: fmt.Sprintf("concurrency %d, %d RayClusters", concurrency(words), len(x.clusters)), fix: o.patch(change)})
			}
		},
	},
}

const concurrencyFlag = "reconcile-concurrency"

func isConfig(word string) bool { return strings.HasPrefix(strings.TrimLeft(word, "-"), "config") }

// concurrency reads the operator's flag; 1 is its default.
func concurrency(words []string) int {
	for i, word := range words {
		name, text, inOne := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if name != concurrencyFlag {
			continue
		}
		if !inOne && i+1 < len(words) {
			text = words[i+1]
		}
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
	}
	return 1
}

// container is the one of a Deployment whose image has the name in it, and its index; -1 where there is none.
func (o *Object) container(image string) (int, value) {
	for i, c := range o.root().get("spec", "template", "spec", "containers").items() {
		if strings.Contains(c.get("image").text(), image) {
			return i, c
		}
	}
	return -1, value{}
}

// arguments are the words of that container's command line.
func (o *Object) arguments(image string) []string {
	_, c := o.container(image)
	var words []string
	for _, field := range []string{"command", "args"} {
		for _, v := range c.get(field).items() {
			words = append(words, v.text())
		}
	}
	return words
}
