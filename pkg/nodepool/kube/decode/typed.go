package decode

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"heliostat.dev/heliostat/internal/fieldpath"
)

// Typed decodes an object into a pointer to its Go type. If a value has another type than the field takes, or an amount
// is below 0, it returns all such values, each with its field and what would be right.
func Typed(object map[string]any, into any) (unreadable []string) {
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, into)
	if unreadable = typeFaults(object, into); len(unreadable) == 0 && err != nil {
		return []string{err.Error()}
	}
	return unreadable
}

// fromJSON decodes an object by its JSON form. The error names the field whose value has another type than in T.
func fromJSON[T any](object map[string]any) (*T, error) {
	into := new(T)
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err == nil {
		return into, nil
	}
	if faults := typeFaults(object, into); len(faults) > 0 {
		return nil, errors.New(faults[0])
	}
	return nil, err
}

func typeFaults(object map[string]any, into any) (faults []string) {
	checkType(fieldpath.Of(object, func(f fieldpath.Fault) {
		faults = append(faults, fmt.Sprintf("%s is %s: want %s", f.Path, f.Value, f.Want))
	}), reflect.TypeOf(into))
	return faults
}

// ownJSON says what types with a JSON form of their own want.
var ownJSON = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():  wantQuantity,
	reflect.TypeFor[metav1.Time]():        "a time such as 2026-01-31T12:00:00Z",
	reflect.TypeFor[metav1.MicroTime]():   "a time such as 2026-01-31T12:00:00.000000Z",
	reflect.TypeFor[intstr.IntOrString](): "a whole number or a string",
}

// checkType reports what is not of a Go type, by its JSON tags, to the function of the value that takes faults.
func checkType(v fieldpath.Value, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !v.Has() {
		return
	}
	if made, own := reflect.New(t).Interface().(json.Unmarshaler); own {
		text, err := json.Marshal(v.Raw())
		amount := t == reflect.TypeFor[resource.Quantity]()
		if want := ownJSON[t]; want != "" && (err != nil || made.UnmarshalJSON(text) != nil ||
			amount && !isQuantity(v.Raw())) {
			v.Fault(want)
		}
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		if v.Members() == nil {
			return
		}
		for i := range t.NumField() {
			f := t.Field(i)
			switch key, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
			case key == "" && f.Anonymous:
				checkType(v, f.Type)
			case key != "" && key != "-":
				checkType(v.Get(key), f.Type)
			}
		}
	case reflect.Map:
		for _, key := range v.Keys() {
			checkType(v.Get(key), t.Elem())
		}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			v.Text()
			return
		}
		for _, item := range v.Items() {
			checkType(item, t.Elem())
		}
	case reflect.String:
		v.Text()
	case reflect.Bool:
		v.Flag()
	case reflect.Int32:
		v.Int32()
	case reflect.Int, reflect.Int64:
		v.Whole()
	}
}
