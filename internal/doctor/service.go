package doctor

import (
	"cmp"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
)

// heliostatImage is in the name of Heliostat's image, and operatorImage in that of KubeRay's operator.
const (
	heliostatImage = "heliostat"
	operatorImage  = "kuberay/operator"
)

// programs returns the Deployments that have a container of an image, and that container of each.
func (x *inventory) programs(image string) (all []*Object, containers []fieldpath.Value) {
	for _, o := range x.ByKind["Deployment"] {
		for _, c := range o.Root().Items("spec", "template", "spec", "containers") {
			if strings.Contains(c.Text("image"), image) {
				all, containers = append(all, o), append(containers, c)
				break
			}
		}
	}
	return all, containers
}

// program returns the only Deployment among the objects that has a container of an image, and that container. Of
// several, it is unknown which one manages a RayCluster; then, as without one, it returns nil.
func (x *inventory) program(image string) (only *Object, container fieldpath.Value) {
	if all, containers := x.programs(image); len(all) == 1 {
		return all[0], containers[0]
	}
	return nil, fieldpath.Value{}
}

// flagOf returns the value of a flag of a container's program, from its command line, as --name=value or in two words,
// or else from its environment. A flag without a value is true.
func flagOf(container fieldpath.Value, name string) (value string) {
	value = variableOf(container, "HELIOSTAT_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
	words := slices.Concat(container.TextList("command"), container.TextList("args"))
	for i, word := range words {
		key, text, inOne := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if key != name || !strings.HasPrefix(word, "-") {
			continue
		}
		if !inOne && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			text = words[i+1]
		}
		value = cmp.Or(text, "true")
	}
	return value
}

func variableOf(container fieldpath.Value, name string) (value string) {
	for _, v := range container.Items("env") {
		if v.Text("name") == name {
			value = v.Text("value")
		}
	}
	return value
}
