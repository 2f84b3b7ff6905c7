package docs

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

func TestGPUsListsXIDsWithTheirEffect(t *testing.T) {
	got := map[bool][]uint64{}
	table := between(t, "docs/reference/gpus.md", "| XIDs | are |", "\n\n")
	for _, row := range regexp.MustCompile(`(?m)^\| ([\d, ]+) \| (\w+)`).FindAllStringSubmatch(table, -1) {
		for number := range strings.SplitSeq(row[1], ", ") {
			n, err := strconv.ParseUint(number, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			got[row[2] == "fatal"] = append(got[row[2] == "fatal"], n)
		}
	}
	slices.Sort(got[false])
	want := map[bool][]uint64{}
	for number := range uint64(1000) {
		if xid, judged := gpuinfo.XIDOf(number); judged {
			want[xid.Fatal] = append(want[xid.Fatal], number)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("XIDs, by whether they are fatal (-source +docs):\n%s", diff)
	}
}
