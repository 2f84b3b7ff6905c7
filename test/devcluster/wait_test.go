package devcluster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAWaitIsReportedEvery15Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		c := &Cluster{options: Options{Out: &out}}
		done := c.Awaiting("etcd")
		time.Sleep(31 * time.Second)
		done()
		time.Sleep(time.Minute)
		if want := "waiting for etcd, 15 s so far\nwaiting for etcd, 30 s so far\n"; out.String() != want {
			t.Errorf("told %q, want %q", out.String(), want)
		}
	})
}
