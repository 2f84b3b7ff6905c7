package dra

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Claims are what pods ask for. They are immutable.
type Claims struct {
	// templates are the units that a claim of a ResourceClaimTemplate takes.
	templates map[types.NamespacedName]landing.Quantities
	// absent is the DeviceClass that does not exist and that a claim for one unit of this resource requests.
	absent map[string]string
}

// asked are Claims with the claim for one unit of each resource. wishes are what the claims request, as far as they are
// compared, and wishAt says by key where each is.
type asked struct {
	Claims
	asks   map[string]*ask
	wishes []wish
	wishAt map[string]int
}

// ask is the claim for one unit of a resource. text is equal for equal claims.
type ask struct {
	text     string
	claim    resourcev1.ResourceClaimSpec
	requests [][]wish
	// stopped is on how many nodes the search for devices took too much work.
	stopped int
	// class is the DeviceClass by whose name pods ask; empty for a claim of a template.
	class string
}

// Claims returns what pods ask for.
func (o *Objects) Claims() Claims { return o.pods().Claims }

// pods computes what pods ask for, once. Of the classes with one extended name, the newest counts, then the first by
// name (docs/reference/facts.md#extended-names-of-deviceclasses). Equal claims are units of one resource.
func (o *Objects) pods() *asked {
	if o.asked != nil {
		return o.asked
	}
	all := &asked{
		Claims: Claims{map[types.NamespacedName]landing.Quantities{}, map[string]string{}},
		asks:   map[string]*ask{}, wishAt: map[string]int{},
	}
	classes, _ := o.List()
	slices.SortFunc(classes, func(a, b *resourcev1.DeviceClass) int {
		if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
			return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
		}
		return strings.Compare(b.Name, a.Name)
	})
	byText := map[string]string{}
	for _, class := range classes {
		claim := oneOf(class.Name)
		resource, asked := gpuinfo.ClassPrefix+class.Name, &ask{text: claim.String(), claim: claim, class: class.Name}
		if name := class.Spec.ExtendedResourceName; name != nil {
			all.asks[*name] = asked
		}
		all.asks[resource], byText[asked.text] = asked, resource
	}
	for _, template := range slices.SortedFunc(maps.Keys(o.templates), byName) {
		claim, units := unitOf(withDefaults(o.templates[template].Spec.Spec))
		text := claim.String()
		resource, known := byText[text]
		if !known {
			resource = gpuinfo.ClaimPrefix + template.Namespace + "." + template.Name
			all.asks[resource], byText[text] = &ask{text: text, claim: claim}, resource
			if class := o.absentClass(claim); class != "" {
				all.absent[resource] = class
			}
		}
		all.templates[template] = landing.Quantities{resource: raydemand.Whole(units)}
	}
	for _, name := range slices.Sorted(maps.Keys(all.asks)) {
		asked := all.asks[name]
		asked.requests = wishesOf(asked.claim)
		for _, w := range slices.Concat(asked.requests...) {
			if _, known := all.wishAt[w.key]; !known && len(all.wishes) < mostWishes {
				all.wishAt[w.key], all.wishes = len(all.wishes), append(all.wishes, w)
			}
		}
	}
	o.asked = all
	return all
}

// absentClass returns a DeviceClass that a claim requests, also as an alternative, and that does not exist: the
// scheduler then places no pod with the claim. It returns the empty text if all exist or DeviceClasses are not known.
func (o *Objects) absentClass(claim resourcev1.ResourceClaimSpec) string {
	for _, request := range claim.Devices.Requests {
		for _, other := range alternativesOf(request) {
			if _, known := o.classes[other.DeviceClassName]; !known && o.classes != nil {
				return other.DeviceClassName
			}
		}
	}
	return ""
}

// alternativesOf returns what a request takes: one of these.
func alternativesOf(request resourcev1.DeviceRequest) []resourcev1.DeviceSubRequest {
	if e := request.Exactly; e != nil {
		return []resourcev1.DeviceSubRequest{{DeviceClassName: e.DeviceClassName, Selectors: e.Selectors,
			AllocationMode: e.AllocationMode, Count: e.Count, Tolerations: e.Tolerations}}
	}
	return request.FirstAvailable
}

// unitOf returns the claim for one device, and how many of these a claim is: devices of one request without constraints
// are independent. All other claims are one unit. What only configures devices does not count.
func unitOf(claim resourcev1.ResourceClaimSpec) (unit resourcev1.ResourceClaimSpec, units int64) {
	claim.Devices.Config = nil
	if len(claim.Devices.Requests) != 1 || len(claim.Devices.Constraints) > 0 {
		return claim, 1
	}
	request := &claim.Devices.Requests[0]
	request.Name, units = unitName, 1
	if one := request.Exactly; one != nil && one.AllocationMode == resourcev1.DeviceAllocationModeExactCount {
		units, one.Count = one.Count, 1
	}
	return claim, units
}

const unitName = "unit"

// withDefaults sets what the API server sets, because a manifest may lack it.
func withDefaults(claim resourcev1.ResourceClaimSpec) resourcev1.ResourceClaimSpec {
	claim = *claim.DeepCopy()
	set := func(mode *resourcev1.DeviceAllocationMode, count *int64) {
		*mode = cmp.Or(*mode, resourcev1.DeviceAllocationModeExactCount)
		if *mode == resourcev1.DeviceAllocationModeExactCount {
			*count = cmp.Or(*count, 1)
		}
	}
	for i := range claim.Devices.Requests {
		request := &claim.Devices.Requests[i]
		if request.Exactly != nil {
			set(&request.Exactly.AllocationMode, &request.Exactly.Count)
		}
		for j := range request.FirstAvailable {
			set(&request.FirstAvailable[j].AllocationMode, &request.FirstAvailable[j].Count)
		}
	}
	return claim
}

func oneOf(class string) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
		Name: unitName, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class,
			AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
	}}}}
}

// ClaimsUnbounded says that no plan counts the devices that a group's pods get by ResourceClaims.
const ClaimsUnbounded = "claims-unbounded"

// AddTo adds to what a pod requests what its claims of ResourceClaimTemplates take, and returns the claims that stay
// uncounted. Shapes share their maps, so it copies them.
func (c Claims) AddTo(namespace string, pod *landing.PodShape) (uncounted []string) {
	requests, absent := maps.Clone(pod.Requests), maps.Clone(pod.AbsentClasses)
	for _, template := range pod.ClaimTemplates {
		units, known := c.templates[types.NamespacedName{Namespace: namespace, Name: template}]
		for resource, n := range units {
			requests[resource] = requests[resource].Plus(n)
			if class := c.absent[resource]; class != "" {
				if absent == nil {
					absent = map[string]string{}
				}
				absent[resource] = class
			}
		}
		switch {
		case known:
		case template == "":
			uncounted = append(uncounted, "a claim that all pods share")
		default:
			uncounted = append(uncounted, "ResourceClaimTemplate "+template)
		}
	}
	if len(pod.ClaimTemplates) == len(uncounted) {
		return uncounted
	}
	pod.Requests, pod.AbsentClasses = requests, absent
	return uncounted
}

// AddToGroups is AddTo for the pods of all groups of a RayCluster. It returns a finding for each group with claims that
// stay uncounted.
func (c Claims) AddToGroups(cluster *nodepool.Cluster) (findings []raydemand.Finding) {
	for i := range cluster.Groups {
		group := &cluster.Groups[i]
		uncounted := c.AddTo(cluster.Key.Namespace, &group.Pod)
		if len(uncounted) == 0 {
			continue
		}
		slices.Sort(uncounted)
		findings = append(findings, raydemand.Finding{
			Code: ClaimsUnbounded, Severity: raydemand.Info, Object: "RayCluster " + cluster.Key.String(),
			Field: fmt.Sprintf("spec.workerGroupSpecs[%d].template.spec.resourceClaims", group.Index),
			Seen:  strings.Join(slices.Compact(uncounted), ", "),
			Why: "plans do not compare what the claim requests with the devices of the nodes, because its template " +
				"is not known or all pods share it; they may launch pods that find no device",
			Fix: "let Heliostat read resourceclaimtemplates of resource.k8s.io, or set maxReplicas to the number of " +
				"pods for which there are devices",
		})
	}
	return findings
}
