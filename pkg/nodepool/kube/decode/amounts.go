package decode

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// wantQuantity is what an amount of a node, or of a container, has to be.
const wantQuantity = "a Kubernetes quantity of 0 or more"

// amountFields are the fields in which a node states amounts of resources.
var amountFields = []string{"capacity", "allocatable"}

// withoutUnreadable returns a node without the amounts that are not quantities or are negative, and which ones these
// are. One that is not a quantity would make the whole node undecodable. The object does not change.
func withoutUnreadable(object map[string]any) (readable map[string]any, unreadable []string) {
	status, isObject := object["status"].(map[string]any)
	if !isObject {
		return object, nil
	}
	kept := maps.Clone(status)
	for _, field := range amountFields {
		amounts, isObject := status[field].(map[string]any)
		if !isObject {
			continue
		}
		amounts = maps.Clone(amounts)
		for _, name := range slices.Sorted(maps.Keys(amounts)) {
			if value := amounts[name]; !isQuantity(value) {
				unreadable = append(unreadable, amountText(field, name, fmt.Sprintf("%#v", value), wantQuantity))
				delete(amounts, name)
			}
		}
		kept[field] = amounts
	}
	readable = maps.Clone(object)
	readable["status"] = kept
	return readable, unreadable
}

// isQuantity reports whether a value is a quantity of 0 or more, the only ones that the API server accepts here. Null
// counts as one, and is read as 0.
func isQuantity(value any) bool {
	if value == nil {
		return true
	}
	switch value.(type) {
	case string, int64, float64:
		quantity, err := resource.ParseQuantity(fmt.Sprint(value))
		return err == nil && quantity.Sign() >= 0
	}
	return false
}

// negative reports whether an amount is below 0.
func negative(lists ...corev1.ResourceList) bool {
	for _, list := range lists {
		for _, quantity := range list {
			if quantity.Sign() < 0 {
				return true
			}
		}
	}
	return false
}

func amountText(field, name, seen, want string) string {
	return Short(
		fmt.Sprintf("status.%s[%s] is %s", field, name, seen),
	) + ": want " + want + "; it is ignored"
}

// extendedResources returns the resources with a domain, which come in whole units; nil stays nil. It returns amounts
// that do not fit into 64 bits as unreadable.
func extendedResources(field string, list corev1.ResourceList) (found map[string]int64, unreadable []string) {
	if list == nil {
		return nil, nil
	}
	found = map[string]int64{}
	for name, quantity := range list {
		if !extended(string(name)) {
			continue
		}
		n := quantity.Value()
		if quantity.Cmp(*resource.NewQuantity(n, resource.DecimalSI)) != 0 {
			unreadable = append(unreadable,
				amountText(field, string(name), quantity.String(), "a whole number of units"))
			continue
		}
		found[string(name)] = n
	}
	slices.Sort(unreadable)
	return found, unreadable
}
