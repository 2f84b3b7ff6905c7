package snapshotfile

import (
	"cmp"
	"reflect"
	"time"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Exportable returns s within the bounds of ReadSnapshot; s itself does not change. A live cluster may have negative or
// huge numbers. No decision depends on how far they exceed a bound, so Heliostat decides, and replays the decision,
// with the bound. A word that is not valid becomes empty.
func Exportable(s model.Snapshot) model.Snapshot {
	v, _ := bounded(reflect.ValueOf(&s).Elem(), &fieldRule{})
	return v.Interface().(model.Snapshot)
}

// bounded returns v within the bounds of a rule and of its fields. It returns v itself if nothing has to change, and
// else a copy that shares what does not change.
func bounded(v reflect.Value, rule *fieldRule) (made reflect.Value, changed bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if of, differs := bounded(v.Elem(), rule); differs {
			return of.Addr(), true
		}
		return v, false
	case reflect.Struct:
		return boundedFields(v)
	case reflect.Slice:
		made = v
		for i := range v.Len() {
			of, differs := bounded(v.Index(i), rule)
			if of.Kind() == reflect.Map && of.IsNil() {
				of, differs = reflect.MakeMap(of.Type()), true // a bundle of a gang
			}
			if differs && !changed {
				made, changed = reflect.MakeSlice(v.Type(), v.Len(), v.Len()), true
				reflect.Copy(made, v)
			}
			if differs {
				made.Index(i).Set(of)
			}
		}
		return made, changed
	case reflect.Map:
		if rule.AllowsAll(v) {
			return v, false
		}
		made = reflect.MakeMap(v.Type())
		for each := v.MapRange(); each.Next(); {
			of, _ := bounded(each.Value(), rule)
			made.SetMapIndex(each.Key(), of)
		}
		return made, true
	}
	if rule.Allows(v) {
		return v, false
	}
	made = copied(v)
	rule.Bound(made)
	return made, true
}

func boundedFields(v reflect.Value) (made reflect.Value, changed bool) {
	switch v.Addr().Interface().(type) {
	case *time.Time, *raydemand.SliceRequirement, *raydemand.Constraint:
		return v, false
	}
	made = v
	fields := fieldsOf(v.Type())
	for i := range fields {
		f := &fields[i]
		if f.Free {
			continue
		}
		field := v.FieldByIndex(f.Index)
		if field.IsZero() && f.Rule.Least <= 0 {
			continue
		}
		if of, differs := bounded(field, &f.Rule); differs {
			if !changed {
				made, changed = copied(v), true
			}
			made.FieldByIndex(f.Index).Set(of)
		}
	}
	switch part := made.Addr().Interface().(type) {
	case *model.Group:
		if part.Resources == nil {
			sound := *part
			sound.Resources = raydemand.Bundle{}
			return reflect.ValueOf(&sound).Elem(), true
		}
	case *raydemand.Request:
		if part.Bundle == nil {
			sound := *part
			sound.Bundle = raydemand.Bundle{}
			return reflect.ValueOf(&sound).Elem(), true
		}
	case *model.Slice:
		if sound := soundSlice(*part); sound != *part {
			return reflect.ValueOf(&sound).Elem(), true
		}
	}
	return made, changed
}

// copied returns a copy that can be set.
func copied(v reflect.Value) reflect.Value {
	made := reflect.New(v.Type()).Elem()
	made.Set(v)
	return made
}

// soundSlice removes the product if it does not have the profile: one of the two was misread.
func soundSlice(s model.Slice) model.Slice {
	s.Kind, s.Isolation = cmp.Or(s.Kind, gpuinfo.UnknownKind), cmp.Or(s.Isolation, gpuinfo.UnknownIsolation)
	if s.Profile == "" {
		return s
	}
	profile, err := gpuinfo.ParseProfile(s.Profile)
	if product, known := gpuinfo.ProductOf(s.Product); err != nil {
		s.Profile = ""
	} else if known && !product.Has(profile) {
		s.Product = ""
	}
	return s
}
