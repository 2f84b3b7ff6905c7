package serve_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/serve"
)

// one returns a reply with one deployment.
func one(deployment string) string {
	return `{"applications": {"a": {"deployments": {"d": ` + deployment + `}}}}`
}

func TestAReplicaRequestsWhatServeGivesIt(t *testing.T) {
	bundle := func(pairs ...any) []raydemand.Bundle {
		b := raydemand.Bundle{}
		for i := 0; i < len(pairs); i += 2 {
			b[pairs[i].(string)], _ = raydemand.FromFloat(pairs[i+1].(float64))
		}
		return []raydemand.Bundle{b}
	}
	with := func(options string) string {
		return one(`{"target_num_replicas": 3, "deployment_config": {"ray_actor_options": ` + options + `}}`)
	}
	for _, c := range []struct {
		name, reply string
		want        raydemand.Deployment
	}{
		{"nothing said means one CPU", with(`{}`), raydemand.Deployment{Bundles: bundle("CPU", 1.0)}},
		{"no options at all mean the same", with(`null`), raydemand.Deployment{Bundles: bundle("CPU", 1.0)}},
		{"no CPU is no CPU", with(`{"num_cpus": 0, "num_gpus": 0.5}`), raydemand.Deployment{Bundles: bundle("GPU", 0.5)}},
		{"a replica may request nothing", with(`{"num_cpus": 0}`), raydemand.Deployment{}},
		{"memory is in bytes", with(`{"num_cpus": 2, "memory": 8e9, "resources": {"disk": 1}}`),
			raydemand.Deployment{Bundles: bundle("CPU", 2.0, "memory", 8e9, "disk", 1.0)}},
		{"an accelerator type is a resource", with(`{"num_gpus": 1, "accelerator_type": "L4"}`),
			raydemand.Deployment{Bundles: bundle("CPU", 1.0, "GPU", 1.0, "accelerator_type:L4", 0.001)}},
		{"a node may have two replicas at most", one(`{"target_num_replicas": 3, "deployment_config": {"max_replicas_per_node": 2}}`),
			raydemand.Deployment{Bundles: bundle("CPU", 1.0, raydemand.ImplicitPrefix+"a:d", 0.5)}},
		{"labels have alternatives up to the one that matches all", with(`{"label_selector": {"zone": "a"},
			"fallback_strategy": [{"label_selector": {"zone": "b"}}, {}, {"label_selector": {"zone": "c"}}]}`),
			raydemand.Deployment{Bundles: bundle("CPU", 1.0), Selectors: []raydemand.Selector{
				{{Key: "zone", Op: raydemand.In, Values: []string{"a"}}}, {{Key: "zone", Op: raydemand.In, Values: []string{"b"}}}, {}}}},
		{"what is not known is ignored", with(`{"runtime_env": {"x": [1]}, "new_in_ray_3": {"y": 1}}`),
			raydemand.Deployment{Bundles: bundle("CPU", 1.0)}},
		{"NaN and Infinity are numbers for Python alone", with(`{"runtime_env": {"x": NaN, "y": [-Infinity, Infinity], "NaN": "NaN \" NaN"}}`),
			raydemand.Deployment{Bundles: bundle("CPU", 1.0)}},
		{"placement groups are in the application's config", `{"applications": {"a": {"deployed_app_config": {"deployments": [
			{"name": "other", "placement_group_bundles": [{"CPU": 9}]},
			{"name": "d", "placement_group_bundles": [{"CPU": 1, "GPU": 1}, {"GPU": 1}, {}], "placement_group_strategy": "STRICT_PACK"}]},
			"deployments": {"d": {"target_num_replicas": 3, "deployment_config": {"ray_actor_options": {"num_cpus": 1}}}}}}}`,
			raydemand.Deployment{Strategy: raydemand.StrictPack, Bundles: append(bundle("CPU", 1.0, "GPU", 1.0), bundle("GPU", 1.0)...)}},
	} {
		got, err := serve.Decode([]byte(c.reply))
		c.want.App, c.want.Name, c.want.Replicas = "a", "d", 3
		if diff := cmp.Diff([]raydemand.Deployment{c.want}, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n-want +got:\n%s", c.name, err, diff)
		}
	}
}

func TestNonsenseIsAnErrorThatNamesTheField(t *testing.T) {
	many := strings.Repeat(`{"GPU": 1},`, 1001)
	for _, c := range []struct{ name, reply, want string }{
		{"HTML", "<html><body>502</body></html>", `want JSON, it begins with "<html>`},
		{"nothing", "", "want JSON"},
		{"another API", `{"result": true}`, "it has no applications"},
		{"a list", `[1]`, "want JSON"},
		{"a negative count", one(`{"target_num_replicas": -1}`), `application "a", deployment "d": target_num_replicas is -1, want a whole number from 0 to 100000`},
		{"a billion replicas", one(`{"target_num_replicas": 1000000000}`), "target_num_replicas is 1000000000"},
		{"half a replica", one(`{"target_num_replicas": 1.5}`), "target_num_replicas is 1.5"},
		{"no count", one(`{}`), "it has no target_num_replicas"},
		{"a negative amount", one(`{"target_num_replicas": 1, "deployment_config": {"ray_actor_options": {"num_gpus": -1}}}`), `ray_actor_options has -1 of "GPU"`},
		{"an immense amount", one(`{"target_num_replicas": 1, "deployment_config": {"ray_actor_options": {"memory": 1e300}}}`), `ray_actor_options has 1e+300 of "memory"`},
		{"a text for an amount", one(`{"target_num_replicas": 1, "deployment_config": {"ray_actor_options": {"num_gpus": "all"}}}`), "num_gpus"},
		{"a label that is none", one(`{"target_num_replicas": 1, "deployment_config": {"ray_actor_options": {"label_selector": {"a": "in("}}}}`), "label_selector"},
		{"too many bundles", `{"applications": {"a": {"deployed_app_config": {"deployments": [{"name": "d", "placement_group_bundles": [` +
			many[:len(many)-1] + `]}]}, "deployments": {"d": {"target_num_replicas": 1}}}}}`, "placement_group_bundles has 1001 bundles, want at most 1000"},
		{"another strategy", `{"applications": {"a": {"deployed_app_config": {"deployments": [{"name": "d", "placement_group_bundles": [{"GPU": 1}],
			"placement_group_strategy": "CLOSE"}]}, "deployments": {"d": {"target_num_replicas": 1}}}}}`, `placement_group_strategy is "CLOSE"`},
	} {
		got, err := serve.Decode([]byte(c.reply))
		if !errors.Is(err, raydemand.ErrBadReply) || got != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %s", c.name, got, err, c.want)
		}
	}
}

func TestTooManyDeploymentsAreNonsense(t *testing.T) {
	var entries []string
	for i := range serve.MaxDeployments + 1 {
		entries = append(entries, fmt.Sprintf(`"d%d": {"target_num_replicas": 1}`, i))
	}
	_, err := serve.Decode([]byte(`{"applications": {"a": {"deployments": {` + strings.Join(entries, ",") + `}}}}`))
	if err == nil || !strings.Contains(err.Error(), "more than 1000 deployments") {
		t.Error(err)
	}
}

// TestAReplyIsBounded has replies of the allowed size that no application gives.
func TestAReplyIsBounded(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	var parts []string
	for i := range 999 {
		parts = append(parts, fmt.Sprintf(`{"name": "d%d", "placement_group_bundles": [{"a%d": 1}, {"b": 1}]}`, i, i))
	}
	var targets []string
	for i := range 999 {
		targets = append(targets, fmt.Sprintf(`"d%d": {"target_num_replicas": 1}`, i))
	}
	for name, c := range map[string]struct{ reply, want string }{
		"a long name of a resource":                   {one(`{"target_num_replicas": 1, "deployment_config": {"ray_actor_options": {"resources": {"` + long + `": 1}}}}`), "has 100000 bytes, want at most 300"},
		"a long name of an application, with a fault": {strings.Replace(one(`{"target_num_replicas": -1}`), `"a"`, `"`+long+`"`, 1), "target_num_replicas is -1"},
		"many bundles": {`{"applications": {"a": {"deployed_app_config": {"deployments": [` + strings.Join(parts, ",") + `]}, "deployments": {` +
			strings.Join(targets, ",") + `}}}}`, "have 1998 bundles, want at most 1000"},
	} {
		_, err := serve.Read(t.Context(), head(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.reply) }))
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 {
			t.Errorf("%s: an error of %d bytes: %.300v", name, len(fmt.Sprint(err)), err)
		}
	}
}

// TestARecordedReplyIsRead reads what a head has answered; testdata/README.md says how it was recorded.
func TestARecordedReplyIsRead(t *testing.T) {
	config := head(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, map[bool]string{true: "testdata/applications-2.60.0.json", false: "testdata/placementgroups-2.60.0.json"}[r.URL.Path == "/api/serve/applications/"])
	})
	got, err := serve.Read(t.Context(), config)
	half := raydemand.Amount(raydemand.One / 2)
	want := []raydemand.Deployment{
		{App: "app", Name: "Coded", Replicas: 1, Strategy: raydemand.Pack, Bundles: []raydemand.Bundle{{"CPU": half}, {"CPU": half}}},
		{App: "app", Name: "Model", Replicas: 2, Bundles: []raydemand.Bundle{{"CPU": raydemand.One, "GPU": half, "memory": raydemand.Whole(100_000_000)}}},
		{App: "app", Name: "Router", Replicas: 1, Bundles: []raydemand.Bundle{{"CPU": raydemand.One}}},
		{App: "app", Name: "Sharded", Replicas: 1, Strategy: raydemand.StrictPack, Bundles: []raydemand.Bundle{{"CPU": raydemand.One}, {"CPU": raydemand.One}}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n-want +got:\n%s", err, diff)
	}
}

func TestPlacementGroupsMayHaveNaNAndMayFail(t *testing.T) {
	if err := serve.AddGroups(nil, []byte(`{"result": true, "data": {"result": {"result": [{"name": "x", "stats": NaN}]}}}`)); err != nil {
		t.Error(err)
	}
	if err := serve.AddGroups(nil, []byte(`{"result": false, "msg": "timeout", "data": {"result": null}}`)); !errors.Is(err, raydemand.ErrUnavailable) {
		t.Error(err)
	}
}

func TestPlacementGroupsThatAreNonsenseAreErrors(t *testing.T) {
	group := func(name, bundles string) string {
		return `{"data": {"result": {"result": [{"name": "` + name + `", "bundles": ` + bundles + `}]}}}`
	}
	for _, c := range []struct{ name, reply, want string }{
		{"HTML", "<html>", "want JSON"},
		{"a negative amount", group("SERVE_REPLICA::a#d#x", `[{"unit_resources": {"GPU": -1}}]`), `placement group "SERVE_REPLICA::a#d#x": placement_group_bundles[0] has -1 of "GPU"`},
		{"one of another program", group("a#d#x", `[{"unit_resources": {"GPU": -1}}]`), ""},
		{"none", `{}`, ""},
	} {
		all := []raydemand.Deployment{{App: "a", Name: "d", Replicas: 1}}
		err := serve.AddGroups(all, []byte(c.reply))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || all[0].Bundles != nil {
			t.Errorf("%s: %v, %+v", c.name, err, all)
		}
	}
}

// head answers like a dashboard.
func head(t *testing.T, handle http.HandlerFunc) serve.Config {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return serve.Config{Address: server.Listener.Addr().String()}
}

func TestTheCallIsTheOneOfServe(t *testing.T) {
	var seen *http.Request
	config := head(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v0/placement_groups" {
			fmt.Fprint(w, `{"data": {}}`)
			return
		}
		seen = r
		fmt.Fprint(w, one(`{"target_num_replicas": 2}`))
	})
	if got, err := serve.Read(t.Context(), config); err != nil || len(got) != 1 || got[0].Replicas != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	if seen.Method != http.MethodGet || seen.URL.Path != "/api/serve/applications/" || seen.Header.Get("Authorization") != "" {
		t.Errorf("%s %s with %v", seen.Method, seen.URL, seen.Header)
	}
	config.Token = "secret"
	if _, err := serve.Read(t.Context(), config); err != nil || seen.Header.Get("Authorization") != "Bearer secret" {
		t.Errorf("%v, %v", seen.Header, err)
	}
}

func TestARefusalSaysWhatItMeans(t *testing.T) {
	elsewhere := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	for _, c := range []struct {
		name   string
		handle http.HandlerFunc
		kind   error
		want   string
	}{
		{"no token", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Unauthorized: Missing authentication token", http.StatusUnauthorized)
		}, raydemand.ErrAuth, "401 Unauthorized: Unauthorized: Missing authentication token"},
		{"a wrong token", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "Forbidden", http.StatusForbidden) }, raydemand.ErrAuth, "403"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) }, raydemand.ErrBadReply, "redirects to"},
		{"no Serve", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Serve dependencies are not installed", http.StatusNotImplemented)
		}, raydemand.ErrUnsupported, "501"},
		{"another server", func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) }, raydemand.ErrUnsupported, "404"},
		{"a controller that is down", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<html>\n"+strings.Repeat("x", 10_000), http.StatusServiceUnavailable)
		}, raydemand.ErrUnavailable, "503"},
		{"a status that says nothing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(299) }, raydemand.ErrBadReply, "299"},
		{"a reply without end", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, strings.Repeat(" ", 2000))
		}, raydemand.ErrBadReply, "more than 1000 bytes"},
		{"a reply that breaks off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "500")
			fmt.Fprint(w, "{")
		}, raydemand.ErrUnavailable, "unexpected EOF"},
	} {
		config := head(t, c.handle)
		config.Token, config.MaxReply = "secret", 1000
		_, err := serve.Read(t.Context(), config)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), config.Address) ||
			len(err.Error()) > 400 || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v; want %v with %q", c.name, err, c.kind, c.want)
		}
	}
	if elsewhere > 0 {
		t.Error("a redirect was followed, with the token")
	}
}

func TestAHeadThatDoesNotAnswerIsNotWaitedFor(t *testing.T) {
	release := make(chan struct{})
	config := head(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-release:
		}
	})
	defer close(release)
	config.Timeout = time.Millisecond
	if _, err := serve.Read(t.Context(), config); !errors.Is(err, raydemand.ErrUnavailable) || !strings.Contains(err.Error(), "no reply within 1ms") {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := serve.Read(ended, config); !errors.Is(err, raydemand.ErrUnavailable) {
		t.Error(err)
	}
	if _, err := serve.Read(t.Context(), serve.Config{Address: "10.0.0.1"}); err == nil || !strings.Contains(err.Error(), `want "ip:port"`) {
		t.Error(err)
	}
}

// FuzzDecode holds that no reply panics, and that what is read is within bounds.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{}`, one(`{"target_num_replicas": 2}`), one(`{"target_num_replicas": 1e3}`), `{"applications": {"a": null}}`,
		one(`{"target_num_replicas": 1, "deployment_config": {"ray_actor_options": {"num_gpus": Infinity, "resources": {"": 1}}}}`), `"\`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := serve.Decode(text)
		if err != nil && all != nil {
			t.Errorf("%v beside %v", all, err)
		}
		for _, d := range all {
			if d.Replicas < 0 || d.Replicas > serve.MaxReplicas {
				t.Errorf("%+v", d)
			}
			for _, bundle := range d.Bundles {
				for name, amount := range bundle {
					if name == "" || amount <= 0 {
						t.Errorf("%+v", d)
					}
				}
			}
		}
	})
}
