package policytext

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAPolicyIsRead(t *testing.T) {
	p, fault := Read([]byte(`{
		"keepWarm": [
			{"group": "gpu", "schedules": [
				{"start": "0 8 * * 1-5", "end": "0 19 * * 1-5", "timeZone": "Europe/Berlin", "count": 4}]},
			{"resources": {"GPU": 0.5}, "slice": {"memory": "10Gi"}, "labelSelectors": [{"zone": "a"}], "count": 2},
			{"slice": {"memory": "20Gi"}, "count": 1}],
		"keepWarmNodes": [{"group": "gpu", "count": 2, "schedules": [{"start": "0 8 * * *", "end": "0 9 * * *", "count": 3}]}],
		"idle": {"suspendAfter": "2h"}}`))
	if fault != nil {
		t.Fatal(fault)
	}
	if len(p.KeepWarm) != 3 || time.Duration(p.Idle.SuspendAfter) != 2*time.Hour {
		t.Fatalf("read %+v", p)
	}
	if n := p.KeepWarmNodes; len(n) != 1 || n[0].Group != "gpu" || n[0].Count != 2 || n[0].Schedules[0].Window == nil {
		t.Errorf("warm nodes %+v", n)
	}
	if got := p.KeepWarm[2].Request(1).Bundle[raydemand.GPU]; got != raydemand.One {
		t.Errorf("a slice alone has %s GPUs, want 1", got)
	}
}

func TestASchedule(t *testing.T) {
	p, fault := Read([]byte(`{"keepWarm": [{"group": "gpu", "count": 1, "schedules": [
		{"start": "0 8 * * 1-5", "end": "0 19 * * 1-5", "timeZone": "Europe/Berlin", "count": 4},
		{"start": "0 22 * * *", "end": "0 6 * * *", "count": 0}]}]}`))
	if fault != nil {
		t.Fatal(fault)
	}
	for _, c := range []struct {
		at   string
		want int64
	}{
		{"2026-11-25T07:59:59+01:00", 1}, // a Wednesday
		{"2026-11-25T08:00:00+01:00", 4},
		{"2026-11-25T18:59:59+01:00", 4},
		{"2026-11-25T19:00:00+01:00", 1},
		{"2026-11-28T12:00:00+01:00", 1}, // a Saturday
		{"2026-11-28T23:00:00Z", 0},      // the window over midnight
		{"2026-11-29T05:59:59Z", 0},
		{"2026-11-29T06:00:00Z", 1},
		{"2026-07-01T06:30:00Z", 4}, // 08:30 in summer
		{"2026-12-01T07:30:00Z", 4}, // 08:30 in winter
		{"2026-12-01T06:30:00Z", 1},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		var got int64
		for _, w := range p.At(at) {
			got = w.Count
		}
		if got != c.want {
			t.Errorf("at %s: %d, want %d", c.at, got, c.want)
		}
	}
}

// A start that comes more often than the end opens no new window, and an end that comes more often than the start opens
// none at all: GPUs would stay warm all weekend.
func TestASchedulesWindowIsFromAStartToTheNextEnd(t *testing.T) {
	for _, c := range []struct {
		start, end, zone, at string
		open                 bool
	}{
		{"0 8 * * 1-5", "0 19 * * *", "UTC", "2026-11-27T18:59:00Z", true}, // a Friday
		{"0 8 * * 1-5", "0 19 * * *", "UTC", "2026-11-27T19:00:00Z", false},
		{"0 8 * * 1-5", "0 19 * * *", "UTC", "2026-11-28T12:00:00Z", false}, // a Saturday
		{"0 8 * * 1-5", "0 19 * * *", "UTC", "2026-11-30T08:00:00Z", true},
		{"0 8 * * *", "0 19 * * 5", "UTC", "2026-11-25T12:00:00Z", true}, // a Wednesday
		{"0 8 * * *", "0 19 * * 5", "UTC", "2026-11-27T20:00:00Z", false},
		{"0 8,12 * * *", "0 19 * * *", "UTC", "2026-11-25T09:00:00Z", true},
		{"* 8 * * *", "* 18 * * *", "UTC", "2026-11-25T12:00:00Z", true},
		{"* 8 * * *", "* 18 * * *", "UTC", "2026-11-25T18:30:00Z", false},
		{"* 8 * * *", "* 18 * * *", "UTC", "2026-11-26T07:59:59Z", false},
		{"0 8 1 1 *", "0 8 2 1 *", "UTC", "2026-11-25T12:00:00Z", false},
		{"0 8 2 1 *", "0 8 1 1 *", "UTC", "2026-11-25T12:00:00Z", true},
		{"0 0 29 2 *", "0 0 1 3 *", "UTC", "2028-02-29T12:00:00Z", true},
		{"0 0 29 2 *", "0 0 1 3 *", "UTC", "2027-12-31T12:00:00Z", false},
		{"0 0 1 3 *", "0 0 29 2 *", "UTC", "2028-02-28T23:59:59Z", true},                 // since 2024
		{"0 1 * * *", "30 2 * * *", "Europe/Berlin", "2026-03-29T12:00:00+02:00", false}, // 02:30 was skipped
		{"30 2 * * *", "0 19 * * *", "Europe/Berlin", "2026-03-29T12:00:00+02:00", true},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		p, fault := Read(fmt.Appendf(nil, `{"keepWarm": [{"group": "gpu", "schedules": [
			{"start": %q, "end": %q, "timeZone": %q, "count": 1}]}]}`, c.start, c.end, c.zone))
		if fault != nil {
			t.Fatal(fault)
		}
		if open := len(p.At(at)) > 0; open != c.open {
			t.Errorf("from %q to %q at %s: open %t, want %t", c.start, c.end, c.at, open, c.open)
		}
	}
}

func TestAFaultNamesFieldValueAndWhatWouldBeRight(t *testing.T) {
	schedule := func(members string) string {
		return `{"keepWarm": [{"group": "gpu", "schedules": [{` + members + `}]}]}`
	}
	for _, c := range []struct{ text, want string }{
		{`[]`, `[]: want a policy such as`},
		{``, `want a policy such as`},
		{`{"keepWarm": [{"group": "gpu", "coun": 1}]}`, `keepWarm[0].coun: unknown key: want count`},
		{`{"keepWarm": [{"count": 1}]}`, `keepWarm[0].group: missing: want the name of a worker group`},
		{`{"keepWarm": [{"group": "gpu", "resources": {"GPU": 1}}]}`, `keepWarm[0].group: "gpu": want either a group or`},
		{`{"keepWarm": [{"group": "gpu", "labelSelectors": []}]}`, `keepWarm[0].labelSelectors: []: want no labelSelectors`},
		{`{"keepWarm": [{"resources": {"GPU": 0}, "count": 1}]}`, `keepWarm[0].resources: {"GPU":0}: want amounts above 0`},
		{`{"keepWarm": [{"resources": {"GPU": -1}, "count": 1}]}`, `keepWarm[0].resources: {"GPU":-1}: want amounts`},
		{`{"keepWarm": [{"slice": {"memory": "much"}, "count": 1}]}`, `keepWarm[0].slice.memory: "much": want`},
		{`{"keepWarm": [{"group": "gpu", "count": -1}]}`, `keepWarm[0].count: -1: want a whole number from 0 to 10000`},
		{`{"keepWarm": [{"group": "gpu", "count": 1, "count": 2}]}`, `keepWarm[0].count: repeated key`},
		{schedule(`"start": "8:00", "end": "0 19 * * *", "count": 1`), `schedules[0].start: "8:00": want a cron expression`},
		{schedule(`"start": "TZ=0", "end": "0 19 * * *", "count": 1`), `schedules[0].start: "TZ=0": want a cron expression`},
		{schedule(`"start": "@daily", "end": "0 19 * * *", "count": 1`), `schedules[0].start: "@daily": want a cron`},
		{schedule(`"start": "0 8 30 2 *", "end": "0 19 * * *", "count": 1`), `this one never comes`},
		{schedule(`"start": "0 8 * * *", "count": 1`), `schedules[0].end: missing: want a cron expression`},
		{schedule(`"start": "0 8 * * *", "end": "0 8 * * *", "count": 1`), `schedules[0].end: "0 8 * * *": want another time`},
		{schedule(`"start": "0 8 * * 1-5", "end": "00 8  * * 1,2,3,4,5", "count": 1`), `want another time than start`},
		{schedule(`"start": "0 8 * * *", "end": "0 9 * * *"`), `schedules[0].count: missing: want a whole number`},
		{
			schedule(`"start": "0 8 * * *", "end": "0 9 * * *", "count": 1, "timeZone": "Mars"`),
			`schedules[0].timeZone: "Mars": want an IANA time zone`,
		},
		{
			schedule(`"start": "0 8 * * *", "end": "0 9 * * *", "count": 1, "timeZone": "Local"`),
			`schedules[0].timeZone: "Local": want an IANA time zone`,
		},
		{`{"keepWarmNodes": [{"count": 1}]}`, `keepWarmNodes[0].group: missing: want the name of a worker group, whose pods`},
		{`{"keepWarmNodes": [{"group": "gpu", "resources": {"GPU": 1}}]}`, `keepWarmNodes[0].resources: unknown key`},
		{`{"keepWarmNodes": [{"group": "gpu", "count": -1}]}`, `keepWarmNodes[0].count: -1: want a whole number from 0 to 10000`},
		{`{"idle": {"suspendAfter": "5m"}}`, `idle.suspendAfter: "5m": want a duration such as 2h, at least 10m`},
		{`{"idle": {"suspendAfter": "99999h"}}`, `idle.suspendAfter: "99999h": want a duration such as 2h, at least 10m and at most 87600h`},
		{`{"keepWarm": [` + strings.Repeat(`{"group": "a"},`, 32) + `{"group": "a"}]}`, `keepWarm: `},
		{`{"keepWarm": "` + strings.Repeat("x", MaxBytes) + `"}`, `want at most 65536`},
	} {
		_, fault := Read([]byte(c.text))
		if fault == nil {
			t.Errorf("%s: no fault, want %s", c.text, c.want)
		} else if !strings.Contains(fault.Error(), c.want) {
			t.Errorf("%.200s: %v; want %s", c.text, fault, c.want)
		}
	}
}
