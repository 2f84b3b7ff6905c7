package snapshotfile

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// fieldRule says what a field of a snapshot may hold beyond what its Go type says. It applies to a number or a word, or
// to those in a list or map.
type fieldRule struct {
	// Least and Most bound a number. If both are 0, the bounds are those of boundsOf.
	Least, Most int64
	// Default is a number that replaces an absent one.
	Default int64
	// Words are the only words that are valid. The empty word stands for absence.
	Words []string
	// Required: the field must be there, and not be empty.
	Required bool
	// Want says what would be right if the field is absent; for a word, also if it is wrong.
	Want string
	// Unique: no other element of a list has the same.
	Unique bool
	// valid describes all valid numbers or words.
	valid string
}

// mostAmount is 100 TiB in bytes. The sum of a gang's bundles must not saturate: two gangs would look alike.
const mostAmount = int64(100 << 40 * raydemand.One)

// mostSliceMiB is raydemand.MaxSliceMemory in MiB.
const mostSliceMiB = raydemand.MaxSliceMemory >> 20

// rules are those of the fields whose type does not say everything, by the name of the struct and the JSON key.
var rules = map[string]fieldRule{
	"Snapshot.upscalingMode": {Words: []string{"Default", "Aggressive", "Conservative"}},
	"Snapshot.isolation":     {Words: words(nodepool.RequireHardware, nodepool.RequireLimit, nodepool.AnyIsolation)},
	"Policy.shapes":          {Most: math.MaxInt32},

	"Group.name":              {Required: true, Unique: true, Want: "the worker group's name"},
	"Group.maxReplicas":       {Most: math.MaxInt32, Default: math.MaxInt32}, // KubeRay's default
	"Group.numOfHosts":        {Least: 1, Most: nodepool.MostHosts, Default: 1},
	"Group.priority":          {Least: math.MinInt32, Most: math.MaxInt32},
	"Group.price":             {Most: 1e9},
	"Group.cloudAvailability": {Most: 1},
	"Group.recoverableScore":  {Most: 1},
	"NodeFit.verdict": {Required: true,
		Words: words(landing.Trying, landing.Waiting, landing.Nowhere, landing.Limited)},
	"Announced.name": {Required: true, Unique: true,
		Want: "a label's key, or accelerator_type: with its colon"},
	"Slice.kind": {Words: words(gpuinfo.Whole, gpuinfo.WholeUnproven, gpuinfo.MIG, gpuinfo.MIGUnproven,
		gpuinfo.TimeSliced, gpuinfo.MPS, gpuinfo.GPUMemory, gpuinfo.VGPU, gpuinfo.UnknownKind)},
	"Slice.isolation": {
		Words: words(gpuinfo.Hardware, gpuinfo.Limit, gpuinfo.NoIsolation, gpuinfo.UnknownIsolation),
	},
	"Slice.memoryMiB":       {Most: mostSliceMiB},
	"Slice.computeFraction": {Most: 1},
	"GroupPool.name":        {Unique: true},
	"GroupPool.units":       {Most: math.MaxInt32},

	"Node.pod": {Unique: true},
	"Node.state": {
		Words: words(model.Running, model.Idle, model.Pending, model.AllocationTimeout, model.Leaving)},
	"Node.guard":   {Words: []string{nodepool.GuardedByHeliostat, nodepool.GuardedByUser}},
	"Node.refused": {Most: mostAmount},
	"State.stage": {Required: true, Words: words(arrival.Stages...),
		Want: "a stage such as node-launched or joining-ray"},

	"Request.resources": {Required: true, Most: mostAmount, Want: `an object of amounts such as {"CPU": 1}`},
	"Request.count":     {Required: true, Least: 1, Most: model.MaxCount, Want: "how many of them wait, at least 1"},
	"Gang.id":           {Unique: true},
	"Gang.strategy": {Required: true,
		Words: words(raydemand.Pack, raydemand.Spread, raydemand.StrictPack, raydemand.StrictSpread)},
	"Gang.bundles":         {Required: true, Most: mostAmount, Want: "at least one bundle"},
	"Gang.fallbackBundles": {Most: mostAmount},
	"Owned.id":             {Required: true, Unique: true, Want: "the request's name"},
	"WarmEntry.name":       {Required: true, Unique: true, Want: "a name such as keepWarm[0]"},
	"WarmEntry.resources":  {Most: mostAmount},
	"WarmEntry.count": {Required: true, Least: 1, Most: capacity.MaxCount,
		Want: "how many are free, at least 1"},

	"Place.node":                {Unique: true},
	"Place.cardOrder":           {Words: []string{sharing.FullestCard, sharing.EmptiestCard, sharing.LastCard}},
	"Part.cores":                {Most: 100},
	"CardRequest.memoryPercent": {Most: 100},
	"Promise.rayCluster":        {Required: true, Want: "the namespace and name of a RayCluster"},
	"Promise.pod": {Required: true,
		Want: `an object such as {"name": "ns/cluster/group", "requests": {"nvidia.com/gpu": 1}}`},
	"Quota.name":     {Required: true, Want: "what grants the quota"},
	"Quota.resource": {Required: true, Want: "the name of a resource"},
	"Quota.amount":   {Required: true},
}

func words[T ~string](of ...T) []string {
	texts := make([]string, len(of))
	for i, each := range of {
		texts[i] = string(each)
	}
	return texts
}

// boundsOf returns the bounds of numbers without bounds of their own. MaxInt32 is the largest number that a RayCluster
// can hold; users write it for never.
func boundsOf(t reflect.Type) (least, most int64) {
	switch {
	case t == reflect.TypeFor[raydemand.Amount]():
		return 0, int64(raydemand.MaxAmount)
	case t.Kind() == reflect.Int32:
		return math.MinInt32, math.MaxInt32
	case t.Kind() == reflect.Int64:
		return 0, model.MaxCount
	}
	return 0, math.MaxInt32
}

// complete returns the rule with the bounds of a type and the description of what is valid.
func (r fieldRule) complete(t reflect.Type) fieldRule {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if r.Least == 0 && r.Most == 0 {
		r.Least, r.Most = boundsOf(t)
	}
	switch {
	case t == reflect.TypeFor[raydemand.Amount]():
		r.valid = fmt.Sprintf("an amount from 0 to %s, to four decimal places", raydemand.Amount(r.Most))
	case t.Kind() == reflect.Float64:
		r.valid = "a number from 0 to " + strconv.FormatInt(r.Most, 10)
	case t.Kind() == reflect.String && len(r.Words) > 0:
		last := len(r.Words) - 1
		r.valid = cmp.Or(r.Want, strings.Join(r.Words[:last], ", ")+" or "+r.Words[last])
	default:
		r.valid = fmt.Sprintf("a whole number from %d to %d", r.Least, r.Most)
	}
	return r
}

// Allows reports whether a number or a word is valid.
func (r *fieldRule) Allows(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		return v.Int() >= r.Least && v.Int() <= r.Most
	case reflect.Float64:
		return v.Float() >= float64(r.Least) && v.Float() <= float64(r.Most) // false for NaN
	case reflect.String:
		return len(r.Words) == 0 || v.Len() == 0 || slices.Contains(r.Words, v.String())
	}
	return true
}

// field is a field of a struct of a snapshot in its JSON form.
type field struct {
	Key   string
	Index []int
	// Omitted: JSON leaves the field out if it is empty.
	Omitted bool
	Rule    fieldRule
}

var knownFields sync.Map // of []field by reflect.Type

// fieldsOf returns the fields of a struct that its JSON form has, also those of embedded structs, in order.
func fieldsOf(t reflect.Type) []field {
	if known, ok := knownFields.Load(t); ok {
		return known.([]field)
	}
	var fields []field
	for _, f := range reflect.VisibleFields(t) {
		key, options, tagged := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" || key == "-" || !f.IsExported() {
			continue
		}
		owner := t
		if up := f.Index[:len(f.Index)-1]; len(up) > 0 {
			owner = t.FieldByIndex(up).Type
		}
		rule := rules[owner.Name()+"."+key].complete(f.Type)
		fields = append(fields, field{key, f.Index, tagged && options == "omitempty", rule})
	}
	knownFields.Store(t, fields)
	return fields
}

// newValue returns a new value of a type, with the defaults of its fields if it is a struct.
func newValue(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() {
		return v
	}
	for _, f := range fieldsOf(t) {
		if f.Rule.Default != 0 {
			v.FieldByIndex(f.Index).SetInt(f.Rule.Default)
		}
	}
	return v
}
