package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"heliostat.dev/heliostat/internal/webui"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// fakeDivision is what one of several shards knows of the others.
type fakeDivision struct {
	mu     sync.Mutex
	own    map[string]bool
	owners map[string]string // name of a RayCluster -> address
	others []string
	moving bool
}

func (f *fakeDivision) Route(key nodepool.ClusterKey) (address string, mine, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	address, known = f.owners[key.Name]
	return address, f.own[key.Name], known || f.own[key.Name]
}

func (f *fakeDivision) Addresses() ([]string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.others, !f.moving
}

func (f *fakeDivision) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// divided is two shards, each with one RayCluster.
type divided struct {
	servers   [2]*httptest.Server
	divisions [2]*fakeDivision
	fixtures  [2]*fixture
}

func newDivided(t *testing.T) *divided {
	t.Helper()
	return newDividedWith(t, func(int, *Config) {})
}

func newDividedWith(t *testing.T, change func(i int, c *Config)) *divided {
	t.Helper()
	d := &divided{}
	names := [2]string{"zeta", "alpha"}
	for i, name := range names {
		d.divisions[i] = &fakeDivision{own: map[string]bool{name: true}, owners: map[string]string{}}
		view := busy()
		view.Cluster.Name, view.Shard = name, "heliostat-"+name
		d.servers[i] = serving(t, func(c *Config) {
			d.fixtures[i] = newFixture(t)
			c.Fleet, c.Division = fakeFleet{view.Cluster: view}, d.divisions[i]
			c.Requests = d.fixtures[i].requests
			c.Leadership = &fakeLeadership{leads: true}
			change(i, c)
		})
	}
	for i, division := range d.divisions {
		other := hostOf(d.servers[1-i])
		division.others, division.owners[names[1-i]] = []string{other}, other
	}
	return d
}

func TestEachShardAnswersForAllRayClusters(t *testing.T) {
	d := newDivided(t)
	for _, server := range d.servers {
		for _, path := range []string{"/v1/rayclusters", "/v1/namespaces/ml/rayclusters"} {
			response, text := ask(t, server, http.MethodGet, path, "")
			var list struct {
				Items []struct{ Name, Mode, Shard string }
			}
			if err := json.Unmarshal([]byte(text), &list); err != nil || response.StatusCode != http.StatusOK ||
				len(list.Items) != 2 || list.Items[0].Name != "alpha" || list.Items[1].Name != "zeta" || list.Items[0].Mode == "" ||
				list.Items[1].Shard != "heliostat-zeta" {
				t.Errorf("%s: %s, %v: %s", path, response.Status, err, text)
			}
		}
		for _, name := range []string{"alpha", "zeta"} {
			response, text := ask(t, server, http.MethodGet, "/v1/namespaces/ml/rayclusters/"+name, "")
			if response.StatusCode != http.StatusOK || !strings.Contains(text, `"name":"`+name+`"`) {
				t.Errorf("%s: %s, %s", name, response.Status, text)
			}
		}
	}
}

func TestAShardNeverAnswersWithAPartOfTheList(t *testing.T) {
	d := newDivided(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, test := range map[string]struct {
		change func(f *fakeDivision)
		says   string
	}{
		"moving":     {func(f *fakeDivision) { f.moving = true }, "move between shards"},
		"no address": {func(f *fakeDivision) { f.others = []string{""} }, "no address"},
		"gone":       {func(f *fakeDivision) { f.others = []string{hostOf(gone)} }, "does not answer"},
	} {
		f := &fakeDivision{own: map[string]bool{}, others: d.divisions[0].others}
		test.change(f)
		server := serving(t, func(c *Config) {
			c.Division, c.Leadership = f, &fakeLeadership{leads: true}
		})
		for _, path := range []string{"/v1/rayclusters"} {
			response, text := ask(t, server, http.MethodGet, path, "")
			wantUnavailable(t, name+" "+path, response, text, test.says)
		}
	}
}

func TestAListLacksNothingThatAnotherShardIsAboutToTake(t *testing.T) {
	d := newDivided(t)
	d.divisions[1].change(func() { d.divisions[1].moving = true })
	for _, path := range []string{"/v1/rayclusters"} {
		response, text := ask(t, d.servers[0], http.MethodGet, path, "")
		if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "would lack its RayClusters") {
			t.Errorf("%s: %s, %s", path, response.Status, text)
		}
	}
}

func TestACallAboutARayClusterThatMovesIsNotPassedOnTwice(t *testing.T) {
	d := newDivided(t)
	d.divisions[1].change(func() { d.divisions[1].own = map[string]bool{} })
	response, text := ask(t, d.servers[0], http.MethodGet, "/v1/namespaces/ml/rayclusters/alpha", "")
	wantUnavailable(t, "owned by nobody", response, text, "no shard decides")
	d.divisions[1].change(func() { d.divisions[1].owners["alpha"] = hostOf(d.servers[0]) })
	response, text = ask(t, d.servers[0], http.MethodGet, "/v1/namespaces/ml/rayclusters/alpha", "")
	wantUnavailable(t, "each thinks it is the other's", response, text, "another replica passed this call on")
}

// The page shows "no shard" beside a RayCluster that is refused with these words.
func TestThePageKnowsTheRefusalOfARayClusterWithoutShard(t *testing.T) {
	d := newDivided(t)
	d.divisions[0].change(func() { delete(d.divisions[0].owners, "alpha") })
	response, text := ask(t, d.servers[0], http.MethodGet, "/v1/namespaces/ml/rayclusters/alpha", "")
	wantUnavailable(t, "owned by nobody", response, text, `"detail":"no shard decides`)
	page := httptest.NewRecorder()
	webui.Handler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/", nil))
	if words := "error.message.startsWith('no shard decides')"; !strings.Contains(page.Body.String(), words) {
		t.Errorf("the page lacks %s", words)
	}
}
