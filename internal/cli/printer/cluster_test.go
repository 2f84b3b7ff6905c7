package printer

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

func TestAListNamesShardsWhereThereAreSome(t *testing.T) {
	for _, test := range []struct {
		shards []string
		header string
		lines  []string
	}{
		{[]string{"", ""}, "DATA  STATUS", nil},
		{[]string{"heliostat-a", ""}, "SHARD", []string{"heliostat-a", "c1"}},
	} {
		var list apiv1.ClusterList
		for i, shard := range test.shards {
			list.Items = append(list.Items, apiv1.ClusterSummary{Namespace: "ml", Name: "c" + string(rune('0'+i)), Shard: shard})
		}
		var out strings.Builder
		if err := WriterOf("table", Look{}, func(p *Page, list apiv1.ClusterList) { WriteFleet(p, "", list) })(&out, list); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		if !strings.Contains(lines[0], test.header) {
			t.Errorf("shards %q: the header is %q, want %q in it", test.shards, lines[0], test.header)
		}
		for i, want := range test.lines {
			if !strings.Contains(lines[1+i], want) {
				t.Errorf("line %d is %q, want %q in it", 1+i, lines[1+i], want)
			}
		}
	}
}
