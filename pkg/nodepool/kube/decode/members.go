package decode

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
)

// members are the fields that an object of a configuration file may have, each with where its value goes.
type members map[string]any

// readMembers reads an object all of whose fields must be known. All that can be read is read, and the error is about
// the first field that cannot: it names the field, its value and what would be right.
func readMembers(object json.RawMessage, known members) error {
	var found map[string]json.RawMessage
	if err := json.Unmarshal(object, &found); err != nil {
		return fmt.Errorf("%s: want an object with %s", fieldpath.Excerpt(string(object), mostShown), known)
	}
	var first error
	for _, name := range slices.Sorted(maps.Keys(found)) {
		into, ok := known[name]
		var err error
		if !ok {
			err = fmt.Errorf("unknown field %q: want %s", name, fieldpath.WantName(name, known.names()))
		} else if json.Unmarshal(found[name], into) != nil {
			shown := fieldpath.Excerpt(string(found[name]), mostShown)
			err = fmt.Errorf("%s: %s: want %s", name, shown, fieldpath.WantType(reflect.TypeOf(into).Elem()))
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// String lists the names.
func (m members) String() string { return strings.Join(m.names(), ", ") }

func (m members) names() []string { return slices.Sorted(maps.Keys(m)) }

// mostShown bounds in bytes what an error shows of a value.
const mostShown = 60
