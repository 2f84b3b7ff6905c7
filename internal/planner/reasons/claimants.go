package reasons

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// namedOwned is how many requests of owners a sentence names before it counts the rest. namedLetters is how many
// letters of an owner's name it keeps.
const (
	namedOwned   = 2
	namedLetters = 40
)

// claimants lists the REST requests that pods are launched for, by kind of bundle.
type claimants map[string][]*search.RestRequest

// claimants returns the same list for every group.
func (w *Writer) claimants(out *search.Outcome) claimants {
	if w.claimingOf != out {
		w.claiming, w.claimingOf = w.claimantsOf(out), out
	}
	return w.claiming
}

// claimantsOf assigns the bundles that need no launch in the order in which requests are served, as requestPlans does.
// Pods are launched for the requests that still have bundles after that.
func (w *Writer) claimantsOf(out *search.Outcome) claimants {
	launched := map[string]int64{}
	for _, e := range out.Log {
		if e.Purpose == search.OverREST {
			launched[e.Item.Key] += e.Count
		}
	}
	if len(launched) == 0 || !w.Owned() {
		return nil
	}
	there := map[string]int64{} // bundles that need no launch
	for key, n := range launched {
		there[key] -= n
	}
	each := func(visit func(s *search.RestRequest, key string, n int64)) {
		for i := range w.RestRequests {
			for k, it := range w.RestRequests[i].Items {
				if n := w.RestRequests[i].Admitted[k]; n > 0 && launched[it.Key] > 0 {
					visit(&w.RestRequests[i], it.Key, n)
				}
			}
		}
	}
	each(func(_ *search.RestRequest, key string, n int64) { there[key] += n })
	all := claimants{}
	each(func(s *search.RestRequest, key string, n int64) {
		if there[key] -= n; there[key] < 0 {
			all[key] = append(all[key], s)
		}
	})
	return all
}

// purpose names a claim. A claim of REST requests is named by those requests.
func (c claimants) purpose(of string, it *vector.Item) string {
	switch names, plain := c.names(it); {
	case of != search.OverREST || names == "":
		return of
	case plain:
		return of + " and " + names + ":"
	default:
		return names + ":"
	}
}

// names lists the requests of owners that a bundle belongs to, and reports whether it belongs to the plain request too.
func (c claimants) names(it *vector.Item) (text string, plain bool) {
	var names []string
	for _, s := range c[it.Key] {
		if s.Plain {
			plain = true
			continue
		}
		names = append(names, s.ID+" of "+shortened(s.Owner))
	}
	switch n := len(names); {
	case n == 0:
		return "", plain
	case n == 1:
		return "request " + names[0], plain
	case n == namedOwned:
		return "requests " + strings.Join(names, " and "), plain
	default:
		return fmt.Sprintf("requests %s and %d more", strings.Join(names[:namedOwned], ", "), n-namedOwned), plain
	}
}

// AskedBy names the requests that a bundle belongs to. It returns an empty string if only the plain request asks for
// it.
func (c claimants) AskedBy(it *vector.Item) string {
	names, plain := c.names(it)
	if plain && names != "" {
		return "the plain request and " + names
	}
	return names
}

// RefusedClaimants lists the REST requests with bundles that are not planned for, by kind of bundle.
func (w *Writer) RefusedClaimants() claimants {
	all := claimants{}
	for i := range w.RestRequests {
		s := &w.RestRequests[i]
		for k, it := range s.Items {
			if s.Admitted[k] < it.Request.Count {
				all[it.Key] = append(all[it.Key], s)
			}
		}
	}
	return all
}

// shortened keeps the end of a long name, because all ServiceAccount names begin alike.
func shortened(name string) string {
	if letters := []rune(name); len(letters) > namedLetters {
		return "…" + string(letters[len(letters)-namedLetters+1:])
	}
	return name
}
