package engine

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// TestTheLoopIsTestedWithTheRowsOfServe compares the rows of addons.go with those that the tests of the loop have.
func TestTheLoopIsTestedWithTheRowsOfServe(t *testing.T) {
	rows := func(path string) (names []string) {
		source, err := os.ReadFile(path)
		must(t, err)
		for _, row := range regexp.MustCompile(`(?m)^\t\t([a-z]+\.[A-Z]\w*)\(.*\),$`).FindAllSubmatch(source, -1) {
			names = append(names, string(row[1]))
		}
		return names
	}
	serve, loop := rows("addons.go"), rows("../../../internal/controller/features_test.go")
	if len(serve) < 6 || !slices.Equal(serve, loop) {
		t.Errorf("serve has the features %v, tests of the loop have %v, want the same in the same order", serve, loop)
	}
}

func TestServeFindsTheAPIServerAsKubectlDoesAndASidecarOnlyItsPods(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	const kubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: s, cluster: {server: https://named.example}}]\ncontexts: [{name: c, context: {cluster: s}}]\n"
	named := filepath.Join(t.TempDir(), "config")
	must(t, os.WriteFile(named, []byte(kubeconfig), 0o600))
	for _, c := range []struct {
		env, flag string
		form      controller.Form
		want      string
	}{
		{named, "", controller.Fleet, "https://named.example"},
		{"", named, controller.Fleet, "https://named.example"},
		{"", named, controller.Sidecar, "https://named.example"},
		{named, "", controller.Sidecar, "finding the API server: "},
		{"/does/not/exist", "", controller.Fleet, "finding the API server: "},
	} {
		t.Setenv("KUBECONFIG", c.env)
		o := options{kubeconfig: c.flag, loop: controller.Config{Form: c.form}}
		config, err := o.restConfig()
		got := fmt.Sprint(err)
		if err == nil {
			got = config.Host
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("KUBECONFIG=%q --kubeconfig=%q %v: %s, want %s", c.env, c.flag, c.form, got, c.want)
		}
	}
}

func TestFlagsThatWouldLetAnybodyInOrDoNotGoTogetherAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		options portFlags
		want    string
	}{
		"as it comes":                      {portFlags{REST: "127.0.0.1:8090"}, ""},
		"beyond loopback":                  {portFlags{REST: ":8090"}, ""},
		"nobody asked on loopback":         {portFlags{REST: "localhost:8090", noAuth: true}, ""},
		"nobody asked and nothing served":  {portFlags{noAuth: true}, ""},
		"nobody asked beyond loopback":     {portFlags{REST: ":8090", noAuth: true}, "let anybody who reaches :8090"},
		"nobody asked on a name":           {portFlags{REST: "host:8090", noAuth: true}, "let anybody"},
		"nobody asked but for an audience": {portFlags{REST: "[::1]:1", noAuth: true, audiences: []string{"heliostat"}}, "it cannot be combined with"},
		"a certificate without a key":      {portFlags{cert: "a"}, `--tls-cert-file "a", --tls-key-file "": a certificate and its key go together`},
		"profiles on loopback":             {portFlags{pprof: "localhost:6060"}, ""},
		"profiles beyond loopback":         {portFlags{pprof: ":6060"}, `--pprof-bind-address ":6060": profiles reveal memory`},
	} {
		err := test.options.Validate()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestTokensInClearTextAreToldBeyondLoopbackAlone(t *testing.T) {
	for listen, want := range map[string]bool{"127.0.0.1:8090": false, "localhost:8090": false, "": false, ":8090": true, "10.0.0.1:8090": true} {
		for _, cert := range []string{"", "a"} {
			var log bytes.Buffer
			f := portFlags{REST: listen, cert: cert}
			f.warn(slog.New(slog.NewTextHandler(&log, nil)))
			if told := strings.Contains(log.String(), "clear text"); told != (want && cert == "") {
				t.Errorf("%q with certificate %q: told %v", listen, cert, told)
			}
		}
	}
}

func TestOtherCopiesCallTheAddressThatIsAdvertisedWhereItIsListenedTo(t *testing.T) {
	for _, test := range []struct {
		options portFlags
		want    string
	}{
		{portFlags{REST: ":8090", Advertised: "10.1.2.3"}, "10.1.2.3:8090"},
		{portFlags{REST: "0.0.0.0:8443", Advertised: "10.1.2.3"}, "10.1.2.3:8443"},
		{portFlags{REST: "[::]:8090", Advertised: "fd00::1"}, "[fd00::1]:8090"},
		{portFlags{REST: "10.1.2.3:8090", Advertised: "10.1.2.3"}, "10.1.2.3:8090"},
		{portFlags{REST: "127.0.0.1:8090", Advertised: "10.1.2.3"}, ""},
		{portFlags{REST: "localhost:8090", noAuth: true, Advertised: "10.1.2.3"}, ""},
		{portFlags{REST: ":8090"}, ""},
		{portFlags{Advertised: "10.1.2.3"}, ""},
	} {
		if got := test.options.PeerAddress(); got != test.want {
			t.Errorf("%+v is called at %q, want %q", test.options, got, test.want)
		}
	}
	if err := (&portFlags{Advertised: "leader.example"}).Validate(); err == nil || !strings.Contains(err.Error(), "want an IP address") {
		t.Errorf("a name is Advertised: %v", err)
	}
}

func TestTheMemoryLimitOfTheContainerIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "memory.max")
	for text, want := range map[string]int64{"1073741824\n": 1 << 30, "max\n": math.MaxInt64, "": math.MaxInt64} {
		must(t, os.WriteFile(file, []byte(text), 0o600))
		if got := containerMemory(file); got != want {
			t.Errorf("%q: the limit is %d, want %d", text, got, want)
		}
	}
	if got := containerMemory("/nowhere/at/all"); got != math.MaxInt64 {
		t.Errorf("outside a container, the limit is %d", got)
	}
}

func TestTheRuntimeMayTakeMoreThanWhatLivesAndLessThanTheContainerHas(t *testing.T) {
	for _, c := range []struct {
		live, beside uint64
		container    int64
		want         int64
	}{
		{20 << 20, 10 << 20, math.MaxInt64, calmMemory},
		{20 << 20, 10 << 20, 100 << 20, 94371840}, // 90 MiB
		{100 << 20, 0, math.MaxInt64, 200 << 20},
		{400 << 20, 0, math.MaxInt64, 640 << 20},
		{400 << 20, 100 << 20, math.MaxInt64, 740 << 20},
		{1000 << 20, 0, math.MaxInt64, 1600 << 20},
		{400 << 20, 100 << 20, 500 << 20, 450 << 20},
	} {
		if got := runtimeMemory(c.live, c.beside, c.container); got != c.want {
			t.Errorf("with %d MiB alive of %d: %d, want %d", c.live>>20, c.container, got, c.want)
		}
	}
}

func TestTheMemoryLimitIsAdjustedUntilItsOwnerStopsIt(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	synctest.Test(t, func(t *testing.T) {
		stop := keepMemory(slog.New(slog.DiscardHandler))
		time.Sleep(3 * memoryPause)
		stop() // a goroutine that still runs fails the test
	})
}

func TestAFreshLeaderIsSettledWhenEachRayClusterHasADecisionOrAfterAWhile(t *testing.T) {
	keys := []nodepool.ClusterKey{{Namespace: "ml", Name: "a"}, {Namespace: "ml", Name: "b"}}
	var fault error
	var came int64
	decided, clock := map[nodepool.ClusterKey]bool{}, time.Unix(1_700_000_000, 0)
	fresh := func() *Leadership {
		return &Leadership{
			keys:    func() ([]nodepool.ClusterKey, error) { return keys, fault },
			decided: func(key nodepool.ClusterKey) bool { return decided[key] }, now: func() time.Time { return clock },
			came: func() int64 { return came },
		}
	}
	l := fresh()
	want := func(when string, want bool) {
		t.Helper()
		if got := l.Settled(); got != want {
			t.Errorf("%s: settled %v, want %v", when, got, want)
		}
	}
	want("at first", false)
	decided[keys[0]] = true
	want("after one of two", false)
	clock = clock.Add(settleTimeout - time.Nanosecond)
	want("not long enough", false)
	clock = clock.Add(time.Nanosecond)
	want("one cannot be looked at", true)

	l = fresh()
	want("a new one", false)
	decided[keys[1]] = true
	want("all", true)
	keys = append(keys, nodepool.ClusterKey{Namespace: "ml", Name: "new"})
	want("a RayCluster more, later", true)

	came++
	want("RayClusters of another shard come", false)
	decided[keys[2]] = true
	want("they are decided too", true)

	l, fault = fresh(), errors.New("caches are empty")
	want("what there is is not known", false)
}
