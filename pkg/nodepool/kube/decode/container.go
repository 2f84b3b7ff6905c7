package decode

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of findings about the resources of a container.
const (
	// PodsRefused marks a group whose pods the API server rejects.
	PodsRefused = "pods-refused"
	// BytesFractional: an amount in bytes is not a whole number, such as 512m, which is half a byte.
	BytesFractional = "bytes-fractional"
)

// container is the part of a container in a pod template that Heliostat reads.
type container struct {
	command, args    []string
	env              map[string]envVar
	envFrom          []envSource
	limits, requests map[string]resource.Quantity
	claims           int
}

// envVar is a variable's literal value, or its source. field is the field of the pod that it is read from, if that is
// its source. If maybe is set, the source may not have the variable.
type envVar struct {
	value, from, field string
	maybe              bool
	// earlier are the variables above it, to which $(NAME) in its value refers; nil without such a reference.
	earlier map[string]envVar
}

// envSource is a ConfigMap or Secret, which Heliostat does not read. Its keys become variables with the prefix.
type envSource struct{ prefix, name string }

// variable returns what sets a variable. In Kubernetes, env overrides envFrom.
func (c container) variable(name string) envVar {
	if v, set := c.env[name]; set {
		return v
	}
	for _, source := range c.envFrom {
		if strings.HasPrefix(name, source.prefix) {
			return envVar{from: source.name, maybe: true}
		}
	}
	return envVar{}
}

func decodeContainer(f Fields) container {
	resources := f.Object("resources")
	c := container{
		command: f.TextList("command"), args: f.TextList("args"), env: map[string]envVar{},
		limits: quantities(resources, "limits"), requests: quantities(resources, "requests"),
		claims: len(resources.Objects("claims")),
	}
	for _, v := range f.Objects("env") {
		// In Kubernetes, the last of equal names wins.
		read := envVar{value: v.Text("value")}
		if v.Has("valueFrom") {
			read.from = "valueFrom"
			read.field = v.Object("valueFrom").Object("fieldRef").Text("fieldPath")
		}
		if strings.Contains(read.value, "$(") {
			read.earlier = maps.Clone(c.env)
		}
		c.env[v.Text("name")] = read
	}
	for _, source := range f.Objects("envFrom") {
		name := "ConfigMap " + source.Object("configMapRef").Text("name")
		if source.Has("secretRef") {
			name = "Secret " + source.Object("secretRef").Text("name")
		}
		c.envFrom = append(c.envFrom, envSource{source.Text("prefix"), name})
	}
	return c
}

// quantities reads a resource list. The API server stores a YAML number as a number, so both forms occur.
func quantities(f Fields, name string) map[string]resource.Quantity {
	values := f.Members(name)
	list := make(map[string]resource.Quantity, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		quantity, err := resource.ParseQuantity(fmt.Sprint(values[key]))
		if err != nil {
			f.Get(name, key).Fault(wantQuantity)
			continue
		}
		list[key] = quantity
	}
	return list
}

// script returns the container's own command line, joined the way the operator joins it.
func (c container) script() string {
	return strings.Join(slices.Concat(c.command, c.args), " ")
}

// checkContainers checks the resources of all containers of a worker group's or the head's template.
func checkContainers(group Fields) {
	spec := group.Object("template").Object("spec")
	for _, f := range slices.Concat(spec.Objects("initContainers"), spec.Objects("containers")) {
		decodeContainer(f).checkResources(f)
	}
}

// checkResources reports what makes the API server reject the pod: negative amounts, and for resources such as
// nvidia.com/gpu, which require whole numbers and equal requests and limits, any others.
func (c container) checkResources(f Fields) {
	names := slices.Sorted(maps.Keys(c.limits))
	for name := range c.requests {
		if _, limited := c.limits[name]; !limited {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if problems := validation.IsQualifiedName(name); len(problems) > 0 {
			f.Report.Add(raydemand.Error, PodsRefused, f.at("resources")+"."+name, name,
				"it is no name of a resource, so the API server rejects every pod of the group: "+problems[0],
				"correct the name")
			continue
		}
		size, huge := strings.CutPrefix(name, "hugepages-") // they follow the rules of extended resources
		if !huge && !extended(name) {
			c.checkNative(f, name)
			continue
		}
		page, err := resource.ParseQuantity(size)
		limit, limited := c.limits[name]
		request, requested := c.requests[name]
		why := ""
		switch {
		case !limited:
			why = "it is in requests only, and a limit is required"
		case requested && request.Cmp(limit) != 0:
			why = "its request and its limit differ"
		case limit.MilliValue()%1000 != 0:
			why = "it is not a whole number"
		case limit.Sign() < 0:
			why = "it is negative"
		case huge && err == nil && page.Sign() > 0 && limit.Value()%page.Value() != 0:
			why = "it is not a multiple of the size of a page"
		}
		if why != "" {
			f.Report.Add(raydemand.Error, PodsRefused, f.at("resources", "limits")+"."+name, limit.String(),
				why+", so the API server rejects every pod of the group",
				"set a whole number in limits, and the same or none in requests")
		}
	}
}

// checkNative reports a resource without a domain that containers do not have, such as cpus, a negative amount of a
// native resource, a request above its limit (Kubernetes, ValidateContainerResourceName and
// validateContainerResourceRequirements), and a fraction of a byte.
func (c container) checkNative(f Fields, name string) {
	if !strings.Contains(name, "/") && !slices.Contains([]string{"cpu", "memory", "ephemeral-storage"}, name) {
		section := "limits"
		if _, limited := c.limits[name]; !limited {
			section = "requests"
		}
		f.Report.Add(raydemand.Error, PodsRefused, f.at("resources", section)+"."+name, name,
			"containers have no such resource, so the API server rejects every pod of the group",
			"want cpu, memory, ephemeral-storage, hugepages-SIZE, or a name with a domain such as nvidia.com/gpu")
		return
	}
	limit, limited := c.limits[name]
	for _, section := range []string{"limits", "requests"} {
		list := c.limits
		if section == "requests" {
			list = c.requests
		}
		amount, set := list[name]
		field := f.at("resources", section) + "." + name
		switch {
		case !set:
		case amount.Sign() < 0:
			f.Report.Add(raydemand.Error, PodsRefused, field, amount.String(),
				"it is negative, so the API server rejects every pod of the group", "set 0 or more")
		case limited && limit.Sign() >= 0 && amount.Cmp(limit) > 0:
			f.Report.Add(raydemand.Error, PodsRefused, field, amount.String(),
				"it is above the limit "+limit.String()+", so the API server rejects every pod of the group",
				"set a request of at most the limit, or a higher limit")
		case name != "cpu" && amount.MilliValue()%1000 != 0:
			// The API server warns and rounds up (Kubernetes 1.36, pkg/api/pod/warnings.go).
			f.Report.Add(raydemand.Warning, BytesFractional, field, amount.String(),
				"m means a thousandth, so it is not a whole number of bytes; Kubernetes rounds it up to "+
					strconv.FormatInt(amount.Value(), 10)+" bytes",
				"set "+strings.TrimSuffix(amount.String(), "m")+"Mi if you mean mebibytes")
		}
	}
}
