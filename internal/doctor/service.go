package doctor

import (
	"cmp"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// service is Heliostat's own Deployment.
type service struct {
	*Object
	// Args are the arguments of its container.
	Args      fieldpath.Value
	container fieldpath.Value
	words     []string
}

// heliostatImage is in the name of Heliostat's image.
const heliostatImage = "heliostat"

// onlyService returns the only Deployment of Heliostat among the objects. Of several, it is unknown which one manages a
// RayCluster.
func (x *inventory) onlyService() (only service, found bool) {
	for _, o := range x.ByKind["Deployment"] {
		container, is := o.container(heliostatImage)
		if !is {
			continue
		}
		if found {
			return service{}, false
		}
		only, found = service{o, container.Get("args"), container, o.arguments(heliostatImage)}, true
	}
	return only, found
}

// protectFlag is the flag of serve that lets it guard busy workers.
const protectFlag = "protect-busy"

// warmNodesFlag is the flag of serve that lets it ask for nodes without workers.
const warmNodesFlag = "warm-nodes"

// switched reports whether a flag of the service is on. It returns false for known if only the service's configuration
// file says it.
func (s service) switched(name string) (on, known bool) {
	text, set := s.flag(name)
	if !set {
		return false, !s.configured()
	}
	on, err := strconv.ParseBool(text)
	return on, err == nil
}

// protects reports whether the service guards the pods of managed RayClusters, as Switched does.
func (s service) protects() (protects, known bool) { return s.switched(protectFlag) }

// account returns the name of the ServiceAccount of its pods.
func (s service) account() string {
	return cmp.Or(s.Root().Text("spec", "template", "spec", "serviceAccountName"), "default")
}

func (s service) configured() bool {
	_, set := s.flag("config")
	return set
}

// guards says whether the service guards the pods of a RayCluster.
func (s service) guards(o *Object) guard {
	mode := string(o.Mode())
	if mode == "" {
		mode, _ = s.flag("mode")
	}
	protects, known := s.protects()
	switch {
	case !known, mode == "" && s.configured():
		return guardUnknown
	case protects && mode == string(nodepool.Managed):
		return guarded
	}
	return unguarded
}

// flag returns the value of a flag of serve, from its arguments or else from its environment. A flag without a value
// is true.
func (s service) flag(name string) (value string, set bool) {
	if v, known := env(s.container, "HELIOSTAT_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))); known {
		value, set = v.Text(), true
	}
	for i, word := range s.words {
		key, text, inOne := strings.Cut(strings.TrimLeft(word, "-"), "=")
		switch {
		case key != name || !strings.HasPrefix(word, "-"):
			continue
		case !inOne && i+1 < len(s.words) && !strings.HasPrefix(s.words[i+1], "-"):
			text = s.words[i+1]
		case !inOne:
			text = "true"
		}
		value, set = text, true
	}
	return value, set
}
