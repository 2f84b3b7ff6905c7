package page

import (
	_ "embed" // for contrast.js
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

//go:embed contrast.js
var contrast string

func withNodes(c *api.Config) { c.Nodepools = cards{} }

func newBusyFleet() *fleet {
	f := &fleet{}
	f.set(busy(time.Now()), quiet(1), quiet(2))
	return f
}

func TestABusyClusterIsShownWithAllItsReasons(t *testing.T) {
	server := newServer(t, newBusyFleet(), withNodes, nil)
	b := open(t, desktop, server.URL+"/#ml/llm")
	for _, text := range []string{"Live", "Unserved demand", "Worker groups", "a100", "desired", "STRICT_SPREAD", "Findings",
		"surplus-deleted-at-random", "Decisions", "replicas 2 → 3", "Workers that leave or have a bad GPU", "taint DeletionCandidateOfClusterAutoscaler",
		"Starting workers", "node-launched", "instance p4d-3"} {
		b.shows(text)
	}
	if bar := ask[string](b, `[...document.querySelectorAll('.bar')].map(bar => bar.getAttribute('aria-label')).find(label => label.startsWith('mig-1g'))`); !strings.HasPrefix(bar, "mig-1g: 2 ready, 1 of them idle, 0 starting, 1 leaving; desired ") {
		t.Errorf("a group's bar is %q", bar)
	}
	if !ask[bool](b, `[...document.querySelectorAll('.bar .idle')].some(part => part.getBoundingClientRect().width > 10)`) {
		t.Error("no bar shows that a worker is idle")
	}
	if least := ask[float64](b, `Math.min(...[...document.querySelectorAll('td:not(.number)')].map(cell => cell.getBoundingClientRect().width))`); least < 90 {
		t.Errorf("a column of text has %.0f pixels, in which short names break", least)
	}
	b.unharmed()
}

func TestThePageIsUsedByKeyboard(t *testing.T) {
	server := newServer(t, newBusyFleet(), withNodes, nil)
	b := open(t, desktop, server.URL+"/#ml/llm")
	b.shows("Decisions")
	b.do(chromedp.KeyEvent(kb.Tab))
	if got := ask[string](b, `document.activeElement.textContent`); got != "Skip to the cluster" {
		t.Fatalf("the first stop is %q", got)
	}
	for range 20 {
		b.do(chromedp.KeyEvent(kb.Tab))
		if ask[bool](b, `document.activeElement.textContent.includes('cluster-0001')`) {
			break
		}
	}
	if !ask[bool](b, `getComputedStyle(document.activeElement).outlineStyle !== 'none'`) {
		t.Error("one does not see where the focus is")
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until("other cluster", `document.querySelector('#cluster h2').textContent === 'cluster-0001'`)
	// A refresh of the data must not move the focus.
	b.until("focus on the cluster", `document.activeElement.id === 'cluster'`)
	b.unharmed()
}

func TestAnEmptyFleetSaysWhatToDo(t *testing.T) {
	b := open(t, desktop, newServer(t, &fleet{}, nil, nil).URL)
	b.shows("There are no RayClusters.")
	b.unharmed()
}

func TestAFailingServerIsShownAndComesBack(t *testing.T) {
	var broken atomic.Bool
	server := newServer(t, newBusyFleet(), withNodes, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if broken.Load() {
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
		})
	})
	b := open(t, desktop, server.URL+"/#ml/llm")
	b.shows("Decisions")
	broken.Store(true)
	server.CloseClientConnections()
	b.shows("No answer from Heliostat.")
	b.shows("Decisions")
	broken.Store(false)
	b.shows("Live")
	b.unharmed()
}

func TestWhatFailsInOneClusterIsShownThere(t *testing.T) {
	f := newBusyFleet()
	view := busy(time.Now())
	view.Err, view.Kube.Freeze, view.Paused = "reading Ray's state: deadline exceeded", true, "Ray's account is 12 s old"
	view.OptIn = &apiv1.OptIn{Waiting: "demand waits for which Heliostat would launch 2 × a100", Allow: "`autoscaler unfreeze ml/llm` lets it be scaled again"}
	f.set(view)
	b := open(t, desktop, newServer(t, f, nil, nil).URL+"/#ml/llm")
	for _, text := range []string{"deadline exceeded", "Frozen: Heliostat writes nothing", "Scale-down is paused: Ray's account is 12 s old",
		"In shadow, demand waits for which Heliostat would launch 2 × a100; `autoscaler unfreeze ml/llm` lets it be scaled again", "demand waits in shadow"} {
		b.shows(text)
	}
	b.do(chromedp.Evaluate(`location.hash = '#ml/nobody'`, nil))
	b.shows("there is no RayCluster ml/nobody")
	b.unharmed()
}

func TestAThousandClustersAreListedAndFiltered(t *testing.T) {
	f := &fleet{}
	for number := range 1000 {
		f.set(quiet(number))
	}
	b := open(t, desktop, newServer(t, f, nil, nil).URL)
	b.until("thousand links", `document.querySelectorAll('#fleet a').length === 1000`)
	b.do(chromedp.Evaluate(`document.getElementById('filter').focus()`, nil), chromedp.KeyEvent("cluster-077"))
	b.until("ten links", `document.querySelectorAll('#fleet a').length === 10`)
	b.shows("10 of 1000")
	b.unharmed()
}

// changed returns the busy cluster with one more decision.
func changed() api.View {
	view := busy(time.Now())
	view.Recent = append(view.Recent, addon.Action{At: time.Now(), Kind: "patch", Result: "ok", Group: "cpu", From: 1, To: 7,
		Message: "a change nobody reloaded the page for"})
	view.Plan.Groups[1].Desired = 7
	return view
}

func TestANewDecisionAppearsByItselfWhereTheServerSendsNoEvents(t *testing.T) {
	f := newBusyFleet()
	b := open(t, desktop, newServer(t, f, nil, nil).URL+"/#ml/llm")
	b.shows("Decisions")
	f.set(changed())
	b.shows("a change nobody reloaded the page for")
	b.unharmed()
}

func TestEventsBringNewDecisionsWithoutPolling(t *testing.T) {
	f := newBusyFleet()
	var asked atomic.Int64
	server := newServer(t, f, nil, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/rayclusters" {
				asked.Add(1)
			}
			next.ServeHTTP(w, r)
		})
	})
	b := open(t, desktop, server.URL+"/#ml/llm")
	b.shows("Decisions")
	b.until("stream", `performance.getEntriesByType('resource').some(entry => entry.name.endsWith('/llm/events')) || document.getElementById('link').className === 'up'`)
	before := int64(-1)
	for deadline := time.Now().Add(patience); asked.Load() != before && time.Now().Before(deadline); time.Sleep(2 * time.Second) {
		before = asked.Load() // the first reads of the page are late on a busy machine
	}
	time.Sleep(4 * time.Second)
	if polls := asked.Load() - before; polls > 1 {
		t.Errorf("%d readings within 4 s in which nothing happened", polls)
	}
	f.set(changed())
	b.shows("a change nobody reloaded the page for")
	b.unharmed()
}

func TestADecisionOfTheHistoryCanBeReplayed(t *testing.T) {
	b := open(t, desktop, newServer(t, newBusyFleet(), func(c *api.Config) { c.History = past{} }, nil).URL+"/#ml/llm")
	b.shows("remembered for long")
	if link := ask[string](b, `document.querySelector('.timeline a').getAttribute('href')`); link != "/v1/namespaces/ml/rayclusters/llm/history/1772366398000" {
		t.Errorf("it is replayed from %s", link)
	}
	if got := ask[float64](b, `fetch(document.querySelector('.timeline a').href).then(answer => answer.json()).then(body => body.groups.length)`); got != 1 {
		t.Errorf("the snapshot has %g groups, want 1", got)
	}
	b.unharmed()
}

func TestRequestsAreShownWithTheirOwnersAndWhatBecameOfThem(t *testing.T) {
	f, view := &fleet{}, busy(time.Now())
	view.Plan.InfeasibleRequestResources = append(view.Plan.InfeasibleRequestResources, planner.UnmetRequest{
		Request: raydemand.Request{Bundle: whole(1, 8), Count: 4}, AskedBy: "request train-7 of ann", Reason: planner.Reason{Code: planner.Capped, Message: "group a100 is at its maximum of 6"},
	})
	f.set(view)
	b := open(t, desktop, newServer(t, f, func(c *api.Config) { c.Owned = owned{} }, nil).URL+"/#ml/llm")
	for _, text := range []string{"Requests", "train-7", "request train-7 of ann", "system:serviceaccount:ml:trainer", "4 × {CPU 8, GPU 1} with memory 40Gi, isolation hardware each",
		"Capped", "group a100 is at its maximum of 6"} {
		b.shows(text)
	}
	b.unharmed()
}

func TestWhatIsIdleIsShownWithItsCostAndACommand(t *testing.T) {
	const line = "4 of 16 GPUs are idle; idle GPUs have cost 36."
	for _, s := range []screen{desktop, phone} {
		b := open(t, s, newServer(t, newBusyFleet(), withCosts, nil).URL+"/#ml/llm")
		b.shows(line)
		b.shows("autoscaler explain ml/llm --group a100")
		b.do(chromedp.Evaluate(`document.getElementById('costs-link').click()`, nil))
		for _, text := range []string{"ml/llm: " + line, "of it idle", "of pods in USD, since "} {
			b.shows(text)
		}
		b.accessible()
		b.unharmed()
	}
}

func TestCardsAreDrawnAsTheyAreCut(t *testing.T) {
	for _, s := range []screen{desktop, phone} {
		b := open(t, s, newServer(t, newBusyFleet(), withNodes, nil).URL+"/#nodes")
		b.shows("2 nodes in 1 pool")
		b.do(chromedp.Evaluate(`document.querySelectorAll('summary').forEach(summary => summary.click())`, nil))
		b.shows("mig-node")
		places := ask[[]string](b, `[...document.querySelectorAll('.mig:first-of-type .instance')].map(cell => cell.textContent + ' ' + getComputedStyle(cell).gridColumn)`)
		if diff := cmp.Diff([]string{"1g 1 / span 1", "1g 2 / span 1", "3g.20gb 5 / span 4", " 3", " 4"}, places); diff != "" {
			t.Errorf("instances on the card's memory axis (-want +got):\n%s", diff)
		}
		label := ask[string](b, `document.querySelector('.card [role=img]').getAttribute('aria-label')`)
		if label != "card 0: 1g.5gb taken, 1g.5gb taken, 3g.20gb free" {
			t.Errorf("a screen reader says %q", label)
		}
		b.shows("not healthy: XID 79")
		b.shows("no instance") // the legend of the pictures
		b.accessible()
		b.until("details that stay open", `document.querySelectorAll('details[open]').length === 2`)
		b.unharmed()
	}
}

func TestNamesNeverBecomeMarkup(t *testing.T) {
	const hostile = `<img src=x onerror="document.title='harmed'"><script>document.title='harmed'</script>`
	f := newBusyFleet()
	view := busy(time.Now())
	view.Err = hostile
	view.Plan.Groups[0].Name, view.Plan.Groups[0].Reasons = hostile, []planner.Reason{{Code: hostile, Message: hostile}}
	view.Snapshot.Requests = append(view.Snapshot.Requests, raydemand.Request{Bundle: raydemand.Bundle{hostile: raydemand.One}, Count: 1})
	f.set(view)
	b := open(t, desktop, newServer(t, f, nil, nil).URL+"/#ml/llm")
	b.shows(hostile)
	if title := ask[string](b, `document.title`); title != "llm · Heliostat" || ask[bool](b, `!!document.querySelector('main img')`) {
		t.Errorf("text became markup; the title is %q", title)
	}
	b.unharmed()
}

// division is what one of two shards knows. The other has no address, and decides about everything but the unowned.
type division struct {
	unowned atomic.Pointer[string]
	moving  atomic.Bool
}

func (d *division) Route(key nodepool.ClusterKey) (address string, mine, known bool) {
	unowned := d.unowned.Load()
	known = unowned == nil || *unowned != key.Name
	return "", known, known
}

func (d *division) Addresses() ([]string, bool) { return nil, !d.moving.Load() }

func TestTheShardOfEachRayClusterIsShownAndARayClusterWithoutOne(t *testing.T) {
	f, shards := &fleet{}, &division{}
	llm, other := busy(time.Now()), quiet(1)
	llm.Shard, other.Shard = "heliostat-7q2bz", "heliostat-k4m8x"
	f.set(llm, other)
	server := newServer(t, f, func(c *api.Config) { c.Division = shards }, nil)
	b := open(t, desktop, server.URL+"/#ml/llm")
	const line = `(document.querySelector('#fleet a[href="#ml/llm"] .facts')?.textContent ?? '')`
	b.until("shard in the list", line+`.includes('shard heliostat-7q2bz')`)
	b.until("shard of the other", `document.querySelector('#fleet').textContent.includes('shard heliostat-k4m8x')`)
	b.until("shard beside the facts", `(document.querySelector('.facts-list')?.textContent ?? '').includes('Shardheliostat-7q2bz')`)

	lost := "llm"
	shards.unowned.Store(&lost)
	shards.moving.Store(true)
	b.until("missing shard in the list", line+`.includes('no shard')`)
	b.shows("no shard decides about this RayCluster now; one takes over within seconds")
	b.shows("RayClusters move between shards now")
	if !ask[bool](b, `document.querySelector('#fleet').textContent.includes('shard heliostat-k4m8x')`) {
		t.Error("the list that was read last has gone")
	}

	llm.Shard = "heliostat-k4m8x"
	f.set(llm)
	shards.unowned.Store(nil)
	b.until("next shard, while lists are still refused", line+`.includes('shard heliostat-k4m8x')`)
	shards.moving.Store(false)
	b.shows("Live")
	b.unharmed()
}

// withToken lets only API calls pass that send the token.
func withToken(right string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/v1/") && r.Header.Get("Authorization") != "Bearer "+right {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusUnauthorized)
				fmt.Fprint(w, `{"status":401,"title":"Unauthorized","detail":"the token is not valid"}`)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func TestAPersonSignsInWithAToken(t *testing.T) {
	const right = "a-right-token"
	server := newServer(t, newBusyFleet(), nil, withToken(right))
	b := open(t, phone, server.URL)
	b.shows("kubectl create token")
	b.do(chromedp.SendKeys("#token", "a-wrong-token"+kb.Enter))
	b.shows("the token is not valid")
	b.do(chromedp.SendKeys("#token", right+kb.Enter))
	b.shows("llm")
	b.until("form that went away", `document.getElementById('sign-in').hidden`)
	kept := ask[string](b, `JSON.stringify([location.href, document.cookie, {...localStorage}, {...sessionStorage}, document.body.outerHTML])`)
	if strings.Contains(kept, right) {
		t.Error("the token is kept where a script or the next visitor finds it")
	}
	b.unharmed()
}
