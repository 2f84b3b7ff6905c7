package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
)

// manyClusters is the number of RayClusters from which they are likely to wait for an operator with one worker.
const manyClusters = 10

const concurrencyFlag = "reconcile-concurrency"

func operatorConcurrency(x *inventory, report reporter) {
	for _, o := range x.ByKind["Deployment"] {
		container, found := o.container("kuberay/operator")
		words := o.arguments("kuberay/operator")
		if !found || len(x.Clusters) < manyClusters || slices.ContainsFunc(words, isConfig) || concurrency(words) > 1 {
			continue
		}
		args := container.Get("args")
		change := appendTo(o, args, "--"+concurrencyFlag+"=4")
		if i := slices.IndexFunc(args.Items(), isConcurrency); i >= 0 {
			change = replace(args.Path().Index(i), "--"+concurrencyFlag+"=4")
		}
		report(occurrence{Object: o, Path: args.Path(), Fix: patch(o, change),
			Seen: fmt.Sprintf("concurrency %d, %d RayClusters", concurrency(words), len(x.Clusters))})
	}
}

// isConfig reports whether the argument names a configuration file, which may set the concurrency.
func isConfig(word string) bool { return strings.HasPrefix(strings.TrimLeft(word, "-"), "config") }

func isConcurrency(word fieldpath.Value) bool {
	return strings.HasPrefix(strings.TrimLeft(word.Text(), "-"), concurrencyFlag)
}

// concurrency returns the operator's flag; its default is 1.
func concurrency(words []string) int {
	if n, err := strconv.Atoi(flagIn(words, concurrencyFlag)); err == nil {
		return n
	}
	return 1
}

// flagIn returns the value of a flag on a command line, empty if it is not there.
func flagIn(words []string, flag string) string {
	for i, word := range words {
		name, value, inOne := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if name == flag && !inOne && i+1 < len(words) {
			return words[i+1]
		}
		if name == flag {
			return value
		}
	}
	return ""
}
