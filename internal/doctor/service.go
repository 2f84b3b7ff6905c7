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

// program returns the only Deployment among the objects that has a container of an image, and that container. Of
// several, it is unknown which one manages a RayCluster; then, as without one, it returns nil.
func (x *inventory) program(image string) (only *Object, container fieldpath.Value) {
	for _, o := range x.ByKind["Deployment"] {
		for _, c := range o.Root().Items("spec", "template", "spec", "containers") {
			if !strings.Contains(c.Text("image"), image) {
				continue
			}
			if only != nil && only != o {
				return nil, fieldpath.Value{}
			}
			only, container = o, c
		}
	}
	return only, container
}

// flagOf returns the value of a flag in a container's command line, as --name=value. A flag without a value is true.
func flagOf(container fieldpath.Value, name string) (value string) {
	for _, word := range slices.Concat(container.TextList("command"), container.TextList("args")) {
		if key, text, _ := strings.Cut(strings.TrimLeft(word, "-"), "="); key == name {
			value = cmp.Or(text, "true")
		}
	}
	return value
}
