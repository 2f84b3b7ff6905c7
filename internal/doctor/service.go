package doctor

import (
	"strconv"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// program is a Deployment with a container that runs a program, and the words of that container's command line.
type program struct {
	*Object
	container fieldpath.Value
	words     []string
}

// heliostatImage is in the name of Heliostat's image.
const heliostatImage = "heliostat"

// programs returns the Deployments that have a container whose image has the given name in it.
func (x *inventory) programs(image string) (all []program) {
	for _, o := range x.ByKind["Deployment"] {
		for _, c := range o.Root().Items("spec", "template", "spec", "containers") {
			if !strings.Contains(c.Text("image"), image) {
				continue
			}
			words := append(c.TextList("command"), c.TextList("args")...)
			all = append(all, program{Object: o, container: c, words: words})
			break
		}
	}
	return all
}

// onlyService returns the only Deployment of Heliostat among the objects. Of several, it is unknown which one manages a
// RayCluster.
func (x *inventory) onlyService() (only program, found bool) {
	if all := x.programs(heliostatImage); len(all) == 1 {
		return all[0], true
	}
	return program{}, false
}

// switched reports whether a flag of the service is on. It returns false for known if only the service's configuration
// file says it.
func (p program) switched(name string) (on, known bool) {
	text, set := p.flag(name)
	if !set {
		return false, !p.configured()
	}
	on, err := strconv.ParseBool(text)
	return on, err == nil
}

func (p program) configured() bool {
	_, set := p.flag("config")
	return set
}

// guards reports whether the service guards the pods of a RayCluster. It returns false for known if only the service's
// configuration file says it.
func (p program) guards(o *Object) (guards, known bool) {
	mode, known := string(o.Mode()), true
	if mode == "" {
		mode, _ = p.flag("mode")
		known = mode != "" || !p.configured()
	}
	protects, saysSo := p.switched("protect-busy")
	return protects && mode == string(nodepool.Managed), known && saysSo
}

// flag returns the value of a flag of serve, from its arguments or else from its environment. A flag without a value
// is true.
func (p program) flag(name string) (value string, set bool) {
	if v, known := env(p.container, "HELIOSTAT_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))); known {
		value, set = v.Text(), true
	}
	for i, word := range p.words {
		key, text, inOne := strings.Cut(strings.TrimLeft(word, "-"), "=")
		switch {
		case key != name || !strings.HasPrefix(word, "-"):
			continue
		case !inOne && i+1 < len(p.words) && !strings.HasPrefix(p.words[i+1], "-"):
			text = p.words[i+1]
		case !inOne:
			text = "true"
		}
		value, set = text, true
	}
	return value, set
}
