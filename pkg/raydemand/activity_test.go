package raydemand

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadActivityTellsTheCausesApart(t *testing.T) {
	for _, test := range []struct {
		texts []string
		want  Activity
	}{
		{nil, Activity{}},
		{[]string{"Busy workers on node.", "Resource: my slot currently in use.", "Resource: CPU currently in use."},
			Activity{Workers: true, Resources: []string{"CPU", "my slot"}}},
		{[]string{"Pulling task arguments.", "Resource: object_store_memory currently in use."},
			Activity{Arguments: true, Objects: true}},
		{[]string{"Resource: CPU", "Busy raylet."}, Activity{Unknown: []string{"Resource: CPU", "Busy raylet."}}},
	} {
		if diff := cmp.Diff(test.want, ReadActivity(test.texts)); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", test.texts, diff)
		}
	}
}
